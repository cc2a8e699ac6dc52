'use strict';

const assert = require('node:assert');
const { EventEmitter } = require('node:events');
const { test } = require('node:test');

const registry = require('prismarine-registry')('1.16.5');
const { makeGenerator } = require('../generator');
const { makeStates } = require('../generator/blocks');
const { REACH, SceneFeed, sceneTable } = require('../observe/scene');

const states = makeStates(registry);
const table = sceneTable(registry);

/** A bot in a made world; its client knows all chunks. */
function makeBot({ biome = 'plains', site = 'wild' } = {}) {
  const generator = makeGenerator({ seed: 12, biome, site });
  const columns = new Map();
  const bot = new EventEmitter();
  bot.registry = registry;
  bot.world = {
    getColumn(x, z) {
      if (!columns.has(`${x},${z}`)) columns.set(`${x},${z}`, generator.generate(x, z));
      return columns.get(`${x},${z}`);
    },
  };
  const { x, y, z } = generator.spawn;
  bot.entity = { position: { x, y, z }, yaw: 0.5, pitch: -0.1 };
  bot.time = { timeOfDay: 6000 };
  bot.entities = {};
  bot.set = (bx, by, bz, state) => {
    bot.world.getColumn(bx >> 4, bz >> 4).setBlockStateId({ x: bx & 15, y: by, z: bz & 15 }, state);
    bot.emit('blockUpdate', null, { stateId: state, position: { x: bx, y: by, z: bz } });
  };
  bot.stateAt = (bx, by, bz) => bot.world.getColumn(bx >> 4, bz >> 4).getBlockStateId({ x: bx & 15, y: by, z: bz & 15 });
  return bot;
}

const array = (Type, bytes) => new Type(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));

/** Returns the name that a box has at a place; `blocks` are its numbers. */
function nameIn(box, blocks, x, y, z) {
  const [sx, sy, sz] = box.size;
  const [dx, dy, dz] = [x - box.origin[0], y - box.origin[1], z - box.origin[2]];
  assert.ok(dx >= 0 && dx < sx && dy >= 0 && dy < sy && dz >= 0 && dz < sz);
  return table.appearances[blocks[(dx * sz + dz) * sy + dy]][0];
}

test('every block has an appearance, equal-looking ones the same', () => {
  const looks = new Set(table.appearances.map((row) => row[0]));
  for (const block of registry.blocksArray) if (!/^(cave_|void_)air$/.test(block.name)) assert.ok(looks.has(block.name), block.name);
  assert.ok(table.appearances.length < 65536);
  const leaves = table.appearances.filter((row) => row[0] === 'oak_leaves');
  assert.strictEqual(leaves.length, 1);
  const furnaces = table.appearances.filter((row) => row[0] === 'furnace');
  assert.deepStrictEqual(new Set(furnaces.map((row) => row[3])), new Set([0, 13]));
  assert.strictEqual(table.entities[registry.entitiesByName.zombie.id][0], 'zombie');
});

test('other versions, which a real server may have, have a table too', () => {
  for (const version of ['1.8.8', '1.12.2', '1.18.2', '1.20.4']) {
    const other = require('prismarine-registry')(version);
    const { appearances, entities, items, biomes } = sceneTable(other);
    assert.ok(appearances.some((row) => row[0] === 'stone' && row[1].length === 1), version);
    assert.ok(appearances.length > 100 && appearances.length < 65536, `${version}: ${appearances.length}`);
    assert.ok(entities.length > 50 && items.length > 100 && biomes.length > 20, version);
  }
});

test('the first update has the blocks around the bot', () => {
  const bot = makeBot({ biome: 'forest' });
  const feed = new SceneFeed(bot);
  const { box, eye, changes } = feed.update();
  assert.deepStrictEqual(box.size, REACH.map((half) => 2 * half));
  assert.strictEqual(eye[1], bot.entity.position.y + 1.62);
  assert.strictEqual(changes.length, 0);
  const [ox, oy, oz] = box.origin;
  const heights = array(Int16Array, box.heights);
  const blocks = array(Uint16Array, box.blocks);
  for (let n = 0; n < 4000; n++) {
    const [x, y, z] = [ox + (n * 7) % box.size[0], oy + (n * 5) % box.size[1], oz + (n * 11) % box.size[2]];
    const name = registry.blocksByStateId[bot.stateAt(x, y, z)].name;
    assert.strictEqual(nameIn(box, blocks, x, y, z), name, `${x} ${y} ${z}`);
    const height = heights[(x - ox) * box.size[2] + z - oz];
    if (y > height) assert.ok(!/^(stone|dirt|grass_block|oak_leaves|water)$/.test(name));
  }
});

test('nothing is sent twice: a box only after eight blocks, then changes', () => {
  const bot = makeBot();
  const feed = new SceneFeed(bot);
  feed.update();
  let boxes = 0;
  const from = bot.entity.position.x;
  for (let n = 0; n < 32; n++) {
    bot.entity.position.x += 0.5;
    const { box } = feed.update();
    if (box !== null) boxes++;
  }
  assert.strictEqual(bot.entity.position.x, from + 16);
  assert.strictEqual(boxes, 2);
});

test('the box depends on where the bot is, not on how it came there', () => {
  const bot = makeBot();
  const feed = new SceneFeed(bot);
  feed.update();
  for (const step of [5, 7, -3, 9, -6]) {
    bot.entity.position.x += step;
    feed.update();
  }
  const fresh = new SceneFeed(bot).update().box;
  feed.reset();
  assert.deepStrictEqual(feed.update().box, fresh);
});

test('a change is sent with the height of its column', () => {
  const bot = makeBot({ site: 'flat' });
  const feed = new SceneFeed(bot);
  feed.update();
  bot.set(3, 70, 5, states('stone'));
  let rows = array(Int32Array, feed.update().changes);
  assert.deepStrictEqual([...rows.slice(0, 3)], [3, 70, 5]);
  assert.strictEqual(table.appearances[rows[3]][0], 'stone');
  assert.strictEqual(rows[4], 70);
  assert.strictEqual(feed.update().changes.length, 0);
  bot.set(3, 70, 5, 0);
  rows = array(Int32Array, feed.update().changes);
  assert.strictEqual(rows[3], 0);
  assert.strictEqual(rows[4], 63);
  bot.set(1000, 70, 5, states('stone'));
  assert.strictEqual(feed.update().changes.length, 0);
});

test('a roof above the box is noticed', () => {
  const bot = makeBot({ site: 'flat' });
  const feed = new SceneFeed(bot);
  feed.update();
  bot.set(3, 120, 5, states('stone'));
  const { box } = feed.update();
  assert.notStrictEqual(box, null);
  const [ox, , oz] = box.origin;
  assert.strictEqual(array(Int16Array, box.heights)[(3 - ox) * box.size[2] + 5 - oz], 120);
});

test('what changes while a new box is due is in it', () => {
  const bot = makeBot({ site: 'flat' });
  const feed = new SceneFeed(bot);
  feed.update();
  for (const x of [3, 4]) bot.set(x, 120, 5, states('stone')); // a roof above the box
  const { box } = feed.update();
  const heights = array(Int16Array, box.heights);
  const heightAt = (x, z) => heights[(x - box.origin[0]) * box.size[2] + z - box.origin[2]];
  assert.deepStrictEqual([2, 3, 4].map((x) => heightAt(x, 5)), [63, 120, 120]);
  bot.emit('chunkColumnLoad', { x: 0, y: 0, z: 0 });
  bot.set(17, 70, 5, states('stone')); // in a column that had come before
  const after = feed.update();
  assert.strictEqual(nameIn(after.box, array(Uint16Array, after.box.blocks), 17, 70, 5), 'stone');
});

test('chunks that are loaded are shown', () => {
  const bot = makeBot();
  const feed = new SceneFeed(bot);
  feed.update();
  bot.emit('chunkColumnLoad', { x: 0, y: 0, z: 0 });
  assert.notStrictEqual(feed.update().box, null);
  bot.emit('chunkColumnLoad', { x: 1600, y: 0, z: 0 });
  assert.strictEqual(feed.update().box, null);
});

test('bodies come nearest first, without the bot itself', () => {
  const bot = makeBot({ site: 'flat' });
  const at = (x, z) => ({ x: bot.entity.position.x + x, y: 64, z: bot.entity.position.z + z });
  bot.entities = {
    1: bot.entity,
    2: { id: 2, name: 'zombie', position: at(9, 0), yaw: 1, headYaw: 2, metadata: [] },
    3: { id: 3, name: 'sheep', position: at(3, 0), yaw: 0, metadata: { 15: true, 16: 14 } },
    4: { id: 4, name: 'cow', position: at(300, 0), yaw: 0, metadata: [] },
    5: { id: 5, name: 'item', position: at(5, 0), yaw: 0, metadata: [], getDroppedItem: () => ({ type: 7 }) },
  };
  const rows = array(Float32Array, new SceneFeed(bot).update().bodies);
  assert.strictEqual(rows.length, 24);
  const names = [0, 1, 2].map((n) => table.entities[rows[8 * n]][0]);
  assert.deepStrictEqual(names, ['sheep', 'item', 'zombie']);
  assert.deepStrictEqual([...rows.slice(6, 8)], [14, 2]);
  assert.strictEqual(rows[8 + 6], 7);
  assert.deepStrictEqual([...rows.slice(16 + 4, 16 + 6)], [1, 2]);
});

test('a closed feed sends nothing', () => {
  const bot = makeBot();
  const feed = new SceneFeed(bot);
  assert.ok(bot.listenerCount('blockUpdate') > 0);
  feed.close();
  assert.strictEqual(bot.listenerCount('blockUpdate') + bot.listenerCount('chunkColumnLoad') + bot.listenerCount('chunkColumnUnload'), 0);
});

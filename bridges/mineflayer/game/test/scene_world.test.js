'use strict';

const assert = require('node:assert');
const { test } = require('node:test');

const { makeGenerator } = require('../generator');
const { makeWorld } = require('../harness');
const { SceneFeed, sceneTable } = require('../observe/scene');

const array = (Type, bytes) => new Type(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));

test('real clients see the made world, and what changes in it', { timeout: 120000 }, async () => {
  const generator = makeGenerator({ seed: 5, biome: 'plains' });
  const world = await makeWorld({ agents: 1, seed: 5, generator });
  try {
    const [bot] = world.bots;
    const table = sceneTable(bot.registry);
    await world.step(60);
    const { x, y, z } = bot.entity.position;
    assert.ok(Math.hypot(x - generator.spawn.x, z - generator.spawn.z) < 8, 'stands at the spawn');
    assert.ok(Math.abs(y - generator.spawn.y) < 4);
    const feed = world.run(() => new SceneFeed(bot));
    const { box, eye } = world.run(() => feed.update());
    assert.ok(Math.abs(eye[1] - y - 1.62) < 1e-9);
    const blocks = array(Uint16Array, box.blocks);
    const [sx, sy, sz] = box.size;
    const chunk = generator.generate(Math.floor(x) >> 4, Math.floor(z) >> 4);
    let compared = 0;
    for (let n = 0; n < 256; n++) {
      const at = { x: n & 15, y: Math.floor(y) - 3 + (n % 5), z: n >> 4 };
      const [dx, dy, dz] = [(Math.floor(x) & ~15) + at.x - box.origin[0], at.y - box.origin[1], (Math.floor(z) & ~15) + at.z - box.origin[2]];
      if (Math.min(dx, dy, dz) < 0 || dx >= sx || dy >= sy || dz >= sz) continue;
      const name = bot.registry.blocksByStateId[chunk.getBlockStateId(at)].name;
      assert.strictEqual(table.appearances[blocks[(dx * sz + dz) * sy + dy]][0], name);
      compared++;
    }
    assert.ok(compared > 200);
    const [bx, by, bz] = [Math.floor(x) + 2, Math.floor(y) + 6, Math.floor(z)];
    await world.console(`/setblock ${bx} ${by} ${bz} gold_block`);
    await world.step(5);
    const rows = array(Int32Array, world.run(() => feed.update()).changes);
    const found = [...Array(rows.length / 5).keys()].map((n) => [...rows.slice(5 * n, 5 * n + 5)]).find((row) => row[0] === bx && row[1] === by && row[2] === bz);
    assert.ok(found, 'the change is told');
    assert.strictEqual(table.appearances[found[3]][0], 'gold_block');
    assert.ok(found[4] >= by);
    world.run(() => feed.close());
  } finally {
    world.close();
  }
});

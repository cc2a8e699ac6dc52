'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { Vec3 } = require('vec3');
const { makeWorld } = require('../harness');
const { Game } = require('../game');
const { Columns, LAYOUT } = require('../observe/columns');
const { Senses } = require('../observe/senses');
const { tablesOf } = require('../observe/tables');
const { sunBrightness, climate, customName, healthIndex } = require('../observe/surroundings');
const { plain } = require('../observe/events');
const { shareVersion } = require('../libraries');

const NEUTRAL = [0, 0, 0, 12, 12, 0, 0, 0];

/** The configuration of an instance, as Python sends it. */
const config = (over = {}) => {
  const agents = over.agents ?? 1;
  return {
    mode: 'embedded', version: '1.16.5', width: agents, agents,
    names: Array.from({ length: agents }, (_, i) => `a${i}`), actions: 'low_level',
    ticks_per_step: 1, view_distance: 3, rgb: null,
    senses: { sight_distance: 48, line_of_sight: true, hearing_distance: 50, chat_distance: 50 },
    needs: true, code: { time_ms: 100, memory_mb: 32, calls: 1000 },
    server: { respawn: false, doMobSpawning: false }, ...over
  };
};

const start = (over = {}) => ({
  seed: 1, episode: 0, items: [], targets: [], blocks: [], commands: [], ...over,
  state: { world: 3, biome: 'plains', site: 'flat', time: 'day', weather: 'clear',
    difficulty: 'normal', ...over.state }
});

/** Returns the bytes of an action column, one array per slot. */
function actions(rows) {
  const bytes = Buffer.alloc(rows.length * 64);
  rows.flat().forEach((value, i) => bytes.writeBigInt64LE(BigInt(value), i * 8));
  return { action: bytes };
}

/** Returns a row of a frame by column. */
function read({ columns }, rows, row) {
  const frame = new Columns(rows);
  columns.copy(frame.buffer);
  return Object.fromEntries(LAYOUT.map(({ key, shape }) => {
    const count = shape.reduce((a, b) => a * b, 1);
    const values = [...frame.columns[key].subarray(row * count, (row + 1) * count)].map(Number);
    return [key, shape.length === 0 ? values[0] : values];
  }));
}

async function begin(over, ...starts) {
  const game = new Game(config(over));
  const frame = await game.reset(starts.map((_, i) => i), starts);
  return { game, frame };
}

test('columns are stored one after the other with the values written', () => {
  const frame = new Columns(3);
  const values = Object.fromEntries(LAYOUT.map(({ key, shape }, i) => {
    const count = shape.reduce((a, b) => a * b, 1);
    return [key, shape.length === 0 ? i : new Array(count).fill(1)];
  }));
  frame.write(1, values);
  const last = frame.places.at(-1);
  const sizes = { float32: 4, int64: 8, int32: 4, bool: 1 };
  assert.strictEqual(frame.buffer.length, last.offset + 3 * last.count * sizes[last.dtype]);
  assert.strictEqual(read({ columns: frame.buffer }, 3, 1).time, values.time);
  assert.strictEqual(read({ columns: frame.buffer }, 3, 0).time, 0);
  assert.throws(() => frame.write(0, { tick: 1 }), /no value for the column/);
});

test('an agent finds itself as its start says', async () => {
  const { game, frame } = await begin({}, start({
    items: [{ name: 'iron_sword', count: 1, slot: null }, { name: 'dirt', count: 70, slot: null },
      { name: 'iron_helmet', count: 1, slot: 'head' }, { name: 'shield', count: 1, slot: 'off-hand' }],
    blocks: [{ x: 1, y: 0, z: 0, name: 'oak_log' }], state: { time: 'night', difficulty: 'hard' }
  }));
  const registry = shareVersion('1.16.5');
  const row = read(frame, 1, 0);
  assert.deepStrictEqual(row.life.slice(0, 5), [20, 20, 20, 5, 2]);
  const id = (name) => registry.itemsByName[name].id;
  assert.deepStrictEqual(row.inventory_id.slice(27, 31), [id('iron_sword'), id('dirt'), id('dirt'), 0]);
  assert.deepStrictEqual(row.inventory_count.slice(27, 31), [1, 64, 6, 0]);
  assert.deepStrictEqual(row.inventory_durability.slice(54, 56), [250, 250]);
  assert.deepStrictEqual(row.equipment_id,
    [id('iron_sword'), 0, 0, 0, id('iron_helmet'), id('shield')]);
  assert.strictEqual(row.difficulty, 3);
  assert.strictEqual(row.time, 14000);
  assert.deepStrictEqual([row.tick, row.age, row.game_over, row.deaths], [0, 0, 0, 0]);
  // [dx + 1][dy + 1][dz + 1]: the log to the east, grass under the feet.
  const at = (x, y, z) => row.voxels_id[(x + 1) * 9 + (y + 1) * 3 + z + 1];
  assert.strictEqual(at(1, 0, 0), registry.blocksByName.oak_log.id);
  assert.strictEqual(at(0, -1, 0), registry.blocksByName.grass_block.id);
  assert.strictEqual(at(0, 0, 0), 0);
  const [details] = frame.details;
  assert.strictEqual(details.voxels.block_name[2][1][1], 'oak_log');
  assert.strictEqual(details.voxels.can_burn[2][1][1], true);
  assert.strictEqual(details.equipment.name[4], 'iron_helmet');
  assert.strictEqual(details.inventory.name[27], 'iron_sword');
  assert.strictEqual(details.inventory_full_slot_count, 3);
  assert.strictEqual(details.location_stats.biome, 'plains');
  assert.strictEqual(JSON.parse(JSON.stringify(details)).name, 'a0');
  game.close();
});

test('walking shows in position, velocity, distance and keys', async () => {
  const { game, frame } = await begin({ ticks_per_step: 10 }, start());
  const before = read(frame, 1, 0);
  const after = read(await game.step(actions([[1, 0, 3, 12, 13, 0, 0, 0]])), 1, 0);
  assert.deepStrictEqual(after.control_state, [1, 0, 0, 0, 0, 1, 0]);
  const way = Math.hypot(...[0, 2].map((i) => after.position[i] - before.position[i]));
  assert.ok(way > 1.5, `${way} blocks in ten ticks`);
  assert.ok(Math.abs(after.distance - way) < 0.3);
  assert.ok(Math.hypot(after.velocity[0], after.velocity[2]) > 0.1);
  assert.strictEqual(after.tick, 10);
  assert.strictEqual(after.survived_ticks, 10);
  const turned = after.look[0] - before.look[0];
  assert.ok(Math.abs(turned - Math.PI / 12) < 0.01, `${turned}`);
  game.close();
});

test('targets are marked, the nearest first, with offset and health', async () => {
  const { game, frame } = await begin({}, start({
    targets: [{ kind: 'cow', count: 2, distance: 5, name: 'cow' }]
  }));
  const registry = shareVersion('1.16.5');
  const row = read(frame, 1, 0);
  assert.strictEqual(row.entities_count, 2);
  assert.strictEqual(row.targets_left, 2);
  const [kind, target, health, dx, , dz] = row.entities;
  assert.strictEqual(kind, registry.entitiesByName.cow.id);
  assert.strictEqual(target, 1);
  assert.ok(health > 0);
  assert.ok(Math.abs(Math.hypot(dx, dz) - 5) < 0.6);
  assert.deepStrictEqual(frame.details[0].target_entities.map(({ kind: k }) => k), ['cow', 'cow']);
  game.close();
});

test('a wall hides what is behind it, unless sight goes through walls', async () => {
  const world = await makeWorld({ agents: 2 });
  const [bot, other] = world.bots;
  const { opaque } = tablesOf(bot.registry);
  const limits = { sight_distance: 48, line_of_sight: true, hearing_distance: 0, chat_distance: 0 };
  const senses = new Senses(bot, limits, opaque);
  const blind = new Senses(bot, { ...limits, line_of_sight: false }, opaque);
  const short = new Senses(bot, { ...limits, sight_distance: 3 }, opaque);
  const seen = () => bot.entities[other.entity.id];
  const wallX = Math.floor(bot.entity.position.x) + 2;
  const move = (x) => world.run(() => world.players[1].teleport(
    new Vec3(wallX + x + 0.5, 4, bot.entity.position.z)));
  await move(3);
  await world.step(2);
  assert.ok(senses.canSeeEntity(seen()));
  assert.ok(!short.canSeeEntity(seen()));
  const stone = bot.registry.blocksByName.stone.defaultState;
  for (let y = 4; y < 8; y++) {
    for (let dz = -4; dz <= 4; dz++) {
      await world.run(() => world.serv.setBlock(world.serv.overworld,
        new Vec3(wallX, y, Math.floor(bot.entity.position.z) + dz), stone));
    }
  }
  await world.step(2);
  const z = Math.floor(bot.entity.position.z);
  assert.ok(!senses.canSeeEntity(seen()));
  assert.ok(blind.canSeeEntity(seen()));
  assert.ok(senses.canSeeBlock(new Vec3(wallX, 5, z)));
  assert.ok(!senses.canSeeBlock(new Vec3(wallX + 2, 3, z)));
  assert.ok(!senses.canSeeBlock(new Vec3(wallX - 1, 1, z)));
  assert.ok(!senses.canSeeBlock(new Vec3(wallX + 1, 5, z)), 'right behind the wall');
  assert.ok(blind.canSeeBlock(new Vec3(wallX + 1, 5, z)));
  assert.ok(!senses.canSeeBlock(bot.entity.position.offset(0, -2, 0)), 'below what one stands on');
  const glass = bot.registry.blocksByName.glass.defaultState;
  await world.run(() => world.serv.setBlock(world.serv.overworld, new Vec3(wallX, 5, z), glass));
  await world.step(1);
  assert.ok(senses.canSeeEntity(seen()), 'glass hides nothing');
  world.close();
});

test('chat reaches agents that are near', async () => {
  for (const [chat_distance, heard] of [[50, 1], [2, 0], [0, 1]]) {
    const senses = { sight_distance: 48, line_of_sight: true, hearing_distance: 50, chat_distance };
    const { game } = await begin({ agents: 3, senses }, start(), start(), start());
    const [world] = game.worlds;
    await world.run(() => world.players[2].teleport(world.players[0].position.offset(7, 0, 0)));
    await game.step(actions([NEUTRAL, NEUTRAL, NEUTRAL]));
    world.run(() => world.bots[0].chat('hello'));
    const { details } = await game.step(actions([NEUTRAL, NEUTRAL, NEUTRAL]));
    const chats = details.map(({ event }) => event.filter(({ type }) => type === 'chat'));
    assert.strictEqual(chats[0].length, 1, 'the speaker hears itself');
    assert.strictEqual(chats[2].length, heard, `with a distance of ${chat_distance}`);
    assert.strictEqual(chats[0][0].message, '<a0> hello');
    assert.deepStrictEqual([chats[0][0].username, chats[0][0].only_message], ['a0', 'hello']);
    assert.deepStrictEqual(details[0].chat, ['<a0> hello']);
    game.close();
  }
});

test('hurt and death are events with the right names, counted for the right agent', async () => {
  const { game } = await begin({ agents: 2 }, start(), start());
  const [world] = game.worlds;
  const still = actions([NEUTRAL, NEUTRAL]);
  const [victim, by] = world.players;
  const hurt = (amount) => world.run(() => world.serv.survival.hurt(victim,
    { amount, cause: 'blow', by }));
  await game.step(still);
  hurt(3);
  let frame = await game.step(still);
  const of = (row, type) => frame.details[row].event.filter((event) => event.type === type);
  assert.deepStrictEqual(of(0, 'entityHurt').map((e) => [e.entity_type, e.entity_name]), [['self', 'a0']]);
  assert.deepStrictEqual(of(1, 'entityHurt').map((e) => [e.entity_type, e.entity_name]), [['bot', 'a0']]);
  assert.strictEqual(read(frame, 2, 0).damage_taken, 3);
  assert.strictEqual(read(frame, 2, 1).damage_dealt, 3);
  assert.strictEqual(read(frame, 2, 0).game_over, 0);
  await game.step(still);
  for (let i = 0; i < 12; i++) await game.step(still);
  hurt(100);
  frame = await game.step(still);
  assert.strictEqual(of(0, 'death').length, 1);
  assert.deepStrictEqual(of(1, 'entityDead').map((e) => e.entity_name), ['a0']);
  const [dead, alive] = [read(frame, 2, 0), read(frame, 2, 1)];
  assert.deepStrictEqual([dead.game_over, dead.deaths, alive.game_over], [1, 1, 0]);
  frame = await game.step(still);
  const ticks = [0, 1].map((row) => read(frame, 2, row).tick);
  assert.deepStrictEqual(ticks, [dead.tick, alive.tick + 1], 'who is over stands still');
  game.close();
});

test('an agent that respawns plays on at the spawn, and its life is counted again', async () => {
  const { game } = await begin({ server: { respawn: true } }, start());
  const [world] = game.worlds;
  const [player] = world.players;
  const spawn = player.position.clone();
  const still = actions([NEUTRAL]);
  await world.run(() => player.teleport(player.position.offset(20, 0, 0)));
  for (let i = 0; i < 5; i++) await game.step(still);
  world.run(() => world.serv.survival.hurt(player, { amount: 100, cause: 'command' }));
  let row;
  for (let i = 0; i < 60; i++) row = read(await game.step(still), 1, 0);
  assert.deepStrictEqual([row.deaths, row.game_over, row.life[0], row.tick], [1, 0, 20, 65]);
  assert.ok(row.survived_ticks <= 60, `${row.survived_ticks}`);
  assert.ok(player.position.distanceTo(spawn) < 2);
  const before = row.position;
  for (let i = 0; i < 20; i++) row = read(await game.step(actions([[1, 0, 0, 12, 12, 0, 0, 0]])), 1, 0);
  assert.ok(Math.hypot(row.position[0] - before[0], row.position[2] - before[2]) > 2);
  game.close();
});

test('what agents place is listed while it stands, and counted', async () => {
  const { game } = await begin({}, start({ items: [{ name: 'oak_planks', count: 4, slot: null }] }));
  const [world] = game.worlds;
  const [bot] = world.bots;
  const floor = bot.blockAt(bot.entity.position.offset(2, -1, 0));
  await world.until(() => bot.placeBlock(floor, new Vec3(0, 1, 0)));
  let frame = await game.step(actions([NEUTRAL]));
  const { x, y, z } = floor.position;
  assert.deepStrictEqual(frame.details[0].built, [[x, y + 1, z, 'oak_planks']]);
  assert.strictEqual(read(frame, 1, 0).blocks_placed, 1);
  await world.run(() => world.serv.setBlock(world.serv.overworld, new Vec3(x, y + 1, z), 0));
  frame = await game.step(actions([NEUTRAL]));
  assert.deepStrictEqual(frame.details[0].built, []);
  game.close();
});

test('a meal is an event that says what was eaten', async () => {
  const { game } = await begin({ agents: 2 }, start({ items: [{ name: 'bread', count: 2, slot: null }] }), start());
  const [world] = game.worlds;
  world.run(() => world.players[0].updateFood?.(10));
  world.players[0].food = 10;
  await world.until(() => world.bots[0].consume());
  const frame = await game.step(actions([NEUTRAL, NEUTRAL]));
  const meals = frame.details.map(({ event }) => event.filter(({ type }) => type === 'entityEat')
    .map((meal) => [meal.entity_type, meal.entity_name, meal.item]));
  assert.deepStrictEqual(meals, [[['self', 'a0', 'bread']], [['bot', 'a0', 'bread']]]);
  game.close();
});

test('an agent that falls out of the world or is kicked gets an event and an end', async () => {
  const { game } = await begin({ agents: 2, server: { respawn: true } }, start(), start());
  const [world] = game.worlds;
  await world.run(() => world.players[0].teleport(world.players[0].position.offset(0, -200, 0)));
  world.run(() => world.players[1].kick('because'));
  const frame = await game.step(actions([NEUTRAL, NEUTRAL]));
  assert.deepStrictEqual([0, 1].map((row) => read(frame, 2, row).game_over), [1, 1]);
  assert.ok(frame.details[0].event.some(({ type }) => type === 'fellOutOfWorld'));
  const kicked = frame.details[1].event.find(({ type }) => type === 'kicked');
  assert.strictEqual(kicked.reason, 'because');
  game.close();
});

test('a creature that appears nearby is an event, an item is not', async () => {
  const { game } = await begin({}, start());
  const [world] = game.worlds;
  await game.step(actions([NEUTRAL]));
  const { serv } = world;
  const near = world.players[0].position.offset(3, 0, 0);
  await world.run(async () => {
    for (const kind of ['fox', 'piglin', 'arrow']) {
      serv.spawnMob(serv.registry.entitiesByName[kind].id, serv.overworld, near);
    }
    serv.spawnMob(serv.registry.entitiesByName.cow.id, serv.overworld, near.offset(12, 0, 0));
  });
  const { details } = await game.step(actions([NEUTRAL]));
  const appeared = details[0].event.filter(({ type }) => type === 'entitySpawn');
  assert.deepStrictEqual(appeared.map((event) => event.entity_name), ['fox', 'piglin']);
  assert.deepStrictEqual(details[0].entities.map(({ kind }) => kind).sort(),
    ['arrow', 'cow', 'fox', 'piglin']);
  world.agents[0].senses.limits.hearing_distance = 3;
  world.run(() => {
    for (const x of [2, 6]) world.serv.spawnMob(world.serv.registry.entitiesByName.cow.id, world.serv.overworld,
      world.players[0].position.offset(x, 0, 0));
  });
  const heard = (await game.step(actions([NEUTRAL]))).details[0].event.filter(({ type }) => type === 'entitySpawn');
  assert.strictEqual(heard.length, 1, 'what is out of hearing appears unnoticed');
  game.close();
});

test('the sun is bright at noon, dim at midnight, and dimmer in a storm', () => {
  assert.strictEqual(sunBrightness(6000, 0, 0), 15);
  assert.strictEqual(sunBrightness(18000, 0, 0), 4);
  assert.ok(sunBrightness(6000, 1, 1) < 12);
});

test('reasons are read as text, whatever form a server gives them', () => {
  assert.strictEqual(plain('{"text":"no","extra":[{"text":" way"},"!"]}'), 'no way!');
  assert.strictEqual(plain({ translate: 'sleep.players_sleeping', with: ['1', '2'] }),
    'sleep.players_sleeping 1 2');
  assert.strictEqual(plain('just words'), 'just words');
  assert.strictEqual(plain({ translate: 'multiplayer.disconnect.banned' }), 'multiplayer.disconnect.banned');
});

test('light and sky are those of the height, also in a world that is taller and deeper', () => {
  const version = '1.20.4';
  shareVersion(version);
  const registry = require('prismarine-registry')(version);
  const column = new (require('prismarine-chunk')(registry))({ minY: -64, worldHeight: 384 });
  const stone = registry.blocksByName.stone.defaultState;
  const tables = tablesOf(registry);
  const seen = (y) => climate({
    timeOfDay: () => 6000,
    bot: { registry, entity: { position: new Vec3(3, y, 3) }, rainState: 0, thunderState: 0,
      world: { async: { columns: { '0,0': column } } } }
  }, tables);
  for (const [y, level] of [[-39, 4], [281, 9]]) column.setBlockLight(new Vec3(3, y, 3), level);
  assert.deepStrictEqual([-40, 280].map((y) => seen(y).light[0]), [4, 9]);
  assert.deepStrictEqual([-40, 280].map((y) => seen(y).sky), [true, true]);
  column.setBlockStateId(new Vec3(3, 300, 3), stone);
  assert.deepStrictEqual([-40, 280, 310].map((y) => seen(y).sky), [false, false, true]);
});

test('health and names are found where a version tells them', () => {
  const indices = ['1.8.8', '1.9.4', '1.12.2', '1.16.5', '1.20.4'].map((version) =>
    healthIndex(require('prismarine-registry')(version)));
  assert.deepStrictEqual(indices, [6, 6, 7, 8, 9]);
  const named = (value) => customName({ metadata: { 2: value } });
  assert.strictEqual(named('Dinner'), 'Dinner');
  assert.strictEqual(named('{"text":"Dinner","extra":["bone"]}'), 'Dinnerbone');
  assert.strictEqual(named({ type: 'string', value: 'Dinner' }), 'Dinner');
  assert.strictEqual(named('123'), '123');
  assert.deepStrictEqual([undefined, null, '', '{"text":""}', {}].map(named), [null, null, null, null, null]);
});

test('agents that play by programs have the blocks in sight in words, and no hidden ones', async () => {
  // A chest is seen, another is walled in by stone on all sides.
  const walls = [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, -1]];
  const blocks = [
    { x: 3, y: 0, z: 1, name: 'chest' }, { x: -4, y: 0, z: 4, name: 'furnace' },
    ...walls.map(([x, y, z]) => ({ x: -4 + x, y, z: 4 + z, name: 'stone' })), { x: 3, y: 0, z: 3, name: 'chest' }
  ];
  const { game, frame } = await begin({ actions: 'code' }, start({ blocks }));
  const seen = frame.details[0].blocks_in_sight;
  const chest = seen.find(({ name }) => name === 'chest');
  assert.strictEqual(chest.count, 2);
  const [x, y, z] = frame.details[0].location_stats.pos.map(Math.floor);
  assert.deepStrictEqual(chest.nearest, [x + 3, y, z + 1]);
  assert.ok(seen.some(({ name, count }) => name === 'grass_block' && count === 0));
  assert.ok(!seen.some(({ name }) => name === 'furnace'));
  game.close();
  const keys = await begin({}, start({ blocks }));
  assert.strictEqual(keys.frame.details[0].blocks_in_sight, undefined);
  keys.game.close();
});

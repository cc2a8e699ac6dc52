'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { KEYS, columnsOf } = require('../actions');
const { degrees } = require('../actions/human');
const { begin, play, playUntil, blockAt, countOf, look } = require('./actions_help');

/** Returns a row with some keys held and the camera at some bins from still: down, right. */
const keys = (held = [], [down, right] = [0, 0]) => {
  for (const key of held) assert.ok(KEYS.includes(key), key);
  return { keys: KEYS.map((key) => Number(held.includes(key))), camera: [5 + down, 5 + right] };
};
const near = (a, b, slack = 1e-6) => assert.ok(Math.abs(a - b) <= slack, `${a} is not ${b}`);
const human = (start, over) => begin({ actions: 'human', ...over }, start);
const aim = (world, yaw, pitch) => world.run(() => Object.assign(world.bots[0].entity, { yaw, pitch }));

test('the layout is that of blockworld', () => {
  assert.deepStrictEqual(KEYS.slice(0, 12), ['attack', 'back', 'forward', 'jump', 'left', 'right', 'sneak',
    'sprint', 'use', 'drop', 'inventory', 'hotbar.1']);
  assert.strictEqual(columnsOf('human').keys.count, 20);
  const centres = [0, 0.6154, 1.6095, 3.2154, 5.8095, 10];
  centres.forEach((angle, i) => {
    near(degrees(5 + i), angle, 1e-4);
    near(degrees(5 - i), -angle, 1e-4);
  });
});

test('the camera turns down and right in its first tick', async () => {
  const world = await human({}, { ticks_per_step: 4 });
  aim(world, 1, 0);
  await play(world, keys([], [5, 4]));
  near(world.bots[0].entity.pitch, (-10 * Math.PI) / 180);
  near(world.bots[0].entity.yaw, 1 - (degrees(9) * Math.PI) / 180);
  await play(world, keys([], [5, 0]), 12);
  near(world.bots[0].entity.pitch, -Math.PI / 2);
  world.close();
});

test('keys are levels: walking begins and ends with them', async () => {
  const world = await human();
  const { entity } = world.bots[0];
  aim(world, 0, 0);
  const from = entity.position.clone();
  await play(world, keys(['forward', 'sprint']), 20);
  assert.ok(from.z - entity.position.z > 4, 'yaw 0 looks along -z');
  await play(world, keys(['forward', 'back']), 20);
  const there = entity.position.clone();
  await play(world, keys(['forward', 'back']), 10);
  near(entity.position.distanceTo(there), 0, 0.01);
  world.close();
});

test('held attack digs several blocks and ends when released', async () => {
  const world = await human();
  aim(world, 0, -Math.PI / 2);
  await play(world, keys(), 3);
  await playUntil(world, keys(['attack']), () => blockAt(world, 0, -2, 0) === 'air', 60);
  await play(world, keys(), 10);
  assert.ok(countOf(world, 'dirt') > 0);
  await play(world, keys(['attack']), 6);
  await play(world, keys());
  assert.strictEqual(world.agents[0].actor.hands.dug, null);
  assert.strictEqual(world.players[0].digging, null);
  world.close();
});

test('attack strikes when pressed, and again while held when the blow is charged', async () => {
  const world = await human({ items: [{ name: 'stone_sword', count: 1, slot: null }] }, { agents: 2 });
  const [me, other] = world.bots;
  const way = other.entity.position.minus(me.entity.position);
  aim(world, Math.atan2(-way.x, -way.z), 0);
  await play(world, keys(), 20);
  const blows = [];
  world.serv.on('gamut:hurt', ({ amount }) => blows.push([world.ticks, amount]));
  await play(world, keys(['attack', 'forward']), 40);
  await play(world, keys());
  assert.ok(blows.length >= 2, JSON.stringify(blows));
  near(blows[0][1], 5, 1e-6);
  // A stone sword's blow has its full strength again after 12.5 ticks; the other has to be caught up.
  assert.ok(blows[1][0] - blows[0][0] >= 13, JSON.stringify(blows));
  near(blows[1][1], 5, 0.5);
  world.close();
});

test('hot-bar keys select, drop throws one item each time it is pressed', async () => {
  const world = await human({ items: [{ name: 'dirt', count: 5, slot: null },
    { name: 'stone', count: 5, slot: null }] });
  aim(world, 0, 0);
  await play(world, keys(['hotbar.2']));
  assert.strictEqual(world.bots[0].heldItem.name, 'stone');
  await play(world, keys(['drop']), 8);
  assert.strictEqual(countOf(world, 'stone'), 4);
  await play(world, keys());
  await play(world, keys(['drop']));
  await play(world, keys());
  assert.strictEqual(countOf(world, 'stone'), 3);
  await play(world, keys(['hotbar.1', 'hotbar.3']));
  assert.strictEqual(world.bots[0].quickBarSlot, 2);
  world.close();
});

test('held use places every 4 ticks', async () => {
  const world = await human({ items: [{ name: 'dirt', count: 9, slot: null }],
    blocks: [{ x: 0, y: 1, z: -3, name: 'stone' }] });
  aim(world, 0, 0);
  await play(world, keys(['use']));
  assert.strictEqual(blockAt(world, 0, 1, -2), 'dirt');
  await play(world, keys(['use']), 3);
  assert.strictEqual(countOf(world, 'dirt'), 8);
  await play(world, keys(['use']), 1);
  assert.strictEqual(countOf(world, 'dirt'), 7);
  world.close();
});

test('held use eats', async () => {
  const world = await human({ items: [{ name: 'golden_apple', count: 1, slot: null }] });
  aim(world, 0, 0);
  await play(world, keys(['use']), 34);
  await play(world, keys());
  assert.strictEqual(countOf(world, 'golden_apple'), 0);
  assert.ok(look(world).details.event.some(({ type }) => type === 'entityEat'));
  world.close();
});

test('while the inventory is open no other key has an effect', async () => {
  const world = await human();
  const { entity } = world.bots[0];
  aim(world, 0, 0);
  await play(world, keys(), 2);
  const from = entity.position.clone();
  await play(world, keys(['inventory', 'forward']));
  await play(world, keys(['forward', 'attack'], [3, 3]), 10);
  assert.ok(entity.position.equals(from));
  near(entity.yaw, 0);
  await play(world, keys(['inventory']));
  await play(world, keys(['forward']), 10);
  assert.ok(entity.position.distanceTo(from) > 1);
  world.close();
});

test('a chest opens, disables the other keys, and closes with the inventory key', async () => {
  const world = await human({ blocks: [{ x: 0, y: 1, z: -2, name: 'chest' }] });
  aim(world, 0, 0);
  await play(world, keys(['use']));
  await play(world, keys());
  assert.ok(world.bots[0].currentWindow);
  const from = world.bots[0].entity.position.clone();
  await play(world, keys(['back']), 5);
  assert.ok(world.bots[0].entity.position.equals(from));
  await play(world, keys(['inventory']));
  assert.ok(!world.bots[0].currentWindow);
  await play(world, keys(['back']), 5);
  assert.ok(world.bots[0].entity.position.distanceTo(from) > 0.3);
  world.close();
});

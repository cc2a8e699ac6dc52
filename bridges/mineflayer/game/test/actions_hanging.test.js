'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { KEYS } = require('../actions');
const { begin, play, playUntil, blockAt, countOf } = require('./actions_help');

const keys = (...held) => ({ keys: KEYS.map((key) => Number(held.includes(key))), camera: [5, 5] });
const item = (name, count = 1) => ({ name, count, slot: null });

test('by keys: a frame is hung, filled and taken down, a pumpkin carved, a map drawn, a cauldron filled', async () => {
  const world = await begin({ actions: 'human' }, {
    items: ['item_frame', 'diamond', 'shears', 'map', 'water_bucket', 'painting'].map((name) => item(name)),
    blocks: [{ x: 0, y: 1, z: -3, name: 'stone' }],
  });
  const [bot] = world.bots;
  const aim = (yaw, pitch) => world.run(() => Object.assign(bot.entity, { yaw, pitch }));
  const click = async (slot, button = 'use') => {
    await play(world, keys(`hotbar.${slot}`), 2);
    await play(world, keys(button));
    await play(world, keys(), 3);
  };
  const put = (name) => world.run(() => {
    const { x, y, z } = world.origin.offset(0, 1, -3);
    world.serv.survival.blocks.setNamed(x, y, z, name);
  });
  aim(0, 0);
  await click(1);
  const [frame] = world.serv.survival.hanging.all.values();
  assert.strictEqual(frame.name, 'item_frame');
  aim(0, -0.04); // the frame hangs a little lower than the eyes
  await click(2);
  assert.strictEqual(frame.stack?.name, 'diamond');
  await click(2, 'attack');
  assert.strictEqual(frame.stack, null);
  await play(world, keys(), 20);
  await click(2, 'attack');
  assert.strictEqual(world.serv.survival.hanging.all.size, 0);
  put('pumpkin');
  await click(3);
  assert.strictEqual(blockAt(world, 0, 1, -3), 'carved_pumpkin');
  await click(4);
  await playUntil(world, keys(), () => countOf(world, 'filled_map') === 1, 5);
  await play(world, keys(), 20);
  assert.ok(bot.maps[0].colours.some(Boolean), 'it is in hand');
  put('cauldron');
  await click(5);
  assert.deepStrictEqual([countOf(world, 'bucket'), blockAt(world, 0, 1, -2)], [1, 'air']);
  put('stone');
  await click(6);
  const [painting] = world.serv.survival.hanging.all.values();
  assert.strictEqual(painting.name, 'painting');
  await click(6, 'attack');
  assert.strictEqual(world.serv.survival.hanging.all.size, 0);
  world.close();
});

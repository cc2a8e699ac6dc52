'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { begin, play } = require('./actions_help');
const { ActionError } = require('../decode');
const { columnsOf } = require('../actions');
const { SIZES } = require('../actions/low_level');
const { NAMES } = require('../actions/compact');
const ROWS = require('../actions/compact.json');

const compact = (name, names = NAMES) => ({ action: names.indexOf(name) });
const made = (over = {}, start = {}) => begin({ actions: 'compact', ...over }, start);

test('every action is an action of low_level, and none is listed twice', () => {
  assert.deepStrictEqual(columnsOf('compact').action.sizes, [NAMES.length]);
  const changing = NAMES.filter((name) => !/_item$/.test(name));
  for (const name of NAMES) {
    assert.strictEqual(ROWS[name].length, SIZES.length);
    ROWS[name].forEach((value, i) => assert.ok(value >= 0 && value < SIZES[i], `${name}[${i}]`));
  }
  assert.strictEqual(new Set(changing.map((name) => String(ROWS[name]))).size, changing.length);
});

test('turns add up, far turns are four times as far, and noop changes nothing', async () => {
  const world = await made();
  const { entity } = world.bots[0];
  const first = entity.yaw;
  const before = entity.position.clone();
  const degrees = () => Math.round(((entity.yaw - first) * 180) / Math.PI) + 0; // -0 is 0
  await play(world, compact('turn_left'));
  assert.strictEqual(degrees(), 15);
  await play(world, compact('turn_far_left'));
  assert.strictEqual(degrees(), 75);
  await play(world, compact('turn_far_right'));
  await play(world, compact('turn_right'));
  await play(world, compact('noop'), 3);
  assert.strictEqual(degrees(), 0);
  assert.deepStrictEqual(entity.position, before);
  await play(world, compact('look_up'));
  assert.ok(Math.abs(entity.pitch - Math.PI / 12) < 1e-6);
  world.close();
});

test('keys are released in the next step', async () => {
  const world = await made({ ticks_per_step: 5 });
  const [bot] = world.bots;
  const began = bot.entity.position.clone();
  await play(world, compact('forward'), 4);
  const walked = bot.entity.position.distanceTo(began);
  assert.ok(walked > 2, `${walked} blocks`);
  assert.strictEqual(bot.getControlState('forward'), true);
  await play(world, compact('sneak'));
  assert.deepStrictEqual([bot.getControlState('forward'), bot.getControlState('sneak')], [false, true]);
  world.close();
});

test('next_item and previous_item step cyclically through the hot-bar', async () => {
  const world = await made();
  const [bot] = world.bots;
  assert.strictEqual(bot.quickBarSlot, 0);
  await play(world, compact('previous_item'));
  assert.strictEqual(bot.quickBarSlot, 8);
  await play(world, compact('next_item'), 2);
  assert.strictEqual(bot.quickBarSlot, 1);
  world.close();
});

test('a blow hits what is ahead, also in the step that turned to it', async () => {
  const world = await made({ ticks_per_step: 5 }, {
    targets: [{ kind: 'cow', count: 1, distance: 2, name: 'cow' }]
  });
  const [agent] = world.agents;
  const cow = Object.values(world.bots[0].entities).find(({ name }) => name === 'cow');
  const at = cow.position.minus(agent.bot.entity.position);
  const turn = Math.atan2(-at.x, -at.z) - Math.PI / 12;
  world.run(() => agent.bot.look(turn, -0.4, true));
  agent.bot.entity.yaw = turn;
  agent.bot.entity.pitch = -0.4;
  await play(world, compact('turn_left_attack'));
  assert.ok(agent.counts.damage_dealt > 0);
  world.close();
});

test('chosen actions keep their order, and others are refused', async () => {
  const names = ['forward', 'noop'];
  const world = await made({ compact_actions: names });
  const [agent] = world.agents;
  await play(world, compact('forward', names));
  assert.strictEqual(world.bots[0].getControlState('forward'), true);
  await play(world, compact('noop', names));
  assert.strictEqual(world.bots[0].getControlState('forward'), false);
  const refuses = (action, message) => assert.throws(() => world.run(() => agent.actor.apply({ action })),
    (error) => error instanceof ActionError && message.test(error.message));
  refuses(2, /one of 2 compact actions, got 2/);
  refuses(NAMES.length, /from 0 to/);
  world.close();
  await assert.rejects(made({ compact_actions: ['foward'] }), /got foward/);
});

'use strict';
/** Programs in a world: they walk, dig, place, talk and are replaced; their effects are reproducible. */
const assert = require('node:assert');
const test = require('node:test');
const { makeWorld } = require('../harness');
const { Senses } = require('../observe/senses');
const { makeApi } = require('../sandbox/api');
const { Sandbox } = require('../sandbox/runtime');

const api = makeApi();

/** Returns a world and one sandbox for each of its agents. */
async function worldOf(agents, commands = []) {
  const world = await makeWorld({ agents, seed: 1, generator: 'flat' });
  await world.step(5);
  for (const command of commands) await world.console(command);
  await world.step(5);
  const sandboxes = world.bots.map((bot) =>
    new Sandbox({ agent: { bot, now: () => world.ticks }, api, holdMs: 300000, seed: 3 }));
  return { world, sandboxes };
}

async function go({ world, sandboxes }, ticks) {
  for (let i = 0; i < ticks && sandboxes.some((sandbox) => sandbox.running); i++) {
    world.run(() => sandboxes.forEach((sandbox) => sandbox.tick()));
    await world.step(1);
  }
}

async function playIn(scene, source, ticks = 600) {
  await scene.world.run(() => scene.sandboxes[0].start(source));
  await go(scene, ticks);
  return scene.sandboxes[0].state();
}

test('a program walks, digs, places and talks', async () => {
  const scene = await worldOf(2, ['/give a0 dirt 4']);
  const heard = [];
  scene.world.bots[1].on('chat', (who, text) => heard.push(`${who}: ${text}`));
  const { logs, error } = await playIn(scene, `
    const { x, y, z } = bot.entity.position;
    await bot.pathfinder.goto(new GoalNear(x + 6, y, z, 1));
    console.log(bot.entity.position.distanceTo(new Vec3(x + 6, y, z)) < 2);
    const below = bot.blockAt(bot.entity.position.offset(2, -1, 0));
    await bot.dig(below);
    console.log(below.name, bot.blockAt(below.position).name);
    await bot.equip('dirt', 'hand');
    await bot.placeBlock(bot.blockAt(below.position.offset(0, -1, 0)), new Vec3(0, 1, 0));
    console.log(bot.blockAt(below.position).name, bot.heldItem.name);
    bot.chat('done');`);
  assert.strictEqual(error, null);
  assert.deepStrictEqual(logs, ['true', 'grass_block air', 'dirt dirt']);
  assert.deepStrictEqual(heard, ['a0: done']);
  scene.world.close();
});

test('a program places a boat, rows it, and gets off', async () => {
  const scene = await worldOf(1, ['/fill 0 3 10 16 3 40 water', '/give a0 oak_boat']);
  const { logs, error } = await playIn(scene, `
    await bot.equip('oak_boat', 'hand');
    const boat = await bot.placeEntity(bot.blockAt(new Vec3(8, 2, 12)), new Vec3(0, 1, 0));
    let got = 0;
    bot.on('dismount', (from) => console.log('off', from.name));
    await bot.mount(boat);
    console.log(boat.name, bot.vehicle.id === boat.id);
    const from = bot.entity.position;
    bot.setControlState('forward', true);
    await bot.waitForTicks(40);
    bot.clearControlStates();
    bot.moveVehicle(1, 0);
    await bot.waitForTicks(5);
    console.log(bot.entity.position.distanceTo(from) > 8, bot.entity.position.distanceTo(boat.position) < 1);
    bot.dismount();
    await bot.waitForTicks(2);
    console.log(bot.vehicle);
    try { bot.dismount(); } catch (e) { console.log(e.message); }`);
  assert.strictEqual(error, null);
  assert.deepStrictEqual(logs, ['boat true', 'true true', 'off boat', 'null',
    'nothing is ridden (bot.mount first)']);
  scene.world.close();
});

test('a new program stops a walk: no goal, no key, the agent stands', async () => {
  const scene = await worldOf(1);
  const [bot] = scene.world.bots;
  const [sandbox] = scene.sandboxes;
  await scene.world.run(() => sandbox.start('await bot.pathfinder.goto(new GoalXZ(60, 60)); bot.chat("there");'));
  await go(scene, 15);
  assert.ok(bot.pathfinder.isMoving(), 'it does not walk yet');
  await scene.world.run(() => sandbox.start('await bot.waitForTicks(30);'));
  assert.strictEqual(bot.pathfinder.goal, null);
  assert.ok(Object.values(bot.controlState).every((on) => !on), JSON.stringify(bot.controlState));
  await go(scene, 10);
  const place = bot.entity.position.clone();
  await go(scene, 40);
  assert.ok(bot.entity.position.distanceTo(place) < 1e-9, 'it still moves');
  assert.strictEqual(sandbox.state().error, null);
  scene.world.close();
});

test('a new program stops a dig: the block stays', async () => {
  const scene = await worldOf(1);
  const [bot] = scene.world.bots;
  const [sandbox] = scene.sandboxes;
  await scene.world.run(() => sandbox.start('await bot.dig(bot.blockAt(bot.entity.position.offset(1, -1, 0)));'));
  await go(scene, 5);
  const cell = bot.targetDigBlock.position;
  await scene.world.run(() => sandbox.start('await bot.waitForTicks(60);'));
  assert.strictEqual(bot.targetDigBlock, null);
  await go(scene, 80);
  assert.strictEqual(bot.blockAt(cell).name, 'grass_block');
  assert.strictEqual(sandbox.state().error, null);
  scene.world.close();
});

test('a place that cannot be reached is an error with a reason', async () => {
  const scene = await worldOf(1);
  const { error } = await playIn(scene, 'await bot.pathfinder.goto(new GoalBlock(0, 120, 0), 10);', 200);
  assert.match(error.message, /no path|not done after 10 ticks/);
  scene.world.close();
});

test('two agents under load do the same twice', async () => {
  const run = async () => {
    const scene = await worldOf(2);
    const program = (away) => `
      for (let i = 0; i < 3; i++) {
        const { x, y, z } = bot.entity.position;
        await bot.pathfinder.goto(new GoalNear(x + ${away} * (1 + Math.random()), y, z + Math.random() * 4, 1));
        console.log(bot.entity.position, bot.currentTick);
      }`;
    await scene.world.run(() => Promise.all(scene.sandboxes.map((one, i) => one.start(program(i ? 4 : -4)))));
    await go(scene, 400);
    scene.world.close();
    return scene.sandboxes.map((sandbox) => sandbox.state());
  };
  const first = await run();
  assert.deepStrictEqual(await run(), first);
  assert.strictEqual(first[0].error, null);
});

test('what is behind a wall is not found when the wall blocks sight', async () => {
  const scene = await worldOf(1, []);
  const [bot] = scene.world.bots;
  const { x, y, z } = bot.entity.position.floored();
  for (const command of [`/setblock ${x + 6} ${y} ${z} diamond_ore`,
    ...[0, 1, 2].flatMap((up) => [-2, -1, 0, 1, 2].map((side) => `/setblock ${x + 4} ${y + up} ${z + side} stone`))]) {
    await scene.world.console(command);
  }
  await scene.world.step(3);
  const opaque = new Uint8Array(30000);
  opaque[bot.registry.blocksByName.stone.defaultState] = 1;
  scene.sandboxes[0].agent.senses = new Senses(bot, { sight_distance: 32, line_of_sight: true, hearing_distance: 0 }, opaque);
  const program = `console.log(bot.findBlock({ matching: 'diamond_ore', maxDistance: 32 })?.name, bot.findBlock({ matching: 'stone', maxDistance: 32 })?.name);`;
  assert.deepStrictEqual((await playIn(scene, program)).logs, ['undefined stone']);
  scene.sandboxes[0].agent.senses.limits.line_of_sight = false;
  assert.deepStrictEqual((await playIn(scene, program)).logs, ['diamond_ore stone']);
  scene.world.close();
});

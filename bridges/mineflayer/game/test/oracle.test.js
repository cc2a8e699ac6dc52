'use strict';
/** The programs of the oracles (../../oracle), in flat worlds. */
const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const { makeWorld } = require('../harness');
const { makeApi } = require('../sandbox/api');
const { Sandbox } = require('../sandbox/runtime');
const { Vec3 } = require('vec3');

/** A program without comments and some spaces, as ../../oracle.py sends it. */
const text = (name) => fs.readFileSync(path.join(__dirname, '..', '..', 'oracle', `${name}.js`), 'utf8')
  .split('\n').map((line) => line.trim()).filter((line) => !/^(\/\/|\/\*\*|\* |\*\/)/.test(line))
  .map((line) => `${line.replaceAll(' => ', '=>')}\n`).join('');

/** Plays a program until a test of its world holds; returns after how many ticks, else Infinity. */
async function play(program, ticks, prepare, isDone) {
  const world = await makeWorld({
    agents: 1, seed: 3, generator: 'flat', difficulty: 'peaceful', rules: { doMobSpawning: false }
  });
  const [bot] = world.bots;
  const sandbox = new Sandbox({ agent: { bot, now: () => world.ticks }, api: makeApi(), seed: 5 });
  await world.step(5);
  await prepare(world, bot.entity.position.floored());
  await world.step(5);
  await world.run(() => sandbox.start(program));
  let t = 0;
  for (; t < ticks && sandbox.running && !isDone(bot); t++) {
    world.run(() => sandbox.tick());
    await world.step(1);
  }
  const { error } = sandbox.state();
  const done = isDone(bot);
  world.close();
  assert.strictEqual(error, null);
  return done ? t : Infinity;
}

const gathering = (target) =>
  `const TARGET = '${target}';\nconst COUNT = 1;\n${text('walk')}${text('library')}${text('gather')}`;
const holds = (target) => (bot) => bot.inventory.items().some(({ name }) => name === target);

test('an agent without a pickaxe does not dig its way through rock where it can walk round', async () => {
  const ticks = await play(gathering('porkchop'), 1500, async (world, { x, y, z }) => {
    await world.console(`/fill ${x + 3} ${y} ${z - 6} ${x + 3} ${y + 3} ${z + 6} stone`);
    world.run(() => world.serv.survival.spawnMob('pig', new Vec3(x + 30.5, y, z + 0.5)));
  }, holds('porkchop'));
  assert.ok(ticks < 1500, `${ticks}`);
});

test('an agent finds what is far from where it began, in any direction', async () => {
  for (const [dx, dz] of [[70, 0], [-45, -60]]) {
    const ticks = await play(gathering('oak_log'), 4000, async (world, { x, y, z }) => {
      await world.console(`/setblock ${x + dx} ${y} ${z + dz} oak_log`);
    }, holds('oak_log'));
    assert.ok(ticks < 4000, `${dx} ${dz}: ${ticks}`);
  }
});

test('an agent builds higher than it reaches, of what it has', async () => {
  const plan = [0, 1, 2, 3, 4].map((y) => [0, y, 0, 'cobblestone']);
  let base = null;
  const ticks = await play(`const PLAN = ${JSON.stringify(plan)};\n${text('walk')}${text('build')}`, 2000,
    (world) => world.console('/give a0 cobblestone 5'), (bot) => {
      base ??= bot.findBlock({ matching: bot.registry.blocksByName.cobblestone.id, maxDistance: 16 })?.position ?? null;
      return base !== null && plan.every(([, y]) => bot.blockAt(base.offset(0, y, 0))?.name === 'cobblestone');
    });
  assert.ok(ticks < 2000, `${ticks}`);
});

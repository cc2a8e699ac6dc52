'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { makeWorld } = require('../harness');
const { inWorld, agree, count, events, at, seen, until } = require('./survival_help');

/** How many blocks of a kind are in a box around the spawn. */
function tally(w, test, size = 14, top = 14) {
  let found = 0;
  for (let y = 1; y < top; y++)
    for (let x = -size; x <= size; x++)
      for (let z = -size; z <= size; z++) if (test.test(at(w, x, y, z).name)) found++;
  return found;
}

/** Steps until no fire is left, and looks every second only: to look takes longer than to step. */
async function burnOut(w, limit) {
  for (let tick = 0; tick < limit; tick += 20) {
    await w.step(20);
    if (tally(w, /^fire$/) === 0) return;
  }
  assert.fail(`it burns after ${limit} ticks`);
}

const ignite = (w, x, y, z) => w.run(() => w.serv.survival.ignite(x, y, z));

test('a fire without fuel goes out by itself, and at once with the block under it', () =>
  inWorld({}, async (w, bot) => {
    assert.equal(ignite(w, 0, 4, 0), true);
    assert.equal(ignite(w, 0, 6, 0), false, 'not in the air');
    assert.equal(ignite(w, 0, 4, 0), false, 'not where it burns already');
    await w.step(1);
    assert.equal(seen(bot, 0, 4, 0).name, 'fire');
    await w.step(28);
    assert.equal(at(w, 0, 4, 0).name, 'fire');
    await until(w, () => at(w, 0, 4, 0).air, 2000);
    await w.step(40);
    assert.equal(w.serv.survival.fire.queue.size, 0);
    ignite(w, 3, 4, 0);
    await w.console('/setblock 3 3 0 air');
    assert.equal(at(w, 3, 4, 0).name, 'air');
    await w.console('/setblock 5 5 0 oak_planks');
    assert.equal(ignite(w, 5, 4, 0), true);
    await w.console('/setblock 6 7 0 oak_planks');
    assert.equal(ignite(w, 6, 6, 0), true, 'fuel above holds it');
    assert.deepEqual([at(w, 6, 6, 0).props.up, at(w, 6, 6, 0).props.north], [true, false]);
    await w.console('/setblock 6 7 0 air');
    assert.equal(at(w, 6, 6, 0).name, 'air');
  }));

test('it burns forever on netherrack, soul fire on soul sand, and stays with doFireTick off', () =>
  inWorld({}, async (w) => {
    await w.console('/setblock 0 3 0 netherrack');
    await w.console('/setblock 3 3 0 soul_sand');
    ignite(w, 0, 4, 0);
    ignite(w, 3, 4, 0);
    await w.console('/weather rain');
    await w.step(3000);
    assert.deepEqual([at(w, 0, 4, 0).name, at(w, 0, 4, 0).props.age], ['fire', 15]);
    assert.equal(at(w, 3, 4, 0).name, 'soul_fire');
    await w.console('/setblock 3 3 0 stone');
    assert.equal(at(w, 3, 4, 0).name, 'air');
    await w.console('/weather clear');
    await w.console('/gamerule doFireTick false');
    await w.console('/setblock -3 3 0 oak_planks');
    ignite(w, -3, 4, 0);
    ignite(w, -6, 4, 0);
    await w.step(1500);
    assert.deepEqual(
      [at(w, -3, 3, 0).name, at(w, -3, 4, 0).name, at(w, -6, 4, 0).name],
      ['oak_planks', 'fire', 'fire'],
    );
  }));

test('fire burns fuel up and spreads along it, not over what does not burn', () =>
  inWorld({ seed: 11 }, async (w) => {
    await w.console('/fill -6 4 -1 6 5 1 hay_block');
    await w.console('/fill -6 4 8 6 5 10 crimson_planks');
    for (let z = -1; z <= 1; z++) for (let x = -6; x <= -3; x++) ignite(w, x, 6, z);
    ignite(w, -6, 6, 8);
    await burnOut(w, 12000);
    assert.ok(tally(w, /hay_block/) < 20, `${tally(w, /hay_block/)} of 78 are left`);
    assert.equal(tally(w, /crimson_planks/), 78);
    assert.equal(w.serv.survival.drops.size, 0);
  }));

test('rain puts fires out, and so does water', () =>
  inWorld({ seed: 5 }, async (w) => {
    await w.console('/fill -4 4 -4 4 4 4 oak_log');
    for (let x = -4; x <= 4; x++) ignite(w, x, 5, 0);
    await w.console('/weather rain');
    await burnOut(w, 2000);
    assert.ok(tally(w, /oak_log/) > 70);
    await w.console('/weather clear');
    await w.console('/fill -4 4 -4 4 4 4 stone');
    for (let x = -4; x <= 4; x++) ignite(w, x, 5, 0);
    await w.console('/setblock 0 5 0 water');
    await w.step(25);
    assert.equal(tally(w, /^fire$/), 0);
    assert.equal(w.serv.survival.drops.size, 0);
  }));

test('lava sets fire to wood near it, to nothing else, also when the wood comes later', () =>
  inWorld({ seed: 2 }, async (w) => {
    const { fire } = w.serv.survival;
    await w.console('/gamerule randomTickSpeed 300');
    await w.console('/setblock 0 3 0 lava');
    await w.console('/fill 1 4 -1 1 4 1 stone');
    await w.step(600);
    assert.equal(tally(w, /^fire$/), 0);
    assert.equal(fire.hot.size, 1);
    await w.console('/fill -1 6 -1 1 6 1 oak_planks');
    await until(w, () => tally(w, /^fire$/) > 0, 3000);
    await w.console('/fill -14 3 -14 14 8 14 air');
    await w.step(400);
    assert.equal(fire.hot.size, 0);
    w.run(() => fire.hot.clear());
    await w.console('/setblock 5 3 5 lava');
    w.run(() => fire.hot.clear());
    await w.console('/setblock 6 4 5 chest');
    assert.equal(fire.hot.size, 1, 'fuel beside old lava wakes it');
    await w.console('/setblock 12 4 5 chest');
    assert.equal(fire.hot.size, 1);
  }));

test('flint and steel lights fires and wears; fire hurts those who stand in it', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/give a0 flint_and_steel');
    await w.step(1);
    await w.until(() => bot.activateBlock(seen(bot, 10, 3, 8)));
    await w.step(1);
    assert.equal(seen(bot, 10, 4, 8).name, 'fire');
    assert.equal(player.heldStack().durabilityUsed, 1);
    await w.console('/clear a0');
    await w.console('/give a0 fire_charge 2');
    await w.console('/setblock 8 3 10 soul_soil');
    await w.step(1);
    await w.until(() => bot.activateBlock(seen(bot, 8, 3, 10)));
    await w.step(1);
    assert.equal(seen(bot, 8, 4, 10).name, 'soul_fire');
    assert.equal(count(player, 'fire_charge'), 1);
    agree(bot, player);
    await w.console('/setblock 8 3 8 netherrack');
    ignite(w, 8, 4, 8);
    await w.step(15);
    assert.ok(player.health < 20 && player.fireTicks > 0);
    await w.console('/setblock 8 4 8 air');
    const blows = events(w, 'gamut:hurt');
    await w.console('/setblock 8 3 8 soul_sand');
    await w.console('/setblock 8 4 8 soul_fire');
    await w.step(25);
    assert.deepEqual([blows.at(-1).cause, blows.at(-1).amount], ['fire', 2], 'soul fire');
    await w.console('/setblock 8 4 8 air');
  }));

test('the tables are the game’s', () =>
  inWorld({}, async (w) => {
    const { fire, blocks } = w.serv.survival;
    const fuel = (name, props) => fire.fuel(blocks.state(name, props)).join();
    assert.deepEqual(
      ['oak_planks', 'stripped_birch_log', 'oak_leaves', 'bookshelf', 'tall_grass', 'red_carpet',
        'hay_block', 'vine', 'bamboo', 'target', 'dried_kelp_block', 'warped_planks', 'oak_door',
        'stone', 'crimson_stem'].map((name) => fuel(name)),
      ['5,20', '5,5', '30,60', '30,20', '60,100', '60,20', '60,20', '15,100', '60,60', '15,20',
        '30,60', '0,0', '0,0', '0,0', '0,0'],
    );
    assert.equal(fuel('oak_slab', { waterlogged: true }), '0,0');
    assert.equal(fuel('oak_slab'), '5,20');
    assert.equal(w.serv.survival.rules.doFireTick, true);
  }));

/** A wood that burns; `halfway` is called inside. Returns what was there every 20 ticks. */
async function blaze(seed, halfway) {
  const w = await makeWorld({ seed, generator: 'flat', rules: { doMobSpawning: false } });
  await w.console('/fill -5 5 -5 5 8 5 oak_leaves[persistent=true]');
  await w.console('/setblock 7 3 0 lava');
  await w.run(() => w.serv.survival.ignite(0, 4, 0));
  await w.step(200);
  await w.run(() => halfway(w));
  const shown = [];
  for (let i = 0; i < 40; i++) {
    await w.step(20);
    let states = '';
    for (let y = 3; y < 12; y++)
      for (let x = -7; x < 8; x++)
        for (let z = -7; z < 8; z++) states += `${w.serv.survival.blocks.stateAt(x, y, z)} `;
    shown.push(states);
  }
  w.close();
  return shown;
}

test('a fire burns the same from the same seed, also from its saved state', async () => {
  const plain = await blaze(3, () => {});
  const saved = await blaze(3, (w) => {
    for (const name of ['core', 'fluids', 'fire']) {
      const plugin = w.serv.gamut.mechanics.find((each) => each.name === name);
      const data = JSON.parse(JSON.stringify(plugin.save(w.serv)));
      plugin.load(w.serv, null);
      plugin.load(w.serv, data);
    }
  });
  assert.deepEqual(saved, plain);
  assert.notDeepEqual(await blaze(4, () => {}), plain);
});

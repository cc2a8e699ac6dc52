'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, agree, count, events, until, seen, at, Vec3 } = require('./survival_help');

const UP = new Vec3(0, 1, 0);
const age = (w, x, y, z) => at(w, x, y, z).props.age;

test('a hoe tills, seeds can be placed on farmland only, bone meal speeds up growth, the crop is harvested', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/give a0 wooden_hoe');
    await w.step(1);
    await w.until(() => bot.activateBlock(seen(bot, 10, 3, 8)));
    await w.step(1);
    assert.equal(seen(bot, 10, 3, 8).name, 'farmland');
    assert.equal(player.heldStack().durabilityUsed, 1);
    await w.console('/clear a0');
    await w.console('/give a0 wheat_seeds 3');
    await w.step(1);
    await assert.rejects(
      w.until(() => bot.placeBlock(seen(bot, 11, 3, 8), UP)),
      /refused/,
    );
    await w.until(() => bot.placeBlock(seen(bot, 10, 3, 8), UP));
    assert.equal(at(w, 10, 4, 8).name, 'wheat');
    assert.equal(count(player, 'wheat_seeds'), 2);
    await w.console('/clear a0');
    await w.console('/give a0 bone_meal 10');
    await w.step(1);
    for (let i = 0; i < 4 && age(w, 10, 4, 8) < 7; i++) {
      const before = age(w, 10, 4, 8);
      await w.until(() => bot.activateBlock(seen(bot, 10, 4, 8)));
      await w.step(1);
      const grown = age(w, 10, 4, 8) - before;
      assert.ok(age(w, 10, 4, 8) === 7 || (grown >= 2 && grown <= 5), `grew by ${grown}`);
    }
    assert.equal(age(w, 10, 4, 8), 7);
    const left = count(player, 'bone_meal');
    assert.ok(left >= 6 && left <= 8);
    await w.until(() => bot.activateBlock(seen(bot, 10, 4, 8)));
    await w.step(1);
    assert.equal(count(player, 'bone_meal'), left, 'a ripe crop takes none');
    await w.until(() => bot.dig(seen(bot, 10, 4, 8), true));
    await w.step(5);
    assert.ok(
      [...w.serv.survival.drops.values()].some((e) => e.stack.name === 'wheat') ||
        count(player, 'wheat') === 1,
    );
  }));

test('crops grow by themselves, wet rows faster; farmland is wetted, dries and is trampled', () =>
  inWorld({ seed: 3 }, async (w, bot, player) => {
    const { survival } = w.serv;
    await w.console('/fill 12 3 4 14 3 12 farmland');
    await w.console('/fill 15 3 4 15 3 12 water');
    await w.console('/fill 12 4 4 14 4 12 wheat');
    await w.console('/fill 0 3 0 0 3 8 farmland');
    await w.step(1);
    assert.equal(survival.growth.growing.size, 27 + 27 + 9);
    await w.step(6000);
    assert.equal(at(w, 13, 3, 8).props.moisture, 7);
    let sum = 0;
    for (let x = 12; x <= 14; x++) for (let z = 4; z <= 12; z++) sum += age(w, x, 4, z);
    assert.ok(sum > 10 && sum < 27 * 7, `together ${sum} in 5 minutes`);
    assert.equal(seen(bot, 13, 4, 8).getProperties().age, age(w, 13, 4, 8));
    assert.equal(at(w, 0, 3, 4).name, 'dirt', 'dry land without crops turns to dirt');
    await w.console('/setblock 8 3 8 farmland');
    await w.console('/tp a0 8.5 8 8.5');
    await w.step(40);
    assert.equal(at(w, 8, 3, 8).name, 'dirt');
    assert.ok(player.health < 20);
  }));

test('saplings become trees, canes and cacti three high, leaves wither without their log', () =>
  inWorld({ seed: 5 }, async (w, bot, player) => {
    await w.console('/gamerule randomTickSpeed 300');
    await w.console('/setblock 12 4 12 oak_sapling');
    await w.console('/setblock 4 3 4 sand');
    await w.console('/setblock 4 4 4 cactus');
    await w.console('/setblock 3 3 12 water');
    await w.console('/setblock 4 4 12 sugar_cane');
    await until(w, () => at(w, 12, 4, 12).name === 'oak_log', 3000);
    assert.equal(at(w, 12, 7, 12).name, 'oak_log');
    assert.ok(at(w, 12, 7, 13).name === 'oak_leaves' || at(w, 12, 8, 13).name === 'oak_leaves');
    await until(
      w,
      () => at(w, 4, 6, 4).name === 'cactus' && at(w, 4, 6, 12).name === 'sugar_cane',
      3000,
    );
    await w.step(500);
    assert.equal(at(w, 4, 7, 4).name, 'air');
    assert.equal(at(w, 4, 7, 12).name, 'air');
    await w.console('/setblock 4 4 12 air');
    await w.step(2);
    assert.equal(at(w, 4, 6, 12).name, 'air', 'canes fall with their root');
    await w.console('/fill 12 4 12 12 13 12 air');
    await w.step(1000);
    for (let y = 5; y < 14; y++) {
      for (let x = 8; x <= 16; x++)
        for (let z = 8; z <= 16; z++) assert.ok(!at(w, x, y, z).name.endsWith('_leaves'));
    }
    agree(bot, player);
  }));

test('what grows in a chunk of the generator grows too', async () => {
  const { makeWorld } = require('../harness');
  (await makeWorld({})).close(); // from then on all worlds share the tables of the version
  const registry = require('prismarine-registry')('1.16.5');
  const Column = require('prismarine-chunk')(registry);
  const state = (name) => registry.blocksByName[name].defaultState;
  const generator = () => {
    const column = new Column();
    for (let x = 0; x < 16; x++)
      for (let z = 0; z < 16; z++) column.setBlockStateId({ x, y: 3, z }, state('stone'));
    column.setBlockStateId({ x: 2, y: 3, z: 2 }, state('farmland'));
    column.setBlockStateId({ x: 2, y: 4, z: 2 }, state('wheat'));
    return column;
  };
  await inWorld({ generator, viewDistance: 2 }, async (w) => {
    const columns = Object.keys(w.serv.overworld.columns).length;
    assert.equal(w.serv.survival.growth.growing.size, 2 * columns);
  });
});

test('sheep are shorn once, cows milked, buckets fill and pour, logs are stripped', () =>
  inWorld({}, async (w, bot, player) => {
    const { x, z } = player.position;
    const sheared = events(w, 'gamut:sheared');
    await w.console('/give a0 shears');
    await w.console(`/summon sheep ${x} 4 ${z - 2}`);
    await w.step(3);
    const sheep = Object.values(w.serv.entities).find((e) => e.name === 'sheep');
    const reach = async () => {
      w.run(() => {
        sheep.ownPhysics = true;
        sheep.position = new Vec3(x, 4, z - 2);
      });
      await w.step(1);
      await w.until(() => bot.useOn(bot.entities[sheep.id]));
      await w.step(1);
    };
    await reach();
    await reach();
    assert.equal(sheared.length, 1);
    assert.equal(bot.entities[sheep.id].metadata[16] & 16, 16);
    assert.equal(player.heldStack().durabilityUsed, 1);
    await w.step(60);
    const wool =
      count(player, 'white_wool') +
      [...w.serv.survival.drops.values()].reduce((n, e) => n + e.stack.count, 0);
    assert.equal(wool, sheared[0].count);
    await w.console('/clear a0');
    await w.console('/give a0 bucket 2');
    await w.console(`/summon cow ${x} 4 ${z + 2}`);
    await w.step(3);
    const cow = Object.values(w.serv.entities).find((e) => e.name === 'cow');
    await w.until(() => bot.useOn(bot.entities[cow.id]));
    await w.step(1);
    assert.deepEqual([count(player, 'bucket'), count(player, 'milk_bucket')], [1, 1]);
    await w.console('/setblock 10 3 8 water');
    await w.until(() => bot.lookAt(new Vec3(10.5, 3.9, 8.5), true));
    await w.step(2);
    w.run(() => bot.activateItem());
    await w.step(1);
    assert.deepEqual([at(w, 10, 3, 8).name, count(player, 'water_bucket')], ['air', 1]);
    w.run(() => bot.activateItem());
    await w.step(1);
    assert.equal(count(player, 'bucket'), 1);
    assert.equal(seen(bot, 10, 3, 8).name, 'water');
    agree(bot, player);
    await w.console('/clear a0');
    await w.console('/give a0 stone_axe');
    await w.console('/setblock 8 4 6 birch_log[axis=x]');
    await w.step(1);
    await w.until(() => bot.activateBlock(seen(bot, 8, 4, 6)));
    await w.step(1);
    assert.deepEqual([at(w, 8, 4, 6).name, at(w, 8, 4, 6).props.axis], ['stripped_birch_log', 'x']);
  }));

test('cake feeds seven times, berries are picked', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/setblock 10 4 8 cake');
    w.run(() => player.updateFood(1));
    for (let i = 0; i < 7; i++) {
      await w.until(() => bot.activateBlock(seen(bot, 10, 4, 8)));
      await w.step(1);
    }
    assert.equal(player.food, 15);
    assert.equal(at(w, 10, 4, 8).name, 'air');
    await w.console('/setblock 10 4 8 sweet_berry_bush[age=3]');
    await w.until(() => bot.activateBlock(seen(bot, 10, 4, 8)));
    await w.step(1);
    assert.equal(age(w, 10, 4, 8), 1);
    const lying = [...w.serv.survival.drops.values()].map((e) => e.stack);
    assert.ok(lying.length === 1 && lying[0].name === 'sweet_berries' && lying[0].count >= 2);
  }));

'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, agree, events, until, count, Vec3 } = require('./survival_help');
const { mobs, summon, calm } = require('./mobs_help');

const id = (w, name) => w.serv.registry.itemsByName[name].id;

/** Makes a lake, and lets the agent hold a rod and look at it. */
async function atLake(w, bot) {
  await w.console('/fill 0 1 10 16 3 24 water');
  await w.console('/give a0 fishing_rod');
  await w.until(() => bot.equip(id(w, 'fishing_rod'), 'hand'));
  await w.until(() => bot.lookAt(new Vec3(8.5, 4, 15.5), true));
  await w.step(1);
}

test('mineflayer: a fish is caught, comes flying, and is collected', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    await atLake(w, bot);
    const got = events(w, 'gamut:fished');
    const collected = [];
    w.run(() => bot.on('playerCollect', (who, what) => collected.push(what.name)));
    const began = w.ticks;
    await w.until(() => bot.fish(), 800);
    const took = w.ticks - began;
    assert.ok(took > 120 && took < 750, `${took} ticks`);
    await until(w, () => collected.length > 0, 60);
    assert.equal(got.length, 1);
    assert.deepEqual(collected, ['item']);
    assert.equal(count(player, got[0].item), got[0].count + (got[0].item === 'fishing_rod' ? 1 : 0));
    assert.ok(player.experience.points >= 1 && player.experience.points <= 6);
    assert.equal(player.inventory.slots[36].durabilityUsed, 1);
    assert.equal(player.bobber, null);
    agree(bot, player);
  }));

test('a line that is reeled in too soon catches nothing, and tears when its owner walks off', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    await atLake(w, bot);
    const got = events(w, 'gamut:fished');
    w.run(() => bot.activateItem());
    await w.step(40);
    const { bobber } = player;
    assert.ok(Math.abs(bobber.position.y - 3.9) < 0.2, `it floats at ${bobber.position.y}`);
    assert.equal(bot.entities[bobber.id].name, 'fishing_bobber');
    w.run(() => bot.activateItem());
    await w.step(2);
    assert.deepEqual([player.bobber, got.length], [null, 0]);
    w.run(() => bot.activateItem());
    await w.step(20);
    await w.console('/tp a0 50.5 4 50.5');
    await w.step(2);
    assert.equal(player.bobber, null);
  }));

test('what is caught is fish, junk and treasure in the shares of the game', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    await atLake(w, bot);
    const table = require('../survival/fishing.json');
    const kinds = { fish: 0, treasure: 0, junk: 0 };
    w.run(() => bot.activateItem());
    await w.step(40);
    player.setXpPoints(0);
    w.serv.on('gamut:fished', ({ item }) => {
      const kind = Object.keys(kinds).find((each) => table[each].rows.some(([name]) => name === item));
      kinds[kind]++;
    });
    for (let i = 0; i < 400; i++) {
      player.bobber.bites = 5;
      w.run(() => bot.activateItem());
      await w.step(1);
      player.setSlot(36, w.serv.survival.items.make('fishing_rod'));
      await w.console('/clear a0 cod');
      w.run(() => bot.activateItem());
      await w.step(12);
    }
    const total = kinds.fish + kinds.treasure + kinds.junk;
    assert.ok(total > 380, `${total}`);
    assert.ok(kinds.fish / total > 0.78 && kinds.fish / total < 0.92, JSON.stringify(kinds));
    assert.ok(kinds.treasure > 5 && kinds.treasure < 45, JSON.stringify(kinds));
  }));

test('a line hooks a creature and pulls it', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    await w.console('/give a0 fishing_rod');
    await w.until(() => bot.equip(id(w, 'fishing_rod'), 'hand'));
    const cow = summon(w, 'cow', [8.5, 4, 14.5]);
    await w.until(() => bot.lookAt(new Vec3(8.5, 5.6, 14.5), true));
    await w.step(1);
    w.run(() => bot.activateItem());
    await until(w, () => player.bobber?.hooked === cow, 40);
    const { z } = cow.position;
    w.run(() => bot.activateItem());
    await w.step(8);
    assert.ok(cow.position.z < z - 0.5, `from ${z} to ${cow.position.z}`);
    assert.ok(mobs(w, 'cow').length === 1);
    assert.equal(player.inventory.slots[36].durabilityUsed, 5);
  }));

test('eggs hatch chicks, snowballs push, bottles give experience', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    for (const item of ['egg', 'snowball', 'experience_bottle']) await w.console(`/give a0 ${item} 16`);
    await w.until(() => bot.lookAt(new Vec3(8.5, 4, 14.5), true));
    await w.until(() => bot.equip(id(w, 'egg'), 'hand'));
    for (let i = 0; i < 16; i++) {
      w.run(() => bot.activateItem());
      await w.step(4);
    }
    await w.step(20);
    assert.equal(count(player, 'egg'), 0);
    const chicks = mobs(w, 'chicken');
    assert.ok(chicks.length > 0 && chicks.length < 10 && chicks.every(({ baby }) => baby), `${chicks.length}`);
    const cow = summon(w, 'cow', [8.5, 4, 14.5]);
    const { z } = cow.position;
    await w.until(() => bot.equip(id(w, 'snowball'), 'hand'));
    await w.until(() => bot.lookAt(cow.position.offset(0, 1.4, 0), true));
    await w.step(1);
    w.run(() => bot.activateItem());
    await w.step(15);
    assert.ok(cow.position.z > z + 0.2, 'pushed away');
    assert.equal(cow.health, 10, 'and not hurt');
    await w.until(() => bot.equip(id(w, 'experience_bottle'), 'hand'));
    w.run(() => bot.activateItem());
    await w.step(40);
    assert.ok(player.experience.points >= 3 && player.experience.points <= 11);
  }));

test('an ender pearl takes its thrower along, hurts, and needs a second', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    await w.console('/give a0 ender_pearl 3');
    await w.until(() => bot.equip(id(w, 'ender_pearl'), 'hand'));
    await w.until(() => bot.look(0, 0, true));
    await w.step(1);
    const from = player.position.clone();
    w.run(() => bot.activateItem());
    await w.step(2);
    w.run(() => bot.activateItem());
    await w.step(50);
    assert.equal(count(player, 'ender_pearl'), 2);
    assert.ok(player.position.distanceTo(from) > 10, `${player.position}`);
    assert.ok(bot.entity.position.distanceTo(player.position) < 0.01);
    assert.equal(player.health, 15);
  }));

test('a bucket of water takes in a fish and lets it out', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    await w.console('/fill 7 3 10 10 3 12 water');
    await w.console('/give a0 water_bucket');
    await w.until(() => bot.equip(id(w, 'water_bucket'), 'hand'));
    summon(w, 'cod', [8.5, 3.2, 10.5]);
    await w.step(2);
    w.run(() => bot.useOn(bot.nearestEntity(({ name }) => name === 'cod')));
    await w.step(2);
    assert.deepEqual([mobs(w, 'cod').length, count(player, 'cod_bucket')], [0, 1]);
    await w.console('/setblock 8 4 10 air');
    await w.until(() => bot.lookAt(new Vec3(8.5, 4, 9.5), true));
    await w.step(1);
    w.run(() => bot.activateItem());
    await w.step(2);
    assert.deepEqual([mobs(w, 'cod').length, count(player, 'bucket')], [1, 1]);
  }));

test('a trident is thrown, hits for 8, and is picked up; a loyal one comes back', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    await w.console('/give a0 trident');
    await w.until(() => bot.equip(id(w, 'trident'), 'hand'));
    const cow = summon(w, 'cow', [8.5, 4, 14.5], { NoAI: 1 });
    const hurl = async () => {
      await w.until(() => bot.lookAt(new Vec3(8.5, 5.2, 14.5), true));
      await w.step(1);
      w.run(() => bot.activateItem());
      await w.step(12);
      w.run(() => bot.deactivateItem());
      await w.step(1);
    };
    await hurl();
    assert.equal(count(player, 'trident'), 0, 'it has left the hand');
    await until(w, () => cow.health === 2, 20);
    await w.step(20);
    assert.equal(bot.nearestEntity(({ name }) => name === 'trident').name, 'trident');
    await w.console('/tp a0 8.5 4 13.5');
    await until(w, () => count(player, 'trident') === 1, 60);
    assert.equal(player.inventory.slots[36].durabilityUsed, 1);
    await w.console('/tp a0 8.5 4 8.5');
    await w.console('/enchant a0 loyalty 3');
    await w.step(5);
    await hurl();
    await until(w, () => count(player, 'trident') === 1, 60);
    agree(bot, player);
  }));

'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, agree, at, count, events, seen, until, Vec3 } = require('./survival_help');
const { brewed, EFFECTS } = require('../survival/brewing');

const [X, Y, Z] = [10, 4, 8];
const own = (window, name) => window.items().find((item) => item.name === name);
const kind = (item) => item && `${item.name} ${item.nbt.value.Potion.value.replace('minecraft:', '')}`;
const bottle = (w, potion, name = 'potion') =>
  w.serv.survival.items.make(name, 1, {
    type: 'compound', name: '', value: { Potion: { type: 'string', value: `minecraft:${potion}` } },
  });
const level = (w, entity, name) => {
  const found = entity.effects[w.serv.registry.effectsByName[name].id];
  return found ? [found.amplifier, found.duration] : null;
};

test('a stand brews water to awkward potions and these to healing, with blaze powder', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console(`/setblock ${X} ${Y} ${Z} brewing_stand`);
    for (const thing of ['nether_wart', 'glistering_melon_slice', 'blaze_powder', 'dirt']) await w.console(`/give a0 ${thing}`);
    w.run(() => [1, 2].forEach(() => player.give(bottle(w, 'water'))));
    await w.step(2);
    const done = events(w, 'gamut:brewed');
    const stand = await w.until(() => bot.openBlock(seen(bot, X, Y, Z)));
    assert.equal(stand.type, 'minecraft:brewing_stand');
    await assert.rejects(w.until(() => bot.moveSlotItem(own(stand, 'dirt').slot, 3)), /rejected/);
    await w.until(() => stand.close());
    await w.step(2);
    const again = await w.until(() => bot.openBlock(seen(bot, X, Y, Z)));
    for (const [name, slot] of [['potion', 0], ['potion', 2], ['blaze_powder', 4], ['nether_wart', 3]])
      await w.until(() => bot.moveSlotItem(own(again, name).slot, slot));
    await w.step(2);
    assert.deepEqual(at(w, X, Y, Z).props, { has_bottle_0: true, has_bottle_1: false, has_bottle_2: true });
    await w.step(395);
    assert.equal(done.length, 0);
    await until(w, () => done.length === 1, 10);
    await w.step(2);
    assert.deepEqual([kind(again.slots[0]), kind(again.slots[2]), again.slots[3]], ['potion awkward', 'potion awkward', null]);
    await w.until(() => bot.moveSlotItem(own(again, 'glistering_melon_slice').slot, 3));
    await w.until(() => again.close());
    await until(w, () => done.length === 2, 410);
    assert.deepEqual(done[1].potions, ['healing', 'healing']);
    agree(bot, player);
  }));

test('taking the ingredient out stops the brewing, and breaking the stand drops what is in it', () =>
  inWorld({}, async (w) => {
    await w.console(`/setblock ${X} ${Y} ${Z} brewing_stand`);
    const { survival } = w.serv;
    const put = (index, item) => w.run(() => {
      survival.setContainerSlot(survival.container(X, Y, Z), index, item);
      survival.stands.add(survival.container(X, Y, Z));
    });
    put(0, bottle(w, 'water'));
    put(3, survival.items.make('nether_wart'));
    put(4, survival.items.make('blaze_powder'));
    await w.step(100);
    put(3, null);
    await w.step(2);
    assert.equal(survival.stands.size, 0);
    put(3, survival.items.make('nether_wart'));
    await w.step(390);
    assert.equal(kind(survival.container(X, Y, Z).slots[0]), 'potion water');
    w.run(() => survival.blocks.setNamed(X, Y, Z, 'air'));
    await w.step(1);
    assert.deepEqual([...survival.drops.values()].map(({ stack }) => stack.name).sort(), ['nether_wart', 'potion']);
  }));

test('a bottle is filled from water; a potion is drunk, has its effect, and leaves the bottle', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console(`/setblock ${X} ${Y} ${Z} water`);
    await w.console('/give a0 glass_bottle 2');
    await w.step(2);
    await w.until(() => bot.lookAt(new Vec3(X + 0.5, Y + 0.5, Z + 0.5), true));
    await w.step(2);
    w.run(() => bot.activateItem());
    await w.step(2);
    assert.deepEqual([count(player, 'glass_bottle'), count(player, 'potion')], [1, 1]);
    w.run(() => {
      player.clearInventory();
      player.setSlot(36, bottle(w, 'long_swiftness'));
    });
    await w.step(2);
    await w.until(() => bot.consume());
    await w.step(1);
    assert.deepEqual(level(w, player, 'Speed')?.[0], 0);
    assert.ok(level(w, player, 'Speed')[1] > 9500);
    assert.equal(count(player, 'glass_bottle'), 1);
    agree(bot, player);
  }));

test('a splash potion breaks where it is thrown: nearer means longer, and the undead are healed by harm', () =>
  inWorld({}, async (w, bot, player) => {
    const spawn = (name, x, z) => {
      const mob = w.run(() => w.serv.survival.spawnMob(name, new Vec3(x, 4, z)));
      mob.ai = null;
      return mob;
    };
    const [near, far, dead] = [spawn('cow', 8.5, 4.5), spawn('cow', 10.8, 4.5), spawn('husk', 7.5, 4.5)];
    await w.step(2);
    const toss = async (potion) => {
      w.run(() => player.setSlot(36, bottle(w, potion, 'splash_potion')));
      await w.until(() => bot.lookAt(near.position.offset(0, 0.3, 0), true));
      await w.step(2);
      w.run(() => bot.activateItem());
      await until(w, () => w.serv.survival.mobs.missiles.flying.size === 1, 5);
      await until(w, () => w.serv.survival.mobs.missiles.flying.size === 0, 60);
      await w.step(1);
    };
    await toss('poison');
    assert.ok(level(w, near, 'Poison')[1] > level(w, far, 'Poison')[1]);
    assert.equal(count(player, 'splash_potion'), 0);
    const before = [near.health, dead.health];
    dead.health = 10;
    await toss('harming');
    assert.ok(near.health < before[0], `${near.health}`);
    assert.ok(dead.health > 10, `${dead.health}`);
  }));

test('every potion that is brewed exists, and can be made from water', () =>
  inWorld({}, async (w) => {
    const ingredients = ['nether_wart', 'redstone', 'glowstone_dust', 'fermented_spider_eye', 'sugar', 'rabbit_foot',
      'glistering_melon_slice', 'spider_eye', 'magma_cream', 'blaze_powder', 'ghast_tear', 'golden_carrot',
      'turtle_helmet', 'pufferfish', 'phantom_membrane'];
    const known = new Set(['water']);
    for (const potion of known) {
      for (const by of ingredients) {
        const result = brewed(bottle(w, potion), by);
        if (result) known.add(result[1]);
      }
    }
    assert.deepEqual([...known].sort(), Object.keys(EFFECTS).filter((each) => each !== 'luck').sort());
    for (const name of Object.values(EFFECTS).flat().map(([effect]) => effect)) assert.ok(w.serv.registry.effectsByName[name], name);
    assert.deepEqual(brewed(bottle(w, 'poison'), 'gunpowder'), ['splash_potion', 'poison']);
  }));

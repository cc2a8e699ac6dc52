'use strict';

/** Stonecutters, looms, hoppers, droppers and dispensers. */

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, agree, at, count, seen, until, words, Vec3 } = require('./survival_help');
const { stones, banners } = require('../survival/cuts.json');

const [X, Y, Z] = [10, 4, 8];
const own = (window, name) => window.items().find((item) => item.name === name);
const id = (w, name) => w.serv.registry.itemsByName[name].id;
const press = (w, bot, button) =>
  w.run(() => bot._client.write('enchant_item', { windowId: bot.currentWindow.id, enchantment: button }));
const inside = (w, x, y, z) => w.serv.survival.container(x, y, z).slots.map(words).filter((each) => each !== '-').join(', ');
const put = (w, [x, y, z], items) => w.run(() => w.serv.survival.fillContainer(x, y, z, items));
const set = (w, [x, y, z], name, props) => w.run(() => w.serv.survival.blocks.setNamed(x, y, z, name, props));

test('a stonecutter makes what its button says', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console(`/setblock ${X} ${Y} ${Z} stonecutter`);
    await w.console('/give a0 stone 3');
    await w.step(2);
    const window = await w.until(() => bot.openBlock(seen(bot, X, Y, Z)));
    await w.until(() => bot.moveSlotItem(own(window, 'stone').slot, 0));
    assert.equal(window.slots[1], null);
    press(w, bot, 0);
    await w.step(2);
    assert.equal(words(window.slots[1]), 'stone_slab x2');
    press(w, bot, 2);
    await w.step(2);
    await w.until(() => bot.putAway(1));
    await w.step(1);
    assert.equal(words(window.slots[0]), 'stone x2');
    await w.until(() => window.close());
    await w.step(2);
    assert.deepEqual([count(player, 'stone'), count(player, 'stone_bricks')], [2, 1]);
    agree(bot, player);
  }));

test('a loom puts patterns on a banner, six at most', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console(`/setblock ${X} ${Y} ${Z} loom`);
    await w.console('/give a0 white_banner');
    await w.console('/give a0 red_dye 9');
    await w.step(2);
    const window = await w.until(() => bot.openBlock(seen(bot, X, Y, Z)));
    await w.until(() => bot.moveSlotItem(own(window, 'red_dye').slot, 1));
    for (let i = 1; i <= 6; i++) {
      await w.until(() => bot.moveSlotItem(own(window, 'white_banner').slot, 0));
      press(w, bot, i);
      await w.step(2);
      await w.until(() => bot.putAway(3));
      await w.step(1);
    }
    const rows = own(window, 'white_banner').nbt.value.BlockEntityTag.value.Patterns.value.value;
    assert.deepEqual(rows.map(({ Pattern, Color }) => `${Pattern.value} ${Color.value}`),
      banners.buttons.slice(0, 6).map((code) => `${code} 14`));
    await w.until(() => bot.moveSlotItem(own(window, 'white_banner').slot, 0));
    await w.step(1);
    assert.equal(window.slots[3], null);
    assert.equal(words(window.slots[1]), 'red_dye x3');
    await w.until(() => window.close());
    await w.step(2);
    agree(bot, player);
  }));

test('a hopper takes from above, gives on, and feeds a furnace by its doors', () =>
  inWorld({}, async (w) => {
    set(w, [X, Y, Z], 'furnace');
    set(w, [X, Y + 1, Z], 'hopper', { facing: 'down' });
    set(w, [X, Y + 2, Z], 'chest');
    set(w, [X + 1, Y, Z], 'hopper', { facing: 'west' });
    put(w, [X, Y + 2, Z], [{ name: 'sand', count: 2 }]);
    put(w, [X + 1, Y, Z], [{ name: 'coal', count: 1 }, { name: 'dirt', count: 1 }]);
    await w.step(20);
    assert.equal(inside(w, X + 1, Y, Z), 'dirt x1');
    assert.ok(at(w, X, Y, Z).props.lit);
    await w.step(420);
    assert.equal(inside(w, X, Y, Z), 'glass x2');
    set(w, [X, Y - 1, Z], 'hopper', { facing: 'down' });
    await w.step(40);
    assert.equal(inside(w, X, Y - 1, Z), 'glass x2');
  }));

test('a hopper puts only ingredients into a brewing stand, and no box into a box', () =>
  inWorld({}, async (w) => {
    set(w, [X, Y, Z], 'brewing_stand');
    set(w, [X, Y + 1, Z], 'hopper', { facing: 'down' });
    put(w, [X, Y + 1, Z], [{ name: 'dirt', count: 1 }, { name: 'nether_wart', count: 1 }]);
    set(w, [X + 2, Y, Z], 'shulker_box');
    set(w, [X + 2, Y + 1, Z], 'hopper', { facing: 'down' });
    put(w, [X + 2, Y + 1, Z], [{ name: 'red_shulker_box', count: 1 }, { name: 'apple', count: 1 }]);
    await w.step(40);
    const held = [[X, Y, Z], [X, Y + 1, Z], [X + 2, Y, Z], [X + 2, Y + 1, Z]].map((cell) => inside(w, ...cell));
    assert.deepEqual(held, ['nether_wart x1', 'dirt x1', 'apple x1', 'red_shulker_box x1']);
  }));

test('a hopper moves an item in 8 ticks and picks up what lies on it', () =>
  inWorld({}, async (w) => {
    set(w, [X, Y, Z], 'hopper', { facing: 'east' });
    set(w, [X + 1, Y, Z], 'barrel');
    w.run(() => w.serv.survival.drop(new Vec3(X + 0.5, Y + 1, Z + 0.5), w.serv.survival.items.make('apple', 5)));
    await until(w, () => inside(w, X + 1, Y, Z) === 'apple x1', 30);
    await w.step(8);
    assert.equal(inside(w, X + 1, Y, Z), 'apple x2');
    await until(w, () => inside(w, X + 1, Y, Z) === 'apple x5', 40);
    assert.equal(w.serv.survival.drops.size, 0);
  }));

test('a button makes a dropper give into a chest and a dispenser shoot', () =>
  inWorld({}, async (w, bot) => {
    const { survival } = w.serv;
    set(w, [X, Y, Z], 'dropper', { facing: 'east' });
    set(w, [X + 1, Y, Z], 'chest');
    set(w, [X, Y + 1, Z], 'stone_button', { face: 'floor' });
    put(w, [X, Y, Z], [{ name: 'stick', count: 2 }]);
    await w.step(2);
    await w.until(() => bot.activateBlock(seen(bot, X, Y + 1, Z)));
    await w.step(5);
    assert.deepEqual([inside(w, X, Y, Z), inside(w, X + 1, Y, Z)], ['stick x1', 'stick x1']);
    set(w, [X, Y, Z], 'dispenser', { facing: 'up' });
    put(w, [X, Y, Z], [{ name: 'arrow', count: 1 }]);
    w.run(() => survival.dispense(X, Y, Z));
    assert.equal(survival.arrows.size, 1);
    put(w, [X, Y, Z], [{ name: 'water_bucket', count: 1 }]);
    set(w, [X, Y + 1, Z], 'air');
    w.run(() => survival.dispense(X, Y, Z));
    assert.equal(inside(w, X, Y, Z), 'bucket x1');
    assert.ok(at(w, X, Y + 1, Z).water);
    const window = await w.until(() => bot.openContainer(seen(bot, X, Y, Z)));
    assert.equal(window.type, 'minecraft:generic_3x3');
  }));

test('what stonecutters make exists', () =>
  inWorld({}, async (w) => {
    for (const [block, outs] of Object.entries(stones)) {
      for (const each of [block, ...outs]) assert.ok(id(w, each.replace('2 ', '')) > 0, each);
    }
  }));

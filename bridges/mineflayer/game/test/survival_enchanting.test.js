'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, agree, at, count, events, seen, until } = require('./survival_help');

const [X, Y, Z] = [10, 4, 8];
const own = (window, name) => window.items().find((item) => item.name === name);
const named = (item) => JSON.parse(item.customName).text;
const enchantsOf = (item) => item.enchants.map(({ name, lvl }) => `${name} ${lvl}`);

/** Puts a block in front of the bot, and gives it things and levels. */
async function set(w, bot, block, things, levels = 0) {
  await w.console(`/setblock ${X} ${Y} ${Z} ${block}`);
  for (const thing of things) await w.console(`/give a0 ${thing}`);
  await w.console(`/xp set a0 ${levels} levels`);
  await w.step(2);
  return seen(bot, X, Y, Z);
}
const make = (w, name, enchants = {}, worn = 0, n = 1) => {
  const item = w.serv.survival.items.make(name, n);
  item.enchants = Object.entries(enchants).map(([each, lvl]) => ({ name: each, lvl }));
  if (worn) item.durabilityUsed = worn;
  return item;
};
const put = (w, player, ...items) => w.run(() => items.forEach((item) => player.give(item)));

test('a table enchants for levels and lapis; shelves make its offers dearer', () =>
  inWorld({}, async (w, bot, player) => {
    const block = await set(w, bot, 'enchanting_table', ['diamond_sword', 'lapis_lazuli 10'], 30);
    const done = events(w, 'gamut:enchanted');
    const offers = async () => {
      const table = await w.until(() => bot.openEnchantmentTable(block));
      await w.until(() => table.putTargetItem(own(table, 'diamond_sword')));
      await w.step(2);
      return [table, table.enchantments.map(({ level }) => level)];
    };
    const [bare, plain] = await offers();
    assert.ok(plain.every((level) => level <= 8), `${plain}`);
    await w.until(() => bare.close());
    for (const [dx, dz] of [[2, 0], [2, 1], [2, -1], [-2, 0], [-2, 1], [-2, -1], [0, 2], [0, -2]]) {
      for (const dy of [0, 1]) await w.console(`/setblock ${X + dx} ${Y + dy} ${Z + dz} bookshelf`);
    }
    await w.step(2);
    const [table, dear] = await offers();
    assert.equal(dear[2], 30);
    await w.until(() => table.putLapis(own(table, 'lapis_lazuli')));
    await w.step(1);
    const told = { ...table.enchantments[2].expected };
    const sword = await w.until(() => table.enchant(2));
    const first = w.serv.registry.enchantments[told.enchant];
    assert.ok(enchantsOf(sword).includes(`${first.name} ${told.level}`), enchantsOf(sword));
    assert.ok(enchantsOf(sword).length >= 1);
    await w.step(2);
    assert.equal(player.experience.level, 27);
    await w.until(() => table.takeTargetItem());
    await w.until(() => table.close());
    await w.step(2);
    assert.equal(count(player, 'lapis_lazuli'), 7);
    assert.deepEqual(done.map(({ item, levels }) => [item, levels]), [['diamond_sword', 3]]);
    agree(bot, player);
  }));

test('without levels or lapis a table gives nothing, and the same item has the same offers again', () =>
  inWorld({}, async (w, bot, player) => {
    const block = await set(w, bot, 'enchanting_table', ['iron_pickaxe', 'lapis_lazuli 1'], 0);
    const shown = [];
    for (let i = 0; i < 2; i++) {
      const table = await w.until(() => bot.openEnchantmentTable(block));
      await w.until(() => table.putTargetItem(own(table, 'iron_pickaxe')));
      await w.until(() => table.putLapis(own(table, 'lapis_lazuli')));
      await w.step(1);
      shown.push(JSON.stringify(table.enchantments));
      w.run(() => bot._client.write('enchant_item', { windowId: table.id, enchantment: 0 }));
      await w.step(2);
      assert.deepEqual(player.openWindow.slots[0].get().enchants, []);
      await w.until(() => table.close());
      await w.step(1);
    }
    assert.equal(shown[0], shown[1]);
    assert.equal(count(player, 'lapis_lazuli'), 1);
    agree(bot, player);
  }));

test('an anvil renames, joins, repairs with material and takes books, for levels', () =>
  inWorld({}, async (w, bot, player) => {
    const block = await set(w, bot, 'anvil', [], 30);
    put(w, player, make(w, 'iron_sword', { sharpness: 1 }, 100), make(w, 'enchanted_book', { sharpness: 1, looting: 2 }));
    put(w, player, make(w, 'stone_pickaxe', {}, 100), make(w, 'cobblestone', {}, 0, 5));
    await w.step(2);
    const anvil = await w.until(() => bot.openAnvil(block));
    await w.until(() => anvil.rename(own(anvil, 'stone_pickaxe'), 'Digger'));
    await w.step(2);
    assert.equal(named(own(anvil, 'stone_pickaxe')), 'Digger');
    assert.equal(player.experience.level, 29);
    await w.until(() => anvil.combine(own(anvil, 'iron_sword'), own(anvil, 'enchanted_book')));
    await w.step(2);
    assert.deepEqual(enchantsOf(own(anvil, 'iron_sword')), ['sharpness 2', 'looting 2']);
    assert.equal(player.experience.level, 29 - 2 - 4);
    await w.until(() => anvil.combine(own(anvil, 'stone_pickaxe'), own(anvil, 'cobblestone')));
    await w.step(2);
    const pickaxe = own(anvil, 'stone_pickaxe');
    assert.deepEqual([pickaxe.durabilityUsed, pickaxe.repairCost], [0, 1]);
    await w.until(() => anvil.close());
    await w.step(2);
    assert.equal(count(player, 'cobblestone'), 5 - 4);
    assert.equal(pickaxe.customName, null); // no name was given this time
    assert.equal(player.experience.level, 23 - 4 - 1);
    agree(bot, player);
  }));

test('an anvil asks for levels that are there, and wears out', () =>
  inWorld({}, async (w, bot, player) => {
    const block = await set(w, bot, 'damaged_anvil', ['stone 2'], 0);
    const anvil = await w.until(() => bot.openAnvil(block));
    await w.until(() => bot.moveSlotItem(own(anvil, 'stone').slot, 0));
    w.run(() => bot._client.write('name_item', { name: 'Rock' }));
    await w.step(2);
    assert.equal(anvil.slots[2].name, 'stone');
    await assert.rejects(w.until(() => bot.clickWindow(2, 0, 0)), /rejected/);
    await w.console('/xp set a0 39 levels');
    for (let i = 0; i < 39 && at(w, X, Y, Z).name !== 'air'; i++) {
      w.run(() => bot._client.write('name_item', { name: `Rock ${i}` }));
      await w.step(1);
      await w.until(() => bot.clickWindow(2, 0, 0));
      if (bot.currentWindow) await w.until(() => bot.clickWindow(0, 0, 0));
      await w.step(1);
    }
    assert.equal(at(w, X, Y, Z).name, 'air');
    assert.equal(bot.currentWindow, null);
    await until(w, () => count(player, 'stone') === 2, 20);
    agree(bot, player);
  }));

test('a grindstone takes enchantments off for experience, and makes one of two worn tools', () =>
  inWorld({}, async (w, bot, player) => {
    const block = await set(w, bot, 'grindstone', []);
    put(w, player, make(w, 'bow', { power: 3 }), make(w, 'iron_axe', {}, 150), make(w, 'iron_axe', {}, 120));
    await w.step(2);
    const window = await w.until(() => bot.openBlock(block));
    await w.until(() => bot.moveSlotItem(own(window, 'bow').slot, 0));
    await w.until(() => bot.putAway(2));
    await w.step(1);
    assert.deepEqual(own(window, 'bow').enchants, []);
    assert.ok(player.experience.points >= 10, `${player.experience.points}`);
    const axes = window.items().filter(({ name }) => name === 'iron_axe');
    await w.until(() => bot.moveSlotItem(axes[0].slot, 0));
    await w.until(() => bot.moveSlotItem(axes[1].slot, 1));
    await w.until(() => bot.putAway(2));
    await w.step(1);
    // 100 + 130 uses and 5 % of 250 are left.
    assert.equal(own(window, 'iron_axe').durabilityUsed, 250 - 100 - 130 - 12);
    await assert.rejects(w.until(() => bot.moveSlotItem(own(window, 'iron_axe').slot, 2)), /rejected/);
    w.run(() => window.close());
    await w.step(2);
    agree(bot, player);
  }));

test('a smithing table makes netherite gear, which keeps its enchantments', () =>
  inWorld({}, async (w, bot, player) => {
    const block = await set(w, bot, 'smithing_table', ['netherite_ingot']);
    put(w, player, make(w, 'diamond_sword', { looting: 3 }, 10));
    await w.step(2);
    const window = await w.until(() => bot.openBlock(block));
    await w.until(() => bot.moveSlotItem(own(window, 'diamond_sword').slot, 0));
    await w.until(() => bot.moveSlotItem(own(window, 'netherite_ingot').slot, 1));
    await w.until(() => bot.putAway(2));
    await w.until(() => window.close());
    await w.step(2);
    const [sword] = bot.inventory.items();
    assert.deepEqual([sword.name, sword.durabilityUsed, ...enchantsOf(sword)], ['netherite_sword', 10, 'looting 3']);
    agree(bot, player);
  }));

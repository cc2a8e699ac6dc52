'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, slot, agree, count, events, seen, Vec3, words } = require('./survival_help');

const id = (w, name) => w.serv.registry.itemsByName[name].id;
const recipe = (w, bot, name, table = null) => bot.recipesFor(id(w, name), null, 1, table)[0];

/** Puts a block two steps from the bot and returns the client's view of it. */
async function put(w, bot, block, dx = 2) {
  const spot = bot.entity.position.floored().offset(dx, 0, 0);
  await w.console(`/setblock ${spot.x} ${spot.y} ${spot.z} ${block}`);
  return seen(bot, spot.x, spot.y, spot.z);
}

test('logs to planks to sticks in the 2x2 grid, then a table set in the world and a pickaxe on it', () =>
  inWorld({}, async (w, bot, player) => {
    const crafted = events(w, 'gamut:crafted');
    await w.console('/give a0 oak_log 3');
    await w.until(() => bot.craft(recipe(w, bot, 'oak_planks'), 3, null));
    assert.equal(count(player, 'oak_planks'), 12);
    assert.equal(count(player, 'oak_log'), 0);
    await w.until(() => bot.craft(recipe(w, bot, 'stick'), 1, null));
    await w.until(() => bot.craft(recipe(w, bot, 'crafting_table'), 1, null));
    agree(bot, player);
    const ground = seen(bot, 10, 3, 8);
    await w.until(() => bot.equip(id(w, 'crafting_table'), 'hand'));
    await w.until(() => bot.placeBlock(ground, new Vec3(0, 1, 0)));
    const table = seen(bot, 10, 4, 8);
    assert.equal(table.name, 'crafting_table');
    await w.until(() => bot.craft(recipe(w, bot, 'wooden_pickaxe', table), 1, table));
    await w.step(2);
    agree(bot, player);
    assert.deepEqual(
      ['oak_planks', 'stick', 'wooden_pickaxe'].map((n) => count(player, n)),
      [3, 2, 1],
    );
    assert.deepEqual(
      crafted.map((e) => `${e.item} x${e.count}`),
      [
        'oak_planks x4',
        'oak_planks x4',
        'oak_planks x4',
        'stick x4',
        'crafting_table x1',
        'wooden_pickaxe x1',
      ],
    );
  }));

test('a cake gives its buckets back; shapes matter, mirrored or moved ones still match', () =>
  inWorld({}, async (w, bot, player) => {
    const { resultOf } = require('../survival/crafting');
    const { items, registry } = w.serv.survival;
    const grid = (...names) => names.map((n) => (n ? items.make(n) : null));
    const name = (cells, width = 3) => {
      const found = resultOf(registry, cells, width);
      return found && registry.items[found.id].name;
    };
    assert.equal(
      name(
        grid(null, 'iron_ingot', 'iron_ingot', null, 'stick', 'iron_ingot', null, 'stick', null),
      ),
      'iron_axe',
    );
    assert.equal(
      name(
        grid('iron_ingot', 'iron_ingot', null, 'iron_ingot', 'stick', null, null, 'stick', null),
      ),
      'iron_axe',
    );
    assert.equal(
      name(
        grid('iron_ingot', 'iron_ingot', null, 'stick', 'iron_ingot', null, null, 'stick', null),
      ),
      null,
    );
    assert.equal(name(grid('coal', null, 'stick', null), 2), 'torch');
    assert.equal(name(grid('stick', null, 'coal', null), 2), null);
    const table = await put(w, bot, 'crafting_table');
    for (const each of [
      'milk_bucket',
      'milk_bucket',
      'milk_bucket',
      'sugar',
      'sugar',
      'egg',
      'wheat',
      'wheat',
      'wheat',
    ]) {
      await w.console(`/give a0 ${each}`);
    }
    await w.until(() => bot.craft(recipe(w, bot, 'cake', table), 1, table), 3000);
    assert.deepEqual(
      ['cake', 'bucket', 'milk_bucket', 'sugar'].map((n) => count(player, n)),
      [1, 3, 0, 0],
    );
    await w.step(1);
    agree(bot, player);
  }));

test('shift-click on a result makes all of it; what lies in a grid comes back when its window closes', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/give a0 oak_log 5');
    await w.until(() => bot.clickWindow(36, 0, 0));
    await w.until(() => bot.clickWindow(1, 0, 0));
    await w.step(1);
    assert.equal(slot(bot, player, 0), 'oak_planks x4');
    await w.until(() => bot.clickWindow(0, 0, 1));
    await w.step(1);
    assert.equal(count(player, 'oak_planks'), 20);
    agree(bot, player);
    const table = await put(w, bot, 'crafting_table');
    const window = await w.until(() => bot.openBlock(table));
    await w.until(() => bot.clickWindow(window.inventoryEnd - 1, 0, 0));
    const full = window.slots.findIndex((s, i) => i >= window.inventoryStart && s);
    await w.until(() => bot.clickWindow(full, 0, 0));
    await w.until(() => bot.clickWindow(5, 0, 0));
    assert.equal(words(player.openWindow.slots[5].get()), 'oak_planks x20');
    await w.until(() => window.close());
    await w.step(2);
    assert.equal(count(player, 'oak_planks'), 20);
    agree(bot, player);
  }));

test('a furnace smelts while closed: 200 ticks an item, coal for eight, experience for the player who takes it', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/give a0 iron_ore 2');
    await w.console('/give a0 coal 1');
    const block = await put(w, bot, 'furnace');
    let furnace = await w.until(() => bot.openFurnace(block));
    await w.until(() => furnace.putInput(id(w, 'iron_ore'), null, 2));
    await w.until(() => furnace.putFuel(id(w, 'coal'), null, 1));
    await w.step(100);
    assert.equal(seen(bot, 10, 4, 8).getProperties().lit, true);
    assert.ok(furnace.progress > 0.4 && furnace.progress < 0.6, `progress ${furnace.progress}`);
    assert.ok(furnace.fuel > 0.9, `fuel ${furnace.fuel}`);
    await w.until(() => furnace.close());
    await w.step(95);
    const inside = w.serv.survival.container(10, 4, 8);
    assert.deepEqual(inside.slots.map(words), ['iron_ore x2', '-', '-']);
    await w.step(10);
    assert.deepEqual(inside.slots.map(words), ['iron_ore x1', '-', 'iron_ingot x1']);
    await w.step(200);
    furnace = await w.until(() => bot.openFurnace(block));
    assert.equal(words(furnace.outputItem()), 'iron_ingot x2');
    await w.until(() => furnace.takeOutput());
    await w.until(() => furnace.close());
    await w.step(2);
    assert.equal(count(player, 'iron_ingot'), 2);
    assert.ok(
      bot.experience.points >= 1 && bot.experience.points <= 2,
      `points ${bot.experience.points}`,
    );
    agree(bot, player);
    await w.step(1200);
    assert.equal(seen(bot, 10, 4, 8).getProperties().lit, false);
  }));

test('furnaces know fuels and what they smelt; dirt neither burns nor melts', () => {
  const { smelted, burnTime } = require('../survival/smelting');
  assert.deepEqual(smelted('furnace', 'beef'), { item: 'cooked_beef', xp: 0.35 });
  assert.deepEqual(smelted('smoker', 'beef'), { item: 'cooked_beef', xp: 0.35 });
  assert.equal(smelted('blast_furnace', 'beef'), null);
  assert.equal(smelted('smoker', 'iron_ore'), null);
  assert.equal(smelted('furnace', 'spruce_log').item, 'charcoal');
  assert.equal(smelted('furnace', 'golden_boots').item, 'gold_nugget');
  assert.equal(smelted('furnace', 'dirt'), null);
  assert.deepEqual(
    ['coal', 'oak_planks', 'stick', 'dirt', 'crimson_planks', 'lava_bucket'].map(burnTime),
    [1600, 300, 100, 0, 0, 20000],
  );
});

test('a chest keeps its contents, two players can open it at once, and it drops them when it is broken', () =>
  inWorld({ agents: 2 }, async (w, bot, player) => {
    await w.console('/give a0 stone 30');
    const block = await put(w, bot, 'chest', 1);
    const chest = await w.until(() => bot.openChest(block));
    const other = await w.until(() => w.bots[1].openChest(w.bots[1].blockAt(block.position)));
    assert.equal(chest.containerItems().length, 0);
    await w.until(() => chest.deposit(id(w, 'stone'), null, 10));
    await w.step(1);
    assert.deepEqual(other.containerItems().map(words), ['stone x10']);
    await w.until(() => other.withdraw(id(w, 'stone'), null, 4));
    await w.step(1);
    assert.deepEqual(chest.containerItems().map(words), ['stone x6']);
    await w.until(() => chest.close());
    await w.until(() => other.close());
    assert.deepEqual([count(player, 'stone'), count(w.players[1], 'stone')], [20, 4]);
    const again = await w.until(() => bot.openChest(block));
    assert.deepEqual(again.containerItems().map(words), ['stone x6']);
    const { x, y, z } = block.position;
    await w.console(`/setblock ${x} ${y} ${z} air destroy`);
    await w.step(1);
    assert.equal(bot.currentWindow, null);
    assert.equal(w.serv.survival.container(x, y, z), undefined);
    await w.step(60);
    const held = count(player, 'stone') + count(w.players[1], 'stone');
    const lying = [...w.serv.survival.drops.values()].reduce((sum, e) => sum + e.stack.count, 0);
    const chests = [...w.serv.survival.drops.values()].filter((e) => e.stack.name === 'chest');
    assert.equal(held + lying - chests.length, 30);
    agree(bot, player);
    agree(w.bots[1], w.players[1]);
  }));

test('a lid opens under glass and leaves, not under stone', () =>
  inWorld({}, async (w, bot, player) => {
    const chest = await put(w, bot, 'chest');
    const { x, y, z } = chest.position;
    for (const [block, opens] of [
      ['glass', true],
      ['oak_leaves', true],
      ['stone_slab', true],
      ['stone', false],
    ]) {
      await w.console(`/setblock ${x} ${y + 1} ${z} ${block}`);
      await w.step(1);
      await w.until(() => bot.activateBlock(chest));
      await w.step(2);
      assert.equal(player.openWindow !== null, opens, block);
      if (bot.currentWindow) w.run(() => bot.closeWindow(bot.currentWindow));
      await w.step(2);
    }
  }));

test("an ender chest is each player's own, wherever it stands", () =>
  inWorld({ agents: 2 }, async (w, bot, player) => {
    await w.console('/give a0 diamond 2');
    const first = await put(w, bot, 'ender_chest', 1);
    const chest = await w.until(() => bot.openContainer(first));
    await w.until(() => chest.deposit(id(w, 'diamond'), null, 2));
    await w.until(() => chest.close());
    const theirs = await w.until(() => w.bots[1].openContainer(w.bots[1].blockAt(first.position)));
    assert.deepEqual(theirs.containerItems(), []);
    const second = await put(w, bot, 'ender_chest', -1);
    const again = await w.until(() => bot.openContainer(second));
    assert.deepEqual(again.containerItems().map(words), ['diamond x2']);
    assert.equal(count(player, 'diamond'), 0);
  }));

test('the window of a removed block closes, and what was in it is returned', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/give a0 oak_log 3');
    const table = await put(w, bot, 'crafting_table');
    const window = await w.until(() => bot.openBlock(table));
    await w.until(() => bot.clickWindow(window.hotbarStart, 0, 0));
    await w.until(() => bot.clickWindow(1, 0, 0));
    assert.equal(count(player, 'oak_log'), 0);
    await put(w, bot, 'air');
    await w.step(2);
    assert.equal(player.openWindow, null);
    assert.equal(bot.currentWindow, null);
    assert.equal(count(player, 'oak_log'), 3);
    const chest = await put(w, bot, 'ender_chest');
    await w.until(() => bot.openContainer(chest));
    await put(w, bot, 'air');
    await w.step(2);
    assert.equal(player.openWindow, null);
    agree(bot, player);
  }));

test('a player who dies at a table drops grid and cursor too; another item to smelt starts again', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/give a0 diamond 9');
    const table = await put(w, bot, 'crafting_table');
    const window = await w.until(() => bot.openBlock(table));
    const from = window.findInventoryItem(id(w, 'diamond')).slot;
    await w.until(() => bot.clickWindow(from, 0, 0));
    await w.until(() => bot.clickWindow(5, 1, 0));
    await w.console('/kill a0');
    await w.step(40);
    assert.equal(bot.currentWindow, null);
    assert.equal(player.cursor, null);
    const lying = [...w.serv.survival.drops.values()].reduce((sum, e) => sum + e.stack.count, 0);
    assert.equal(lying + count(player, 'diamond'), 9);
    await w.console('/give a0 iron_ore 1');
    await w.console('/give a0 gold_ore 1');
    await w.console('/give a0 coal 1');
    const block = await put(w, bot, 'furnace', 1);
    const furnace = await w.until(() => bot.openFurnace(block));
    await w.until(() => furnace.putInput(id(w, 'iron_ore'), null, 1));
    await w.until(() => furnace.putFuel(id(w, 'coal'), null, 1));
    await w.step(150);
    await w.until(() => furnace.takeInput());
    await w.until(() => furnace.putInput(id(w, 'gold_ore'), null, 1));
    await w.step(150);
    assert.equal(furnace.outputItem(), null);
    await w.step(60);
    assert.equal(words(furnace.outputItem()), 'gold_ingot x1');
  }));

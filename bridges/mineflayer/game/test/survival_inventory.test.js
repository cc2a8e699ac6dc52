'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, slot, agree, count, events, until, words } = require('./survival_help');

const item = (w, name) => w.serv.registry.itemsByName[name].id;

test('a stack is picked up, put down, split and put together again, on both sides', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/give a0 cobblestone 10');
    assert.equal(slot(bot, player, 36), 'cobblestone x10');
    await w.until(() => bot.clickWindow(36, 1, 0));
    assert.equal(words(player.cursor), 'cobblestone x5');
    await w.until(() => bot.clickWindow(12, 1, 0));
    assert.equal(slot(bot, player, 12), 'cobblestone x1');
    await w.until(() => bot.clickWindow(12, 0, 0));
    assert.equal(slot(bot, player, 12), 'cobblestone x5');
    assert.equal(slot(bot, player, 36), 'cobblestone x5');
    await w.until(() => bot.clickWindow(12, 0, 0));
    await w.until(() => bot.clickWindow(36, 0, 0));
    assert.equal(slot(bot, player, 36), 'cobblestone x10');
    assert.equal(player.cursor, null);
    agree(bot, player);
  }));

test('shift-click moves between inventory and hot-bar, number keys swap with the hot-bar', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/give a0 dirt 7');
    await w.console('/give a0 sand 3');
    await w.until(() => bot.clickWindow(36, 0, 1));
    assert.equal(slot(bot, player, 9), 'dirt x7');
    assert.equal(slot(bot, player, 36), '-');
    await w.until(() => bot.clickWindow(9, 4, 2));
    assert.equal(slot(bot, player, 40), 'dirt x7');
    await w.until(() => bot.clickWindow(37, 4, 2));
    assert.equal(slot(bot, player, 40), 'sand x3');
    assert.equal(slot(bot, player, 37), 'dirt x7');
    agree(bot, player);
  }));

test('Q drops one, Ctrl-Q the stack, and the hands change places by F', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/give a0 dirt 9');
    await w.run(() =>
      bot._client.write('block_dig', { status: 4, location: bot.entity.position, face: 0 }),
    );
    await w.step(1);
    assert.equal(slot(bot, player, 36), 'dirt x8');
    await w.run(() =>
      bot._client.write('block_dig', { status: 6, location: bot.entity.position, face: 0 }),
    );
    await w.step(1);
    assert.equal(slot(bot, player, 45), 'dirt x8');
    assert.equal(slot(bot, player, 36), '-');
    await w.until(() => bot.clickWindow(45, 1, 4));
    assert.equal(slot(bot, player, 45), '-');
    const lying = [...w.serv.survival.drops.values()].map((e) => e.stack.count);
    assert.deepEqual(lying.sort(), [1, 8]);
  }));

test('armour and shield are put on, protect, are visible to others and come off; dirt cannot be worn', () =>
  inWorld({ agents: 2 }, async (w, bot, player) => {
    for (const name of ['iron_helmet', 'diamond_chestplate', 'shield', 'dirt'])
      await w.console(`/give a0 ${name}`);
    await w.until(() => bot.equip(item(w, 'iron_helmet'), 'head'));
    await w.until(() => bot.equip(item(w, 'diamond_chestplate'), 'torso'));
    await w.until(() => bot.equip(item(w, 'shield'), 'off-hand'));
    await w.step(2);
    assert.deepEqual(
      [5, 6, 45].map((i) => slot(bot, player, i)),
      ['iron_helmet x1', 'diamond_chestplate x1', 'shield x1'],
    );
    assert.equal(player.stats.armour, 10);
    const other = Object.values(w.bots[1].entities).find((e) => e.username === 'a0');
    assert.equal(other.equipment[5].name, 'iron_helmet');
    assert.equal(other.equipment[1].name, 'shield');
    await assert.rejects(
      w.until(() => bot.moveSlotItem(bot.inventory.findInventoryItem('dirt').slot, 5)),
      /rejected/,
    );
    assert.equal(slot(bot, player, 5), 'iron_helmet x1');
    await w.until(() => bot.unequip('head'));
    assert.equal(player.stats.armour, 8);
  }));

test('dragging is refused and leaves everything where it was', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/give a0 dirt 9');
    await assert.rejects(
      w.until(() => bot.clickWindow(-999, 1, 5)),
      /rejected/,
    );
    assert.equal(slot(bot, player, 36), 'dirt x9');
    agree(bot, player);
  }));

test('tossed items lie with their count, wait two seconds, are picked up with their count', () =>
  inWorld({}, async (w, bot, player) => {
    const picked = events(w, 'gamut:picked');
    await w.console('/give a0 diamond 12');
    await w.until(() => bot.look(0, -1.5, true));
    await w.step(2);
    await w.until(() => bot.toss(item(w, 'diamond'), null, 5));
    assert.equal(count(player, 'diamond'), 7);
    await w.step(20);
    const dropped = Object.values(bot.entities).filter((e) => e.name === 'item');
    assert.equal(
      dropped.reduce((sum, e) => sum + e.getDroppedItem().count, 0),
      5,
    );
    assert.equal(picked.length, 0);
    await until(w, () => count(player, 'diamond') === 12, 60);
    assert.equal(
      picked.reduce((sum, e) => sum + e.count, 0),
      5,
    );
    await w.step(2);
    assert.equal(Object.values(bot.entities).filter((e) => e.name === 'item').length, 0);
    agree(bot, player);
  }));

test('like items on the ground merge, fill what fits, and are gone after five minutes', () =>
  inWorld({}, async (w, bot, player) => {
    const { survival } = w.serv;
    const spot = player.position.offset(6, 0, 0);
    w.run(() => {
      survival.drop(spot, survival.items.make('stone', 40));
      survival.drop(spot.offset(0.2, 0, 0), survival.items.make('stone', 20));
      survival.drop(spot.offset(0.1, 0, 0), survival.items.make('dirt', 2));
    });
    await w.step(60);
    assert.deepEqual([...survival.drops.values()].map((e) => words(e.stack)).sort(), [
      'dirt x2',
      'stone x60',
    ]);
    const shown = Object.values(bot.entities)
      .filter((e) => e.name === 'item')
      .map((e) => words(e.getDroppedItem()));
    assert.deepEqual(shown.sort(), ['dirt x2', 'stone x60']);
    await w.step(5900);
    assert.equal(survival.drops.size, 2);
    await w.step(60);
    assert.equal(survival.drops.size, 0);
  }));

test('a full inventory takes what fits and leaves the rest on the ground', () =>
  inWorld({}, async (w, bot, player) => {
    const { survival } = w.serv;
    for (let i = 0; i < 35; i++) await w.console('/give a0 iron_sword');
    await w.console('/give a0 stone 60');
    w.run(() => survival.drop(player.position.clone(), survival.items.make('stone', 10)));
    await w.step(20);
    assert.equal(count(player, 'stone'), 64);
    assert.deepEqual(
      [...survival.drops.values()].map((e) => words(e.stack)),
      ['stone x6'],
    );
    const shown = Object.values(bot.entities).filter((e) => e.name === 'item');
    assert.equal(shown[0].getDroppedItem().count, 6);
  }));

'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, agree, at, count, seen, words, Vec3 } = require('./survival_help');

const UP = new Vec3(0, 1, 0);
const LEFT = [11, 4, 8];
const RIGHT = [11, 4, 7];
const id = (w, name) => w.serv.registry.itemsByName[name].id;
const types = (w, ...cells) => cells.map((cell) => at(w, ...cell).props.type);
const lying = (w) =>
  [...w.serv.survival.drops.values()].map((e) => words(e.stack)).sort().join(', ');

/** Has the bot place chests on the ground, looking east, so that they face west. */
async function place(w, bot, name, ...cells) {
  await w.console(`/give a0 ${name} ${cells.length}`);
  await w.step(1);
  await w.until(() => bot.equip(id(w, name), 'hand'));
  for (const [x, y, z] of cells) {
    await w.until(() => bot.lookAt(new Vec3(x + 0.5, y, z + 0.5), true));
    await w.step(1);
    await w.until(() => bot.placeBlock(seen(bot, x, y - 1, z), UP));
    await w.step(1);
  }
}

/** A world with one large chest, whose right half has 27 stacks of stone and left one diamond. */
async function large(options, play) {
  await inWorld(options, async (w, bot, player) => {
    await place(w, bot, 'chest', RIGHT, LEFT);
    assert.deepEqual(types(w, RIGHT, LEFT), ['right', 'left']);
    const { fillContainer } = w.serv.survival;
    fillContainer(...RIGHT, new Array(27).fill({ name: 'stone', count: 2 }));
    fillContainer(...LEFT, [{ name: 'diamond', count: 1 }]);
    await play(w, bot, player);
  });
}

test('two chests side by side are one window of 54 slots, the right half first, from either half', () =>
  large({ agents: 2 }, async (w, bot, player) => {
    for (const [cell, open] of [[RIGHT, 'openChest'], [LEFT, 'openContainer']]) {
      const chest = await w.until(() => bot[open](seen(bot, ...cell)));
      assert.deepEqual([chest.type, chest.inventoryStart], ['minecraft:generic_9x6', 54]);
      assert.match(JSON.stringify(chest.title), /Large Chest/);
      assert.deepEqual([0, 26, 27, 28].map((i) => words(chest.slots[i])), [
        'stone x2', 'stone x2', 'diamond x1', '-',
      ]);
      await w.until(() => chest.close());
    }
    const mine = await w.until(() => bot.openChest(seen(bot, ...RIGHT)));
    const theirs = await w.until(() => w.bots[1].openChest(w.bots[1].blockAt(new Vec3(...LEFT))));
    await w.until(() => mine.withdraw(id(w, 'diamond'), null, 1));
    await w.until(() => mine.withdraw(id(w, 'stone'), null, 2));
    await w.step(1);
    assert.deepEqual([0, 1, 27].map((i) => words(theirs.slots[i])), ['-', 'stone x2', '-']);
    await w.console('/give a1 dirt 70');
    await w.step(1);
    await w.until(() => theirs.deposit(id(w, 'dirt'), null, 70));
    await w.step(1);
    for (const chest of [mine, theirs])
      assert.deepEqual([0, 27].map((i) => words(chest.slots[i])), ['dirt x64', 'dirt x6']);
    assert.equal(words(w.serv.survival.container(...LEFT).slots[0]), 'dirt x6');
    assert.deepEqual(['diamond', 'stone'].map((name) => count(player, name)), [1, 2]);
    await w.until(() => mine.close());
    await w.until(() => theirs.close());
    agree(bot, player);
    agree(w.bots[1], w.players[1]);
  }));

test('breaking one half drops its items alone, closes the window, and leaves a single chest', () =>
  large({}, async (w, bot, player) => {
    await w.until(() => bot.openChest(seen(bot, ...RIGHT)));
    await w.console(`/setblock ${LEFT.join(' ')} air destroy`);
    await w.step(1);
    assert.deepEqual([player.openWindow, bot.currentWindow], [null, null]);
    assert.equal(lying(w), 'chest x1, diamond x1');
    assert.deepEqual(types(w, RIGHT), ['single']);
    assert.equal(seen(bot, ...RIGHT).getProperties().type, 'single');
    const chest = await w.until(() => bot.openChest(seen(bot, ...RIGHT)));
    assert.deepEqual([chest.type, chest.containerItems().length], ['minecraft:generic_9x3', 27]);
    await w.until(() => chest.close());
    await w.until(() => bot.dig(seen(bot, ...RIGHT), true));
    await w.step(1);
    const drops = [...w.serv.survival.drops.values()].map((e) => e.stack);
    const lies = (name) =>
      drops.reduce((sum, stack) => sum + (stack.name === name ? stack.count : 0), 0);
    const there = (name) => lies(name) + count(player, name);
    assert.deepEqual(['stone', 'chest', 'diamond'].map(there), [54, 2, 1]);
  }));

test('chests join that face alike, are single and of one kind, unless their owner sneaks', () =>
  inWorld({}, async (w, bot) => {
    await place(w, bot, 'chest', [11, 4, 7], [11, 4, 8], [11, 4, 9]);
    assert.deepEqual(types(w, [11, 4, 7], [11, 4, 8], [11, 4, 9]), ['right', 'left', 'single']);
    await w.console('/fill 11 4 7 11 4 9 air');
    await w.console('/setblock 11 4 7 chest[facing=north]');
    await place(w, bot, 'chest', [11, 4, 8]);
    assert.deepEqual(types(w, [11, 4, 7], [11, 4, 8]), ['single', 'single']);
    await place(w, bot, 'trapped_chest', [11, 4, 9]);
    assert.deepEqual(types(w, [11, 4, 8], [11, 4, 9]), ['single', 'single']);
    await w.console('/fill 11 4 7 11 4 9 air');
    w.run(() => bot.setControlState('sneak', true));
    await w.step(2);
    await place(w, bot, 'chest', [11, 4, 7], [11, 4, 8]);
    assert.deepEqual(types(w, [11, 4, 7], [11, 4, 8]), ['single', 'single']);
    // Sneaking, it joins the chest that is clicked, whichever way its owner looks.
    await w.console('/setblock 10 4 10 chest[facing=north]');
    await w.console('/give a0 chest 1');
    await w.step(1);
    await w.until(() => bot.placeBlock(seen(bot, 10, 4, 10), new Vec3(-1, 0, 0)));
    await w.step(1);
    assert.deepEqual([at(w, 9, 4, 10).props.facing, ...types(w, [9, 4, 10], [10, 4, 10])], [
      'north', 'left', 'right',
    ]);
  }));

test('commands join, part and copy chests; an opaque block on either half keeps both shut', () =>
  large({}, async (w, bot, player) => {
    await w.console('/clone 11 4 7 11 4 8 6 4 7');
    assert.deepEqual(types(w, [6, 4, 7], [6, 4, 8]), ['right', 'left']);
    assert.equal(words(w.serv.survival.container(6, 4, 8).slots[0]), 'diamond x1');
    await w.console('/setblock 6 4 8 air');
    assert.deepEqual(types(w, [6, 4, 7]), ['single']);
    await w.console('/setblock 6 4 8 chest[facing=west,type=left]');
    assert.deepEqual(types(w, [6, 4, 7], [6, 4, 8]), ['right', 'left']);
    await w.console('/setblock 6 4 11 chest[facing=west,type=left]');
    assert.deepEqual(types(w, [6, 4, 11]), ['single'], 'half of nothing');
    await w.console(`/setblock 11 5 7 stone`);
    w.run(() => bot.activateBlock(seen(bot, ...RIGHT)));
    await w.step(2);
    assert.equal(player.openWindow, null);
  }));

test('a large chest is saved with its contents', () =>
  large({}, async (w, bot) => {
    const { plugins } = require('../survival');
    const containers = plugins.find((each) => each.name === 'containers');
    const saved = JSON.parse(JSON.stringify(containers.save(w.serv)));
    w.serv.survival.container(...LEFT).slots[0] = null;
    containers.load(w.serv, saved);
    const chest = await w.until(() => bot.openChest(seen(bot, ...LEFT)));
    assert.deepEqual([26, 27].map((i) => words(chest.slots[i])), ['stone x2', 'diamond x1']);
  }));

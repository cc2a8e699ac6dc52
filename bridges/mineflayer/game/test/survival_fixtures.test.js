'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, at, count, until, events } = require('./survival_help');
const { Statistics } = require('../observe/statistics');

const id = (w, name) => w.serv.registry.itemsByName[name].id;

/** Puts a block beside the player, and returns a function that clicks on it with an item in hand. */
async function beside(w, bot, block) {
  await w.console('/tp a0 9.5 4 9.5');
  await w.console(`/setblock 11 4 9 ${block}`);
  return async (item) => {
    if (item && bot.heldItem?.name !== item) await w.until(() => bot.equip(id(w, item), 'hand'));
    if (!item) await w.run(() => bot.setQuickBarSlot(8));
    const location = { x: 11, y: 4, z: 9 };
    await w.run(() => bot._client.write('block_place', {
      location, direction: 4, hand: 0, cursorX: 0.5, cursorY: 0.5, cursorZ: 0.5, insideBlock: false,
    }));
    await w.step(2);
  };
}
const props = (w) => at(w, 11, 4, 9).props;

test('a composter takes plants in, layer by layer, and gives bone meal', () =>
  inWorld({}, async (w, bot, player) => {
    for (const item of ['pumpkin_pie 7', 'stone 1', 'bread 9']) await w.console(`/give a0 ${item}`);
    const click = await beside(w, bot, 'composter');
    await click('bread');
    assert.deepEqual([props(w).level, count(player, 'bread')], [1, 8], 'the first always counts');
    for (let i = 0; i < 6; i++) await click('pumpkin_pie');
    assert.equal(props(w).level, 7);
    await until(w, () => props(w).level === 8, 30);
    await click('pumpkin_pie');
    assert.equal(props(w).level, 0);
    await w.console('/tp a0 11.5 5 9.5');
    await w.step(20);
    assert.deepEqual([count(player, 'bone_meal'), count(player, 'pumpkin_pie')], [1, 1]);
  }));

test('a cauldron is filled and emptied by buckets and bottles', () =>
  inWorld({}, async (w, bot, player) => {
    for (const item of ['water_bucket 1', 'glass_bottle 2']) await w.console(`/give a0 ${item}`);
    const click = await beside(w, bot, 'cauldron');
    const statistics = new Statistics(w.serv);
    await click('water_bucket');
    assert.deepEqual([props(w).level, count(player, 'bucket')], [3, 1]);
    await click('glass_bottle');
    assert.deepEqual([props(w).level, count(player, 'potion')], [2, 1]);
    await click('bucket');
    assert.deepEqual([props(w).level, count(player, 'bucket')], [2, 1], 'it is not full');
    await click('potion');
    assert.deepEqual([props(w).level, count(player, 'potion')], [3, 0]);
    await click('bucket');
    assert.deepEqual([props(w).level, count(player, 'water_bucket')], [0, 1]);
    assert.equal(at(w, 10, 4, 9).name, 'air', 'nothing is spilt');
    const { custom } = statistics.of(player);
    assert.deepEqual([custom.fill_cauldron, custom.use_cauldron], [2, 2]);
  }));

test('a pot takes a flower and gives it back, a jukebox a record', () =>
  inWorld({}, async (w, bot, player) => {
    for (const item of ['poppy 1', 'music_disc_cat 1']) await w.console(`/give a0 ${item}`);
    const click = await beside(w, bot, 'flower_pot');
    await click('poppy');
    assert.deepEqual([at(w, 11, 4, 9).name, count(player, 'poppy')], ['potted_poppy', 0]);
    await click(null);
    assert.deepEqual([at(w, 11, 4, 9).name, count(player, 'poppy')], ['flower_pot', 1]);
    const play = await beside(w, bot, 'jukebox');
    await play('music_disc_cat');
    assert.deepEqual([props(w).has_record, count(player, 'music_disc_cat')], [true, 0]);
    await play(null);
    assert.equal(props(w).has_record, false);
    await play('poppy');
    await w.console('/setblock 11 4 9 air');
    await w.step(40);
    const disc = Object.values(bot.entities).filter(({ name }) => name === 'item');
    assert.equal(disc.length + count(player, 'music_disc_cat'), 1);
  }));

test('a campfire cooks four things at once and gives back what is raw when it breaks', () =>
  inWorld({}, async (w, bot, player) => {
    for (const item of ['beef 6', 'stone 1']) await w.console(`/give a0 ${item}`);
    const click = await beside(w, bot, 'campfire');
    for (let i = 0; i < 5; i++) await click('beef');
    assert.equal(count(player, 'beef'), 2, 'there are four places');
    await w.step(550);
    await w.console('/tp a0 11.5 5 9.5');
    await until(w, () => count(player, 'cooked_beef') === 4, 200);
    await w.console('/tp a0 9.5 4 9.5');
    await click('beef');
    await w.console('/setblock 11 4 9 air');
    await w.console('/tp a0 11.5 4 9.5');
    await w.step(40);
    assert.equal(count(player, 'beef'), 2);
  }));

test('bells ring and note blocks are tuned', () =>
  inWorld({}, async (w, bot, player) => {
    const counted = events(w, 'gamut:counted');
    await (await beside(w, bot, 'bell'))(null);
    assert.equal(props(w).powered, true);
    await w.step(60);
    assert.equal(props(w).powered, false);
    const click = await beside(w, bot, 'note_block');
    for (let i = 0; i < 26; i++) await click(null);
    assert.equal(props(w).note, 1);
    assert.deepEqual([counted[0].statistic, counted.length, counted[1].player], ['bell_ring', 27, player]);
  }));

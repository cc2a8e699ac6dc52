'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, agree, at, count, seen, words, Vec3 } = require('./survival_help');
const { spawnStill } = require('./mobs_help');

const UP = new Vec3(0, 1, 0);
const FOOT = [10, 4, 8];
const HEAD = [11, 4, 8];
const LOWER = [10, 4, 8];
const UPPER = [10, 5, 8];
const state = (w, ...cells) =>
  cells.map((cell) => {
    const { name, props } = at(w, ...cell);
    return [name, props.part ?? props.half].filter(Boolean).join(' ');
  });
const lying = (w) => [...w.serv.survival.drops.values()].map((e) => words(e.stack)).join(', ');

/** Takes away what a test has put there and who it was. */
async function clear(w) {
  const { mobs, drops } = w.serv.survival;
  await w.console('/fill 10 4 8 11 4 8 air');
  await w.console('/clear a0');
  w.run(() => {
    for (const mob of [...mobs.list.values()]) mobs.remove(mob);
    for (const item of [...drops.values()]) w.serv.survival.removeEntity(item);
    drops.clear();
  });
  await w.step(2);
}

/** Has the bot, which looks east, place an item on the ground at (10, 3, 8). */
async function place(w, bot, name) {
  await w.console(`/give a0 ${name}`);
  await w.step(1);
  await w.until(() => bot.equip(w.serv.registry.itemsByName[name].id, 'hand'));
  await w.until(() => bot.lookAt(new Vec3(10.5, 4, 8.5), true));
  await w.step(1);
  await w.until(() => bot.placeBlock(seen(bot, 10, 3, 8), UP));
  await w.step(1);
}

test('a bed is placed with both halves, or not at all, and then its item stays', () =>
  inWorld({}, async (w, bot, player) => {
    const cow = (x) => () => spawnStill(w, 'cow', x, 4, 8.5);
    const set = (block, from = '11 4 8') => () => w.console(`/fill ${from} 11 4 8 ${block}`);
    for (const [number, [put, places]] of [
      [set('stone'), false],
      [set('torch'), false],
      [cow(10.5), false],
      [cow(11.7), true],
      [set('grass'), true],
      [set('air', '11 2 8'), true],
    ].entries()) {
      await put();
      const done = place(w, bot, 'red_bed');
      if (places) {
        await done;
        assert.deepEqual(state(w, FOOT, HEAD), ['red_bed foot', 'red_bed head'], `${number}`);
        for (const cell of [FOOT, HEAD]) assert.equal(seen(bot, ...cell).name, 'red_bed');
      } else {
        await assert.rejects(done, /refused to place/, `${number}`);
        assert.equal(at(w, ...FOOT).name, 'air', `${number}`);
      }
      assert.equal(count(player, 'red_bed'), places ? 0 : 1, `${number}`);
      agree(bot, player);
      await clear(w);
    }
  }));

test('whichever half of a bed is removed, both go, and a bed drops once: by its head', () =>
  inWorld({}, async (w, bot) => {
    const remove = {
      dig: (cell) => w.until(() => bot.dig(seen(bot, ...cell), true)),
      destroy: (cell) => w.console(`/setblock ${cell.join(' ')} air destroy`),
      replace: (cell) => w.console(`/setblock ${cell.join(' ')} air`),
    };
    for (const [name, way] of Object.entries(remove)) {
      for (const cell of [FOOT, HEAD]) {
        await place(w, bot, 'red_bed');
        await way(cell);
        await w.step(1);
        assert.deepEqual(state(w, FOOT, HEAD), ['air', 'air']);
        const none = name === 'replace' && cell === HEAD;
        assert.equal(lying(w), none ? '' : 'red_bed x1', `${name} ${cell}`);
        await clear(w);
      }
    }
  }));

test('halves that commands set one after the other become one; a half alone stays until the other goes', () =>
  inWorld({}, async (w, bot, player) => {
    const set = (cell, block) => w.console(`/setblock ${cell.join(' ')} ${block}`);
    for (const [first, second] of [[FOOT, HEAD], [HEAD, FOOT]]) {
      const part = (cell) => `red_bed[facing=east,part=${cell === FOOT ? 'foot' : 'head'}]`;
      await set(first, part(first));
      await w.step(2);
      await set([10, 4, 9], 'stone');
      await w.step(2);
      assert.equal(at(w, ...first).name, 'red_bed', 'beside other blocks a half stays');
      if (first === FOOT) {
        w.run(() => bot.activateBlock(seen(bot, ...first)));
        await w.step(2);
        assert.equal(player.bed, null, 'a foot alone is no bed');
      }
      await set(second, part(second));
      await w.step(2);
      assert.deepEqual(state(w, FOOT, HEAD), ['red_bed foot', 'red_bed head']);
      await set(second, 'air');
      await w.step(2);
      assert.deepEqual(state(w, FOOT, HEAD), ['air', 'air']);
    }
    await set(UPPER, 'oak_door[half=upper]');
    await set(LOWER, 'oak_door[half=lower]');
    await w.step(2);
    assert.deepEqual(state(w, LOWER, UPPER), ['oak_door lower', 'oak_door upper']);
    await set(UPPER, 'air');
    assert.deepEqual(state(w, LOWER, UPPER), ['air', 'air']);
  }));

test('two beds in a row are two: the half of one is not that of the other', () =>
  inWorld({}, async (w, bot) => {
    const row = [9, 10, 11, 12].map((x) => [x, 4, 10]);
    const parts = ['foot', 'head', 'foot', 'head'];
    for (const [i, cell] of row.entries())
      await w.console(`/setblock ${cell.join(' ')} red_bed[facing=east,part=${parts[i]}]`);
    await w.until(() => bot.dig(seen(bot, ...row[2]), true));
    await w.step(2);
    assert.deepEqual(state(w, ...row), ['red_bed foot', 'red_bed head', 'air', 'air']);
    assert.equal(lying(w), 'red_bed x1');
  }));

'use strict';

/**
 * Items over all windows: whatever is clicked, pressed, broken and closed, the number of items of
 * each name in bags, cursors, windows, containers and on the ground changes only by what is made.
 */

const test = require('node:test');
const assert = require('node:assert');
const { STORES } = require('../survival/stores');
const { withEnchants } = require('../survival/enchanting');
const { inWorld, agree, Vec3 } = require('./survival_help');

const pick = (w, list) => w.run(() => list[Math.floor(Math.random() * list.length)]);
const whole = (w, low, high) => w.run(() => low + Math.floor(Math.random() * (high - low + 1)));

/** The blocks with a window: those of the table of stores, a large chest, and those that keep nothing. */
const BLOCKS = ['chest[type=left]', 'chest[type=right]',
  ...Object.keys(STORES).filter((kind) => !kind.endsWith('_shulker_box')), 'ender_chest', 'crafting_table', 'anvil',
  'grindstone', 'smithing_table', 'stonecutter', 'loom', 'enchanting_table'];
/** Nothing here burns, smelts or brews while it lies there. */
const ITEMS = ['emerald 64', 'emerald 64', 'lapis_lazuli 64', 'book 20', 'diamond_sword', 'diamond_sword', 'diamond_helmet',
  'andesite 64', 'bone 9', 'white_banner 5', 'red_dye 9', 'flower_banner_pattern', 'netherite_ingot 4', 'glass_bottle 9',
  'potion', 'nether_wart 9', 'honey_bottle 16', 'iron_ingot 30', 'diamond 20', 'ender_pearl 16', 'paper 64', 'shield',
  'bookshelf 4'];
const ENCHANTED = [['enchanted_book', 'sharpness', 0], ['shears', 'unbreaking', 40], ['shears', null, 90]];

/** Adds a librarian that stands still. */
function settle(w) {
  w.run(() => w.serv.survival.spawnMob('villager', new Vec3(10.5, 4, 8.5), {
    merchant: { type: 'plains', profession: 'librarian', level: 2 } })).ai = null;
}

/** Gives a player what the windows work with. */
function equip(w, player) {
  const { items } = w.serv.survival;
  for (const text of ITEMS) {
    const [name, count = 1] = text.split(' ');
    w.run(() => player.give(items.make(name, Number(count))));
  }
  for (const [name, enchantment, worn] of ENCHANTED) {
    const plain = items.make(name);
    const item = enchantment ? withEnchants(items, plain, [{ name: enchantment, lvl: 1 }]) : plain;
    if (worn) item.durabilityUsed = worn;
    w.run(() => player.give(item));
  }
}

/** What is laid into windows, one of these lists. */
const LAID = {
  smithing: [[/^diamond_/, /^netherite_ingot$/], [/./]],
  grindstone: [[/^shears$/, /^shears$/], [/^enchanted_book$/]],
  loom: [[/_banner$/, /_dye$/], [/_banner$/, /_dye$/, /_pattern$/]],
  enchantment: [[/^book$/, /^lapis/], [/^diamond_/, /^lapis/]],
  anvil: [[/./], [/^shears$/, /^shears$/], [/^diamond_sword$/, /^diamond$/], [/^diamond_sword$/, /^enchanted_book$/]],
  stonecutter: [[/^andesite$/]],
};
const STEPS = 100; // around each block

/** A book that is enchanted counts as a book. */
const named = ({ name }) => (name === 'enchanted_book' ? 'book' : name);

/** Returns how many there are of each name. */
function everything(w) {
  const sums = {};
  const add = (item) => {
    if (item) sums[named(item)] = (sums[named(item)] ?? 0) + item.count;
  };
  for (const player of w.players) {
    player.inventory.slots.forEach((item, slot) => slot > 0 && add(item));
    player.ender.forEach(add);
    add(player.cursor);
    const { openWindow } = player;
    if (openWindow?.station) openWindow.station.items.forEach(add);
    if (openWindow?.kind === 'crafting') openWindow.slots.slice(1, 10).forEach((slot) => add(slot.get()));
  }
  for (const container of w.serv.survival.containers.values()) container.slots.forEach(add);
  for (const drop of w.serv.survival.drops.values()) add(drop.stack);
  return sums;
}

/** Gathers in `made` what recipes add and use, of all windows that open from now on. */
function watch(w, made) {
  const add = (item, count) => {
    if (item && count) made[named(item)] = (made[named(item)] ?? 0) + count;
  };
  const watched = new WeakSet();
  const wrap = (player, window) => {
    if (watched.has(window)) return;
    watched.add(window);
    const slot = window.slots.find((each) => each.result);
    if (!slot || /furnace$|^smoker$/.test(window.kind)) return;
    const { taken } = slot;
    slot.taken = (item) => {
      add(item, item.count);
      const { station } = window;
      if (station) station.made.use.forEach((count, i) => add(station.items[i], -count));
      else {
        const grid = window.slots.slice(1, window.kind === 'crafting' ? 10 : 5);
        for (const cell of grid) {
          const used = cell.get();
          add(used, -1);
          if (used?.name === 'honey_bottle') add({ name: 'glass_bottle' }, 1);
        }
      }
      taken(item);
    };
  };
  for (const player of w.players) {
    wrap(player, player.ownWindow);
    player.on('windowOpened', (window) => wrap(player, window));
  }
  w.serv.on('gamut:enchanted', ({ levels }) => add({ name: 'lapis_lazuli' }, -levels));
}

/** Returns of which names there are more or fewer than there should be, in words. */
function differences(are, should) {
  const names = [...new Set([...Object.keys(are), ...Object.keys(should)])].sort();
  return names.map((name) => [name, (are[name] ?? 0) - (should[name] ?? 0)]).filter(([, more]) => more !== 0)
    .map(([name, more]) => `${more} ${name}`).join();
}

/** Breaks what is in a cell, and puts a block there. */
function put(w, block, [x, y, z]) {
  const [, name, type] = /^(\w+)(?:\[type=(\w+)\])?$/.exec(block);
  w.run(() => {
    w.serv.survival.blocks.setNamed(x, y, z, 'air');
    w.serv.survival.blocks.setNamed(x, y, z, name, type && { type });
  });
}

function click(w, index, i) {
  const player = w.players[index];
  const window = pick(w, [player.openWindow, player.openWindow, player.openWindow, player.ownWindow]) ?? player.ownWindow;
  const own = window.slots.length;
  const slot = pick(w, [whole(w, 0, Math.max(0, window.inventoryStart - 1)), whole(w, -1, own), whole(w, 0, own - 1), -999]);
  const there = window.slots[slot]?.get() ?? null;
  w.bots[index]._client.write('window_click', {
    windowId: window.id,
    slot,
    mouseButton: pick(w, [0, 0, 0, 1, 1, 4, 8, 40, -1]),
    action: i % 30000,
    mode: pick(w, [0, 0, 0, 1, 1, 2, 4, 5, 6, 3]),
    item: w.serv.survival.items.Item.toNotch(pick(w, [there, there, there, null])),
  });
  return `${window.kind} ${slot} ${there?.name}`;
}

/** Shift-clicks something into a window, presses one of its buttons, and clicks its result. */
function work(w, index, i) {
  const player = w.players[index];
  const window = player.openWindow ?? player.ownWindow;
  const client = w.bots[index]._client;
  const send = (slot, mouseButton, mode) => client.write('window_click', {
    windowId: window.id, slot, mouseButton, action: i % 30000, mode,
    item: w.serv.survival.items.Item.toNotch(window.slots[slot].get()),
  });
  const full = window.slots.keys().filter((slot) => slot >= window.inventoryStart && window.slots[slot].get()).toArray();
  if (full.length > 0) {
    if (/^(crafting|inventory)$/.test(window.kind)) {
      send(pick(w, full), 0, 0);
      for (const slot of [1, 2, 4]) if (!window.slots[slot].get() || slot === 1) send(slot, 1, 0);
    } else {
      for (const name of pick(w, LAID[window.kind] ?? [[/./], [/./, /./]])) {
        const fitting = full.filter((slot) => name.test(window.slots[slot].get()?.name));
        if (fitting.length > 0) send(pick(w, fitting), 0, 1);
      }
    }
  }
  if (window.kind === 'anvil') client.write('name_item', { name: pick(w, ['', 'Ada', 'Bo', '"']) });
  if (window.id) client.write('enchant_item', { windowId: window.id, enchantment: whole(w, 0, 3) });
  const result = window.slots.findIndex((slot) => slot.result);
  if (result >= 0) send(result, pick(w, [0, 0, 1, 8]), pick(w, [0, 0, 1, 1, 2, 4]));
  return `work ${window.kind}`;
}

/** What else happens to a player or a window. */
async function happens(w, index, cells, chosen) {
  const client = w.bots[index]._client;
  const player = w.players[index];
  const windowId = player.openWindow?.id ?? 0;
  const [cell, block] = whole(w, 0, 2) ? chosen : pick(w, [...cells]);
  const merchant = [...w.serv.survival.mobs.list.values()].find(({ name, health }) => name === 'villager' && health > 0);
  const event = pick(w, ['open', 'open', 'open', 'open', 'trade', 'trade', 'close', 'press', 'press', 'press', 'press', 'name',
    'dig', 'drop', 'hands', 'break', 'die', 'kill', 'far']);
  if (event === 'open' && block !== 'villager') {
    const [x, y, z] = cell;
    client.write('block_place', { location: new Vec3(x, y, z), direction: 1, hand: 0, cursorX: 0.5, cursorY: 0.5, cursorZ: 0.5, insideBlock: false });
  } else if (/^(open|trade)$/.test(event) && merchant && (block === 'villager' || whole(w, 0, 3) === 0)) {
    client.write('use_entity', { target: merchant.id, mouse: 0, hand: 0, sneaking: false });
  } else if (event === 'close') client.write('close_window', { windowId });
  else if (event === 'press') {
    client.write('enchant_item', { windowId, enchantment: whole(w, -2, 9) });
    client.write('select_trade', { slot: pick(w, [-1, 0, 1, 2, 3, 1e9, -1e9]) });
  } else if (event === 'name') client.write('name_item', { name: pick(w, ['', 'Ada', '"', '\ud800', 'x'.repeat(50000)]) });
  else if (event === 'drop') client.write('block_dig', { status: whole(w, 3, 4), location: new Vec3(0, 0, 0), face: 0 });
  else if (event === 'hands') client.write('block_dig', { status: 6, location: new Vec3(0, 0, 0), face: 0 });
  else if (event === 'break' && block !== 'villager') put(w, block, cell);
  else if (event === 'die' && whole(w, 0, 5) === 0) await w.console(`/kill a${index}`);
  else if (event === 'kill' && whole(w, 0, 3) === 0) {
    for (const mob of [...w.serv.survival.mobs.list.values()]) w.run(() => w.serv.survival.hurt(mob, { amount: 99, cause: 'command' }));
    settle(w);
  } else if (event === 'far' && whole(w, 0, 3) === 0) await w.console(`/tp a${index} 9 4 9`);
  return `${event} ${player.openWindow?.kind} ${block}`;
}

/** Takes away all items there are, and gives each player new ones. */
function renew(w) {
  const { survival } = w.serv;
  for (const player of w.players) {
    player.emit('closeWindows');
    player.clearInventory();
  }
  for (const drop of [...survival.drops.values()]) survival.setDropCount(drop, 0);
  for (const container of survival.containers.values()) container.slots.fill(null);
  for (const player of w.players) {
    player.ender.fill(null);
    player.setXpLevel(100);
    equip(w, player);
  }
}

/** Plays some steps around one block, and checks the sums after each. */
async function round(w, made, cells, chosen, steps) {
  const total = {};
  let before = everything(w);
  for (let i = 0; i < steps; i++) {
    const index = whole(w, 0, 1);
    const what = i % 8 === 0 || !w.players[index].openWindow ? await happens(w, index, cells, chosen)
      : (i % 3 ? click : work)(w, index, i);
    await w.step(1);
    const after = everything(w);
    for (const [name, count] of Object.entries(made)) {
      before[name] = (before[name] ?? 0) + count;
      total[name] = (total[name] ?? 0) + count;
      delete made[name];
    }
    assert.equal(differences(after, before), '', `${chosen[1]}, step ${i}: ${what}`);
    before = after;
  }
  return total;
}

for (const seed of process.env.LONG ? [1, 2, 3, 4, 5, 6] : [1]) {
  test(`clicks in every kind of window make and lose nothing, seed ${seed}`, () =>
    inWorld({ agents: 2, seed, rules: { doMobSpawning: false, doMobLoot: false, doTileDrops: false } }, async (w, bot, player) => {
      await w.console('/fill 3 4 3 14 9 17 air');
      await w.console('/fill 3 3 3 14 3 18 stone');
      await w.console('/tp @a 9 4 8');
      const cells = new Map(BLOCKS.map((block, i) => [[5 + (i % 8), 4, [5, 6, 10, 11][Math.floor(i / 8)]], block]));
      for (const [cell, block] of cells) put(w, block, cell);
      settle(w);
      await w.step(5);
      const made = {};
      watch(w, made);
      const opened = new Set();
      const worked = new Set();
      for (const each of w.players) each.on('windowOpened', ({ kind }) => opened.add(kind));
      for (const chosen of [...cells, [[0, 0, 0], 'villager']]) {
        renew(w);
        await w.step(2);
        const total = await round(w, made, cells, chosen, STEPS);
        if (Object.keys(total).length > 0) worked.add(chosen[1]);
      }
      for (const each of w.players) each.emit('closeWindows');
      await w.step(2);
      assert.equal(player.cursor, null);
      agree(bot, player);
      agree(w.bots[1], w.players[1]);
      assert.ok(opened.size >= 17, [...opened].join());
      assert.ok(worked.size >= 5, [...worked].join());
    }));
}

'use strict';
/** Windows operated by mouse and keys alone. */
const test = require('node:test');
const assert = require('node:assert');
const { begin, play, playUntil, countOf } = require('./actions_help');
const { MOUSE_KEYS } = require('../actions/human');
const { PIXELS } = require('../actions/pointer');
const { Display } = require('../observe/display');
const { makeGameWorld } = require('../gameworld');
const { replay } = require('../snapshot');

const row = (held = [], [down, right] = [0, 0]) => {
  for (const key of held) assert.ok(MOUSE_KEYS.includes(key), key);
  return { keys: MOUSE_KEYS.map((key) => Number(held.includes(key))), camera: [down, right] };
};
const mouse = (items = [], blocks = [], more = {}) => begin({ actions: 'mouse' }, {
  items: items.map(([name, count]) => ({ name, count, slot: null })),
  blocks: blocks.map((name, n) => ({ x: 0, y: n, z: -2, name })), ...more,
});
const pointerOf = (world) => world.agents[0].actor.pointer;
const slotsOf = (world) => pointerOf(world).window.slots;
const stackIn = (world, slot) => {
  const item = slotsOf(world)[slot];
  return item ? [item.name, item.count] : null;
};
/** What a client shows of the window. */
const shown = (world) => world.run(() => new Display(world.agents[0]).look().window);

/** Moves the cursor to a place in the window. */
async function moveTo(world, x, y, held = []) {
  const [atX, atY] = pointerOf(world).place();
  await play(world, row(held, [(y - atY) / PIXELS, (x - atX) / PIXELS]));
}

async function toSlot(world, slot, held = []) {
  const [x, y] = pointerOf(world).layout().slots[slot];
  await moveTo(world, x + 8, y + 8, held);
}

async function press(world, keys) {
  await play(world, row(keys));
  await play(world, row());
}

/** Clicks on a slot. */
async function click(world, slot, keys = ['attack']) {
  await toSlot(world, slot, keys.filter((key) => key === 'sneak'));
  await press(world, keys);
}

async function pressButton(world, number) {
  const { buttons: [left, top, columns, , wide, tall] } = pointerOf(world).layout();
  await moveTo(world, left + wide * (number % columns + 0.5), top + tall * (Math.floor(number / columns) + 0.5));
  await press(world, ['attack']);
}

/** Uses what is in front, and returns the kind of window that opens. */
async function open(world) {
  world.run(() => Object.assign(world.bots[0].entity, { yaw: 0, pitch: -0.55 }));
  await press(world, ['use']);
  return pointerOf(world).layout().kind;
}

test('a pickaxe is made from a log with mouse and keys alone', async () => {
  const world = await mouse([['oak_log', 3]]);
  world.run(() => Object.assign(world.bots[0].entity, { yaw: 0, pitch: 0 }));
  await press(world, ['inventory']);
  await click(world, 36);
  await click(world, 1);
  assert.deepStrictEqual(stackIn(world, 0), ['oak_planks', 4]);
  await click(world, 0, ['sneak', 'attack']);
  assert.strictEqual(countOf(world, 'oak_planks'), 12);
  // One in each of four cells: the stack is taken and dragged over them with the right button.
  const planks = slotsOf(world).findIndex((item, n) => n > 8 && item?.name === 'oak_planks');
  await click(world, planks);
  await toSlot(world, 1);
  await play(world, row(['use']));
  for (const slot of [2, 4, 3]) await toSlot(world, slot, ['use']);
  await play(world, row());
  assert.deepStrictEqual([1, 2, 3, 4].map((slot) => stackIn(world, slot)?.[1]), [1, 1, 1, 1]);
  assert.strictEqual(pointerOf(world).window.selectedItem.count, 8);
  await click(world, 9);
  assert.deepStrictEqual(stackIn(world, 0), ['crafting_table', 1]);
  await toSlot(world, 0);
  await press(world, ['hotbar.1']);
  assert.deepStrictEqual(stackIn(world, 36), ['crafting_table', 1]);
  // Two planks, one above the other, are sticks.
  await click(world, 9);
  await click(world, 1, ['use']);
  await click(world, 3, ['use']);
  await click(world, 9);
  await click(world, 0, ['sneak', 'attack']);
  assert.strictEqual(countOf(world, 'stick'), 4);
  await press(world, ['inventory']);
  assert.strictEqual(pointerOf(world).window, null);
  // The table is put on the ground and opened.
  world.run(() => Object.assign(world.bots[0].entity, { yaw: 0, pitch: -0.8 }));
  await press(world, ['hotbar.1']);
  await press(world, ['use']);
  assert.strictEqual(countOf(world, 'crafting_table'), 0);
  await press(world, ['use']);
  assert.strictEqual(pointerOf(world).layout().kind, 'crafting');
  const find = (name) => slotsOf(world).findIndex((item, n) => n > 9 && item?.name === name);
  await click(world, find('oak_planks'));
  for (const slot of [1, 2, 3]) await click(world, slot, ['use']);
  await click(world, 20);
  await click(world, find('stick'));
  for (const slot of [5, 8]) await click(world, slot, ['use']);
  await click(world, 21);
  assert.deepStrictEqual(stackIn(world, 0), ['wooden_pickaxe', 1]);
  await click(world, 0);
  await click(world, 30);
  await press(world, ['inventory']);
  assert.strictEqual(countOf(world, 'wooden_pickaxe'), 1);
  world.close();
});

test('a furnace smelts what the cursor puts into it', async () => {
  const world = await mouse([['beef', 1], ['coal', 2]], ['furnace']);
  assert.strictEqual(await open(world), 'furnace');
  await click(world, 30, ['sneak', 'attack']);
  await click(world, 31, ['sneak', 'attack']);
  assert.deepStrictEqual(stackIn(world, 0), ['beef', 1]);
  await play(world, row(), 100);
  const [[, , , , cooked], [, , , , burning]] = shown(world).bars;
  assert.ok(cooked > 0.4 && cooked < 0.6 && burning > 0.9, JSON.stringify([cooked, burning]));
  await playUntil(world, row(), () => stackIn(world, 2) !== null);
  await click(world, 2, ['sneak', 'attack']);
  await press(world, ['inventory']);
  assert.strictEqual(countOf(world, 'cooked_beef'), 1);
  world.close();
});

test('a chest: a stack is shared among slots, swapped by number and thrown', async () => {
  const world = await mouse([['dirt', 10], ['stone', 5]], ['chest']);
  assert.strictEqual(await open(world), 'generic_9x3');
  const hotbar = 54;
  await click(world, hotbar);
  await toSlot(world, 0);
  await play(world, row(['attack']));
  await toSlot(world, 2, ['attack']);
  await play(world, row());
  assert.deepStrictEqual([0, 1, 2].map((slot) => stackIn(world, slot)), [['dirt', 3], ['dirt', 3], ['dirt', 3]]);
  assert.strictEqual(pointerOf(world).window.selectedItem.count, 1);
  await moveTo(world, -40, 20);
  await press(world, ['attack']);
  assert.strictEqual(pointerOf(world).window.selectedItem, null, 'thrown');
  await toSlot(world, 5);
  await press(world, ['hotbar.2']);
  assert.deepStrictEqual(stackIn(world, 5), ['stone', 5]);
  await press(world, ['drop']);
  assert.deepStrictEqual(stackIn(world, 5), ['stone', 4]);
  assert.strictEqual(shown(world).over, 5);
  assert.strictEqual(world.bots[0].quickBarSlot, 0, 'the hotbar keys select nothing meanwhile');
  world.close();
});

test('what the cursor carries and what lies in the grid comes back', async () => {
  const world = await mouse([['oak_log', 5]]);
  await press(world, ['inventory']);
  await click(world, 36);
  await click(world, 1, ['use']);
  await press(world, ['inventory']);
  assert.strictEqual(countOf(world, 'oak_log'), 5);
  assert.strictEqual(world.bots[0].inventory.selectedItem, null);
  await press(world, ['inventory']);
  assert.deepStrictEqual(pointerOf(world).place(), [88, 83], 'the cursor begins in the middle');
  assert.strictEqual(shown(world).title, 'Crafting');
  world.close();
});

const STATIONS = [
  ['anvil', 'anvil', [['iron_sword', 1]], 0, 30],
  ['grindstone', 'grindstone', [['iron_sword', 1]], 0, 30],
  ['smithing_table', 'anvil', [['diamond_sword', 1], ['netherite_ingot', 1]], 0, 30],
  ['brewing_stand', 'brewing_stand', [['blaze_powder', 3]], 4, 32],
  ['hopper', 'hopper', [['dirt', 3]], 0, 32],
  ['dispenser', 'generic_3x3', [['dirt', 3]], 0, 36],
  ['barrel', 'generic_9x3', [['dirt', 3]], 0, 54],
];
for (const [block, kind, items, into, hotbar] of STATIONS) {
  test(`${block}: an item is put into it`, async () => {
    const world = await mouse(items, [block]);
    assert.strictEqual(await open(world), kind);
    await click(world, hotbar);
    await click(world, into);
    const [name, count] = items[0];
    const there = world.players[0].openWindow.slots[into].get();
    assert.ok(there ? there.name === name : name === 'blaze_powder', `${there?.name} x ${there?.count} of ${count}`);
    assert.strictEqual(shown(world).places.length, 2 * slotsOf(world).length);
    world.close();
  });
}

test('a stonecutter: a button chooses', async () => {
  const world = await mouse([['stone', 2]], ['stonecutter']);
  assert.strictEqual(await open(world), 'stonecutter');
  await click(world, 29, ['sneak', 'attack']);
  await pressButton(world, 2);
  assert.ok(shown(world).buttons[2].chosen);
  assert.deepStrictEqual(stackIn(world, 1), ['stone_bricks', 1]);
  await click(world, 1, ['sneak', 'attack']);
  await press(world, ['inventory']);
  assert.strictEqual(countOf(world, 'stone_bricks'), 2);
  world.close();
});

test('a loom: its buttons scroll', async () => {
  const world = await mouse([['white_banner', 1], ['red_dye', 1]], ['loom']);
  assert.strictEqual(await open(world), 'loom');
  for (const slot of [31, 32]) await click(world, slot, ['sneak', 'attack']);
  const before = shown(world).buttons.map(({ text }) => text);
  const [x, y, wide, tall] = pointerOf(world).layout().scroll;
  await moveTo(world, x + wide / 2, y + tall - 2);
  await press(world, ['attack']);
  assert.notDeepStrictEqual(shown(world).buttons.map(({ text }) => text), before);
  await pressButton(world, 0);
  assert.strictEqual(stackIn(world, 3)[0], 'white_banner');
  world.close();
});

test('an enchanting table: a button enchants', async () => {
  const world = await mouse([['iron_sword', 1], ['lapis_lazuli', 3]], ['enchanting_table'],
    { state: { experience: 30 } });
  assert.strictEqual(await open(world), 'enchantment');
  for (const slot of [29, 30]) await click(world, slot, ['sneak', 'attack']);
  assert.ok(shown(world).buttons[0].able, JSON.stringify(shown(world).buttons));
  await pressButton(world, 0);
  assert.strictEqual(slotsOf(world)[0].enchants.length > 0, true);
  world.close();
});

test('a villager: an offer is chosen, paid and taken', async () => {
  const world = await mouse([['rotten_flesh', 64]]);
  await world.run(async () => {
    const mob = world.serv.survival.spawnMob('villager', world.origin.offset(0.5, 0, -1.5),
      { merchant: { profession: 'cleric', level: 1 } });
    mob.ai = null;
    await world.settle();
  });
  await play(world, row(), 3);
  assert.strictEqual(await open(world), 'merchant');
  const { registry } = world.bots[0];
  const offer = shown(world).buttons.findIndex(({ items }) => items[0] === registry.itemsByName.rotten_flesh.id);
  await pressButton(world, offer);
  assert.strictEqual(stackIn(world, 2)?.[0], 'emerald');
  await click(world, 2, ['sneak', 'attack']);
  await press(world, ['inventory']);
  assert.ok(countOf(world, 'emerald') >= 1);
  world.close();
});

test('pickItem takes the block that is looked at into the hand', async () => {
  const world = await mouse([['dirt', 1], ['stone', 2]], ['oak_log', 'stone']);
  await world.run(async () => {
    world.players[0].setSlot(20, world.serv.survival.items.make('oak_log', 3));
    await world.settle();
  });
  world.run(() => Object.assign(world.bots[0].entity, { yaw: 0, pitch: 0 }));
  await press(world, ['pickItem']);
  assert.strictEqual(world.bots[0].heldItem.name, 'stone');
  world.run(() => Object.assign(world.bots[0].entity, { yaw: 0, pitch: -0.55 }));
  await press(world, ['pickItem']);
  assert.deepStrictEqual([world.bots[0].heldItem?.name, world.bots[0].heldItem?.count], ['oak_log', 3]);
  world.close();
});

test('a restored world shows the same window, cursor and swing of the arm', async () => {
  const rgb = { width: 128, height: 128, hud: true };
  const items = [{ name: 'oak_log', count: 3, slot: null }, { name: 'golden_apple', count: 1, slot: null }];
  const look = (world) => world.run(() => world.agents[0].display.look());
  for (const steps of [['attack'], ['inventory', '', 'attack', ''], ['hotbar.2', 'use', 'use', 'use']]) {
    const world = await begin({ actions: 'mouse', rgb }, { items });
    for (const key of steps) await play(world, row(key === '' ? [] : [key], [3, 2]));
    const again = await replay(makeGameWorld, world.config, world.snapshot());
    assert.deepStrictEqual(look(again), look(world), steps.join(' '));
    const { swing, window, eating } = look(world);
    assert.ok(swing < 1 || window !== null || eating > 0, steps.join(' '));
    for (const each of [world, again]) each.close();
  }
});

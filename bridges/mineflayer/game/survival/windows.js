'use strict';

/**
 * Windows: a player's own and the open one of a chest, a table, a villager ...; clicks in them are
 * answered with `transaction` and then the actual slots.
 *
 * `serv.survival.openWindow(player, {kind, title, slots, place, cells, near, quick, closed, viewed})` opens
 * one over `slots` (see clicks.js): `kind` is a name of prismarine-windows, `place` the block, `cells`
 * the blocks whose contents the slots are, and
 * `near()` the position (null: gone) that its owner must be near to. `player.openWindow` is it or null;
 * `player.closeWindow()` closes it, and the item at the cursor is returned to the player.
 *
 * 'gamut:opened' {player, kind, block, place}; 'gamut:stored' {player, block, cells, item, count}: what
 * the clicks of a player have added to contents, less than 0 for what was taken, once nothing is left
 * at the cursor.
 */

const { Clicks } = require('./clicks');
const { wornSlot } = require('./armour');
const { STORAGE, OFF_HAND } = require('./inventory');

const name = 'windows';
const MAIN = [9, 35];
const HOTBAR = [36, 44];
/** A window closes when its owner is farther than this from its block, or the block is gone. */
const FAR = 8;

function range([from, to], shift = 0) {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i + shift);
}

function ownSlot(player, index) {
  const slot = {
    get: () => player.inventory.slots[index] || null,
    set: (item) => player.setSlot(index, item),
  };
  if (index >= 5 && index <= 8) {
    slot.limit = 1;
    slot.accepts = (item) => wornSlot(item.name) === index;
  }
  return slot;
}

/** Shift-click in a player's own window: armour to its slot, else between hotbar and inventory. */
function quickOwn(player, index, item) {
  if (index < 9 || index === OFF_HAND) return STORAGE.slice().sort((a, b) => a - b);
  const worn = wornSlot(item.name);
  if (worn > 0 && !player.inventory.slots[worn]) return [worn];
  if (item.name === 'shield' && !player.inventory.slots[OFF_HAND]) return [OFF_HAND];
  return range(index >= HOTBAR[0] ? MAIN : HOTBAR);
}

function ownWindow(player) {
  const slots = Array.from({ length: 46 }, (_, i) => ownSlot(player, i));
  return {
    id: 0,
    kind: 'inventory',
    slots,
    player,
    inventoryStart: 9,
    quick: (i, item) => quickOwn(player, i, item),
  };
}

function over(player, spec, id) {
  const inventoryStart = spec.slots.length;
  const own = [...range(MAIN), ...range(HOTBAR)].map((i) => ownSlot(player, i));
  const shift = inventoryStart - 9;
  const quick = (index, item) => {
    if (index < inventoryStart)
      return [...range(HOTBAR, shift).reverse(), ...range(MAIN, shift).reverse()];
    const preferred = spec.quick ? spec.quick(item) : range([0, inventoryStart - 1]);
    if (preferred.length) return preferred;
    return index >= HOTBAR[0] + shift ? range(MAIN, shift) : range(HOTBAR, shift);
  };
  return { ...spec, id, player, slots: [...spec.slots, ...own], inventoryStart, quick };
}

function sendAll(serv, window) {
  const { Item } = serv.survival.items;
  window.player._client.write('window_items', {
    windowId: window.id,
    items: window.slots.map((slot) => Item.toNotch(slot.get())),
  });
}

/** Sends one slot of the open window's own part. */
function sendOne(serv, window, index) {
  window.player._client.write('set_slot', {
    windowId: window.id,
    slot: index,
    item: serv.survival.items.Item.toNotch(window.slots[index].get()),
  });
}

const blockAt = (serv, { x, y, z }) => serv.survival.blocks.at(x, y, z).id;

function open(serv, player, spec) {
  player.closeWindow();
  player.windowCount = (player.windowCount % 100) + 1;
  player.openWindow = over(player, spec, player.windowCount);
  const block = spec.place ? serv.survival.blocks.at(spec.place.x, spec.place.y, spec.place.z) : null;
  Object.assign(player.openWindow, { block: block?.id, blockName: block?.name, moved: new Map() });
  player._client.write('open_window', {
    windowId: player.openWindow.id,
    inventoryType: serv.survival.windowTypes[`minecraft:${spec.kind}`].type,
    windowTitle: JSON.stringify({ text: spec.title }),
  });
  sendAll(serv, player.openWindow);
  if (spec.viewed) spec.viewed(player, true);
  player.emit('windowOpened', player.openWindow);
  serv.emit('gamut:opened', { player, kind: spec.kind, block: block?.name ?? null, place: spec.place ?? null });
}

function close(serv, player) {
  const window = player.openWindow;
  player.openWindow = null;
  if (window && window.viewed) window.viewed(player, false);
  if (window && window.closed) window.closed(player);
  player.emit('windowClosed');
  if (window?.cells) settle(serv, player, window);
  if (player.cursor) {
    const { cursor } = player;
    player.cursor = null;
    serv.survival.giveOrToss(player, cursor);
  }
}

/** Adds what a click has changed of a window's contents to the sums by item. */
function count(window, before) {
  before.forEach((old, index) => {
    const now = window.slots[index].get();
    if (old === now) return;
    if (old) window.moved.set(old.name, (window.moved.get(old.name) ?? 0) - old.count);
    if (now) window.moved.set(now.name, (window.moved.get(now.name) ?? 0) + now.count);
  });
}

/** Says what the clicks so far have moved into or out of a window's contents. */
function settle(serv, player, { moved, blockName: block, cells }) {
  for (const [item, change] of moved) {
    if (change !== 0) serv.emit('gamut:stored', { player, block, cells, item, count: change });
  }
  moved.clear();
}

/**
 * Whether a click means what the slot holds. Another player may have been there first; the client
 * would then put at its cursor what it no longer gets.
 */
function seesSlot(window, { slot: index, mode, item }) {
  const slot = window.slots[index];
  if (mode !== 0 || !slot) return true;
  const there = slot.get();
  if (!there) return !item?.present;
  return Boolean(item?.present) && item.itemId === there.type && item.itemCount === there.count;
}

function onClick(serv, player, packet) {
  const window = packet.windowId === 0 ? player.ownWindow : player.openWindow;
  const answer = (accepted) =>
    player._client.write('transaction', {
      windowId: (packet.windowId << 24) >> 24, // a signed byte here, an unsigned one in the click
      action: packet.action,
      accepted,
    });
  if (!window || window.id !== packet.windowId || player.health <= 0) {
    answer(false);
    return;
  }
  const before = window.slots.slice(0, window.inventoryStart).map((slot) => slot.get());
  let accepted = false;
  player.holdSlots(() => {
    accepted = seesSlot(window, packet) && serv.survival.clicks.click(window, packet);
    player.emit('clicked', window);
  });
  if (window.cells) {
    count(window, before);
    if (!player.cursor) settle(serv, player, window);
  }
  answer(accepted);
  // For a shift-click or a number key, client and server may differ: the whole window is sent.
  if (!accepted || packet.mode === 1 || packet.mode === 2) {
    player.sendHeld();
    sendAll(serv, window);
    return;
  }
  player.sendHeld();
  if (window.id === 0) return;
  before.forEach((item, index) => {
    if (item !== window.slots[index].get()) sendOne(serv, window, index);
  });
}

function closeIfOut(serv, player) {
  const { place, block, near } = player.openWindow;
  const at = place ? place.offset(0.5, 0.5, 0.5) : near ? near() : player.position;
  const same = !place || blockAt(serv, place) === block;
  if (at && player.position.distanceTo(at) <= FAR && same) return;
  player._client.write('close_window', { windowId: player.openWindow.id });
  player.closeWindow();
}

function server(serv) {
  const { survival } = serv;
  survival.clicks = new Clicks(survival);
  survival.windowTypes = require('prismarine-windows')(serv.registry).windows;
  survival.openWindow = (player, spec) => open(serv, player, spec);
  survival.sendWindowSlot = (window, index) => sendOne(serv, window, index);
  survival.giveOrToss = (player, item) => {
    const left = player.give(item);
    if (left) survival.toss(player, survival.items.copy(item, left));
  };
  survival.onTick(() => {
    for (const player of serv.players) if (player.openWindow) closeIfOut(serv, player);
  });
}

function player(player, serv) {
  player.cursor = null;
  player.openWindow = null;
  player.windowCount = 0;
  player.ownWindow = ownWindow(player);
  player.closeWindow = () => close(serv, player);
  player._client.on('window_click', (packet) => onClick(serv, player, packet));
  player._client.on('close_window', () => close(serv, player));
  player.on('closeWindows', () => {
    if (player.openWindow) player._client.write('close_window', { windowId: player.openWindow.id });
    close(serv, player);
  });
  player.on('disconnected', () => {
    if (player.openWindow && player.openWindow.viewed) player.openWindow.viewed(player, false);
    player.openWindow = null;
  });
}

function savePlayer(player, serv) {
  return { cursor: serv.survival.items.toJson(player.cursor) };
}

/** A restore closes windows; the item at the cursor goes to the inventory. */
function loadPlayer(player, serv, data) {
  if (player.openWindow) {
    player._client.write('close_window', { windowId: player.openWindow.id });
    if (player.openWindow.viewed) player.openWindow.viewed(player, false);
    player.openWindow = null;
  }
  player.cursor = null;
  const cursor = data && serv.survival.items.fromJson(data.cursor);
  if (cursor) player.give(cursor);
}

module.exports = { name, server, player, savePlayer, loadPlayer };

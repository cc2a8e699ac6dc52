'use strict';

/**
 * A player's items: `player.inventory` (46 slots as in window 0) is authoritative; every change is
 * sent to the owner's windows and, where visible, to the others.
 *
 * On players: `give(item)` returns how many did not fit, `take(name, count)`, `heldSlot()`,
 * `heldStack()`, `setSlot(slot, item)`, `wearSlot(slot, points)`, `wornItems()`,
 * `clearInventory()`.
 */

const name = 'inventory';
const HOTBAR = 36;
const OFF_HAND = 45;
/** Equipment numbers of the protocol: main hand, off hand, feet, legs, body, head. */
const WORN = { 45: 1, 8: 2, 7: 3, 6: 4, 5: 5 };
/** entity_status of a worn slot that breaks. */
const BREAK = { 45: 48, 5: 49, 6: 50, 7: 51, 8: 52 };
const STORAGE = [
  ...Array.from({ length: 9 }, (_, i) => HOTBAR + i),
  ...Array.from({ length: 27 }, (_, i) => 9 + i),
];

/** Sends an owner's slot to window 0 and to the window that is open. */
function sendSlot(player, serv, slot) {
  const item = serv.survival.items.Item.toNotch(player.inventory.slots[slot]);
  player._client.write('set_slot', { windowId: 0, slot, item });
  const { openWindow } = player;
  if (openWindow && slot >= 9 && slot < OFF_HAND) {
    const shifted = slot - 9 + openWindow.inventoryStart;
    player._client.write('set_slot', { windowId: openWindow.id, slot: shifted, item });
  }
}

function showWorn(player, serv, number, item) {
  const { items } = serv.survival;
  serv.survival.broadcast(
    player,
    'entity_equipment',
    {
      entityId: player.id,
      equipments: [{ slot: number, item: items.Item.toNotch(item) }],
    },
    false,
  );
}

function giveTo(player, serv, stack) {
  const { items } = serv.survival;
  const { slots } = player.inventory;
  let left = stack.count;
  const held = HOTBAR + player.heldItemSlot;
  for (const slot of [held, OFF_HAND, ...STORAGE]) {
    if (left === 0) return 0;
    const there = slots[slot];
    if (!items.same(there, stack) || there.count >= there.stackSize) continue;
    const moved = Math.min(left, there.stackSize - there.count);
    player.setSlot(slot, items.copy(there, there.count + moved));
    left -= moved;
  }
  for (const slot of STORAGE) {
    if (left === 0) return 0;
    if (slots[slot]) continue;
    const moved = Math.min(left, stack.stackSize);
    player.setSlot(slot, items.copy(stack, moved));
    left -= moved;
  }
  return left;
}

function takeFrom(player, serv, itemName, count) {
  const { items } = serv.survival;
  let taken = 0;
  for (let slot = 0; slot < player.inventory.slots.length && taken < count; slot++) {
    const there = player.inventory.slots[slot];
    if (!there || slot === 0 || (itemName && there.name !== itemName)) continue;
    const moved = Math.min(count - taken, there.count);
    player.setSlot(slot, there.count > moved ? items.copy(there, there.count - moved) : null);
    taken += moved;
  }
  return taken;
}

function methods(player, serv) {
  const { items } = serv.survival;
  player.heldSlot = () => HOTBAR + player.heldItemSlot;
  player.heldStack = () => player.inventory.slots[player.heldSlot()] || null;
  player.setSlot = (slot, item) =>
    player.inventory.updateSlot(slot, item && item.count > 0 ? item : null);
  /**
   * Runs `work` while the owner's slot packets are held back, and returns a function that sends
   * them.
   */
  player.holdSlots = (work) => {
    player.held = new Set();
    try {
      work();
    } finally {
      const changed = player.held;
      player.held = null;
      player.sendHeld = () => changed.forEach((slot) => sendSlot(player, serv, slot));
    }
  };
  player.give = (stack) => giveTo(player, serv, stack);
  player.take = (itemName, count = Infinity) => takeFrom(player, serv, itemName, count);
  player.clearInventory = () => player.take(null);
  player.useUp = (slot, count = 1) => {
    const there = player.inventory.slots[slot];
    player.setSlot(slot, there.count > count ? items.copy(there, there.count - count) : null);
  };
  player.wearSlot = (slot, points) => {
    const there = player.inventory.slots[slot];
    if (!there || !there.maxDurability || player.gameMode === 1) return;
    const worn = items.wear(there, points);
    player.setSlot(slot, worn);
    if (worn) return;
    serv.survival.broadcast(player, 'entity_status', {
      entityId: player.id,
      entityStatus: BREAK[slot] ?? 47,
    });
    serv.emit('gamut:broke', { player, item: there.name });
  };
  /** Returns the visible equipment of a player, by the protocol's numbers (0 main hand to 5 head). */
  player.wornItems = () => {
    const { slots } = player.inventory;
    return [player.heldStack(), slots[OFF_HAND], slots[8], slots[7], slots[6], slots[5]];
  };
}

function watch(player, serv) {
  player.inventory.on('updateSlot', (slot, old, item) => {
    if (player.held) player.held.add(slot);
    else sendSlot(player, serv, slot);
    const number = slot === player.heldSlot() ? 0 : WORN[slot];
    if (number !== undefined) showWorn(player, serv, number, item);
    player.emit('inventoryChanged', slot, old, item);
  });
  player._client.on('held_item_slot', ({ slotId } = {}) => {
    if (!(slotId >= 0 && slotId < 9) || slotId === player.heldItemSlot) return;
    player.heldItemSlot = slotId;
    showWorn(player, serv, 0, player.heldStack());
    player.emit('heldChanged');
  });
  player._client.on('set_creative_slot', ({ slot, item } = {}) => {
    if (player.gameMode !== 1 || !(slot > 0 && slot <= OFF_HAND)) return;
    player.setSlot(slot, serv.survival.items.Item.fromNotch(item));
  });
}

function player(player, serv) {
  const windows = require('prismarine-windows')(serv.registry);
  player.heldItemSlot = 0;
  player.held = null;
  player.inventory = windows.createWindow(1, 'minecraft:inventory', 'inv', 36);
  methods(player, serv);
  watch(player, serv);
}

function savePlayer(player, serv) {
  const { items } = serv.survival;
  return { slots: player.inventory.slots.map(items.toJson), held: player.heldItemSlot };
}

function loadPlayer(player, serv, data) {
  const { items } = serv.survival;
  for (let slot = 0; slot <= OFF_HAND; slot++) {
    const item = data ? items.fromJson(data.slots[slot]) : null;
    if (item || player.inventory.slots[slot]) player.setSlot(slot, item);
  }
  const held = data ? data.held : 0;
  player.heldItemSlot = held;
  player._client.write('held_item_slot', { slot: held });
}

module.exports = { name, player, savePlayer, loadPlayer, HOTBAR, OFF_HAND, STORAGE };

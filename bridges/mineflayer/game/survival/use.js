'use strict';

/**
 * The right mouse button: what a block, an item and an entity do when used, in the order of the
 * game (the block first unless its user sneaks with something in hand, then the item).
 *
 * - `onUseBlock(names, fn)`: `fn({player, x, y, z, info, face, hand})` returns whether it did
 *   something
 * - `onUseItemOn(names, fn)`: `fn({..., slot, item, cursor})`, an item used on a block
 * - `onUseItem(names, fn)`: `fn({player, slot, item, hand})`, an item used in the air
 * - `onUseEntity(fn)`: `fn({player, entity, slot, item})`
 * - `player.using`: null or {kind, slot, since}; `player.stopUsing()`
 *
 * Also Q (drop), Ctrl-Q, F (swap hands) and the release of the button.
 */

const { FACES } = require('./blocks');
const { HOTBAR, OFF_HAND } = require('./inventory');

const name = 'use';
/** Reach of 6 blocks from the eyes, as Mojang's server allows for use. */
const REACH = 6;
const EYES = 1.62;

function withinReach(player, x, y, z, reach = REACH) {
  const dx = player.position.x - (x + 0.5);
  const dy = player.position.y + EYES - (y + 0.5);
  const dz = player.position.z - (z + 0.5);
  return dx * dx + dy * dy + dz * dz <= (reach + 1) * (reach + 1);
}

function slotOf(player, hand) {
  return hand === 1 ? OFF_HAND : HOTBAR + player.heldItemSlot;
}

function onBlockPlace(serv, player, packet) {
  const { survival } = serv;
  const { location, direction, hand = 0 } = packet;
  const { x, y, z } = location;
  if (player.health <= 0 || !withinReach(player, x, y, z)) return;
  const slot = slotOf(player, hand);
  const item = player.inventory.slots[slot] || null;
  const info = survival.blocks.at(x, y, z);
  const cursor = { x: packet.cursorX, y: packet.cursorY, z: packet.cursorZ };
  const call = { player, x, y, z, info, face: direction, hand, slot, item, cursor };
  const sneaksWithItem =
    player.crouching && (player.heldStack() || player.inventory.slots[OFF_HAND]);
  const useBlock = survival.blockUses.get(info.name);
  let done = Boolean(!sneaksWithItem && useBlock && player.gameMode !== 3 && useBlock(call));
  if (!done && item && player.gameMode < 2) {
    const useOn = survival.itemUsesOn.get(item.name) || survival.placeBlock;
    done = Boolean(useOn(call));
  }
  answer(survival, player, call);
}

/**
 * The client waits for updates of the block it clicked and then of the one across the face, changed
 * or not.
 */
function answer(survival, player, { x, y, z, face }) {
  const [dx, dy, dz] = FACES[face] || [0, 1, 0];
  survival.blocks.resend(player, x, y, z);
  survival.blocks.resend(player, x + dx, y + dy, z + dz);
}

function onUseItem(serv, player, { hand = 0 } = {}) {
  if (player.health <= 0 || player.gameMode === 3) return;
  const slot = slotOf(player, hand);
  const item = player.inventory.slots[slot];
  const use = item && serv.survival.itemUses.get(item.name);
  if (use) use({ player, slot, item, hand });
}

function onUseEntity(serv, player, { target, mouse, hand = 0 } = {}) {
  const entity = serv.entities[target];
  if (!entity || player.health <= 0 || player.gameMode === 3) return;
  if (entity.position.distanceTo(player.position) > REACH) return;
  if (mouse === 1) {
    player.emit('attacks', entity);
    return;
  }
  const slot = slotOf(player, hand);
  const item = player.inventory.slots[slot] || null;
  for (const use of serv.survival.entityUses) if (use({ player, entity, slot, item, hand })) return;
}

function dropHeld(serv, player, all) {
  const slot = player.heldSlot();
  const item = player.inventory.slots[slot];
  if (!item) return;
  const count = all ? item.count : 1;
  serv.survival.toss(player, serv.survival.items.copy(item, count));
  player.useUp(slot, count);
}

function onButtons(serv, player, { status }) {
  if (player.health <= 0) return;
  if (status === 3 || status === 4) dropHeld(serv, player, status === 3);
  else if (status === 5) {
    if (player.using) player.emit('releases', player.using);
    player.stopUsing();
  } else if (status === 6) {
    const slot = player.heldSlot();
    const held = player.inventory.slots[slot];
    player.setSlot(slot, player.inventory.slots[OFF_HAND]);
    player.setSlot(OFF_HAND, held);
  }
}

function table() {
  const handlers = new Map();
  const add = (names, fn) => {
    for (const key of [].concat(names)) handlers.set(key, fn);
  };
  return [handlers, add];
}

function server(serv) {
  const { survival } = serv;
  [survival.blockUses, survival.onUseBlock] = table();
  [survival.itemUsesOn, survival.onUseItemOn] = table();
  [survival.itemUses, survival.onUseItem] = table();
  survival.entityUses = [];
  survival.onUseEntity = (fn) => survival.entityUses.push(fn);
  survival.withinReach = withinReach;
}

function player(player, serv) {
  const client = player._client;
  player.using = null;
  player.stopUsing = () => {
    if (!player.using) return;
    player.using = null;
    player.blockingSince = 0;
  };
  client.on('block_place', (packet) => onBlockPlace(serv, player, packet));
  client.on('use_item', (packet) => onUseItem(serv, player, packet));
  client.on('use_entity', (packet) => onUseEntity(serv, player, packet));
  client.on('block_dig', (packet) => onButtons(serv, player, packet));
  player.on('fresh', () => player.stopUsing());
  player.on('heldChanged', () => {
    if (player.using && player.using.slot !== OFF_HAND) player.stopUsing();
  });
}

function loadPlayer(player) {
  player.stopUsing();
}

module.exports = { name, server, player, loadPlayer, EYES };

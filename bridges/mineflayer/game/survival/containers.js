'use strict';

/**
 * Blocks with contents: those of the table stores.js, and ender chests. Contents stay in the world, are visible to all who have the container
 * open, and drop when the block is removed. A large chest is two containers in one window, each
 * with its own half of the slots.
 *
 * `serv.survival.container(x, y, z)` returns {kind, x, y, z, slots, viewers} or undefined, `viewers`
 * being the number of the container's first slot in the window of each player who has it open;
 * `setContainerSlot(container, index, item)`; `fillContainer(x, y, z, items)` for generators.
 */

const { Vec3 } = require('vec3');
const { halves, isChest, settleChests } = require('./chests');
const { STORES, accepts } = require('./stores');

const name = 'containers';

function keyOf(x, y, z) {
  return `${x},${y},${z}`;
}

function at(survival, x, y, z, make = false) {
  const key = keyOf(x, y, z);
  const found = survival.containers.get(key);
  if (found || !make) return found;
  const kind = survival.blocks.at(x, y, z).name;
  if (!STORES[kind]) return undefined;
  const slots = new Array(STORES[kind].slots).fill(null);
  const container = { kind, x, y, z, slots, viewers: new Map() };
  survival.containers.set(key, container);
  return container;
}

function setSlot(survival, container, index, item) {
  container.slots[index] = item && item.count > 0 ? item : null;
  for (const [player, first] of container.viewers) {
    // The clicking player is updated after the reply to the click.
    if (player.openWindow && !player.held)
      survival.sendWindowSlot(player.openWindow, first + index);
  }
}

function slotsOf(survival, container) {
  return container.slots.map((_, index) => ({
    get: () => container.slots[index],
    set: (item) => setSlot(survival, container, index, item),
    accepts: (item) => accepts(container.kind, index, item),
  }));
}

function showLid(survival, container) {
  if (!isChest(container.kind)) return;
  const { x, y, z, kind } = container;
  const { serv } = survival;
  const near = serv.players.filter((p) => p.loadedChunks[`${x >> 4},${z >> 4}`]);
  serv._writeArray(
    'block_action',
    {
      location: new Vec3(x, y, z),
      byte1: 1,
      byte2: container.viewers.size,
      blockId: serv.registry.blocksByName[kind].id,
    },
    near,
  );
}

/** Whether a lid cannot open, under an opaque block. */
function blocked(survival, name, [x, y, z]) {
  return isChest(name) && survival.blocks.at(x, y + 1, z).suffocates;
}

function openChest(survival, { player, x, y, z, info }) {
  const cells = halves(survival.blocks, x, y, z);
  if (cells.some((cell) => blocked(survival, info.name, cell))) return true;
  const containers = cells.map((cell) => at(survival, ...cell, true));
  const large = containers.length > 1;
  survival.openWindow(player, {
    kind: large ? 'generic_9x6' : STORES[info.name].window,
    title: large ? 'Large Chest' : info.def.displayName,
    place: new Vec3(x, y, z),
    cells,
    slots: containers.flatMap((container) => slotsOf(survival, container)),
    viewed: (viewer, opens) => {
      let first = 0;
      for (const container of containers) {
        if (opens) container.viewers.set(viewer, first);
        else container.viewers.delete(viewer);
        first += container.slots.length;
        showLid(survival, container);
      }
    },
  });
  return true;
}

/** The ender chest of a player: the same wherever it is opened. */
function openEnder(survival, { player, x, y, z, info }) {
  survival.openWindow(player, {
    kind: 'generic_9x3',
    title: info.def.displayName,
    place: new Vec3(x, y, z),
    cells: [[x, y, z]],
    slots: player.ender.map((_, index) => ({
      get: () => player.ender[index],
      set: (item) => {
        player.ender[index] = item && item.count > 0 ? item : null;
      },
    })),
  });
  return true;
}

/** Drops the contents of a container and closes it for all viewers. */
function empty(survival, container) {
  survival.containers.delete(keyOf(container.x, container.y, container.z));
  for (const player of [...container.viewers.keys()]) {
    player._client.write('close_window', { windowId: player.openWindow.id });
    player.closeWindow();
  }
  for (const item of container.slots) {
    if (item) survival.popItem(container.x, container.y, container.z, item);
  }
}

function server(serv) {
  const { survival } = serv;
  survival.containers = new Map();
  survival.container = (x, y, z) => at(survival, x, y, z, true);
  survival.containerSlots = (container) => slotsOf(survival, container);
  survival.setContainerSlot = (container, index, item) => setSlot(survival, container, index, item);
  survival.fillContainer = (x, y, z, items) => {
    const container = at(survival, x, y, z, true);
    items.forEach((item, index) => {
      if (item) setSlot(survival, container, index, survival.items.make(item.name, item.count));
    });
  };
  const plain = Object.keys(STORES).filter((kind) => !STORES[kind].own);
  survival.onUseBlock(plain, (call) => openChest(survival, call));
  survival.onUseBlock('ender_chest', (call) => openEnder(survival, call));
  survival.blocks.onChange((x, y, z, old, now) => {
    if (!STORES[old.name] || old.name === now.name) return;
    const container = at(survival, x, y, z);
    if (container) empty(survival, container);
  });
  settleChests(survival.blocks);
}

/** Returns every container with its contents; furnaces with their fire. */
function save(serv) {
  const { survival } = serv;
  return [...survival.containers.values()].map(({ slots, ...rest }) => ({
    ...rest,
    viewers: undefined,
    slots: slots.map(survival.items.toJson),
  }));
}

function load(serv, data) {
  const { survival } = serv;
  survival.containers.clear();
  for (const { slots, ...rest } of data || []) {
    const container = { ...rest, slots: slots.map(survival.items.fromJson), viewers: new Map() };
    survival.containers.set(keyOf(rest.x, rest.y, rest.z), container);
  }
}

function player(player) {
  player.ender = new Array(27).fill(null);
}

function savePlayer(player, serv) {
  return player.ender.map(serv.survival.items.toJson);
}

function loadPlayer(player, serv, data) {
  player.ender = data ? data.map(serv.survival.items.fromJson) : new Array(27).fill(null);
}

module.exports = { name, server, player, save, load, savePlayer, loadPlayer };

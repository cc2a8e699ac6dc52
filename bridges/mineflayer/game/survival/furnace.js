'use strict';

/**
 * Furnaces, blast furnaces and smokers: 200 or 100 ticks an item, also when nobody has them open;
 * slots 0 input, 1 fuel, 2 output (Minecraft Wiki, "Furnace"). The player who takes the output gets
 * the experience.
 */

const { Vec3 } = require('vec3');
const { smelted, burnTime } = require('./smelting');

const name = 'furnace';
const KINDS = ['furnace', 'blast_furnace', 'smoker'];
const [IN, FUEL, OUT] = [0, 1, 2];

function timeOf(kind) {
  return kind === 'furnace' ? 200 : 100;
}

function prepare(container) {
  container.burn ??= 0;
  container.burnTotal ??= 0;
  container.cook ??= 0;
  container.xp ??= 0;
  return container;
}

function outcome(survival, furnace) {
  const item = furnace.slots[IN];
  const found = item && smelted(furnace.kind, item.name);
  if (!found) return null;
  const there = furnace.slots[OUT];
  if (there && (there.name !== found.item || there.count >= there.stackSize)) return null;
  return found;
}

function less(survival, furnace, index) {
  const item = furnace.slots[index];
  survival.setContainerSlot(
    furnace,
    index,
    item.count > 1 ? survival.items.copy(item, item.count - 1) : null,
  );
}

function kindle(survival, furnace) {
  const fuel = furnace.slots[FUEL];
  const time = fuel ? burnTime(fuel.name) : 0;
  if (!time) return;
  furnace.burn = furnace.burnTotal = Math.floor((time * timeOf(furnace.kind)) / 200);
  if (fuel.name === 'lava_bucket')
    survival.setContainerSlot(furnace, FUEL, survival.items.make('bucket'));
  else less(survival, furnace, FUEL);
}

function finish(survival, furnace, made) {
  const there = furnace.slots[OUT];
  const item = there ? survival.items.copy(there, there.count + 1) : survival.items.make(made.item);
  survival.setContainerSlot(furnace, OUT, item);
  less(survival, furnace, IN);
  furnace.xp += made.xp;
}

function light(survival, furnace, lit) {
  const { x, y, z } = furnace;
  const info = survival.blocks.at(x, y, z);
  survival.blocks.set(x, y, z, survival.blocks.changed(info, { lit }));
}

function show(furnace) {
  const values = [furnace.burn, furnace.burnTotal, furnace.cook, timeOf(furnace.kind)];
  for (const player of furnace.viewers.keys()) {
    // The totals are sent first: the client computes the shares from them.
    for (const property of [1, 3, 0, 2]) {
      player._client.write('craft_progress_bar', {
        windowId: player.openWindow.id,
        property,
        value: Math.min(32767, values[property]),
      });
    }
  }
}

/** Runs one tick; returns whether anything is left to do. */
function tickFurnace(survival, furnace) {
  const burned = furnace.burn > 0;
  if (burned) furnace.burn--;
  const made = outcome(survival, furnace);
  if (furnace.burn === 0 && made) kindle(survival, furnace);
  if (furnace.burn > 0 && made) {
    if (++furnace.cook >= timeOf(furnace.kind)) {
      furnace.cook = 0;
      finish(survival, furnace, made);
    }
  } else {
    furnace.cook = made ? Math.max(0, furnace.cook - 2) : 0;
  }
  const burns = furnace.burn > 0;
  if (burns !== burned) light(survival, furnace, burns);
  show(furnace);
  return burns || furnace.cook > 0;
}

function slots(serv, player, furnace) {
  const { survival } = serv;
  const [input, fuel, output] = survival.containerSlots(furnace);
  const first = { ...input };
  // A different input starts from zero.
  first.set = (item) => {
    if (!item || !survival.items.same(item, input.get())) furnace.cook = 0;
    input.set(item);
  };
  const wake = (slot) => ({
    ...slot,
    set: (item) => {
      slot.set(item);
      survival.furnaces.add(furnace);
    },
  });
  return [
    wake(first),
    wake(fuel),
    { ...output, result: true, taken: (item) => take(serv, player, furnace, item) },
  ];
}

function take(serv, player, furnace, item) {
  const { survival } = serv;
  survival.setContainerSlot(furnace, OUT, null);
  survival.furnaces.add(furnace);
  const points = Math.floor(furnace.xp) + (Math.random() < furnace.xp % 1 ? 1 : 0);
  furnace.xp = 0;
  player.addXp(points);
  serv.emit('gamut:smelted', { player, item: item.name, count: item.count });
}

function open(serv, { player, x, y, z, info }) {
  const { survival } = serv;
  const furnace = prepare(survival.container(x, y, z));
  survival.openWindow(player, {
    kind: info.name,
    title: info.def.displayName,
    place: new Vec3(x, y, z),
    cells: [[x, y, z]],
    slots: slots(serv, player, furnace),
    quick: (item) => {
      if (smelted(furnace.kind, item.name)) return [IN];
      return burnTime(item.name) ? [FUEL] : [];
    },
    viewed: (viewer, opens) => {
      if (opens) furnace.viewers.set(viewer, 0);
      else furnace.viewers.delete(viewer);
    },
  });
  show(furnace);
  return true;
}

function server(serv) {
  const { survival } = serv;
  survival.furnaces = new Set();
  survival.onUseBlock(KINDS, (call) => open(serv, call));
  survival.onTick(() => {
    for (const furnace of survival.furnaces) {
      const alive = survival.container(furnace.x, furnace.y, furnace.z) === furnace;
      if (!alive || !tickFurnace(survival, prepare(furnace))) survival.furnaces.delete(furnace);
    }
  });
}

/** Contents of furnaces are saved by containers.js; here only the active ones are found again. */
function load(serv) {
  const { survival } = serv;
  survival.furnaces.clear();
  for (const container of survival.containers.values()) {
    if (KINDS.includes(container.kind)) survival.furnaces.add(prepare(container));
  }
}

module.exports = { name, server, load };

'use strict';

/**
 * Hoppers, which move an item every 8 ticks, and dispensers and droppers, which give one when they
 * are driven (Minecraft Wiki, pages of the blocks, 1.16). Hoppers that were placed are known by
 * their places; nothing is searched.
 *
 * `serv.survival.dispense(x, y, z)` drives a dispenser or dropper. A dispenser shoots arrows, throws
 * potions, empties buckets and drops all else.
 */

const { Vec3 } = require('vec3');
const { halves } = require('./chests');
const { accepts } = require('./stores');

const name = 'hoppers';
const EVERY = 8;
const STEPS = {
  down: [0, -1, 0], up: [0, 1, 0], north: [0, 0, -1], south: [0, 0, 1], west: [-1, 0, 0], east: [1, 0, 0],
};
/** Where hoppers put things in from above and from a side, and what they take out; all slots if not here. */
const OVENS = { above: [0], side: [1], out: [2] };
const DOORS = {
  furnace: OVENS, blast_furnace: OVENS, smoker: OVENS,
  brewing_stand: { above: [3], side: [0, 1, 2, 4], out: [0, 1, 2] },
};
const ONE_EACH = { brewing_stand: [0, 1, 2] };
const INTO = {
  furnace: 'furnaces', blast_furnace: 'furnaces', smoker: 'furnaces', brewing_stand: 'stands',
};

/** The containers at a place: both halves of a large chest. */
function containersAt(survival, x, y, z) {
  const cells = halves(survival.blocks, x, y, z);
  return cells.map((cell) => survival.container(...cell)).filter(Boolean);
}

function wake(survival, container) {
  const active = survival[INTO[container.kind]];
  if (active) active.add(container);
}

/** Puts one of a stack into containers by a door; returns whether it went in. */
function putOne(survival, containers, door, item) {
  for (const container of containers) {
    const doors = DOORS[container.kind];
    const slots = doors ? doors[door] : container.slots.keys();
    for (const index of slots) {
      const there = container.slots[index];
      const most = ONE_EACH[container.kind]?.includes(index) ? 1 : item.stackSize;
      if (there && (!survival.items.same(there, item) || there.count >= most)) continue;
      if (!accepts(container.kind, index, item)) continue;
      survival.setContainerSlot(container, index, survival.items.copy(item, (there ? there.count : 0) + 1));
      wake(survival, container);
      return true;
    }
  }
  return false;
}

/** Takes one item out of containers that `to` accepts; returns whether it did. */
function takeOne(survival, containers, to) {
  for (const container of containers) {
    const slots = DOORS[container.kind]?.out ?? container.slots.keys();
    for (const index of slots) {
      const item = container.slots[index];
      if (!item || !to(survival.items.copy(item, 1))) continue;
      survival.setContainerSlot(container, index, item.count > 1 ? survival.items.copy(item, item.count - 1) : null);
      wake(survival, container);
      return true;
    }
  }
  return false;
}

/** Picks up an item that lies on a hopper. */
function suck(survival, hopper) {
  for (const drop of survival.drops.values()) {
    const { x, y, z } = drop.position;
    const over = Math.floor(x) === hopper.x && Math.floor(z) === hopper.z && y >= hopper.y + 0.5 && y < hopper.y + 2;
    if (!over || !putOne(survival, [hopper], 'above', drop.stack)) continue;
    survival.setDropCount(drop, drop.stack.count - 1);
    return true;
  }
  return false;
}

function move(survival, x, y, z) {
  const info = survival.blocks.at(x, y, z);
  const hopper = survival.container(x, y, z);
  if (!hopper || info.props.enabled === false) return;
  const [dx, dy, dz] = STEPS[info.props.facing];
  const next = containersAt(survival, x + dx, y + dy, z + dz);
  const push = (item) => putOne(survival, next, dy < 0 ? 'above' : 'side', item);
  const pull = (item) => putOne(survival, [hopper], 'above', item);
  const pushed = next.length > 0 && takeOne(survival, [hopper], push);
  const above = containersAt(survival, x, y + 1, z);
  const pulled = above.length > 0 ? takeOne(survival, above, pull) : suck(survival, hopper);
  return pushed || pulled;
}

/** What a dispenser does with an item instead of dropping it; returns what is left of one, or undefined. */
const DISPENSED = {
  arrow(serv, { from, direction }) {
    serv.survival.shoot({ id: -1, position: from }, { from, direction, speed: 1.1, spread: 6, keep: true });
    return null;
  },
  splash_potion(serv, { from, direction }, item) {
    const potion = (item.nbt?.value?.Potion?.value ?? 'water').replace(/^minecraft:/, '');
    serv.survival.mobs.missiles.shoot('potion', null, from, direction.scaled(0.5), { potion });
    return null;
  },
  water_bucket: (serv, at) => pour(serv, at, 'water'),
  lava_bucket: (serv, at) => pour(serv, at, 'lava'),
};

function pour({ survival }, { cell }, liquid) {
  return survival.pour(...cell, liquid) ? survival.items.make('bucket') : undefined;
}

function dispense(serv, x, y, z) {
  const { survival } = serv;
  const info = survival.blocks.at(x, y, z);
  const box = survival.container(x, y, z);
  const full = box ? box.slots.map((item, index) => (item ? index : -1)).filter((index) => index >= 0) : [];
  if (full.length === 0) return false;
  const index = full[Math.floor(Math.random() * full.length)];
  const item = box.slots[index];
  const one = survival.items.copy(item, 1);
  const step = STEPS[info.props.facing];
  const direction = new Vec3(...step);
  const cell = [x + step[0], y + step[1], z + step[2]];
  const from = new Vec3(x + 0.5, y + 0.4, z + 0.5).plus(direction.scaled(0.7));
  const into = info.name === 'dropper' ? containersAt(survival, ...cell) : [];
  let rest = null;
  if (into.length > 0) {
    if (!putOne(survival, into, step[1] < 0 ? 'above' : 'side', one)) return false;
  } else {
    const own = info.name === 'dispenser' ? DISPENSED[item.name] : undefined;
    rest = own ? own(serv, { from, direction, cell }, one) : undefined;
    if (rest === undefined) {
      rest = null;
      survival.drop(from, one, { velocity: direction.scaled(0.25) });
    }
  }
  survival.setContainerSlot(box, index, rest ?? (item.count > 1 ? survival.items.copy(item, item.count - 1) : null));
  return true;
}

function server(serv) {
  const { survival } = serv;
  survival.hoppers = new Map();
  survival.dispense = (x, y, z) => dispense(serv, x, y, z);
  survival.blocks.onChange((x, y, z, old, now) => {
    if (old.name === now.name) return;
    if (old.name === 'hopper') survival.hoppers.delete(`${x},${y},${z}`);
    if (now.name === 'hopper') survival.hoppers.set(`${x},${y},${z}`, { x, y, z, next: survival.tick + EVERY });
  });
  survival.onTick((tick) => {
    for (const hopper of survival.hoppers.values()) {
      if (tick < hopper.next || !survival.blocks.loaded(hopper.x, hopper.z)) continue;
      if (move(survival, hopper.x, hopper.y, hopper.z)) hopper.next = tick + EVERY;
    }
  });
}

const save = ({ survival }) => [...survival.hoppers.values()];

function load({ survival }, data) {
  survival.hoppers = new Map((data || []).map((each) => [`${each.x},${each.y},${each.z}`, { ...each }]));
}

module.exports = { name, server, save, load };

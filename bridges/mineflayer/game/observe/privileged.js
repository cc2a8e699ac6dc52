'use strict';
/**
 * What judges may see and agents may not, as `details.privileged`: the blocks of watched regions, items
 * on the ground, players with their items, and the place that the places of a start are relative to.
 * The regions of a start are noticed by the trace too, when agents enter and leave them.
 */
const { yawOf } = require('./trace');

const MOST_DROPS = 256;

const round = (v) => Math.round(v * 100) / 100;
const exact = ({ x, y, z }) => [x, y, z].map(round);

/** Returns a block as in commands, "wheat[age=7]", its properties by name. */
function words({ name, props }) {
  const pairs = Object.entries(props).sort().map(([key, value]) => `${key}=${value}`);
  return pairs.length > 0 ? `${name}[${pairs}]` : name;
}

/** Whether a region holds a place relative to the origin: a cell, or of a ball any point. */
function holds({ low, high, centre, radius }, place) {
  if (!place.every((v, i) => v >= low[i] && v <= high[i])) return false;
  return centre === null || Math.hypot(...place.map((v, i) => v - centre[i])) <= radius;
}

/** Returns the cells of a region. */
function* cells(region) {
  const { low, high } = region;
  for (let x = low[0]; x <= high[0]; x++) {
    for (let y = low[1]; y <= high[1]; y++) {
      for (let z = low[2]; z <= high[2]; z++) if (holds(region, [x, y, z])) yield [x, y, z];
    }
  }
}

class Privileged {
  /**
   * @param {object} world whose start has been made
   * @param {Array} regions of the start (regions.py)
   */
  constructor(world, regions) {
    Object.assign(this, { world, regions });
    this.origin = world.serv.spawnOf(0).floored();
    this.watched = regions.filter(({ watch }) => watch);
    /** By agent: the regions it is in, and the blocks that changed since its last frame (null: all). */
    this.known = new WeakMap();
    if (this.watched.length > 0) world.serv.on('gamut:block', (event) => this.changed(event));
  }

  of(agent) {
    if (!this.known.has(agent)) this.known.set(agent, { inside: new Set(), changes: null });
    return this.known.get(agent);
  }

  changed({ position, before, after }) {
    if (before === after) return;
    const place = [position.x - this.origin.x, position.y - this.origin.y, position.z - this.origin.z];
    for (const region of this.watched) {
      if (!holds(region, place)) continue;
      const block = words(this.world.serv.survival.blocks.info(after));
      for (const agent of this.world.agents) {
        const changes = agent === null ? null : this.of(agent).changes;
        if (changes !== null) (changes[region.name] ??= {})[place.join(' ')] = block;
      }
    }
  }

  /** Adds to an agent's trace which regions it has entered or left. */
  follow(agent) {
    const { inside } = this.of(agent);
    const { x, y, z } = agent.bot.entity.position;
    const point = [x - this.origin.x - 0.5, y - this.origin.y, z - this.origin.z - 0.5];
    const cell = [Math.floor(point[0] + 0.5), Math.floor(point[1]), Math.floor(point[2] + 0.5)];
    for (const region of this.regions) {
      const { name } = region;
      const isIn = holds(region, region.centre === null ? cell : point);
      if (isIn === inside.has(name)) continue;
      agent.trace.add(isIn ? 'entered' : 'left', { region: name });
      if (isIn) inside.add(name);
      else inside.delete(name);
    }
  }

  /** Returns what judges see at an agent's frame; the blocks only once. */
  look(agent) {
    const known = this.of(agent);
    const regions = known.changes ?? this.all();
    known.changes = {};
    const { serv } = this.world;
    return {
      origin: this.origin.toArray(),
      regions,
      drops: this.drops(),
      players: Object.fromEntries(serv.players.map((player) => [player.username,
        { position: exact(player.position), yaw: round(yawOf(player)), items: itemsOf(player) }])),
    };
  }

  /** Returns all blocks of the watched regions that are not air. */
  all() {
    const { serv } = this.world;
    const named = this.watched.map((region) => {
      const found = {};
      for (const place of cells(region)) {
        const { x, y, z } = this.origin.offset(...place);
        if (y < 0 || y > 255) continue;
        const column = serv.columnAt(serv.overworld, x >> 4, z >> 4);
        const info = serv.survival.blocks.info(column.getBlockStateId({ x: x & 15, y, z: z & 15 }));
        if (!info.air) found[place.join(' ')] = words(info);
      }
      return [region.name, found];
    });
    return Object.fromEntries(named);
  }

  drops() {
    const there = [...this.world.serv.survival.drops.values()].slice(-MOST_DROPS);
    return there.flatMap(({ stack, position, shares }) => shares.map(([thrower, count]) =>
      ({ item: stack.name, count, position: exact(position), thrower })));
  }
}

/** Returns the counts of a player's items by name, with what is at its cursor and in its grid. */
function itemsOf({ inventory, cursor }) {
  const items = {};
  for (const item of [...inventory.slots.slice(1), cursor]) {
    if (item) items[item.name] = (items[item.name] ?? 0) + item.count;
  }
  return items;
}

module.exports = { Privileged };

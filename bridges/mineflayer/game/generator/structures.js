'use strict';

/**
 * Structures to find: temples, igloos, outposts, wrecks, ruined portals, mineshafts, dungeons. Each
 * is a description in structures.json; where they stand is a function of seed and position, as for
 * villages.
 *
 * Simplified against the game: each has one shape; mineshafts are level, without spawners; nothing
 * is put into the ground's way, but what a structure needs is dug or filled.
 */

const { Chance, hash, seedOf } = require('./noise');
const { BIOMES, SEA_LEVEL } = require('./climate');
const { Pen } = require('./houses');
const { structures: DESIGNS, mixtures: MIXTURES } = require('./structures.json');

const STEEPEST = 8;
/** Blocks between a structure and a house. */
const GAP = 8;
const KNOWN = 128;
/** Layers of rock that there are at least above what stands below ground. */
const ROOF = 8;
/** Blocks between the props of a tunnel. */
const PROPS = 5;
const SIDES = ['front', 'back', 'left', 'right'];

/** Draws the steps of a description; all its random numbers come from the box's start and a place. */
class Builder extends Pen {
  constructor(canvas, states, box, found) {
    super(canvas, states, box, found.chests);
    this.found = found;
    this.seed = box.start;
  }

  /** Returns the state of a block of a description at a place: {wood}, mixtures and sides filled in. */
  stateAt(name, properties, x, y, z) {
    const mixture = MIXTURES[name];
    let block = name;
    if (mixture) {
      const chance = new Chance(hash(this.seed, x, y, z));
      block = chance.weighted(mixture.map(([weight, each]) => ({ weight, each }))).each;
    }
    const filled = Object.entries(properties).map(([key, value]) => [key, SIDES.includes(value) ? this.side(value) : value]);
    return this.states(block.replace('{wood}', this.box.wood), Object.fromEntries(filled));
  }

  put(x, y, z, name, properties = {}) {
    const [wx, wy, wz] = this.place(x, y, z);
    if (wy > 0 && this.canvas.holds(wx, wy, wz)) this.canvas.set(wx, wy, wz, this.stateAt(name, properties, x, y, z));
  }

  /** Whether a part of a structure lies in the canvas at all. */
  touches([x0, y0, z0, x1, y1, z1]) {
    const [a, , b] = this.place(x0, y0, z0);
    const [c, , d] = this.place(x1, y1, z1);
    return this.canvas.touches(Math.min(a, c), Math.min(b, d), Math.max(a, c), Math.max(b, d));
  }

  fill(x0, y0, z0, x1, y1, z1, name, properties = {}) {
    if (!this.touches([x0, y0, z0, x1, y1, z1])) return;
    for (let y = y0; y <= y1; y++) {
      for (let z = z0; z <= z1; z++) for (let x = x0; x <= x1; x++) this.put(x, y, z, name, properties);
    }
  }

  /** A tunnel along its longer side, with props, planks over them, rails and cobwebs here and there. */
  tunnel(x0, y0, z0, x1, y1, z1) {
    const along = x1 - x0 > z1 - z0;
    this.fill(x0, y0, z0, x1, y1, z1, 'air');
    const length = along ? x1 - x0 : z1 - z0;
    for (let n = 0; n <= length; n++) {
      const chance = new Chance(hash(this.seed, along ? n : x0, y0, along ? z0 : n));
      const at = (across, y) => (along ? [x0 + n, y, z0 + across] : [x0 + across, y, z0 + n]);
      // No floor: a bridge of planks, where a cave is below.
      for (const across of [0, 1, 2]) this.bridge(...at(across, y0 - 1));
      if (n % PROPS === 2) {
        for (const across of [0, 2]) {
          for (let y = y0; y < y1; y++) this.put(...at(across, y), 'oak_fence');
        }
        for (const across of [0, 1, 2]) this.put(...at(across, y1), 'oak_planks');
        if (chance.next() < 0.3) this.put(...at(1, y1 - 1), 'cobweb');
        else if (chance.next() < 0.3) this.put(...at(1, y1 - 1), 'wall_torch', { facing: along ? 'left' : 'front' });
      } else if (chance.next() < 0.5) this.put(...at(1, y0), 'rail', { shape: this.box.turn % 2 === Number(along) ? 'north_south' : 'east_west' });
    }
  }

  /** Puts a plank where nothing is. */
  bridge(x, y, z) {
    const [wx, wy, wz] = this.place(x, y, z);
    if (this.canvas.get(wx, wy, wz) === 0) this.canvas.set(wx, wy, wz, this.states('oak_planks'));
  }

  pyramid([x0, y, z0, x1, z1], layers, name) {
    for (let n = 0; n < layers; n++) this.fill(x0 + n, y + n, z0 + n, x1 - n, y + n, z1 - n, name);
  }

  step([kind, where, ...rest], number) {
    if (kind.startsWith('?')) {
      const chance = new Chance(hash(this.seed, number, 1));
      if (chance.next() < Number(kind.slice(1))) this.step([where, ...rest], number);
      return;
    }
    if (kind === 'fill') this.fill(...where, ...rest);
    else if (kind === 'put') this.put(...where, ...rest);
    else if (kind === 'pyramid') this.pyramid(where, ...rest);
    else if (kind === 'tunnel') {
      if (this.touches(where)) this.tunnel(...where);
    }
    else if (kind === 'box') {
      const [x0, y0, z0, x1, y1, z1] = where;
      this.fill(...where, ...rest);
      this.fill(x0 + 1, y0 === y1 ? y0 : y0 + 1, z0 + 1, x1 - 1, y0 === y1 ? y1 : y1 - 1, z1 - 1, 'air');
    } else if (kind === 'mob') this.mob(where, ...rest);
    else this.loot(kind, where, rest, number);
  }

  /** A chest with its loot, or the loot of a container that is there already. */
  loot(kind, where, [table, facing, wet], number) {
    const [x, y, z] = this.place(...where);
    if (kind === 'chest') this.put(...where, 'chest', { facing, waterlogged: wet !== undefined });
    this.found.chests.push({ x, y, z, loot: table, seed: hash(this.seed, number) });
  }

  mob(where, kind, merchant) {
    const [x, y, z] = this.place(...where);
    this.found.mobs.push({ kind, x: x + 0.5, y, z: z + 0.5, ...(merchant ? { merchant } : {}) });
  }
}

/** A canvas that holds nothing: for what stands in a structure without its blocks. */
const NOWHERE = { holds: () => false, touches: () => false, get: () => -1, set: () => {} };

class Structures {
  constructor(seed, climate, states, villages) {
    Object.assign(this, { climate, states, villages });
    this.seed = seed;
    this.kinds = Object.entries(DESIGNS).map(([name, design]) => {
      const most = Math.max(design.wide, design.deep);
      return { name, design, most, seed: seedOf(seed, name), known: new Map() };
    });
    this.above = this.kinds.filter(({ design }) => design.on === 'ground');
  }

  /** Returns the structures that may extend into a box of the world. */
  near(x0, z0, x1, z1, kinds = this.kinds) {
    const found = [];
    for (const kind of kinds) {
      const { every } = kind.design;
      const { most } = kind;
      for (let rz = Math.floor((z0 - most) / every); rz <= Math.floor(z1 / every); rz++) {
        for (let rx = Math.floor((x0 - most) / every); rx <= Math.floor(x1 / every); rx++) {
          const box = this.ofRegion(kind, rx, rz);
          if (box && box.x <= x1 && box.x1 >= x0 && box.z <= z1 && box.z1 >= z0) found.push(box);
        }
      }
    }
    return found;
  }

  /** Returns the structure of a kind in a region, or null. */
  ofRegion(kind, rx, rz) {
    const key = rx * 67108864 + rz;
    let box = kind.known.get(key);
    if (box === undefined) {
      if (kind.known.size > KNOWN) kind.known.clear();
      box = this.found(kind, rx, rz);
      kind.known.set(key, box);
    }
    return box;
  }

  found({ name, design, most, seed }, rx, rz) {
    const chance = new Chance(hash(seed, rx, rz));
    if (chance.next() >= design.share) return null;
    const x = rx * design.every + chance.between(0, design.every - most);
    const z = rz * design.every + chance.between(0, design.every - most);
    if (Math.hypot(x, z) < design.away) return null;
    const turn = chance.below(4);
    const [width, depth] = turn % 2 ? [design.deep, design.wide] : [design.wide, design.deep];
    const box = { design: name, turn, x, z, x1: x + width - 1, z1: z + depth - 1, wide: design.wide, deep: design.deep,
      start: chance.below(2 ** 31) };
    return this.settled(box, design, chance) ? box : null;
  }

  /** Gives a structure its height and wood; returns whether its ground is right. */
  settled(box, design, chance) {
    const heights = [];
    for (const x of [box.x, (box.x + box.x1) >> 1, box.x1]) {
      for (const z of [box.z, (box.z + box.z1) >> 1, box.z1]) heights.push(this.climate.shapeAt(x, z).height);
    }
    heights.sort((a, b) => a - b);
    const [mx, mz] = [(box.x + box.x1) >> 1, (box.z + box.z1) >> 1];
    const biome = this.climate.biomeAt(mx, mz, this.climate.shapeAt(mx, mz));
    const { wet, wood, dry } = BIOMES[biome];
    Object.assign(box, { wood, dry });
    if (design.in ? !design.in.includes(biome) : wet && design.on === 'ground') return false;
    if (Array.isArray(design.on)) {
      box.y = chance.between(...design.on);
      return box.y + ROOF < heights[0];
    }
    box.y = heights[4];
    if (design.on === 'water') return heights[8] < SEA_LEVEL - 6 && heights[8] - heights[0] <= STEEPEST;
    const free = heights[0] >= SEA_LEVEL && heights[8] - heights[0] <= STEEPEST;
    return free && !this.villages.near(box.x, box.z, box.x1, box.z1).some(({ boxes }) => boxes.some((house) =>
      box.x - GAP <= house.x1 && box.x1 + GAP >= house.x && box.z - GAP <= house.z1 && box.z1 + GAP >= house.z));
  }

  /** Whether a column belongs to a structure above ground or to its margin of so many blocks. */
  takes(x, z, gap) {
    return this.near(x - gap, z - gap, x + gap, z + gap, this.above).length > 0;
  }

  /** Draws the parts of structures in a chunk; returns the chests of the chunk, [{x, y, z, loot, seed}]. */
  draw(canvas, groundAt) {
    const found = { chests: [], mobs: [] };
    for (const box of this.near(canvas.x, canvas.z, canvas.x + 15, canvas.z + 15)) {
      const design = DESIGNS[box.design];
      this.level(canvas, box, design, groundAt);
      const builder = new Builder(canvas, this.states, box, found);
      design.steps.forEach((step, number) => builder.step(step, number));
    }
    return found.chests.filter((chest) => canvas.holds(chest.x, chest.y, chest.z));
  }

  /** Fills the space below a structure, and clears that above its floor. */
  level(canvas, box, { base, air }, groundAt) {
    const state = base && this.states(base);
    for (let x = Math.max(box.x, canvas.x); x <= Math.min(box.x1, canvas.x + 15); x++) {
      for (let z = Math.max(box.z, canvas.z); z <= Math.min(box.z1, canvas.z + 15); z++) {
        if (base) for (let y = groundAt(x, z); y < box.y; y++) canvas.set(x, y, z, state);
        for (let y = box.y + 1; y <= box.y + air; y++) canvas.set(x, y, z, 0);
      }
    }
  }

  /** Returns the creatures of structures in a chunk, [{kind, x, y, z}]. */
  folk(chunkX, chunkZ) {
    const [x0, z0] = [chunkX * 16, chunkZ * 16];
    const found = { chests: [], mobs: [] };
    for (const box of this.near(x0, z0, x0 + 15, z0 + 15)) {
      const builder = new Builder(NOWHERE, this.states, box, found);
      DESIGNS[box.design].steps.forEach((step, number) => {
        if (step.includes('mob')) builder.step(step, number);
      });
    }
    return found.mobs.filter(({ x, z }) => Math.floor(x / 16) === chunkX && Math.floor(z / 16) === chunkZ);
  }
}

module.exports = { DESIGNS, Structures };

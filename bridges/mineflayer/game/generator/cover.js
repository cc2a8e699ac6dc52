'use strict';

/**
 * Ground cover: grass, flowers, mushrooms, bushes, pumpkins, melons, sugar cane, cactuses, water
 * plants, snow, ice.
 *
 * Rates are per 1,000 columns, near those of the game; pumpkins and melons are more frequent here
 * (one chunk in fourteen), so that an agent can find them within a day.
 */

const { BIOMES, SEA_LEVEL } = require('./climate');
const { Chance, hash, seedOf } = require('./noise');
const { NAMES } = require('./plan');

const FIELD = ['dandelion', 'poppy', 'azure_bluet', 'oxeye_daisy', 'cornflower', 'red_tulip', 'orange_tulip', 'white_tulip', 'pink_tulip'];
const WOOD = ['dandelion', 'poppy', 'lily_of_the_valley', 'allium'];
const GROWTH = {
  plains: [['grass', 130], ['tall_grass', 14], ['flower', 22, FIELD]],
  forest: [
    ['grass', 45], ['flower', 12, WOOD], ['rose_bush', 3], ['lilac', 3], ['brown_mushroom', 2],
    ['red_mushroom', 1.5],
  ],
  birch_forest: [['grass', 45], ['flower', 12, WOOD], ['peony', 3], ['brown_mushroom', 2], ['red_mushroom', 1.5]],
  taiga: [
    ['grass', 25], ['fern', 60], ['large_fern', 8], ['flower', 3, WOOD], ['sweet_berry_bush', 9],
    ['brown_mushroom', 5], ['red_mushroom', 3],
  ],
  savanna: [['grass', 190], ['tall_grass', 40], ['flower', 4, FIELD]],
  jungle: [['grass', 110], ['fern', 30], ['flower', 6, WOOD], ['melon_patch', 5]],
  desert: [['dead_bush', 12], ['cactus', 8]],
  snowy_tundra: [['grass', 14], ['flower', 1.5, WOOD]],
  snowy_taiga: [['grass', 14], ['fern', 24], ['sweet_berry_bush', 4]],
  mountains: [['grass', 24], ['flower', 4, FIELD]],
  river: [['seagrass', 90]],
  ocean: [['seagrass', 70], ['kelp', 30]],
  warm_ocean: [['seagrass', 110]],
};
const DOUBLE = new Set(['tall_grass', 'large_fern', 'rose_bush', 'lilac', 'peony']);
const SOIL = new Set(['grass_block', 'dirt', 'coarse_dirt', 'podzol']);
const PATCHES = { pumpkin: 14, melon: 14 };
const SALT = 29;

class Cover {
  constructor(seed, climate, plans, states) {
    Object.assign(this, { climate, plans, states });
    this.seed = seedOf(seed, 'cover');
    this.water = states('water');
    this.soil = new Uint8Array(65536);
    for (const name of SOIL) this.soil[states(name)] = 1;
    this.sand = states('sand');
    this.grass = states('grass_block');
    this.snowy = states('grass_block', { snowy: true });
    this.snow = states('snow', { layers: 1 });
    this.ice = states('ice');
    this.bare = new Uint8Array(65536);
    for (const name of ['water', 'lava', 'ice', 'torch', 'grass_path', 'cactus', 'farmland']) this.bare[states(name)] = 1;
  }

  /** Draws all growth of the canvas's chunk. */
  draw(canvas, plan) {
    for (let column = 0; column < 256; column++) this.grow(canvas, plan, column);
    this.patches(canvas, plan);
  }

  grow(canvas, plan, column) {
    const x = plan.x + (column & 15);
    const z = plan.z + (column >> 4);
    const y = plan.heights[column] + 1;
    const name = NAMES[plan.biomes[column]];
    if (plan.waters[column] < 0 && canvas.get(x, y, z) === 0 && this.reeds(canvas, x, y, z)) return;
    const growth = GROWTH[name];
    if (growth === undefined) return;
    let lot = this.climate.scatter(x, z, SALT) * 1000;
    for (const [what, rate, among] of growth) {
      lot -= rate;
      if (lot < 0) {
        const kind = what === 'flower' ? this.flowerAt(x, z, among) : what;
        this.stand(canvas, plan, kind, x, y, z, plan.waters[column]);
        return;
      }
    }
  }

  /** Returns a flower: flowers of the same kind grow together. */
  flowerAt(x, z, among) {
    return among[hash(this.seed + 3, x >> 3, z >> 3) % among.length];
  }

  stand(canvas, plan, kind, x, y, z, water) {
    if (kind === 'seagrass' || kind === 'kelp') return this.drown(canvas, kind, x, y, z, water);
    const ground = canvas.get(x, y - 1, z);
    if (water >= 0 || canvas.get(x, y, z) !== 0) return undefined;
    if (kind === 'cactus') return this.cactus(canvas, x, y, z, ground);
    if (kind === 'dead_bush') {
      if (ground === this.sand) canvas.set(x, y, z, this.states('dead_bush'));
      return undefined;
    }
    if (this.soil[ground] === 0) return undefined;
    if (kind === 'melon_patch') canvas.set(x, y, z, this.states('melon'));
    else if (DOUBLE.has(kind)) {
      if (canvas.get(x, y + 1, z) !== 0) return undefined;
      canvas.set(x, y, z, this.states(kind, { half: 'lower' }));
      canvas.set(x, y + 1, z, this.states(kind, { half: 'upper' }));
    } else if (kind === 'sweet_berry_bush') {
      canvas.set(x, y, z, this.states(kind, { age: 2 + (hash(this.seed + 4, x, z) & 1) }));
    } else canvas.set(x, y, z, this.states(kind));
    return undefined;
  }

  /** Places a cactus where no block is beside it; for this reason it keeps away from the border. */
  cactus(canvas, x, y, z, ground) {
    const inner = (x & 15) > 0 && (x & 15) < 15 && (z & 15) > 0 && (z & 15) < 15;
    if (ground !== this.sand || !inner) return;
    const tall = 1 + hash(this.seed + 5, x, z) % 3;
    for (let n = 0; n < tall; n++) {
      const beside = [[1, 0], [-1, 0], [0, 1], [0, -1]];
      if (beside.some(([dx, dz]) => canvas.get(x + dx, y + n, z + dz) !== 0)) return;
      canvas.set(x, y + n, z, this.states('cactus'));
    }
  }

  /** Places sugar cane beside water, in some areas; returns whether it did. */
  reeds(canvas, x, y, z) {
    if (y > SEA_LEVEL + 24 || hash(this.seed + 6, x >> 3, z >> 3) % 3 !== 0) return false;
    if (this.climate.scatter(x, z, SALT + 1) > 0.45) return false;
    const beside = [[1, 0], [-1, 0], [0, 1], [0, -1]];
    if (!beside.some(([dx, dz]) => this.plans.waterAt(x + dx, z + dz) === y - 1)) return false;
    const ground = canvas.get(x, y - 1, z);
    if (this.soil[ground] === 0 && ground !== this.sand) return false;
    if (BIOMES[this.plans.biomeAt(x, z)].cold) return false;
    const tall = 1 + hash(this.seed + 7, x, z) % 3;
    for (let n = 0; n < tall && canvas.get(x, y + n, z) === 0; n++) canvas.set(x, y + n, z, this.states('sugar_cane'));
    return true;
  }

  drown(canvas, kind, x, y, z, water) {
    if (canvas.get(x, y, z) !== this.water || water - y < 1) return;
    if (kind === 'seagrass') {
      canvas.set(x, y, z, this.states('seagrass'));
      return;
    }
    const last = Math.min(water - 1, y + 2 + hash(this.seed + 8, x, z) % 9);
    for (let level = y; level < last; level++) canvas.set(x, level, z, this.states('kelp_plant'));
    canvas.set(x, last, z, this.states('kelp'));
  }

  /** Places a patch of pumpkins, or of melons where it is hot and wet, within the chunk. */
  patches(canvas, plan) {
    const chance = new Chance(hash(this.seed + 9, plan.x, plan.z));
    const biome = NAMES[plan.biomes[136]];
    const melons = biome === 'jungle' || biome === 'savanna';
    const kind = melons ? 'melon' : 'pumpkin';
    if (chance.below(PATCHES[kind]) !== 0) return;
    for (let n = 0; n < 14; n++) {
      const x = plan.x + 2 + chance.below(12);
      const z = plan.z + 2 + chance.below(12);
      const column = ((z & 15) << 4) | (x & 15);
      const y = plan.heights[column] + 1;
      const free = plan.waters[column] < 0 && canvas.get(x, y, z) === 0;
      if (free && this.soil[canvas.get(x, y - 1, z)] === 1) canvas.set(x, y, z, this.states(kind));
    }
  }

  /** Places snow and ice on cold land, and on the tops of mountains, over everything there. */
  snowfall(canvas, plan, open) {
    for (let column = 0; column < 256; column++) {
      const { cold, high } = BIOMES[NAMES[plan.biomes[column]]];
      const snowline = 112 + (hash(this.seed + 10, plan.x + (column & 15), plan.z + (column >> 4)) & 3);
      if (cold || (high && plan.heights[column] > snowline)) this.whiten(canvas, column, open);
    }
  }

  whiten(canvas, column, open) {
    const { cells } = canvas;
    let y = 200;
    while (y > 1 && cells[(y << 8) | column] === 0) y--;
    const at = (y << 8) | column;
    const state = cells[at];
    if (state === this.water) cells[at] = this.ice;
    else if (this.bare[state] === 0 && open[state] === 0) {
      cells[at + 256] = this.snow;
      if (state === this.grass) cells[at] = this.snowy;
    }
  }
}

module.exports = { Cover };

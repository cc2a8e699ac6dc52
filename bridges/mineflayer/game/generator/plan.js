'use strict';

/**
 * The contents of a chunk, known before any block is set: ground, water, biomes, trees.
 *
 * A plan is a function of seed and position. A chunk is drawn from its own plan and those of its
 * eight neighbours, whose trees extend into it.
 */

const { BIOMES, SEA_LEVEL } = require('./climate');
const { Chance, hash, seedOf } = require('./noise');

const NAMES = Object.keys(BIOMES);
const PLANS = 600;
const TREE_SALT = 11;

class Plans {
  constructor(seed, climate, caves, villages) {
    Object.assign(this, { climate, caves, villages });
    this.seed = seedOf(seed, 'plans');
    this.plans = new Map();
  }

  /**
   * Returns the plan of a chunk: by column z << 4 | x `heights` (top block of the ground), `waters`
   * (top block of water, -1 for none), `biomes` (numbers of `NAMES`); `trees`; `top`, the highest
   * ground.
   */
  get(chunkX, chunkZ) {
    const key = chunkX * 4194304 + chunkZ;
    let plan = this.plans.get(key);
    if (plan === undefined) {
      if (this.plans.size >= PLANS) this.plans.delete(this.plans.keys().next().value);
      plan = this.make(chunkX, chunkZ);
      this.plans.set(key, plan);
    }
    return plan;
  }

  make(chunkX, chunkZ) {
    const plan = {
      x: chunkX * 16, z: chunkZ * 16, top: 0, trees: [],
      heights: new Int16Array(256), waters: new Int16Array(256).fill(-1), biomes: new Uint8Array(256),
    };
    for (let column = 0; column < 256; column++) {
      const x = plan.x + (column & 15);
      const z = plan.z + (column >> 4);
      const shape = this.climate.shapeAt(x, z);
      plan.heights[column] = shape.height;
      if (shape.height < SEA_LEVEL - 1) plan.waters[column] = SEA_LEVEL - 1;
      plan.biomes[column] = NAMES.indexOf(this.climate.biomeAt(x, z, shape));
    }
    plan.pond = this.climate.flat ? null : this.dig(plan);
    plan.top = Math.max(...plan.heights, ...plan.waters);
    if (!this.climate.flat) this.plant(plan);
    return plan;
  }

  /** Digs a pond into one chunk of ten, where the ground is level; it is within its chunk. */
  dig(plan) {
    const chance = new Chance(hash(this.seed + 1, plan.x, plan.z));
    const { dry, high } = BIOMES[NAMES[plan.biomes[136]]];
    if (chance.next() > (dry ? 0.02 : high ? 0 : 0.1)) return null;
    const long = 2.5 + 2.5 * chance.next();
    const across = 2.5 + 2.5 * chance.next();
    const middle = { x: plan.x + 7, z: plan.z + 8 };
    if (this.villages.takes(middle.x, middle.z, 12)) return null;
    const inside = [];
    let low = 255;
    let high2 = 0;
    for (let column = 0; column < 256; column++) {
      const u = ((column & 15) - 7) / long;
      const v = ((column >> 4) - 8) / across;
      const far = u * u + v * v;
      if (far > 2.4) continue;
      low = Math.min(low, plan.heights[column]);
      high2 = Math.max(high2, plan.heights[column]);
      if (far < 1) inside.push([column, Math.round(1 + 1.6 * (1 - far))]);
    }
    if (low < SEA_LEVEL || high2 - low > 2) return null;
    for (const [column, depth] of inside) {
      plan.heights[column] = low - depth;
      plan.waters[column] = low;
    }
    return { level: low };
  }

  /** Chooses the columns of trees. */
  plant(plan) {
    const rate = new Float32Array(NAMES.length);
    NAMES.forEach((name, n) => {
      rate[n] = BIOMES[name].trees.reduce((sum, [, each]) => sum + each, 0) / 1000;
    });
    for (let column = 0; column < 256; column++) {
      const most = rate[plan.biomes[column]];
      if (most === 0) continue;
      const x = plan.x + (column & 15);
      const z = plan.z + (column >> 4);
      const lot = this.climate.scatter(x, z, TREE_SALT);
      if (lot >= most) continue;
      const y = plan.heights[column] + 1;
      if (plan.waters[column] >= 0 || y <= SEA_LEVEL) continue;
      if (plan.trees.some((tree) => Math.abs(tree.x - x) + Math.abs(tree.z - z) < 4)) continue;
      if (this.villages.takes(x, z, 3) || this.caves.hollowAt(x, y - 1, z, y - 1)) continue;
      plan.trees.push({ kind: treeFor(plan.biomes[column], lot * 1000), x, y, z, start: hash(this.seed, x, z) });
    }
  }

  /** Returns the top block of the ground at a column. */
  groundAt(x, z) {
    return this.get(x >> 4, z >> 4).heights[((z & 15) << 4) | (x & 15)];
  }

  /** Returns the top block of water at a column, -1 for none. */
  waterAt(x, z) {
    return this.get(x >> 4, z >> 4).waters[((z & 15) << 4) | (x & 15)];
  }

  /** Returns the name of the biome of a column. */
  biomeAt(x, z) {
    return NAMES[this.get(x >> 4, z >> 4).biomes[((z & 15) << 4) | (x & 15)]];
  }
}

function treeFor(biome, lot) {
  let at = lot;
  for (const [kind, rate] of BIOMES[NAMES[biome]].trees) {
    at -= rate;
    if (at < 0) return kind;
  }
  return BIOMES[NAMES[biome]].trees[0][0];
}

module.exports = { NAMES, Plans };

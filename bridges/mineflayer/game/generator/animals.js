'use strict';

/**
 * The animals a new chunk comes with: one chunk in ten has a group of one kind, by the biome's
 * weights (https://minecraft.wiki/w/Spawn, "Passive mobs", 1.16).
 */

const { Chance, hash, seedOf } = require('./noise');

const FARM = [
  { kind: 'sheep', weight: 12, low: 2, high: 4 }, { kind: 'pig', weight: 10, low: 2, high: 4 },
  { kind: 'chicken', weight: 10, low: 2, high: 4 }, { kind: 'cow', weight: 8, low: 2, high: 4 },
];
const KINDS = {
  plains: [...FARM, { kind: 'horse', weight: 5, low: 2, high: 4 }, { kind: 'donkey', weight: 1, low: 1, high: 2 }],
  forest: [...FARM, { kind: 'wolf', weight: 5, low: 2, high: 4 }],
  birch_forest: FARM,
  taiga: [
    ...FARM, { kind: 'wolf', weight: 8, low: 2, high: 4 },
    { kind: 'rabbit', weight: 4, low: 2, high: 3 }, { kind: 'fox', weight: 8, low: 2, high: 4 },
  ],
  savanna: [
    ...FARM, { kind: 'horse', weight: 1, low: 2, high: 4 },
    { kind: 'donkey', weight: 1, low: 1, high: 1 }, { kind: 'llama', weight: 8, low: 2, high: 4 },
  ],
  jungle: [
    ...FARM, { kind: 'parrot', weight: 20, low: 1, high: 2 },
    { kind: 'chicken', weight: 10, low: 2, high: 4 },
  ],
  desert: [{ kind: 'rabbit', weight: 4, low: 2, high: 3 }],
  snowy_tundra: [{ kind: 'rabbit', weight: 10, low: 2, high: 3 }, { kind: 'polar_bear', weight: 1, low: 1, high: 2 }],
  snowy_taiga: [
    ...FARM, { kind: 'wolf', weight: 8, low: 2, high: 4 },
    { kind: 'rabbit', weight: 4, low: 2, high: 3 }, { kind: 'fox', weight: 8, low: 2, high: 4 },
  ],
  mountains: [...FARM, { kind: 'llama', weight: 5, low: 2, high: 4 }],
  ocean: [{ kind: 'cod', weight: 10, low: 3, high: 6 }, { kind: 'squid', weight: 1, low: 1, high: 4 }],
  warm_ocean: [{ kind: 'pufferfish', weight: 5, low: 1, high: 3 }, { kind: 'squid', weight: 10, low: 2, high: 4 }],
  frozen_ocean: [{ kind: 'salmon', weight: 15, low: 1, high: 5 }],
  river: [{ kind: 'salmon', weight: 5, low: 1, high: 5 }, { kind: 'squid', weight: 2, low: 1, high: 4 }],
};
const SHARE = 0.1;

class Animals {
  constructor(seed, plans, villages) {
    Object.assign(this, { plans, villages });
    this.seed = seedOf(seed, 'animals');
  }

  /**
   * Returns [{kind, x, y, z}] of a chunk: the middle of the feet. Includes villagers and their
   * animals.
   */
  of(chunkX, chunkZ) {
    const found = this.villages.folk(chunkX, chunkZ);
    const chance = new Chance(hash(this.seed, chunkX, chunkZ));
    if (chance.next() >= SHARE) return found;
    const x = chunkX * 16 + chance.between(4, 11);
    const z = chunkZ * 16 + chance.between(4, 11);
    const kinds = KINDS[this.plans.biomeAt(x, z)];
    if (kinds === undefined) return found;
    const group = chance.weighted(kinds);
    const count = chance.between(group.low, group.high);
    const wet = this.plans.waterAt(x, z) >= 0;
    for (let n = 0; n < count; n++) {
      const at = { x: x + chance.between(-3, 3), z: z + chance.between(-3, 3) };
      const water = this.plans.waterAt(at.x, at.z);
      if (water >= 0 !== wet || this.villages.takes(at.x, at.z, 1)) continue;
      const ground = this.plans.groundAt(at.x, at.z);
      if (wet && water - ground < 2) continue;
      found.push({ kind: group.kind, x: at.x + 0.5, y: wet ? water - 1 : ground + 1, z: at.z + 0.5 });
    }
    return found;
  }
}

module.exports = { Animals, KINDS };

'use strict';

/**
 * The positions and contents of villages: a function of seed and position.
 *
 * The world is divided into regions of 160 x 160 blocks. A region may have one village: a well and
 * up to ten buildings in a ring around it, each at the height of its own ground. Simplified: only
 * beaten paths to the well, no street grid.
 */

const { Chance, hash, seedOf } = require('./noise');
const { DESIGNS, drawBuilding, materials } = require('./houses');
const { BIOMES, SEA_LEVEL } = require('./climate');

const REGION = 160;
/** Maximum distance of any part of a village from its centre. */
const REACH = 38;
const HOMES = new Set(['plains', 'forest', 'birch_forest', 'desert', 'taiga', 'savanna', 'snowy_tundra', 'snowy_taiga']);
const LOTS = [
  { design: 'hut', weight: 5 }, { design: 'house', weight: 4 }, { design: 'farm', weight: 4 },
  { design: 'smithy', weight: 1.5 }, { design: 'pen', weight: 1.5 },
];
const STEEPEST = 5;
/** The professions of those who live in a building; nobody works at a job site. */
const JOBS = {
  hut: ['farmer', 'fletcher', 'shepherd', 'fisherman', 'none'],
  house: ['librarian', 'cleric', 'cartographer', 'butcher', 'leatherworker', 'mason', 'nitwit'],
  smithy: ['armorer', 'toolsmith', 'weaponsmith'],
};

class Villages {
  constructor(seed, climate, states) {
    this.seed = seedOf(seed, 'villages');
    this.climate = climate;
    this.states = states;
    this.known = new Map();
  }

  /** Returns the village of a region, {x, z, biome, boxes, paths}, or null. */
  ofRegion(rx, rz) {
    const key = `${rx},${rz}`;
    if (!this.known.has(key)) {
      if (this.known.size > 64) this.known.clear();
      this.known.set(key, this.found(rx, rz));
    }
    return this.known.get(key);
  }

  /** Returns the villages that may extend into a box of the world. */
  near(x0, z0, x1, z1) {
    const found = [];
    for (let rz = Math.floor((z0 - REACH) / REGION); rz <= Math.floor((z1 + REACH) / REGION); rz++) {
      for (let rx = Math.floor((x0 - REACH) / REGION); rx <= Math.floor((x1 + REACH) / REGION); rx++) {
        const village = this.ofRegion(rx, rz);
        if (village) found.push(village);
      }
    }
    return found;
  }

  found(rx, rz) {
    const chance = new Chance(hash(this.seed, rx, rz));
    if (chance.next() > 0.75) return null;
    const x = rx * REGION + chance.between(REACH, REGION - REACH);
    const z = rz * REGION + chance.between(REACH, REGION - REACH);
    const shape = this.climate.shapeAt(x, z);
    const biome = this.climate.biomeAt(x, z, shape);
    if (!HOMES.has(biome) || shape.height < SEA_LEVEL || shape.stream > 0) return null;
    const village = { x, z, biome, boxes: [], paths: [] };
    this.build(village, 'well', x - 2, z - 2, 0, chance);
    if (village.boxes.length === 0) return null;
    const lots = chance.between(6, 10);
    for (let n = 0; n < lots; n++) this.settle(village, n, lots, chance);
    return village.boxes.length > 3 ? village : null;
  }

  /** Builds on one lot of the ring, and places a lamp beside its path. */
  settle(village, n, lots, chance) {
    const { design } = n === 0 ? LOTS[0] : n === 1 ? LOTS[2] : chance.weighted(LOTS);
    const angle = (n + chance.next() * 0.6) * 2 * Math.PI / lots;
    const away = chance.between(13, 27);
    const start = chance.below(2 ** 31);
    const x = Math.round(village.x + Math.cos(angle) * away);
    const z = Math.round(village.z + Math.sin(angle) * away);
    const dx = village.x - x;
    const dz = village.z - z;
    // The front faces the well: 0 south, 1 west, 2 north, 3 east.
    const turn = Math.abs(dx) > Math.abs(dz) ? (dx > 0 ? 3 : 1) : dz > 0 ? 0 : 2;
    const built = this.build(village, design, x - 3, z - 3, turn, new Chance(start));
    if (!built) return;
    village.paths.push({ x0: village.x, z0: village.z, x1: built.frontX, z1: built.frontZ });
    const [besideX, besideZ] = turn % 2 ? [0, 2] : [2, 0];
    if (n % 2 === 0) {
      this.build(village, 'lamp', built.frontX + besideX, built.frontZ + besideZ, 0, new Chance(start + 1));
    }
  }

  /** Adds a building if its ground is dry, fairly level and free; returns it or null. */
  build(village, name, x, z, turn, chance) {
    const { wide, deep } = DESIGNS[name];
    const width = turn % 2 ? deep : wide;
    const depth = turn % 2 ? wide : deep;
    const heights = [];
    for (const px of [x - 1, x + (width >> 1), x + width]) {
      for (const pz of [z - 1, z + (depth >> 1), z + depth]) heights.push(this.climate.shapeAt(px, pz).height);
    }
    const low = Math.min(...heights);
    const high = Math.max(...heights);
    const gap = name === 'lamp' ? 1 : 2;
    const taken = village.boxes.some((box) => x - gap <= box.x1 && x + width + gap > box.x &&
      z - gap <= box.z1 && z + depth + gap > box.z);
    if (taken || low < SEA_LEVEL || high - low > STEEPEST) return null;
    heights.sort((a, b) => a - b);
    const { wood, dry } = BIOMES[village.biome];
    const box = {
      design: name, turn, x, z, y: heights[4], wide, deep, wood, dry, start: chance.below(2 ** 31),
      x1: x + width - 1, z1: z + depth - 1,
      frontX: turn === 1 ? x - 1 : turn === 3 ? x + width : x + (width >> 1),
      frontZ: turn === 2 ? z - 1 : turn === 0 ? z + depth : z + (depth >> 1),
    };
    village.boxes.push(box);
    return box;
  }

  /** Whether a column belongs to a building or to its margin of so many blocks. */
  takes(x, z, gap) {
    return this.near(x, z, x, z).some((village) => village.boxes.some((box) =>
      x >= box.x - gap && x <= box.x1 + gap && z >= box.z - gap && z <= box.z1 + gap));
  }

  /**
   * Draws the parts of villages in a chunk; `groundAt(x, z)` returns the ground. Returns the chests
   * of the chunk, [{x, y, z, items}].
   */
  draw(canvas, groundAt) {
    const chests = [];
    for (const village of this.near(canvas.x, canvas.z, canvas.x + 15, canvas.z + 15)) {
      for (const path of village.paths) this.drawPath(canvas, village, path, groundAt);
      for (const box of village.boxes) {
        if (canvas.touches(box.x, box.z, box.x1, box.z1)) drawBuilding(canvas, this.states, box, groundAt, chests);
      }
    }
    return chests.filter((chest) => canvas.holds(chest.x, chest.y, chest.z));
  }

  drawPath(canvas, village, { x0, z0, x1, z1 }, groundAt) {
    if (!canvas.touches(Math.min(x0, x1) - 1, Math.min(z0, z1) - 1, Math.max(x0, x1) + 1, Math.max(z0, z1) + 1)) return;
    const path = this.states(materials('oak', BIOMES[village.biome].dry).path);
    const steps = Math.max(Math.abs(x1 - x0), Math.abs(z1 - z0), 1);
    for (let n = 0; n <= steps; n++) {
      const x = Math.round(x0 + (x1 - x0) * n / steps);
      const z = Math.round(z0 + (z1 - z0) * n / steps);
      for (const [dx, dz] of [[0, 0], [1, 0], [0, 1]]) this.tread(canvas, x + dx, z + dz, path, groundAt);
    }
  }

  tread(canvas, x, z, path, groundAt) {
    if (!canvas.holds(x, 0, z)) return;
    const y = groundAt(x, z);
    // Not over water or over the entrance of a cave.
    if (y >= SEA_LEVEL - 1 && canvas.get(x, y, z) !== 0 && canvas.get(x, y + 1, z) === 0) canvas.set(x, y, z, path);
  }

  /** Returns the villagers, with what they trade, and their animals in a chunk, [{kind, x, y, z}]. */
  folk(chunkX, chunkZ) {
    const x0 = chunkX * 16;
    const z0 = chunkZ * 16;
    const found = [];
    for (const village of this.near(x0, z0, x0 + 15, z0 + 15)) {
      for (const box of village.boxes) {
        const x = (box.x + box.x1) / 2 + 0.5;
        const z = (box.z + box.z1) / 2 + 0.5;
        if (Math.floor(x / 16) !== chunkX || Math.floor(z / 16) !== chunkZ) continue;
        if (box.design === 'hut' || box.design === 'house' || box.design === 'smithy') {
          const front = { x: box.frontX + 0.5, z: box.frontZ + 0.5 };
          const y = this.climate.shapeAt(box.frontX, box.frontZ).height + 1;
          const jobs = JOBS[box.design];
          found.push({ kind: 'villager', ...front, y, merchant: { profession: jobs[box.start % jobs.length] } });
        } else if (box.design === 'pen') {
          const kind = ['sheep', 'cow', 'pig'][box.start % 3];
          for (const dx of [-1, 1]) found.push({ kind, x: x + dx, y: box.y + 1, z });
        }
      }
    }
    return found;
  }
}

module.exports = { REACH, REGION, Villages };

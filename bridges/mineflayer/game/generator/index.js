'use strict';

/**
 * The seeded world: ground, caves, ores, trees, plants, villages, structures, animals.
 *
 * Everything is a function of seed, biome, site and position, so a chunk has the same bytes in any
 * order of requests and in any process. Heights and numbers follow the game at 1.16 where a file
 * says so; the shapes of land and houses are our own. The head of each file lists its
 * simplifications.
 */

const { Animals } = require('./animals');
const { lightTables, makeStates } = require('./blocks');
const { Canvas, copyChunk, writeBlocks } = require('./canvas');
const { Caves } = require('./caves');
const { CHOICES, Climate, SEA_LEVEL } = require('./climate');
const { Cover } = require('./cover');
const { Ground } = require('./ground');
const { lightChunk } = require('./light');
const { End, END_ROW } = require('./end');
const { Nether, NETHER_ROW } = require('./nether');
const { hash, seedOf } = require('./noise');
const { Ores } = require('./ores');
const { NAMES, Plans } = require('./plan');
const { findSpawn } = require('./spawn');
const { Structures } = require('./structures');
const { Trees } = require('./trees');
const { Villages } = require('./villages');

const SITES = ['wild', 'flat'];
/** Maximum number of cached chunks for worlds that begin again, of about 40 kB each. */
const KEPT = 640;
/** Blocks between the places where a biome is searched, and within which. */
const STRIDE = 32;
const FARTHEST = 3200;
const kept = new Map();
const canvas = new Canvas();

function check(options) {
  const { seed, biome, site } = options;
  if (!Number.isSafeInteger(seed)) throw new RangeError(`seed must be a whole number up to 2^53, not ${seed}`);
  if (biome !== 'any' && !CHOICES.includes(biome)) {
    throw new RangeError(`biome must be any or one of ${CHOICES.join(', ')}, not ${biome}`);
  }
  if (!SITES.includes(site)) throw new RangeError(`site must be one of ${SITES.join(', ')}, not ${site}`);
}

class Generator {
  constructor({ seed, biome, site, registry, Chunk }) {
    const states = makeStates(registry);
    this.Chunk = Chunk;
    this.key = `${registry.version.minecraftVersion} ${seed} ${biome} ${site}`;
    this.flat = site === 'flat';
    this.tables = lightTables(registry);
    this.climate = new Climate(seed, biome === 'any' && this.flat ? 'plains' : biome, this.flat);
    this.caves = new Caves(seed);
    this.villages = new Villages(seed, this.climate, states);
    this.structures = new Structures(seed, this.climate, states, this.villages);
    // What stands on the ground: where no tree, pond or animal is.
    this.sites = {
      takes: (x, z, gap) => this.villages.takes(x, z, gap) || this.structures.takes(x, z, gap),
      folk: (chunkX, chunkZ) => [...this.villages.folk(chunkX, chunkZ), ...this.structures.folk(chunkX, chunkZ)],
    };
    this.plans = new Plans(seed, this.climate, this.caves, this.sites);
    this.ground = new Ground(seed, this.climate, this.caves, states);
    this.ores = new Ores(seed, states);
    this.trees = new Trees(states);
    this.cover = new Cover(seed, this.climate, this.plans, states);
    this.creatures = new Animals(seed, this.plans, this.sites);
    this.biomeIds = NAMES.map((name) => registry.biomesByName[name].id);
    this.nether = new Nether(seed, states, registry);
    this.end = new End(seed, states, registry);
    this.seed = seedOf(seed, 'spawn');
  }

  /** Draws a chunk's blocks on the canvas; returns its chests. */
  draw(chunkX, chunkZ) {
    const plan = this.plans.get(chunkX, chunkZ);
    canvas.begin(chunkX, chunkZ);
    this.ground.draw(canvas, plan);
    if (!this.flat) this.ground.carve(canvas, plan);
    this.ores.draw(canvas, plan.top, (x, z) => this.plans.biomeAt(x, z) === 'mountains');
    if (this.flat) return [];
    const groundAt = (x, z) => this.plans.groundAt(x, z);
    const chests = this.villages.draw(canvas, groundAt);
    chests.push(...this.structures.draw(canvas, groundAt));
    for (let dz = -1; dz <= 1; dz++) {
      for (let dx = -1; dx <= 1; dx++) {
        for (const tree of this.plans.get(chunkX + dx, chunkZ + dz).trees) this.trees.draw(canvas, tree);
      }
    }
    this.cover.draw(canvas, plan);
    this.cover.snowfall(canvas, plan, this.tables.open);
    this.end.drawStronghold(canvas);
    return chests;
  }

  makeEnd(chunkX, chunkZ) {
    canvas.begin(chunkX, chunkZ);
    this.end.draw(canvas);
    const chunk = new this.Chunk();
    writeBlocks(chunk, canvas);
    lightChunk(chunk, canvas, this.tables);
    chunk.biomes.fill(this.end.biomeId);
    return { chunk, chests: [] };
  }

  makeNether(chunkX, chunkZ) {
    canvas.begin(chunkX, chunkZ);
    this.nether.draw(canvas, chunkX, chunkZ);
    const chunk = new this.Chunk();
    writeBlocks(chunk, canvas);
    lightChunk(chunk, canvas, this.tables);
    for (let n = 0; n < 1024; n++) {
      const [x, z] = [chunkX * 16 + (n & 3) * 4 + 2, chunkZ * 16 + ((n >> 2) & 3) * 4 + 2];
      chunk.biomes[n] = this.nether.biomeIds[this.nether.biomeAt(x, z)];
    }
    return { chunk, chests: [] };
  }

  make(chunkX, chunkZ) {
    if (chunkZ >= END_ROW) return this.makeEnd(chunkX, chunkZ);
    if (chunkZ >= NETHER_ROW) return this.makeNether(chunkX, chunkZ);
    const chests = this.draw(chunkX, chunkZ);
    const chunk = new this.Chunk();
    writeBlocks(chunk, canvas);
    lightChunk(chunk, canvas, this.tables);
    const { biomes } = this.plans.get(chunkX, chunkZ);
    for (let n = 0; n < 1024; n++) {
      const column = (((n >> 2) & 3) * 4 + 2) * 16 + (n & 3) * 4 + 2;
      chunk.biomes[n] = this.biomeIds[biomes[column]];
    }
    return { chunk, chests };
  }

  /** Returns a chunk and its chests in their original state, from the cache if it was made lately. */
  first(chunkX, chunkZ) {
    const key = `${this.key} ${chunkX} ${chunkZ}`;
    let made = kept.get(key);
    if (made === undefined) {
      made = this.make(chunkX, chunkZ);
      if (kept.size >= KEPT) kept.delete(kept.keys().next().value);
    } else kept.delete(key);
    // The most recently used is last: a Map keeps the order of insertion.
    kept.set(key, made);
    return made;
  }

  /** Returns a copy of a chunk that may be changed. */
  generate(chunkX, chunkZ) {
    return copyChunk(this.first(chunkX, chunkZ).chunk);
  }

  chests(chunkX, chunkZ) {
    return this.first(chunkX, chunkZ).chests.map((chest) => ({ ...chest, items: (chest.items ?? []).map((item) => ({ ...item })) }));
  }

  animals(chunkX, chunkZ) {
    return this.flat || chunkZ >= NETHER_ROW ? [] : this.creatures.of(chunkX, chunkZ);
  }

  spawners(chunkX, chunkZ) {
    if (chunkZ >= END_ROW) return [];
    if (chunkZ >= NETHER_ROW) return this.nether.spawners(chunkX, chunkZ);
    return this.flat ? [] : this.end.spawners(chunkX, chunkZ);
  }

  biomeAt(x, z) {
    return this.plans.biomeAt(Math.floor(x), Math.floor(z));
  }

  /** Returns the place of a biome, {x, z}, that is nearest to another; null if none is near. */
  nearestBiome(biome, fromX, fromZ) {
    if (!NAMES.includes(biome)) return null;
    // The middle of a cell, whose biome is that of its 4 x 4 columns in a chunk.
    const [x0, z0] = [fromX, fromZ].map((at) => (Math.floor(at) >> 2) * 4 + 2);
    for (let ring = 0; ring * STRIDE <= FARTHEST; ring++) {
      for (let a = -ring; a <= ring; a++) {
        const isEdge = Math.abs(a) === ring;
        for (let b = -ring; b <= ring; b += isEdge || ring === 0 ? 1 : 2 * ring) {
          const [x, z] = [x0 + a * STRIDE, z0 + b * STRIDE];
          if (this.climate.biomeAt(x, z) === biome) return { x, z };
        }
      }
    }
    return null;
  }

  spawn() {
    if (this.flat) return { x: 0.5, y: SEA_LEVEL + 1, z: 0.5 };
    const start = hash(this.seed, 1);
    return findSpawn({
      x: (start & 63) - 32,
      z: ((start >>> 6) & 63) - 32,
      climate: this.climate,
      villages: this.sites,
      plans: this.plans,
      chunkAt: (chunkX, chunkZ) => this.first(chunkX, chunkZ).chunk,
    });
  }
}

/**
 * Makes the generator of one world.
 *
 * Args:
 *   seed: integer; another seed is another world.
 *   biome: 'any' for a world of all biomes, or one that covers all land: plains, forest, desert, taiga,
 *     savanna, snowy. Seas, rivers, beaches and mountains are there in all of them.
 *   site: 'wild', or 'flat': level ground of the biome at y 63 with ores below, and nothing on it.
 *   version: of the game; block names and chunks are those of 1.16.
 *
 * Returns {generate(chunkX, chunkZ) -> a prismarine-chunk of its own, spawn: {x, y, z} (middle of the
 * feet, on dry land under open sky), animals(chunkX, chunkZ) -> [{kind, x, y, z}], chests(chunkX,
 * chunkZ) -> [{x, y, z, items: [{name, count}]}], those of structures with `loot`, a table's name, and
 * `seed`, spawners(chunkX, chunkZ) -> [{x, y, z, kind}], strongholds() -> [{x, y, z}], biomeAt(x, z) -> name,
 * nearestBiome(name, x, z) -> {x, z} or null}. Throws RangeError on an option that is none.
 */
function makeGenerator({ seed, biome = 'any', site = 'wild', version = '1.16.5' }) {
  check({ seed, biome, site });
  const registry = require('prismarine-registry')(version);
  if (registry.version.majorVersion !== '1.16') {
    throw new RangeError(`worlds are generated for version 1.16, not ${version}`);
  }
  const Chunk = require('prismarine-chunk')(registry);
  const generator = new Generator({ seed, biome, site, registry, Chunk });
  let spawn;
  return {
    generate: (chunkX, chunkZ) => generator.generate(chunkX, chunkZ),
    animals: (chunkX, chunkZ) => generator.animals(chunkX, chunkZ),
    chests: (chunkX, chunkZ) => generator.chests(chunkX, chunkZ),
    spawners: (chunkX, chunkZ) => generator.spawners(chunkX, chunkZ),
    strongholds: () => (generator.flat ? [] : [...generator.end.strongholds()]),
    biomeAt: (x, z) => generator.biomeAt(x, z),
    nearestBiome: (biome, x, z) => generator.nearestBiome(biome, x, z),
    get spawn() {
      spawn = spawn || generator.spawn();
      return { ...spawn };
    },
  };
}

module.exports = { SITES, makeGenerator };

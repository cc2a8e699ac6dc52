'use strict';
/**
 * Chunk columns that several holders share until one of them writes.
 *
 * The generator's cache, the server's world and every bot's world contain columns of the same
 * terrain. `fork` makes a column that shares the sections of another; the first writer of a section
 * makes its own copy of it. So a reset copies no terrain, and 64 bots in one place share one copy
 * of it. Written for the columns of prismarine-chunk 1.16.
 */
const { shareVersion } = require('./libraries');
const chunkOf = require('prismarine-chunk');

const SECTIONS = 16;
const LIGHTS = SECTIONS + 2;
const ALL_BLOCKS = (1 << SECTIONS) - 1;
const ALL_LIGHTS = (1 << LIGHTS) - 1;

const guarded = new WeakSet();

const copyBits = (bits) => Object.assign(
  Object.create(Object.getPrototypeOf(bits)), bits, { data: bits.data.slice() });

const copySection = (section) => Object.assign(
  Object.create(Object.getPrototypeOf(section)), section,
  { data: copyBits(section.data), palette: section.palette && section.palette.slice() });

/** Makes section `index` of a column its own, if it is shared. */
function ownBlocks(column, index) {
  const bit = 1 << index;
  if (!(column.shared?.blocks & bit)) return;
  column.shared.blocks &= ~bit;
  const section = column.sections[index];
  if (section) column.sections[index] = copySection(section);
}

function ownLight(column, key, list, index) {
  const bit = 1 << index;
  if (!(column.shared?.[key] & bit)) return;
  column.shared[key] &= ~bit;
  const section = column[list][index];
  if (section) column[list][index] = copyBits(section);
}

/** Wraps the methods of a column class that write, so that they make their section their own. */
function guard(Column) {
  if (guarded.has(Column)) return;
  guarded.add(Column);
  const wrap = (name, own) => {
    const plain = Column.prototype[name];
    Column.prototype[name] = function (pos, value) {
      if (this.shared !== undefined) own(this, pos);
      return plain.call(this, pos, value);
    };
  };
  wrap('setBlockStateId', (column, pos) => {
    const index = pos.y >> 4;
    if (index >= 0 && index < SECTIONS) ownBlocks(column, index);
  });
  wrap('setSkyLight', (c, pos) => ownLight(c, 'sky', 'skyLightSections', (pos.y >> 4) + 1));
  wrap('setBlockLight', (c, pos) => ownLight(c, 'lamp', 'blockLightSections', (pos.y >> 4) + 1));
  wrap('setBiome', (column) => {
    if (!column.shared.biomes) return;
    column.shared.biomes = false;
    column.biomes = column.biomes.slice();
  });
}

const allShared = () => ({ blocks: ALL_BLOCKS, sky: ALL_LIGHTS, lamp: ALL_LIGHTS, biomes: true });

/** Returns a copy of `column`; from now on either may be written to alone. */
function fork(column) {
  guard(column.constructor);
  const copy = Object.assign(Object.create(Object.getPrototypeOf(column)), column);
  copy.sections = column.sections.slice();
  copy.skyLightSections = column.skyLightSections.slice();
  copy.blockLightSections = column.blockLightSections.slice();
  copy.blockEntities = { ...column.blockEntities };
  column.shared = allShared();
  copy.shared = allShared();
  return copy;
}

/** Surface of the flat world: the y of the first block of air. */
const FLAT_HEIGHT = 4;

let flatColumn = null;

/**
 * Returns the generator 'flat': bedrock, two layers of dirt and one of grass, plains everywhere, in
 * full daylight.
 */
function flatGenerator(version) {
  if (flatColumn === null) {
    const registry = shareVersion(version);
    const Column = chunkOf(registry);
    flatColumn = new Column();
    const layers = ['bedrock', 'dirt', 'dirt', 'grass_block'];
    const plains = registry.biomesByName.plains.id;
    for (let x = 0; x < 16; x++) {
      for (let z = 0; z < 16; z++) {
        layers.forEach((name, y) => {
          flatColumn.setBlockStateId({ x, y, z }, registry.blocksByName[name].defaultState);
        });
        for (let y = FLAT_HEIGHT; y < 256; y++) flatColumn.setSkyLight({ x, y, z }, 15);
      }
    }
    flatColumn.loadBiomes(new Array(1024).fill(plains));
  }
  const spawn = { x: 8, y: FLAT_HEIGHT, z: 8 };
  return { generate: () => flatColumn, spawn, animals: () => [], biomeAt: () => 'plains' };
}

/**
 * Returns a generator from a caller's value: the word 'flat', a function (chunkX, chunkZ) -> column
 * (the spawn is then the highest solid block at 8, 8), or an object {generate, spawn, ...} like
 * that of the seeded generator.
 */
function asGenerator(given, version) {
  if (given === undefined || given === 'flat') return flatGenerator(version);
  if (typeof given === 'function') return { generate: given, spawn: null, animals: () => [] };
  if (given !== null && typeof given.generate === 'function') return given;
  throw new TypeError("a generator is 'flat', a function (chunkX, chunkZ) -> column, or an object "
    + `with generate and spawn; got ${typeof given}`);
}

/** Returns the y above the highest block that is not air in a column, at x and z within it. */
function surface(column, x, z) {
  for (let y = 255; y >= 0; y--) {
    if (column.getBlockStateId({ x, y, z }) !== 0) return y + 1;
  }
  return 0;
}

module.exports = { fork, asGenerator, surface, FLAT_HEIGHT };

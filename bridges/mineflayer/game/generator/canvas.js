'use strict';

/** The blocks of a chunk while it is made, and their conversion to a chunk of prismarine-chunk. */

const HEIGHT = 256;
const CELLS = 16 * 16 * HEIGHT;

/**
 * Block states of one chunk, index y << 8 | z << 4 | x. Positions are in the world's coordinates;
 * those outside are ignored, so that an object across a border is complete if it is drawn once on
 * either side.
 */
class Canvas {
  constructor() {
    this.cells = new Uint16Array(CELLS);
    this.x = 0;
    this.z = 0;
  }

  /** Empties the canvas and assigns it to a chunk. */
  begin(chunkX, chunkZ) {
    this.cells.fill(0);
    this.x = chunkX * 16;
    this.z = chunkZ * 16;
  }

  /** Whether a place lies in this chunk. */
  holds(x, y, z) {
    return ((x - this.x) | (z - this.z)) >>> 4 === 0 && y >= 0 && y < HEIGHT;
  }

  /** Returns the state at a place of this chunk, -1 outside. */
  get(x, y, z) {
    return this.holds(x, y, z) ? this.cells[(y << 8) | ((z - this.z) << 4) | (x - this.x)] : -1;
  }

  /** Sets the state at a place, if it is in this chunk. */
  set(x, y, z, state) {
    if (this.holds(x, y, z)) this.cells[(y << 8) | ((z - this.z) << 4) | (x - this.x)] = state;
  }

  /** Whether a box of the world touches this chunk. */
  touches(x0, z0, x1, z1) {
    return x1 >= this.x && x0 < this.x + 16 && z1 >= this.z && z0 < this.z + 16;
  }
}

const seen = new Uint16Array(65536);
const places = new Uint16Array(4096);

/** Returns the distinct states of a section, air first, and writes each cell's number to `places`. */
function paletteOf(cells, from) {
  const palette = [0];
  let last = 0;
  let number = 0;
  seen[0] = 1;
  for (let i = 0; i < 4096; i++) {
    const state = cells[from + i];
    if (state !== last) {
      last = state;
      if (seen[state] === 0) {
        palette.push(state);
        seen[state] = palette.length;
      }
      number = seen[state] - 1;
    }
    places[i] = number;
  }
  for (const state of palette) seen[state] = 0;
  return palette;
}

/** Packs 4096 numbers into the words of a bit array: none of them crosses 64 bits. */
function pack(words, bits) {
  const perLong = Math.floor(64 / bits);
  let i = 0;
  for (let long = 0; i < 4096; long += 2) {
    let low = 0;
    let high = 0;
    for (let n = 0, shift = 0; n < perLong && i < 4096; n++, i++, shift += bits) {
      const value = places[i];
      if (shift >= 32) high |= value << (shift - 32);
      else {
        low |= value << shift;
        if (shift + bits > 32) high |= value >>> (32 - shift);
      }
    }
    words[long] = low;
    words[long + 1] = high;
  }
}

/** Writes the blocks of a section into a chunk; a section of only air is omitted. */
function writeSection(chunk, Section, cells, index) {
  const from = index << 12;
  const palette = paletteOf(cells, from);
  if (palette.length === 1) return;
  let solid = 0;
  for (let i = 0; i < 4096; i++) if (places[i] !== 0) solid++;
  let bits = 4;
  while (1 << bits < palette.length) bits++;
  const section = new Section({ maxBitsPerBlock: chunk.maxBitsPerBlock });
  if (bits > 8) {
    for (let i = 0; i < 4096; i++) section.setBlock({ x: i & 15, y: i >> 8, z: (i >> 4) & 15 }, cells[from + i]);
  } else {
    if (bits > 4) section.data = section.data.resizeTo(bits);
    pack(section.data.data, bits);
    section.palette = palette;
    section.solidBlockCount = solid;
  }
  chunk.sections[index] = section;
  chunk.sectionMask |= 1 << index;
}

/** Writes all blocks of a canvas into a new chunk. */
function writeBlocks(chunk, canvas) {
  const Section = chunk.constructor.section;
  for (let index = 0; index < 16; index++) writeSection(chunk, Section, canvas.cells, index);
}

function copyBits(bits) {
  if (bits === null) return null;
  const copy = Object.create(Object.getPrototypeOf(bits));
  Object.assign(copy, bits);
  copy.data = bits.data.slice();
  return copy;
}

/** Returns a copy of a chunk with its blocks, biomes and light. */
function copyChunk(chunk) {
  const copy = Object.assign(Object.create(Object.getPrototypeOf(chunk)), chunk);
  copy.biomes = chunk.biomes.slice();
  copy.blockEntities = { ...chunk.blockEntities };
  copy.skyLightSections = chunk.skyLightSections.map(copyBits);
  copy.blockLightSections = chunk.blockLightSections.map(copyBits);
  copy.sections = chunk.sections.map((section) => {
    if (section === null) return null;
    const made = Object.assign(Object.create(Object.getPrototypeOf(section)), section);
    made.data = copyBits(section.data);
    made.palette = section.palette === null ? null : section.palette.slice();
    return made;
  });
  return copy;
}

module.exports = { CELLS, Canvas, HEIGHT, copyChunk, writeBlocks };

'use strict';

/**
 * The light in a new chunk, as it is sent to clients.
 *
 * Light loses one level per block and what the block absorbs; sky light passes down through clear
 * blocks without loss (https://minecraft.wiki/w/Light, 1.16). Simplified: light does not enter from
 * neighbouring chunks; a chunk is lit from its own blocks only, so that it does not depend on the
 * order of generation. Sections without any light, and those more than one above the highest block,
 * are omitted: above the ground, clients interpret a missing section as level 15.
 */

const { CELLS } = require('./canvas');

const RING = 1 << 18;
const levels = new Uint8Array(CELLS);
const queue = new Int32Array(RING);
const floors = new Int16Array(256);

/** Spreads the light of the cells in the queue; `top` is the first layer that does not change. */
function spread(cells, opacity, count, top) {
  let head = 0;
  let tail = count;
  const enter = (cell, level) => {
    const left = level - opacity[cells[cell]];
    if (left > levels[cell]) {
      levels[cell] = left;
      if (left > 1) queue[tail++ & (RING - 1)] = cell;
    }
  };
  while (head < tail) {
    const cell = queue[head++ & (RING - 1)];
    const level = levels[cell];
    if ((cell & 15) !== 0) enter(cell - 1, level);
    if ((cell & 15) !== 15) enter(cell + 1, level);
    if ((cell & 240) !== 0) enter(cell - 16, level);
    if ((cell & 240) !== 240) enter(cell + 16, level);
    if (cell >= 256) enter(cell - 256, level);
    if (cell + 256 < top << 8) enter(cell + 256, level);
  }
}

/** Stores for each column the lowest cell that sky light reaches, and fills all above it. */
function shine(cells, open, top) {
  levels.fill(0, 0, top << 8);
  for (let column = 0; column < 256; column++) {
    let y = top - 1;
    while (y >= 0 && open[cells[(y << 8) | column]] === 1) levels[(y-- << 8) | column] = 15;
    floors[column] = y + 1;
  }
}

/** Adds to the queue the lit cells from which light spreads; returns their number. */
function edges(top) {
  let count = 0;
  for (let column = 0; column < 256; column++) {
    const x = column & 15;
    const z = column >> 4;
    let high = floors[column] + 1;
    if (x > 0) high = Math.max(high, floors[column - 1]);
    if (x < 15) high = Math.max(high, floors[column + 1]);
    if (z > 0) high = Math.max(high, floors[column - 16]);
    if (z < 15) high = Math.max(high, floors[column + 16]);
    for (let y = floors[column]; y < Math.min(high, top); y++) queue[count++] = (y << 8) | column;
  }
  return count;
}

/** Adds to the queue the cells that emit light; returns their number. */
function lamps(cells, emission, top) {
  levels.fill(0, 0, top << 8);
  let count = 0;
  for (let cell = 0; cell < top << 8; cell++) {
    const level = emission[cells[cell]];
    if (level > 0) {
      levels[cell] = level;
      queue[count++] = cell;
    }
  }
  return count;
}

/** Returns the levels of a section as words of eight, or null if all are 0. */
function wordsOf(section) {
  const words = new Uint32Array(512);
  let any = 0;
  for (let w = 0, at = section << 12; w < 512; w++, at += 8) {
    let word = 0;
    for (let n = 0; n < 8; n++) word |= levels[at + n] << (n * 4);
    words[w] = word;
    any |= word;
  }
  return any === 0 ? null : words;
}

/**
 * Writes the levels into one of a chunk's two lists of light; returns the mask of the sections
 * present.
 */
function store(lists, BitArray, top) {
  let mask = 0;
  for (let section = 0; section << 4 < top; section++) {
    const words = wordsOf(section);
    if (words === null) continue;
    const bits = new BitArray({ bitsPerValue: 4, capacity: 4096 });
    bits.data = words;
    lists[section + 1] = bits;
    mask |= 1 << (section + 1);
  }
  return mask;
}

/**
 * Lights a chunk.
 *
 * Args: the chunk; the canvas its blocks came from; `tables` as from blocks.lightTables.
 */
function lightChunk(chunk, canvas, tables) {
  const BitArray = new chunk.constructor.section({}).data.constructor;
  let last = 15;
  while (last > 0 && chunk.sections[last] === null) last--;
  const top = Math.min(last + 2, 16) << 4;
  shine(canvas.cells, tables.open, top);
  spread(canvas.cells, tables.opacity, edges(top), top);
  chunk.skyLightMask = store(chunk.skyLightSections, BitArray, top);
  const count = lamps(canvas.cells, tables.emission, top);
  if (count === 0) return;
  spread(canvas.cells, tables.opacity, count, top);
  chunk.blockLightMask = store(chunk.blockLightSections, BitArray, top);
}

module.exports = { lightChunk };

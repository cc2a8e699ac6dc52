'use strict';
/**
 * Search for blocks: the nearest cells of some kinds in the loaded chunks.
 *
 * mineflayer's findBlocks makes a Block of every cell of a section that has a match (10 ms a
 * section, a second for an ore); here the numbers of the states are compared, a section in half a
 * millisecond. Sections are searched nearest first, until no other can contain a nearer cell.
 */

/** Returns the squared distance from a cell to the nearest cell of a section. */
function sectionDistance(point, sx, sy, sz) {
  const gap = (p, low) => Math.max(low - p, 0, p - (low + 15));
  return gap(point.x, sx * 16) ** 2 + gap(point.y, sy * 16) ** 2 + gap(point.z, sz * 16) ** 2;
}

/** Returns [{far, sx, sy, sz}] of loaded sections within reach, nearest first. */
function sectionsNear(bot, point, maxDistance) {
  const limit = maxDistance * maxDistance;
  const minY = bot.game?.minY ?? 0;
  const top = minY + (bot.game?.height ?? 256);
  const low = (p) => Math.floor((p - maxDistance) / 16);
  const high = (p) => Math.floor((p + maxDistance) / 16);
  const out = [];
  for (let sx = low(point.x); sx <= high(point.x); sx++) {
    for (let sz = low(point.z); sz <= high(point.z); sz++) {
      const column = bot.world.getColumn(sx, sz);
      if (!column) continue;
      for (let sy = Math.max(low(point.y), minY >> 4); sy <= Math.min(high(point.y), (top >> 4) - 1); sy++) {
        const section = column.sections[sy - (minY >> 4)];
        const far = sectionDistance(point, sx, sy, sz);
        if (section && far <= limit) out.push({ far, sx, sy, sz, column, section });
      }
    }
  }
  return out.sort((a, b) => a.far - b.far || a.sx - b.sx || a.sy - b.sy || a.sz - b.sz);
}

function mayHold({ palette }, states) {
  if (!Array.isArray(palette)) return true;
  return palette.some((state) => states.has(state));
}

/** Steps to the neighbours of a cell, and their indices among the 4,096 cells of a section. */
const NEIGHBOURS = [[1, 0, 0, 1], [-1, 0, 0, -1], [0, 0, 1, 16], [0, 0, -1, -16], [0, 1, 0, 256], [0, -1, 0, -256]];

/** Returns whether all sides of a cell of a section touch opaque blocks. */
function isCovered(bot, { sx, sy, sz }, index, opaque, walls) {
  const [x, z, y] = [index & 15, (index >> 4) & 15, index >> 8];
  return NEIGHBOURS.every(([dx, dy, dz, step]) => {
    const [nx, ny, nz] = [x + dx, y + dy, z + dz];
    if (((nx | ny | nz) & ~15) === 0) return walls[index + step] === 1;
    const column = bot.world.getColumn(sx + (nx >> 4), sz + (nz >> 4));
    if (!column) return false;
    return opaque[column.getBlockStateId({ x: nx & 15, y: sy * 16 + ny, z: nz & 15 })] === 1;
  });
}

/** Adds the matching cells of a section to `rings`; with `opaque` only those not covered. */
function scan(bot, place, states, { center, limit, opaque }, rings) {
  const { sx, sy, sz, column } = place;
  const at = { x: 0, y: 0, z: 0 };
  const walls = new Uint8Array(4096);
  const matching = [];
  for (let index = 0; index < 4096; index++) {
    at.x = index & 15;
    at.z = (index >> 4) & 15;
    at.y = sy * 16 + (index >> 8);
    const state = column.getBlockStateId(at);
    if (opaque) walls[index] = opaque[state];
    if (states.has(state)) matching.push(index);
  }
  for (const index of matching) {
    const [x, y, z] = [sx * 16 + (index & 15), sy * 16 + (index >> 8), sz * 16 + ((index >> 4) & 15)];
    const far = (x - center.x) ** 2 + (y - center.y) ** 2 + (z - center.z) ** 2;
    if (far > limit || (opaque && isCovered(bot, place, index, opaque, walls))) continue;
    (rings[far] ??= []).push([x, y, z]);
  }
}

/** Cells of which the visible ones are chosen where states have no numbers. */
const MOST_OLD = 1024;
const byPlace = (a, b) => a[1] - b[1] || a[0] - b[0] || a[2] - b[2];

/**
 * Returns up to `count` cells (Vec3), nearest first, of blocks of the kinds given.
 *
 * @param {object} bot mineflayer bot
 * @param {{kinds: object[], maxDistance: number, count: number, point: object, opaque?: Uint8Array,
 *   sees: (cell: object) => boolean}} query `kinds` are the registry's records, `point` a Vec3; with
 *   `opaque` (per block state, 1 where sight ends) blocks with nothing else on any side are left
 *   out, since no one can see them. How many cells are looked at depends on `count` only by those
 *   that `sees` accepts: hidden blocks never take the place of others.
 */
function findCells(bot, { kinds, maxDistance, count, point, opaque, sees }) {
  const hasStates = kinds.every(({ minStateId }) => minStateId !== undefined);
  if (!hasStates || !bot.world.getColumn) { // before 1.13
    const matching = kinds.map(({ id }) => id);
    return bot.findBlocks({ matching, maxDistance, count: MOST_OLD, point }).filter(sees).slice(0, count);
  }
  const states = new Set();
  for (const { minStateId, maxStateId } of kinds) {
    for (let state = minStateId; state <= maxStateId; state++) states.add(state);
  }
  const center = point.floored();
  const limit = maxDistance * maxDistance;
  /** Cells by their squared distance, which is a whole number. */
  const rings = [];
  const found = [];
  const places = sectionsNear(bot, center, maxDistance).filter(({ section }) => mayHold(section, states));
  let ring = 0;
  for (let i = 0; i <= places.length; i++) {
    // No section that is left contains a nearer cell.
    const safe = i < places.length ? places[i].far : limit + 1;
    for (; ring < safe; ring++) {
      for (const [x, y, z] of rings[ring]?.sort(byPlace) ?? []) {
        const cell = center.clone().set(x, y, z);
        if (!sees(cell)) continue;
        found.push(cell);
        if (found.length === count) return found;
      }
      rings[ring] = undefined;
    }
    if (i < places.length) scan(bot, places[i], states, { center, limit, opaque }, rings);
  }
  return found;
}

module.exports = { findCells };

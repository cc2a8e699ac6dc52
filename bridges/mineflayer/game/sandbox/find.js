'use strict';
/**
 * Search for blocks: the nearest cells of some kinds in the loaded chunks.
 *
 * mineflayer's findBlocks makes a Block of every cell of a section that has a match (10 ms a
 * section, a second for an ore); here the numbers of the states are compared, a section in some
 * 50 microseconds. Sections are searched nearest first, until no other can contain a nearer cell.
 */

/** Kinds of which a section holds hundreds, most of them out of sight. */
const MASSES = new Set(['stone', 'granite', 'diorite', 'andesite', 'deepslate', 'tuff', 'dirt', 'grass_block', 'sand',
  'sandstone', 'gravel', 'netherrack', 'end_stone', 'water', 'lava', 'grass', 'tall_grass', 'snow', 'snow_block', 'ice']);
const AIRS = new Set(['air', 'cave_air', 'void_air']);
/** More kinds than this are as much work as a mass. */
const MANY_KINDS = 16;
/** Air is searched this far: of most of it sight must be tested, at seven points each. */
const AIR_DISTANCE = 16;
/** Work (runtime.js) per cubic block of distance: where nothing in sight is found, 64 blocks take 10, 55 and (16) 70 ms. */
const [WORK, MASS_WORK, AIR_WORK] = [12, 64, 5000];

const isMass = ({ name }) => MASSES.has(name) || name.endsWith('_leaves');
const isAir = ({ name }) => AIRS.has(name);

/** Returns how far a search for some kinds goes. */
function reachOf(kinds, maxDistance) {
  return kinds.some(isAir) ? Math.min(maxDistance, AIR_DISTANCE) : maxDistance;
}

/** Returns the work of a search, known from what is asked alone: hidden blocks must not count. */
function workOf({ matching, maxDistance }) {
  const each = matching.some(isAir) ? AIR_WORK : matching.some(isMass) || matching.length > MANY_KINDS ? MASS_WORK : WORK;
  return each * reachOf(matching, maxDistance) ** 3;
}

/** Returns the squared distance from a cell to the nearest cell of a section. */
function sectionDistance(point, sx, sy, sz) {
  const gap = (p, low) => Math.max(low - p, 0, p - (low + 15));
  return gap(point.x, sx * 16) ** 2 + gap(point.y, sy * 16) ** 2 + gap(point.z, sz * 16) ** 2;
}

/** Returns [{far, sx, sy, sz}] of loaded sections within reach, nearest first. */
function sectionsNear(bot, point, maxDistance, { eye, sight }) {
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
        if (section && far <= limit && sectionDistance(eye, sx, sy, sz) <= sight) out.push({ far, sx, sy, sz, column, section });
      }
    }
  }
  return out.sort((a, b) => a.far - b.far || a.sx - b.sx || a.sy - b.sy || a.sz - b.sz);
}

function mayHold({ palette }, states) {
  if (!Array.isArray(palette)) return true;
  return palette.some((state) => states.has(state));
}

/** Returns the states of the 4,096 cells of a section, by x + 16 z + 256 y. */
function statesOf({ data, palette }) {
  const out = new Uint16Array(4096);
  if (Buffer.isBuffer(data)) { // before 1.9
    for (let index = 0; index < 4096; index++) out[index] = data.readUInt16LE(2 * index);
    return out;
  }
  // From 1.18 the data has the palette, and does this itself.
  const names = Array.isArray(palette) && data.palette === undefined ? palette : null;
  for (let index = 0; index < 4096; index++) {
    const value = data.get(index);
    out[index] = names === null ? value : names[value];
  }
  return out;
}

/** Returns whether the block of a cell, beside a section or in it, ends sight. */
function isWall(bot, { sx, sy, sz }, x, y, z, opaque) {
  const column = bot.world.getColumn(sx + (x >> 4), sz + (z >> 4));
  return Boolean(column) && opaque[column.getBlockStateId({ x: x & 15, y: sy * 16 + y, z: z & 15 })] === 1;
}

/** Returns whether all sides of a cell of a section touch opaque blocks. */
function isCovered(bot, place, index, opaque, cells) {
  const [x, z, y] = [index & 15, (index >> 4) & 15, index >> 8];
  return (y < 15 ? opaque[cells[index + 256]] === 1 : isWall(bot, place, x, 16, z, opaque))
    && (x < 15 ? opaque[cells[index + 1]] === 1 : isWall(bot, place, 16, y, z, opaque))
    && (x > 0 ? opaque[cells[index - 1]] === 1 : isWall(bot, place, -1, y, z, opaque))
    && (z < 15 ? opaque[cells[index + 16]] === 1 : isWall(bot, place, x, y, 16, opaque))
    && (z > 0 ? opaque[cells[index - 16]] === 1 : isWall(bot, place, x, y, -1, opaque))
    && (y > 0 ? opaque[cells[index - 256]] === 1 : isWall(bot, place, x, -1, z, opaque));
}

const squared = (x, y, z, point) => (x - point.x) ** 2 + (y - point.y) ** 2 + (z - point.z) ** 2;

/** Adds the matching cells of a section to `rings`; with `opaque` only those not covered. */
function scan(bot, place, states, { center, limit, opaque, eye, sight }, rings) {
  const { sx, sy, sz, section } = place;
  const cells = statesOf(section);
  for (let index = 0; index < 4096; index++) {
    if (!states.has(cells[index])) continue;
    const [x, y, z] = [sx * 16 + (index & 15), sy * 16 + (index >> 8), sz * 16 + ((index >> 4) & 15)];
    const far = squared(x, y, z, center);
    if (far > limit || squared(x, y, z, eye) > sight) continue;
    if (opaque && isCovered(bot, place, index, opaque, cells)) continue;
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
 *   sight?: number, sees: (cell: object) => boolean}} query `kinds` are the registry's records, `point` a Vec3; with
 *   `opaque` (per block state, 1 where sight ends) blocks with nothing else on any side are left
 *   out, since no one can see them, and so are those farther from the eye than `sight`. How many cells are looked at depends on `count` only by those
 *   that `sees` accepts: hidden blocks never take the place of others.
 */
function findCells(bot, { kinds, maxDistance: asked, count, point, opaque, sight = Infinity, sees }) {
  const maxDistance = reachOf(kinds, asked);
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
  // From cell to cell, which is at most two farther than from the eye to the middle of a block.
  const reach = { eye: bot.entity.position.offset(0, bot.entity.eyeHeight ?? 1.62, 0).floored(), sight: (sight + 2) ** 2 };
  /** Cells by their squared distance, which is a whole number. */
  const rings = [];
  const found = [];
  const places = sectionsNear(bot, center, maxDistance, reach).filter(({ section }) => mayHold(section, states));
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
    if (i < places.length) scan(bot, places[i], states, { center, limit, opaque, ...reach }, rings);
  }
  return found;
}

module.exports = { findCells, workOf, isMass, isAir };

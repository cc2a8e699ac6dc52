'use strict';
/**
 * Looking for blocks: the nearest cells of some kinds in the loaded chunks.
 *
 * mineflayer's findBlocks makes a Block of every cell of a section that has a match (10 ms a
 * section, a second for an ore); here the numbers of the states are compared, a section in half a
 * millisecond. Sections are looked at nearest first, until no other can hold a nearer cell.
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

/** Adds the matching cells of a section as {far, x, y, z}. */
function scan({ sx, sy, sz, column }, states, point, limit, out) {
  const at = { x: 0, y: 0, z: 0 };
  for (let y = sy * 16; y < sy * 16 + 16; y++) {
    at.y = y;
    for (let z = 0; z < 16; z++) {
      at.z = z;
      for (let x = 0; x < 16; x++) {
        at.x = x;
        if (!states.has(column.getBlockStateId(at))) continue;
        const [wx, wz] = [sx * 16 + x, sz * 16 + z];
        const far = (wx - point.x) ** 2 + (y - point.y) ** 2 + (wz - point.z) ** 2;
        if (far <= limit) out.push({ far, x: wx, y, z: wz });
      }
    }
  }
}

const nearerFirst = (a, b) => a.far - b.far || a.y - b.y || a.x - b.x || a.z - b.z;

/**
 * Returns up to `count` cells (Vec3), nearest first, of blocks of the kinds given.
 *
 * @param {object} bot mineflayer bot
 * @param {{kinds: object[], maxDistance: number, count: number, point: object}} query `kinds` are
 *   the registry's records, `point` a Vec3
 */
function findCells(bot, { kinds, maxDistance, count, point }) {
  const hasStates = kinds.every(({ minStateId }) => minStateId !== undefined);
  if (!hasStates || !bot.world.getColumn) {
    return bot.findBlocks({ matching: kinds.map(({ id }) => id), maxDistance, count, point });
  }
  const states = new Set();
  for (const { minStateId, maxStateId } of kinds) {
    for (let state = minStateId; state <= maxStateId; state++) states.add(state);
  }
  const center = point.floored();
  const limit = maxDistance * maxDistance;
  let found = [];
  for (const place of sectionsNear(bot, center, maxDistance)) {
    if (found.length >= count && place.far > found[count - 1].far) break;
    if (!mayHold(place.section, states)) continue;
    scan(place, states, center, limit, found);
    if (found.length >= count) found = found.sort(nearerFirst).slice(0, count);
  }
  return found.sort(nearerFirst).map(({ x, y, z }) => center.clone().set(x, y, z));
}

module.exports = { findCells };

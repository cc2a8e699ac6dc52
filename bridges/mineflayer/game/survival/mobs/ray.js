'use strict';

/**
 * Straight lines through blocks: visibility and missile hits. The cells along a line are visited in
 * order (Amanatides and Woo, "A Fast Voxel Traversal Algorithm", 1987).
 */

/**
 * Visits the cells from one point to another until `visit(x, y, z)` returns something that is not
 * undefined; returns that, or undefined.
 */
function along(x0, y0, z0, x1, y1, z1, visit) {
  const d = [x1 - x0, y1 - y0, z1 - z0];
  const from = [x0, y0, z0];
  const cell = from.map(Math.floor);
  const end = [Math.floor(x1), Math.floor(y1), Math.floor(z1)];
  const step = d.map(Math.sign);
  const delta = d.map((v) => (v === 0 ? Infinity : Math.abs(1 / v)));
  const next = d.map((v, i) =>
    v === 0 ? Infinity : (v > 0 ? cell[i] + 1 - from[i] : from[i] - cell[i]) * delta[i],
  );
  let left = Math.abs(end[0] - cell[0]) + Math.abs(end[1] - cell[1]) + Math.abs(end[2] - cell[2]);
  for (;;) {
    const found = visit(cell[0], cell[1], cell[2]);
    if (found !== undefined || left-- <= 0) return found;
    const axis = next[0] < next[1] ? (next[0] < next[2] ? 0 : 2) : next[1] < next[2] ? 1 : 2;
    cell[axis] += step[axis];
    next[axis] += delta[axis];
  }
}

/** Returns whether no full block that hides what is behind it lies between two points. */
function clear(blocks, x0, y0, z0, x1, y1, z1) {
  return (
    along(x0, y0, z0, x1, y1, z1, (x, y, z) => {
      const stateId = blocks.stateAt(x, y, z);
      return stateId !== 0 && blocks.info(stateId).suffocates ? false : undefined;
    }) === undefined
  );
}

/**
 * Returns the share of the way at which a line enters a box `[x0, y0, z0, x1, y1, z1]`, or
 * Infinity.
 */
function enters(from, to, low, high) {
  let first = 0;
  let last = 1;
  for (let i = 0; i < 3; i++) {
    const d = to[i] - from[i];
    if (d === 0) {
      if (from[i] < low[i] || from[i] > high[i]) return Infinity;
      continue;
    }
    const a = (low[i] - from[i]) / d;
    const b = (high[i] - from[i]) / d;
    first = Math.max(first, Math.min(a, b));
    last = Math.min(last, Math.max(a, b));
  }
  return first <= last ? first : Infinity;
}

/**
 * Returns the share of the way, 0 to 1, at which a line hits a block's collision box, or Infinity.
 */
function hitsBlock(blocks, from, to) {
  const found = along(...from, ...to, (x, y, z) => {
    const stateId = blocks.stateAt(x, y, z);
    if (stateId === 0) return undefined;
    let best = Infinity;
    for (const b of blocks.info(stateId).boxes) {
      best = Math.min(
        best,
        enters(from, to, [x + b[0], y + b[1], z + b[2]], [x + b[3], y + b[4], z + b[5]]),
      );
    }
    return best < Infinity ? best : undefined;
  });
  return found === undefined ? Infinity : found;
}

/** Returns the share of the way at which a line hits an entity's body, grown by `grow` blocks. */
function hitsBody(from, to, position, width, height, grow) {
  const half = width / 2 + grow;
  return enters(
    from,
    to,
    [position.x - half, position.y - grow, position.z - half],
    [position.x + half, position.y + height + grow, position.z + half],
  );
}

module.exports = { clear, hitsBlock, hitsBody };

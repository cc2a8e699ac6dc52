'use strict';

/**
 * Moves axis-aligned boxes through blocks, one axis after the other as the game does (vertical
 * first). A box is given by the centre of its base, its width and its height, in blocks.
 */

const SLACK = 1e-7;

function overlaps(aLow, aHigh, bLow, bHigh) {
  return aHigh > bLow + SLACK && aLow < bHigh - SLACK;
}

/** Collects the collision boxes of all blocks that touch a region, as flat rows of six numbers. */
function gather(blocks, x0, y0, z0, x1, y1, z1) {
  const found = [];
  // Fences and walls are 1.5 high: the block below the region counts too.
  for (let by = Math.floor(y0) - 1; by <= Math.floor(y1); by++) {
    for (let bx = Math.floor(x0); bx <= Math.floor(x1); bx++) {
      for (let bz = Math.floor(z0); bz <= Math.floor(z1); bz++) {
        const stateId = blocks.stateAt(bx, by, bz);
        if (stateId === 0) continue;
        for (const b of blocks.info(stateId).boxes) {
          found.push([bx + b[0], by + b[1], bz + b[2], bx + b[3], by + b[4], bz + b[5]]);
        }
      }
    }
  }
  return found;
}

function clip(boxes, axis, low, high, distance) {
  const [a, b] = axis === 0 ? [1, 2] : axis === 1 ? [0, 2] : [0, 1];
  let left = distance;
  for (const box of boxes) {
    if (!overlaps(low[a], high[a], box[a], box[a + 3])) continue;
    if (!overlaps(low[b], high[b], box[b], box[b + 3])) continue;
    if (left > 0 && box[axis] >= high[axis] - SLACK) left = Math.min(left, box[axis] - high[axis]);
    else if (left < 0 && box[axis + 3] <= low[axis] + SLACK)
      left = Math.max(left, box[axis + 3] - low[axis]);
  }
  return left;
}

/**
 * Returns where a box at (x, y, z) that is to move by (vx, vy, vz) ends: `{x, y, z, hitX, hitY,
 * hitZ, onGround}`.
 */
function sweep(blocks, x, y, z, width, height, vx, vy, vz) {
  const half = width / 2;
  const low = [x - half, y, z - half];
  const high = [x + half, y + height, z + half];
  const boxes = gather(
    blocks,
    low[0] + Math.min(vx, 0),
    low[1] + Math.min(vy, 0),
    low[2] + Math.min(vz, 0),
    high[0] + Math.max(vx, 0),
    high[1] + Math.max(vy, 0),
    high[2] + Math.max(vz, 0),
  );
  const wanted = [vx, vy, vz];
  const got = [0, 0, 0];
  for (const axis of [1, 0, 2]) {
    got[axis] = boxes.length ? clip(boxes, axis, low, high, wanted[axis]) : wanted[axis];
    low[axis] += got[axis];
    high[axis] += got[axis];
  }
  const hit = got.map((value, i) => Math.abs(value - wanted[i]) > SLACK);
  return {
    x: x + got[0],
    y: y + got[1],
    z: z + got[2],
    hitX: hit[0],
    hitY: hit[1],
    hitZ: hit[2],
    onGround: hit[1] && vy < 0,
  };
}

/** Returns whether two boxes, each by the centre of its base, width and height, overlap. */
function boxesOverlap(a, aWidth, aHeight, b, bWidth, bHeight) {
  const reach = (aWidth + bWidth) / 2;
  return (
    Math.abs(a.x - b.x) < reach &&
    Math.abs(a.z - b.z) < reach &&
    a.y < b.y + bHeight &&
    b.y < a.y + aHeight
  );
}

module.exports = { sweep, boxesOverlap };

'use strict';

/** What a player looks at, as the server knows it. */

const REACH = 5;
const STEP = 0.02;

/**
 * Returns the first block in a player's line of sight that is solid there, or satisfies
 * `accept(info)`, within 5 blocks: `{cell, info, point, before}`, `before` the cell in front of it;
 * null for none. `accepted` is whether it was accepted.
 */
function inSight(survival, player, accept) {
  const { yaw, pitch } = player.facing;
  const way = [-Math.sin(yaw) * Math.cos(pitch), -Math.sin(pitch), Math.cos(yaw) * Math.cos(pitch)];
  const eye = player.position.offset(0, player.crouching ? 1.27 : 1.62, 0);
  let last = null;
  for (let far = 0; far <= REACH; far += STEP) {
    const spot = [eye.x + way[0] * far, eye.y + way[1] * far, eye.z + way[2] * far];
    const cell = spot.map(Math.floor);
    const known = last && cell.every((v, i) => v === last.cell[i]);
    if (known && !last.info.boxes.length && !last.info.liquid) continue;
    const info = known ? last.info : survival.blocks.at(...cell);
    const point = { x: spot[0], y: spot[1], z: spot[2] };
    const before = known ? last.before : last && last.cell;
    if (accept(info)) return { cell, info, point, before, accepted: true };
    const inside = info.boxes.some((box) => [0, 1, 2].every((i) => {
      const v = spot[i] - cell[i];
      return v >= box[i] && v <= box[i + 3];
    }));
    if (inside) return { cell, info, point, before, accepted: false };
    if (!known) last = { cell, info, before };
  }
  return null;
}

module.exports = { inSight };

'use strict';

/**
 * The effect of flowing water on bodies: it moves items and mobs (Minecraft Wiki, "Water", "Flow
 * and currents"; 0.014 blocks per tick more each tick). Players are moved by their own clients.
 * Swimmers are not moved, as in the game. Simplified: lava moves no bodies.
 */

const { FACES } = require('../blocks');
const { WATER } = require('./states');

const PUSH = 0.014;
const SHALLOW = 0.4;
const ITEM = 0.25;

/** Returns the height of the water in a block, 0 to 1. */
function heightAt(fluids, x, y, z, here) {
  return fluids.read(x, y + 1, z).kind === WATER ? 1 : here.amount / 9;
}

/** Writes the direction of flow of a block's water to `out`, as a unit vector, or 0 for still water. */
function current(fluids, x, y, z, here, out) {
  out.x = out.y = out.z = 0;
  let walled = false;
  for (let face = 2; face < 6; face++) {
    const [dx, , dz] = FACES[face];
    const there = fluids.read(x + dx, y, z + dz);
    if (here.level === 8) walled ||= there.dense || fluids.read(x + dx, y + 1, z + dz).dense;
    if (there.kind !== WATER && there.kind !== 0) continue;
    let fall = 0;
    if (there.kind === WATER) fall = (here.amount - there.amount) / 9;
    else if (!there.solid) {
      const below = fluids.read(x + dx, y - 1, z + dz);
      if (below.kind === WATER) fall = here.amount / 9 - (below.amount / 9 - 8 / 9);
    }
    out.x += dx * fall;
    out.z += dz * fall;
  }
  if (walled) {
    const flat = Math.hypot(out.x, out.z) || 1;
    out.x /= flat;
    out.z /= flat;
    out.y = -6;
  }
  const length = Math.hypot(out.x, out.y, out.z);
  if (length < 1e-9) return;
  out.x /= length;
  out.y /= length;
  out.z /= length;
}

const flow = { x: 0, y: 0, z: 0 };

/**
 * Returns the push on a body, in blocks per tick, as `{x, y, z}` that the next call overwrites, or
 * null.
 */
function pushOn(fluids, { x, y, z }, width, height) {
  const half = width / 2 - 0.001;
  const low = y + 0.001;
  let [sx, sy, sz] = [0, 0, 0];
  let depth = 0;
  for (let bx = Math.floor(x - half); bx <= Math.floor(x + half); bx++) {
    for (let by = Math.floor(low); by <= Math.floor(y + height - 0.001); by++) {
      for (let bz = Math.floor(z - half); bz <= Math.floor(z + half); bz++) {
        const here = fluids.read(bx, by, bz);
        if (here.kind !== WATER) continue;
        const top = by + heightAt(fluids, bx, by, bz, here);
        if (top < low) continue;
        depth = Math.max(depth, top - low);
        current(fluids, bx, by, bz, here, flow);
        const share = depth < SHALLOW ? depth : 1;
        sx += flow.x * share;
        sy += flow.y * share;
        sz += flow.z * share;
      }
    }
  }
  const length = Math.hypot(sx, sy, sz);
  if (length < 1e-9) return null;
  flow.x = (sx / length) * PUSH;
  flow.y = (sy / length) * PUSH;
  flow.z = (sz / length) * PUSH;
  return flow;
}

function carry(fluids, body, width, height) {
  const push = pushOn(fluids, body.position, width, height);
  if (!push) return;
  body.motion.x += push.x;
  body.motion.y += push.y;
  body.motion.z += push.z;
  body.resting = false;
}

/** Moves the items and mobs of a world with the currents, by one tick. */
function carryAll(survival) {
  const { fluids } = survival;
  for (const item of survival.drops.values()) {
    const { x, y, z } = item.position;
    if (fluids.read(Math.floor(x), Math.floor(y + 0.001), Math.floor(z)).kind === WATER)
      carry(fluids, item, ITEM, ITEM);
  }
  if (!survival.mobs) return;
  for (const mob of survival.mobs.list.values()) {
    const carried = mob.wet && !mob.resting && mob.kind.moves === 'walk';
    if (carried) carry(fluids, mob, mob.width, mob.height);
  }
}

module.exports = { carryAll, current };

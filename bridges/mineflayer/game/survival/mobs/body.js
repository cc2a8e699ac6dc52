'use strict';

/**
 * How mobs move: gravity, collisions, steps, jumps, water, flight (LivingEntity's travel, 1.16).
 * The intended motion of a mob is in `goX`, `goZ` (unit vector), `goSpeed` (its attribute times a
 * factor) and `jumps` and `climbs`; flyers and swimmers add to `motion` themselves. A mob at rest
 * is not updated until its ground changes, it is pushed or it is to move.
 *
 * Simplified: no drowning of walkers, no cramming, no suffocation, ice and soul sand behave like
 * stone.
 */

const { Vec3 } = require('vec3');
const { sweep } = require('../physics');

const STILL = 0.003;
const DEEP = 0.4; // blocks of water in which a walker swims up
const CHECKED = 10; // ticks between checks of the blocks that a mob at rest stands in

const byteOf = (radians) => (Math.floor((radians * 128) / Math.PI) << 24) >> 24;

/** Turns a mob's body and head to a direction; a yaw of 0 looks south (+z). */
function face(mob, dx, dz) {
  if (dx === 0 && dz === 0) return;
  mob.yaw = byteOf(Math.atan2(-dx, dz));
  mob.headYaw = mob.yaw;
}

/** Turns a mob to look at a place. */
function lookAt(mob, x, y, z) {
  const dx = x - mob.position.x;
  const dz = z - mob.position.z;
  face(mob, dx, dz);
  mob.pitch = byteOf(-Math.atan2(y - (mob.position.y + mob.eyes), Math.hypot(dx, dz)));
}

/** Makes a mob move towards a position, at `factor` times its own speed. */
function goTo(mob, x, z, factor = 1) {
  const dx = x - mob.position.x;
  const dz = z - mob.position.z;
  const far = Math.hypot(dx, dz);
  if (far < 1e-4) return;
  mob.goX = dx / far;
  mob.goZ = dz / far;
  mob.goSpeed = mob.pace * factor;
  face(mob, dx, dz);
}

function moveTo(mob, to) {
  mob.position = new Vec3(to.x, to.y, to.z);
  mob.onGround = to.onGround;
}

function slide(blocks, mob, { x, y, z }) {
  const at = mob.position;
  return sweep(blocks, at.x, at.y, at.z, mob.width, mob.height, x, y, z);
}

/** Tries to get further by a step up; returns the better of both end positions. */
function stepUp(blocks, mob, at, to, vx, vz) {
  const { width, height } = mob;
  const rise = sweep(blocks, at.x, at.y, at.z, width, height, 0, mob.kind.step, 0);
  const over = sweep(blocks, rise.x, rise.y, rise.z, width, height, vx, 0, vz);
  const gained = (over.x - at.x) ** 2 + (over.z - at.z) ** 2;
  if (gained <= (to.x - at.x) ** 2 + (to.z - at.z) ** 2 + 1e-9) return to;
  const down = sweep(blocks, over.x, over.y, over.z, width, height, 0, at.y - over.y - 1e-3, 0);
  return { ...down, hitX: over.hitX, hitZ: over.hitZ, hitY: true, onGround: true };
}

function landed(survival, mob, fell) {
  if (mob.onGround && mob.fallDistance > 0) {
    const { kind } = mob;
    if (mob.fallDistance > 3 && !kind.unhurtByFall && !kind.glides && survival.rules.fallDamage) {
      survival.hurt(mob, { amount: Math.ceil(mob.fallDistance - 3 - 1e-4), cause: 'fall' });
    }
    mob.fallDistance = 0;
  } else if (fell > 0) {
    mob.fallDistance += fell;
  }
}

function walkOnLand(survival, mob, motion) {
  const wish = mob.goSpeed * mob.goSpeed * 0.98;
  // A jump starts at once; acceleration in the air is small.
  const push = mob.onGround ? wish : 0.02 * mob.goSpeed;
  if (mob.jumps && mob.onGround) motion.y = 0.42;
  if (mob.kind.glides && !mob.onGround && motion.y < 0) motion.y *= 0.6;
  motion.x += mob.goX * push;
  motion.z += mob.goZ * push;
  const wasOnGround = mob.onGround;
  const at = mob.position;
  let to = slide(survival.blocks, mob, motion);
  if ((to.hitX || to.hitZ) && (wasOnGround || to.onGround) && motion.y <= 0) {
    to = stepUp(survival.blocks, mob, at, to, motion.x, motion.z);
  }
  const fell = at.y - to.y;
  moveTo(mob, to);
  const drag = wasOnGround ? 0.546 : 0.91;
  if (to.hitX) motion.x = 0;
  if (to.hitZ) motion.z = 0;
  if (to.hitY) motion.y = 0;
  mob.bumped = to.hitX || to.hitZ;
  if (mob.bumped && mob.climbs) motion.y = 0.2;
  motion.x *= drag;
  motion.z *= drag;
  motion.y = (motion.y - 0.08) * 0.98;
  landed(survival, mob, fell);
}

function wade(survival, mob, motion, thick) {
  const push = (mob.kind.swims ? 0.1 : 0.02) * mob.goSpeed;
  motion.x += mob.goX * push;
  motion.z += mob.goZ * push;
  const { x, y, z } = mob.position;
  const deep = survival.blocks.at(x, y + DEEP, z);
  // Mobs that cannot swim keep their heads above the surface.
  if (!mob.sinks && (deep.water || deep.lava)) motion.y += 0.04;
  const to = slide(survival.blocks, mob, motion);
  moveTo(mob, to);
  const drag = thick ? 0.5 : 0.8;
  motion.x = to.hitX ? 0 : motion.x * drag;
  motion.z = to.hitZ ? 0 : motion.z * drag;
  motion.y = (to.hitY ? 0 : motion.y) * 0.8 - 0.02;
  // At the edge of a pool the game lifts a body that pushes against it.
  mob.bumped = to.hitX || to.hitZ;
  if (mob.bumped && mob.goSpeed > 0) motion.y = 0.3;
  mob.fallDistance = 0;
}

/** Moves a mob that floats in its element: no gravity, much drag. */
function drift(survival, mob, motion, drag, weight) {
  const at = mob.position;
  const to = slide(survival.blocks, mob, motion);
  const fell = at.y - to.y;
  moveTo(mob, to);
  mob.bumped = to.hitX || to.hitY || to.hitZ;
  motion.x = to.hitX ? 0 : motion.x * drag;
  motion.z = to.hitZ ? 0 : motion.z * drag;
  motion.y = (to.hitY ? 0 : motion.y - weight) * drag;
  if (weight > 0) landed(survival, mob, fell);
}

function rests(mob) {
  const { motion } = mob;
  return (
    mob.resting &&
    mob.goSpeed === 0 &&
    !mob.jumps &&
    mob.motionSeen === motion &&
    mob.placeSeen === mob.position
  );
}

/**
 * Moves a mob by one tick, and applies damage by the blocks it stands in.
 *
 * `mob.resting` is whether it would not move; `mob.motionSeen` and `mob.placeSeen` reveal a motion
 * or a position that another mechanic has set since it came to rest.
 */
function step(survival, mob, tick) {
  const checks = (tick + mob.turn) % CHECKED === 0;
  if (rests(mob) && !(mob.fireTicks > 0)) {
    if (checks && mob.health > 0) survival.surroundings(mob, mob.width, mob.height);
    return;
  }
  const { motion, kind } = mob;
  const { x, y, z } = mob.position;
  const here = survival.blocks.at(x, y + 0.001, z);
  mob.wet = here.water;
  if (here.plate) survival.tread(Math.floor(x), Math.floor(y), Math.floor(z), here);
  if (kind.moves === 'fly') drift(survival, mob, motion, 0.91, 0);
  else if (kind.moves === 'swim' && here.water) drift(survival, mob, motion, 0.9, 0);
  else if (kind.moves !== 'still') {
    if (here.water || here.lava) wade(survival, mob, motion, here.lava);
    else walkOnLand(survival, mob, motion);
  }
  if (Math.abs(motion.x) < STILL) motion.x = 0;
  if (Math.abs(motion.z) < STILL) motion.z = 0;
  const quiet = motion.x === 0 && motion.z === 0 && mob.goSpeed === 0 && !mob.jumps;
  mob.resting =
    quiet &&
    (kind.moves === 'still' || (kind.moves !== 'fly' && mob.onGround && !here.water && !here.lava));
  mob.motionSeen = motion;
  mob.placeSeen = mob.position;
  if (mob.health > 0) survival.surroundings(mob, mob.width, mob.height);
}

/** Pushes two bodies that overlap apart, as the game does. */
function pushApart(a, b) {
  const reach = (a.width + b.width) / 2;
  const dx = b.position.x - a.position.x;
  const dz = b.position.z - a.position.z;
  if (Math.abs(dx) >= reach || Math.abs(dz) >= reach) return;
  const dy = b.position.y - a.position.y;
  if (dy >= a.height || -dy >= b.height) return;
  const far = Math.sqrt(Math.max(Math.abs(dx), Math.abs(dz)));
  if (far < 0.1) return;
  const scale = (Math.min(1, 1 / far) / far) * 0.05;
  for (const [mob, sign] of [
    [a, -1],
    [b, 1],
  ]) {
    if (mob.kind.moves === 'still') continue;
    mob.motion.x += sign * dx * scale;
    mob.motion.z += sign * dz * scale;
    mob.resting = false;
  }
}

module.exports = { step, face, lookAt, goTo, pushApart };

'use strict';

/**
 * Explosions (Minecraft Wiki, "Explosion", Java Edition 1.16): 1,352 rays that blocks attenuate by
 * their resistance, damage and push by distance and by the share of a body that is visible from the
 * centre. A block that breaks drops with probability 1 / power. With the rule mobGriefing off,
 * blocks stay.
 */

const { Vec3 } = require('vec3');
const { clear } = require('./ray');
const { lootOf } = require('../loot');

const STEP = 0.3;
const EDGE = 15; // rays go to the surface of a cube of 16 by 16 by 16 points

/** Calls `ray(dx, dy, dz)` with the unit vectors of all rays, in a fixed order. */
function eachRay(ray) {
  for (let i = 0; i <= EDGE; i++) {
    for (let j = 0; j <= EDGE; j++) {
      for (let k = 0; k <= EDGE; k++) {
        const inside = i > 0 && i < EDGE && j > 0 && j < EDGE && k > 0 && k < EDGE;
        if (inside) continue;
        const d = [i, j, k].map((v) => (v / EDGE) * 2 - 1);
        const length = Math.hypot(...d);
        ray(d[0] / length, d[1] / length, d[2] / length);
      }
    }
  }
}

/** Returns the cells that an explosion breaks, as a map from "x,y,z" to [x, y, z]. */
function broken(blocks, centre, power) {
  const cells = new Map();
  eachRay((dx, dy, dz) => {
    let { x, y, z } = centre;
    let force = power * (0.7 + Math.random() * 0.6);
    for (; force > 0; force -= STEP * 0.75) {
      const stateId = blocks.stateAt(x, y, z);
      if (stateId !== 0) {
        const info = blocks.info(stateId);
        force -= ((info.liquid ? 100 : (info.def.resistance ?? 0)) + 0.3) * STEP;
        if (force > 0 && !info.air && !info.liquid) {
          const cell = [Math.floor(x), Math.floor(y), Math.floor(z)];
          cells.set(cell.join(), cell);
        }
      }
      x += dx * STEP;
      y += dy * STEP;
      z += dz * STEP;
    }
  });
  return cells;
}

/** Returns the share of a body's points visible from the centre, 0 to 1. */
function exposure(blocks, centre, position, width, height) {
  let seen = 0;
  let all = 0;
  const half = width / 2;
  const step = (size) => 1 / (size * 2 + 1);
  for (let u = 0; u <= 1; u += step(width)) {
    for (let v = 0; v <= 1; v += step(height)) {
      for (let w = 0; w <= 1; w += step(width)) {
        const x = position.x - half + u * width;
        const y = position.y + v * height;
        const z = position.z - half + w * width;
        all++;
        if (clear(blocks, x, y, z, centre.x, centre.y, centre.z)) seen++;
      }
    }
  }
  return seen / all;
}

/** Damages and pushes one body; returns the push, in blocks per tick. */
function strike(survival, victim, centre, power, by) {
  const reach = power * 2;
  const { position } = victim;
  const far = position.distanceTo(centre) / reach;
  if (far > 1) return null;
  const player = victim.type === 'player';
  const [width, height, eyes] = player
    ? [0.6, 1.8, 1.62]
    : [victim.width, victim.height, victim.eyes];
  const impact = (1 - far) * exposure(survival.blocks, centre, position, width, height);
  const amount = Math.floor(((impact * impact + impact) / 2) * 7 * reach + 1);
  const from = position.offset(0, eyes, 0).minus(centre);
  const length = from.norm() || 1;
  const push = from.scaled(impact / length);
  survival.hurt(victim, { amount, cause: 'explosion', by, from: centre, knockback: 0 });
  if (!player && victim.ai !== null) {
    victim.motion = victim.motion.plus(push);
    victim.resting = false;
  }
  return push;
}

function breakBlocks(survival, cells, share) {
  const { blocks, registry, items } = survival;
  for (const [x, y, z] of cells.values()) {
    const info = blocks.at(x, y, z);
    if (info.air) continue;
    if (info.name === 'tnt') {
      survival.primeTnt(x, y, z, 10 + Math.floor(Math.random() * 20));
      continue;
    }
    const loot = Math.random() < share ? lootOf(items, registry, info, null, true) : [];
    blocks.setNamed(x, y, z, 'air');
    for (const [item, count] of survival.rules.doTileDrops ? loot : []) {
      if (registry.itemsByName[item]) survival.popItem(x, y, z, items.make(item, count));
    }
  }
}

/**
 * Sets off an explosion.
 *
 * @param {object} survival of the world
 * @param {Vec3} centre
 * @param {number} power 3 for a creeper, 1 for a ghast's fireball
 * @param {object} by who is to blame, or null; it is not hurt
 * @param {number} share of the broken blocks that drop; all those of TNT do
 */
function explode(survival, centre, power, by, share = 1 / power) {
  const { serv } = survival;
  const cells = survival.rules.mobGriefing ? broken(survival.blocks, centre, power) : new Map();
  const pushes = new Map();
  for (const victim of survival.entitiesNear(
    centre,
    power * 2,
    (e) => e !== by && e.health > 0 && (e.type === 'player' || e.kind),
  )) {
    const push = strike(survival, victim, centre, power, by);
    if (push && victim.type === 'player') pushes.set(victim, push);
  }
  breakBlocks(survival, cells, share);
  for (const player of serv.players) {
    if (player.position.distanceTo(centre) > 64) continue;
    const push = pushes.get(player) || new Vec3(0, 0, 0);
    player._client.write('explosion', {
      x: centre.x,
      y: centre.y,
      z: centre.z,
      radius: power,
      affectedBlockOffsets: [],
      playerMotionX: push.x,
      playerMotionY: push.y,
      playerMotionZ: push.z,
    });
  }
  serv.emit('gamut:explosion', { position: centre, power, by });
}

module.exports = { explode };

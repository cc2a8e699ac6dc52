'use strict';

/**
 * The ender dragon (Minecraft Wiki, "Ender Dragon", 1.16): it circles over its island, dives at a
 * player now and then, hurts whom it touches, and regains health from crystals that are near.
 *
 * Much simpler than in the game: it neither perches nor breathes, it breaks no blocks, and all of
 * its body is as soft as its head.
 */

const { Vec3 } = require('vec3');
const ways = require('./ways');
const { face } = require('./body');

const CIRCLE = { radius: 46, height: 86, turn: 0.012 }; // blocks, blocks, radians a tick
const SPEED = { circle: 0.6, dive: 0.8 }; // blocks a tick
const DIVES = 200; // ticks of circling, at least
const SIGHT = 150;
const TOUCHES = 4; // blocks from its middle
const HEALS = 10; // ticks for a point of health
const CRYSTAL_REACH = 64;

function fly(mob, to, speed) {
  const way = to.minus(mob.position);
  const far = way.norm();
  face(mob, -way.x, -way.z);
  mob.position = far <= speed ? to : mob.position.plus(way.scaled(speed / far));
  return far;
}

function dragon(mobs, mob, tick) {
  const { mind } = mob;
  const { survival } = mobs;
  mind.home ??= [mob.position.x, mob.position.z];
  mind.angle ??= 0;
  const [hx, hz] = mind.home;
  if (tick % HEALS === 0 && mob.health < mob.maxHealth && survival.crystalNear?.(mob.position, CRYSTAL_REACH))
    mob.updateHealth(mob.health + 1);
  const prey = mobs.players.filter(({ position }) => Math.hypot(position.x - hx, position.z - hz) < SIGHT);
  if (mind.phase === 0) {
    mind.angle += CIRCLE.turn;
    const to = new Vec3(
      hx + CIRCLE.radius * Math.cos(mind.angle), CIRCLE.height, hz + CIRCLE.radius * Math.sin(mind.angle));
    fly(mob, to, SPEED.circle);
    if (tick < mind.phaseAt || prey.length === 0) return;
    mind.phase = 1;
    mind.target = prey[Math.floor(Math.random() * prey.length)].id;
  }
  const target = mobs.serv.entities[mind.target];
  const away = ways.fair(mobs, target) ? fly(mob, target.position.offset(0, 1, 0), SPEED.dive) : 0;
  for (const player of prey) {
    if (player.position.distanceTo(mob.position) > TOUCHES || tick < mind.hitAt) continue;
    mind.hitAt = tick + 20;
    survival.hurt(player, { amount: mob.damage, cause: 'blow', by: mob, knockback: 1.2 });
  }
  if (away < 2) Object.assign(mind, { phase: 0, target: null, phaseAt: tick + DIVES + Math.floor(Math.random() * DIVES) });
}

module.exports = { dragon };

'use strict';

/**
 * The behaviour of mobs that fly, swim or cast: bats, fish, squid, guardians, ghasts, blazes,
 * phantoms, vexes, the wither, shulkers, witches and evokers (Minecraft Wiki, page of each, 1.16).
 *
 * Much simpler than in the game: vexes do not pass through walls; the wither hovers above its
 * target, shoots and regains health, and neither charges up nor breaks blocks by itself; guardians'
 * beams hit at once when charged and they have no thorns; evokers' fangs hit the target after their
 * warm-up and draw no lines; witches drink nothing; shulkers do not teleport.
 */

const { Vec3 } = require('vec3');
const ways = require('./ways');
const { face, lookAt } = require('./body');
const { afflict, gaussian, unscaled } = require('./missiles');

const DRY = 300; // ticks a fish lives out of water before it takes damage

/** Pushes a mob towards a place, in blocks per tick and tick; returns how far away it is. */
function driveTo(mob, x, y, z, push) {
  const dx = x - mob.position.x;
  const dy = y - mob.position.y;
  const dz = z - mob.position.z;
  const away = Math.hypot(dx, dy, dz) || 1e-6;
  mob.motion.x += (dx / away) * push;
  mob.motion.y += (dy / away) * push;
  mob.motion.z += (dz / away) * push;
  face(mob, dx, dz);
  return away;
}

/** Moves to random positions around, a new one when it is reached, at walls or after a time. */
function roam(mob, tick, { far, up, push, every }) {
  const { mind, position } = mob;
  const there =
    mind.spot &&
    Math.hypot(mind.spot[0] - position.x, mind.spot[1] - position.y, mind.spot[2] - position.z) < 1;
  if (!mind.spot || there || mob.bumped || tick >= mind.phaseAt) {
    mind.spot = [
      position.x + ways.random(-far, far),
      position.y + ways.random(-up, up),
      position.z + ways.random(-far, far),
    ];
    mind.phaseAt = tick + Math.floor(ways.random(every / 2, every * 1.5));
  }
  driveTo(mob, ...mind.spot, push);
}

function bat(mobs, mob, tick) {
  roam(mob, tick, { far: 7, up: 3, push: 0.02, every: 40 });
}

/** Fish out of water move about, and die slowly unless they breathe air. */
function dries(mobs, mob, tick) {
  if (mob.wet) {
    mob.mind.dry = 0;
    return false;
  }
  if (!mob.kind.breathes) {
    mob.mind.dry = (mob.mind.dry || 0) + 1;
    if (mob.mind.dry > DRY && mob.mind.dry % 20 === 0) {
      mobs.survival.hurt(mob, { amount: 2, cause: 'drown' });
    }
  }
  if (mob.kind.brain !== 'squid' && mob.onGround && (tick + mob.turn) % 10 === 0) {
    mob.motion.x += ways.random(-0.1, 0.1);
    mob.motion.y = 0.4;
    mob.motion.z += ways.random(-0.1, 0.1);
    mob.onGround = false;
    mob.resting = false;
  }
  return true;
}

/** Keeps swimmers from leaving the water by its surface. */
function staysUnder(mobs, mob) {
  const { x, y, z } = mob.position;
  if (mob.motion.y > 0 && !mobs.survival.blocks.at(x, y + mob.height + 0.2, z).water)
    mob.motion.y = -0.02;
}

function fish(mobs, mob, tick) {
  if (dries(mobs, mob, tick)) return;
  const scared = tick < mob.mind.fearUntil;
  roam(mob, tick, { far: 6, up: 2, push: scared ? 0.03 : 0.008, every: scared ? 20 : 80 });
  staysUnder(mobs, mob);
}

function squid(mobs, mob, tick) {
  if (dries(mobs, mob, tick)) return;
  roam(mob, tick, { far: 8, up: 3, push: tick < mob.mind.fearUntil ? 0.03 : 0.01, every: 60 });
  staysUnder(mobs, mob);
}

/** Gives mining fatigue to all players within 50 blocks of an elder guardian, once a minute. */
function curse(mobs, mob, tick) {
  if (mob.name !== 'elder_guardian' || (tick + mob.turn) % 1200 !== 0) return;
  for (const player of mobs.players) {
    if (player.position.distanceTo(mob.position) <= 50) {
      afflict(mobs.survival, player, 'MiningFatigue', 6000, 2);
    }
  }
}

function guardian(mobs, mob, tick) {
  const { mind, kind } = mob;
  curse(mobs, mob, tick);
  const target = ways.targetOf(mobs, mob, tick);
  const dry = dries(mobs, mob, tick);
  if (!target) {
    mind.phase = 0;
    if (!dry) roam(mob, tick, { far: 8, up: 3, push: 0.015, every: 80 });
    return;
  }
  const away = mob.position.distanceTo(target.position);
  if (!dry && away > 6) driveTo(mob, target.position.x, target.position.y, target.position.z, 0.02);
  lookAt(mob, target.position.x, target.position.y + 1, target.position.z);
  mind.phase = ways.sees(mobs, mob, target) && away > 2 ? mind.phase + 1 : 0;
  if (mind.phase < kind.charge) return;
  mind.phase = 0;
  mobs.survival.hurt(target, { amount: kind.damage, cause: 'blow', by: mob, knockback: 0.4 });
}

function ghast(mobs, mob, tick) {
  const { mind } = mob;
  roam(mob, tick, { far: 16, up: 6, push: 0.02, every: 120 });
  const target = ways.targetOf(mobs, mob, tick);
  if (!target) return;
  lookAt(mob, target.position.x, target.position.y + 1, target.position.z);
  mind.phase += ways.sees(mobs, mob, target) ? 1 : mind.phase > 0 ? -1 : 0;
  if (mind.phase < 20) return;
  mind.phase = -40;
  const middle = mob.position.offset(0, mob.height / 2, 0);
  const way = target.position.offset(0, 0.9, 0).minus(middle);
  const aim = way.scaled(1 / (way.norm() || 1));
  mobs.missiles.shoot('fireball', mob, middle.plus(aim.scaled(3)), aim.scaled(0.1));
}

/**
 * Rises with its target, then burns for three seconds and shoots three fireballs, and pauses five.
 */
function blaze(mobs, mob, tick) {
  const { mind } = mob;
  const target = ways.targetOf(mobs, mob, tick);
  const { position } = mob;
  if (!target) {
    if (!mob.onGround) mob.motion.y -= 0.02;
    mind.phase = 0;
    return;
  }
  const away = position.distanceTo(target.position);
  lookAt(mob, target.position.x, target.position.y + 1, target.position.z);
  const higher = target.position.y + 1.6 + 0.5 > position.y + mob.eyes;
  mob.motion.y += higher ? 0.03 : -0.02;
  if (away > 10) driveTo(mob, target.position.x, position.y, target.position.z, 0.03);
  if (away < 2) ways.strike(mobs, mob, target, tick);
  if (tick < mind.phaseAt || !ways.sees(mobs, mob, target)) return;
  mind.phase = (mind.phase + 1) % 5;
  mind.phaseAt = tick + (mind.phase === 1 ? 60 : mind.phase === 0 ? 100 : 6);
  if (mind.phase > 1) shootFire(mobs, mob, target, away);
}

function shootFire(mobs, mob, target, away) {
  const from = mob.position.offset(0, mob.height / 2 + 0.5, 0);
  const way = target.position.offset(0, 0.9, 0).minus(from);
  const spread = Math.sqrt(away) * 0.5;
  way.x += gaussian() * spread * 0.4;
  way.z += gaussian() * spread * 0.4;
  mobs.missiles.shoot('small_fireball', mob, from, way.scaled(0.1 / (way.norm() || 1)));
}

/**
 * Circles high above for eight seconds, then swoops at its target until it has hit or been hurt.
 */
function phantom(mobs, mob, tick) {
  const { mind } = mob;
  const target = ways.targetOf(mobs, mob, tick);
  if (!target) {
    roam(mob, tick, { far: 12, up: 4, push: 0.03, every: 80 });
    mind.phase = 0;
    return;
  }
  const { x, y, z } = target.position;
  if (mind.phase === 0) {
    const angle = tick / 20 + mob.turn;
    driveTo(mob, x + Math.sin(angle) * 9, y + 12, z + Math.cos(angle) * 9, 0.05);
    if (mind.circling === undefined) mind.circling = tick + 160 + Math.floor(Math.random() * 80);
    if (tick >= mind.circling) mind.phase = 1;
    return;
  }
  driveTo(mob, x, y + 0.9, z, 0.06);
  const hit = ways.strike(mobs, mob, target, tick);
  if (hit === 0 && !mob.bumped && tick - (mob.hurtTick ?? -100) > 5) return;
  mind.phase = 0;
  mind.circling = tick + 160 + Math.floor(Math.random() * 80);
}

/** Charges at its target; an evoker's dies after a while. */
function vex(mobs, mob, tick) {
  const { mind } = mob;
  if (mind.life !== undefined && tick > mind.life && tick % 20 === 0) {
    mobs.survival.hurt(mob, { amount: 1, cause: 'starve' });
    if (!(mob.health > 0)) return;
  }
  const target = ways.targetOf(mobs, mob, tick);
  if (!target) {
    roam(mob, tick, { far: 7, up: 3, push: 0.02, every: 40 });
    return;
  }
  if (tick >= mind.phaseAt)
    driveTo(mob, target.position.x, target.position.y + 0.9, target.position.z, 0.05);
  else driveTo(mob, target.position.x, target.position.y + 4, target.position.z, 0.03);
  if (ways.strike(mobs, mob, target, tick) > 0) mind.phaseAt = tick + 30;
}

function wither(mobs, mob, tick) {
  const { mind } = mob;
  if (tick % 20 === 0) mob.updateHealth(mob.health + 1);
  const target = ways.targetOf(mobs, mob, tick);
  if (!target) {
    roam(mob, tick, { far: 10, up: 2, push: 0.02, every: 100 });
    return;
  }
  const away = ways.flat(mob.position, target.position);
  const high = target.position.y + 5 - mob.position.y;
  mob.motion.y += Math.max(-0.04, Math.min(0.04, high * 0.02));
  if (away > 3) driveTo(mob, target.position.x, mob.position.y, target.position.z, 0.04);
  lookAt(mob, target.position.x, target.position.y + 1, target.position.z);
  if (tick < mind.phaseAt || !ways.sees(mobs, mob, target)) return;
  mind.phaseAt = tick + 40;
  const from = mob.position.offset(0, mob.eyes, 0);
  const way = target.position.offset(0, 0.9, 0).minus(from);
  const aim = way.scaled(1 / (way.norm() || 1));
  mobs.missiles.shoot('wither_skull', mob, from.plus(aim.scaled(1.5)), aim.scaled(0.1));
}

/** Opens to shoot, one to five seconds apart; closed it is armoured. */
function shulker(mobs, mob, tick) {
  const { mind } = mob;
  const target = ways.targetOf(mobs, mob, tick);
  mob.armourPoints = target ? 0 : mob.kind.armour;
  if (!target || tick < mind.phaseAt || !ways.sees(mobs, mob, target)) return;
  mind.phaseAt = tick + 20 + Math.floor(Math.random() * 10) * 10;
  const from = mob.position.offset(0, 1.2, 0);
  mobs.missiles.shoot('shulker_bullet', mob, from, new Vec3(0, 0.3, 0), { target: target.id });
}

/** Returns the potion that a witch throws at a target: the effect's name and its ticks. */
function potionFor(mobs, target, away) {
  const level = (effect) => mobs.survival.effectLevel(target, effect);
  if (away >= 8 && !level('Slowness')) return { effect: 'Slowness', duration: 1800 };
  if (target.health >= 8 && !level('Poison')) return { effect: 'Poison', duration: 900 };
  if (away <= 3 && !level('Weakness') && Math.random() < 0.25)
    return { effect: 'Weakness', duration: 1800 };
  return { effect: 'harming', duration: 0 };
}

function witch(mobs, mob, tick) {
  const { mind } = mob;
  const target = ways.targetOf(mobs, mob, tick);
  if (!target) {
    ways.stroll(mobs, mob, tick);
    return;
  }
  const away = mob.position.distanceTo(target.position);
  if (away > 10) ways.chase(mobs, mob, target, tick);
  lookAt(mob, target.position.x, target.position.y + 1, target.position.z);
  if (away > 10 || tick < mind.phaseAt || !ways.sees(mobs, mob, target)) return;
  mind.phaseAt = tick + 60;
  mobs.missiles.throwAt('potion', mob, target, {
    speed: 0.75,
    spread: 8,
    aimAt: 0.3,
    ...potionFor(mobs, target, away),
  });
}

function summonVexes(mobs, mob, tick) {
  for (let i = 0; i < 3; i++) {
    const at = mob.position.offset(ways.random(-2, 2), 1, ways.random(-2, 2));
    const helper = mobs.spawn('vex', at, { natural: true });
    helper.mind.life = tick + 20 * (30 + Math.floor(Math.random() * 90));
  }
}

/** Casts fangs every five seconds, calls vexes every 17, keeps away. */
function evoker(mobs, mob, tick) {
  const { mind, kind } = mob;
  const target = ways.targetOf(mobs, mob, tick);
  if (!target) {
    mind.phase = 0;
    ways.stroll(mobs, mob, tick);
    return;
  }
  const away = mob.position.distanceTo(target.position);
  lookAt(mob, target.position.x, target.position.y + 1, target.position.z);
  if (mind.phase === 1) {
    if (tick < mind.phaseAt) return;
    mind.phase = 0;
    mind.phaseAt = tick + 80;
    if (away > kind.follow || !ways.sees(mobs, mob, target)) return;
    const amount = unscaled(mobs.survival, target, mob, kind.damage);
    mobs.survival.hurt(target, { amount, cause: 'magic', by: mob });
    return;
  }
  if (tick >= (mind.vexAt ?? 0)) {
    mind.vexAt = tick + 340;
    summonVexes(mobs, mob, tick);
  } else if (tick >= mind.phaseAt && ways.sees(mobs, mob, target)) {
    mind.phase = 1;
    mind.phaseAt = tick + 20;
  } else if (away < 8) {
    if (tick >= mind.fearUntil) ways.frighten(mob, target.position.x, target.position.z, tick + 40);
    ways.flee(mobs, mob, tick);
  } else ways.stroll(mobs, mob, tick);
}

module.exports = {
  bat,
  fish,
  squid,
  guardian,
  ghast,
  blaze,
  phantom,
  vex,
  wither,
  shulker,
  witch,
  evoker,
};

'use strict';

/**
 * Shared behaviour of mobs: following a path, strolling, fleeing, finding prey, chasing, biting.
 * The memory of a mob is in `mob.mind`, plain JSON; entities are stored by their ids.
 */

const { findPath, widthOf } = require('./path');
const { clear } = require('./ray');
const { face, goTo, lookAt } = require('./body');
const { afflict } = require('./missiles');

const THINKS = 8; // ticks between decisions of an idle mob
const SEARCHES = 10; // ticks between looks for prey, as the game's chance of one in ten
const FORGETS = 60; // ticks for which a target out of sight is remembered
const STUCK = 40; // ticks within which a walker must get somewhere
const DARING = 8; // blocks beyond three that a hunter jumps down, at most
const HOPELESS = 80; // ticks before another search for a path that was not found
const STROLL_CELLS = 60;
const CHASE_CELLS = 400;
/**
 * Difficulty where players have spent little time, by difficulty (Minecraft Wiki, "Regional
 * difficulty").
 */
const REGIONAL = [0, 0.75, 1.5, 2.25];

const flat = (a, b) => Math.hypot(a.x - b.x, a.z - b.z);
const random = (low, high) => low + Math.random() * (high - low);

/** Returns the memory of a new mob: empty. */
function freshMind() {
  return {
    target: null,
    seenAt: 0,
    path: null,
    at: 0,
    factor: 1,
    checkAt: 0,
    checkX: 0,
    checkZ: 0,
    repath: 0,
    hitAt: 0,
    fearUntil: 0,
    fearX: 0,
    fearZ: 0,
    foe: null,
    lure: null,
    phase: 0,
    phaseAt: 0,
    near: 0,
    missed: null,
  };
}

/** Whether an idle mob decides in this tick; each mob has its own ticks. */
const thinks = (mob, tick) => (tick + mob.turn) % THINKS === 0;

/** Plans a path; returns whether it leads anywhere. */
function setPath(mobs, mob, to, factor, { budget = CHASE_CELLS, reach = 0, drop } = {}) {
  const { mind } = mob;
  const path = findPath(mobs.ground, mob.position, to, mob, budget, reach, drop);
  mind.path = path.length > 0 ? path : null;
  mind.at = 0;
  mind.factor = factor;
  mind.checkAt = mobs.tick + STUCK;
  mind.checkX = mob.position.x;
  mind.checkZ = mob.position.z;
  return mind.path !== null;
}

function stuck(mob, tick) {
  const { mind, position } = mob;
  if (tick < mind.checkAt) return false;
  const moved = Math.hypot(position.x - mind.checkX, position.z - mind.checkZ);
  mind.checkAt = tick + STUCK;
  mind.checkX = position.x;
  mind.checkZ = position.z;
  return moved < 0.5;
}

/** Continues along the path; returns false once there is none or its end is reached. */
function follow(mobs, mob) {
  const { mind, position, width } = mob;
  const close = width > 0.75 ? width / 2 : 0.75 - width / 2;
  const middle = widthOf(mob) / 2;
  while (mind.path) {
    const x = mind.path[mind.at] + middle;
    const y = mind.path[mind.at + 1];
    const z = mind.path[mind.at + 2] + middle;
    const dx = Math.abs(position.x - x);
    const dz = Math.abs(position.z - z);
    if (dx < close && dz < close && Math.abs(position.y - y) < 1) {
      mind.at += 3;
      if (mind.at < mind.path.length) continue;
      mind.path = null;
      return false;
    }
    if (stuck(mob, mobs.tick)) {
      mind.path = null;
      return false;
    }
    goTo(mob, x, z, mind.factor);
    // Rabbits hop; all others jump only where an obstacle is higher than a step.
    const higher = y > position.y + mob.kind.step && dx * dx + dz * dz < Math.max(1, width) ** 2;
    mob.jumps = higher || (mob.kind.hops === true && mob.onGround);
    mob.climbs = mob.kind.climbs === true && y > position.y;
    return true;
  }
  return false;
}

/** Strolls now and then, starting once in 120 ticks as in the game. */
function stroll(mobs, mob, tick) {
  if (follow(mobs, mob) || !thinks(mob, tick)) return;
  if (Math.random() * 120 >= THINKS) return;
  const { x, y, z } = mob.position;
  const to = { x: x + random(-8, 8), y: y + Math.floor(random(-2, 3)), z: z + random(-8, 8) };
  setPath(mobs, mob, to, mob.kind.stroll, { budget: STROLL_CELLS });
}

/** Flees from what it fears, from one position to the next; returns whether it does. */
function flee(mobs, mob, tick) {
  const { mind, position } = mob;
  if (tick >= mind.fearUntil) return false;
  if (follow(mobs, mob)) return true;
  const away = Math.atan2(position.x - mind.fearX, position.z - mind.fearZ) + random(-1, 1);
  const far = random(4, 7);
  const to = {
    x: position.x + Math.sin(away) * far,
    y: position.y,
    z: position.z + Math.cos(away) * far,
  };
  if (setPath(mobs, mob, to, mob.kind.panic, { budget: STROLL_CELLS })) follow(mobs, mob);
  return true;
}

/** Makes a mob fear a position for some ticks. */
function frighten(mob, x, z, until) {
  Object.assign(mob.mind, { fearUntil: until, fearX: x, fearZ: z, path: null, lure: null });
}

const bodyOf = (entity) =>
  entity.type === 'player'
    ? { width: 0.6, height: entity.crouching ? 1.5 : 1.8, eyes: entity.crouching ? 1.27 : 1.62 }
    : entity;

/** Returns whether the eyes of a mob and of another are in line of sight. */
function sees(mobs, mob, other) {
  const a = mob.position;
  const b = other.position;
  return clear(mobs.survival.blocks, a.x, a.y + mob.eyes, a.z, b.x, b.y + bodyOf(other).eyes, b.z);
}

/** Returns whether an entity can be attacked at all: alive, and not a player in creative mode. */
function fair(mobs, other) {
  if (!other || !(other.health > 0) || mobs.serv.entities[other.id] !== other) return false;
  return other.type === 'player' ? mobs.survival.mortal(other) : Boolean(other.kind);
}

function hunts(kind, other) {
  if (kind.spares && kind.spares.includes(other.name)) return false;
  return (
    kind.prey.includes(other.name) ||
    (kind.prey.includes('hostile') && other.kind.hostile && !other.kind.neutral) ||
    (kind.prey.includes('living') && !other.kind.undead)
  );
}

const wearsGold = (player) =>
  [5, 6, 7, 8].some(
    (slot) =>
      player.inventory.slots[slot] && player.inventory.slots[slot].name.startsWith('golden_'),
  );

/** Returns the nearest prey in sight, or null. */
function findPrey(mobs, mob) {
  const { kind } = mob;
  let best = null;
  let bestAway = kind.follow;
  const consider = (other, range) => {
    const away = mob.position.distanceTo(other.position);
    if (away > range || away >= bestAway || !sees(mobs, mob, other)) return;
    best = other;
    bestAway = away;
  };
  if (kind.prey.includes('player')) {
    for (const player of mobs.players) {
      if (kind.sparesGold && wearsGold(player)) continue;
      consider(player, player.crouching ? kind.follow * 0.8 : kind.follow);
    }
  }
  const hunter = kind.prey.length > 1 || (kind.prey.length === 1 && kind.prey[0] !== 'player');
  if (best === null && hunter) {
    for (const other of mobs.list.values()) {
      if (other !== mob && other.health > 0 && hunts(kind, other)) consider(other, kind.follow);
    }
  }
  return best;
}

function aim(mob, target, tick) {
  Object.assign(mob.mind, {
    target: target ? target.id : null,
    seenAt: tick,
    path: null,
    repath: 0,
    missed: null,
  });
}

function remembers(mobs, mob, target, tick) {
  const { mind } = mob;
  if (!fair(mobs, target) || mob.position.distanceTo(target.position) > mob.kind.follow + 4)
    return false;
  if ((tick + mob.turn) % 5 === 0 && sees(mobs, mob, target)) mind.seenAt = tick;
  return tick - mind.seenAt < FORGETS;
}

/** Returns the target of a mob, or null: its attacker, then its prey, as long as it remembers it. */
function targetOf(mobs, mob, tick, unprovoked = true) {
  const { mind } = mob;
  if (mind.foe !== null) {
    const foe = mobs.serv.entities[mind.foe];
    if (fair(mobs, foe) && mind.target !== foe.id) aim(mob, foe, tick);
    mind.foe = null;
  }
  if (mind.target !== null) {
    const target = mobs.serv.entities[mind.target];
    if (remembers(mobs, mob, target, tick)) return target;
    aim(mob, null, tick);
  }
  if (!unprovoked || (tick + mob.turn) % SEARCHES !== 0) return null;
  const prey = findPrey(mobs, mob);
  if (prey) aim(mob, prey, tick);
  return prey;
}

/** Returns whether the path, or the mob if it has none, ends next to a position. */
function arrives(mob, to) {
  const { path } = mob.mind;
  const middle = widthOf(mob) / 2;
  const [x, y, z] = path
    ? [path[path.length - 3] + middle, path[path.length - 2], path[path.length - 1] + middle]
    : mob.position.toArray();
  return Math.abs(x - to.x) < 1.5 && Math.abs(z - to.z) < 1.5 && Math.abs(y - to.y) < 2;
}

/** Whether the last search, not long ago, found no path to the target's current position. */
function hopeless(mind, to, tick) {
  if (!mind.missed) return false;
  const [x, y, z, at] = mind.missed;
  return tick < at + HOPELESS && Math.hypot(x - to.x, y - to.y, z - to.z) < 1.5;
}

/** Returns how far down a mob jumps after its target: farther with more health, as in the game. */
function daring(mobs, mob) {
  const spare = Math.floor(mob.health - mob.maxHealth * 0.33) - (3 - mobs.serv.difficulty) * 4;
  return 3 + Math.min(DARING, Math.max(0, spare));
}

/** Walks after a target; searches a new path rarely, as the game does. */
function chase(mobs, mob, target, tick, factor = 1) {
  const { mind } = mob;
  const away = mob.position.distanceTo(target.position);
  if (tick >= mind.repath && !hopeless(mind, target.position, tick)) {
    const found = setPath(mobs, mob, target.position, factor, { drop: daring(mobs, mob) });
    const wait = 4 + Math.floor(Math.random() * 7) + (away > 32 ? 10 : away > 16 ? 5 : 0);
    mind.repath = tick + wait + (found ? 0 : 15);
    mind.missed = arrives(mob, target.position) ? null : [...target.position.toArray(), tick];
  }
  if (!follow(mobs, mob) && away < 2.5 && flat(mob.position, target.position) > 0.5) {
    goTo(mob, target.position.x, target.position.z, factor);
    mob.climbs = mob.kind.climbs === true && target.position.y > mob.position.y;
  }
  lookAt(mob, target.position.x, target.position.y + bodyOf(target).eyes, target.position.z);
}

/** Returns the reach of a mob's blow between the centres, squared. */
const reachOf = (mob, target) => (mob.width * 2) ** 2 + bodyOf(target).width;

function strength(mob) {
  const damage = mob.damage ?? mob.kind.damage;
  if (!mob.kind.scatter) return damage;
  return mob.baby ? 0.5 : damage / 2 + Math.floor(Math.random() * damage);
}

/** The effect of a bite: cave spiders' poison, husks' hunger, wither skeletons' decay. */
function poison(mobs, mob, target) {
  const { survival } = mobs;
  const { difficulty } = mobs.serv;
  const { bite } = mob.kind;
  if (bite === 'poison' && difficulty > 1) {
    afflict(survival, target, 'Poison', difficulty === 2 ? 140 : 300);
  }
  if (bite === 'hunger') {
    const ticks = 140 * Math.floor(REGIONAL[difficulty]);
    if (ticks > 0) afflict(survival, target, 'Hunger', ticks);
  }
  if (bite === 'wither') afflict(survival, target, 'Wither', 200);
  if (mob.fireTicks > 0 && mob.kind.undead && Math.random() < 0.3 * REGIONAL[difficulty]) {
    survival.setBurning(target, 40 * Math.max(1, Math.floor(REGIONAL[difficulty])));
  }
}

/** Hits a target within reach, once a second; returns the health it lost. */
function strike(mobs, mob, target, tick, pause = 20) {
  const { mind, kind } = mob;
  const { survival } = mobs;
  if (tick < mind.hitAt) return 0;
  if (mob.position.distanceTo(target.position) ** 2 > reachOf(mob, target)) return 0;
  if (!sees(mobs, mob, target)) return 0;
  mind.hitAt = tick + pause;
  survival.broadcast(mob, 'animation', { entityId: mob.id, animation: 0 });
  const lost = survival.hurt(target, {
    amount: strength(mob),
    cause: 'blow',
    by: mob,
    knockback: kind.knock ?? 0.4,
  });
  if (lost <= 0) return 0;
  poison(mobs, mob, target);
  if (kind.throws) {
    const up = target.position.minus(mob.position);
    const length = Math.hypot(up.x, up.z) || 1;
    const push = { x: (up.x / length) * 0.4, y: kind.throws, z: (up.z / length) * 0.4 };
    if (target.motion) {
      target.motion = target.motion.offset(0, kind.throws, 0);
      push.x = target.motion.x;
      push.z = target.motion.z;
    }
    survival.sendVelocity(target, push);
  }
  return lost;
}

/** Spiders, wolves and foxes leap at what is two to four blocks away. */
function leap(mob, target) {
  const away = mob.position.distanceTo(target.position);
  if (!mob.kind.leaps || !mob.onGround || away < 2 || away > 4 || Math.random() >= 0.2) return;
  const far = flat(mob.position, target.position) || 1;
  mob.motion.x = mob.motion.x * 0.2 + ((target.position.x - mob.position.x) / far) * 0.4;
  mob.motion.z = mob.motion.z * 0.2 + ((target.position.z - mob.position.z) / far) * 0.4;
  mob.motion.y = 0.4;
  mob.onGround = false;
  mob.resting = false;
}

module.exports = {
  THINKS,
  freshMind,
  thinks,
  setPath,
  follow,
  stroll,
  flee,
  frighten,
  sees,
  fair,
  targetOf,
  aim,
  chase,
  strike,
  leap,
  bodyOf,
  flat,
  random,
  face,
  REGIONAL,
  reachOf,
};

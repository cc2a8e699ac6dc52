'use strict';

/**
 * What mobs shoot and throw besides arrows (those are in projectiles.js): fireballs, skulls,
 * snowballs, potions, shulkers' bullets, eggs, pearls, bottles, each with its own flight (Minecraft Wiki, "Projectile",
 * 1.16). A blow sends a ghast's fireball back in the direction of the striker's look.
 *
 * Simplified: shulkers' bullets fly straight at their target, there are no dragon's breath,
 * tridents and spit.
 */

const { Vec3 } = require('vec3');
const { hitsBlock, hitsBody } = require('./ray');
const { explode } = require('./blast');

/** `drag` and `fall` per tick; `push`: speed gained per tick; `life`: ticks. */
const FLIGHT = {
  snowball: { drag: 0.99, fall: 0.03, life: 600 },
  egg: { drag: 0.99, fall: 0.03, life: 600 },
  ender_pearl: { drag: 0.99, fall: 0.03, life: 600 },
  experience_bottle: { drag: 0.99, fall: 0.07, life: 600 },
  potion: { drag: 0.99, fall: 0.05, life: 600 },
  small_fireball: { drag: 0.95, fall: 0, push: 0.1, life: 600 },
  fireball: { drag: 0.95, fall: 0, push: 0.1, life: 600, size: 1 },
  wither_skull: { drag: 0.95, fall: 0, push: 0.1, life: 600 },
  shulker_bullet: { drag: 1, fall: 0, life: 600, homing: 0.3 },
};
const OWN = 10; // ticks in which a missile passes through its shooter
const SPLASH = 4; // blocks from where a potion breaks

/** Returns a sample of the normal distribution. */
function gaussian() {
  const u = 1 - Math.random();
  return Math.sqrt(-2 * Math.log(u)) * Math.cos(2 * Math.PI * Math.random());
}

/**
 * Returns the amount to pass to `hurt` so that it costs `amount`: it scales the damage of mobs to
 * players by difficulty, which does not apply to missiles and magic.
 */
function unscaled(survival, victim, by, amount) {
  if (victim.type !== 'player' || !by || by.type === 'player') return amount;
  const { difficulty } = survival.serv;
  if (difficulty === 3) return amount / 1.5;
  return difficulty === 1 && amount > 2 ? (amount - 1) * 2 : amount;
}

/** Gives an effect by its name in minecraft-data, for some ticks. */
function afflict(survival, victim, effect, duration, amplifier = 0) {
  victim.addEffect(survival.registry.effectsByName[effect].id, { duration, amplifier });
}

/**
 * Returns where a shooter aims so that a missile that falls reaches a body, as `{from, direction}`,
 * a unit vector: at a share of the body's height, and higher by a fifth of the way.
 */
function lineTo(shooter, target, aimAt) {
  const from = shooter.position.offset(0, shooter.eyes - 0.1, 0);
  const height = target.type === 'player' ? 1.8 : target.height;
  const way = target.position.offset(0, height * aimAt, 0).minus(from);
  way.y += Math.hypot(way.x, way.z) * 0.2;
  return { from, direction: way.scaled(1 / (way.norm() || 1)) };
}

/** What each does to whom it hits; `speed` in blocks per tick. */
const HITS = {
  snowball(survival, missile, victim, speed, shooter) {
    if (victim.name === 'blaze') survival.hurt(victim, { amount: 3, cause: 'blow', by: shooter });
    if (victim.type !== 'player') survival.knockBack(victim, 0.4, missile.position);
  },
  egg(survival, missile, victim) {
    if (victim.type !== 'player') survival.knockBack(victim, 0.4, missile.position);
  },
  ender_pearl() {},
  experience_bottle() {},
  small_fireball(survival, missile, victim, speed, shooter) {
    const amount = unscaled(survival, victim, shooter, 5);
    const lost = survival.hurt(victim, {
      amount,
      cause: 'fire',
      by: shooter,
      from: missile.position,
      knockback: 0.4,
    });
    if (lost > 0) survival.setBurning(victim, 100);
  },
  fireball(survival, missile, victim, speed, shooter) {
    // A ghast is killed by its own fireball when a player sends it back.
    const amount =
      victim.name === 'ghast' && shooter && shooter.type === 'player'
        ? 1000
        : unscaled(survival, victim, shooter, 6);
    survival.hurt(victim, { amount, cause: 'blow', by: shooter, from: missile.position });
  },
  wither_skull(survival, missile, victim, speed, shooter) {
    survival.hurt(victim, { amount: 8, cause: 'blow', by: shooter, from: missile.position });
    const { difficulty } = survival.serv;
    if (difficulty >= 2) afflict(survival, victim, 'Wither', difficulty === 2 ? 200 : 800, 1);
  },
  shulker_bullet(survival, missile, victim, speed, shooter) {
    const amount = unscaled(survival, victim, shooter, 4);
    const lost = survival.hurt(victim, {
      amount,
      cause: 'blow',
      by: shooter,
      from: missile.position,
    });
    if (lost > 0) afflict(survival, victim, 'Levitation', 200);
  },
  potion() {},
};

/** The effect of a missile where it ends, at a victim or a block. */
const ENDS = {
  egg(survival, missile) {
    if (Math.random() >= 1 / 8) return;
    for (let i = Math.random() < 1 / 32 ? 4 : 1; i > 0; i--)
      survival.spawnMob('chicken', missile.position, { baby: true });
  },
  ender_pearl(survival, missile, shooter) {
    if (!shooter || !(shooter.health > 0)) return;
    if (shooter.type === 'player') {
      survival.dismount(shooter, true);
      shooter.sendPosition(missile.position.clone(), false, true);
      shooter.sendSelfPosition();
    }
    survival.hurt(shooter, { amount: 5, cause: 'fall' });
    if (Math.random() < 0.05) survival.spawnMob('endermite', missile.position, { natural: true });
  },
  experience_bottle(survival, missile, shooter) {
    if (shooter?.addXp) shooter.addXp(3 + Math.floor(Math.random() * 5) + Math.floor(Math.random() * 5));
  },
  fireball: (survival, missile, shooter) => explode(survival, missile.position, 1, shooter),
  wither_skull: (survival, missile, shooter) => explode(survival, missile.position, 1, shooter),
  potion(survival, missile, shooter) {
    const thrown = missile.potion !== null;
    const near = survival.entitiesNear(
      missile.position,
      SPLASH,
      (e) => (thrown || e !== shooter) && e.health > 0 && (e.type === 'player' || e.kind),
    );
    for (const victim of near) {
      const share = 1 - victim.position.distanceTo(missile.position) / SPLASH;
      if (thrown) survival.splash(victim, missile.potion, victim === missile.struck ? 1 : share, shooter);
      else if (missile.effect === 'harming') {
        const amount = unscaled(survival, victim, shooter, 6 * share);
        survival.hurt(victim, { amount, cause: 'magic', by: shooter });
      } else afflict(survival, victim, missile.effect, Math.round(missile.duration * share));
    }
  },
};

class Missiles {
  constructor(survival) {
    this.survival = survival;
    this.flying = new Map();
  }

  /**
   * Launches a missile.
   *
   * @param {string} kind of FLIGHT
   * @param {object} shooter the entity it comes from; it is not hit itself
   * @param {Vec3} from, velocity in blocks per tick; `more`: effect, duration, target
   */
  shoot(kind, shooter, from, velocity, more = {}) {
    const missile = this.survival.spawnObject(
      kind,
      from,
      velocity,
      [],
      1 + (shooter ? shooter.id : 0),
    );
    const { effect = null, duration = 0, target = null, potion = null } = more;
    const length = velocity.norm() || 1;
    Object.assign(missile, {
      shooter: shooter ? shooter.id : null,
      effect,
      duration,
      target,
      potion,
      age: 0,
      aim: velocity.scaled(1 / length),
    });
    missile.velocity = velocity.scaled(20);
    this.flying.set(missile.id, missile);
    return missile;
  }

  /** Throws from a shooter's eyes at a body, compensating for the fall. */
  throwAt(kind, shooter, target, { speed, spread, aimAt, ...more }) {
    const { from, direction } = lineTo(shooter, target, aimAt);
    const off = () => gaussian() * 0.0075 * spread;
    const velocity = direction.offset(off(), off(), off()).scaled(speed);
    return this.shoot(kind, shooter, from, velocity, more);
  }

  end(missile) {
    this.flying.delete(missile.id);
    this.survival.removeEntity(missile);
  }

  /** Returns the victim between two positions, as `{victim, share}` of the way. */
  firstHit(missile, from, to) {
    let victim = null;
    let share = Infinity;
    const grow = 0.3 + (FLIGHT[missile.name].size || 0) / 2;
    const look = (entity, width, height) => {
      if (!(entity.health > 0) || (entity.id === missile.shooter && missile.age < OWN)) return;
      if (Math.abs(entity.position.x - from[0]) > 8 || Math.abs(entity.position.z - from[2]) > 8)
        return;
      const at = hitsBody(from, to, entity.position, width, height, grow);
      if (at < share) [victim, share] = [entity, at];
    };
    for (const player of this.survival.serv.players) {
      if (player.gameMode !== 3) look(player, 0.6, player.crouching ? 1.5 : 1.8);
    }
    for (const mob of this.survival.mobs.list.values()) look(mob, mob.width, mob.height);
    return { victim, share };
  }

  steer(missile, flight) {
    const { motion } = missile;
    if (flight.homing) {
      const target = this.survival.serv.entities[missile.target];
      if (!target) return;
      const way = target.position.offset(0, 1, 0).minus(missile.position);
      const length = way.norm() || 1;
      missile.motion = way.scaled(flight.homing / length);
    } else if (flight.push) {
      motion.x += missile.aim.x * flight.push;
      motion.y += missile.aim.y * flight.push;
      motion.z += missile.aim.z * flight.push;
    }
  }

  fly(missile) {
    const flight = FLIGHT[missile.name];
    const { survival } = this;
    missile.age++;
    if (missile.age > flight.life || missile.position.y < -64) {
      this.end(missile);
      return;
    }
    this.steer(missile, flight);
    const { motion } = missile;
    const from = missile.position.toArray();
    const to = missile.position.plus(motion).toArray();
    const wall = hitsBlock(survival.blocks, from, to);
    const crystal = survival.crystalOn(missile.position, motion);
    if (crystal && wall > 1) {
      this.end(missile);
      survival.shatter(crystal);
      return;
    }
    const { victim, share } = this.firstHit(missile, from, to);
    const way = Math.min(1, wall, share);
    missile.position = missile.position.plus(motion.scaled(way));
    if (way < 1 || wall === 1 || share === 1) {
      this.hit(missile, share <= wall ? victim : null, motion.norm());
      return;
    }
    const wet = survival.blocks.at(...to).water;
    const drag = wet ? Math.min(flight.drag, 0.8) : flight.drag;
    motion.x *= drag;
    motion.y = motion.y * drag - flight.fall;
    motion.z *= drag;
  }

  hit(missile, victim, speed) {
    const { survival } = this;
    const shooter = survival.serv.entities[missile.shooter] || null;
    if (victim) HITS[missile.name](survival, missile, victim, speed, shooter);
    this.end(missile);
    missile.struck = victim;
    const ends = ENDS[missile.name];
    if (ends) ends(survival, missile, shooter);
  }

  /** Sends back a fireball that a player strikes. */
  deflect(player, missile) {
    if (missile.name !== 'fireball' || !this.flying.has(missile.id)) return;
    const { yaw, pitch } = player.facing;
    const flat = Math.cos(pitch);
    missile.aim = new Vec3(-Math.sin(yaw) * flat, -Math.sin(pitch), Math.cos(yaw) * flat);
    missile.motion = missile.aim.clone();
    missile.shooter = player.id;
    missile.age = 0;
  }

  tick() {
    for (const missile of [...this.flying.values()]) {
      if (this.survival.serv.entities[missile.id] !== missile) this.flying.delete(missile.id);
      else this.fly(missile);
    }
  }

  /** Returns the flying missiles as plain JSON, entities by `refer(id)`. */
  save(refer) {
    return [...this.flying.values()].map((m) => ({
      id: m.id,
      kind: m.name,
      position: m.position.toArray(),
      motion: m.motion.toArray(),
      aim: m.aim.toArray(),
      age: m.age,
      effect: m.effect,
      duration: m.duration,
      potion: m.potion,
      shooter: refer(m.shooter),
      target: refer(m.target),
    }));
  }

  /**
   * Restores what `save` returned; `resolve` turns its references into ids, `as(id, fn)` keeps ids.
   */
  load(rows, resolve, as) {
    for (const missile of [...this.flying.values()]) this.end(missile);
    for (const row of rows) {
      const missile = as(row.id, () =>
        this.shoot(row.kind, null, new Vec3(...row.position), new Vec3(...row.motion)),
      );
      const { age, effect, duration, potion = null } = row;
      Object.assign(missile, {
        age,
        effect,
        duration,
        potion,
        aim: new Vec3(...row.aim),
        shooter: resolve(row.shooter),
        target: resolve(row.target),
      });
    }
  }
}

module.exports = { Missiles, lineTo, unscaled, afflict, gaussian };

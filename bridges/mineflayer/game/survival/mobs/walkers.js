'use strict';

/**
 * The behaviour of mobs that walk: animals, villagers, melee attackers, archers, creepers,
 * endermen, slimes and golems (Minecraft Wiki, page of each, 1.16).
 *
 * Simplified: zombies break no doors, piglins and hoglins do not
 * convert in the overworld, illagers do not raid, drowned throw no
 * tridents.
 */

const ways = require('./ways');
const { goTo, lookAt } = require('./body');
const { explode } = require('./blast');
const { gaussian, lineTo } = require('./missiles');
const { lightAt, isDay, seesSky } = require('./light');

const LURE = 10; // blocks from which an animal follows its food
const BRIGHT = 12; // light in which spiders leave players alone
const FUSE = 30; // ticks a creeper swells

const idle = (mob, tick) =>
  mob.mind.path === null &&
  mob.mind.target === null &&
  mob.mind.foe === null &&
  mob.mind.lure === null &&
  tick >= mob.mind.fearUntil;

/** Follows a player who holds its food; returns whether it does. */
function follows(mobs, mob, tick) {
  const { mind, kind } = mob;
  if (kind.food.length === 0) return false;
  if ((tick + mob.turn) % ways.THINKS === 0) {
    const giver = mobs.players.find((player) => {
      const held = player.heldStack();
      return (
        held && kind.food.includes(held.name) && player.position.distanceTo(mob.position) < LURE
      );
    });
    mind.lure = giver ? giver.id : null;
    if (giver && ways.flat(giver.position, mob.position) > 2.5) {
      ways.setPath(mobs, mob, giver.position, 1.2, { budget: 120, reach: 2 });
    }
  }
  const giver = mind.lure === null ? null : mobs.serv.entities[mind.lure];
  if (!giver) return false;
  if (ways.flat(giver.position, mob.position) <= 2.5) mind.path = null;
  ways.follow(mobs, mob);
  lookAt(mob, giver.position.x, giver.position.y + 1.62, giver.position.z);
  return true;
}

/** Sheep eat grass, which lets their wool grow; it takes 40 ticks. */
function grazes(mobs, mob, tick) {
  const { mind } = mob;
  const { survival, serv } = mobs;
  if (mind.phase === 0) {
    if (Math.random() * (mob.baby ? 50 : 1000) >= ways.THINKS) return false;
    const [x, y, z] = mob.position.floored().toArray();
    const grass = survival.blocks.at(x, y, z).name === 'grass';
    if (!grass && survival.blocks.at(x, y - 1, z).name !== 'grass_block') return false;
    mind.phase = 1;
    mind.phaseAt = tick + 40;
    survival.broadcast(mob, 'entity_status', { entityId: mob.id, entityStatus: 10 });
  }
  if (tick < mind.phaseAt) return true;
  mind.phase = 0;
  const [x, y, z] = mob.position.floored().toArray();
  const tuft = survival.blocks.at(x, y, z).name === 'grass';
  if (!tuft && survival.blocks.at(x, y - 1, z).name !== 'grass_block') return false;
  if (survival.rules.mobGriefing) {
    if (tuft) survival.blocks.setNamed(x, y, z, 'air');
    else survival.blocks.setNamed(x, y - 1, z, 'dirt');
  }
  if (mob.shorn) survival.setShorn(mob, false);
  if (mob.baby) mob.age = Math.min(0, mob.age + 1200);
  serv.emit('gamut:grazed', { entity: mob });
  return true;
}

function attacks(mobs, mob, target, tick, factor = 1) {
  ways.chase(mobs, mob, target, tick, factor);
  mob.sinks = mob.kind.swims === true && target.position.y < mob.position.y;
  ways.leap(mob, target);
  ways.strike(mobs, mob, target, tick);
}

function animal(mobs, mob, tick) {
  const { kind, mind } = mob;
  if (idle(mob, tick) && mind.phase === 0 && !ways.thinks(mob, tick)) return;
  if (ways.flee(mobs, mob, tick)) return;
  const { husbandry } = mobs.survival;
  if (mob.sitting || husbandry.courts(mobs, mob, tick)) return;
  if (kind.fights || kind.prey.length > 0) {
    const target = ways.targetOf(mobs, mob, tick, !mob.tame);
    if (target) {
      attacks(mobs, mob, target, tick, 1.25);
      return;
    }
  }
  if (mob.tame && husbandry.attends(mobs, mob, tick)) return;
  if (follows(mobs, mob, tick)) return;
  if (kind.grazes && (mind.phase > 0 || ways.thinks(mob, tick)) && grazes(mobs, mob, tick)) return;
  ways.stroll(mobs, mob, tick);
}

/** Villagers stroll when nobody trades with them, and flee from the undead and from illagers within 8 blocks. */
function villager(mobs, mob, tick) {
  if ((tick + mob.turn) % 20 === 0) {
    for (const other of mobs.list.values()) {
      const { kind } = other;
      const bad = kind.illager || (kind.undead && kind.prey.includes('villager'));
      if (!bad || !(other.health > 0) || other.position.distanceTo(mob.position) > 8) continue;
      ways.frighten(mob, other.position.x, other.position.z, tick + 40);
      break;
    }
  }
  if (idle(mob, tick) && !ways.thinks(mob, tick)) return;
  if (mob.customer?.openWindow?.merchant === mob) return;
  if (!ways.flee(mobs, mob, tick)) ways.stroll(mobs, mob, tick);
}

/** Whether a mob attacks without being hurt first, here and now. */
function unprovoked(mobs, mob) {
  if (mob.kind.neutral) return false;
  if (!mob.kind.dayNeutral) return true;
  const { x, y, z } = mob.position;
  return lightAt(mobs.survival, x, y, z) < BRIGHT;
}

function melee(mobs, mob, tick) {
  if (mob.admires) return;
  if (idle(mob, tick) && (tick + mob.turn) % 2 !== 0) return;
  const willing = mob.mind.target === null && (tick + mob.turn) % 10 === 0 && unprovoked(mobs, mob);
  const target = ways.targetOf(mobs, mob, tick, willing);
  if (target) attacks(mobs, mob, target, tick);
  else ways.stroll(mobs, mob, tick);
}

/**
 * Draws its bow for a second, shoots, waits two (one on hard); keeps 15 blocks away and side-steps.
 */
function archer(mobs, mob, tick) {
  const { mind, kind } = mob;
  if (idle(mob, tick) && (tick + mob.turn) % 2 !== 0) return;
  const target = ways.targetOf(mobs, mob, tick);
  if (!target) {
    mind.phase = 0;
    ways.stroll(mobs, mob, tick);
    return;
  }
  const away = mob.position.distanceTo(target.position);
  const seen = mind.seenAt > tick - 6;
  if (away > 15 || !seen) ways.chase(mobs, mob, target, tick);
  else if (!kind.standing) sidestep(mob, target, away);
  lookAt(mob, target.position.x, target.position.y + 1, target.position.z);
  if (mind.phase === 0 && tick >= mind.phaseAt && seen && away <= 15) {
    mind.phase = 1;
    mind.phaseAt = tick + (kind.standing ? 25 : 20);
  } else if (mind.phase === 1 && tick >= mind.phaseAt) {
    mind.phase = 0;
    mind.phaseAt = tick + (mobs.serv.difficulty === 3 ? 20 : 40);
    if (ways.sees(mobs, mob, target)) loose(mobs, mob, target);
  }
}

/**
 * Shoots an arrow. `hurt` scales the damage of mobs by difficulty, but that of arrows depends on
 * their bow: the factor is removed here (about, as arrows' damage is rounded up).
 */
function loose(mobs, mob, target) {
  const { difficulty } = mobs.serv;
  const bow = 2 + gaussian() * 0.25 + difficulty * 0.11;
  const damage = difficulty === 3 ? bow / 1.5 : difficulty === 1 ? bow * 2 - 1.25 : bow;
  const { from, direction } = lineTo(mob, target, 1 / 3);
  mobs.survival.shoot(mob, { from, direction, speed: 1.6, damage, spread: 14 - difficulty * 4 });
}

function sidestep(mob, target, away) {
  const { mind, position } = mob;
  mind.path = null;
  if (mind.side === undefined || Math.random() < 0.015) mind.side = Math.random() < 0.5 ? 1 : -1;
  const dx = (target.position.x - position.x) / away;
  const dz = (target.position.z - position.z) / away;
  const back = away < 7.5 ? -1 : away > 11 ? 1 : 0;
  const x = position.x + dz * mind.side + dx * back;
  const z = position.z - dx * mind.side + dz * back;
  goTo(mob, x, z, 0.5);
}

function creeper(mobs, mob, tick) {
  const { mind } = mob;
  if (idle(mob, tick) && mind.phase === 0 && (tick + mob.turn) % 2 !== 0) return;
  const { survival } = mobs;
  const target = ways.targetOf(mobs, mob, tick);
  const away = target ? mob.position.distanceTo(target.position) : Infinity;
  const lit =
    target !== null && (mind.phase > 0 ? away <= 7 : away < 3) && ways.sees(mobs, mob, target);
  if (lit !== mind.lit) {
    mind.lit = lit;
    survival.setMetadata(mob, 15, 1, lit ? 1 : -1);
  }
  mind.phase = Math.max(0, mind.phase + (lit ? 1 : -1));
  if (mind.phase >= FUSE) {
    const centre = mob.position.clone();
    mobs.remove(mob);
    explode(survival, centre, 3, mob);
  } else if (lit) {
    mind.path = null;
    lookAt(mob, target.position.x, target.position.y + 1, target.position.z);
  } else if (target) ways.chase(mobs, mob, target, tick);
  else ways.stroll(mobs, mob, tick);
}

/** Returns whether a player looks an enderman in the face, and does not wear a pumpkin. */
function stares(mobs, mob, player) {
  const helmet = player.inventory.slots[5];
  if (helmet && helmet.name === 'carved_pumpkin') return false;
  const way = mob.position.offset(0, mob.eyes, 0).minus(player.position.offset(0, 1.62, 0));
  const away = way.norm();
  if (away > 64 || away < 1e-6) return false;
  const { yaw, pitch } = player.facing;
  const flat = Math.cos(pitch);
  const dot =
    (-Math.sin(yaw) * flat * way.x - Math.sin(pitch) * way.y + Math.cos(yaw) * flat * way.z) / away;
  return dot > 1 - 0.025 / away && ways.sees(mobs, mob, player);
}

/** Teleports up to 32 blocks away to solid ground, in 16 tries. */
function vanish(mobs, mob) {
  const { blocks } = mobs.survival;
  for (let i = 0; i < 16; i++) {
    const x = Math.floor(mob.position.x + ways.random(-32, 32)) + 0.5;
    const z = Math.floor(mob.position.z + ways.random(-32, 32)) + 0.5;
    let y = Math.floor(mob.position.y + ways.random(-8, 16));
    for (let down = 0; down < 24 && y > 1 && !blocks.at(x, y - 1, z).full; down++) y--;
    const free = [0, 1, 2].every(
      (up) => !blocks.at(x, y + up, z).boxes.length && !blocks.at(x, y + up, z).liquid,
    );
    if (!blocks.loaded(x, z) || !blocks.at(x, y - 1, z).full || !free) continue;
    mob.position = mob.position.offset(0, 0, 0).set(x, y, z);
    mob.mind.path = null;
    return true;
  }
  return false;
}

function enderman(mobs, mob, tick) {
  const { mind } = mob;
  if (mind.target === null && (tick + mob.turn) % 5 === 0) {
    const rude = mobs.players.find((player) => stares(mobs, mob, player));
    if (rude) mind.foe = rude.id;
  }
  if (mob.wet || (mind.fearUntil > tick && mind.target === null)) {
    mind.fearUntil = 0;
    vanish(mobs, mob);
  }
  const target = ways.targetOf(mobs, mob, tick, false);
  if (!target) {
    const { x, y, z } = mob.position;
    if (Math.random() < 0.002 && isDay(mobs.serv) && seesSky(mobs.survival, x, y, z))
      vanish(mobs, mob);
    ways.stroll(mobs, mob, tick);
    return;
  }
  ways.chase(mobs, mob, target, tick, 1.3);
  ways.strike(mobs, mob, target, tick);
}

/** Slimes hop: a jump every 10 to 30 ticks, three times as often when they have a target. */
function slime(mobs, mob, tick) {
  const { mind } = mob;
  const target = ways.targetOf(mobs, mob, tick);
  if (target) {
    touch(mobs, mob, target, tick);
    if (mob.onGround)
      mind.heading = Math.atan2(
        target.position.x - mob.position.x,
        target.position.z - mob.position.z,
      );
  } else if (mind.heading === undefined || Math.random() < 0.01)
    mind.heading = ways.random(0, 2 * Math.PI);
  if (mob.onGround && tick < mind.phaseAt) return;
  if (mob.onGround) {
    mind.phaseAt = tick + Math.floor((10 + Math.random() * 20) / (target ? 3 : 1)) + 10;
    mob.jumps = true;
    // The hop's whole speed is set at once: acceleration in the air is small.
    mob.motion.x = Math.sin(mind.heading) * (0.1 + mob.pace * 0.6);
    mob.motion.z = Math.cos(mind.heading) * (0.1 + mob.pace * 0.6);
    mob.resting = false;
    ways.face(mob, Math.sin(mind.heading), Math.cos(mind.heading));
  }
}

function touch(mobs, mob, target, tick) {
  if (!(mob.damage > 0) || tick < mob.mind.hitAt) return;
  const away = mob.position.distanceTo(target.position);
  if (away >= 0.6 * mob.size + 0.3 || !ways.sees(mobs, mob, target)) return;
  if (
    mobs.survival.hurt(target, { amount: mob.damage, cause: 'blow', by: mob, knockback: 0.4 }) > 0
  ) {
    mob.mind.hitAt = tick + 10;
  }
}

/**
 * Snow golems throw a snowball per second at hostile mobs; snowballs push but damage only blazes.
 */
function snowGolem(mobs, mob, tick) {
  const target = ways.targetOf(mobs, mob, tick);
  if (!target) {
    ways.stroll(mobs, mob, tick);
    return;
  }
  lookAt(mob, target.position.x, target.position.y + 1, target.position.z);
  if (tick < mob.mind.hitAt || !ways.sees(mobs, mob, target)) return;
  mob.mind.hitAt = tick + 20;
  mobs.missiles.throwAt('snowball', mob, target, { speed: 1.6, spread: 12, aimAt: 0.8 });
}

module.exports = {
  animal,
  villager,
  melee,
  archer,
  creeper,
  enderman,
  slime,
  snow_golem: snowGolem,
  still: () => {},
};

'use strict';

/**
 * Health, damage, death, respawn. All damage goes through `serv.survival.hurt(victim, {amount,
 * cause, by, from, knockback})`, which returns the health
 * lost: `cause` a word of CAUSES, `by` the attacker, `from` the origin of the blow (the attacker's
 * position by default), `knockback` the strength of the push (0.4 for an ordinary blow, 0 for
 * none).
 *
 * For half a second after a blow only stronger ones count, by the difference; armour, resistance,
 * shields and difficulty as on Mojang's server (Minecraft Wiki, "Damage"). Mobs need `health`,
 * `maxHealth` and, if any, `armourPoints`. Enchantments of what
 * players wear are in enchants.js.
 *
 * Events on `serv`: 'gamut:hurt' {victim, amount, cause, by}, 'gamut:death' {victim, cause, by},
 * 'gamut:respawn' {player}. A dead mob is removed 20 ticks later; its loot is handled by the mobs.
 */

const { Vec3 } = require('vec3');
const { armourOf, throughArmour, SLOTS } = require('./armour');
const { spared, thorns } = require('./enchants');

const name = 'health';
const GRACE = 20;
const FULL = 20;
/** What a cause ignores: armour; or everything, including the time after a blow and creative mode. */
const CAUSES = {
  fall: { armour: false },
  drown: { armour: false },
  starve: { armour: false },
  suffocate: { armour: false },
  burning: { armour: false, fire: true },
  fire: { armour: true, fire: true },
  lava: { armour: true, fire: true },
  magma: { armour: true, fire: true },
  cactus: { armour: true },
  berries: { armour: true },
  blow: { armour: true },
  sweep: { armour: true },
  arrow: { armour: true },
  explosion: { armour: true },
  anvil: { armour: true },
  magic: { armour: false },
  thorns: { armour: true },
  wither: { armour: false },
  lightning: { armour: true },
  command: { armour: false, always: true },
  void: { armour: false, always: true },
};

function effectLevel(entity, registry, effect) {
  const def = registry.effectsByName[effect];
  const found = def && entity.effects && entity.effects[def.id];
  return found ? found.amplifier + 1 : 0;
}

/** The damage of a mob to a player, by difficulty (0 peaceful to 3 hard). */
function byDifficulty(amount, difficulty) {
  if (difficulty === 0) return 0;
  if (difficulty === 1) return Math.min(amount / 2 + 1, amount);
  return difficulty === 3 ? amount * 1.5 : amount;
}

function blocks(victim, from) {
  if (!victim.blockingSince || !from) return false;
  if (victim.stats.tick() - victim.blockingSince < 5) return false;
  const dx = victim.position.x - from.x;
  const dz = victim.position.z - from.z;
  const { yaw } = victim.facing;
  return dx * -Math.sin(yaw) + dz * Math.cos(yaw) < 0;
}

/**
 * Pushes an entity away from a point; half of its own speed remains (LivingEntity's knock-back,
 * 1.16).
 */
function knockBack(serv, victim, strength, from) {
  const resistance =
    victim.type === 'player' ? armourOf(victim).resistance : victim.knockbackResistance || 0;
  const force = strength * (1 - resistance);
  if (force <= 0 || victim.ai === null) return;
  let dx = from.x - victim.position.x;
  let dz = from.z - victim.position.z;
  if (dx * dx + dz * dz < 1e-4) {
    dx = (Math.random() - Math.random()) * 0.01;
    dz = (Math.random() - Math.random()) * 0.01;
  }
  const length = Math.hypot(dx, dz) || 1;
  const own = victim.motion || new Vec3(0, 0, 0);
  const lift = victim.onGround !== false ? Math.min(0.4, own.y / 2 + force) : own.y;
  const push = new Vec3(own.x / 2 - (dx / length) * force, lift, own.z / 2 - (dz / length) * force);
  if (victim.type !== 'player') victim.motion = push;
  victim.emit('pushed', push);
  serv.survival.sendVelocity(victim, push);
}

function reduced(serv, victim, amount, kind, cause) {
  const { registry } = serv;
  if (kind.fire && effectLevel(victim, registry, 'FireResistance')) return 0;
  let left = amount;
  if (kind.armour) {
    const worn =
      victim.type === 'player'
        ? armourOf(victim)
        : { points: victim.armourPoints || 0, toughness: victim.armourToughness || 0 };
    left = throughArmour(left, worn.points, worn.toughness);
  }
  const resistance = kind.always ? 0 : effectLevel(victim, registry, 'Resistance');
  left *= Math.max(0, 1 - resistance / 5);
  return victim.type === 'player' ? left * spared(victim, cause, kind) : left;
}

/** Returns the damage of a blow that counts now, given the time since the last; 0 if none. */
function afterGrace(survival, victim, amount, kind) {
  const since = survival.tick - (victim.hurtTick ?? -GRACE);
  if (since < GRACE / 2 && !kind.always) {
    if (amount <= victim.lastBlow) return 0;
    const excess = amount - victim.lastBlow;
    victim.lastBlow = amount;
    return excess;
  }
  victim.lastBlow = amount;
  victim.hurtTick = survival.tick;
  return amount;
}

function shieldTakes(serv, victim, amount, by) {
  serv.survival.broadcast(victim, 'entity_status', { entityId: victim.id, entityStatus: 29 });
  if (amount >= 3) victim.wearSlot(victim.blockingSlot, 1 + Math.floor(amount));
  if (by && by.type !== 'player') knockBack(serv, by, 0.5, victim.position);
  serv.emit('gamut:blocked', { victim, amount, by });
}

function hurt(serv, victim, { amount, cause, by = null, from = by && by.position, knockback = 0 }) {
  const { survival } = serv;
  const kind = CAUSES[cause];
  if (!kind)
    throw new Error(`no cause of damage is called ${cause}: ${Object.keys(CAUSES).join(', ')}`);
  if (!(victim.health > 0) || !(amount > 0)) return 0;
  if (victim.type === 'player' && !kind.always && !survival.mortal(victim)) return 0;
  let blow = amount;
  if (victim.type === 'player' && by && by.type !== 'player')
    blow = byDifficulty(blow, serv.difficulty);
  if (victim.type === 'player' && kind.armour && blocks(victim, from)) {
    shieldTakes(serv, victim, blow, by);
    return 0;
  }
  const counts = afterGrace(survival, victim, blow, kind);
  if (counts <= 0) return 0;
  const lost = Math.min(victim.health, reduced(serv, victim, counts, kind, cause));
  if (victim.type === 'player' && kind.armour) {
    for (const slot of SLOTS) victim.wearSlot(slot, Math.max(1, Math.floor(counts / 4)));
    victim.exhaust(0.1);
    const back = by && by !== victim && cause === 'blow' ? thorns(victim) : 0;
    if (back) hurt(serv, by, { amount: back, cause: 'thorns', by: victim });
  }
  if (knockback > 0 && from) knockBack(serv, victim, knockback, from);
  if (lost <= 0) return 0;
  victim.updateHealth(victim.health - lost);
  serv.emit('gamut:hurt', { victim, amount: lost, cause, by });
  survival.broadcast(victim, 'entity_status', {
    entityId: victim.id,
    entityStatus: victim.health > 0 ? 2 : 3,
  });
  if (victim.health <= 0) die(serv, victim, cause, by);
  return lost;
}

function die(serv, victim, cause, by) {
  victim.deathTick = serv.survival.tick;
  serv.emit('gamut:death', { victim, cause, by });
  victim.emit('gamut:death', { cause, by });
  if (victim.type === 'player') dropEverything(serv, victim);
  else serv.survival.schedule(GRACE, 'corpse', victim.id);
}

function dropEverything(serv, player) {
  const { survival } = serv;
  player.emit('closeWindows');
  if (survival.rules.keepInventory) return;
  player.inventory.slots.forEach((item, slot) => {
    if (!item || slot === 0) return;
    const angle = Math.random() * 2 * Math.PI;
    const force = Math.random() * 0.5;
    const velocity = new Vec3(-Math.sin(angle) * force, 0.2, Math.cos(angle) * force);
    survival.drop(player.position.offset(0, 1.32, 0), item, { velocity, delay: 40 });
    player.setSlot(slot, null);
  });
  player.setXpPoints(0);
}

/** Respawns a dead player at its bed or the world's spawn, with full health. */
function respawn(serv, player) {
  if (player.health > 0) return;
  const place = serv.survival.respawnPlace(player);
  player._client.write('respawn', {
    dimension: serv.registry.loginPacket.dimension,
    worldName: serv.dimensionNames[0],
    hashedSeed: serv.hashedSeed,
    gamemode: player.gameMode,
    previousGamemode: player.prevGameMode,
    isDebug: false,
    isFlat: false,
    // The client keeps the chunks it has: the world is the same.
    copyMetadata: true,
  });
  player.hurtTick = -GRACE;
  player.emit('fresh');
  player.teleport(place);
  player.updateHealth(FULL);
  player.showState();
  serv.emit('gamut:respawn', { player });
}

function server(serv) {
  const { survival } = serv;
  survival.hurt = (victim, blow) => hurt(serv, victim, blow);
  survival.knockBack = (victim, strength, from) => knockBack(serv, victim, strength, from);
  survival.effectLevel = (entity, effect) => effectLevel(entity, serv.registry, effect);
  survival.respawnPlace = (player) => player.spawnPoint.clone();
  survival.onScheduled('corpse', (id) => {
    const corpse = serv.entities[id];
    if (corpse) survival.removeEntity(corpse);
  });
}

/** Every entity, before its type is known: players get their own in `player`. */
function entity(entity, serv) {
  entity.updateHealth = (health) => {
    entity.health = Math.max(0, Math.min(health, entity.maxHealth || FULL));
  };
  entity.takeDamage = ({ damage = 1 } = {}) =>
    serv.survival.hurt(entity, { amount: damage, cause: 'command' });
}

function makeStats(player, serv) {
  return {
    get health() {
      return player.health;
    },
    get food() {
      return player.food;
    },
    get saturation() {
      return player.foodSaturation;
    },
    get exhaustion() {
      return player.exhaustion;
    },
    get oxygen() {
      return player.air;
    },
    get armour() {
      return armourOf(player).points;
    },
    get xp() {
      return player.experience;
    },
    tick: () => serv.survival.tick,
  };
}

function player(player, serv) {
  player.stats = makeStats(player, serv);
  player.health = FULL;
  player.food = FULL;
  player.foodSaturation = 5;
  player.updateHealth = (health) => {
    player.health = Math.max(0, Math.min(FULL, health));
    player.showHealth();
  };
  player.showHealth = () =>
    player._client.write('update_health', {
      health: player.health,
      food: player.food,
      foodSaturation: player.foodSaturation,
    });
  player.takeDamage = ({ damage = 1 } = {}) =>
    serv.survival.hurt(player, { amount: damage, cause: 'command' });
  player._client.on('client_command', ({ actionId } = {}) => {
    if (actionId === 'perform_respawn' || actionId === 0) respawn(serv, player);
  });
}

function savePlayer(player) {
  const { health, hurtTick, lastBlow } = player;
  return { health, hurtTick: hurtTick ?? -GRACE, lastBlow: lastBlow || 0 };
}

function loadPlayer(player, serv, data) {
  player.hurtTick = data ? data.hurtTick : -GRACE;
  player.lastBlow = data ? data.lastBlow : 0;
  player.updateHealth(data ? data.health : FULL);
}

module.exports = { name, server, entity, player, savePlayer, loadPlayer, CAUSES };

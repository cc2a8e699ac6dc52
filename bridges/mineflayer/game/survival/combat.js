'use strict';

/**
 * Blows: damage by weapon, charge of the swing, critical hits, sprint knock-back, sweeping,
 * shields, wear (Minecraft Wiki, "Damage" and "Attack speed", 1.16), enchantments (enchants.js). Bows are in projectiles.js.
 */

const { sharper } = require('./enchants');
const { level } = require('./items');

const name = 'combat';
const REACH = 3;
/**
 * Mojang's server allows 6 blocks, its client 3; we require 3 from the eyes to the body, with a
 * tolerance of half a block.
 */
const SLACK = 0.5;

const DAMAGE = {
  sword: { wooden: 4, golden: 4, stone: 5, iron: 6, diamond: 7, netherite: 8 },
  axe: { wooden: 7, golden: 7, stone: 9, iron: 9, diamond: 9, netherite: 10 },
  pickaxe: { wooden: 2, golden: 2, stone: 3, iron: 4, diamond: 5, netherite: 6 },
  shovel: { wooden: 2.5, golden: 2.5, stone: 3.5, iron: 4.5, diamond: 5.5, netherite: 6.5 },
  hoe: { wooden: 1, golden: 1, stone: 1, iron: 1, diamond: 1, netherite: 1 },
};
const SPEED = {
  sword: 1.6,
  pickaxe: 1.2,
  shovel: 1,
  axe: { wooden: 0.8, golden: 1, stone: 0.8, iron: 0.9, diamond: 1, netherite: 1 },
  hoe: { wooden: 1, golden: 1, stone: 2, iron: 3, diamond: 4, netherite: 4 },
};

/**
 * Returns `{damage, speed, kind}` of a held item by name: health points and blows per second.
 */
function weapon(itemName) {
  if (itemName === 'trident') return { damage: 9, speed: 1.1, kind: 'trident' };
  const [, material, kind] =
    /^(wooden|golden|stone|iron|diamond|netherite)_(.+)$/.exec(itemName || '') || [];
  if (!kind || !DAMAGE[kind]) return { damage: 1, speed: 4, kind: null };
  const speed = SPEED[kind];
  return {
    damage: DAMAGE[kind][material],
    speed: typeof speed === 'number' ? speed : speed[material],
    kind,
  };
}

/** Returns the charge of the next blow, 0 to 1. */
function charge(survival, player) {
  const held = player.heldStack();
  const ticks = 20 / weapon(held && held.name).speed;
  return Math.min(1, (survival.tick - player.swungAt + 0.5) / ticks);
}

function distanceTo(player, entity, registry) {
  const def =
    entity.type === 'player' ? { width: 0.6, height: 1.8 } : registry.entitiesByName[entity.name];
  const { x, y, z } = player.position;
  const eye = y + (player.crouching ? 1.27 : 1.62);
  const half = def.width / 2;
  const gap = (v, low, high) => Math.max(low - v, 0, v - high);
  const at = entity.position;
  return Math.hypot(
    gap(x, at.x - half, at.x + half),
    gap(eye, at.y, at.y + def.height),
    gap(z, at.z - half, at.z + half),
  );
}

function critical(survival, player) {
  const { x, y, z } = player.position;
  const at = survival.blocks.at(x, y, z);
  return (
    player.fallDistance > 0 &&
    !player.onGround &&
    !player.sprinting &&
    !at.water &&
    at.name !== 'ladder' &&
    at.name !== 'vine'
  );
}

function basePower(survival, player, item) {
  let power = weapon(item && item.name).damage;
  power += 3 * survival.effectLevel(player, 'Strength');
  return Math.max(0, power - 4 * survival.effectLevel(player, 'Weakness'));
}

function sweep(serv, player, target, lvl, power) {
  const { survival } = serv;
  const near = survival.entitiesNear(
    target.position,
    2.5,
    (e) =>
      e !== target && e !== player && e.health > 0 && (e.type === 'mob' || e.type === 'player'),
  );
  for (const other of near) {
    const dx = Math.abs(other.position.x - target.position.x);
    const dz = Math.abs(other.position.z - target.position.z);
    if (dx > 1.5 || dz > 1.5 || Math.abs(other.position.y - target.position.y) > 1) continue;
    if (other.position.distanceTo(player.position) > REACH) continue;
    const amount = 1 + (power * lvl) / (lvl + 1);
    survival.hurt(other, { amount, cause: 'sweep', by: player, knockback: 0.4 });
  }
}

function breakShield(serv, player, target) {
  if (target.type !== 'player' || !target.blockingSince) return;
  const likely = player.sprinting ? 1 : 0.25;
  if (Math.random() >= likely) return;
  target.stopUsing();
  target.shieldReady = serv.survival.tick + 100;
  target._client.write('set_cooldown', {
    itemID: serv.registry.itemsByName.shield.id,
    cooldownTicks: 100,
  });
}

function attack(serv, player, target) {
  const { survival } = serv;
  if (target === player || !(target.health > 0) || player.gameMode === 3) return;
  if (distanceTo(player, target, serv.registry) > REACH + SLACK) return;
  const item = player.heldStack();
  const { kind } = weapon(item && item.name);
  const sharp = sharper(item, target);
  const push = level(item, 'knockback');
  const fire = level(item, 'fire_aspect');
  const filled = charge(survival, player);
  player.swungAt = survival.tick;
  const strong = filled > 0.9;
  const sprintHit = player.sprinting && strong;
  const crit = strong && critical(survival, player);
  let power = basePower(survival, player, item) * (0.2 + filled * filled * 0.8);
  if (crit) power *= 1.5;
  power += sharp * filled;
  if (kind === 'axe') breakShield(serv, player, target);
  const dealt = survival.hurt(target, { amount: power, cause: 'blow', by: player, knockback: 0.4 });
  player.exhaust(0.1);
  if (dealt <= 0) return;
  if (fire) survival.setBurning(target, 80 * fire);
  if (crit) survival.broadcast(target, 'animation', { entityId: target.id, animation: 4 });
  if ((sprintHit || push) && target.health > 0) {
    const { yaw } = player.facing;
    const behind = player.position.offset(0, 0, 0);
    behind.x = target.position.x + Math.sin(yaw);
    behind.z = target.position.z - Math.cos(yaw);
    survival.knockBack(target, 0.5 * (push + (sprintHit ? 1 : 0)), behind);
    player.sprinting = false;
    player.showState();
  }
  if (strong && !crit && !sprintHit && player.onGround && kind === 'sword')
    sweep(serv, player, target, level(item, 'sweeping'), power);
  if (item && item.maxDurability && kind)
    player.wearSlot(player.heldSlot(), kind === 'sword' || kind === 'trident' ? 1 : 2);
}

function raiseShield(serv, { player, slot }) {
  if (player.using || serv.survival.tick < (player.shieldReady || 0)) return false;
  player.using = { kind: 'block', slot, item: 'shield', since: serv.survival.tick };
  player.blockingSince = serv.survival.tick;
  player.blockingSlot = slot;
  return true;
}

/** Returns the points of a player's blow now, and begins the charge of the next one. */
function blowOf(survival, player) {
  const filled = charge(survival, player);
  player.swungAt = survival.tick;
  return basePower(survival, player, player.heldStack()) * (0.2 + filled * filled * 0.8);
}

/** Experience of a kill: hostile mobs 5, animals 1 to 3 (Minecraft Wiki, "Experience"). */
function killXp(registry, victim) {
  if (victim.type === 'player') return Math.min(100, 7 * victim.experience.level);
  if (victim.xpReward) {
    const [least, most] = victim.xpReward;
    return least + Math.floor(Math.random() * (most - least + 1));
  }
  const category = registry.entitiesByName[victim.name].category || '';
  if (category === 'Hostile mobs')
    return victim.name === 'blaze' || victim.name === 'guardian' ? 10 : 5;
  return category === 'Passive mobs' ? 1 + Math.floor(Math.random() * 3) : 0;
}

function server(serv) {
  const { survival } = serv;
  survival.attack = (player, target) => attack(serv, player, target);
  survival.charge = (player) => charge(survival, player);
  survival.blowOf = (player) => blowOf(survival, player);
  survival.onUseItem('shield', (call) => raiseShield(serv, call));
  serv.prependListener('gamut:death', ({ victim, by }) => {
    if (by && by.type === 'player' && by !== victim) by.addXp(killXp(serv.registry, victim));
  });
}

function player(player, serv) {
  player.swungAt = -100;
  player.blockingSince = 0;
  player.shieldReady = 0;
  player.on('attacks', (target) => attack(serv, player, target));
  player.on('swings', () => {
    player.swungAt = serv.survival.tick;
  });
  player.on('heldChanged', () => {
    player.swungAt = serv.survival.tick;
  });
}

function savePlayer(player, serv) {
  return { swungAt: player.swungAt, shieldReady: player.shieldReady, tick: serv.survival.tick };
}

function loadPlayer(player, serv, data) {
  player.swungAt = data ? data.swungAt : serv.survival.tick - 100;
  player.shieldReady = data ? data.shieldReady : 0;
  player.blockingSince = 0;
}

module.exports = { name, server, player, savePlayer, loadPlayer, weapon };

'use strict';

/**
 * Arrows and tridents: flight, hits, sticking in blocks, picking up again (Minecraft Wiki, "Arrow",
 * "Bow", "Crossbow" and "Trident", 1.16). A crossbow is loaded by holding the button and shot by the
 * next click; of its enchantments only Quick Charge counts, of a bow's power, punch, flame and
 * infinity, of a trident's loyalty. What else is thrown is in throwing.js.
 *
 * `serv.survival.shoot(shooter, {from, direction, speed, damage, spread, critical, keep})` returns
 * the arrow: speed in blocks per tick, `damage` per block per tick of speed (2 for a bow), `spread`
 * 1 for a player, more for mobs (14 less 4 per level of difficulty), `keep` whether players can
 * pick it up, `item` the trident instead of an arrow. Events: 'gamut:shot' {by, arrow}.
 */

const { Vec3 } = require('vec3');
const { sweep, boxesOverlap } = require('./physics');
const { bowDamage } = require('./enchants');
const { level } = require('./items');

const name = 'projectiles';
const SIZE = 0.5;
const TIP = 0.05;
const GRAVITY = 0.05;
const STUCK_FOR = 1200;
const FULL_DRAW = 20;
const TRIDENT = { damage: 8, speed: 2.5, least: 10 }; // health points, blocks a tick, ticks of drawing
const RETURNS = 0.6; // blocks a tick and level of loyalty
/** Ticks that loading a crossbow takes, and how many fewer with each level of Quick Charge. */
const [LOADING, QUICK] = [25, 5];

/** A normally distributed number (Box and Muller). */
function gaussian() {
  return Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
}

function shoot(serv, shooter, shot) {
  const {
    from,
    direction,
    speed = 3,
    damage = 2,
    spread = 1,
    critical = false,
    keep = false,
    punch = 0,
    flame = false,
    item = null,
  } = shot;
  const unit = direction.scaled(1 / (direction.norm() || 1));
  const motion = unit
    .offset(
      gaussian() * 0.0075 * spread,
      gaussian() * 0.0075 * spread,
      gaussian() * 0.0075 * spread,
    )
    .scaled(speed);
  const metadata = [{ key: 7, type: 0, value: critical ? 1 : 0 }];
  const kind = item ? item.name : 'arrow';
  const arrow = serv.survival.spawnObject(kind, from, motion, metadata, shooter.id + 1);
  const fresh = { spent: false, age: 0, stuck: null };
  Object.assign(arrow, { shooter: shooter.id, damage, critical, keep, punch, flame, item, ...fresh });
  turn(arrow);
  serv.survival.arrows.set(arrow.id, arrow);
  serv.emit('gamut:shot', { by: shooter, arrow });
  return arrow;
}

function turn(arrow) {
  const { x, y, z } = arrow.motion;
  const bytes = (radians) => (Math.round((radians / (2 * Math.PI)) * 256) << 24) >> 24;
  arrow.yaw = bytes(Math.atan2(x, z));
  arrow.pitch = bytes(Math.atan2(y, Math.hypot(x, z)));
}

function remove(survival, arrow) {
  survival.arrows.delete(arrow.id);
  survival.removeEntity(arrow);
}

/** The share of a step, 0 to 1, at which a segment enters a box; null if it does not. */
function entry(from, step, low, high) {
  let [enter, leave] = [0, 1];
  for (const axis of ['x', 'y', 'z']) {
    if (Math.abs(step[axis]) < 1e-9) {
      if (from[axis] < low[axis] || from[axis] > high[axis]) return null;
      continue;
    }
    const [a, b] = [(low[axis] - from[axis]) / step[axis], (high[axis] - from[axis]) / step[axis]];
    enter = Math.max(enter, Math.min(a, b));
    leave = Math.min(leave, Math.max(a, b));
  }
  return enter <= leave ? enter : null;
}

/** The first living entity on the way, within `share` of the step. */
function victimOf(serv, arrow, share) {
  let [best, first] = [null, share];
  for (const id in serv.entities) {
    const entity = serv.entities[id];
    if (!(entity.health > 0) || entity.type === 'object') continue;
    if (entity.id === arrow.shooter && arrow.age < 5) continue;
    const body =
      entity.type === 'player'
        ? { width: 0.6, height: 1.8 }
        : serv.registry.entitiesByName[entity.name];
    const half = body.width / 2 + 0.3;
    const low = entity.position.offset(-half, -0.3, -half);
    const high = entity.position.offset(half, body.height + 0.3, half);
    const at = entry(arrow.position, arrow.motion, low, high);
    if (at !== null && at <= first) [best, first] = [entity, at];
  }
  return best;
}

function strike(serv, arrow, victim) {
  const { survival } = serv;
  const speed = arrow.motion.norm();
  let amount = arrow.item ? arrow.damage : Math.ceil(speed * arrow.damage);
  if (arrow.critical) amount += Math.floor(Math.random() * (Math.floor(amount / 2) + 2));
  const by = serv.entities[arrow.shooter] || null;
  const behind = victim.position.minus(arrow.motion);
  const lost = survival.hurt(victim, { amount, cause: 'arrow', by, from: behind, knockback: 0.4 + 0.6 * arrow.punch });
  if (lost > 0 && arrow.flame) survival.setBurning(victim, 100);
  if (arrow.item) {
    arrow.spent = true;
    arrow.motion = new Vec3(arrow.motion.x * -0.01, arrow.motion.y * -0.1, arrow.motion.z * -0.01);
    return;
  }
  if (lost > 0 || victim.type !== 'player') {
    remove(survival, arrow);
    return;
  }
  // It bounces off a shield, or off an entity that was hit just now, and falls down.
  arrow.motion = arrow.motion.scaled(-0.1);
}

function fly(serv, arrow) {
  const { survival } = serv;
  const { position, motion } = arrow;
  const to = sweep(
    survival.blocks,
    position.x,
    position.y,
    position.z,
    TIP,
    TIP,
    motion.x,
    motion.y,
    motion.z,
  );
  const blocked = to.hitX || to.hitY || to.hitZ;
  const length = motion.norm() || 1;
  const share = blocked ? position.distanceTo(new Vec3(to.x, to.y, to.z)) / length : 1;
  const crystal = survival.crystalOn(position, motion);
  if (crystal && !blocked) {
    survival.shatter(crystal);
    remove(survival, arrow);
    return;
  }
  const victim = arrow.spent ? null : victimOf(serv, arrow, share);
  if (victim) {
    strike(serv, arrow, victim);
    return;
  }
  survival.moveEntity(arrow, to.x, to.y, to.z, blocked);
  if (blocked) {
    arrow.stuck = { since: survival.tick };
    return;
  }
  const wet = survival.blocks.at(to.x, to.y, to.z).water;
  arrow.motion = motion.scaled(wet && !arrow.item ? 0.6 : 0.99).offset(0, -GRAVITY, 0);
  turn(arrow);
}

/** Whether an arrow still has a block at its tip. */
function held(survival, { position, motion }) {
  const { x, y, z } = motion.scaled(0.1 / (motion.norm() || 1));
  const to = sweep(survival.blocks, position.x, position.y, position.z, TIP, TIP, x, y, z);
  return to.hitX || to.hitY || to.hitZ;
}

function pickUp(serv, arrow) {
  const { survival } = serv;
  for (const player of serv.players) {
    if (!arrow.keep || player.health <= 0 || player.gameMode === 3) continue;
    if (!boxesOverlap(player.position.offset(0, -0.5, 0), 2.6, 2.8, arrow.position, SIZE, SIZE))
      continue;
    if (player.give(arrow.item ?? survival.items.make('arrow')) > 0) continue;
    survival.broadcast(arrow, 'collect', {
      collectedEntityId: arrow.id,
      collectorEntityId: player.id,
      pickupItemCount: 1,
    });
    serv.emit('gamut:picked', { player, item: arrow.name, count: 1 });
    remove(survival, arrow);
    return;
  }
}

/** A loyal trident flies back to who threw it, through blocks; returns whether it does. */
function comesBack(serv, arrow) {
  const loyalty = level(arrow.item, 'loyalty');
  const owner = serv.entities[arrow.shooter];
  if (!loyalty || !(owner?.health > 0)) return false;
  arrow.stuck = null;
  const way = owner.position.offset(0, 1, 0).minus(arrow.position);
  const far = way.norm() || 1;
  const step = way.scaled(Math.min(1, (RETURNS * loyalty) / far));
  const { x, y, z } = arrow.position.plus(step);
  serv.survival.moveEntity(arrow, x, y, z, false);
  pickUp(serv, arrow);
  return true;
}

function tickArrow(serv, arrow) {
  const { survival } = serv;
  arrow.age++;
  if (arrow.position.y < -64 || (arrow.stuck && survival.tick - arrow.stuck.since > STUCK_FOR)) {
    remove(survival, arrow);
    return;
  }
  if (arrow.item && (arrow.stuck || arrow.spent) && comesBack(serv, arrow)) return;
  if (!arrow.stuck) {
    fly(serv, arrow);
    return;
  }
  if ((survival.tick + arrow.id) % 10 === 0 && !held(survival, arrow)) {
    arrow.stuck = null;
    arrow.motion = new Vec3(0, 0, 0);
  }
  pickUp(serv, arrow);
}

function arrowSlot(player) {
  return [45, ...Array.from({ length: 36 }, (_, i) => 9 + i)].find((slot) => {
    const item = player.inventory.slots[slot];
    return item && item.name === 'arrow';
  });
}

function draw(serv, { player, slot, item }) {
  if (player.using) return false;
  if (isLoaded(item)) {
    player.setSlot(slot, loaded(serv, item, false));
    loose(serv, player, slot, { speed: 3.15, critical: true });
    return true;
  }
  if (arrowSlot(player) === undefined && player.gameMode !== 1) return false;
  player.using = { kind: item.name, slot, item: item.name, since: serv.survival.tick };
  return true;
}

const isLoaded = (item) => item.nbt?.value?.Charged?.value === 1;

/** Returns a crossbow with an arrow in it, or without. */
function loaded({ survival }, item, full) {
  const copy = survival.items.copy(item);
  const { Charged, ChargedProjectiles, ...rest } = copy.nbt?.value ?? {};
  const arrow = { id: { type: 'string', value: 'minecraft:arrow' }, Count: { type: 'byte', value: 1 } };
  const held = {
    Charged: { type: 'byte', value: 1 },
    ChargedProjectiles: { type: 'list', value: { type: 'compound', value: [arrow] } },
  };
  copy.nbt = { type: 'compound', name: '', value: full ? { ...rest, ...held } : rest };
  return copy;
}

/** Where a player shoots from, and where to. */
function aimed(player) {
  const { yaw, pitch } = player.facing;
  const direction = new Vec3(
    -Math.sin(yaw) * Math.cos(pitch),
    -Math.sin(pitch),
    Math.cos(yaw) * Math.cos(pitch),
  );
  return { from: player.position.offset(0, 1.52, 0), direction };
}

/** Shoots an arrow where a player looks, and wears what it came from. */
function loose(serv, player, slot, shot) {
  shoot(serv, player, { ...aimed(player), keep: player.gameMode !== 1, ...shot });
  player.wearSlot(slot, 1);
}

/** Loads a crossbow that was held for long enough. */
function charge(serv, player, { slot, since }) {
  const { survival } = serv;
  const bow = player.inventory.slots[slot];
  if (bow?.name !== 'crossbow') return;
  const ticks = LOADING - QUICK * survival.items.level(bow, 'quick_charge');
  const from = arrowSlot(player);
  const free = player.gameMode === 1;
  if (survival.tick - since < ticks || (from === undefined && !free)) return;
  if (!free) player.useUp(from);
  player.setSlot(slot, loaded(serv, bow, true));
}

/** Throws a trident that was drawn for long enough. */
function hurl(serv, player, { slot, since }) {
  const { survival } = serv;
  const trident = player.inventory.slots[slot];
  if (trident?.name !== 'trident' || survival.tick - since < TRIDENT.least) return;
  player.wearSlot(slot, 1);
  const worn = player.inventory.slots[slot];
  if (!worn) return;
  const item = survival.items.copy(worn);
  if (player.gameMode !== 1) player.setSlot(slot, null);
  shoot(serv, player, { ...aimed(player), item, speed: TRIDENT.speed, damage: TRIDENT.damage, keep: player.gameMode !== 1 });
}

/** Releases a bow: the longer it was drawn, up to a second, the faster the arrow. */
function release(serv, player, using) {
  const { survival } = serv;
  const bow = player.inventory.slots[using.slot];
  const free = player.gameMode === 1;
  const from = arrowSlot(player);
  const drawn = (survival.tick - using.since) / FULL_DRAW;
  const power = Math.min(1, (drawn * drawn + drawn * 2) / 3);
  if (power < 0.1 || !bow || bow.name !== 'bow' || (from === undefined && !free)) return;
  const endless = level(bow, 'infinity') > 0;
  if (!free && !endless) player.useUp(from);
  loose(serv, player, using.slot, {
    speed: 3 * power,
    critical: power === 1,
    damage: bowDamage(bow),
    punch: level(bow, 'punch'),
    flame: level(bow, 'flame') > 0,
    ...(endless ? { keep: false } : {}),
  });
}

function server(serv) {
  const { survival } = serv;
  survival.arrows = new Map();
  survival.shoot = (shooter, shot) => shoot(serv, shooter, shot);
  survival.onUseItem(['bow', 'crossbow'], (call) => draw(serv, call));
  survival.onUseItem('trident', ({ player, slot }) => {
    if (!player.using) player.using = { kind: 'trident', slot, item: 'trident', since: survival.tick };
  });
  survival.onTick(() => {
    for (const arrow of [...survival.arrows.values()]) {
      if (serv.entities[arrow.id]) tickArrow(serv, arrow);
      else survival.arrows.delete(arrow.id);
    }
  });
}

function player(player, serv) {
  player.on('releases', (using) => {
    if (using.kind === 'bow') release(serv, player, using);
    if (using.kind === 'crossbow') charge(serv, player, using);
    if (using.kind === 'trident') hurl(serv, player, using);
  });
}

function save(serv) {
  return [...serv.survival.arrows.values()].map((arrow) => ({
    position: arrow.position.toArray(),
    motion: arrow.motion.toArray(),
    rest: {
      shooter: arrow.shooter,
      damage: arrow.damage,
      critical: arrow.critical,
      keep: arrow.keep,
      punch: arrow.punch,
      flame: arrow.flame,
      spent: arrow.spent,
      item: serv.survival.items.toJson(arrow.item),
      age: arrow.age,
      stuck: arrow.stuck,
    },
  }));
}

function load(serv, data) {
  const { survival } = serv;
  for (const arrow of [...survival.arrows.values()]) remove(survival, arrow);
  for (const { position, motion, rest } of data || []) {
    const metadata = [{ key: 7, type: 0, value: rest.critical ? 1 : 0 }];
    const arrow = survival.spawnObject(
      rest.item ? rest.item.name : 'arrow',
      new Vec3(...position),
      new Vec3(...motion),
      metadata,
      rest.shooter + 1,
    );
    Object.assign(arrow, rest, { item: survival.items.fromJson(rest.item) });
    turn(arrow);
    survival.arrows.set(arrow.id, arrow);
  }
}

module.exports = { name, server, player, save, load };

'use strict';

/**
 * Boats and minecarts: placing, motion, breaking (Minecraft Wiki, "Boat" and "Minecart", Java
 * Edition 1.16).
 *
 * Creatures that a boat without a player at its oars, or a moving minecart, touches get in.
 *
 * Simplified: boats do not sink with those aboard and are carried by no
 * current, minecarts pass through one another and through creatures.
 *
 * `serv.survival.spawnVehicle(kind, position, {item, heading})` makes one; `item` is what it drops,
 * `heading` in radians.
 */

const { Vec3 } = require('vec3');
const { sweep } = require('./physics');
const { inSight } = require('./sight');
const { railAt, ride } = require('./rails');

const name = 'vehicles';
const WOODS = ['oak', 'spruce', 'birch', 'jungle', 'acacia', 'dark_oak'];
const BODY = { boat: { width: 1.375, height: 0.5625 }, minecart: { width: 0.98, height: 0.7 } };
const GRAVITY = 0.04;
const BREAKS = 40; // damage at which one breaks; it heals 1 a tick
const BLOW = 10; // damage per point of a blow
const FULL_TURN = 2 * Math.PI;

const byteOf = (radians) => (Math.floor((radians / FULL_TURN) * 256) << 24) >> 24;

function metadataOf({ name: kind, wood }) {
  return kind === 'boat' ? [{ key: 10, type: 1, value: wood }] : [];
}

function spawn(serv, kind, position, { item = defaultItem(kind), heading = 0 } = {}) {
  const { survival } = serv;
  const wood = Math.max(0, WOODS.indexOf(item.replace(/_boat$/, '')));
  const metadata = metadataOf({ name: kind, wood });
  const entity = survival.spawnObject(kind, position, new Vec3(0, 0, 0), metadata, 0);
  Object.assign(entity, { item, wood, heading, turn: 0, damage: 0, riders: [], resting: false });
  entity.yaw = byteOf(heading);
  survival.vehicles.set(entity.id, entity);
  return entity;
}

const defaultItem = (kind) => (kind === 'boat' ? 'oak_boat' : kind);

function remove(serv, entity) {
  const { survival } = serv;
  for (const rider of [...entity.riders]) survival.dismount(rider);
  survival.vehicles.delete(entity.id);
  survival.removeEntity(entity);
}

function slide(survival, entity, { x, y, z }) {
  const { width, height } = BODY[entity.name];
  const at = entity.position;
  const to = sweep(survival.blocks, at.x, at.y, at.z, width, height, x, y, z);
  if (to.x !== at.x || to.y !== at.y || to.z !== at.z)
    survival.moveEntity(entity, to.x, to.y, to.z, to.onGround);
  return to;
}

/** The height of the water around a body, or null: the highest surface that its box touches. */
function waterLevel({ blocks }, entity) {
  const { x, y, z } = entity.position;
  const half = BODY[entity.name].width / 2 - 0.01;
  let level = null;
  for (let bx = Math.floor(x - half); bx <= Math.floor(x + half); bx++) {
    for (let bz = Math.floor(z - half); bz <= Math.floor(z + half); bz++) {
      for (let by = Math.floor(y - 0.01); by <= Math.floor(y + BODY.boat.height); by++) {
        const surface = blocks.surface(bx, by, bz, 'water');
        if (surface > 0 && by + surface > y - 0.01) level = Math.max(level ?? -Infinity, by + surface);
      }
    }
  }
  return level;
}

/** A boat floats, glides and turns as its rider paddles. */
function sail(survival, boat) {
  const { motion } = boat;
  const level = waterLevel(survival, boat);
  const under = level !== null && level > boat.position.y + BODY.boat.height;
  const keeps = level === null ? (boat.onGround ? 0.6 : 0.9) : under ? 0.45 : 0.9;
  motion.x *= keeps;
  motion.z *= keeps;
  motion.y -= GRAVITY;
  boat.turn *= keeps;
  if (level !== null) {
    const lift = under ? 0.01 : (level - boat.position.y) / BODY.boat.height;
    motion.y = (motion.y + lift * 0.0615) * 0.75;
  }
  const wish = survival.steering(boat);
  if (wish) {
    boat.turn -= Math.sign(wish.sideways);
    boat.heading += (boat.turn * Math.PI) / 180;
    let push = wish.forward > 0 ? 0.04 : wish.forward < 0 ? -0.005 : 0;
    if (wish.sideways !== 0 && wish.forward === 0) push += 0.005;
    motion.x -= Math.sin(boat.heading) * push;
    motion.z += Math.cos(boat.heading) * push;
    boat.yaw = byteOf(boat.heading);
  } else boat.heading += (boat.turn * Math.PI) / 180;
  const to = slide(survival, boat, motion);
  if (to.hitX) motion.x = 0;
  if (to.hitY) motion.y = 0;
  if (to.hitZ) motion.z = 0;
}

/** A minecart follows rails, else it slides to a halt. */
function roll(survival, cart) {
  const { motion } = cart;
  const wish = survival.steering(cart);
  const rail = railAt(survival.blocks, cart.position);
  // A rider sets a cart going that hardly moves.
  if (wish && wish.forward > 0 && Math.hypot(motion.x, motion.z) < 0.1) {
    motion.x -= Math.sin(wish.yaw) * 0.02;
    motion.z += Math.cos(wish.yaw) * 0.02;
  }
  if (rail) {
    if (rail.info.name === 'detector_rail') survival.tread(rail.x, rail.y, rail.z, rail.info);
    ride(survival, cart, rail);
    return;
  }
  motion.y -= GRAVITY;
  const to = slide(survival, cart, motion);
  const keeps = to.onGround ? 0.5 : 0.95;
  motion.x = to.hitX ? 0 : motion.x * keeps;
  motion.z = to.hitZ ? 0 : motion.z * keeps;
  motion.y = to.hitY ? 0 : motion.y * keeps;
}

const MOVES = { boat: sail, minecart: roll };

/** Lets creatures get in that touch a boat or a cart: those that fit, and do not live in water. */
function takeIn(serv, entity) {
  const { survival } = serv;
  const { name: kind, position, riders } = entity;
  if (riders.some(({ type }) => type === 'player')) return;
  if (kind === 'minecart' && Math.hypot(entity.motion.x, entity.motion.z) < 0.1) return;
  const { width, height } = BODY[kind];
  for (const mob of survival.mobs.list.values()) {
    if (mob.vehicle || !(mob.health > 0) || mob.kind.moves === 'swim' || mob.width >= BODY.boat.width) continue;
    if (mob.ai === null) continue;
    const reach = (width + mob.width) / 2 + (kind === 'boat' ? 0.2 : 0);
    const at = mob.position;
    if (Math.abs(at.x - position.x) > reach || Math.abs(at.z - position.z) > reach) continue;
    if (at.y > position.y + height || at.y + mob.height < position.y) continue;
    survival.mount(mob, entity);
  }
}

function tick(serv) {
  const { survival } = serv;
  for (const entity of [...survival.vehicles.values()]) {
    if (serv.entities[entity.id] !== entity) {
      survival.vehicles.delete(entity.id);
      continue;
    }
    if (entity.damage > 0) entity.damage--;
    if (entity.position.y < -64) {
      remove(serv, entity);
      continue;
    }
    // One at rest is looked at now and then.
    if (entity.resting && !entity.riders.length && (survival.tick + entity.id) % 10 !== 0) continue;
    takeIn(serv, entity);
    const before = entity.position;
    MOVES[entity.name](survival, entity);
    entity.resting = entity.position === before && Math.hypot(entity.motion.x, entity.motion.z) < 1e-3;
  }
}

/** A blow: what is struck hard enough, or by a creative player, breaks. */
function struck(serv, player, entity) {
  const { survival } = serv;
  if (!survival.vehicles.has(entity.id) || player.vehicle === entity) return;
  entity.damage += BLOW * survival.blowOf(player);
  entity.resting = false;
  const creative = player.gameMode === 1;
  if (!creative && entity.damage <= BREAKS) return;
  const { x, y, z } = entity.position.floored();
  remove(serv, entity);
  if (!creative) survival.popItem(x, y, z, survival.items.make(entity.item));
}

function putBoat(serv, { player, slot, item }) {
  const { survival } = serv;
  const seen = inSight(survival, player, (info) => info.water);
  if (!seen) return false;
  const { point } = seen;
  const half = BODY.boat.width / 2;
  const { blocks } = survival;
  const clear = sweep(blocks, point.x, point.y + 0.6, point.z, BODY.boat.width, 0.5, 0, -0.6, 0);
  const blocked = [-half, half].some((dx) => [-half, half].some((dz) =>
    blocks.at(point.x + dx, clear.y + 0.2, point.z + dz).full));
  if (blocked) return false;
  spawn(serv, 'boat', new Vec3(point.x, clear.y, point.z), {
    item: item.name, heading: player.facing.yaw,
  });
  if (player.gameMode !== 1) player.useUp(slot);
  serv.emit('gamut:placed', { player, block: item.name, ...floor(point) });
  return true;
}

const floor = ({ x, y, z }) => ({ x: Math.floor(x), y: Math.floor(y), z: Math.floor(z) });

function putCart(serv, { player, slot, item, info, x, y, z }) {
  if (!/(^|_)rail$/.test(info.name)) return false;
  const up = info.props.shape.startsWith('ascending') ? 0.5 : 0;
  spawn(serv, 'minecart', new Vec3(x + 0.5, y + 0.0625 + up, z + 0.5), { item: item.name });
  if (player.gameMode !== 1) player.useUp(slot);
  serv.emit('gamut:placed', { player, block: item.name, x, y, z });
  return true;
}

function server(serv) {
  const { survival } = serv;
  survival.vehicles = new Map();
  survival.spawnVehicle = (...args) => spawn(serv, ...args);
  const boats = WOODS.map((wood) => `${wood}_boat`);
  survival.onUseItem(boats, (call) => putBoat(serv, call));
  survival.onUseItemOn(boats, () => false);
  survival.onUseItemOn('minecart', (call) => putCart(serv, call));
  survival.onTick(() => tick(serv));
}

function player(player, serv) {
  player.on('attacks', (entity) => struck(serv, player, entity));
}

function save(serv) {
  return [...serv.survival.vehicles.values()].map((v) => ({
    kind: v.name, position: v.position.toArray(), motion: v.motion.toArray(),
    item: v.item, heading: v.heading, turn: v.turn, damage: v.damage,
  }));
}

function load(serv, data) {
  const { survival } = serv;
  for (const entity of [...survival.vehicles.values()]) remove(serv, entity);
  for (const { kind, position, motion, item, heading, ...rest } of data ?? []) {
    const entity = spawn(serv, kind, new Vec3(...position), { item, heading });
    Object.assign(entity, rest, { motion: new Vec3(...motion) });
  }
}

module.exports = { name, server, player, save, load };

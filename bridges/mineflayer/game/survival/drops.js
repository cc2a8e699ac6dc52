'use strict';

/**
 * Items on the ground: thrown, dropped by blocks and the dead, picked up with their counts,
 * merging, removed after five minutes (Minecraft Wiki, "Item (entity)").
 *
 * `serv.survival.drop(position, item, {velocity, delay, thrower})`, velocity in blocks per tick,
 * `popItem(x, y, z, item)` for a block's drop, `toss(player, item)` for a player's throw.
 * `entity.shares` are the throwers of a stack, `[[username, count]]`, '' for nobody; the first go first.
 * 'gamut:picked' {player, item, count, shares, position}.
 */

const { Vec3 } = require('vec3');
const { sweep, boxesOverlap } = require('./physics');

const name = 'drops';
const SIZE = 0.25;
const LIFETIME = 6000;
const DROP_DELAY = 10;
const THROW_DELAY = 40;
const ITEM_KEY = 7;

function metadataOf(survival, item) {
  return [{ key: ITEM_KEY, type: 6, value: survival.items.Item.toNotch(item) }];
}

function show(serv, entity) {
  const { survival } = serv;
  entity.metadata = metadataOf(survival, entity.stack);
  entity.itemId = entity.stack.type;
  entity.itemCount = entity.stack.count;
  survival.broadcast(entity, 'entity_metadata', { entityId: entity.id, metadata: entity.metadata });
}

function drop(serv, position, item, { velocity = new Vec3(0, 0, 0), delay = DROP_DELAY, thrower = '' } = {}) {
  const { survival } = serv;
  const stack = survival.items.copy(item);
  const entity = survival.spawnObject('item', position, velocity, metadataOf(survival, stack), 1);
  entity.stack = stack;
  entity.itemId = stack.type;
  entity.itemCount = stack.count;
  entity.shares = [[thrower, stack.count]];
  entity.age = 0;
  entity.delay = delay;
  entity.resting = false;
  survival.drops.set(entity.id, entity);
  return entity;
}

function popItem(serv, x, y, z, item) {
  const spot = () => 0.25 + Math.random() * 0.5;
  const push = () => Math.random() * 0.2 - 0.1;
  return drop(serv, new Vec3(x + spot(), y + spot(), z + spot()), item, {
    velocity: new Vec3(push(), 0.2, push()),
  });
}

function toss(serv, player, item) {
  const { yaw, pitch } = player.facing;
  const spin = Math.random() * 2 * Math.PI;
  const strength = 0.02 * Math.random();
  const velocity = new Vec3(
    -Math.sin(yaw) * Math.cos(pitch) * 0.3 + Math.cos(spin) * strength,
    -Math.sin(pitch) * 0.3 + 0.1 + (Math.random() - Math.random()) * 0.1,
    Math.cos(yaw) * Math.cos(pitch) * 0.3 + Math.sin(spin) * strength,
  );
  const entity = drop(serv, player.position.offset(0, 1.32, 0), item, {
    velocity,
    delay: THROW_DELAY,
    thrower: player.username,
  });
  serv.emit('gamut:tossed', { player, item: item.name, count: item.count });
  return entity;
}

function fall(serv, entity) {
  const { survival } = serv;
  const { motion, position } = entity;
  const wet = survival.blocks.at(position.x, position.y, position.z).water;
  if (wet) {
    motion.x *= 0.99;
    motion.z *= 0.99;
    motion.y += motion.y < 0.06 ? 5e-4 : 0;
  } else {
    motion.y -= 0.04;
  }
  const to = sweep(
    survival.blocks,
    position.x,
    position.y,
    position.z,
    SIZE,
    SIZE,
    motion.x,
    motion.y,
    motion.z,
  );
  const friction = to.onGround ? 0.98 * 0.6 : 0.98;
  motion.x = to.hitX ? 0 : motion.x * friction;
  motion.z = to.hitZ ? 0 : motion.z * friction;
  motion.y = to.hitY ? 0 : motion.y * 0.98;
  if (to.x !== position.x || to.y !== position.y || to.z !== position.z) {
    survival.moveEntity(entity, to.x, to.y, to.z, to.onGround);
  }
  entity.resting = to.onGround && Math.abs(motion.x) < 1e-3 && Math.abs(motion.z) < 1e-3;
  if (entity.resting) merge(serv, entity);
}

/** Merges an item with equal ones within half a block. */
function merge(serv, entity) {
  const { survival } = serv;
  for (const other of survival.drops.values()) {
    if (other === entity || !survival.items.same(entity.stack, other.stack)) continue;
    const total = entity.stack.count + other.stack.count;
    if (total > entity.stack.stackSize) continue;
    if (!boxesOverlap(entity.position, SIZE + 1, SIZE, other.position, SIZE, SIZE)) continue;
    other.stack.count = total;
    for (const [thrower, count] of entity.shares) addShare(other.shares, thrower, count);
    other.age = Math.min(other.age, entity.age);
    other.delay = Math.max(other.delay, entity.delay);
    show(serv, other);
    discard(serv, entity);
    return;
  }
}

function addShare(shares, thrower, count) {
  const share = shares.find(([who]) => who === thrower);
  if (share) share[1] += count;
  else shares.push([thrower, count]);
}

/** Takes some items out of the shares of a stack; returns whose they were. */
function takeShares(shares, count) {
  const taken = [];
  for (let left = count; left > 0 && shares.length > 0; left -= taken.at(-1)[1]) {
    const [thrower, has] = shares[0];
    taken.push([thrower, Math.min(left, has)]);
    if (has > left) shares[0][1] -= left;
    else shares.shift();
  }
  return taken;
}

function discard(serv, entity) {
  serv.survival.drops.delete(entity.id);
  serv.survival.removeEntity(entity);
}

/** Changes how many lie there; none takes the entity away. */
function setCount(serv, entity, count) {
  if (count <= 0) {
    discard(serv, entity);
    return;
  }
  takeShares(entity.shares, entity.stack.count - count);
  entity.stack.count = count;
  show(serv, entity);
}

function pickUp(serv, entity) {
  const { survival } = serv;
  for (const player of serv.players) {
    if (player.health <= 0 || player.gameMode === 3 || player.world !== entity.world) continue;
    const low = player.position.offset(0, -0.5, 0);
    if (!boxesOverlap(low, 2.6, 2.8, entity.position, SIZE, SIZE)) continue;
    const before = entity.stack.count;
    const left = player.give(entity.stack);
    const taken = before - left;
    if (!taken) continue;
    survival.broadcast(entity, 'collect', {
      collectedEntityId: entity.id,
      collectorEntityId: player.id,
      pickupItemCount: taken,
    });
    const shares = takeShares(entity.shares, taken);
    const { position } = entity;
    serv.emit('gamut:picked', { player, item: entity.stack.name, count: taken, shares, position });
    if (left === 0) {
      discard(serv, entity);
      return;
    }
    entity.stack.count = left;
    show(serv, entity);
  }
}

function tickItem(serv, entity, tick) {
  const { blocks } = serv.survival;
  entity.age++;
  if (entity.delay > 0) entity.delay--;
  // An item at rest checks only now and then whether the ground is still there.
  if (!entity.resting || (tick + entity.id) % 4 === 0) fall(serv, entity);
  if (!serv.survival.drops.has(entity.id)) return;
  const { x, y, z } = entity.position;
  const here = blocks.at(x, y, z);
  if (here.plate) serv.survival.tread(Math.floor(x), Math.floor(y), Math.floor(z), here);
  if (
    entity.age >= LIFETIME ||
    y < -64 ||
    here.lava ||
    here.name === 'fire' ||
    here.name === 'soul_fire' ||
    here.name === 'cactus'
  ) {
    discard(serv, entity);
    return;
  }
  if (entity.delay === 0) pickUp(serv, entity);
}

function server(serv) {
  const { survival } = serv;
  survival.drops = new Map();
  survival.drop = (...args) => drop(serv, ...args);
  survival.popItem = (...args) => popItem(serv, ...args);
  survival.toss = (player, item) => toss(serv, player, item);
  survival.setDropCount = (entity, count) => setCount(serv, entity, count);
  survival.onTick((tick) => {
    for (const entity of [...survival.drops.values()]) {
      // A plugin or a command may have removed the entity.
      if (!serv.entities[entity.id]) survival.drops.delete(entity.id);
      else if (survival.drops.has(entity.id)) tickItem(serv, entity, tick);
    }
  });
}

/** Returns the items on the ground. */
function save(serv) {
  const { survival } = serv;
  return [...survival.drops.values()].map((e) => ({
    position: e.position.toArray(),
    motion: e.motion.toArray(),
    item: survival.items.toJson(e.stack),
    age: e.age,
    shares: e.shares,
    delay: e.delay,
  }));
}

function load(serv, data) {
  const { survival } = serv;
  for (const entity of [...survival.drops.values()]) discard(serv, entity);
  for (const { position, motion, item, age, delay, shares } of data || []) {
    const entity = drop(serv, new Vec3(...position), survival.items.fromJson(item), {
      velocity: new Vec3(...motion),
      delay,
    });
    entity.age = age;
    if (shares) entity.shares = shares;
  }
}

module.exports = { name, server, save, load };

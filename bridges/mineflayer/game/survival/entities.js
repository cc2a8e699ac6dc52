'use strict';

/**
 * Entities of our own (dropped items, falling blocks): made without flying-squid's physics and with
 * random numbers from the world's context; and what any entity needs to be shown and moved. Bodies
 * of mobs fall, slide and stop here too, unless their own mechanics set `entity.ownPhysics`.
 */

const { Vec3 } = require('vec3');
const UUID = require('uuid-1345');
const { sweep } = require('./physics');

const name = 'entities';

/**
 * Returns a new object entity. `velocity` is in blocks per tick and stored as `entity.motion`; it
 * has no `entity.size`, because flying-squid moves only entities with one. `more` are other properties
 * of it, set before any client sees it.
 */
function spawnObject(serv, kind, position, velocity, metadata, data = 0, more = {}) {
  const def = serv.registry.entitiesByName[kind];
  const entity = serv.initEntity('object', def.id, serv.overworld, position.clone());
  entity.uuid = UUID.v4();
  entity.name = kind;
  entity.data = data;
  entity.yaw = 0;
  entity.pitch = 0;
  entity.motion = velocity.clone();
  entity.velocity = velocity.scaled(20);
  entity.metadata = metadata;
  Object.assign(entity, more);
  entity.updateAndSpawn();
  return entity;
}

/** Moves an entity; players who see it are updated at the end of the tick. */
function moveEntity(entity, x, y, z, onGround) {
  entity.position = new Vec3(x, y, z);
  entity.onGround = onGround;
}

/** Sends an entity's velocity, in blocks per tick, to all who see it, including itself. */
function sendVelocity(serv, entity, v) {
  const short = (value) => Math.max(-32768, Math.min(32767, Math.round(value * 8000)));
  const velocity = { x: short(v.x), y: short(v.y), z: short(v.z) };
  serv.survival.broadcast(entity, 'entity_velocity', {
    entityId: entity.id,
    velocity,
    velocityX: velocity.x,
    velocityY: velocity.y,
    velocityZ: velocity.z,
  });
}

const still = (v) => Math.abs(v) < 1e-3;
const asleep = (mob) =>
  mob.onGround && !(mob.fireTicks > 0) && mob.motion && still(mob.motion.x) && still(mob.motion.z);

/**
 * Moves a mob by its `motion` (blocks per tick) with gravity, drag and the ground's friction, and
 * applies damage of falls and of the blocks it stands in (LivingEntity's travel, 1.16).
 */
function moveBody(survival, mob) {
  const def = survival.registry.entitiesByName[mob.name];
  const { width, height } = def;
  mob.motion ??= new Vec3(0, 0, 0);
  const { motion, position } = mob;
  const to = sweep(
    survival.blocks,
    position.x,
    position.y,
    position.z,
    width,
    height,
    motion.x,
    motion.y,
    motion.z,
  );
  const dy = to.y - position.y;
  mob.fallDistance = dy < 0 ? (mob.fallDistance || 0) - dy : mob.fallDistance || 0;
  moveEntity(mob, to.x, to.y, to.z, to.onGround);
  const wet = survival.blocks.at(to.x, to.y, to.z).water;
  const drag = wet ? 0.8 : to.onGround ? 0.6 * 0.91 : 0.91;
  motion.x = to.hitX ? 0 : motion.x * drag;
  motion.z = to.hitZ ? 0 : motion.z * drag;
  motion.y = (to.hitY ? 0 : motion.y) - (wet ? 0.02 : 0.08);
  motion.y *= wet ? 0.8 : 0.98;
  if (wet) mob.fallDistance = 0;
  if (to.onGround && mob.fallDistance > 0) {
    if (mob.fallDistance > 3 && mob.name !== 'chicken') {
      survival.hurt(mob, { amount: Math.ceil(mob.fallDistance - 3 - 1e-4), cause: 'fall' });
    }
    mob.fallDistance = 0;
  }
  if (mob.health > 0) survival.surroundings(mob, width, height);
}

function server(serv) {
  serv.survival.spawnObject = (...args) => spawnObject(serv, ...args);
  serv.survival.moveEntity = moveEntity;
  serv.survival.removeEntity = (entity) => {
    if (serv.entities[entity.id]) serv.destroyEntity(entity);
  };
  serv.survival.moveBody = (mob) => moveBody(serv.survival, mob);
  serv.survival.onTick((tick) => {
    for (const id in serv.entities) {
      const mob = serv.entities[id];
      if (mob.type === 'mob' && !mob.ownPhysics && !(asleep(mob) && (tick + mob.id) % 10))
        moveBody(serv.survival, mob);
    }
  });
  serv.survival.sendVelocity = (entity, v) => sendVelocity(serv, entity, v);
}

/**
 * Shows an entity to one player. flying-squid would send its metadata to all others, with a wrong
 * key.
 */
function player(player, serv) {
  const { Item } = serv.survival.items;
  player.spawnEntity = (entity) => {
    player._client.write(entity.spawnPacketName, entity.getSpawnPacket());
    const metadata = entity.metadata;
    if (Array.isArray(metadata) && metadata.length) {
      player._client.write('entity_metadata', { entityId: entity.id, metadata });
    }
    const worn = entity.type === 'player' ? entity.wornItems() : entity.equipment || [];
    const equipments = [];
    worn.forEach((item, slot) => {
      if (item) equipments.push({ slot, item: Item.toNotch(item) });
    });
    if (equipments.length)
      player._client.write('entity_equipment', { entityId: entity.id, equipments });
  };
}

function entity(entity) {
  entity.setAndUpdateMetadata = (data) => {
    entity.metadata = data;
    entity._writeNearby('entity_metadata', { entityId: entity.id, metadata: data });
  };
  entity.sendMetadata = (data) =>
    entity._writeNearby('entity_metadata', { entityId: entity.id, metadata: data });
}

module.exports = { name, server, entity, player };

'use strict';

/**
 * Riding: getting on and off, seats, steering (Minecraft Wiki, "Riding", 1.16). What can be ridden
 * is in riding.json. `player.vehicle` is what a player rides, `entity.riders` who rides it; only
 * players ride. A rider steers by the packet steer_vehicle: what it says holds until the next one,
 * less 2 % a tick, and wherever the rider looks is ahead. Sneaking, a teleport and death get off.
 *
 * `serv.survival.mount(rider, entity)` returns whether there was a seat; `dismount(rider)`,
 * `steering(entity)` returns {forward, sideways, yaw (radians), rider} of who steers, or null.
 * Events: 'gamut:mounted' and 'gamut:dismounted' {player, entity}.
 */

const { Vec3 } = require('vec3');
const RIDES = require('./riding.json');

const name = 'riding';
const KEEPS = 0.98; // share of a steering that is left after a tick
const LEAST = 0.01;
const SITS = 0.35; // blocks that a sitting player is lower
const OFF = 2; // flag of steer_vehicle: gets off
const TEMPER = 100;
const THROWS = 50; // ticks after which an untamed animal decides, on average
/** Where riders get off, in blocks from what they rode, the nearest first. */
const BESIDE = [[0, 0, 1], [1, 0, 0], [-1, 0, 0], [0, 0, -1]].flatMap(([x, , z]) => [1, 1.5, 2].map(
  (far) => [x * far, 0, z * far]));

const rideOf = (entity) => RIDES[entity.name];

const isPlayer = ({ type }) => type === 'player';

/** Tells all who see it, and its riders, who rides an entity. */
function tell(serv, entity, also = []) {
  const to = new Set([...serv.tracker.watchers(entity), ...entity.riders, ...also].filter(
    (each) => isPlayer(each) && each.joined));
  const passengers = entity.riders.map(({ id }) => id);
  serv._writeArray('set_passengers', { entityId: entity.id, passengers }, [...to]);
}

/** Where the feet of a rider are; those of creatures are higher than those of players who sit. */
function seatOf(entity, rider) {
  const { x, y, z } = entity.position;
  return new Vec3(x, y + rideOf(entity).height + (isPlayer(rider) ? 0 : SITS), z);
}

function place(rider, position) {
  rider.fallDistance = 0;
  if (isPlayer(rider)) rider.sendPosition(position, false, true);
  else Object.assign(rider, { position, onGround: false, resting: false });
}

function mount(serv, rider, entity) {
  const ride = rideOf(entity);
  if (!ride || rider.vehicle || rider.health <= 0 || rider.sleeping) return false;
  entity.riders ??= [];
  if (entity.riders.length >= ride.seats) return false;
  entity.riders.push(rider);
  entity.resting = false;
  Object.assign(rider, { vehicle: entity, steer: { forward: 0, sideways: 0 } });
  if (entity.mind) Object.assign(entity.mind, { path: null, lure: null });
  tell(serv, entity);
  place(rider, seatOf(entity, rider));
  if (isPlayer(rider)) rider.sendSelfPosition();
  serv.emit('gamut:mounted', { player: rider, entity });
  return true;
}

/** Returns where a rider gets off: beside the entity where there is room and ground, else on it. */
function exitOf({ blocks }, entity) {
  const free = (x, y, z) => {
    const { boxes, lava } = blocks.at(x, y, z);
    return boxes.length === 0 && !lava;
  };
  const { x, y, z } = entity.position;
  for (const up of [0, 1, -1]) {
    for (const [dx, , dz] of BESIDE) {
      const [ex, ey, ez] = [x + dx, Math.floor(y + up + 0.1), z + dz];
      const ground = blocks.at(ex, ey - 1, ez).boxes.length > 0;
      if (ground && free(ex, ey, ez) && free(ex, ey + 1, ez)) return new Vec3(ex, ey, ez);
    }
  }
  return entity.position.offset(0, RIDES[entity.name].height + 1, 0);
}

/** Gets a rider off; with `stays`, who calls puts it somewhere. */
function dismount(serv, rider, stays = false) {
  const entity = rider.vehicle;
  if (!entity) return false;
  rider.vehicle = null;
  entity.riders.splice(entity.riders.indexOf(rider), 1);
  tell(serv, entity, [rider]);
  if (!stays) {
    place(rider, exitOf(serv.survival, entity));
    if (isPlayer(rider)) rider.sendSelfPosition();
  }
  serv.emit('gamut:dismounted', { player: rider, entity });
  return true;
}

/** Returns what the rider of an entity wants, or null if nobody steers it. */
function steering(entity) {
  const ride = rideOf(entity);
  const [rider] = entity.riders ?? [];
  if (!rider || !isPlayer(rider) || (ride.saddle && !entity.saddled) || (ride.tame && !entity.tame)) return null;
  if (ride.tame && !ride.saddle) return null;
  if (ride.guide && rider.heldStack()?.name !== ride.guide) return null;
  const forward = ride.guide ? 1 : rider.steer.forward;
  return { forward, sideways: rider.steer.sideways, yaw: rider.facing.yaw, rider };
}

/** Moves an animal as its rider wants; returns whether somebody does. */
function steerMob(serv, mob) {
  const ride = rideOf(mob);
  if (!mob.riders?.length) return false;
  mob.resting = false;
  if (ride.tame && !mob.tame && Math.random() * THROWS < 1) resist(serv, mob);
  const wish = steering(mob);
  if (!wish) return false;
  const { yaw } = wish;
  mob.yaw = (Math.floor((yaw * 128) / Math.PI) << 24) >> 24;
  mob.headYaw = mob.yaw;
  mob.mind.path = null;
  const ahead = ride.guide ? 1 : wish.forward > 0 ? wish.forward : wish.forward / 4;
  const aside = ride.guide ? 0 : wish.sideways / 2;
  const x = -Math.sin(yaw) * ahead + Math.cos(yaw) * aside;
  const z = Math.cos(yaw) * ahead + Math.sin(yaw) * aside;
  const length = Math.hypot(x, z);
  if (length > LEAST) {
    mob.goX = x / length;
    mob.goZ = z / length;
    // Bodies accelerate by the square of it (mobs/body.js).
    mob.goSpeed = Math.sqrt(mob.kind.speed * Math.min(1, length) * (ride.guide ? 0.225 : 1));
  }
  return true;
}

/** What an untamed animal does with its rider: it becomes tame, or throws the rider off. */
function resist(serv, mob) {
  const { survival } = serv;
  const [rider] = mob.riders;
  const won = Math.random() * TEMPER < (mob.temper ?? 0);
  survival.broadcast(mob, 'entity_status', { entityId: mob.id, entityStatus: won ? 7 : 6 });
  if (won) {
    survival.tameMob(mob, rider.username);
    serv.emit('gamut:tamed', { player: rider, entity: mob });
    return;
  }
  mob.temper = Math.min(TEMPER, (mob.temper ?? 0) + 5);
  dismount(serv, rider);
}

function use(serv, { player, entity, slot, item }) {
  const ride = rideOf(entity);
  if (!ride || (entity.type === 'mob' && !(entity.health > 0)) || entity.baby) return false;
  if (item?.name === 'saddle' && ride.saddle && !entity.saddled && (!ride.tame || entity.tame)) {
    entity.saddled = true;
    if (player.gameMode !== 1) player.useUp(slot);
    serv.survival.mobs.refresh(entity);
    return true;
  }
  if (player.crouching || (ride.saddle === 'mount' && !entity.saddled)) return false;
  return mount(serv, player, entity);
}

/** Keeps a rider in the seat; returns whether it rides on. */
function carry(serv, rider) {
  const { vehicle } = rider;
  const gone = serv.entities[vehicle.id] !== vehicle || (vehicle.type === 'mob' && !(vehicle.health > 0));
  if (gone || !(rider.health > 0)) {
    dismount(serv, rider, !(rider.health > 0));
    return false;
  }
  const seat = seatOf(vehicle, rider);
  if (!seat.equals(rider.position)) place(rider, seat);
  return true;
}

function tick(serv) {
  for (const player of serv.players) {
    if (!player.vehicle || !carry(serv, player)) continue;
    const { steer } = player;
    for (const key of ['forward', 'sideways']) {
      steer[key] *= KEEPS;
      if (Math.abs(steer[key]) < LEAST) steer[key] = 0;
    }
  }
}

function leap(player) {
  const { vehicle } = player;
  const speed = vehicle && rideOf(vehicle).jumps;
  if (!speed || !vehicle.onGround || !steering(vehicle)) return;
  vehicle.motion.y = speed;
  vehicle.onGround = false;
  vehicle.resting = false;
}

function server(serv) {
  const { survival } = serv;
  survival.mount = (player, entity) => mount(serv, player, entity);
  survival.dismount = (rider, stays) => dismount(serv, rider, stays);
  survival.carry = (rider) => carry(serv, rider);
  survival.steering = steering;
  survival.steerMob = (mob) => steerMob(serv, mob);
  survival.onUseEntity((call) => use(serv, call));
  survival.onTick(() => tick(serv));
}

function player(player, serv) {
  const client = player._client;
  player.vehicle = null;
  player.steer = { forward: 0, sideways: 0 };
  const unit = (value) => (Number.isFinite(value) ? Math.max(-1, Math.min(1, value)) : 0);
  client.on('steer_vehicle', ({ sideways, forward, jump }) => {
    if (!player.vehicle) return;
    player.steer = { forward: unit(forward), sideways: unit(sideways) };
    if (jump & OFF) dismount(serv, player);
  });
  client.on('entity_action', ({ actionId } = {}) => {
    if (actionId === 0 || actionId === 'start_sneaking') dismount(serv, player);
    if (actionId === 5 || /^start_(horse|riding)_jump$/.test(actionId)) leap(player);
  });
  client.on('end', () => dismount(serv, player, true));
  player.on('fresh', () => dismount(serv, player, true));
  const { spawnEntity } = player;
  player.spawnEntity = (entity) => {
    spawnEntity(entity);
    if (!entity.riders?.length) return;
    const passengers = entity.riders.map(({ id }) => id);
    client.write('set_passengers', { entityId: entity.id, passengers });
  };
}

module.exports = { name, server, player };

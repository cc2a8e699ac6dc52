'use strict';

/**
 * TNT (Minecraft Wiki, "TNT", Java Edition 1.16), at most four explosions a tick: lit by flint and steel, fire charges, fire,
 * redstone and explosions; it explodes after 80 ticks with power 4, and all that it breaks drops.
 *
 * `serv.survival.primeTnt(x, y, z, fuse)` lights the block there; `spawnTnt(position, fuse)` makes a
 * lit one.
 */

const { Vec3 } = require('vec3');
const { sweep } = require('./physics');
const { explode } = require('./mobs/blast');

const name = 'tnt';
const FUSE = 80;
const POWER = 4;
const MOST = 4; // explosions a tick; the others wait for the next ones
const SIZE = 0.98;
const FUSE_KEY = 7;

function spawn(serv, position, fuse = FUSE, motion) {
  const { survival } = serv;
  const angle = Math.random() * 2 * Math.PI;
  const hop = motion ?? new Vec3(-Math.sin(angle) * 0.02, 0.2, -Math.cos(angle) * 0.02);
  const metadata = [{ key: FUSE_KEY, type: 1, value: fuse }];
  const entity = survival.spawnObject('tnt', position, hop, metadata);
  entity.fuse = fuse;
  survival.tnt.set(entity.id, entity);
  return entity;
}

function prime(serv, x, y, z, fuse = FUSE) {
  const { blocks } = serv.survival;
  if (blocks.at(x, y, z).name !== 'tnt') return false;
  blocks.setNamed(x, y, z, 'air');
  spawn(serv, new Vec3(x + 0.5, y, z + 0.5), fuse);
  return true;
}

function remove(survival, entity) {
  survival.tnt.delete(entity.id);
  survival.removeEntity(entity);
}

function fall(survival, entity) {
  const { motion, position } = entity;
  motion.y -= 0.04;
  const { x, y, z } = position;
  const to = sweep(survival.blocks, x, y, z, SIZE, SIZE, motion.x, motion.y, motion.z);
  if (to.x !== x || to.y !== y || to.z !== z) survival.moveEntity(entity, to.x, to.y, to.z, to.onGround);
  const drag = to.onGround ? 0.98 * 0.7 : 0.98;
  motion.x = to.hitX ? 0 : motion.x * drag;
  motion.z = to.hitZ ? 0 : motion.z * drag;
  motion.y = to.hitY ? motion.y * -0.5 * 0.98 : motion.y * 0.98;
  if (to.onGround && Math.abs(motion.y) < 0.05) motion.y = 0;
}

function tick(serv) {
  const { survival } = serv;
  let blasts = 0;
  for (const entity of [...survival.tnt.values()]) {
    if (serv.entities[entity.id] !== entity) {
      survival.tnt.delete(entity.id);
      continue;
    }
    fall(survival, entity);
    if (--entity.fuse > 0 || blasts >= MOST) continue;
    blasts++;
    const centre = entity.position.offset(0, SIZE / 16, 0);
    remove(survival, entity);
    explode(survival, centre, POWER, null, 1);
  }
}

function light(serv, { player, slot, item, x, y, z, info }) {
  if (!item || !/^(flint_and_steel|fire_charge)$/.test(item.name)) return false;
  if (!prime(serv, x, y, z)) return false;
  serv.emit('gamut:lit', { player, item: item.name });
  if (item.name === 'flint_and_steel') player.wearSlot(slot, 1);
  else if (player.gameMode !== 1) player.useUp(slot);
  serv.emit('gamut:used', { player, block: info.name, x, y, z });
  return true;
}

function server(serv) {
  const { survival } = serv;
  survival.tnt = new Map();
  survival.primeTnt = (x, y, z, fuse) => prime(serv, x, y, z, fuse);
  survival.spawnTnt = (position, fuse) => spawn(serv, position, fuse);
  survival.onUseBlock('tnt', (call) => light(serv, call));
  survival.onTick(() => tick(serv));
}

function save({ survival }) {
  return [...survival.tnt.values()].map(({ position, motion, fuse }) => (
    { position: position.toArray(), motion: motion.toArray(), fuse }));
}

function load(serv, data) {
  const { survival } = serv;
  for (const entity of [...survival.tnt.values()]) remove(survival, entity);
  for (const { position, motion, fuse } of data ?? [])
    spawn(serv, new Vec3(...position), fuse, new Vec3(...motion));
}

module.exports = { name, server, save, load };

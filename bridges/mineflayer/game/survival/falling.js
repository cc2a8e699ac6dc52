'use strict';

/**
 * Blocks that lose their support: sand, gravel and similar blocks fall, what hung or grew on a
 * removed block drops as an item, doors and beds lose their other half (Minecraft Wiki, "Falling
 * Block"). Anvils fall without causing damage.
 */

const { Vec3 } = require('vec3');
const { FACES } = require('./blocks');
const { areOne, cellOfOther } = require('./halves');
const { supported } = require('./support');
const { lootOf } = require('./loot');
const { sweep } = require('./physics');

const name = 'falling';
const FALLS =
  /^(sand|red_sand|gravel|.*_concrete_powder|anvil|chipped_anvil|damaged_anvil|dragon_egg)$/;
const DELAY = 2;
const SIZE = 0.98;
const TOO_LONG = 600;

function free(info) {
  return info.air || info.liquid || info.name === 'fire' || info.replaceable;
}

/** Looks at a block, itself changed or beside the one at `changed`. */
function look(survival, x, y, z, changed) {
  const info = survival.blocks.at(x, y, z);
  if (info.air || survival.handled.includes(`${x},${y},${z}`)) return;
  if (FALLS.test(info.name)) {
    if (free(survival.blocks.at(x, y - 1, z))) survival.schedule(DELAY, 'fall', [x, y, z]);
  } else if (!whole(survival.blocks, x, y, z, info, changed)) {
    fallOff(survival, x, y, z, info);
  }
}

/**
 * Whether a block has its support, and its other half where that is what changed: as in the game, a
 * half that a command sets waits for the other one.
 */
function whole(blocks, x, y, z, info, changed) {
  const other = cellOfOther(info, x, y, z);
  const isChanged = other && other.every((value, i) => value === changed[i]);
  if (isChanged && !areOne(info, blocks.at(...other))) return false;
  return info.props.half === 'upper' ? true : supported(blocks, x, y, z, info);
}

function fallOff(survival, x, y, z, info) {
  const drops = survival.rules.doTileDrops
    ? lootOf(survival.items, survival.registry, info, null, true)
    : [];
  survival.blocks.setNamed(x, y, z, info.water ? 'water' : 'air');
  for (const [item, count] of drops) survival.popItem(x, y, z, survival.items.make(item, count));
}

function start(survival, [x, y, z]) {
  const info = survival.blocks.at(x, y, z);
  if (!FALLS.test(info.name) || !free(survival.blocks.at(x, y - 1, z))) return;
  survival.blocks.setNamed(x, y, z, 'air');
  spawn(survival, new Vec3(x + 0.5, y, z + 0.5), info.stateId);
}

function spawn(survival, position, stateId, motion = new Vec3(0, 0, 0), age = 0) {
  const entity = survival.spawnObject('falling_block', position, motion, [], stateId);
  entity.stateId = stateId;
  entity.age = age;
  survival.fallers.set(entity.id, entity);
}

function settle(survival, entity) {
  const { x, y, z } = entity.position;
  const [bx, by, bz] = [Math.floor(x), Math.floor(y + 0.01), Math.floor(z)];
  const { blocks } = survival;
  const there = blocks.at(bx, by, bz);
  const info = blocks.info(entity.stateId);
  survival.fallers.delete(entity.id);
  survival.removeEntity(entity);
  if (there.replaceable && !free(blocks.at(bx, by - 1, bz))) {
    const wet = there.name === 'water' && info.name.endsWith('_concrete_powder');
    if (wet) blocks.setNamed(bx, by, bz, info.name.replace('_powder', ''));
    else blocks.set(bx, by, bz, entity.stateId);
  } else if (survival.registry.itemsByName[info.name]) {
    survival.popItem(bx, by, bz, survival.items.make(info.name));
  }
}

function tickOne(survival, entity) {
  const { position, motion } = entity;
  entity.age++;
  motion.y -= 0.04;
  const to = sweep(survival.blocks, position.x, position.y, position.z, SIZE, SIZE, 0, motion.y, 0);
  motion.y *= 0.98;
  survival.moveEntity(entity, to.x, to.y, to.z, to.onGround);
  if (to.onGround) settle(survival, entity);
  else if (entity.age > TOO_LONG || to.y < -64) {
    survival.fallers.delete(entity.id);
    survival.removeEntity(entity);
  }
}

function server(serv) {
  const { survival } = serv;
  survival.fallers = new Map();
  survival.onScheduled('fall', (spot) => start(survival, spot));
  survival.blocks.onChange((x, y, z) => {
    const changed = [x, y, z];
    look(survival, x, y, z, changed);
    for (const [dx, dy, dz] of FACES) look(survival, x + dx, y + dy, z + dz, changed);
  });
  survival.onTick(() => {
    for (const entity of [...survival.fallers.values()]) {
      if (serv.entities[entity.id]) tickOne(survival, entity);
      else survival.fallers.delete(entity.id);
    }
  });
}

function save(serv) {
  return [...serv.survival.fallers.values()].map((e) => ({
    position: e.position.toArray(),
    motion: e.motion.toArray(),
    stateId: e.stateId,
    age: e.age,
  }));
}

function load(serv, data) {
  const { survival } = serv;
  for (const entity of [...survival.fallers.values()]) survival.removeEntity(entity);
  survival.fallers.clear();
  for (const { position, motion, stateId, age } of data || []) {
    spawn(survival, new Vec3(...position), stateId, new Vec3(...motion), age);
  }
}

module.exports = { name, server, save, load };

'use strict';

/**
 * Shears on sheep, mooshrooms, snow golems and pumpkins (Minecraft Wiki, "Shears", Java Edition 1.16).
 * 'gamut:sheared' {player, entity or block, count}.
 */

const { Vec3 } = require('vec3');
const { FACES, FACE_NAMES } = require('./blocks');
const { looksTo } = require('./placing');

const name = 'shearing';
const OPPOSITE = { north: 'south', south: 'north', east: 'west', west: 'east' };
const SEEDS = 4;
const MUSHROOMS = 5;

/** Lets an animal drop what is cut off it. */
function cutOff(serv, entity, item) {
  const push = () => Math.random() * 0.1 - 0.05;
  const velocity = new Vec3(push(), Math.random() * 0.05, push());
  serv.survival.drop(entity.position.offset(0, 1, 0), serv.survival.items.make(item), { velocity });
}

/** What shears do to an animal, by its kind: how many items it drops, and which; null for nothing. */
const CUTS = {
  sheep(serv, sheep) {
    if (sheep.shorn || sheep.baby) return null;
    serv.survival.setShorn(sheep, true);
    return [`${sheep.colour || 'white'}_wool`, 1 + Math.floor(Math.random() * 3)];
  },
  mooshroom(serv, { baby, position, health }) {
    if (baby) return null;
    const cow = serv.survival.spawnMob('cow', position.clone());
    cow.updateHealth(health);
    return ['red_mushroom', MUSHROOMS];
  },
  snow_golem(serv, golem) {
    if (golem.bare) return null;
    golem.bare = true;
    serv.survival.mobs.refresh(golem);
    return ['carved_pumpkin', 1];
  },
};

function shear(serv, { player, entity, slot, item }) {
  if (item?.name !== 'shears' || !(entity.health > 0)) return false;
  const cut = CUTS[entity.name]?.(serv, entity);
  if (!cut) return false;
  const [what, count] = cut;
  for (let i = 0; i < count; i++) cutOff(serv, entity, what);
  if (entity.name === 'mooshroom') serv.survival.mobs.remove(entity);
  player.wearSlot(slot, 1);
  serv.emit('gamut:sheared', { player, entity, count });
  return true;
}

/** Cuts a face into the side of a pumpkin that is clicked, above and below into that of the player. */
function carve(serv, { player, x, y, z, face, slot, item }) {
  if (item?.name !== 'shears') return false;
  const { survival } = serv;
  const facing = face > 1 ? FACE_NAMES[face] : OPPOSITE[looksTo(player)];
  const [dx, , dz] = FACES[FACE_NAMES.indexOf(facing)];
  const push = (way) => 0.05 * way + Math.random() * 0.02;
  survival.drop(
    new Vec3(x + 0.5 + dx * 0.65, y + 0.1, z + 0.5 + dz * 0.65),
    survival.items.make('pumpkin_seeds', SEEDS),
    { velocity: new Vec3(push(dx), 0.05, push(dz)) },
  );
  survival.blocks.setNamed(x, y, z, 'carved_pumpkin', { facing });
  player.wearSlot(slot, 1);
  serv.emit('gamut:sheared', { player, block: 'pumpkin', count: SEEDS });
  return true;
}

function server(serv) {
  serv.survival.onUseEntity((call) => shear(serv, call));
  serv.survival.onUseBlock('pumpkin', (call) => carve(serv, call));
}

module.exports = { name, server };

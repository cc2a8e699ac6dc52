'use strict';

/**
 * The way to the End and back (Minecraft Wiki, "End portal", "Eye of Ender", "Ender Dragon", 1.16):
 * eyes that show the way to strongholds and fill the frames of portals, the crystals on the pillars,
 * and the portal that opens when the dragon is dead.
 *
 * `serv.survival.crystalNear(position, reach)` returns whether a crystal stands there;
 * `crystalOn(from, way)` the crystal that a missile's step meets, `shatter(crystal)` ends it.
 */

const { Vec3 } = require('vec3');
const { END_Z, FRAMES, LANDING, TOP, pillars } = require('../generator/end');
const { explode } = require('./mobs/blast');
const { hitsBody } = require('./mobs/ray');

const name = 'theend';
const EYE_FLIES = 80; // ticks
const EYE_SPEED = 0.4;
const EYE_KEPT = 0.8; // share of the eyes that come down whole
const POWER = 6;
const PODIUM = TOP + 2;
const CRYSTAL = { width: 2, height: 2 };

/** Fills a frame, and opens the portal if it is the last one. */
function fill(serv, { player, slot, x, y, z, info }) {
  if (info.name !== 'end_portal_frame' || info.props.eye) return false;
  const { blocks } = serv.survival;
  blocks.set(x, y, z, blocks.changed(info, { eye: true }));
  if (player.gameMode !== 1) player.useUp(slot);
  // The portal's middle is two blocks from every frame, and up to one aside.
  for (let dx = -2; dx <= 2; dx++) {
    for (let dz = -2; dz <= 2; dz++) {
      const [mx, mz] = [x + dx, z + dz];
      const whole = FRAMES.every(({ at }) => {
        const frame = blocks.at(mx + at[0], y, mz + at[1]);
        return frame.name === 'end_portal_frame' && frame.props.eye;
      });
      if (whole) open(blocks, mx, y, mz);
    }
  }
  return true;
}

function open(blocks, x, y, z) {
  for (let dx = -1; dx <= 1; dx++)
    for (let dz = -1; dz <= 1; dz++) blocks.setNamed(x + dx, y, z + dz, 'end_portal');
}

/** Throws an eye towards the nearest stronghold. */
function cast(serv, { player, slot }) {
  const { survival } = serv;
  if (player.dimension !== 'overworld') return false;
  const { x, z } = player.position;
  const all = serv.gamut.generator.strongholds?.() ?? [];
  const [to] = all.sort((a, b) => Math.hypot(a.x - x, a.z - z) - Math.hypot(b.x - x, b.z - z));
  if (!to) return false;
  const far = Math.hypot(to.x - x, to.z - z) || 1;
  const up = far > 12 ? 0.12 : -0.05;
  const motion = new Vec3(((to.x - x) / far) * EYE_SPEED, up, ((to.z - z) / far) * EYE_SPEED);
  const eye = survival.spawnObject('eye_of_ender', player.position.offset(0, 1.5, 0), motion, []);
  eye.left = EYE_FLIES;
  survival.eyes.set(eye.id, eye);
  if (player.gameMode !== 1) player.useUp(slot);
  return true;
}

function flyEyes(serv) {
  const { survival } = serv;
  for (const eye of [...survival.eyes.values()]) {
    const { x, y, z } = eye.position.plus(eye.motion);
    survival.moveEntity(eye, x, y, z, false);
    if (--eye.left > 0) continue;
    survival.eyes.delete(eye.id);
    survival.removeEntity(eye);
    if (Math.random() < EYE_KEPT) survival.drop(eye.position, survival.items.make('ender_eye'));
  }
}

function addCrystal(survival, x, y, z) {
  const crystal = survival.spawnObject('end_crystal', new Vec3(x, y, z), new Vec3(0, 0, 0), []);
  survival.crystals.set(crystal.id, crystal);
}

/** Puts the dragon and the crystals into the End when somebody comes there first. */
function awake(serv) {
  const { survival } = serv;
  if (survival.end.begun) return;
  survival.end.begun = true;
  for (const { x, z, top } of pillars) addCrystal(survival, x + 0.5, top + 2, z + 0.5);
  const dragon = survival.spawnMob('ender_dragon', new Vec3(0.5, 90, END_Z + 0.5));
  dragon.mind.phaseAt = survival.tick + 200;
  // Tasks count its death.
  dragon.gamutTarget = true;
}

function shatter(serv, crystal) {
  const { survival } = serv;
  if (!survival.crystals.delete(crystal.id)) return;
  survival.removeEntity(crystal);
  explode(survival, crystal.position.offset(0, 1, 0), POWER, null);
}

/** The way home opens, with the dragon's egg on it. */
function won(serv) {
  const { survival } = serv;
  if (survival.end.slain) return;
  survival.end.slain = true;
  const { blocks } = survival;
  for (let dx = -2; dx <= 2; dx++) {
    for (let dz = -2; dz <= 2; dz++) {
      if ((dx !== 0 || dz !== 0) && Math.hypot(dx, dz) <= 2.5)
        blocks.setNamed(dx, PODIUM + 1, END_Z + dz, 'end_portal');
    }
  }
  blocks.setNamed(0, PODIUM + 5, END_Z, 'dragon_egg');
}

function travel(serv, player) {
  const { survival } = serv;
  const home = player.dimension === 'the_end';
  survival.dismount(player, true);
  if (!home) awake(serv);
  const { x, y, z } = LANDING;
  if (!home) serv.columnAt(serv.overworld, x >> 4, z >> 4);
  const to = home ? survival.respawnPlace(player) : new Vec3(x + 0.5, y, z + 0.5);
  player.sendPosition(to, false, true);
  player.sendSelfPosition();
}

function tick(serv) {
  const { survival } = serv;
  if (survival.eyes.size > 0) flyEyes(serv);
  for (const player of serv.players) {
    const { x, y, z } = player.position;
    if (player.health > 0 && survival.blocks.at(x, y + 0.1, z).name === 'end_portal') travel(serv, player);
  }
}

function crystalOn(survival, from, way) {
  if (survival.crystals.size === 0) return null;
  const [a, b] = [from.toArray(), from.plus(way).toArray()];
  return [...survival.crystals.values()].find(({ position }) =>
    hitsBody(a, b, position, CRYSTAL.width, CRYSTAL.height, 0.2) <= 1) ?? null;
}

/** A crystal is put onto obsidian or bedrock by a player. */
function putCrystal(serv, { player, slot, x, y, z, info }) {
  if (info.name !== 'obsidian' && info.name !== 'bedrock') return false;
  if (!serv.survival.blocks.at(x, y + 1, z).air) return false;
  addCrystal(serv.survival, x + 0.5, y + 1, z + 0.5);
  if (player.gameMode !== 1) player.useUp(slot);
  return true;
}

function server(serv) {
  const { survival } = serv;
  Object.assign(survival, {
    crystals: new Map(), eyes: new Map(), end: { begun: false, slain: false },
    crystalNear: (position, reach) =>
      [...survival.crystals.values()].some((crystal) => crystal.position.distanceTo(position) <= reach),
    crystalOn: (from, way) => crystalOn(survival, from, way),
    shatter: (crystal) => shatter(serv, crystal),
  });
  survival.onUseItemOn('ender_eye', (call) => fill(serv, call));
  survival.onUseItem('ender_eye', (call) => cast(serv, call));
  survival.onUseItemOn('end_crystal', (call) => putCrystal(serv, call));
  survival.onTick(() => tick(serv));
  serv.on('gamut:death', ({ victim }) => {
    if (victim.name === 'ender_dragon' && survival.dimensionOf(victim.position) === 'the_end') won(serv);
  });
}

function player(player, serv) {
  player.on('attacks', (entity) => {
    if (serv.survival.crystals.has(entity.id)) shatter(serv, entity);
  });
}

const save = ({ survival }) => ({
  ...survival.end, crystals: [...survival.crystals.values()].map(({ position }) => position.toArray()),
});

function load({ survival }, data) {
  for (const each of [...survival.crystals.values(), ...survival.eyes.values()]) survival.removeEntity(each);
  survival.crystals.clear();
  survival.eyes.clear();
  survival.end = { begun: Boolean(data?.begun), slain: Boolean(data?.slain) };
  for (const position of data?.crystals ?? []) addCrystal(survival, ...position);
}

module.exports = { name, server, player, save, load };

'use strict';

/**
 * Fishing: casting a rod, the bite, and what is caught (Minecraft Wiki, "Fishing", 1.16). What is
 * caught is a table, fishing.json. A bite is shown to clients as in the game, by 6 particles at the
 * bobber, for which mineflayer's `bot.fish()` waits. A line also hooks creatures and pulls them.
 *
 * `player.bobber` is what a player has cast, or null. Event: 'gamut:fished' {player, item, count}.
 */

const { Vec3 } = require('vec3');
const { sweep } = require('./physics');
const { gaussian } = require('./mobs/missiles');
const { seesSky } = require('./mobs/light');
const TABLE = require('./fishing.json');

const name = 'fishing';
const SIZE = 0.25;
const LINE = 32; // blocks at which it tears
const LURED = [100, 600]; // ticks until a fish comes
const COMES = [20, 80]; // ticks until it bites
const BITES = [20, 40]; // ticks for which it holds on
const LURE = 100; // ticks fewer by each level of Lure
const LEVEL = 30; // of enchanted treasure
const SHOWN = 6; // particles of a bite

const between = ([low, high]) => low + Math.floor(Math.random() * (high - low + 1));

function weighted(rows, weightOf) {
  let left = Math.random() * rows.reduce((sum, row) => sum + weightOf(row), 0);
  return rows.find((row) => (left -= weightOf(row)) < 0) ?? rows[rows.length - 1];
}

function cast(serv, player, item) {
  const { survival } = serv;
  const { yaw, pitch } = player.facing;
  const [flat, up] = [Math.cos(pitch), -Math.sin(pitch)];
  const way = new Vec3(-Math.sin(yaw), Math.max(-5, Math.min(5, up / (flat || 1e-6))), Math.cos(yaw));
  const length = way.norm();
  const speed = () => 0.6 / length + 0.5 + gaussian() * 0.0045;
  const motion = new Vec3(way.x * speed(), way.y * speed(), way.z * speed());
  const from = player.position.offset(-Math.sin(yaw) * 0.3, 1.62, Math.cos(yaw) * 0.3);
  const bobber = survival.spawnObject('fishing_bobber', from, motion, [], player.id);
  Object.assign(bobber, {
    owner: player, lure: survival.items.level(item, 'lure'), luck: survival.items.level(item, 'luck_of_the_sea'),
    wait: 0, comes: 0, bites: 0, hooked: null,
  });
  player.bobber = bobber;
  survival.bobbers.set(bobber.id, bobber);
}

function cut(survival, bobber) {
  survival.bobbers.delete(bobber.id);
  bobber.owner.bobber = null;
  survival.removeEntity(bobber);
}

/** Whether the water around a bobber is open: 5 x 4 x 5 blocks, each layer all water or all air. */
function isOpen({ blocks }, { position }) {
  const [x, y, z] = position.floored().toArray();
  for (let up = -1; up <= 2; up++) {
    const kinds = new Set();
    for (let dx = -2; dx <= 2; dx++) {
      for (let dz = -2; dz <= 2; dz++) {
        const info = blocks.at(x + dx, y + up, z + dz);
        const source = info.water && info.level === 0 && info.boxes.length === 0;
        kinds.add(info.air || info.name === 'lily_pad' ? 'air' : source ? 'water' : 'other');
      }
    }
    if (kinds.size > 1 || kinds.has('other')) return false;
  }
  return true;
}

function biomeAt(serv, { x, y, z }) {
  const column = serv.overworld.getLoadedColumn(Math.floor(x) >> 4, Math.floor(z) >> 4);
  const id = column ? column.getBiome({ x: Math.floor(x) & 15, y: Math.floor(y), z: Math.floor(z) & 15 }) : 0;
  return serv.registry.biomes[id]?.name;
}

/** Draws what is on the hook, as a stack. */
function draw(serv, bobber) {
  const { survival } = serv;
  const open = isOpen(survival, bobber);
  const kinds = [TABLE.fish, TABLE.junk, TABLE.treasure].filter((kind) => !kind.open || open);
  const kind = weighted(kinds, ({ weight, luck }) => Math.max(0, weight + luck * bobber.luck));
  const biome = biomeAt(serv, bobber.position);
  const rows = kind.rows.filter(([, , more]) => !more?.biomes || more.biomes.includes(biome));
  const [item, , more = {}] = weighted(rows, ([, weight]) => weight);
  const nbt = more.potion
    && { type: 'compound', name: '', value: { Potion: { type: 'string', value: more.potion } } };
  const stack = survival.items.make(item, more.count ?? 1, nbt ?? null);
  if (more.worn) stack.durabilityUsed = Math.floor(Math.random() * more.worn * stack.maxDurability);
  return more.enchanted ? survival.enchanted(stack, LEVEL, { treasure: true }) : stack;
}

/** Sends a creature or a thing towards whom the line belongs to. */
function towards(bobber) {
  const way = bobber.owner.position.minus(bobber.position);
  return new Vec3(way.x * 0.1, way.y * 0.1 + Math.sqrt(way.norm()) * 0.08, way.z * 0.1);
}

/** Reels the line in: what is on the hook comes along. */
function reel(serv, player, slot) {
  const { survival } = serv;
  const { bobber } = player;
  const { hooked } = bobber;
  if (hooked && hooked.motion) {
    hooked.motion = hooked.motion.plus(towards(bobber));
    hooked.resting = false;
    player.wearSlot(slot, 5);
  } else if (bobber.bites > 0) {
    const stack = draw(serv, bobber);
    survival.drop(bobber.position, stack, { velocity: towards(bobber), delay: 0 });
    player.addXp(between([1, 6]));
    player.wearSlot(slot, 1);
    serv.emit('gamut:fished', { player, item: stack.name, count: stack.count });
  } else if (bobber.onGround) player.wearSlot(slot, 2);
  cut(survival, bobber);
}

function use(serv, { player, slot, item }) {
  if (player.bobber) reel(serv, player, slot);
  else cast(serv, player, item);
  serv.survival.broadcast(player, 'animation', { entityId: player.id, animation: 0 }, false);
  return true;
}

/** A creature in the way of a bobber, or null. */
function caught(serv, bobber) {
  const { x, y, z } = bobber.position;
  for (const mob of serv.survival.mobs.list.values()) {
    if (!(mob.health > 0)) continue;
    const half = mob.width / 2 + 0.3;
    const at = mob.position;
    if (Math.abs(at.x - x) < half && Math.abs(at.z - z) < half && y > at.y - 0.3 && y < at.y + mob.height + 0.3)
      return mob;
  }
  return null;
}

function fly(serv, bobber) {
  const { survival } = serv;
  const { blocks } = survival;
  const { position, motion } = bobber;
  const [x, y, z] = position.floored().toArray();
  const surface = blocks.surface(x, y, z, 'water');
  if (surface > 0) {
    // It comes to rest at the surface.
    motion.x *= 0.3;
    motion.z *= 0.3;
    motion.y = (y + surface - position.y) * 0.2 - (bobber.bites > 0 ? 0.05 : 0);
  } else motion.y -= 0.03;
  const to = sweep(blocks, position.x, position.y, position.z, SIZE, SIZE, motion.x, motion.y, motion.z);
  survival.moveEntity(bobber, to.x, to.y, to.z, to.onGround);
  const keeps = to.onGround || to.hitX || to.hitZ ? 0 : 0.92;
  bobber.motion = new Vec3(motion.x * keeps, to.hitY ? 0 : motion.y * 0.92, motion.z * keeps);
  if (surface === 0) bobber.hooked = caught(serv, bobber);
  return surface > 0;
}

/** Shows 6 particles of a kind at a bobber. */
function show(serv, bobber, particle) {
  const { x, y, z } = bobber.position;
  serv.survival.broadcast(bobber, 'world_particles', {
    particleId: serv.registry.particlesByName[particle].id, longDistance: false, x, y: Math.floor(y) + 1, z,
    offsetX: SIZE, offsetY: 0, offsetZ: SIZE, particleData: 0.2, particles: SHOWN, data: {},
  });
}

/** Lets fish come, bite and let go. */
function nibble(serv, bobber) {
  const { survival } = serv;
  const above = bobber.position.offset(0, 1, 0);
  let pace = 1;
  if (survival.rainsOn(above) && Math.random() < 0.25) pace++;
  if (!seesSky(survival, above.x, above.y, above.z) && Math.random() < 0.5) pace--;
  if (bobber.bites > 0) {
    bobber.bites--;
  } else if (bobber.comes > 0) {
    bobber.comes -= pace;
    if (bobber.comes > 0) return;
    bobber.bites = between(BITES);
    bobber.motion.y -= 0.2;
    show(serv, bobber, 'bubble');
    show(serv, bobber, 'fishing');
  } else if (bobber.wait > 0) {
    bobber.wait -= pace;
    if (bobber.wait <= 0) bobber.comes = between(COMES);
  } else bobber.wait = Math.max(1, between(LURED) - LURE * bobber.lure);
}

function tick(serv) {
  const { survival } = serv;
  for (const bobber of [...survival.bobbers.values()]) {
    const { owner } = bobber;
    const holds = [owner.heldStack(), owner.inventory.slots[45]].some((item) => item?.name === 'fishing_rod');
    const torn = owner.position.distanceTo(bobber.position) > LINE;
    if (!holds || torn || owner.health <= 0 || serv.entities[owner.id] !== owner) {
      cut(survival, bobber);
      continue;
    }
    const { hooked } = bobber;
    if (hooked && hooked.health > 0 && serv.entities[hooked.id] === hooked) {
      const { x, y, z } = hooked.position;
      survival.moveEntity(bobber, x, y + hooked.height * 0.8, z, false);
      continue;
    }
    bobber.hooked = null;
    if (fly(serv, bobber)) nibble(serv, bobber);
  }
}

function server(serv) {
  const { survival } = serv;
  survival.bobbers = new Map();
  survival.onUseItem('fishing_rod', (call) => use(serv, call));
  survival.onTick(() => tick(serv));
}

function player(player) {
  player.bobber = null;
}

/** Lines are not kept: a world that is loaded has none. */
function load(serv) {
  for (const bobber of [...serv.survival.bobbers.values()]) cut(serv.survival, bobber);
}

module.exports = { name, server, player, load, biomeAt };

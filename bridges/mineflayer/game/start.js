'use strict';
/**
 * Sets a new world to the state of a start, before its first tick.
 */
const { Vec3 } = require('vec3');
const { UserError } = require('flying-squid');
const { sourceOf } = require('./survival/commands');
const { put } = require('./survival/commands/blocks');
const { effectsOf } = require('./survival/effects');

/** Ticks of the day for each value of the factor `time`. */
const TIMES = { day: 1000, noon: 6000, dusk: 12000, night: 14000, midnight: 18000 };
const WEATHERS = { clear: 0, rain: 1, thunder: 2 };
/** Window slots that an item of a start can be put into. */
const SLOTS = { head: 5, torso: 6, legs: 7, feet: 8, 'off-hand': 45 };
const FIRST_FREE = [36, 37, 38, 39, 40, 41, 42, 43, 44,
  ...Array.from({ length: 27 }, (_, i) => 9 + i)];
const ALWAYS = 0x7fffffff; // ticks of an effect that stays
const SEARCH = 6; // blocks up and down in which the ground for a target is searched

/** An invalid start: the caller's mistake, not the game's. */
class StateError extends Error {}

/** Returns the value of a table, or throws a StateError that lists the valid names. */
function pick(table, key, what) {
  if (!(key in table)) {
    throw new StateError(`${what}: expected one of ${Object.keys(table).join(', ')}, got ${key}`);
  }
  return table[key];
}

function prepareWorld(world, start) {
  const { serv } = world;
  const { time, weather } = start.state;
  if (time !== undefined) setTime(serv, pick(TIMES, time, 'time'));
  if (weather !== undefined) {
    pick(WEATHERS, weather, 'weather');
    serv.survival?.setWeather(weather);
  }
  const spawn = serv.spawnOf(0).floored();
  for (const { x, y, z, ...block } of start.blocks ?? []) put(serv, spawn.offset(x, y, z), block);
  inhabit(world);
}

function setTime(serv, time) {
  if (serv.setTime) serv.setTime(time);
  else serv.time = time;
}

/**
 * Runs the commands of a start, as its first agent; what the game refuses is an error of the start.
 */
function runCommands(world, start) {
  const agent = world.agents.find((each) => each !== null);
  for (const { text, ...command } of start.commands ?? []) {
    try {
      world.serv.survival.command(command, sourceOf(agent.player));
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      throw new StateError(`the command /${text} failed: ${error.message}`);
    }
  }
}

/**
 * Adds the generator's animals to each column when it is loaded, and the contents of its chests when
 * that is for the first time.
 */
function inhabit(world) {
  const { serv } = world;
  const { generator } = serv.gamut;
  const fill = serv.survival?.fillContainer;
  const lively = world.config.server?.doMobSpawning !== false;
  const filled = new Set();
  const place = (chunkX, chunkZ) => {
    const key = `${chunkX},${chunkZ}`;
    for (const { kind, x, y, z, merchant } of (lively && generator.animals?.(chunkX, chunkZ)) || []) {
      spawn(serv, kind, new Vec3(x, y, z), { merchant });
    }
    if (filled.has(key)) return;
    filled.add(key);
    for (const { x, y, z, items, loot, seed } of (fill && generator.chests?.(chunkX, chunkZ)) || []) {
      // Another structure, or a block of the start, may have taken its place.
      if (!serv.survival.container(x, y, z)) continue;
      if (loot) serv.survival.fillWithLoot(x, y, z, loot, seed);
      else fill(x, y, z, items);
    }
  };
  for (const key of Object.keys(serv.overworld.columns)) place(...key.split(',').map(Number));
  serv.overworld.on('chunkColumnLoad', (corner) => place(corner.x >> 4, corner.z >> 4));
}

/** Returns a new mob of a kind at a place. */
function spawn(serv, kind, position, options) {
  const entity = serv.registry.entitiesByName[kind];
  if (entity === undefined) throw new StateError(`no entity of this version is called ${kind}`);
  if (serv.survival?.spawnMob) return serv.survival.spawnMob(kind, position, options);
  return serv.spawnMob(entity.id, serv.overworld, position);
}

/**
 * Returns the place of each creature of a herd, as an angle and a distance: in a ring, or within a
 * sector of bearings, clockwise from a look, and a band of distances.
 */
function placesOf({ count, distance, bearing, sector, band }, yaw) {
  const first = Math.random() * 2 * Math.PI;
  return Array.from({ length: count }, (_, i) => {
    if (band === undefined) return [first + (i * 2 * Math.PI) / count, distance];
    const turn = ((bearing + (Math.random() - 0.5) * sector) * Math.PI) / 180;
    return [yaw + Math.PI - turn, band[0] + Math.random() * (band[1] - band[0])];
  });
}

/** Spawns the targets of a start, and other creatures, around the first agent. */
function spawnTargets(world, start) {
  const { serv } = world;
  const agent = world.agents.find((each) => each !== null);
  const centre = agent.player.position;
  for (const herd of start.targets ?? []) {
    const { kind, name } = herd;
    for (const [angle, distance] of placesOf(herd, agent.bot.entity.yaw)) {
      const x = centre.x + Math.sin(angle) * distance;
      const z = centre.z + Math.cos(angle) * distance;
      const at = new Vec3(x, ground(serv, x, centre.y, z), z);
      if (herd.wild) {
        spawn(serv, kind, at);
        continue;
      }
      const target = spawn(serv, kind, at, { name: name ?? kind, target: true });
      target.gamutTarget = true;
      target.gamutName = name ?? kind;
      world.targets.push(target);
    }
  }
}

/** Returns the y of the ground at x and z nearest to a height; the height if none is near. */
function ground(serv, x, y, z) {
  const [bx, by, bz] = [x, y, z].map(Math.floor);
  const column = serv.columnAt(serv.overworld, bx >> 4, bz >> 4);
  const solid = (at) => serv.registry.blocksByStateId[
    column.getBlockStateId({ x: bx & 15, y: at, z: bz & 15 })].boundingBox === 'block';
  for (let step = 0; step <= SEARCH; step++) {
    for (const at of [by + step, by - step]) {
      if (at > 0 && solid(at - 1) && !solid(at) && !solid(at + 1)) return at;
    }
  }
  return y;
}

/** Gives an agent the items and the condition of its start. */
function equip(agent, start) {
  give(agent.player, agent.bot.registry, start.items ?? []);
  condition(agent.player, agent.world.serv, start.state);
}

/** Gives a player items; what cannot be worn goes into the inventory. */
function give(player, registry, items) {
  const Item = require('prismarine-item')(registry);
  const free = [...FIRST_FREE];
  for (const { name, count, slot } of items) {
    const item = registry.itemsByName[name];
    if (item === undefined) throw new StateError(`no item of this version is called ${name}`);
    let left = count;
    const worn = slot === null || slot === undefined ? -1 : pick(SLOTS, slot, 'slot');
    if (worn >= 0 && !player.inventory.slots[worn]) {
      const fits = Math.min(left, item.stackSize);
      player.inventory.updateSlot(worn, new Item(item.id, fits));
      left -= fits;
    }
    for (; left > 0; left -= item.stackSize) {
      const at = free.shift();
      if (at === undefined) throw new StateError(`the items of the start do not fit: ${name}`);
      player.inventory.updateSlot(at, new Item(item.id, Math.min(left, item.stackSize)));
    }
  }
}

/** Brings a player into the condition of a start. */
function condition(player, serv, { health = 20, food = 20, experience = 0, effect = 'none' }) {
  player.food = food;
  player.foodSaturation = Math.min(player.foodSaturation, food);
  if (experience > 0) player.setXpLevel(experience);
  if (effect !== 'none') {
    const found = effectsOf(serv.registry)[effect];
    if (found === undefined) throw new StateError(`no effect of this version is called ${effect}`);
    player.addEffect(found.id, { duration: ALWAYS });
  }
  player.updateHealth(health);
}

module.exports = { prepareWorld, runCommands, spawnTargets, equip, give, StateError, TIMES };

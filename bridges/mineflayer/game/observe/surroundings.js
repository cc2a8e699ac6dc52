'use strict';
/**
 * The surroundings of an agent: the 27 blocks at its feet, light, sky and biome, the entities it
 * senses.
 */

const { spoken } = require('./events');

const SEA_LEVEL = 63; // of the overworld, all versions up to 1.21
const DAY = 24000;
/** First versions, the newest first, with the metadata index of a living entity's health. */
const HEALTH = [['1.17', 9], ['1.14', 8], ['1.10', 7], ['1.8', 6]];

/**
 * Returns the brightness of the sun, 15 at noon to 4 at midnight: sky light less the reduction by
 * time and weather (Minecraft Wiki, Light, "Internal sky light").
 */
function sunBrightness(time, rain, thunder) {
  const angle = ((time / DAY) - 0.25 + 1) % 1;
  const curve = (angle + (1 - (Math.cos(angle * Math.PI) + 1) / 2 - angle) / 3) * 2 * Math.PI;
  const clear = Math.min(1, Math.max(0, Math.cos(curve) * 2 + 0.5));
  const day = clear * (1 - (rain * 5) / 16) * (1 - (thunder * 5) / 16);
  return 15 - Math.trunc((1 - day) * 11);
}

/** Returns the column that contains a position, from the bot's own world; undefined if not loaded. */
const columnAt = (bot, x, z) =>
  bot.world.async.columns[`${Math.floor(x) >> 4},${Math.floor(z) >> 4}`];

/** What is reported of a block that is out of sight. */
const HIDDEN = { id: -1, name: 'hidden', flags: { collidable: false, toolNotRequired: false, liquid: false,
  solid: false, blocksLight: false, burns: false } };

/** Returns the 27 blocks around the feet: `ids`, `flags` (6 each) and `entries` of the tables. */
function voxels({ bot, senses }, tables) {
  const feet = bot.entity.position.floored();
  const { x, y, z } = feet;
  const entries = [];
  const ids = [];
  const flags = [];
  const air = tables.states[0];
  for (let dx = -1; dx <= 1; dx++) {
    for (let dy = -1; dy <= 1; dy++) {
      for (let dz = -1; dz <= 1; dz++) {
        const column = columnAt(bot, x + dx, z + dz);
        const within = { x: (x + dx) & 15, y: y + dy, z: (z + dz) & 15 };
        const isSeen = senses.canSeeBlock(feet.offset(dx, dy, dz));
        const entry = isSeen ? (column && tables.states[column.getBlockStateId(within)]) || air : HIDDEN;
        const f = entry.flags;
        entries.push(entry);
        ids.push(entry.id);
        flags.push(f.collidable, f.toolNotRequired, f.liquid, f.solid, f.blocksLight, f.burns);
      }
    }
  }
  return { ids, flags, entries };
}

/** Returns the lowest height of a column, and the end of its range. */
function heights(column) {
  const low = column.minY ?? 0;
  return [low, low + (column.worldHeight ?? 256)];
}

/** Returns whether no block that stops light is above the head. */
function seesSky(column, within, tables) {
  if (column === undefined) return true;
  const place = { ...within };
  const [low, top] = heights(column);
  for (place.y = within.y + 1; place.y < top; place.y++) {
    if (place.y >= low && !column.sections[(place.y - low) >> 4]) place.y |= 15; // an empty section
    else if (tables.states[column.getBlockStateId(place)]?.flags.blocksLight) return false;
  }
  return true;
}

/** Returns light, sky, biome, weather and time at an agent's position. */
function climate(agent, tables) {
  const { bot } = agent;
  const { x, y, z } = bot.entity.position.floored();
  const column = columnAt(bot, x, z);
  const [low, top] = column === undefined ? [0, 256] : heights(column);
  const head = { x: x & 15, y: Math.min(top - 1, Math.max(low, y + 1)), z: z & 15 };
  const biome = column?.getBiome(head) ?? 0;
  const rain = bot.rainState || Number(bot.isRaining);
  const thunder = bot.thunderState;
  const time = agent.timeOfDay();
  const light = [column?.getBlockLight(head) ?? 0, column?.getSkyLight(head) ?? 15,
    sunBrightness(time, rain, thunder)];
  return { biome, temperature: bot.registry.biomes[biome]?.temperature ?? 0.8, rain, thunder, time,
    light, sky: seesSky(column, head, tables), sea: SEA_LEVEL };
}

/** Returns the health of an entity as far as known: from our server, or as sent by it; or 0. */
function healthOf(entity, world, index) {
  const own = world.serv?.entities[entity.id]?.health;
  const told = entity.metadata?.[index];
  return own ?? (typeof told === 'number' ? told : 0);
}

/** Returns the metadata index of a living entity's health in a version; it increased with versions. */
function healthIndex(registry) {
  return HEALTH.find(([version]) => registry.isNewerOrEqualTo(version))?.[1] ?? HEALTH.at(-1)[1];
}

/** Returns the custom name of an entity, or null; data from a server is not trusted. */
function customName(entity) {
  return spoken(entity.metadata?.[2]) || null;
}

/** Stores earlier positions of entities to compute speeds: clients do not receive most speeds. */
class Neighbours {
  constructor(agent) {
    this.agent = agent;
    this.healthIndex = healthIndex(agent.bot.registry);
    this.before = new Map();
    this.beforeTick = -1;
  }

  /** Returns the entities that the agent senses, the nearest first. */
  look() {
    const { agent, before } = this;
    const { bot, world } = agent;
    const ticks = Math.max(1, agent.tick() - this.beforeTick);
    const here = bot.entity.position;
    const now = new Map();
    const found = [];
    for (const entity of Object.values(bot.entities)) {
      if (entity === bot.entity || !entity.name || !entity.isValid) continue;
      const at = entity.position.clone();
      now.set(entity.id, at);
      if (!agent.senses.canSeeEntity(entity)) continue;
      const was = before.get(entity.id) ?? at;
      found.push({
        entity,
        distance: here.distanceTo(at),
        offset: at.minus(here),
        speed: at.minus(was).scaled(1 / ticks),
        health: healthOf(entity, world, this.healthIndex),
        target: agent.isTarget(entity)
      });
    }
    this.before = now;
    this.beforeTick = agent.tick();
    return found.sort((a, b) => a.distance - b.distance || a.entity.id - b.entity.id);
  }
}

module.exports = { voxels, climate, Neighbours, sunBrightness, customName, healthIndex };

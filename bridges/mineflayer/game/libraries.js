'use strict';
/**
 * One registry, and one set of classes made from it, for all servers and bots of a version.
 *
 * mineflayer and flying-squid make their own tables of blocks, items and chunks for each bot and
 * each server, about 30 ms and several megabytes each. Here they share the same ones, so a bot
 * costs little. That is safe because nothing changes them: dimensions and biomes are those of
 * minecraft-data, whatever one of our servers says. Versions that were not shared are not affected
 * (remote mode: a real server says what its dimensions are).
 *
 * Must be required before any library that requires one of these.
 */
const { outside } = require('./context');

const MADE_FROM_REGISTRY = ['prismarine-block', 'prismarine-chunk', 'prismarine-world',
  'prismarine-item', 'prismarine-entity', 'prismarine-windows', 'prismarine-recipe',
  'prismarine-chat', 'prismarine-biome'];

const shared = new Map();

// Physics needs the tables of its version every tick; finding them took a quarter of a tick.
const found = new Map();
replaceExports('minecraft-data', (plain) => (version, preNetty) => {
  if (preNetty || typeof version !== 'string') return plain(version, preNetty);
  if (!found.has(version)) found.set(version, plain(version));
  return found.get(version);
});
const registryOf = require('prismarine-registry');

/** Returns the shared registry of an argument: itself, its version, or none. */
function sharedRegistry(given) {
  if (typeof given === 'string') return shared.get(given);
  for (const registry of shared.values()) {
    if (given === registry || given === registry.version) return registry;
  }
  return undefined;
}

function replaceExports(name, make) {
  const path = require.resolve(name);
  const plain = require(path);
  require.cache[path].exports = Object.assign(make(plain), plain);
}

replaceExports('prismarine-registry', (plain) => (version) =>
  shared.get(version) ?? plain(version));
for (const name of MADE_FROM_REGISTRY) {
  const made = new Map();
  replaceExports(name, (plain) => (given) => {
    const registry = sharedRegistry(given);
    if (registry === undefined) return plain(given);
    if (!made.has(registry)) made.set(registry, outside(() => plain(registry)));
    return made.get(registry);
  });
}

/** Mobs of 1.16 without a category in minecraft-data 3.117 (Minecraft Wiki, Mob). */
const MOBS_OF_1_16 = {
  fox: 'Passive mobs', bee: 'Passive mobs', strider: 'Passive mobs',
  hoglin: 'Hostile mobs', zoglin: 'Hostile mobs',
  piglin: 'Hostile mobs', piglin_brute: 'Hostile mobs', zombified_piglin: 'Hostile mobs'
};

function completeMobs(registry) {
  for (const [name, category] of Object.entries(MOBS_OF_1_16)) {
    const entity = registry.entitiesByName[name];
    if (entity?.category !== 'UNKNOWN') continue;
    Object.assign(entity, { type: 'mob', category });
    registry.mobs[entity.id] = entity;
  }
}

/** Shares the tables of a version from now on, and returns its registry. */
function shareVersion(version) {
  if (!shared.has(version)) {
    const registry = outside(() => registryOf(version));
    registry.loadDimensionCodec = () => {};
    completeMobs(registry);
    shared.set(version, registry);
  }
  return shared.get(version);
}

module.exports = { shareVersion };

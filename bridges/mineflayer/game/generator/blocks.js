'use strict';

/**
 * Block states by name and properties, and their effect on light, from minecraft-data's tables.
 *
 * minecraft-data's own light numbers are not used: for 1.16.5 it has furnaces and redstone ore
 * transparent and always glowing, lanterns dark, snow cover opaque. Light follows the rules of
 * https://minecraft.wiki/w/Light (1.16) by shape and name instead.
 */

const CLEAR_CUBES = /glass$|leaves$|^ice$|^frosted_ice$|slime|honey_block|barrier|spawner|beacon|^water$|^lava$/;
const DIM = /leaves$|^ice$|^frosted_ice$|^water$|^lava$|kelp|seagrass|bubble_column|cobweb|slime|honey/;
const LIGHTS = {
  lava: 15, fire: 15, glowstone: 15, lantern: 15, sea_lantern: 15, jack_o_lantern: 15, shroomlight: 15,
  beacon: 15, conduit: 15, campfire: 15, redstone_lamp: 15, torch: 14, wall_torch: 14, end_rod: 14, furnace: 13,
  blast_furnace: 13, smoker: 13, nether_portal: 11, soul_fire: 10, soul_torch: 10, soul_wall_torch: 10,
  soul_lantern: 10, soul_campfire: 10, crying_obsidian: 10, redstone_ore: 9, redstone_torch: 7,
  redstone_wall_torch: 7, ender_chest: 7, magma_block: 3, brewing_stand: 1, brown_mushroom: 1,
};

/** Returns [first, last] number of a block's states; before 1.13 there are sixteen of each block. */
function rangeOf(block) {
  return block.minStateId === undefined ? [block.id << 4, (block.id << 4) + 15] : [block.minStateId, block.maxStateId];
}

/** Returns how many block states a version has. */
function countStates(registry) {
  return Math.max(...registry.blocksArray.map((block) => rangeOf(block)[1])) + 1;
}

/** Returns the index of a property's value among its values; booleans are stored true first. */
function placeOf(block, state, value) {
  if (state.type === 'bool') return value ? 0 : 1;
  const place = state.values ? state.values.indexOf(String(value)) : Number(value);
  if (!(place >= 0 && place < state.num_values)) {
    throw new RangeError(`${block.name}: ${state.name} cannot be ${value}`);
  }
  return place;
}

/**
 * Returns a function (name, properties) -> number of the block state.
 *
 * Properties that are not given keep the value of the block's default state. Throws RangeError for
 * a block, property or value that does not exist in this version of the game.
 */
function makeStates(registry) {
  const plain = new Map();
  return (name, properties) => {
    if (properties !== undefined) return resolve(registry, name, properties);
    if (!plain.has(name)) plain.set(name, resolve(registry, name, {}));
    return plain.get(name);
  };
}

function resolve(registry, name, properties) {
  const block = registry.blocksByName[name];
  if (!block) throw new RangeError(`no block is called ${name} in ${registry.version.minecraftVersion}`);
  const unknown = Object.keys(properties).find((key) => !block.states.some((s) => s.name === key));
  if (unknown) throw new RangeError(`${name} has no property ${unknown}`);
  let rest = block.defaultState - block.minStateId;
  let number = 0;
  let weight = 1;
  for (let n = block.states.length - 1; n >= 0; n--) {
    const state = block.states[n];
    const given = properties[state.name];
    const place = given === undefined ? rest % state.num_values : placeOf(block, state, given);
    number += place * weight;
    weight *= state.num_values;
    rest = Math.floor(rest / state.num_values);
  }
  return block.minStateId + number;
}

/** Returns {property: value} of a block state: booleans, numbers where values are whole, else text. */
function propertiesOf(block, stateId) {
  const found = {};
  if (!block.states) return found;
  let rest = stateId - rangeOf(block)[0];
  for (let n = block.states.length - 1; n >= 0; n--) {
    const state = block.states[n];
    const place = rest % state.num_values;
    rest = Math.floor(rest / state.num_values);
    if (state.type === 'bool') found[state.name] = place === 0;
    else if (!state.values) found[state.name] = place;
    else found[state.name] = /^\d+$/.test(state.values[place]) ? Number(state.values[place]) : state.values[place];
  }
  return found;
}

/** Returns the collision boxes of a block state, [[x0, y0, z0, x1, y1, z1]] within the block. */
function boxesOf(registry, block, stateId) {
  const shapes = registry.blockCollisionShapes;
  if (!shapes) return block.boundingBox === 'block' ? [[0, 0, 0, 1, 1, 1]] : [];
  const listed = shapes.blocks[block.name];
  const number = Array.isArray(listed) ? listed[stateId - rangeOf(block)[0]] : listed;
  return shapes.shapes[number] || [];
}

const isCube = (boxes) => boxes.length === 1 && boxes[0].join() === '0,0,0,1,1,1';

/** Whether a block state is opaque: it blocks sight and light. */
function isOpaque(registry, block, stateId) {
  return isCube(boxesOf(registry, block, stateId)) && !CLEAR_CUBES.test(block.name);
}

function emissionOf(block, stateId) {
  if (block.name === 'sea_pickle') return 6;
  const properties = propertiesOf(block, stateId);
  return properties.lit === false ? 0 : LIGHTS[block.name] || 0;
}

const tables = new Map();

/**
 * Returns the effect of block states on light, Uint8Arrays by state; made once for each version.
 *
 * `opacity`: levels that light loses on its way through, 1 to 15; `open`: 1 where the sky's light
 * passes down without loss; `emission`: the light emitted, 0 to 15.
 */
function lightTables(registry) {
  const version = registry.version.minecraftVersion;
  if (tables.has(version)) return tables.get(version);
  const size = countStates(registry);
  const made = { opacity: new Uint8Array(size), open: new Uint8Array(size), emission: new Uint8Array(size) };
  for (const block of registry.blocksArray) {
    const [first, last] = rangeOf(block);
    for (let id = first; id <= last; id++) {
      const opaque = isOpaque(registry, block, id);
      made.opacity[id] = opaque ? 15 : 1;
      made.open[id] = opaque || DIM.test(block.name) ? 0 : 1;
      made.emission[id] = emissionOf(block, id);
    }
  }
  tables.set(version, made);
  return made;
}

module.exports = { boxesOf, countStates, lightTables, makeStates, propertiesOf, rangeOf };

'use strict';
/**
 * Blocks by appearance, in the form that prismarine-viewer's mesher needs.
 *
 * Scenes use appearances (game/observe/scene.js), in which block states that our ray-caster draws
 * alike share a number. Each is shown here as the one of its states that is nearest to the block's
 * default. So the facing of dispensers and repeaters, the bends of rails, and whether a fence
 * stands in water are lost; the shapes of stairs, slabs, fences and doors are not.
 */
const minecraftData = require('minecraft-data');
const blockClass = require('prismarine-block');
const { Vec3 } = require('vec3');
const { boxesOf, lightTables, propertiesOf, rangeOf } = require('../game/generator/blocks');

const CUBE = '[[0,0,0,1,1,1]]';
const SIDES = ['up', 'down', 'east', 'west', 'north', 'south'];
/** Blocks without a box and a model that stand upright; a post is shown. */
const POSTS = /_sign$|_banner$/;
const POST = [[0.4, 0, 0.4, 0.6, 1, 0.6]];
const UNSEEN = /air$|^water$|^lava$|^barrier$|^bubble_column$/;

/**
 * Returns an object of the mesher's for each appearance, in the same order.
 *
 * @param {string} version of Minecraft
 * @param {Array} appearances of `sceneTable`: [name, boxes, properties, emission, opacity]
 * @param {object} states models of prismarine-viewer, by block
 */
function blocksOf(version, appearances, states) {
  const registry = minecraftData(version);
  const Block = blockClass(version);
  const { emission } = lightTables(registry);
  const known = new Map();
  return appearances.map(([name, boxes, properties, light]) => {
    const plain = registry.blocksByName[name];
    if (plain !== undefined && !known.has(name)) known.set(name, statesOf(registry, plain, emission));
    const state = plain === undefined ? 0 : nearest(known.get(name), JSON.stringify(boxes), properties, light);
    const block = Block.fromStateId(state, 0);
    block.isCube = JSON.stringify(block.shapes) === CUBE;
    block.position = new Vec3(0, 0, 0);
    const variant = plain === undefined ? undefined : standIn(name, boxes, states[name]);
    if (variant !== undefined) block.variant = variant;
    return block;
  });
}

/**
 * Returns what to show of a block that has no model, as chests and beds, which the game draws like
 * creatures: its boxes in its one texture. Undefined where there is a model, or nothing to be seen.
 */
function standIn(name, boxes, state) {
  const models = Object.values(state?.variants ?? {}).flat().map((each) => each.model).filter(Boolean);
  const texture = models[0]?.textures.particle;
  if (texture === undefined || UNSEEN.test(name) || state.multipart) return undefined;
  if (models.some((model) => model.elements.length > 0)) return undefined;
  const faces = Object.fromEntries(SIDES.map((side) => [side, { texture }]));
  const elements = (POSTS.test(name) ? POST : boxes).map((box) => {
    const [from, to] = [box.slice(0, 3), box.slice(3)].map((corner) => corner.map((at) => at * 16));
    return { from, to, faces };
  });
  return [{ model: { textures: { particle: texture }, elements, ao: true } }];
}

/** Returns the states of a block, the most usual first: those most similar to the default one. */
function statesOf(registry, block, emission) {
  const [first, last] = rangeOf(block);
  const usual = propertiesOf(block, block.defaultState ?? first);
  const states = [];
  for (let id = first; id <= last; id++) {
    const properties = propertiesOf(block, id);
    const alike = Object.keys(properties).filter((key) => properties[key] === usual[key]).length;
    states.push({ id, properties, alike, light: emission[id], shape: JSON.stringify(boxesOf(registry, block, id)) });
  }
  return states.sort((one, other) => other.alike - one.alike || one.id - other.id);
}

function nearest(states, shape, properties, light) {
  const wanted = Object.entries(properties);
  const fits = (state) => state.light === light && state.shape === shape &&
    wanted.every(([key, value]) => state.properties[key] === value);
  return (states.find(fits) ?? states[0]).id;
}

module.exports = { blocksOf };

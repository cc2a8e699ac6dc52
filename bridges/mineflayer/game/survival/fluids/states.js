'use strict';

/**
 * The properties of a block state for liquids: the liquid it contains, whether a liquid can replace
 * it, and which of its sides a liquid passes (Minecraft Wiki, "Fluid", "Water", "Waterlogging",
 * 1.16). Computed once per state and process.
 */

const { FACES } = require('../blocks');

const WATER = 1;
const LAVA = 2;
/** The reaction of a block to a liquid: stops it, is replaced, or takes in a source of water. */
const CLOSED = 0;
const OPEN = 1;
const LOGS = 2;

/** Blocks of the game's materials without collision: a liquid washes them away. */
const WASHED = new RegExp(
  `^(${[
    'grass|fern|dead_bush|tall_grass|large_fern|sunflower|lilac|rose_bush|peony|dandelion|poppy',
    'blue_orchid|allium|azure_bluet|.*_tulip|oxeye_daisy|cornflower|wither_rose|lily_of_the_valley',
    '.*_sapling|brown_mushroom|red_mushroom|wheat|carrots|potatoes|beetroots|nether_wart|cocoa',
    '(attached_)?(melon|pumpkin)_stem|sweet_berry_bush|vine|lily_pad|chorus_plant|chorus_flower',
    '(crimson|warped)_(fungus|roots)|nether_sprouts|(weeping|twisting)_vines(_plant)?',
    '(soul_|redstone_)?(wall_)?torch|(.*_)?rail|redstone_wire|repeater|comparator|lever|.*_button',
    'tripwire|tripwire_hook|flower_pot|potted_.*|(wither_)?skeleton_(wall_)?skull',
    '(zombie|creeper|player|dragon)_(wall_)?head|end_rod|.*_carpet|snow|cobweb|fire|soul_fire',
  ].join('|')})$`,
);
/** Other blocks that are not solid, but stop a liquid or take it in. */
const SOFT = new RegExp(
  `^(${[
    '(tall_)?seagrass|kelp|kelp_plant|.*_coral(_fan|_wall_fan)?|sea_pickle|ladder|scaffolding',
    'sugar_cane|bubble_column|nether_portal|end_portal|end_gateway|structure_void',
  ].join('|')})$`,
);
const FULL_ROW = 0xffff;

/** The part of a block's side that its boxes cover, in sixteenths, or null for none. */
function coverOf(boxes, face) {
  const axis = [1, 2, 0][face >> 1];
  const [u, v] = [0, 1, 2].filter((other) => other !== axis);
  let rows = null;
  for (const box of boxes) {
    if (face & 1 ? box[axis + 3] < 1 - 1e-6 : box[axis] > 1e-6) continue;
    rows ??= new Uint16Array(16);
    const [low, high] = [Math.round(box[v] * 16), Math.round(box[v + 3] * 16)];
    const row = ((1 << high) - 1) & ~((1 << low) - 1);
    for (let i = Math.round(box[u] * 16); i < Math.round(box[u + 3] * 16); i++) rows[i] |= row;
  }
  return rows;
}

function coversAll(a, b) {
  if (!a && !b) return false;
  for (let i = 0; i < 16; i++) {
    if (((a ? a[i] : 0) | (b ? b[i] : 0)) !== FULL_ROW) return false;
  }
  return true;
}

function roomOf(info) {
  if (info.air || info.name === 'water' || info.name === 'lava' || WASHED.test(info.name))
    return OPEN;
  if (info.props.waterlogged === false && info.props.type !== 'double') return LOGS;
  return CLOSED;
}

function describe(info) {
  const kind = info.water ? WATER : info.lava ? LAVA : 0;
  const level = kind ? Math.min(info.level, 8) : 0;
  const sides = info.boxes.length ? FACES.map((_, face) => coverOf(info.boxes, face)) : [];
  const soft = info.air || info.liquid || WASHED.test(info.name) || SOFT.test(info.name);
  return {
    stateId: info.stateId,
    info,
    kind,
    /** As in the block's state: 0 a source, 1 to 7 flowing with decreasing height, 8 falling. */
    level,
    amount: kind ? (level === 0 || level === 8 ? 8 : 8 - level) : 0,
    source: kind !== 0 && level === 0,
    room: roomOf(info),
    solid: !soft,
    dense: info.full,
    sides: sides.some(Boolean) ? sides : null,
    /** Whether fire and similar blocks can stand on it. */
    sturdy: (info.full || coversAll(sides[1], null)) && !info.name.endsWith('_leaves'),
  };
}

const KNOWN = new WeakMap();

/** Returns a function (state id) -> its properties for liquids, for the blocks of a world. */
function makeStates(blocks) {
  if (!KNOWN.has(blocks.registry)) KNOWN.set(blocks.registry, []);
  const known = KNOWN.get(blocks.registry);
  return (stateId) => (known[stateId] ??= describe(blocks.info(stateId)));
}

/** Returns whether a liquid passes from a block to its neighbour across a side of the first. */
function passes(from, face, to) {
  if (from.dense || to.dense) return false;
  if (!from.sides && !to.sides) return true;
  return !coversAll(from.sides && from.sides[face], to.sides && to.sides[face ^ 1]);
}

/** Represents positions outside the world or not loaded. */
const WALL = {
  stateId: -1,
  info: null,
  kind: 0,
  level: 0,
  amount: 0,
  source: false,
  room: CLOSED,
  solid: true,
  dense: true,
  sides: null,
  sturdy: false,
};

module.exports = { WATER, LAVA, CLOSED, OPEN, LOGS, WALL, makeStates, passes };

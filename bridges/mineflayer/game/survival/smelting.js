'use strict';

/**
 * Smelting recipes and burning times of fuels: minecraft-data has neither (Minecraft Wiki,
 * "Smelting" and "Fuel", 1.16). Times are ticks, experience is points per item.
 */

const { COLOURS } = require('./colours');

const FOOD = {
  beef: ['cooked_beef', 0.35],
  porkchop: ['cooked_porkchop', 0.35],
  chicken: ['cooked_chicken', 0.35],
  mutton: ['cooked_mutton', 0.35],
  rabbit: ['cooked_rabbit', 0.35],
  cod: ['cooked_cod', 0.35],
  salmon: ['cooked_salmon', 0.35],
  potato: ['baked_potato', 0.35],
  kelp: ['dried_kelp', 0.1],
};

const ORES = {
  iron_ore: ['iron_ingot', 0.7],
  gold_ore: ['gold_ingot', 1],
  nether_gold_ore: ['gold_ingot', 1],
  ancient_debris: ['netherite_scrap', 2],
  coal_ore: ['coal', 0.1],
  diamond_ore: ['diamond', 1],
  emerald_ore: ['emerald', 1],
  lapis_ore: ['lapis_lazuli', 0.2],
  redstone_ore: ['redstone', 0.7],
  nether_quartz_ore: ['quartz', 0.2],
};

const OTHER = {
  sand: ['glass', 0.1],
  red_sand: ['glass', 0.1],
  cobblestone: ['stone', 0.1],
  stone: ['smooth_stone', 0.1],
  sandstone: ['smooth_sandstone', 0.1],
  red_sandstone: ['smooth_red_sandstone', 0.1],
  quartz_block: ['smooth_quartz', 0.1],
  clay_ball: ['brick', 0.3],
  netherrack: ['nether_brick', 0.1],
  nether_bricks: ['cracked_nether_bricks', 0.1],
  clay: ['terracotta', 0.35],
  stone_bricks: ['cracked_stone_bricks', 0.1],
  polished_blackstone_bricks: ['cracked_polished_blackstone_bricks', 0.1],
  cactus: ['green_dye', 1],
  chorus_fruit: ['popped_chorus_fruit', 0.1],
  sea_pickle: ['lime_dye', 0.1],
  wet_sponge: ['sponge', 0.15],
};

const GEAR = [
  'sword',
  'pickaxe',
  'axe',
  'shovel',
  'hoe',
  'helmet',
  'chestplate',
  'leggings',
  'boots',
  'horse_armor',
];
const BURNING_WOOD =
  /^(stripped_)?(oak|spruce|birch|jungle|acacia|dark_oak)_(log|wood|planks|stairs|fence|fence_gate|trapdoor|pressure_plate)$/;

/** Returns `{item, xp}` of one smelted item in a furnace, blast_furnace or smoker, or null. */
function smelted(kind, itemName) {
  let found = null;
  if (kind !== 'blast_furnace') found = FOOD[itemName];
  if (!found && kind !== 'smoker') found = ORES[itemName] || nugget(itemName);
  if (!found && kind === 'furnace') found = OTHER[itemName] || wooden(itemName) || glazed(itemName);
  return found ? { item: found[0], xp: found[1] } : null;
}

function nugget(itemName) {
  const [, metal, gear] = /^(iron|golden|chainmail)_(.+)$/.exec(itemName) || [];
  if (!metal || !GEAR.includes(gear)) return null;
  return [metal === 'golden' ? 'gold_nugget' : 'iron_nugget', 0.1];
}

function wooden(itemName) {
  return /^(stripped_)?(oak|spruce|birch|jungle|acacia|dark_oak)_(log|wood)$/.test(itemName)
    ? ['charcoal', 0.15]
    : null;
}

function glazed(itemName) {
  const colour = COLOURS.find((c) => itemName === `${c}_terracotta`);
  return colour ? [`${colour}_glazed_terracotta`, 0.1] : null;
}

const FUEL = {
  lava_bucket: 20000,
  coal_block: 16000,
  dried_kelp_block: 4000,
  blaze_rod: 2400,
  coal: 1600,
  charcoal: 1600,
  bamboo: 50,
  stick: 100,
  bowl: 100,
  crafting_table: 300,
  chest: 300,
  trapped_chest: 300,
  bookshelf: 300,
  lectern: 300,
  jukebox: 300,
  note_block: 300,
  daylight_detector: 300,
  loom: 300,
  barrel: 300,
  composter: 300,
  cartography_table: 300,
  fletching_table: 300,
  smithing_table: 300,
  ladder: 300,
  bow: 300,
  fishing_rod: 300,
  crossbow: 300,
  scaffolding: 400,
  dead_bush: 100,
  wooden_sword: 200,
  wooden_pickaxe: 200,
  wooden_axe: 200,
  wooden_shovel: 200,
  wooden_hoe: 200,
};

/** Returns the ticks an item burns; 0 if it does not. */
function burnTime(itemName) {
  if (FUEL[itemName]) return FUEL[itemName];
  if (BURNING_WOOD.test(itemName)) return 300;
  if (/^(oak|spruce|birch|jungle|acacia|dark_oak)_slab$/.test(itemName)) return 150;
  if (/^(oak|spruce|birch|jungle|acacia|dark_oak)_(button|sapling)$/.test(itemName)) return 100;
  if (/^(oak|spruce|birch|jungle|acacia|dark_oak)_(door|sign)$/.test(itemName)) return 200;
  if (/^(oak|spruce|birch|jungle|acacia|dark_oak)_boat$/.test(itemName)) return 1200;
  if (/_banner$/.test(itemName)) return 300;
  if (/_wool$/.test(itemName)) return 100;
  return /_carpet$/.test(itemName) ? 67 : 0;
}

module.exports = { smelted, burnTime };

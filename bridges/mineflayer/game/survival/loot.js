'use strict';

/**
 * Drops of a broken block. minecraft-data has the items per block, but its chances are mostly
 * placeholders; drops that depend on chance, age or tool are here (Minecraft Wiki, 1.16). Fortune
 * and silk touch count.
 */

const SHEARED =
  /_leaves$|^(grass|fern|dead_bush|vine|seagrass|tall_seagrass|tall_grass|large_fern|nether_sprouts|cobweb)$/;
/** Blocks that are not had whole, not even by silk touch. */
const NOT_WHOLE = /^(farmland|grass_path|cake|spawner|wheat|nether_wart|chorus_plant)$/;
/** Plants of two blocks, and the short ones of which shears give two. */
const TALL = { tall_grass: 'grass', large_fern: 'fern', tall_seagrass: 'seagrass' };
const SAPLINGS = { jungle: 0.025 };

function between(low, high) {
  return low + Math.floor(Math.random() * (high - low + 1));
}

function chance(p, item, count = 1) {
  return Math.random() < p ? [[item, count]] : [];
}

/** A ripe crop's count: three draws, and fortune's, with probability 4/7 each in addition to the normal drop. */
function crop(base, fortune) {
  let count = base;
  for (let i = 0; i < 3 + fortune; i++) if (Math.random() < 4 / 7) count++;
  return count;
}

/** How many times as much an ore gives with fortune. */
function more(fortune, count) {
  return fortune ? count * Math.max(1, Math.floor(Math.random() * (fortune + 2))) : count;
}

const ORES = {
  coal_ore: ['coal', 1, 1],
  diamond_ore: ['diamond', 1, 1],
  emerald_ore: ['emerald', 1, 1],
  nether_quartz_ore: ['quartz', 1, 1],
  lapis_ore: ['lapis_lazuli', 4, 9],
  nether_gold_ore: ['gold_nugget', 2, 6],
};
/** What gives up to a level of fortune more, and how much at most. */
const HEAPS = {
  redstone_ore: ['redstone', 4, 5, 64],
  glowstone: ['glowstone_dust', 2, 4, 4],
  melon: ['melon_slice', 3, 7, 9],
  sea_lantern: ['prismarine_crystals', 2, 3, 5],
};
const FLINT = [0.1, 0.14, 0.25, 1];
const SAPLING = [1, 1.25, 1.6, 2];

function leaves({ info, fortune }) {
  const wood = info.name.replace('_leaves', '');
  const drops = chance((SAPLINGS[wood] || 0.05) * SAPLING[fortune], `${wood}_sapling`);
  drops.push(...chance(0.02, 'stick', between(1, 2)));
  if (wood === 'oak' || wood === 'dark_oak') drops.push(...chance(0.005, 'apple'));
  return drops;
}

const grass = () => chance(0.125, 'wheat_seeds');

const BY_HAND = {
  ...Object.fromEntries(
    Object.entries(ORES).map(([ore, [item, low, high]]) => [
      ore,
      ({ fortune }) => [[item, more(fortune, between(low, high))]],
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(HEAPS).map(([block, [item, low, high, most]]) => [
      block,
      ({ fortune }) => [[item, Math.min(most, between(low, high + fortune))]],
    ]),
  ),
  gravel: ({ fortune }) => (Math.random() < FLINT[fortune] ? [['flint', 1]] : [['gravel', 1]]),
  gilded_blackstone: () =>
    Math.random() < 0.1 ? [['gold_nugget', between(2, 5)]] : [['gilded_blackstone', 1]],
  grass,
  fern: grass,
  tall_grass: grass,
  large_fern: grass,
  dead_bush: () => [['stick', between(0, 2)]],
  seagrass: () => [],
  tall_seagrass: () => [],
  vine: () => [],
  nether_sprouts: () => [],
  snow: ({ info }) => [['snowball', info.props.layers]],
  snow_block: () => [['snowball', 4]],
  brown_mushroom_block: () => [['brown_mushroom', Math.max(0, between(-6, 2))]],
  red_mushroom_block: () => [['red_mushroom', Math.max(0, between(-6, 2))]],
  twisting_vines: () => chance(0.33, 'twisting_vines'),
  weeping_vines: () => chance(0.33, 'weeping_vines'),
  wheat: ({ info, fortune }) =>
    info.props.age < 7
      ? [['wheat_seeds', 1]]
      : [
          ['wheat', 1],
          ['wheat_seeds', crop(1, fortune)],
        ],
  beetroots: ({ info, fortune }) =>
    info.props.age < 3
      ? [['beetroot_seeds', 1]]
      : [
          ['beetroot', 1],
          ['beetroot_seeds', crop(1, fortune)],
        ],
  carrots: ({ info, fortune }) => [['carrot', info.props.age < 7 ? 1 : crop(2, fortune)]],
  potatoes: ({ info, fortune }) =>
    info.props.age < 7
      ? [['potato', 1]]
      : [['potato', crop(2, fortune)], ...chance(0.02, 'poisonous_potato')],
  nether_wart: ({ info }) => [['nether_wart', info.props.age < 3 ? 1 : between(2, 4)]],
  cocoa: ({ info }) => [['cocoa_beans', info.props.age < 2 ? 1 : 3]],
  sweet_berry_bush: ({ info }) => {
    const { age } = info.props;
    return age < 2 ? [] : [['sweet_berries', age === 2 ? between(1, 2) : between(2, 3)]];
  },
  pumpkin_stem: ({ info }) => chance(info.props.age / 15, 'pumpkin_seeds'),
  melon_stem: ({ info }) => chance(info.props.age / 15, 'melon_seeds'),
  composter: ({ info }) => [
    ['composter', 1],
    ['bone_meal', info.props.level === 8 ? 1 : 0],
  ],
  campfire: () => [['charcoal', 2]],
  soul_campfire: () => [['soul_soil', 1]],
  turtle_egg: () => [],
  cake: () => [],
  spawner: () => [],
};

/** Wall forms drop the same as their standing forms. */
function standing(name) {
  return name.replace('wall_', '').replace(/^attached_/, '');
}

/** Double blocks drop once: by the lower half, or a bed's head. */
function secondHalf({ props, name }) {
  if (props.half === 'upper' && !/stairs|trapdoor/.test(name)) return true;
  return props.part === 'foot';
}

function fromData(registry, info) {
  const entry = registry.blockLoot[info.name] || registry.blockLoot[standing(info.name)];
  if (!entry) return [];
  const fits = entry.drops.filter((drop) => !drop.silkTouch);
  const double = info.props.type === 'double';
  return fits.map(({ item, stackSizeRange: [low, high] }) => {
    if (info.name.endsWith('_slab')) return [item, double ? 2 : 1];
    if (info.name === 'sea_pickle') return [item, info.props.pickles];
    return [item, between(low ?? 1, high ?? low ?? 1)];
  });
}

/**
 * Returns what a block drops as `[[item name, count], ...]`, given the tool and whether it is good
 * enough for the block (else nothing).
 */
function lootOf(items, registry, info, tool, goodEnough) {
  if (info.air || info.liquid || !goodEnough) return [];
  const sheared = tool && tool.name === 'shears' && SHEARED.test(info.name);
  if (sheared || (items.level(tool, 'silk_touch') && !NOT_WHOLE.test(info.name))) {
    const short = TALL[info.name];
    const whole = registry.itemsByName[short || info.name];
    if (whole && !secondHalf(info)) return [[whole.name, short ? 2 : 1]];
  }
  if (info.name === 'cobweb') return tool && tool.name.endsWith('_sword') ? [['string', 1]] : [];
  if (secondHalf(info)) return [];
  const fortune = Math.min(3, items.level(tool, 'fortune'));
  if (info.name.endsWith('_leaves')) return leaves({ info, fortune });
  const own = BY_HAND[info.name];
  const drops = own ? own({ info, fortune }) : fromData(registry, info);
  return drops.filter(([, count]) => count > 0);
}

/** Experience of a mined ore (Minecraft Wiki, "Experience"): [least, most] points. */
const ORE_XP = {
  coal_ore: [0, 2],
  diamond_ore: [3, 7],
  emerald_ore: [3, 7],
  lapis_ore: [2, 5],
  nether_quartz_ore: [2, 5],
  redstone_ore: [1, 5],
  nether_gold_ore: [0, 1],
  spawner: [15, 43],
};

function oreXp(blockName) {
  const range = ORE_XP[blockName];
  return range ? between(range[0], range[1]) : 0;
}

module.exports = { lootOf, oreXp, between };

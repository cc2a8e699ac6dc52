'use strict';

/**
 * What the dead leave (Minecraft Wiki, page of each mob, Java Edition 1.16). A row
 * is [item, least, most, options]: `chance`, `slain` (only if a player hurt it within the last five
 * seconds), `size` (of a slime). A range may begin below zero: what comes out below one is nothing.
 * minecraft-data's table is used for what has no row here: its counts are placeholders.
 */

const { between } = require('../loot');

const SLAIN = { slain: true };
const ZOMBIE = [['rotten_flesh', 0, 2],
  { rolls: [1, 1], chance: 0.025, slain: true,
    of: [['iron_ingot', 1, 1, 1], ['carrot', 1, 1, 1], ['potato', 1, 1, 1]] }];
const COW = [['leather', 0, 2], ['beef', 1, 3]];
const HIDE = [['leather', 0, 2]];
const SPIDER = [['string', 0, 2], ['spider_eye', -1, 1, SLAIN]];
const fishOf = (item) => [[item, 1, 1], ['bone_meal', 1, 1, { chance: 0.05 }]];
const held = (item) => [item, 1, 1, { chance: 0.085, slain: true }];
const WITCH = ['glowstone_dust', 'sugar', 'redstone', 'spider_eye', 'glass_bottle', 'gunpowder']
  .map((item) => [item, 0, 2, 1]);

const LOOT = {
  zombie: ZOMBIE, husk: ZOMBIE, zombie_villager: ZOMBIE,
  drowned: [['rotten_flesh', 0, 2], ['gold_ingot', 1, 1, { chance: 0.05, slain: true }]],
  zombified_piglin: [['rotten_flesh', 0, 1], ['gold_nugget', 0, 1],
    ['gold_ingot', 1, 1, { chance: 0.025, slain: true }], held('golden_sword')],
  skeleton: [['arrow', 0, 2], ['bone', 0, 2], held('bow')],
  stray: [['arrow', 0, 2], ['bone', 0, 2],
    ['tipped_arrow', 0, 1, { slain: true, potion: 'minecraft:slowness' }], held('bow')],
  wither_skeleton: [['coal', -1, 1], ['bone', 0, 2],
    ['wither_skeleton_skull', 1, 1, { chance: 0.025, slain: true }], held('stone_sword')],
  spider: SPIDER, cave_spider: SPIDER,
  creeper: [['gunpowder', 0, 2]],
  enderman: [['ender_pearl', 0, 1]],
  blaze: [['blaze_rod', 0, 1, SLAIN]],
  ghast: [['ghast_tear', 0, 1], ['gunpowder', 0, 2]],
  slime: [['slime_ball', 0, 2, { size: (size) => size === 1 }]],
  magma_cube: [['magma_cream', -2, 1, { size: (size) => size > 1 }]],
  witch: [{ rolls: [1, 3], of: [...WITCH, ['stick', 0, 2, 2]] }],
  vindicator: [['emerald', 0, 1, SLAIN], held('iron_axe')],
  pillager: [['arrow', 0, 2], held('crossbow')],
  evoker: [['totem_of_undying', 1, 1], ['emerald', 0, 1, SLAIN]],
  ravager: [['saddle', 1, 1]],
  piglin: [held('golden_sword')],
  piglin_brute: [held('golden_axe')],
  hoglin: [['porkchop', 2, 4], ['leather', 0, 1]],
  zoglin: [['rotten_flesh', 1, 3]],
  phantom: [['phantom_membrane', 0, 1, SLAIN]],
  guardian: [['prismarine_shard', 0, 2],
    { rolls: [1, 1], of: [['cod', 1, 1, 2], ['prismarine_crystals', 1, 1, 2], [null, 0, 0, 1]] }],
  elder_guardian: [['prismarine_shard', 0, 2], ['wet_sponge', 1, 1, SLAIN],
    { rolls: [1, 1], of: [['cod', 1, 1, 3], ['prismarine_crystals', 1, 1, 2], [null, 0, 0, 1]] }],
  shulker: [['shulker_shell', 1, 1, { chance: 0.5 }]],
  wither: [['nether_star', 1, 1]],
  cow: COW, mooshroom: COW,
  pig: [['porkchop', 1, 3]],
  sheep: [['mutton', 1, 2]],
  chicken: [['feather', 0, 2], ['chicken', 1, 1]],
  rabbit: [['rabbit_hide', 0, 1], ['rabbit', 0, 1],
    ['rabbit_foot', 1, 1, { chance: 0.1, slain: true }]],
  horse: HIDE, donkey: HIDE, mule: HIDE, llama: HIDE, trader_llama: HIDE,
  skeleton_horse: [['bone', 0, 2]],
  zombie_horse: [['rotten_flesh', 0, 2]],
  squid: [['ink_sac', 1, 3]],
  cod: fishOf('cod'), salmon: fishOf('salmon'), tropical_fish: fishOf('tropical_fish'),
  pufferfish: fishOf('pufferfish'),
  dolphin: [['cod', 0, 1]],
  turtle: [['seagrass', 0, 2]],
  parrot: [['feather', 1, 2]],
  cat: [['string', 0, 2]],
  strider: [['string', 2, 5]],
  polar_bear: [{ rolls: [1, 1], of: [['cod', 0, 2, 3], ['salmon', 0, 2, 1]] }],
  panda: [['bamboo', 1, 1]],
  iron_golem: [['poppy', 0, 2], ['iron_ingot', 3, 5]],
  snow_golem: [['snowball', 0, 15]],
};

const tagOf = (potion) => ({ type: 'compound', name: '',
  value: { Potion: { type: 'string', value: potion } } });

/** The cooked drops of an animal that burns. */
const COOKED = { beef: 'cooked_beef', porkchop: 'cooked_porkchop', mutton: 'cooked_mutton',
  chicken: 'cooked_chicken', rabbit: 'cooked_rabbit', cod: 'cooked_cod', salmon: 'cooked_salmon' };

function rows(registry, name) {
  if (LOOT[name]) return LOOT[name];
  const known = registry.entityLoot[name];
  return (known ? known.drops : []).map((drop) => {
    const [low = 1, high = low] = drop.stackSizeRange;
    return [drop.item, low, high, { chance: drop.dropChance, slain: Boolean(drop.playerKill) }];
  });
}

function weighted(options) {
  let left = Math.random() * options.reduce((sum, option) => sum + option[3], 0);
  return options.find((option) => (left -= option[3]) < 0) || options[options.length - 1];
}

/** Each level of looting adds up to one to what drops in numbers. */
function more(looting) {
  return looting ? Math.round(Math.random() * looting) : 0;
}

function rolled({ rolls, of, chance = 1 }, looting) {
  const drops = [];
  if (Math.random() >= chance + (chance < 1 ? 0.01 * looting : 0)) return drops;
  for (let i = between(...rolls); i > 0; i--) {
    const [item, low, high] = weighted(of);
    if (item) drops.push([item, between(low, high)]);
  }
  return drops;
}

/**
 * Returns the drops of a mob as `[[item, count, nbt or null], ...]`.
 *
 * @param {object} mob `name`, `baby`, `burning`, and of sheep `colour` and `shorn`, of slimes
 *   `size`
 * @param {boolean} slain whether a player hurt it lately
 * @param {number} looting level of what the player killed it with
 */
function lootOfMob(registry, mob, slain, looting = 0) {
  if (mob.baby) return [];
  const drops = [];
  for (const row of rows(registry, mob.name)) {
    const options = Array.isArray(row) ? row[3] || {} : row;
    if ((options.slain && !slain) || (options.size && !options.size(mob.size))) continue;
    if (!Array.isArray(row)) {
      drops.push(...rolled(row, looting));
      continue;
    }
    const [item, low, high] = row;
    const chance = options.chance + (options.slain ? 0.01 * looting : 0);
    if (options.chance !== undefined && Math.random() >= chance) continue;
    const extra = options.chance === undefined ? more(looting) : 0;
    drops.push([item, between(low, high) + extra, options.potion ? tagOf(options.potion) : null]);
  }
  if (mob.name === 'sheep' && !mob.shorn) drops.push([`${mob.colour || 'white'}_wool`, 1, null]);
  if (mob.saddled) drops.push(['saddle', 1, null]);
  return drops.filter(([, count]) => count > 0)
    .map(([item, count, nbt = null]) => [(mob.burning && COOKED[item]) || item, count, nbt]);
}

module.exports = { lootOfMob };

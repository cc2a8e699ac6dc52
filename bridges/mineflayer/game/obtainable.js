'use strict';
/**
 * Prints, as JSON, the names of the items that an agent can come by in the embedded world, from what
 * its worlds are made of and the rules of this folder: found, mined, killed for, crafted, smelted.
 *
 *     node bridges/mineflayer/game/obtainable.js > bridges/mineflayer/data/obtainable.json
 */
require('./libraries');
const registry = require('prismarine-registry')('1.16.5');
const { propertiesOf, rangeOf } = require('./generator/blocks');
const { CHOICES } = require('./generator/climate');
const { makeGenerator } = require('./generator');
const { END_Z } = require('./generator/end');
const { NETHER_Z } = require('./generator/nether');
const { Chance } = require('./generator/noise');
const { lootOf } = require('./survival/loot');
const { lootOfMob } = require('./survival/mobs/loot');
const { NATURAL } = require('./survival/spawning');
const { itemsOf } = require('./survival/chest_loot');
const { smelted } = require('./survival/smelting');
const { COLOURS } = require('./survival/colours');
const { professions } = require('./survival/trades.json');

const SEEDS = [1, 2, 3, 4];
const SPAN = 6; // chunks on each side of a place
const STRIDE = 40; // chunks between places
const TRIES = 400; // draws of what depends on chance

// The same draws every time: what is rare must not be in the list now and then.
const chance = new Chance(1);
Math.random = () => chance.next();

/** What else comes of what is there: items, and blocks as `#name`, each of any of the lists given. */
const RULES = [
  ['water_bucket', ['bucket', '#water']], ['lava_bucket', ['bucket', '#lava']],
  ['milk_bucket', ['bucket', '@cow']],
  ['enchanted_book', ['book', 'enchanting_table', 'lapis_lazuli']],
  ['chipped_anvil', ['anvil']], ['damaged_anvil', ['chipped_anvil']],
  ...registry.itemsArray.filter(({ name }) => name.startsWith('netherite_') && registry.itemsByName[name.replace('netherite', 'diamond')])
    .map(({ name }) => [name, [name.replace('netherite', 'diamond'), 'netherite_ingot', 'smithing_table']]),
  ['potion', ['glass_bottle', '#water']], ['splash_potion', ['potion', 'gunpowder', 'brewing_stand', 'blaze_powder']],
  ['lingering_potion', ['splash_potion', 'dragon_breath', 'brewing_stand', 'blaze_powder']],
  ...require('./survival/bartering.json').rows.map(([item]) => [item, ['gold_ingot', '@piglin']]),
  ...Object.values(require('./survival/fishing.json')).flatMap(({ rows = [] }) =>
    rows.map(([item]) => [item, ['fishing_rod', '#water']])),
  ...['cod', 'salmon', 'pufferfish', 'tropical_fish'].map((fish) => [`${fish}_bucket`, ['water_bucket', `@${fish}`]]),
  ['dragon_egg', ['ender_eye']], ['egg', ['@chicken']], ['bone_meal', ['composter']],
  ['#cobblestone', ['#water', '#lava']], ['#stone', ['#water', '#lava']], ['#obsidian', ['#water', '#lava']],
  ['#wheat', ['wheat_seeds']], ['#beetroots', ['beetroot_seeds']], ['#carrots', ['carrot']],
  ['#potatoes', ['potato']],
  ['#pumpkin', ['pumpkin_seeds']], ['#melon', ['melon_seeds']], ['#cocoa', ['cocoa_beans']],
  ['#carved_pumpkin', ['#pumpkin', 'shears']], ['pumpkin_seeds', ['#pumpkin', 'shears']], ['filled_map', ['map']],
  ['#nether_wart', ['nether_wart']], ['#bamboo', ['bamboo']], ['#kelp', ['kelp']],
  ['#sweet_berry_bush', ['sweet_berries']],
  ...['oak', 'spruce', 'birch', 'jungle', 'acacia', 'dark_oak'].flatMap((wood) => [
    [`#${wood}_log`, [`${wood}_sapling`]], [`#${wood}_leaves`, [`${wood}_sapling`]],
    [`#stripped_${wood}_log`, [`#${wood}_log`, 'wooden_axe']],
    [`#stripped_${wood}_wood`, [`${wood}_wood`, 'wooden_axe']]]),
  ...['crimson', 'warped'].flatMap((wood) => ['stem', 'hyphae'].map((part) =>
    [`#stripped_${wood}_${part}`, [`${wood}_${part}`, 'wooden_axe']])),
  ...registry.itemsArray.filter(({ name }) => name.endsWith('_concrete'))
    .map(({ name }) => [`#${name}`, [`${name}_powder`, '#water']])
];

/** Returns what villagers sell: [item, what they want for it]. */
function trades() {
  const words = (text) => text.match(/[a-z{][a-z_{}|,]*/g);
  const filled = (row, colour) => row.map((text) =>
    text.replace(/\{colour[^}]*\}/, colour).replace('{wood}', 'oak'));
  return Object.values(professions).flatMap(({ levels }) => levels.flat()).flatMap(([wants, gives]) =>
    COLOURS.map((colour) => filled([wants, gives], colour))
      .map(([pays, [...item]]) => [words(item.join(''))[0], ['@villager', ...words(pays)]]));
}

/** Returns the blocks, creatures and items of generated worlds, written as in RULES. */
function found() {
  const names = new Set(NATURAL.map((kind) => `@${kind}`));
  for (const seed of SEEDS) {
    for (const biome of ['any', ...CHOICES]) {
      const generator = makeGenerator({ seed, biome, site: 'wild' });
      const places = [[0, 0], [STRIDE, 0], [0, STRIDE], ...(biome === 'any' ? [[0, NETHER_Z / 16], [STRIDE, NETHER_Z / 16], [0, END_Z / 16]] : [])];
      for (const [x0, z0] of places) {
        for (let x = x0; x < x0 + SPAN; x++) {
          for (let z = z0; z < z0 + SPAN; z++) {
            const column = generator.generate(x, z);
            for (const section of column.sections) {
              for (const state of section?.palette ?? []) names.add(`#${registry.blocksByStateId[state].name}`);
            }
            for (const { kind } of [...generator.animals(x, z), ...generator.spawners(x, z)]) names.add(`@${kind}`);
            for (const { items, loot } of generator.chests(x, z)) {
              for (const name of loot ? itemsOf(loot) : items.map((item) => item.name)) names.add(name);
            }
          }
        }
      }
    }
  }
  return names;
}

/** Returns the items that a block gives with some tools. */
function ofBlock(name, shears, silk) {
  const block = registry.blocksByName[name];
  const [first, last] = rangeOf(block);
  const items = new Set();
  const level = (enchantment) => ({ level: (_, each) => Number(each === enchantment) });
  for (let state = first; state <= last; state += Math.max(1, Math.floor((last - first) / 40))) {
    const info = { name, props: propertiesOf(block, state), air: false, liquid: false };
    for (let i = 0; i < TRIES / 4; i++) {
      for (const tool of shears ? [null, { name: 'shears' }] : [null]) {
        for (const [item] of lootOf(level(''), registry, info, tool, true)) items.add(item);
      }
      if (!silk) continue;
      for (const [item] of lootOf(level('silk_touch'), registry, info, null, true)) items.add(item);
    }
  }
  return items;
}

function ofMob(name) {
  const items = new Set();
  for (const colour of name === 'sheep' ? ['white', 'black', 'gray', 'light_gray', 'brown', 'pink'] : ['']) {
    for (let i = 0; i < TRIES; i++) {
      const mob = { name, colour, size: 1 + i % 2 };
      for (const [item] of lootOfMob(registry, mob, true)) items.add(item);
    }
  }
  return items;
}

const nameOf = (id) => registry.items[id].name;

/** Returns the items of each recipe: [result, ingredients]. */
function recipes() {
  return Object.values(registry.recipes).flat().map((recipe) => {
    const parts = (recipe.ingredients ?? recipe.inShape.flat()).filter((part) => part !== null && part !== -1);
    return [nameOf(recipe.result.id), parts.map((part) => nameOf(typeof part === 'object' ? part.id : part))];
  });
}

/** Returns everything that comes of what there is, written as in RULES. */
function closure(names) {
  const has = (name) => names.has(name);
  const rules = [...RULES, ...recipes(), ...trades()];
  const seen = new Set();
  for (let size = -1; size < names.size;) {
    size = names.size;
    for (const [result, parts] of rules) if (parts.every(has)) names.add(result);
    for (const name of [...names]) {
      if (name.startsWith('#')) {
        const block = registry.blocksByName[name.slice(1)];
        const silk = has('enchanting_table');
        const key = `${name} ${has('shears')} ${silk}`;
        const tools = Object.keys(block.harvestTools ?? {}).map(nameOf);
        if (seen.has(key) || !block.diggable || (tools.length > 0 && !tools.some(has))) continue;
        seen.add(key);
        for (const item of ofBlock(block.name, has('shears'), silk)) names.add(item);
      } else if (name.startsWith('@')) {
        if (seen.has(name)) continue;
        seen.add(name);
        for (const item of ofMob(name.slice(1))) names.add(item);
      } else {
        for (const kind of ['furnace', 'blast_furnace', 'smoker']) {
          const out = has(kind) && smelted(kind, name);
          if (out) names.add(out.item);
        }
        // An axe, a shovel or a player may change what was placed.
        if (registry.blocksByName[name]) names.add(`#${name}`);
      }
    }
  }
  return names;
}

const items = [...closure(found())].filter((name) => registry.itemsByName[name]).sort();
console.log(JSON.stringify(items, null, 0).replaceAll(',', ',\n'));

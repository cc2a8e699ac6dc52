'use strict';
/**
 * Prints, as JSON, what tasks are made from: recipes, smelting, blocks with their tools and drops, foods,
 * mobs, enchantments, of minecraft-data and the rules of this folder.
 *
 *     node bridges/mineflayer/game/facts.js > bridges/mineflayer/data/facts.json
 *
 * recipes: product -> [[how many, whether by hand, {ingredient: number}], ...]; smelts: item -> product;
 * blocks: name -> {tool, tier, drops, solid, item}, of those that players can mine; durability: item ->
 * uses; enchantments: name -> [what takes it, highest level, whether a table gives it].
 */
require('./libraries');
const registry = require('prismarine-registry')('1.16.5');
const { propertiesOf } = require('./generator/blocks');
const { Chance } = require('./generator/noise');
const { lootOf } = require('./survival/loot');
const { smelted } = require('./survival/smelting');

const TIERS = ['wooden', 'stone', 'iron', 'diamond'];
const TOOLS = ['pickaxe', 'axe', 'shovel', 'hoe', 'sword', 'shears'];
const RECIPES = 3; // variants of one product, such as planks of different woods
const TRIES = 20; // draws of what depends on chance

const chance = new Chance(1);
Math.random = () => chance.next();
const nameOf = (id) => registry.items[id].name;

function recipes() {
  const found = {};
  for (const recipe of Object.values(registry.recipes).flat()) {
    const rows = recipe.inShape ?? [recipe.ingredients];
    const parts = rows.flat().filter((part) => part !== null && part !== -1)
      .map((part) => nameOf(typeof part === 'object' ? part.id : part));
    const hand = recipe.inShape ? rows.length <= 2 && rows.every((row) => row.length <= 2) : parts.length <= 4;
    const needs = {};
    for (const part of parts) needs[part] = (needs[part] ?? 0) + 1;
    const name = nameOf(recipe.result.id);
    (found[name] ??= []).push([recipe.result.count, hand, needs]);
  }
  for (const name of Object.keys(found)) found[name] = found[name].slice(0, RECIPES);
  return found;
}

function smelts() {
  const pairs = registry.itemsArray.map(({ name }) => [name, smelted('furnace', name)?.item]);
  return Object.fromEntries(pairs.filter(([, product]) => product));
}

/** Returns the tool that mines a block best, and the lowest tier with which it drops anything. */
function toolOf(block) {
  const needed = Object.keys(block.harvestTools ?? {}).map((id) => nameOf(Number(id)));
  const speeds = registry.materials[block.material] ?? {};
  const best = needed.length > 0 ? needed : Object.keys(speeds).map((id) => nameOf(Number(id)));
  const tool = TOOLS.find((kind) => best.some((name) => name === kind || name.endsWith(`_${kind}`)));
  const tier = needed.length > 0 ? TIERS.findIndex((each) => needed.some((name) => name.startsWith(`${each}_`))) : -1;
  return { tool: tool ?? '', tier: TIERS[tier] ?? '' };
}

function dropsOf(block) {
  const info = { name: block.name, props: propertiesOf(block, block.defaultState), air: false, liquid: false };
  const items = new Set();
  for (let i = 0; i < TRIES; i++) {
    for (const [item] of lootOf({ level: () => 0 }, registry, info, null, true)) items.add(item);
  }
  return [...items];
}

function blocks() {
  const found = {};
  for (const block of registry.blocksArray) {
    if (!block.diggable || block.name === 'air') continue;
    found[block.name] = { ...toolOf(block), drops: dropsOf(block), solid: block.boundingBox === 'block',
      item: Boolean(registry.itemsByName[block.name]) };
  }
  return found;
}

const named = (list) => list.map(({ name }) => name);
const facts = {
  recipes: recipes(),
  smelts: smelts(),
  blocks: blocks(),
  foods: named(registry.foodsArray),
  stacks: Object.fromEntries(registry.itemsArray.filter(({ stackSize }) => stackSize < 64)
    .map(({ name, stackSize }) => [name, stackSize])),
  durability: Object.fromEntries(registry.itemsArray.filter(({ maxDurability }) => maxDurability)
    .map(({ name, maxDurability }) => [name, maxDurability])),
  mobs: Object.fromEntries(registry.entitiesArray.filter(({ category }) => /mobs/.test(category ?? ''))
    .map(({ name, category }) => [name, category])),
  enchantments: Object.fromEntries(registry.enchantmentsArray.map(({ name, category, maxLevel, treasureOnly }) =>
    [name, [category, maxLevel, !treasureOnly]]))
};
console.log(JSON.stringify(facts).replaceAll('],"', '],\n"').replaceAll('},"', '},\n"'));

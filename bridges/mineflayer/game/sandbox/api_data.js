'use strict';
/** Data of the version that every player can look up: blocks, items, entities, foods, recipes. */
const { ArgumentError } = require('./check');
const { seenBlock } = require('./api_shared');

const KINDS = {
  blocks: ['blocksByName', 'blocks'],
  items: ['itemsByName', 'items'],
  entities: ['entitiesByName', 'entities'],
  foods: ['foodsByName', 'foods'],
  biomes: ['biomesByName', 'biomes'],
  enchantments: ['enchantmentsByName', 'enchantments'],
  effects: ['effectsByName', 'effects']
};
const KIND = { name: 'kind', type: 'choice', of: Object.keys(KINDS) };
/** Long fields that programs do not need. */
const LEFT_OUT = new Set(['states', 'shapes', 'metadataKeys']);

/** Returns a record of the registry as plain data, or null: programs may ask whether a name exists. */
function lookUp({ bot }, [kind, key]) {
  const [byName, byNumber] = KINDS[kind];
  const isNumber = /^-?\d{1,6}$/.test(key);
  const table = bot.registry[isNumber ? byNumber : byName] ?? {};
  if (!Object.hasOwn(table, key)) return null;
  return Object.fromEntries(Object.entries(table[key]).filter(([name]) => !LEFT_OUT.has(name)));
}

function names({ bot }, [kind]) {
  const table = bot.registry[KINDS[kind][0]] ?? {};
  return Object.values(table).map(({ id, name, displayName }) => ({ id, name, displayName }));
}

const ingredient = ({ id, metadata, count }) => ({ id, metadata: metadata ?? null, count: count ?? 1 });

/** Returns a recipe as plain data; `key` finds it again. */
function recipeData(recipe, key) {
  return {
    key,
    result: ingredient(recipe.result),
    requiresTable: Boolean(recipe.requiresTable),
    inShape: recipe.inShape?.map((row) => row.map(ingredient)) ?? null,
    ingredients: recipe.ingredients?.map(ingredient) ?? null,
    delta: recipe.delta.map(ingredient)
  };
}

/** Returns the crafting table at a cell (undefined where none is asked for). @throws {ArgumentError} */
function tableAt(agent, cell) {
  if (cell === undefined) return undefined;
  const block = seenBlock(agent, cell, 'craft at');
  if (block.name !== 'crafting_table') {
    throw new ArgumentError(`the block at ${cell} is ${block.name}, not a crafting_table`);
  }
  return block;
}

/** Returns all recipes of an item in the registry's order; a recipe's key is the index in it. */
function recipesOf(agent, item, hasTable) {
  return agent.bot.recipesAll(item.id, null, hasTable ? true : null);
}

function recipes(agent, [item, minCount, cell, all]) {
  const table = tableAt(agent, cell);
  const every = recipesOf(agent, item, true);
  const fit = all
    ? recipesOf(agent, item, Boolean(table))
    : agent.bot.recipesFor(item.id, null, minCount, table ?? null);
  const keyOf = (recipe) => every.findIndex((other) => sameRecipe(other, recipe));
  return fit.map((recipe) => recipeData(recipe, keyOf(recipe)));
}

const sameRecipe = (a, b) => JSON.stringify(a) === JSON.stringify(b);

const ITEM = { name: 'item', type: 'item' };
const TABLE = { name: 'craftingTable', type: 'cell', optional: true };

module.exports = {
  entries: [
    {
      name: 'lookUp', doc: 'a record of the version: block, item, entity, ...; null when unknown',
      args: [KIND, { name: 'key', type: 'text', max: 80 }], returns: 'object | null', cost: 1, run: lookUp
    },
    {
      name: 'names', doc: 'all names of a kind', args: [KIND], returns: '[{id, name, displayName}]',
      cost: 20, run: names
    },
    {
      name: 'recipes', doc: 'recipes of an item: those possible now, or all',
      args: [
        ITEM, { name: 'minCount', type: 'integer', min: 1, max: 6400, default: 1 }, TABLE,
        { name: 'all', type: 'boolean', default: false }
      ],
      returns: '[Recipe]', cost: 10, run: recipes
    }
  ],
  recipesOf,
  tableAt
};

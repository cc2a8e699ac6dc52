'use strict';
/** Actions on carried items: equip, toss, craft. */
const { ActionError, ArgumentError } = require('./check');
const {
  itemData, itemIn, middleOf, reachedBlock, seenBlock, stillWanted, turnTo
} = require('./api_shared');
const { recipesOf, tableAt } = require('./api_data');

const DESTINATIONS = ['hand', 'head', 'torso', 'legs', 'feet', 'off-hand'];
const SLOT = { name: 'slot', type: 'integer', min: 0, max: 45 };
const TYPE = { name: 'item', type: 'item', optional: true };
const DESTINATION = { name: 'destination', type: 'choice', of: DESTINATIONS, default: 'hand' };
const TABLE = { name: 'craftingTable', type: 'cell', optional: true };

function inventory({ bot }) {
  return {
    slots: bot.inventory.slots.slice(0, 46).map(itemData),
    quickBarSlot: bot.quickBarSlot ?? 0
  };
}

async function equip(agent, [slot, type, destination]) {
  await agent.bot.equip(itemIn(agent, slot, type), destination);
}

async function toss(agent, [item, count]) {
  const { bot } = agent;
  const has = bot.inventory.count(item.id, null);
  if (has < count) throw new ActionError(`there are ${has} ${item.name}, not ${count}, to toss`);
  await bot.toss(item.id, null, count);
}

/** Crafts one at a time, so that crafting stops when the program ends. */
async function craft(agent, [item, key, count, cell], signal) {
  const { bot } = agent;
  const table = tableAt(agent, cell);
  if (table) reachedBlock(agent, cell, 'craft at');
  const recipe = recipesOf(agent, item, true)[key];
  if (!recipe) throw new ArgumentError(`${item.name} has no recipe ${key}; take one of bot.recipesFor`);
  if (recipe.requiresTable && !table) {
    throw new ActionError(`${item.name} needs a crafting_table, and none was given`);
  }
  for (let i = 0; i < count; i++) {
    stillWanted(signal);
    const lacking = missing(bot, recipe);
    if (lacking) throw new ActionError(`cannot craft ${item.name}: ${lacking}`);
    if (table) await turnTo(agent, middleOf(cell), signal);
    await bot.craft(recipe, 1, table);
  }
}

/** Returns what a recipe lacks in the inventory, as a text, or null. */
function missing(bot, recipe) {
  const lacking = recipe.delta
    .filter(({ count }) => count < 0)
    .map(({ id, metadata, count }) => ({ id, lack: -count - bot.inventory.count(id, metadata ?? null) }))
    .filter(({ lack }) => lack > 0)
    .map(({ id, lack }) => `${lack} more ${bot.registry.items[id].name}`);
  return lacking.length > 0 ? `it takes ${lacking.join(' and ')}` : null;
}

/** Returns the slot of the tool that digs a block fastest, null for the bare hand. */
function bestTool(agent, [cell]) {
  const { bot } = agent;
  const block = seenBlock(agent, cell);
  let best = null;
  let fastest = block.digTime(null, false, false, false, [], {});
  for (const item of bot.inventory.items()) {
    const time = block.digTime(item.type, false, false, false, [], {});
    if (time < fastest) {
      fastest = time;
      best = item;
    }
  }
  return best ? best.slot : null;
}

const long = (name, doc, args, run, ticks) =>
  ({ name, doc, args, returns: 'nothing', cost: 2, async: true, inTurn: true, ticks, run });

module.exports = [
  {
    name: 'inventory', doc: 'what is carried, by slot', args: [], returns: 'object', cost: 2,
    run: inventory
  },
  {
    name: 'bestTool', doc: 'the slot of the best tool for a block',
    args: [{ name: 'position', type: 'cell' }], returns: 'number | null', cost: 3, run: bestTool
  },
  {
    name: 'setQuickBarSlot', doc: 'selects a slot of the quick bar',
    args: [{ name: 'slot', type: 'integer', min: 0, max: 8 }], returns: 'nothing', cost: 1,
    run: ({ bot }, [slot]) => bot.setQuickBarSlot(slot)
  },
  long('equip', 'puts an item in a hand or on', [SLOT, TYPE, DESTINATION], equip, 200),
  long(
    'unequip', 'takes off', [DESTINATION], async ({ bot }, [destination]) => bot.unequip(destination), 200
  ),
  long(
    'toss', 'throws some of an item away',
    [{ name: 'item', type: 'item' }, { name: 'count', type: 'integer', min: 1, max: 2304, default: 1 }],
    toss, 400
  ),
  long(
    'tossStack', 'throws a stack away', [SLOT, TYPE],
    async (agent, [slot, type]) => agent.bot.tossStack(itemIn(agent, slot, type)), 200
  ),
  long(
    'craft', 'crafts a recipe some times',
    [
      { name: 'item', type: 'item' }, { name: 'recipe', type: 'integer', min: 0, max: 1000 },
      { name: 'count', type: 'integer', min: 1, max: 64, default: 1 }, TABLE
    ],
    craft, 2400
  )
];

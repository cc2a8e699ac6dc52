'use strict';
/** Windows of blocks and villagers: one is open at a time, as in the game. */
const { ActionError, ArgumentError } = require('./check');
const {
  itemData, middleOf, reachedBlock, reachedEntity, stillWanted, turnTo, villagerData
} = require('./api_shared');

const CELL = { name: 'position', type: 'cell' };
const WINDOW = { name: 'window', type: 'integer', min: 0, max: 255 };
const ITEM = { name: 'item', type: 'item' };
const COUNT = { name: 'count', type: 'integer', min: 1, max: 3456, default: 1 };
const ENTITY = { name: 'entity', type: 'integer', min: -2147483648, max: 2147483647 };
const SLOT = { name: 'slot', type: 'integer', min: 0, max: 99 };
const NAME = { name: 'text', type: 'text', max: 35 };
const FURNACES = ['furnace', 'blast_furnace', 'smoker'];
const FURNACE_SLOTS = ['input', 'fuel', 'output'];

function long(name, doc, args, run, returns = 'nothing') {
  return { name, doc, args, returns, cost: 2, async: true, inTurn: true, ticks: 400, run };
}

async function openChest(agent, [cell], signal) {
  const block = reachedBlock(agent, cell, 'open');
  if (!/chest$|barrel$|shulker_box$|^dispenser$|^dropper$|^hopper$/.test(block.name)) {
    throw new ArgumentError(`the block at ${cell} is ${block.name}, not a chest`);
  }
  await turnTo(agent, middleOf(cell), signal);
  const window = await agent.bot.openContainer(block);
  if (signal.aborted) window.close();
  return window.id;
}

/** The blocks that have a window, and mineflayer's ways of opening those that it knows. */
const WINDOWED = new RegExp('chest$|barrel$|shulker_box$|furnace$|^smoker$|^dispenser$|^dropper$|^hopper$'
  + '|anvil$|^(grindstone|loom|stonecutter|brewing_stand|beacon|lectern)$|_table$');

/** Returns an entry that opens a block whose name fits, by a function of mineflayer. */
function opener(name, doc, fits, open) {
  const run = async (agent, [cell], signal) => {
    const block = reachedBlock(agent, cell, 'open');
    if (!fits.test(block.name)) throw new ArgumentError(`the block at ${cell} is ${block.name}, which ${name} does not open`);
    await turnTo(agent, middleOf(cell), signal);
    const window = await open(agent.bot, block);
    if (signal.aborted) window.close();
    return window.id;
  };
  return long(name, doc, [CELL], run, 'number of the window');
}

async function openVillager(agent, [id], signal) {
  const entity = reachedEntity(agent, id, 'trade with');
  const trader = entity.name === 'wandering_trader';
  if (!trader && entity.name !== 'villager') throw new ArgumentError(`entity ${id} is ${entity.name}, not a villager`);
  const { profession } = villagerData(entity) ?? {};
  if (profession === 'none' || profession === 'nitwit') throw new ActionError('this villager has no profession: it trades nothing');
  const window = await agent.bot.openVillager(trader ? posed(agent.bot, entity) : entity);
  if (signal.aborted) window.close();
  return window.id;
}

/** What lets mineflayer, which knows villagers only, trade with a wandering trader. */
function posed({ registry }, { id, position }) {
  return { id, position, entityType: registry.entitiesByName.villager.id };
}

function trades(agent, [id]) {
  const window = opened(agent, id);
  if (!window.trades) throw new ArgumentError('this window is not that of a villager');
  return window.trades.map((trade) => ({
    inputs: trade.inputs.map(itemData),
    outputs: trade.outputs.map(itemData),
    hasItem2: trade.hasItem2,
    realPrice: trade.realPrice,
    tradeDisabled: trade.tradeDisabled,
    nbTradeUses: trade.nbTradeUses,
    maximumNbTradeUses: trade.maximumNbTradeUses
  }));
}

async function trade(agent, [id, index, count], signal) {
  const window = opened(agent, id);
  const offer = trades(agent, [id])[index];
  if (!offer) throw new ArgumentError(`there is no trade ${index}; there are ${window.trades.length}`);
  const left = offer.maximumNbTradeUses - offer.nbTradeUses;
  if (left < (count ?? 1)) throw new ActionError(`trade ${index} can be done ${left} times now, not ${count ?? 1}`);
  stillWanted(signal);
  await window.trade(index, count ?? left);
}

function enchantments(agent, [id]) {
  const window = opened(agent, id);
  if (!window.enchantments) throw new ArgumentError('this window is not that of an enchanting table');
  return window.enchantments.map(({ level, expected }) => ({ level, expected: { ...expected } }));
}

async function enchant(agent, [id, choice]) {
  const offered = enchantments(agent, [id])[choice];
  const { bot } = agent;
  const window = opened(agent, id);
  if (!(offered.level > 0)) throw new ActionError('the table offers nothing: put an item in that can be enchanted');
  const lapis = window.slots[1]?.count ?? 0;
  if (bot.game.gameMode !== 'creative' && (bot.experience.level < offered.level || lapis <= choice)) {
    throw new ActionError(`this takes level ${offered.level} and ${choice + 1} lapis_lazuli in the table; `
      + `there are level ${bot.experience.level} and ${lapis}`);
  }
  return itemData(await window.enchant(choice));
}

function anvil(agent, id) {
  const window = opened(agent, id);
  if (!window.combine) throw new ArgumentError('this window is not that of an anvil');
  return window;
}

/** Returns the stack in a slot of a window. @throws {ActionError} without one */
function stackIn(window, slot) {
  const item = window.slots[slot];
  if (!item) throw new ActionError(`slot ${slot} of the window is empty`);
  return item;
}

async function combine(agent, [id, one, two, name]) {
  const window = anvil(agent, id);
  await window.combine(stackIn(window, one), stackIn(window, two), name);
}

async function rename(agent, [id, slot, name]) {
  const window = anvil(agent, id);
  await window.rename(stackIn(window, slot), name);
}

/** Ends the work of a call whose window was closed, instead of clicking in the next one. */
const inWindow = (run) => async (agent, [id, ...rest], signal) => {
  opened(agent, id);
  stillWanted(signal);
  await run(agent.bot, ...rest);
};

async function openFurnace(agent, [cell], signal) {
  const block = reachedBlock(agent, cell, 'open');
  if (!FURNACES.includes(block.name)) {
    throw new ArgumentError(`the block at ${cell} is ${block.name}, not a furnace`);
  }
  await turnTo(agent, middleOf(cell), signal);
  const window = await agent.bot.openFurnace(block);
  if (signal.aborted) window.close();
  return window.id;
}

/** Returns the open window of a number. @throws {ActionError} when it was closed */
function opened(agent, id) {
  const window = agent.bot.currentWindow;
  if (!window || window.id !== id) throw new ActionError('this window is not open any more');
  return window;
}

function contents(agent, [id]) {
  const window = opened(agent, id);
  return {
    type: String(window.type),
    container: window.slots.slice(0, window.inventoryStart).map(itemData),
    own: window.slots.slice(window.inventoryStart, window.inventoryEnd).map(itemData),
    fuel: window.fuel ?? null,
    progress: window.progress ?? null
  };
}

async function deposit(agent, [id, item, count], signal) {
  const window = opened(agent, id);
  const has = window.slots.slice(window.inventoryStart, window.inventoryEnd)
    .reduce((sum, slot) => sum + (slot?.type === item.id ? slot.count : 0), 0);
  if (has < count) throw new ActionError(`there are ${has} ${item.name}, not ${count}, to put in`);
  stillWanted(signal);
  await window.deposit(item.id, null, count);
}

async function withdraw(agent, [id, item, count], signal) {
  const window = opened(agent, id);
  const has = window.slots.slice(0, window.inventoryStart)
    .reduce((sum, slot) => sum + (slot?.type === item.id ? slot.count : 0), 0);
  if (has < count) throw new ActionError(`there are ${has} ${item.name}, not ${count}, to take out`);
  stillWanted(signal);
  await window.withdraw(item.id, null, count);
}

async function putIn(agent, [id, place, item, count]) {
  const window = opened(agent, id);
  if (!window.putInput) throw new ArgumentError('this is not a furnace');
  const has = window.slots.slice(window.inventoryStart, window.inventoryEnd)
    .reduce((sum, slot) => sum + (slot?.type === item.id ? slot.count : 0), 0);
  if (has < count) throw new ActionError(`there are ${has} ${item.name}, not ${count}, to put in`);
  await (place === 'fuel' ? window.putFuel : window.putInput)(item.id, null, count);
}

async function takeOut(agent, [id, place]) {
  const window = opened(agent, id);
  if (!window.takeOutput) throw new ArgumentError('this is not a furnace');
  const item = window.slots[FURNACE_SLOTS.indexOf(place)];
  if (!item) throw new ActionError(`the furnace has no ${place} to take`);
  const data = itemData(item);
  await { input: window.takeInput, fuel: window.takeFuel, output: window.takeOutput }[place]();
  return data;
}

function press(agent, [id, button]) {
  opened(agent, id);
  agent.bot._client.write('enchant_item', { windowId: id, enchantment: button });
}

function close(agent, [id]) {
  const window = agent.bot.currentWindow;
  if (window && window.id === id) agent.bot.closeWindow(window);
}

module.exports = [
  long('openChest', 'opens a chest, barrel, ...', [CELL], openChest, 'number of the window'),
  long(
    'openFurnace', 'opens a furnace, smoker or blast furnace', [CELL], openFurnace, 'number of the window'
  ),
  {
    name: 'contents', doc: 'what an open window holds', args: [WINDOW], returns: 'object',
    cost: 2, run: contents
  },
  long('deposit', 'puts items into the open chest', [WINDOW, ITEM, COUNT], deposit),
  long('withdraw', 'takes items out of the open chest', [WINDOW, ITEM, COUNT], withdraw),
  long(
    'putIn', 'puts items into the open furnace',
    [WINDOW, { name: 'place', type: 'choice', of: ['input', 'fuel'] }, ITEM, COUNT], putIn
  ),
  long(
    'takeOut', 'takes items out of the open furnace',
    [WINDOW, { name: 'place', type: 'choice', of: FURNACE_SLOTS }], takeOut, 'Item'
  ),
  opener('openBlock', 'opens any block that has a window', WINDOWED, (bot, block) => bot.openBlock(block)),
  opener(
    'openEnchantmentTable', 'opens an enchanting table', /^enchanting_table$/,
    (bot, block) => bot.openEnchantmentTable(block)
  ),
  opener('openAnvil', 'opens an anvil', /anvil$/, (bot, block) => bot.openAnvil(block)),
  long('openVillager', 'opens the window of a villager or wandering trader', [ENTITY], openVillager, 'number of the window'),
  {
    name: 'trades', doc: 'what the open villager trades', args: [WINDOW], returns: '[Trade]', cost: 4, run: trades
  },
  long('trade', 'trades with the open villager; as often as it can without a count',
    [WINDOW, { name: 'index', type: 'integer', min: 0, max: 63 }, { ...COUNT, max: 64, default: undefined, optional: true }],
    trade),
  {
    name: 'enchantments', doc: 'what the open enchanting table offers', args: [WINDOW], returns: '[Enchantment]',
    cost: 2, run: enchantments
  },
  long('enchant', 'enchants what lies in the open table',
    [WINDOW, { name: 'choice', type: 'integer', min: 0, max: 2 }], enchant, 'Item'),
  long('combine', 'joins two stacks in the open anvil',
    [WINDOW, SLOT, { ...SLOT, name: 'other' }, { ...NAME, optional: true }], combine),
  long('rename', 'names a stack in the open anvil', [WINDOW, SLOT, NAME], rename),
  long('moveSlotItem', 'moves a stack of the open window to another slot', [WINDOW, SLOT, { ...SLOT, name: 'to' }],
    inWindow((bot, slot, to) => bot.moveSlotItem(slot, to))),
  long('putAway', 'takes what is in a slot of the open window into the inventory', [WINDOW, SLOT],
    inWindow((bot, slot) => bot.putAway(slot))),
  long('clickWindow', 'clicks on a slot of the open window',
    [WINDOW, { ...SLOT, min: -999 }, { name: 'mouseButton', type: 'integer', min: 0, max: 40 },
      { name: 'mode', type: 'integer', min: 0, max: 4 }],
    inWindow((bot, slot, button, mode) => bot.clickWindow(slot, button, mode))),
  {
    name: 'pressButton', doc: 'presses a button of the open window: the recipe of a stonecutter or loom',
    args: [WINDOW, { name: 'button', type: 'integer', min: 0, max: 127 }], returns: 'nothing', cost: 2, run: press
  },
  {
    name: 'closeWindow', doc: 'closes the open window', args: [WINDOW], returns: 'nothing',
    cost: 1, run: close
  }
];

'use strict';
/** Chests and furnaces: one is open at a time, as in the game. */
const { ActionError, ArgumentError } = require('./check');
const { itemData, middleOf, reachedBlock, stillWanted, turnTo } = require('./api_shared');

const CELL = { name: 'position', type: 'cell' };
const WINDOW = { name: 'window', type: 'integer', min: 0, max: 255 };
const ITEM = { name: 'item', type: 'item' };
const COUNT = { name: 'count', type: 'integer', min: 1, max: 3456, default: 1 };
const FURNACES = ['furnace', 'blast_furnace', 'smoker'];
const FURNACE_SLOTS = ['input', 'fuel', 'output'];

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
  if (!window || window.id !== id) throw new ActionError('this chest or furnace is not open any more');
  return window;
}

function contents(agent, [id]) {
  const window = opened(agent, id);
  return {
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

function close(agent, [id]) {
  const window = agent.bot.currentWindow;
  if (window && window.id === id) agent.bot.closeWindow(window);
}

const long = (name, doc, args, run, returns = 'nothing') =>
  ({ name, doc, args, returns, cost: 2, async: true, inTurn: true, ticks: 400, run });

module.exports = [
  long('openChest', 'opens a chest, barrel, ...', [CELL], openChest, 'number of the window'),
  long(
    'openFurnace', 'opens a furnace, smoker or blast furnace', [CELL], openFurnace, 'number of the window'
  ),
  {
    name: 'contents', doc: 'what an open chest or furnace holds', args: [WINDOW], returns: 'object',
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
  {
    name: 'closeWindow', doc: 'closes the open chest or furnace', args: [WINDOW], returns: 'nothing',
    cost: 1, run: close
  }
];

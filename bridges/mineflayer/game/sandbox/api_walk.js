'use strict';
/** Walking by mineflayer-pathfinder: goals, movements, goto. */
const { Vec3 } = require('vec3');
const { ActionError, ArgumentError } = require('./check');
const { knownEntity, stillWanted } = require('./api_shared');

const XYZ = {
  x: { type: 'number', min: -3e7, max: 3e7, default: 0 },
  y: { type: 'number', min: -4096, max: 4096, default: 0 },
  z: { type: 'number', min: -3e7, max: 3e7, default: 0 }
};
const KINDS = [
  'GoalBlock', 'GoalNear', 'GoalXZ', 'GoalNearXZ', 'GoalY', 'GoalGetToBlock', 'GoalLookAtBlock',
  'GoalBreakBlock', 'GoalPlaceBlock', 'GoalFollow'
];
const ONE = {
  kind: { type: 'choice', of: KINDS },
  ...XYZ,
  range: { type: 'number', min: 0, max: 256, default: 1 },
  entity: { type: 'integer', min: -2147483648, max: 2147483647, optional: true }
};
/** Each node of a search asks every part. */
const MOST_PARTS = 64;
const GOAL = {
  name: 'goal',
  type: 'record',
  fields: {
    ...ONE,
    kind: { type: 'choice', of: [...KINDS, 'GoalCompositeAny', 'GoalCompositeAll', 'GoalInvert'] },
    goals: { type: 'list', max: MOST_PARTS, of: { type: 'record', fields: ONE }, default: [] }
  }
};
const FLAGS = ['canDig', 'allow1by1towers', 'allowParkour', 'allowSprinting', 'allowFreeMotion', 'canOpenDoors',
  'dontCreateFlow', 'dontMineUnderFallingBlock', 'allowEntityDetection'];
const NUMBERS = ['digCost', 'placeCost', 'liquidCost', 'entityCost'];
const MOVEMENTS = {
  name: 'movements',
  type: 'record',
  fields: {
    ...Object.fromEntries(FLAGS.map((name) => [name, { type: 'boolean', optional: true }])),
    ...Object.fromEntries(NUMBERS.map((name) => [name, { type: 'number', min: 0, max: 1000, optional: true }])),
    maxDropDown: { type: 'integer', min: 1, max: 32, optional: true },
    scafoldingBlocks: { type: 'list', max: 64, of: { type: 'item' }, optional: true },
    blocksCantBreak: { type: 'list', max: 512, of: { type: 'block' }, optional: true }
  }
};
/** Blocks that a path may not lead through, or through so many of them. */
const SPARE = {
  name: 'spare',
  type: 'record',
  fields: { block: { type: 'block' }, most: { type: 'integer', min: 0, max: 64 } },
  optional: true
};
const TICKS = { name: 'ticks', type: 'integer', min: 1, max: 12000, default: 2400 };

/**
 * Milliseconds of search per tick: about 250 nodes on the clock of a world (paths.js), which take
 * some 10 ms. With fewer an agent walks to and fro: it follows the best path so far, and begins to
 * dig, while the search goes on. In real time it is how long others in the process may have to wait.
 */
const SEARCH_MS = 5;
const SEARCH_REAL_MS = 25;

/** Required late: the clock must be replaced before this library keeps a reference to it. */
function pathfinder({ bot, embedded }) {
  const library = require('mineflayer-pathfinder');
  if (!bot.pathfinder) bot.loadPlugin(library.pathfinder);
  bot.pathfinder.tickTimeout = embedded ? SEARCH_MS : SEARCH_REAL_MS;
  return library;
}

function makeGoal(agent, { kind, x, y, z, range, entity, goals: parts = [] }) {
  const { bot } = agent;
  const { goals } = pathfinder(agent);
  const [first, ...others] = parts.map((part) => makeGoal(agent, part));
  if (/Composite|Invert/.test(kind) && !first) throw new ArgumentError(`${kind}: expected goals, got none`);
  switch (kind) {
    case 'GoalCompositeAny':
    case 'GoalCompositeAll': return new goals[kind]([first, ...others]);
    case 'GoalInvert': return new goals.GoalInvert(first);
    // The library's own GoalBreakBlock fails; it means the same.
    case 'GoalBreakBlock':
    case 'GoalLookAtBlock': return new goals.GoalLookAtBlock(new Vec3(x, y, z).floor(), bot.world);
    case 'GoalPlaceBlock': return new goals.GoalPlaceBlock(new Vec3(x, y, z), bot.world, { range });
    case 'GoalNear': return new goals.GoalNear(x, y, z, range);
    case 'GoalXZ': return new goals.GoalXZ(x, z);
    case 'GoalNearXZ': return new goals.GoalNearXZ(x, z, range);
    case 'GoalY': return new goals.GoalY(y);
    case 'GoalGetToBlock': return new goals.GoalGetToBlock(x, y, z);
    case 'GoalFollow': return new goals.GoalFollow(knownEntity(agent, entity ?? NaN), range);
    default: return new goals.GoalBlock(x, y, z);
  }
}

/** Ends the walk now: no goal, no keys. */
function halt(bot) {
  if (!bot.pathfinder) return;
  bot.pathfinder.setGoal(null);
}

/** Bots with path settings set by a program. */
const changed = new WeakSet();

/** Ends the walk and restores the default path settings. */
function letGo(bot) {
  halt(bot);
  if (!changed.delete(bot)) return;
  const { Movements } = require('mineflayer-pathfinder');
  bot.pathfinder.setMovements(new Movements(bot));
}

const REASONS = {
  NoPath: 'no path leads there', Timeout: 'no path was found in time',
  PathStopped: 'the walk was stopped', GoalChanged: 'another goal was set'
};

/**
 * Walks as `walk` does and digs at most `most` blocks of a kind on the way; returns their places, and
 * why the walk failed, if it did.
 */
async function sparing(bot, { block: { id, name }, most }, walk) {
  const { movements } = bot.pathfinder;
  const { blocksCantBreak, scafoldingBlocks } = movements;
  const wasSpared = blocksCantBreak.has(id);
  const dug = [];
  const count = ({ type, position: { x, y, z } }) => {
    if (type !== id) return;
    dug.push([x, y, z]);
    if (dug.length >= most) halt(bot);
  };
  if (most === 0) blocksCantBreak.add(id);
  // What is collected is not put down again.
  const drops = [name, ...(bot.registry.blockLoot?.[name]?.drops ?? []).map(({ item }) => item)];
  movements.scafoldingBlocks = scafoldingBlocks.filter((item) => !drops.includes(bot.registry.items[item].name));
  bot.on('dug', count);
  try {
    await walk();
    return { dug, failed: '' };
  } catch (error) {
    if (error instanceof ActionError) return { dug, failed: error.message };
    throw error;
  } finally {
    bot.off('dug', count);
    movements.scafoldingBlocks = scafoldingBlocks;
    if (!wasSpared) blocksCantBreak.delete(id);
  }
}

async function goto(agent, [goalData, , spare], signal) {
  const { bot } = agent;
  pathfinder(agent);
  if (!spare) return walkTo(agent, goalData, signal);
  return sparing(bot, spare, () => walkTo(agent, goalData, signal));
}

async function walkTo(agent, goalData, signal) {
  const { bot } = agent;
  const goal = makeGoal(agent, goalData);
  stillWanted(signal);
  signal.addEventListener('abort', () => halt(bot));
  try {
    await bot.pathfinder.goto(goal);
  } catch (error) {
    throw new ActionError(REASONS[error?.name] ?? String(error?.message ?? error));
  }
  // The library also ends without an error when the path it found is empty.
  const here = bot.entity.position.floored();
  const { x, y, z, kind } = goalData;
  const isThere = [here, here.offset(0, 1, 0), here.offset(0, -1, 0)].some((cell) => goal.isEnd(cell));
  const what = goalData.goals?.length > 0 ? `where ${kind} holds` : `${x} ${y} ${z}`;
  if (!isThere && kind !== 'GoalFollow') throw new ActionError(`no path leads to ${what}`);
}

function setGoal(agent, [goal, dynamic]) {
  pathfinder(agent);
  agent.bot.pathfinder.setGoal(goal ? makeGoal(agent, goal) : null, dynamic);
}

function setMovements(agent, [settings]) {
  const { bot } = agent;
  const { Movements } = pathfinder(agent);
  const movements = new Movements(bot);
  for (const [name, value] of Object.entries(settings)) {
    if (value === undefined) continue;
    if (name === 'scafoldingBlocks') movements.scafoldingBlocks = value.map(({ id }) => id);
    else if (name === 'blocksCantBreak') for (const { id } of value) movements.blocksCantBreak.add(id);
    else movements[name] = value;
  }
  bot.pathfinder.setMovements(movements);
  changed.add(bot);
}

function walking({ bot }) {
  const { pathfinder: finder } = bot;
  return {
    moving: Boolean(finder?.isMoving()),
    mining: Boolean(finder?.isMining()),
    building: Boolean(finder?.isBuilding()),
    goal: Boolean(finder?.goal)
  };
}

module.exports = {
  entries: [
    {
      name: 'goto', doc: 'walks to a goal; ends when there, without a path, or after `ticks`',
      args: [GOAL, TICKS, SPARE], returns: 'object', cost: 20, async: true, ticks: ([, ticks]) => ticks,
      run: goto
    },
    {
      name: 'setGoal', doc: 'walks to a goal in the background; null stops',
      args: [{ ...GOAL, optional: true }, { name: 'dynamic', type: 'boolean', default: false }],
      returns: 'nothing', cost: 20, run: setGoal
    },
    {
      name: 'stopPath', doc: 'ends the walk', args: [], returns: 'nothing', cost: 1,
      run: ({ bot }) => halt(bot)
    },
    {
      name: 'setMovements', doc: 'how paths may lead', args: [MOVEMENTS], returns: 'nothing', cost: 20,
      run: setMovements
    },
    {
      name: 'walking', doc: 'whether the agent is walking to a goal', args: [], returns: 'object', cost: 1,
      run: walking
    }
  ],
  letGo,
  pathfinder
};

'use strict';
/** What programs may observe: themselves, blocks and entities that their senses allow, the time. */
const {
  blockData, coordinates, entityData, seenBlock, seesBlock, seesEntity
} = require('./api_shared');
const cursor = require('../actions/cursor');
const { findCells, workOf } = require('./find');

const CELL = { name: 'position', type: 'cell' };
const MAX_DISTANCE = 64;
const MAX_BLOCKS = 256;
const MAX_ENTITIES = 128;

function self(agent) {
  const { bot } = agent;
  const { entity } = bot;
  const digs = bot.targetDigBlock && seesBlock(agent, bot.targetDigBlock.position) ? bot.targetDigBlock : null;
  return {
    ...entityData(entity),
    eyeHeight: entity.eyeHeight ?? 1.62,
    isInWater: Boolean(entity.isInWater),
    isInLava: Boolean(entity.isInLava),
    isCollidedHorizontally: Boolean(entity.isCollidedHorizontally),
    username: bot.username,
    health: bot.health ?? 20,
    food: bot.food ?? 20,
    foodSaturation: bot.foodSaturation ?? 0,
    oxygenLevel: bot.oxygenLevel ?? 20,
    experience: { level: 0, points: 0, progress: 0, ...bot.experience },
    isSleeping: Boolean(bot.isSleeping),
    quickBarSlot: bot.quickBarSlot ?? 0,
    targetDigBlock: digs ? blockData(digs) : null,
    usingHeldItem: Boolean(bot.usingHeldItem),
    vehicle: bot.vehicle?.id ?? null
  };
}

function clock(agent) {
  const { bot } = agent;
  const { timeOfDay = 0, day = 0, age = 0, isDay = true, moonPhase = 0 } = bot.time ?? {};
  return {
    time: { timeOfDay, day, age, isDay, moonPhase, time: age },
    isRaining: Boolean(bot.isRaining),
    thunderState: bot.thunderState ?? 0,
    tick: agent.now?.() ?? 0,
    game: {
      gameMode: bot.game?.gameMode ?? 'survival',
      difficulty: bot.game?.difficulty ?? 'normal',
      dimension: bot.game?.dimension ?? 'overworld'
    }
  };
}

function lookAtBlock(agent, [cell]) {
  const block = agent.bot.blockAt(cell);
  return block && seesBlock(agent, cell) ? blockData(block) : null;
}

/** Returns cells of visible blocks of some kinds, nearest first. */
function findBlocks(agent, [{ matching, maxDistance, count, point }]) {
  return findCells(agent.bot, {
    kinds: [...new Set(matching)],
    maxDistance,
    count,
    point: point ?? agent.bot.entity.position,
    opaque: agent.senses?.limits?.line_of_sight ? agent.senses.opaque : undefined,
    sight: agent.senses?.sight,
    sees: (cell) => seesBlock(agent, cell)
  }).map(coordinates);
}

function visibleEntities(agent, [{ maxDistance, count, name }]) {
  const { bot } = agent;
  const here = bot.entity.position;
  const near = [];
  for (const entity of Object.values(bot.entities)) {
    if (entity === bot.entity || (name && entity.name !== name.name)) continue;
    const far = entity.position.distanceTo(here);
    if (far <= maxDistance) near.push({ entity, far });
  }
  near.sort((a, b) => a.far - b.far || a.entity.id - b.entity.id);
  const out = [];
  for (const { entity } of near) {
    if (!seesEntity(agent, entity)) continue;
    out.push(entityData(entity));
    if (out.length === count) break;
  }
  return out;
}

function oneEntity(agent, [id]) {
  const entity = agent.bot.entities[id];
  return entity && seesEntity(agent, entity) ? entityData(entity) : null;
}

/** Names of the players, as every client knows them; positions only of those in sight. */
function players(agent) {
  const { bot } = agent;
  return Object.values(bot.players).map(({ username, entity }) => {
    const inSight = entity && (entity === bot.entity || seesEntity(agent, entity));
    return { username, entity: inSight ? entity.id : null };
  });
}

function blockAtCursor(agent, [maxDistance]) {
  // Nothing is before it, so it is seen, be it by a corner only.
  const far = Math.min(maxDistance, agent.senses?.sight ?? Infinity);
  const block = cursor.blockAtCursor(agent.bot, far)?.block;
  return block ? blockData(block) : null;
}

function entityAtCursor(agent, [maxDistance]) {
  const entity = cursor.bodyAtCursor(agent.bot, maxDistance);
  return entity && seesEntity(agent, entity) ? entityData(entity) : null;
}

const RANGE = { type: 'number', min: 0, max: MAX_DISTANCE };
const FIND = {
  name: 'options',
  type: 'record',
  fields: {
    matching: { type: 'list', max: 2000, of: { type: 'block' } },
    maxDistance: { ...RANGE, default: 16 },
    count: { type: 'integer', min: 1, max: MAX_BLOCKS, default: 1 },
    point: { type: 'point', optional: true }
  }
};
const NEAR = {
  name: 'options',
  type: 'record',
  fields: {
    maxDistance: { ...RANGE, max: 256, default: 256 },
    count: { type: 'integer', min: 1, max: MAX_ENTITIES, default: MAX_ENTITIES },
    name: { type: 'entity', optional: true }
  }
};
const REACH = { name: 'maxDistance', type: 'number', min: 0, max: MAX_DISTANCE, default: 5 };

module.exports = [
  {
    name: 'self', doc: 'the agent itself: place, look, health, food, ...', args: [], returns: 'object',
    cost: 1, run: self
  },
  { name: 'clock', doc: 'time, weather, game mode, tick', args: [], returns: 'object', cost: 1, run: clock },
  {
    name: 'blockAt', doc: 'a block the senses allow; null otherwise', args: [CELL],
    returns: 'Block | null', cost: 1, run: lookAtBlock
  },
  {
    name: 'findBlocks', doc: 'cells of blocks the senses allow, nearest first; air at most 16 blocks away', args: [FIND],
    returns: '[[x, y, z]]', cost: 40, run: findBlocks, scans: true,
    work: ([query]) => workOf(query)
  },
  {
    name: 'entities', doc: 'entities the senses allow, nearest first', args: [NEAR], returns: '[Entity]',
    cost: 5, run: visibleEntities, scans: true
  },
  {
    name: 'entity', doc: 'one entity by its number; null when gone or out of sight',
    args: [{ name: 'id', type: 'integer', min: -2147483648, max: 2147483647 }], returns: 'Entity | null',
    cost: 1, run: oneEntity
  },
  {
    name: 'players', doc: 'players on the server', args: [], returns: '[{username, entity}]', cost: 1,
    run: players
  },
  {
    name: 'blockAtCursor', doc: 'the block looked at', args: [REACH], returns: 'Block | null', cost: 5,
    run: blockAtCursor
  },
  {
    name: 'entityAtCursor', doc: 'the entity looked at', args: [{ ...REACH, default: 3.5 }],
    returns: 'Entity | null', cost: 5, run: entityAtCursor
  },
  {
    name: 'canSeeBlock', doc: 'whether a block is in line of sight', args: [CELL], returns: 'boolean',
    cost: 5,
    run: (agent, [cell]) => seesBlock(agent, cell) && Boolean(agent.bot.canSeeBlock(seenBlock(agent, cell)))
  },
  {
    name: 'canDigBlock', doc: 'whether a block can be dug from here', args: [CELL], returns: 'boolean',
    cost: 1,
    run: (agent, [cell]) => seesBlock(agent, cell) && Boolean(agent.bot.canDigBlock(seenBlock(agent, cell)))
  },
  {
    name: 'digTime', doc: 'milliseconds to dig a block with what is held', args: [CELL],
    returns: 'number | null', cost: 1,
    run: (agent, [cell]) => finiteOrNull(agent.bot.digTime(seenBlock(agent, cell)))
  }
];

function finiteOrNull(value) {
  return Number.isFinite(value) ? value : null;
}

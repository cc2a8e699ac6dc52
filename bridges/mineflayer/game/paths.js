'use strict';
/**
 * Searches for paths by mineflayer-pathfinder, on the world's clock and faster: all that the
 * library asks about a cell is kept while it searches, in which nothing changes. It finds the same
 * paths as without.
 */
const { currentContext } = require('./context');
const { Movements } = require('mineflayer-pathfinder');
const AStar = require('mineflayer-pathfinder/lib/astar');
const prismarineBlock = require('prismarine-block');

/** Milliseconds that one node of a path search takes on the world's clock: 2,000 nodes per tick. */
const SEARCH_NODE_MS = 0.02;

/** Replaces a method of the library by one that is given the former method. */
function replace(owner, name, make) {
  owner.prototype[name] = make(owner.prototype[name]);
}

/** Returns a number that no other cell within 32,768 blocks has. */
const keyOf = (x, y, z) => ((x & 0xffff) * 0x10000 + (z & 0xffff)) * 0x1000 + ((y + 2048) & 0xfff);

replace(AStar, 'compute', (search) => function compute() {
  const { movements } = this;
  const context = currentContext();
  movements.cells = new Map();
  movements.crowd = new Set(Object.keys(movements.entityIntersections).map((at) => keyOf(...at.split(',').map(Number))));
  movements.tools = new Map();
  try {
    if (context === null) return search.call(this);
    return context.metering(SEARCH_NODE_MS / 2, () => search.call(this)); // read twice per node
  } finally {
    movements.cells = null;
  }
});

/**
 * Lets a bot look for the best tool once per state of a block while it searches. For a block that was
 * unloaded since its path was found there is none: the library would throw out of the tick; so it
 * goes on to dig, which fails, and searches again.
 */
function rememberTools(bot) {
  const { bestHarvestTool } = bot.pathfinder;
  bot.pathfinder.bestHarvestTool = (block) => {
    if (block === null) return null;
    const { cells, tools } = bot.pathfinder.movements;
    if (!cells) return bestHarvestTool(block);
    if (!tools.has(block.stateId)) tools.set(block.stateId, bestHarvestTool(block));
    return tools.get(block.stateId);
  };
}

/** A movements object that finds stone in every cell. */
function rocky(movements) {
  const { registry } = movements.bot;
  const Block = prismarineBlock(registry);
  const { minStateId, id } = registry.blocksByName.stone;
  const blockAt = (position) => {
    const block = minStateId === undefined ? new Block(id, 0, 0) : Block.fromStateId(minStateId, 0);
    block.position = position;
    return block;
  };
  return Object.assign(Object.create(movements), { bot: { blockAt } });
}

/**
 * Plans paths as one who does not see into the rock: a block between six opaque ones counts as
 * stone, whatever it is. (The library knows the shape of all loaded caves: to search only what is in
 * sight would find few paths.)
 */
replace(Movements, 'getBlock', (getBlock) => {
  function look(movements, pos, dx, dy, dz) {
    const { senses } = movements.bot;
    if (pos && senses?.limits.line_of_sight
      && senses.isBuried(Math.floor(pos.x) + dx, Math.floor(pos.y) + dy, Math.floor(pos.z) + dz)) {
      movements.rock ??= rocky(movements);
      return getBlock.call(movements.rock, pos, dx, dy, dz);
    }
    return getBlock.call(movements, pos, dx, dy, dz);
  }

  return function (pos, dx, dy, dz) {
    // From a place that is not whole the same cell has another height.
    if (!this.cells || !pos || !Number.isInteger(pos.y)) return look(this, pos, dx, dy, dz);
    const key = keyOf(Math.floor(pos.x) + dx, pos.y + dy, Math.floor(pos.z) + dz);
    let block = this.cells.get(key);
    if (block === undefined) {
      block = look(this, pos, dx, dy, dz);
      // Of what is not loaded the library answers what depends on where it is seen from.
      if (block.position) this.cells.set(key, block);
      block.top = block.height;
    }
    block.height = block.top; // the library raises it where it would put a block
    return block;
  };
});

replace(Movements, 'safeToBreak', (safeToBreak) => function (block) {
  if (!this.cells || !block.position) return safeToBreak.call(this, block);
  block.mayBreak ??= Boolean(safeToBreak.call(this, block));
  return block.mayBreak;
});

replace(Movements, 'safeOrBreak', (safeOrBreak) => function (block, toBreak) {
  if (!this.cells || !block.position) return safeOrBreak.call(this, block, toBreak);
  if (block.labour === undefined) {
    const broken = [];
    block.labour = safeOrBreak.call(this, block, broken);
    block.isBroken = broken.length > 0;
  }
  if (block.isBroken) toBreak.push(block.position);
  return block.labour;
});

replace(Movements, 'getNumEntitiesAt', (getNumEntitiesAt) => function (pos, dx, dy, dz) {
  // The library has texts for keys.
  if (this.cells && pos && !this.crowd.has(keyOf(pos.x + dx, pos.y + dy, pos.z + dz))) return 0;
  return getNumEntitiesAt.call(this, pos, dx, dy, dz);
});

module.exports = { Movements, rememberTools };

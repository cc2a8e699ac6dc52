'use strict';
/**
 * The blocks in sight of an agent that plays by programs, in words: kinds, how many, and the nearest.
 *
 * Kinds of which there are few (chests, ores, crops, logs, ...) are searched for; of the ground and
 * other masses, lines of sight in all directions tell the nearest, as their number says little.
 */

const { findCells, isMass, isAir } = require('../sandbox/find');

const DISTANCE = 16; // of a search
const FAR = 32; // of a line of sight
const MOST_CELLS = 128;
const MOST_KINDS = 24;
const STEP = 0.5; // blocks along a line
/** Directions of lines of sight, evenly over the sphere: the spiral of Fibonacci. */
const LINES = Array.from({ length: 96 }, (_, i) => {
  const y = 1 - (2 * i + 1) / 96;
  const turn = i * Math.PI * (3 - Math.sqrt(5));
  const flat = Math.sqrt(1 - y * y);
  return [flat * Math.cos(turn), y, flat * Math.sin(turn)];
});

const kindsByRegistry = new WeakMap();

/** Returns the registry's blocks that are neither air nor masses. */
function fewKinds(registry) {
  let found = kindsByRegistry.get(registry);
  if (found === undefined) {
    found = registry.blocksArray.filter((kind) => !isAir(kind) && !isMass(kind));
    kindsByRegistry.set(registry, found);
  }
  return found;
}

/** Yields the cell that each line of sight ends at, if one does. */
function* ends(agent, tables) {
  const { senses } = agent;
  const eye = senses.eye();
  const reach = Math.min(FAR, senses.sight);
  for (const [x, y, z] of LINES) {
    for (let far = STEP; far <= reach; far += STEP) {
      const cell = eye.offset(x * far, y * far, z * far).floored();
      const entry = tables.states[senses.stateAt(cell.x, cell.y, cell.z)];
      if (entry && entry.id !== 0) {
        // Steps may pass the corner of a block that hides this one.
        if (senses.canSeeBlock(cell)) yield cell;
        break;
      }
    }
  }
}

/**
 * Returns `[{name, count, nearest, distance}]` of blocks in sight, the nearest kind first: `count` is of
 * those found, 0 for a mass.
 */
function blocksInSight(agent, tables) {
  const { bot, senses } = agent;
  const eye = senses.eye();
  const kinds = fewKinds(bot.registry);
  const found = new Map();
  const add = (cell, counts) => {
    const { name } = tables.states[senses.stateAt(cell.x, cell.y, cell.z)];
    const distance = eye.distanceTo(cell.offset(0.5, 0.5, 0.5));
    const known = found.get(name);
    if (known === undefined || distance < known.distance) {
      found.set(name, { name, count: (known?.count ?? 0) + counts, nearest: [cell.x, cell.y, cell.z], distance });
    } else known.count += counts;
  };
  if (kinds.every(({ minStateId }) => minStateId !== undefined)) {
    const cells = findCells(bot, {
      kinds, maxDistance: Math.min(DISTANCE, senses.sight), count: MOST_CELLS, point: bot.entity.position,
      opaque: senses.limits.line_of_sight ? senses.opaque : undefined, sight: senses.sight,
      sees: (cell) => senses.canSeeBlock(cell)
    });
    for (const cell of cells) add(cell, 1);
  }
  const listed = new Set(found.keys());
  for (const cell of ends(agent, tables)) {
    const entry = tables.states[senses.stateAt(cell.x, cell.y, cell.z)];
    if (!listed.has(entry.name)) add(cell, 0);
  }
  return [...found.values()].sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1))
    .slice(0, MOST_KINDS)
    .map((each) => ({ ...each, distance: Math.round(each.distance * 10) / 10 }));
}

module.exports = { blocksInSight };

'use strict';
/**
 * How agents act, by the name of the layout: `makeActor(name, agent)` returns an object with
 *   apply(row)     takes one action, the numbers or texts of its columns for this agent: {column: ..},
 *                  and does what of it belongs before the first tick; it may return a promise, after
 *                  which the tick may come. Throws ActionError for what is no action
 *   tick()         called after every game tick
 *   codeState()    of programs, {running, ticks, error, info}
 *   close()
 * and `columnsOf(name)` its columns: {name: {dtype, count, sizes}}; dtype 'text' for one text per
 * agent; `sizes` says how many values each number has, from 0; `most` the largest absolute value of a float.
 */
const { ActionError } = require('../decode');
const { LowLevel, SIZES, CRAFTABLES } = require('./low_level');
const { Human, Mouse, KEYS, MOUSE_KEYS, BINS, FARTHEST } = require('./human');
const { Code } = require('./code');
const { Compact, NAMES: COMPACT } = require('./compact');

const LAYOUTS = {
  low_level: { action: { dtype: 'int64', count: 8, sizes: SIZES } },
  human: {
    keys: { dtype: 'int8', count: KEYS.length, sizes: KEYS.map(() => 2) },
    camera: { dtype: 'int64', count: 2, sizes: [BINS, BINS] }
  },
  mouse: {
    keys: { dtype: 'int8', count: MOUSE_KEYS.length, sizes: MOUSE_KEYS.map(() => 2) },
    camera: { dtype: 'float32', count: 2, most: FARTHEST }
  },
  code: {
    kind: { dtype: 'int64', count: 1, sizes: [2] },
    code: { dtype: 'text', count: 1 }
  },
  compact: { action: { dtype: 'int64', count: 1, sizes: [COMPACT.length] } }
};
/** What a person does who plays another player of the world (gameworld.js); no layout of agents. */
LAYOUTS.person = {
  'person/keys': LAYOUTS.human.keys, 'person/camera': LAYOUTS.human.camera,
  'person/say': { dtype: 'text', count: 1 }
};
const ACTORS = { low_level: LowLevel, human: Human, mouse: Mouse, code: Code, compact: Compact };
/** Names of the values of a column, where they have names. */
const NAMES = {
  action: ['move', 'strafe', 'posture', 'pitch', 'yaw', 'do', 'craft', 'slot'],
  camera: ['pitch', 'yaw'],
  keys: MOUSE_KEYS
};

/** @throws {ActionError} naming the first number that is outside of its range */
function checkRow(layout, row) {
  for (const [name, { sizes, count, most }] of Object.entries(layout)) {
    if (most !== undefined) {
      const wrong = row[name].find((value) => !(Math.abs(value) <= most));
      if (wrong === undefined) continue;
      throw new ActionError(`${name}: expected numbers from -${most} to ${most}, got ${wrong}`);
    }
    if (sizes === undefined) {
      if (typeof row[name] !== 'string') throw new ActionError(`${name}: expected a text`);
      continue;
    }
    const values = count === 1 ? [row[name]] : row[name];
    sizes.forEach((size, i) => {
      const value = values?.[i];
      if (Number.isInteger(value) && value >= 0 && value < size) return;
      const place = NAMES[name] === undefined ? name : `${name}/${NAMES[name][i]}`;
      throw new ActionError(`${place}: expected a whole number from 0 to ${size - 1}, got ${value}`);
    });
  }
}

/** Returns the columns of a layout. @throws {Error} for a name that is none */
function columnsOf(name) {
  if (name in LAYOUTS) return LAYOUTS[name];
  throw new Error(`actions: expected one of ${Object.keys(ACTORS).join(', ')}, got ${name}`);
}

/** Returns the actor of an agent in a layout. */
function makeActor(name, agent) {
  const layout = columnsOf(name);
  const actor = new ACTORS[name](agent);
  const apply = actor.apply.bind(actor);
  actor.apply = (row) => {
    checkRow(layout, row);
    return apply(row);
  };
  return actor;
}

module.exports = { columnsOf, makeActor, checkRow, CRAFTABLES, KEYS };

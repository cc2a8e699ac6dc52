'use strict';

/**
 * A command of plain words as data, for tests: names, numbers and block states, but no selector
 * with conditions, no tags and no /execute. Those of users are parsed, and checked, by
 * bridges/mineflayer/commands.py; both follow the forms of commands.json.
 */

const { aliases, commands } = require('../commands.json');

const WIDTHS = { block_pos: 3, position: 3, rotation: 2, column: 2, angle: 1 };
const coordinate = (word) => {
  const sign = /^[~^]/.test(word) ? word[0] : '';
  return [sign, Number(word.slice(sign.length))];
};
const block = (word) => {
  const [, given, inside] = /^([^[]*)(?:\[(.*)\])?$/.exec(word);
  const pairs = inside ? inside.split(',').map((part) => part.split('=')) : [];
  return { name: given, properties: Object.fromEntries(pairs) };
};
const target = (word) => {
  if (word.includes('[')) return undefined;
  return word[0] === '@' ? { select: word[1] } : { player: word };
};
const whole = (word) => (/^-?\d+$/.test(word) ? Number(word) : undefined);

/** How a word becomes the value of a type; undefined where it is none. */
const VALUES = {
  block,
  filter: block,
  item: (word) => ({ name: word.replace(/^minecraft:/, '') }),
  players: target,
  entities: target,
  entity: target,
  int: whole,
  time: whole,
  float: Number,
  bool: (word) => word === 'true',
  creature_nbt: () => undefined,
  flag_rule: (word) => (word === 'randomTickSpeed' ? undefined : word),
};

function argument(words, type, parameters) {
  const width = WIDTHS[type];
  if (width) {
    const values = words.splice(0, width).map(coordinate);
    return values.length < width || values.some(([, n]) => Number.isNaN(n)) ? undefined : values;
  }
  const word = words.shift();
  if (type === 'choice') return parameters.split('|').includes(word) ? word : undefined;
  return (VALUES[type] ?? String)(word);
}

/** Returns the arguments of the words if they fit a form, else null. */
function fit(form, given) {
  const words = [...given];
  const args = {};
  for (const [, opens, name, type, parameters] of form.matchAll(/(\[)?(?:(\w+):)?(\w+)(?:\(([^)]*)\))?/g)) {
    if (words.length === 0) return opens ? args : null;
    if (name) args[name] = argument(words, type, parameters);
    else if (words.shift() !== type) return null;
    if (name && args[name] === undefined) return null;
  }
  return words.length ? null : args;
}

/** Returns the command of a line such as `/give a0 stone 3`. */
function fromWords(line) {
  const [given, ...words] = line.replace(/^\//, '').trim().split(/\s+/);
  const name = aliases[given] ?? given;
  for (const form of commands[name] ?? []) {
    const args = fit(form, words);
    if (args) return { name, args };
  }
  throw new Error(`no command of plain words: ${line}`);
}

module.exports = { fromWords };

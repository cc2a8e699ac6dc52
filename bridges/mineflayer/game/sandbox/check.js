'use strict';
/**
 * Checks of what programs pass to the host: plain data, each value against a declared type, so that
 * nothing unchecked reaches mineflayer. Messages name the position of the error, what was expected
 * and, for names, the nearest valid ones.
 */
const { Vec3 } = require('vec3');

/** A call with invalid arguments; its message goes to the program. */
class ArgumentError extends Error {
  constructor(message) {
    super(message);
    this.name = 'ArgumentError';
  }
}

/** An action that the game did not allow; its message goes to the program. */
class ActionError extends Error {
  constructor(message) {
    super(message);
    this.name = 'ActionError';
  }
}

/** Returns the edit distance of two short texts. */
function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(row[j] + 1, next[j - 1] + 1, change));
    }
    row = next;
  }
  return row[b.length];
}

/**
 * Returns up to `count` of the valid names, the most similar first; ties in alphabetical order. A
 * shared word counts as four letters: raw_iron is nearer to iron_ore than to arrow.
 */
function nearest(name, valid, count = 3) {
  const wanted = String(name).slice(0, 40).toLowerCase();
  const words = wanted.split(/[^a-z]+/).filter((word) => word.length > 2);
  return [...valid]
    .map((other) => {
      const shared = words.filter((word) => other.toLowerCase().includes(word)).length;
      return { other, far: distance(wanted, other.toLowerCase()) - 4 * shared };
    })
    .sort((a, b) => a.far - b.far || (a.other < b.other ? -1 : 1))
    .slice(0, count)
    .map(({ other }) => other);
}

/** Returns a value as text for a message: at most 60 characters. */
function shown(value) {
  if (value === undefined || value === null) return 'nothing';
  const text = typeof value === 'string' ? JSON.stringify(value) : JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

function expect(ok, where, what, value) {
  if (!ok) throw new ArgumentError(`${where}: expected ${what}, got ${shown(value)}`);
}

function checkNumber(spec, value, where) {
  const kind = spec.type === 'integer' ? 'a whole number' : 'a number';
  const range = spec.min === undefined ? '' : ` from ${spec.min} to ${spec.max}`;
  const right = spec.type === 'integer' ? Number.isInteger(value) : Number.isFinite(value);
  const inside = spec.min === undefined || (value >= spec.min && value <= spec.max);
  expect(right && inside, where, kind + range, value);
  return value;
}

/** Coordinates of a world: within its border, and within any possible height. */
function checkPoint(spec, value, where) {
  const right = Array.isArray(value) && value.length === 3 && value.every(Number.isFinite);
  expect(right, where, 'a position {x, y, z} of finite numbers', value);
  const [x, y, z] = value;
  const inside = Math.abs(x) <= 3e7 && Math.abs(z) <= 3e7 && Math.abs(y) <= 4096;
  expect(inside, where, 'a position inside the world', value);
  const point = new Vec3(x, y, z);
  return spec.type === 'cell' ? point.floored() : point;
}

const REGISTRIES = {
  block: ['blocksByName', 'blocks'], item: ['itemsByName', 'items'], entity: ['entitiesByName', 'entities']
};

/** Returns the registry's record of a block, item or entity given by name or number. */
function checkNamed(spec, value, where, registry) {
  const [byName, byNumber] = REGISTRIES[spec.type];
  if (typeof value === 'string') {
    const name = value.replace(/^minecraft:/, '');
    if (Object.hasOwn(registry[byName], name)) return registry[byName][name];
    const near = nearest(name, Object.keys(registry[byName])).join(', ');
    const version = registry.version?.minecraftVersion ?? 'this version';
    throw new ArgumentError(`${where}: no ${spec.type} is called ${shown(value)} in ${version}; nearest: ${near}`);
  }
  const known = Number.isInteger(value) && Object.hasOwn(registry[byNumber], value);
  expect(known, where, `the name or number of a kind of ${spec.type}`, value);
  return registry[byNumber][value];
}

function checkText(spec, value, where) {
  expect(typeof value === 'string', where, 'a text', value);
  expect(value.length <= spec.max, where, `a text of at most ${spec.max} characters`, value);
  return value;
}

function checkRecord(spec, value, where, registry) {
  const right = value !== null && typeof value === 'object' && !Array.isArray(value);
  expect(right, where, `an object with ${Object.keys(spec.fields).join(', ')}`, value);
  for (const name of Object.keys(value)) {
    if (Object.hasOwn(spec.fields, name)) continue;
    const near = nearest(name, Object.keys(spec.fields)).join(', ');
    throw new ArgumentError(`${where}: no field is called ${shown(name)}; nearest: ${near}`);
  }
  const out = {};
  for (const [name, field] of Object.entries(spec.fields)) {
    const given = Object.hasOwn(value, name) ? value[name] : undefined;
    out[name] = check(field, given, `${where}.${name}`, registry);
  }
  return out;
}

function checkList(spec, value, where, registry) {
  const right = Array.isArray(value) && value.length <= spec.max;
  expect(right, where, `a list of at most ${spec.max}`, value);
  return value.map((one, i) => check(spec.of, one, `${where}[${i}]`, registry));
}

function checkChoice(spec, value, where) {
  if (typeof value === 'string' && spec.of.includes(value)) return value;
  const isLong = typeof value === 'string' && spec.of.length > 6;
  const valid = isLong ? `${spec.of.length} names` : spec.of.join(', ');
  const near = isLong ? `; nearest: ${nearest(value, spec.of).join(', ')}` : '';
  throw new ArgumentError(`${where}: expected one of ${valid}, got ${shown(value)}${near}`);
}

function checkBoolean(_spec, value, where) {
  expect(typeof value === 'boolean', where, 'true or false', value);
  return value;
}

const CHECKS = {
  number: checkNumber,
  integer: checkNumber,
  boolean: checkBoolean,
  text: checkText,
  choice: checkChoice,
  point: checkPoint,
  cell: checkPoint,
  block: checkNamed,
  item: checkNamed,
  entity: checkNamed,
  list: checkList,
  record: checkRecord
};

/**
 * Returns a value of the type `spec` asks for: a number, text or boolean, a Vec3 (point, cell), a
 * record of the registry (block, item, entity), a list or a plain object; the default where nothing came.
 * @throws {ArgumentError}
 */
function check(spec, value, where, registry) {
  if (value === undefined || value === null) {
    if ('default' in spec) return spec.default;
    if (spec.optional) return undefined;
  }
  return CHECKS[spec.type](spec, value, where, registry);
}

/** Returns the checked arguments of a call of an API entry. @throws {ArgumentError} */
function checkArguments(entry, values, registry) {
  if (!Array.isArray(values)) throw new ArgumentError(`${entry.name}: expected a list of arguments`);
  if (values.length > entry.args.length) {
    throw new ArgumentError(`${entry.name} takes ${entry.args.length} arguments, got ${values.length}`);
  }
  return entry.args.map((spec, i) => check(spec, values[i], `${entry.name}(${spec.name})`, registry));
}

module.exports = { ActionError, ArgumentError, check, checkArguments, nearest };

// The boundary of the sandbox, seen from inside: calls of the host, errors, random numbers, time, the console.
// Each file of this folder is the body of a function of `guest`, which they share (engine.js).
// Copies of what a program can change: a program that changes it affects only itself.
const { hostCall, settings } = guest;
const { stringify, parse } = JSON;
const { apply } = Reflect;
const PlainError = Error;
const { slice } = String.prototype;
const { freeze, defineProperty } = Object;
// A program's own formatter of stacks would run while its line is determined.
defineProperty(PlainError, 'prepareStackTrace', { value: undefined });
const cut = (text, length) => apply(slice, `${text}`, [0, length]);

/** The error of a call with invalid arguments. */
class ArgumentError extends TypeError {}
/** The error of a call that the game did not allow. */
class ActionError extends PlainError {}
for (const type of [ArgumentError, ActionError]) {
  defineProperty(type.prototype, 'name', { value: type.name });
}

/** Returns the error of a pair [type, message] sent by the host. */
function errorOf(pair) {
  const type = pair[0] === 'ArgumentError' ? ArgumentError : ActionError;
  const error = new type(pair[1]);
  if (type.name !== pair[0]) defineProperty(error, 'name', { value: pair[0] });
  return error;
}

function encode(args) {
  for (const value of args) {
    if (typeof value === 'number' && value !== value) throw new ArgumentError('an argument is NaN');
    if (typeof value === 'bigint') throw new ArgumentError('an argument is a BigInt; pass Number(value)');
  }
  let text;
  try {
    text = stringify(args);
  } catch (error) {
    throw new ArgumentError(`an argument cannot be copied: ${cut(error && error.message, 200)}`);
  }
  if (typeof text !== 'string' || text.length > 60000) {
    throw new ArgumentError('the arguments of one call take more than 60,000 characters');
  }
  return text;
}

/** A number that changes whenever what the host knows may have changed. */
guest.stamp = 0;
guest.tick = 0;

/** Calls the host; returns plain data. Throws what the host refuses. */
guest.call = (op, ...args) => {
  const answer = parse(hostCall(op, encode(args)));
  if (answer.error) throw errorOf(answer.error);
  return answer.value;
};
/** The same for calls that change something. */
guest.act = (op, ...args) => {
  guest.stamp += 1;
  return guest.call(op, ...args);
};

// Memory reserved for the error that there is none left.
let reserve = new Uint8Array(262144);

/** Returns a plain description of whatever was thrown; runs the program's getters at most once. */
guest.describe = (thrown, where) => {
  reserve = null;
  // Without a prototype: a toJSON that the program put on one would answer for it.
  const out = { __proto__: null, type: 'Error', message: '', stack: '' };
  try {
    if (thrown !== null && typeof thrown === 'object') {
      const { name, message, stack } = thrown;
      out.type = cut(typeof name === 'string' && name ? name : 'Error', 100);
      out.message = cut(typeof message === 'string' ? message : stringify(thrown), 2000);
      out.stack = cut(typeof stack === 'string' ? stack : '', 4000);
    } else if (thrown === null) {
      // QuickJS throws null when it has no memory for an error; the host tells the cases apart.
      out.type = 'null';
    } else {
      out.message = cut(typeof thrown === 'symbol' ? 'a symbol was thrown' : thrown, 2000);
    }
  } catch {
    out.type = 'Error';
    out.message = 'what was thrown cannot be read';
  }
  if (where) out.stack = cut(`${out.stack}${where}`, 8000);
  return out;
};
guest.report = (op, value) => { hostCall(op, stringify(value)); };
guest.stackNow = () => cut(new PlainError().stack, 4000);
guest.errorOf = errorOf;
guest.parse = parse;
guest.ArgumentError = ArgumentError;

/** Makes names of the global object that a program can neither replace nor delete. */
guest.expose = (names) => {
  for (const name of Object.keys(names)) {
    defineProperty(globalThis, name, { value: names[name], enumerable: true });
  }
};
// Random numbers: the stream of this program's seed (mulberry32 by Tommy Ettinger, public domain).
let state = settings.seed >>> 0;
Math.random = () => {
  state = (state + 0x6d2b79f5) >>> 0;
  let mixed = Math.imul(state ^ (state >>> 15), state | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
};

// Time is game time, 50 ms per tick; the machine's time is not available.
const RealDate = Date;
const EPOCH = 1577836800000;
const now = () => EPOCH + guest.tick * 50;
function GameDate(...given) {
  if (!new.target) return new RealDate(now()).toString();
  return Reflect.construct(RealDate, given.length > 0 ? given : [now()], new.target);
}
GameDate.prototype = RealDate.prototype;
GameDate.now = now;
GameDate.parse = RealDate.parse;
GameDate.UTC = RealDate.UTC;
defineProperty(RealDate.prototype, 'constructor', { value: GameDate });
defineProperty(globalThis, 'Date', { value: GameDate });
delete globalThis.SharedArrayBuffer;
delete globalThis.FinalizationRegistry;
delete globalThis.WeakRef;

const print = (value) => {
  if (typeof value === 'string') return value;
  if (value instanceof PlainError) return `${value.name}: ${value.message}`;
  try {
    return stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
};
const log = (...values) => { guest.report('$log', cut(values.map(print).join(' '), 300)); };
guest.expose({
  console: freeze({ log, info: log, warn: log, error: log, debug: log }), ArgumentError, ActionError
});

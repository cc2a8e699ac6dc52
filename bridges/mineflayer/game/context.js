'use strict';
/**
 * The clock and random numbers of a world.
 *
 * Requiring this file replaces Date, performance.now, setTimeout, setInterval, setImmediate, their
 * clear functions and Math.random by versions that use the *current* context, or the real ones when
 * no context is current. It must be required before any library that keeps a reference to them
 * (mineflayer keeps `performance`), so every file here that requires such a library requires this
 * one first.
 *
 * Worlds are stepped in turn, never concurrently, so "current" is one variable. The behaviour of a
 * context's callbacks depends only on its seed and the calls to it.
 */
const { performance: realPerformance } = require('node:perf_hooks');
const { promisify } = require('node:util');

/** The original functions: for waits in real time (the wire, remote mode, benchmarks). */
const real = {
  Date: globalThis.Date,
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  setInterval: globalThis.setInterval,
  clearInterval: globalThis.clearInterval,
  setImmediate: globalThis.setImmediate,
  clearImmediate: globalThis.clearImmediate,
  random: Math.random,
  now: realPerformance.now.bind(realPerformance)
};

/** Milliseconds since 1970 at which every virtual clock starts: 2020-01-01, an arbitrary date. */
const EPOCH = 1577836800000;

let current = null;

/** Returns the 32-bit mix of a 32-bit number (the finaliser of MurmurHash3, public domain). */
function mix(x) {
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return (x ^ (x >>> 16)) >>> 0;
}

/** Returns four 32-bit words drawn from a seed (a number up to 2**53, a bigint or a text). */
function seedWords(seed) {
  const words = [0x9e3779b9, 0x243f6a88, 0xb7e15162, 0xdeadbeef];
  for (const byte of Buffer.from(String(seed))) {
    for (let i = 0; i < 4; i++) words[i] = mix((words[i] + byte + i * 0x9e3779b9) >>> 0);
  }
  return words;
}

/** A timer of a context; libraries call ref, unref and other methods of Node's timers on it. */
class Timer {
  constructor(context, time, order, callback, args, every) {
    Object.assign(this, { context, time, order, callback, args, every, dead: false });
  }

  ref() { return this; }

  unref() { return this; }

  hasRef() { return true; }

  refresh() {
    this.context._again(this);
    return this;
  }

  close() {
    this.dead = true;
    return this;
  }

  [Symbol.dispose]() { this.dead = true; }
}

/** Whether timer `a` fires before timer `b`. */
const before = (a, b) => a.time < b.time || (a.time === b.time && a.order < b.order);

/** One clock, one random stream and their timers. */
class Context {
  /** @param {number|bigint|string} seed of the random numbers */
  constructor(seed) {
    /** Milliseconds since this world began. */
    this.now = 0;
    /** Errors thrown by callbacks; the stepper checks them. */
    this.errors = [];
    this.words = Uint32Array.from(seedWords(seed));
    this.heap = [];
    this.order = 0;
    this.immediates = [];
    this.metered = 0;
    this.perCall = 0;
    this.closed = false;
  }

  /** Makes this context current while `fn` runs; if `fn` is async, until its promise settles. */
  run(fn) {
    const outer = current;
    current = this;
    let result;
    try {
      result = fn();
    } catch (error) {
      current = outer;
      throw error;
    }
    if (!(result instanceof Promise)) {
      current = outer;
      return result;
    }
    return result.finally(() => { current = outer; });
  }

  /** Returns a number in [0, 1): sfc32 by Chris Doty-Humphrey (public domain). */
  random() {
    const w = this.words;
    const sum = (w[0] + w[1] + w[3]) >>> 0;
    w[3] = w[3] + 1;
    w[0] = w[1] ^ (w[1] >>> 9);
    w[1] = w[2] + (w[2] << 3);
    w[2] = ((w[2] << 21) | (w[2] >>> 11)) + sum;
    return sum / 4294967296;
  }

  /**
   * Calls `fn` with a clock that advances by `ms` whenever it is read: a search limited by time
   * (pathfinder's A*) then stops after the same number of nodes on every machine.
   */
  metering(ms, fn) {
    this.perCall = ms;
    this.metered = 0;
    try {
      return fn();
    } finally {
      this.perCall = 0;
      this.metered = 0;
    }
  }

  performanceNow() {
    this.metered += this.perCall;
    return this.now + this.metered;
  }

  schedule(callback, delay, args, repeats) {
    if (typeof callback !== 'function') throw new TypeError('a timer needs a function');
    const wait = delay >= 1 && delay < 2147483648 ? Math.trunc(delay) : repeats ? 1 : 0;
    const every = repeats ? wait : null;
    const timer = new Timer(this, this.now + wait, this.order++, callback, args, every);
    timer.wait = wait;
    if (!this.closed) this._push(timer);
    return timer;
  }

  _again(timer) {
    // A heap entry cannot be moved: the old one stays and is skipped by its order.
    timer.time = this.now + timer.wait;
    timer.order = this.order++;
    if (!this.closed) this._push(timer);
  }

  _push(timer) {
    timer.queued = true;
    const entry = { time: timer.time, order: timer.order, timer };
    const heap = this.heap;
    let at = heap.length;
    heap.push(entry);
    while (at > 0) {
      const up = (at - 1) >> 1;
      if (!before(entry, heap[up])) break;
      heap[at] = heap[up];
      at = up;
    }
    heap[at] = entry;
  }

  _pop() {
    const heap = this.heap;
    const top = heap[0];
    const last = heap.pop();
    if (heap.length === 0) return top;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1], heap[child])) child++;
      if (!before(heap[child], last)) break;
      heap[at] = heap[child];
      at = child;
    }
    heap[at] = last;
    return top;
  }

  /** Runs callbacks due up to a time, in order of time, then of registration; returns their number. */
  runUntil(time) {
    let ran = 0;
    while (this.heap.length > 0 && this.heap[0].time <= time) {
      const { timer, order } = this._pop();
      if (timer.dead || timer.order !== order) continue;
      timer.queued = false;
      if (timer.time > this.now) this.now = timer.time;
      ran++;
      this.guarded(timer.callback, timer.args);
      if (timer.every !== null && !timer.dead && !timer.queued) this._again(timer);
    }
    if (time > this.now) this.now = time;
    return ran;
  }

  /** Runs the callbacks of setImmediate; returns how many ran. */
  runImmediates() {
    const batch = this.immediates;
    if (batch.length === 0) return 0;
    this.immediates = [];
    for (const timer of batch) if (!timer.dead) this.guarded(timer.callback, timer.args);
    return batch.length;
  }

  /** Calls a function; an error that it throws is added to `errors`. */
  guarded(fn, args) {
    try {
      fn(...args);
    } catch (error) {
      this.errors.push(error);
    }
  }

  /** Removes every timer: nothing of this world runs again. */
  close() {
    this.closed = true;
    this.heap = [];
    this.immediates = [];
  }
}

/** `new Date()` and `Date.now()` of the current context; otherwise the real Date. */
function WorldDate(...args) {
  if (!new.target) return new WorldDate().toString();
  const given = args.length > 0 ? args : [WorldDate.now()];
  return Reflect.construct(real.Date, given, new.target === WorldDate ? real.Date : new.target);
}
WorldDate.prototype = real.Date.prototype;
WorldDate.now = () => (current ? EPOCH + Math.trunc(current.now) : real.Date.now());
WorldDate.parse = real.Date.parse;
WorldDate.UTC = real.Date.UTC;

function clear(realClear) {
  return (timer) => {
    if (timer instanceof Timer) timer.dead = true;
    else realClear(timer);
  };
}

function install() {
  globalThis.Date = WorldDate;
  globalThis.setTimeout = (fn, ms, ...args) =>
    current ? current.schedule(fn, ms, args, false) : real.setTimeout(fn, ms, ...args);
  globalThis.setInterval = (fn, ms, ...args) =>
    current ? current.schedule(fn, ms, args, true) : real.setInterval(fn, ms, ...args);
  globalThis.setImmediate = (fn, ...args) => {
    if (!current) return real.setImmediate(fn, ...args);
    const timer = new Timer(current, current.now, 0, fn, args, null);
    if (!current.closed) current.immediates.push(timer);
    return timer;
  };
  globalThis.setTimeout[promisify.custom] = (ms, value) =>
    new Promise((resolve) => { globalThis.setTimeout(resolve, ms, value); });
  globalThis.setImmediate[promisify.custom] = (value) =>
    new Promise((resolve) => { globalThis.setImmediate(resolve, value); });
  globalThis.clearTimeout = clear(real.clearTimeout);
  globalThis.clearInterval = clear(real.clearInterval);
  globalThis.clearImmediate = clear(real.clearImmediate);
  Math.random = () => (current ? current.random() : real.random());
  realPerformance.now = () => (current ? current.performanceNow() : real.now());
}

install();

/** Runs a function outside of all worlds: for objects that are created once per process. */
function outside(fn) {
  const inner = current;
  current = null;
  try {
    return fn();
  } finally {
    current = inner;
  }
}

module.exports = { Context, EPOCH, outside, real, seedWords, mix, currentContext: () => current };

// Promises that the host settles, the hooks it calls, timers.
const { then } = Promise.prototype;
const { apply } = Reflect;
const waiting = new Map();
/** Promises that failed while no one waited for them, and their errors. */
const unhandled = new Map();

/** A promise that the host settles, and that records whether anyone waits for it. */
class HostPromise extends Promise {
  static get [Symbol.species]() { return Promise; }

  then(onValue, onError) {
    this.watched = true;
    unhandled.delete(this);
    return apply(then, this, [onValue, onError]);
  }
}

/** Where in the program an error came from: host errors have no frame of the program. */
const places = new WeakMap();

function fail(entry, error) {
  if (error !== null && typeof error === 'object' && !places.has(error)) places.set(error, entry.where);
  if (!entry.promise.watched) unhandled.set(entry.promise, error);
  entry.reject(error);
}

function newEntry() {
  const entry = { where: guest.stackNow() };
  entry.promise = new HostPromise((resolve, reject) => { Object.assign(entry, { resolve, reject }); });
  return entry;
}

/** Calls the host for something that takes ticks; returns a promise (its `call` is the call's number). */
guest.wait = (op, ...args) => {
  const entry = newEntry();
  try {
    entry.promise.call = guest.act(op, ...args);
    waiting.set(entry.promise.call, entry);
  } catch (error) {
    fail(entry, error);
  }
  return entry.promise;
};

/** Returns an async function that names the program's line in what it throws. */
guest.placed = (fn) => (...args) => {
  const entry = newEntry();
  apply(then, fn(...args), [entry.resolve, (error) => fail(entry, error)]);
  return entry.promise;
};

function describe(error) {
  const isObject = error !== null && typeof error === 'object';
  return guest.describe(error, isObject ? places.get(error) : undefined);
}

function settle([id, ok, value]) {
  const entry = waiting.get(id);
  if (!entry) return;
  waiting.delete(id);
  if (ok) {
    entry.resolve(value);
    return;
  }
  fail(entry, guest.errorOf(value));
}

guest.events = null;
guest.hooks = {
  run(main) {
    apply(then, main(), [
      () => guest.report('$end', null), (error) => guest.report('$end', describe(error))
    ]);
  },
  deliver(text) {
    const batch = guest.parse(text);
    guest.tick = batch.tick;
    guest.stamp += 1;
    for (const event of batch.events) guest.events.emit(event);
    for (const one of batch.settled) settle(one);
  },
  /** Called when no job is left: everything that waits is waiting by now. */
  turn() {
    for (const error of unhandled.values()) guest.report('$unhandled', describe(error));
    unhandled.clear();
  },
  site: guest.stackNow
};

// Timers of the game's clock.
const live = new Map();
let nextTimer = 1;
const ticksOf = (ms) => Math.max(1, Math.min(24000, Math.ceil((Number(ms) || 0) / 50)));

function fire(id) {
  const timer = live.get(id);
  if (!timer) return;
  if (timer.repeats) arm(id, timer);
  else live.delete(id);
  try {
    timer.fn(...timer.args);
  } catch (error) {
    guest.report('$unhandled', describe(error));
  }
}

function arm(id, timer) {
  const wait = guest.wait('waitForTicks', ticksOf(timer.ms));
  timer.call = wait.call;
  apply(then, wait, [() => fire(id), (error) => guest.report('$unhandled', describe(error))]);
}

function startTimer(fn, ms, args, repeats) {
  if (typeof fn !== 'function') throw new guest.ArgumentError('a timer needs a function');
  const id = nextTimer++;
  const timer = { fn, ms, args, repeats };
  live.set(id, timer);
  arm(id, timer);
  return id;
}

function clearTimer(id) {
  const timer = live.get(id);
  if (!timer || !live.delete(id)) return;
  waiting.delete(timer.call);
  guest.report('$cancel', timer.call);
}

guest.expose({
  setTimeout: (fn, ms, ...args) => startTimer(fn, ms, args, false),
  setInterval: (fn, ms, ...args) => startTimer(fn, ms, args, true),
  clearTimeout: clearTimer,
  clearInterval: clearTimer
});

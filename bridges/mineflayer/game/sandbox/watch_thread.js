'use strict';
/** The thread of watch.js. */
const fs = require('node:fs');
const { workerData } = require('node:worker_threads');
const { FIELDS } = require('./watch');

const EVERY_MS = 100;
const shared = new Int32Array(workerData);
let seen = 0;
let before = 0;

/** Linux: nanoseconds that the main thread has run, then two other numbers. */
const MAIN_THREAD = `/proc/self/task/${process.pid}/schedstat`;

/** Returns the milliseconds that the main thread has run; where Linux does not say, all threads. */
function used() {
  let run = 0;
  try {
    run = parseInt(fs.readFileSync(MAIN_THREAD, 'latin1'), 10);
  } catch {
    // Another system. A kernel may also be built without these counts, and then says 0.
  }
  if (run > 0) return run / 1e6;
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e3;
}

setInterval(() => {
  const turn = Atomics.load(shared, FIELDS.turn);
  if (turn !== seen) {
    seen = turn;
    if (turn > 0) before = used();
  } else if (turn > 0 && used() - before >= Atomics.load(shared, FIELDS.limit)) {
    const isOver = Atomics.compareExchange(shared, FIELDS.turn, turn, -turn) !== turn;
    if (!isOver) process.kill(process.pid, 'SIGINT');
  }
}, EVERY_MS);

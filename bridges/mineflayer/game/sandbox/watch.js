'use strict';
/**
 * Ends a turn that holds the process: a second thread (watch_thread.js) looks now and then how long
 * the main thread has run since a turn began, and interrupts one that is beyond its limit.
 *
 * Processor time, not real time: while the machine does other things, no program may pay for them,
 * least of all one whose turn it happens to be.
 */
const path = require('node:path');
const { Worker } = require('node:worker_threads');

/** Fields of the memory that both threads share. */
const FIELDS = { turn: 0, limit: 1 };
const TURNS = 2 ** 30;

/**
 * The number of the turn in progress is shared: 0 between turns, negative once the thread has
 * interrupted it.
 */
class Watch {
  constructor() {
    const memory = new SharedArrayBuffer(4 * Object.keys(FIELDS).length);
    this.shared = new Int32Array(memory);
    this.turns = 0;
    // Without our own --stack-size, which is for the stack of the main thread.
    const options = { workerData: memory, execArgv: [] };
    new Worker(path.join(__dirname, 'watch_thread.js'), options).unref();
  }

  /** Runs a turn, in which the main thread may run for so many milliseconds. */
  run(turn, limitMs) {
    const { shared } = this;
    this.turns = (this.turns % TURNS) + 1;
    Atomics.store(shared, FIELDS.limit, limitMs);
    Atomics.store(shared, FIELDS.turn, this.turns);
    try {
      turn();
    } finally {
      const was = Atomics.compareExchange(shared, FIELDS.turn, this.turns, 0);
      // The interrupt is on its way: it must find this turn, not the next one.
      while (was < 0);
    }
  }

  /** Returns whether a turn was interrupted by the thread, not by a signal from elsewhere. */
  interrupted() {
    return Atomics.exchange(this.shared, FIELDS.turn, 0) < 0;
  }
}

module.exports = { FIELDS, Watch };

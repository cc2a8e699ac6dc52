'use strict';
/**
 * How much of the processor's time all programs together may take in a step of the game.
 *
 * A step has a deadline, after which the whole instance fails, with all its agents; but a program
 * may block the process for seconds in every tick, and be one of many that do. So each turn gets
 * half of the remaining time, and all of it is available again at the next step. Computing time
 * that a turn is always allowed is not counted: a program that only computes always has enough.
 */

/** Multiple of `holdMs` that programs may block the process in a step; bridge.py allows for it. */
const HOLDS = 2;

/** Unlimited until the first step, for callers that tick sandboxes themselves. */
let left = Infinity;

/** To be called when a step begins. */
function beginStep() {
  left = HOLDS;
}

/** Returns the milliseconds that a turn may take: at most `holdMs`, at least `freeMs`. */
function patienceFor(holdMs, freeMs) {
  return Math.ceil(Math.min(holdMs, freeMs + (holdMs * left) / 2));
}

/** Records that a turn took so many milliseconds. */
function spend(ms, holdMs, freeMs) {
  left = Math.max(0, left - Math.max(0, ms - freeMs) / holdMs);
}

module.exports = { beginStep, patienceFor, spend };

'use strict';
/**
 * How long all programs together may block the process in a step of the game.
 *
 * A step has a deadline, after which the whole instance fails, with all its agents; but a program
 * may block the process for seconds in every tick, and be one of many that do. So each turn gets
 * half of the remaining time, and all of it is available again at the next step. Computing time
 * that a turn is always allowed is not counted: a program that only computes always has enough.
 */

/** Multiple of `wallMs` that programs may block the process in a step; bridge.py allows for it. */
const WALLS = 2;

/** Unlimited until the first step, for callers that tick sandboxes themselves. */
let left = Infinity;

/** To be called when a step begins. */
function beginStep() {
  left = WALLS;
}

/** Returns the milliseconds that a turn may take: at most `wallMs`, at least `freeMs`. */
function patienceFor(wallMs, freeMs) {
  return Math.ceil(Math.min(wallMs, freeMs + (wallMs * left) / 2));
}

/** Records that a turn took so many milliseconds. */
function spend(ms, wallMs, freeMs) {
  left = Math.max(0, left - Math.max(0, ms - freeMs) / wallMs);
}

module.exports = { beginStep, patienceFor, spend };

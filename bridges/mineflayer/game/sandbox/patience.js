'use strict';
/**
 * How long programs may hold the process in a step of the game, all of them together.
 *
 * A step has a deadline, after which the whole instance is given up, with all who play in it; yet a
 * program may hold the process for seconds in every tick, and be one of many that do. So each turn
 * gets half of what patience is left, and what is used up is back at the next step. Time that a
 * turn may compute anyway is not counted: who only computes is never short of it.
 */

/** Times `wallMs` that programs may hold the process in a step; bridge.py allows for it. */
const WALLS = 2;

/** Without a limit until the first step, for those who tick sandboxes by themselves. */
let left = Infinity;

/** To be called when a step begins. */
function beginStep() {
  left = WALLS;
}

/** Returns milliseconds that a turn may take: at most `wallMs`, `freeMs` at least. */
function patienceFor(wallMs, freeMs) {
  return Math.ceil(Math.min(wallMs, freeMs + (wallMs * left) / 2));
}

/** Notes that a turn took so many milliseconds. */
function spend(ms, wallMs, freeMs) {
  left = Math.max(0, left - Math.max(0, ms - freeMs) / wallMs);
}

module.exports = { beginStep, patienceFor, spend };

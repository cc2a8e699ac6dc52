'use strict';

/**
 * Updates that blocks have scheduled, by their tick, each block once (like the game's own
 * list: a block that waits already is not postponed). Updates beyond `most` in a tick wait for the
 * next one, in order. Blocks are numbers (`keyOf`), so that a snapshot is plain JSON.
 */

/** Distance in blocks from the middle of the world within which `keyOf` has a number for each. */
const REACH = 2 ** 21;
const SIDE = 2 * REACH;

/** Returns the number of a block and one bit, or -1 farther than `REACH` from the middle. */
function keyOf(x, y, z, bit = 0) {
  if (x < -REACH || x >= REACH || z < -REACH || z >= REACH || y < 0 || y > 255) return -1;
  return ((x + REACH) * SIDE + (z + REACH)) * 512 + y * 2 + bit;
}

/** Calls `fn(x, y, z, bit)` with the decoded number, and returns its result. */
function unpack(key, fn) {
  const place = Math.floor(key / 512);
  const rest = key - place * 512;
  return fn(Math.floor(place / SIDE) - REACH, rest >> 1, (place % SIDE) - REACH, rest & 1);
}

class TickQueue {
  constructor(most) {
    this.most = most;
    this.load(null);
  }

  /** How many blocks wait. */
  get size() {
    return this.waiting.size;
  }

  /** Schedules a block for a tick, unless it waits already or has no number. */
  add(due, key) {
    if (key < 0 || this.waiting.has(key)) return;
    this.waiting.add(key);
    const list = this.byTick.get(due);
    if (list) list.push(key);
    else this.byTick.set(due, [key]);
  }

  /** Calls `fn(key)` for the blocks that are due; they may be added again in it. */
  run(tick, fn) {
    const due = this.byTick.get(tick);
    if (due) {
      this.byTick.delete(tick);
      for (const key of due) this.late.push(key);
    }
    if (this.late.length === 0) return;
    const now = this.late.splice(0, this.most);
    for (const key of now) this.waiting.delete(key);
    for (const key of now) fn(key);
  }

  save() {
    const byTick = [...this.byTick.entries()].map(([tick, list]) => [tick, [...list]]);
    return { byTick, late: [...this.late] };
  }

  /** Restores what `save` returned; without data, the queue is empty. */
  load(data) {
    this.byTick = new Map(data ? data.byTick.map(([tick, list]) => [tick, [...list]]) : []);
    this.late = data ? [...data.late] : [];
    this.waiting = new Set(this.late);
    for (const list of this.byTick.values()) for (const key of list) this.waiting.add(key);
  }
}

module.exports = { TickQueue, keyOf, unpack };

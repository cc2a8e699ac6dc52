'use strict';
/**
 * Moves one world by exactly one tick.
 *
 * A tick: the clock goes on by 50 ms, on which the server's tick and then each bot's physics fire;
 * packets are delivered and promises settle until nothing waits; then the server tells what moved,
 * and that is delivered too. So after a tick every bot has seen all that happened in it.
 */
const { real } = require('./context');

/** Milliseconds of one tick. */
const TICK_MS = 50;
const RESTLESS = 10000; // rounds after which a world that never comes to rest is an error

/** Resolves when every promise and nextTick that can settle now has. */
const settle = () => new Promise((resolve) => { real.setImmediate(resolve); });

/** Delivers and settles until nothing of this world can go on without its clock. */
async function drain(world) {
  const { link, context } = world;
  for (let round = 0; round < RESTLESS; round++) {
    let busy = link.deliver() + context.runImmediates() + context.runUntil(context.now);
    await settle();
    busy += link.queue.length + context.immediates.length;
    if (busy === 0 && !(context.heap.length > 0 && context.heap[0].time <= context.now)) return;
  }
  throw new Error(`the world did not come to rest within ${RESTLESS} rounds of messages`);
}

/** Throws the first error that a callback of the world threw since the last look. */
function check(world) {
  if (world.context.errors.length === 0) return;
  const [error] = world.context.errors.splice(0);
  throw error;
}

/** Moves a world by one tick; what its callbacks throw is thrown here. */
async function tick(world) {
  const { context, serv } = world;
  context.runUntil(context.now + TICK_MS);
  await drain(world);
  serv.tracker.flush();
  if (world.link.queue.length > 0) await drain(world);
  check(world);
}

module.exports = { tick, drain, check, TICK_MS };

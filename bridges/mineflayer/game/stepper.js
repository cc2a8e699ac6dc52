'use strict';
/**
 * Advances one world by exactly one tick.
 *
 * A tick: the clock advances by 50 ms, which triggers the server's tick and then each bot's
 * physics; packets are delivered and promises settle until nothing is pending; then the server
 * sends what moved, and that is delivered too. So after a tick every bot knows all that happened in
 * it.
 */
const { real } = require('./context');

/** Milliseconds of one tick. */
const TICK_MS = 50;
const RESTLESS = 10000; // rounds after which a world that never comes to rest is an error

/** Resolves when every promise and nextTick that can settle now has. */
const settle = () => new Promise((resolve) => { real.setImmediate(resolve); });

/** Delivers and settles until nothing in this world can continue without its clock. */
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

/** Throws the first error that a callback of the world threw since the last call. */
function check(world) {
  if (world.context.errors.length === 0) return;
  const [error] = world.context.errors.splice(0);
  throw error;
}

/** Advances a world by one tick; errors of its callbacks are thrown here. */
async function tick(world) {
  const { context, serv } = world;
  context.runUntil(context.now + TICK_MS);
  await drain(world);
  serv.tracker.flush();
  if (world.link.queue.length > 0) await drain(world);
  check(world);
}

module.exports = { tick, drain, check, TICK_MS };

'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { performance } = require('node:perf_hooks');
const { promisify } = require('node:util');
const { Context, EPOCH, real, outside } = require('../context');

const draw = (context, n) => Array.from({ length: n }, () => context.run(() => Math.random()));

test('time changes only when the context is advanced, and by exactly that much', () => {
  const context = new Context(1);
  const read = () => context.run(() => [Date.now(), new Date().getTime(), performance.now()]);
  assert.deepStrictEqual(read(), [EPOCH, EPOCH, 0]);
  context.runUntil(1234);
  assert.deepStrictEqual(read(), [EPOCH + 1234, EPOCH + 1234, 1234]);
});

test('outside of a context everything is real', () => {
  assert.ok(Math.abs(Date.now() - real.Date.now()) < 1000);
  assert.ok(new Date() instanceof Date && new Date() instanceof real.Date);
  assert.strictEqual(new Date(5).getTime(), 5);
  assert.strictEqual(Date.UTC(2020, 0), EPOCH);
  const context = new Context(1);
  context.run(() => outside(() => assert.notStrictEqual(Date.now(), EPOCH)));
});

test('equal seeds draw equal numbers, other seeds others, and contexts are independent', () => {
  const [a, b, c] = [new Context('s'), new Context('s'), new Context('t')];
  const first = [];
  for (let i = 0; i < 50; i++) {
    first.push(draw(a, 1)[0]);
    draw(c, 3);
  }
  assert.deepStrictEqual(draw(b, 50), first);
  assert.notDeepStrictEqual(draw(new Context('t'), 50), first);
  assert.ok(first.every((value) => value >= 0 && value < 1));
  assert.ok(new Set(first).size === 50);
});

test('timers fire in the order of their times, then of their registration, and intervals repeat', () => {
  const context = new Context(1);
  const seen = [];
  context.run(() => {
    setTimeout(() => seen.push('late'), 30);
    setTimeout(() => seen.push('a'), 20);
    setTimeout((x) => seen.push(x), 20, 'b');
    const every = setInterval(() => {
      seen.push(`every ${context.now}`);
      if (context.now === 24) clearInterval(every);
    }, 8);
    clearTimeout(setTimeout(() => seen.push('never'), 1));
  });
  assert.strictEqual(context.runUntil(29), 5);
  assert.deepStrictEqual(seen, ['every 8', 'every 16', 'a', 'b', 'every 24']);
  context.runUntil(100);
  assert.deepStrictEqual(seen.slice(5), ['late']);
  assert.strictEqual(context.now, 100);
});

test('a timer that is refreshed starts again', () => {
  const context = new Context(1);
  let fired = 0;
  const timer = context.run(() => setTimeout(() => { fired = context.now; }, 50));
  context.runUntil(40);
  timer.refresh();
  context.runUntil(89);
  assert.strictEqual(fired, 0);
  context.runUntil(200);
  assert.strictEqual(fired, 90);
});

test('errors of callbacks are kept, and other callbacks still run', () => {
  const context = new Context(1);
  let ran = false;
  context.run(() => {
    setTimeout(() => { throw new Error('broken'); }, 1);
    setTimeout(() => { ran = true; }, 2);
  });
  context.runUntil(5);
  assert.ok(ran);
  assert.deepStrictEqual(context.errors.map((error) => error.message), ['broken']);
});

test('promises of sleep and immediate settle in the context', async () => {
  const context = new Context(1);
  const order = [];
  await context.run(async () => {
    promisify(setTimeout)(5, 'slept').then((word) => order.push(word));
    promisify(setImmediate)('at once').then((word) => order.push(word));
    context.runImmediates();
    await Promise.resolve();
    await Promise.resolve();
    context.runUntil(5);
  });
  await new Promise((resolve) => { real.setImmediate(resolve); });
  assert.deepStrictEqual(order, ['at once', 'slept']);
});

test('run is current until its promise settles, and never longer', async () => {
  const context = new Context(1);
  const inside = await context.run(async () => {
    await Promise.resolve();
    return Date.now();
  });
  assert.strictEqual(inside, EPOCH);
  assert.notStrictEqual(Date.now(), EPOCH);
  assert.throws(() => context.run(() => { throw new Error('x'); }), /x/);
  assert.notStrictEqual(Date.now(), EPOCH);
});

test('a metered search stops after the same number of reads of the clock', () => {
  const context = new Context(1);
  const search = () => {
    const began = performance.now();
    let nodes = 0;
    while (performance.now() - began < 40) nodes++;
    return nodes;
  };
  const counts = [1, 2].map(() => context.run(() => context.metering(0.02, search)));
  assert.strictEqual(counts[0], counts[1]);
  assert.ok(Math.abs(counts[0] - 2000) <= 1);
  assert.strictEqual(context.run(() => performance.now()), 0);
});

test('a closed context runs nothing', () => {
  const context = new Context(1);
  let ran = false;
  context.run(() => setInterval(() => { ran = true; }, 1));
  context.close();
  context.run(() => setTimeout(() => { ran = true; }, 1));
  context.runUntil(1000);
  assert.strictEqual(ran, false);
});

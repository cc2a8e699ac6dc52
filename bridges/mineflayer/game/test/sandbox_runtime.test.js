'use strict';
/** How programs begin, wait, end and are replaced. */
const assert = require('node:assert');
const test = require('node:test');
const { Sandbox, limitsOf } = require('../sandbox/runtime');
const { linesOf } = require('../sandbox/lines');
const { beginStep } = require('../sandbox/patience');
const { FakeBot, drain, makeSandbox, play, playOn } = require('../sandbox/testing');

test('a program runs, waits in ticks and ends', async () => {
  const { running, error, ticks, logs } = await play(makeSandbox(), `
    console.log(bot.username, bot.health, bot.entity.position);
    const before = bot.currentTick;
    await bot.waitForTicks(5);
    console.log(bot.currentTick - before);`);
  assert.deepStrictEqual({ running, error, ticks }, { running: false, error: null, ticks: 6 });
  assert.deepStrictEqual(logs, ['fake 20 {"x":0.5,"y":64,"z":0.5}', '5']);
});

test('the same program twice: the same ticks, calls and results', async () => {
  const program = `
    const order = [];
    await Promise.all([3, 1, 2, 1].map(async (ticks, i) => {
      await bot.waitForTicks(ticks);
      order.push(i + ':' + bot.currentTick);
    }));
    console.log(order.join(), Math.random(), new Date().toISOString());
    for (let i = 0; i < 3; i++) await bot.lookAt(new Vec3(i, 64, 0));`;
  const [a, b] = [makeSandbox(), makeSandbox()];
  const first = await play(a, program);
  assert.deepStrictEqual(first, await play(b, program));
  assert.match(first.logs[0], /^1:1,3:1,2:2,0:3 /);
  assert.deepStrictEqual(a.agent.bot.recorded, b.agent.bot.recorded);
  const other = await play(makeSandbox({ seed: 8 }), program);
  assert.notStrictEqual(other.logs[0], first.logs[0]);
});

test('an episode that begins again has the same random numbers', async () => {
  const sandbox = makeSandbox();
  const program = 'console.log(Math.random());';
  const first = await play(sandbox, program);
  const second = await play(sandbox, program);
  assert.notDeepStrictEqual(second.logs, first.logs);
  sandbox.reset();
  assert.deepStrictEqual((await play(sandbox, program)).logs, first.logs);
});

test('a new program ends the former at once: its dig stops, nothing of it runs again', async () => {
  const sandbox = makeSandbox();
  const { bot } = sandbox.agent;
  await sandbox.start(`
    bot.setControlState('forward', true);
    setTimeout(() => { bot.chat('from the grave'); throw new Error('late'); }, 100);
    try { await bot.dig(new Vec3(0, 63, 0)); } finally { bot.chat('never said'); }`);
  await playOn(sandbox, 1);
  assert.strictEqual(bot.targetDigBlock.name, 'grass_block');
  const started = sandbox.start('await bot.waitForTicks(10); console.log("mine");');
  assert.strictEqual(bot.targetDigBlock, null, 'digging continues');
  assert.deepStrictEqual(bot.controlState, {}, 'a key is still pressed');
  await started;
  const { error, logs, stopped } = await playOn(sandbox, 30);
  assert.deepStrictEqual({ error, logs, stopped }, { error: null, logs: ['mine'], stopped: null });
  assert.deepStrictEqual(bot.recorded, ['forward true', 'dig (0, 63, 0)', 'stopDigging']);
});

test('stop() ends a program with a reason, which is not an error', async () => {
  const sandbox = makeSandbox();
  await sandbox.start('for (;;) await bot.waitForTicks(1);');
  await playOn(sandbox, 3);
  sandbox.stop('the agent died');
  const { running, error, stopped, ticks } = sandbox.state();
  assert.deepStrictEqual({ running, error, stopped, ticks }, { running: false, error: null, stopped: 'the agent died', ticks: 3 });
  sandbox.tick();
  assert.strictEqual(sandbox.state().ticks, 3);
});

test('of two starts in a row the second counts', async () => {
  const sandbox = makeSandbox();
  await Promise.all([sandbox.start('console.log(1);'), sandbox.start('console.log(2);')]);
  assert.deepStrictEqual((await playOn(sandbox)).logs, ['2']);
});

test('an error ends the walk and the keys, and names the line of the program', async () => {
  const sandbox = makeSandbox();
  const { error } = await play(sandbox, `bot.setControlState('sprint', true);
async function inner() {
  await bot.waitForTicks(1);
  missing();
}
await inner();`);
  assert.strictEqual(error.type, 'ReferenceError');
  assert.strictEqual(error.line, 4);
  assert.match(error.stack, /^at inner \(line 4\)/);
  assert.deepStrictEqual(sandbox.agent.bot.controlState, {});
});

test('the block that is being dug is one, as in mineflayer', async () => {
  const sandbox = makeSandbox();
  await sandbox.start(`console.log(bot.targetDigBlock);
    bot.dig(new Vec3(0, 63, 0));
    await bot.waitForTicks(2);
    console.log(bot.targetDigBlock.name, \`\${bot.targetDigBlock.position}\`);`);
  assert.deepStrictEqual((await playOn(sandbox, 4)).logs, ['null', 'grass_block (0, 63, 0)']);
});

test('the line of a refused action is that of its call', async () => {
  const { error } = await play(makeSandbox(), `const far = new Vec3(30, 63, 0);

await bot.dig(far);`);
  assert.deepStrictEqual([error.type, error.line], ['ActionError', 3]);
  assert.match(error.message, /too far away to dig the block at \(30, 63, 0\): .* a hand reaches 4.5/);
});

test('a program can catch what an action throws, and what it throws is data', async () => {
  const { error, logs } = await play(makeSandbox(), `
    try { await bot.dig(new Vec3(30, 63, 0)); } catch (e) { console.log(e instanceof ActionError, e.name); }
    try { bot.chat('/op me'); } catch (e) { console.log(e instanceof ArgumentError, e instanceof TypeError, e.name); }
    try { bot.swingArm(); } catch (e) { console.log(e.message); }`);
  assert.strictEqual(error, null);
  assert.deepStrictEqual(logs.slice(0, 2), ['true ActionError', 'true true ArgumentError']);
});

test('a program is over only when calls that it did not await are done', async () => {
  const sandbox = makeSandbox();
  const { bot } = sandbox.agent;
  await sandbox.start('bot.dig(new Vec3(0, 63, 0));');
  await playOn(sandbox, 3);
  assert.strictEqual(sandbox.running, true);
  bot.targetDigBlock = null;
  bot.digging.resolve();
  await drain();
  assert.deepStrictEqual((await playOn(sandbox, 3)).error, null);
  assert.strictEqual(sandbox.running, false);
});

test('an action that the game never answers fails after its ticks', async () => {
  const sandbox = makeSandbox();
  await sandbox.start('await bot.dig(new Vec3(0, 63, 0));');
  const { error, ticks } = await playOn(sandbox, 8000);
  assert.match(error.message, /dig was not done after 7200 ticks/);
  assert.strictEqual(ticks, 7202);
  assert.strictEqual(sandbox.agent.bot.targetDigBlock, null);
});

test('events reach a program in the tick after they happen, only when heard', async () => {
  const sandbox = makeSandbox();
  const { bot } = sandbox.agent;
  sandbox.agent.senses = {
    limits: { chat_distance: 10 }, canHear: (place) => place.x < 10, canSeeEntity: () => true
  };
  const near = bot.addEntity(5, 'player', 3, 0);
  const far = bot.addEntity(6, 'player', 30, 0);
  Object.assign(bot.players, { near: { username: 'near', entity: near }, far: { username: 'far', entity: far } });
  await sandbox.start(`
    bot.on('chat', (who, text) => console.log(bot.currentTick, who, text));
    bot.once('entityHurt', (entity) => console.log('hurt', entity.username ?? entity.id));
    bot.on('playerCollect', (who, what) => console.log('collect', who, what));
    await bot.waitForTicks(5);`);
  await playOn(sandbox, 2);
  bot.emit('chat', 'near', 'hello');
  bot.emit('chat', 'far', 'unheard');
  bot.emit('entityHurt', far);
  bot.emit('playerCollect', far, { id: 8 });
  bot.emit('playerCollect', bot.entity, { id: 9 });
  bot.emit('entityHurt', near);
  bot.emit('entityHurt', near);
  const { logs, running } = await playOn(sandbox, 10);
  assert.deepStrictEqual(logs, ['2 near hello', 'collect 1 9', 'hurt 5']);
  assert.strictEqual(running, false);
  assert.strictEqual(bot.listenerCount('chat'), 0, 'a listener is left behind');
});

test('timers follow the clock of the game and can be cleared', async () => {
  const { logs, ticks, error } = await play(makeSandbox(), `
    const begin = Date.now();
    const never = setTimeout(() => console.log('never'), 5000);
    let n = 0;
    const every = setInterval(() => {
      console.log(Date.now() - begin);
      if (++n === 3) { clearInterval(every); clearTimeout(never); }
    }, 100);`);
  assert.deepStrictEqual({ logs, ticks, error }, { logs: ['100', '200', '300'], ticks: 7, error: null });
});

test('the output of the console is limited', async () => {
  const { logs, logsLeftOut, error } = await play(makeSandbox(), `
    const a = {}; a.a = a;
    console.log('x'.repeat(1000), a);
    for (let i = 0; i < 150; i++) console.log(i);`);
  assert.strictEqual(error, null);
  assert.deepStrictEqual([logs.length, logsLeftOut, logs[0].length], [100, 51, 300]);
});

test('the limit of memory is that of the module, not the count of QuickJS', async () => {
  const room = async (memoryMb) => {
    const { logs } = await play(makeSandbox({ memoryMb, fuel: 100000 }), `
      const held = [];
      try { for (;;) held.push('abc'.repeat(1000)); } catch { const n = held.length; held.length = 0; console.log(n * 3000); }`);
    return Number(logs[0]) / 1048576;
  };
  const small = await room(16);
  const large = await room(48);
  assert.ok(small > 12 && small < 17, `${small} MB`);
  assert.ok(large > 42 && large < 49, `${large} MB`);
});

test('a program that is not a text or too long is an error, not a crash', async () => {
  const sandbox = makeSandbox();
  assert.strictEqual((await play(sandbox, 42)).error.type, 'SyntaxError');
  assert.match((await play(sandbox, ' '.repeat(70000))).error.message, /at most 20000 characters/);
  const astral = `//${'\u{1F600}'.repeat(19998)}`; // 20,000 characters, twice as many UTF-16 units
  assert.strictEqual((await play(sandbox, astral)).error, null);
  assert.deepStrictEqual((await play(sandbox, 'console.log(1)')).logs, ['1']);
});

test('tick() before start() has settled is the caller\'s mistake', () => {
  const sandbox = makeSandbox();
  sandbox.start('1');
  assert.throws(() => sandbox.tick(), /await start\(\)/);
});

test('limits in the wire format become those of a sandbox', () => {
  assert.deepStrictEqual(limitsOf({ time_ms: 50, memory_mb: 24, calls: 100 }), { ticksPerStep: 5, fuel: 100, holdMs: 5000, memoryMb: 24, calls: 100 });
  assert.deepStrictEqual(limitsOf({ time_ms: 1000 }), { ticksPerStep: 5, fuel: 2000, holdMs: 20000 });
  assert.deepStrictEqual(limitsOf({}, 1), { ticksPerStep: 1 });
});

test('stacks keep the frames of the program', () => {
  const stack = '    at call (prelude.js:9:1)\n    at dig (program.js:7:3)\n    at <anonymous> (program.js:12)\n';
  assert.deepStrictEqual(linesOf(stack), { line: 7, frames: 'at dig (line 7)\nat <anonymous> (line 12)' });
  assert.deepStrictEqual(linesOf(undefined), { line: null, frames: '' });
});

test('thirty-two sandboxes in one process do what one does alone', async () => {
  const program = 'for (let i = 0; i < 3; i++) { await bot.waitForTicks(1); console.log(Math.random()); }';
  const alone = await play(makeSandbox(), program);
  const all = Array.from({ length: 32 }, () => makeSandbox({}, { bot: new FakeBot() }));
  await Promise.all(all.map((sandbox) => sandbox.start(program)));
  for (let i = 0; i < 6; i++) {
    Sandbox.tickAll(all);
    await drain();
  }
  for (const sandbox of all) assert.deepStrictEqual(sandbox.state(), alone);
});

/** Work of more than the processor's time that tests allow. */
const UNLIMITED = 2 ** 31 - 1;

test('a program that holds the process is ended, and those ticked with it continue', async () => {
  const program = 'await bot.waitForTicks(2); console.log(Math.random());';
  const alone = await play(makeSandbox(), program);
  const all = Array.from({ length: 4 }, () => makeSandbox({ holdMs: 300, work: UNLIMITED }));
  const hang = 'await bot.waitForTicks(1); Array.prototype.includes.call({ length: 2 ** 53 - 1 }, 1);';
  await Promise.all(all.map((sandbox, i) => sandbox.start(i === 1 ? hang : program)));
  for (let i = 0; i < 4; i++) Sandbox.tickAll(all);
  assert.strictEqual(all[1].state().error.type, 'ProcessorTimeError');
  for (const i of [0, 2, 3]) assert.deepStrictEqual(all[i].state(), alone);
});

test('time in which the process does not run ends no program', async () => {
  const bot = new FakeBot();
  // A sleeping process is one that the machine does not let run, on purpose.
  bot.chat = () => { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500); };
  const sandboxes = [makeSandbox({ holdMs: 200 }), makeSandbox({ holdMs: 200 }, { bot })];
  await sandboxes[0].start('await bot.waitForTicks(1); console.log(bot.username)');
  await sandboxes[1].start("bot.chat('hello'); await bot.waitForTicks(1); bot.chat('hello'); console.log(1)");
  for (let i = 0; i < 3; i++) Sandbox.tickAll(sandboxes);
  assert.deepStrictEqual(sandboxes.map((each) => each.state().error), [null, null]);
  assert.deepStrictEqual(sandboxes.map((each) => each.state().logs), [['fake'], ['1']]);
});

test('programs that block the process share the time of a step; one that only computes has its own', async () => {
  beginStep();
  const holdMs = 400;
  const hang = 'Array.prototype.includes.call({ length: 2 ** 53 - 1 }, 1);';
  const held = [];
  const holdOn = async (fuel) => {
    const sandbox = makeSandbox({ holdMs, fuel, work: UNLIMITED });
    const { error } = await play(sandbox, hang);
    assert.strictEqual(error.type, 'ProcessorTimeError');
    held.push(Number(/for (\d+) ms/.exec(error.message)[1]));
  };
  for (let i = 0; i < 4; i++) await holdOn(2);
  assert.strictEqual(held[0], holdMs);
  // 1 ms is what a turn has at least; on a busy machine the thread looks late, and less is left.
  assert.ok(held.every((ms, i) => i === 0 || ms === 1 || ms < 0.6 * held[i - 1]), `${held}`);
  assert.ok(held.reduce((sum, ms) => sum + ms, 0) <= 2 * holdMs, `${held}`);
  await holdOn(1000);
  assert.ok(held[4] >= holdMs / 2, 'what it may compute is left to it');
  beginStep();
  await holdOn(2);
  assert.strictEqual(held[5], holdMs, 'the next step has its own time');
  beginStep();
});

'use strict';
/** Programs that mean harm to the other agents of their world, in the real game. */
const test = require('node:test');
const assert = require('node:assert');
const { begin, look } = require('./actions_help');

const NEW = (code) => ({ kind: 1, code });
const RESUME = { kind: 0, code: '' };

/** Plays a row for every agent for some steps. */
async function playAll(world, rows, steps = 1) {
  for (let i = 0; i < steps; i++) await world.play(rows.map((row, index) => [index, row]));
}

test('a flood of chat is refused, ends its program and nobody else\'s, and hides no event', async () => {
  const world = await begin({ actions: 'code', agents: 3 });
  const floods = ['for (;;) { for (let i = 0; i < 40; i++) try { bot.chat("x" + i); } catch {} await bot.waitForTicks(1); }',
    'for (let i = 0; i < 1990; i++) bot.chat("y" + i);'];
  const listens = `let heard = 0; bot.on('chat', () => { heard++; });
    bot.on('entityHurt', ({ username }) => { console.log('hurt', username); });
    await bot.waitForTicks(8); console.log('heard', heard);`;
  await playAll(world, [...floods, listens].map(NEW), 2);
  // What a server of a thousand players would send.
  for (let i = 0; i < 250; i++) world.run(() => world.bots[2].emit('chat', 'a1', 'again'));
  world.run(() => world.bots[2].emit('entityHurt', world.bots[2].entity));
  await playAll(world, [RESUME, RESUME, RESUME], 10);
  const [loud, louder, victim] = world.agents.map(({ actor }) => actor.error);
  const heard = look(world, 2).details;
  assert.match(loud?.message ?? '', /100 lines too many/);
  assert.match(louder?.message ?? '', /5 lines at once, then one in 5 ticks/);
  const events = heard.event.map(({ type }) => type);
  assert.ok(events.includes('entityHurt'), 'the blow is lost');
  assert.ok(heard.chat.length <= 200);
  assert.strictEqual(events.filter((type) => type === 'chat').length, heard.chat.length);
  assert.strictEqual(victim, null);
  assert.ok(Number(heard.code_info.logs[1].replace('heard ', '')) <= 7 + 32);
  assert.deepStrictEqual(heard.code_info.logs[0], 'hurt a2');
  world.close();
});

/** What stalls a process, each in another way; `bot` calls are the game's own work. */
const STALLS = {
  'a native that never asks': 'Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1);',
  backreferences: '/(.*)\\1(.*)\\2(.*)\\3(.*)\\4x/.test("ab".repeat(300));',
  'searches of blocks': 'for (let i = 0; i < 49; i++) bot.findBlocks({ matching: "stone", maxDistance: 64 });',
  'exhausting memory': 'const s = "a".repeat(1e6); for (;;) s.split("");',
  computing: 'for (;;) Math.sqrt(2);'
};

for (const [name, stall] of Object.entries(STALLS)) {
  test(`${name}: the program ends by work, and the agent's next ones wait`, async () => {
    const world = await begin({ actions: 'code', agents: 1, ticks_per_step: 5, code: { time_ms: 100, memory_mb: 32, calls: 2000 } });
    const [{ actor }] = world.agents;
    const began = [];
    for (let step = 0; step < 12; step++) {
      await playAll(world, [NEW(stall)]);
      began.push(Number(actor.error !== null));
      if (actor.error !== null) assert.match(actor.error.type, /FuelError|CallBudgetError|MemoryError/);
    }
    assert.strictEqual(began[0], 1);
    const share = began.reduce((sum, one) => sum + one, 0) / began.length;
    assert.ok(share <= 0.34, `it ran in ${share} of the steps: ${began}`);
    world.close();
  });
}

test('a program that computes a little in every tick does not wait', async () => {
  const world = await begin({ actions: 'code', agents: 1, ticks_per_step: 5 });
  await playAll(world, [NEW('for (let i = 0; i < 20; i++) { for (let k = 0; k < 2000; k++); await bot.waitForTicks(1); } console.log(bot.currentTick);')]);
  await playAll(world, [RESUME], 4);
  assert.deepStrictEqual(look(world).details.code_info.logs, ['20']);
  world.close();
});

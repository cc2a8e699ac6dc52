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

module.exports = { NEW, RESUME, playAll };

'use strict';
/** Agents on a server in another process: every layout, time, death, and what they hear. */
const test = require('node:test');
const assert = require('node:assert');
const { KEYS } = require('../actions');
const { serve, play, configOf, array, code, keys, compact, until, events, IDLE, FORWARD } =
  require('./remote_help');

const WALL = 'fill 6 4 0 6 6 12 stone';
const length = ([x0, , z0], [x1, , z1]) => Math.hypot(x1 - x0, z1 - z0);
const done = (slot) => (frame) => frame.code_state[slot * 3] === 0;

async function begin(t, server, more) {
  const game = play(t, configOf(server.port, more));
  await game.hello();
  return { game, first: await game.reset() };
}

test('a step lasts as long as its ticks, also after a step that came late', async (t) => {
  const { game } = await begin(t, await serve(t), { ticks_per_step: 6 });
  const lasts = async () => {
    const began = process.hrtime.bigint();
    await game.step(array(IDLE));
    return Number(process.hrtime.bigint() - began) / 1e6;
  };
  assert.ok(await lasts() > 290);
  await new Promise((resolve) => { setTimeout(resolve, 1500); });
  const frame = await game.step(array(IDLE));
  assert.ok(await lasts() > 290); // delays are not made up for
  assert.strictEqual(Number(frame.tick[0]), 12); // what passes between steps is not counted
});

test('an agent leaves a server and another one joins, under a name of its own', async (t) => {
  const server = await serve(t);
  const { game } = await begin(t, server, { width: 2, agents: 2, names: ['Ann', 'Ben'] });
  const there = async () => (await server.tell({ do: 'players' })).map(({ username }) => username).sort();
  assert.deepStrictEqual(await there(), ['Ann', 'Ben']);
  assert.deepStrictEqual(await game.session.answer({ id: 7, op: 'leave', slot: 0 }), { id: 7, ok: true });
  await game.step(array(IDLE, IDLE));
  for (let i = 0; i < 100 && (await there()).length > 1; i++) await game.step(array(IDLE, IDLE));
  assert.deepStrictEqual(await there(), ['Ben']);
  const start = { seed: 1, episode: 1, state: {}, items: [], targets: [], name: 'Cleo' };
  const answer = await game.session.answer({ id: 8, op: 'reset', slots: [0], starts: [start] });
  assert.ok(answer.ok, answer.error?.message);
  assert.deepStrictEqual(await there(), ['Ben', 'Cleo']);
});

test('low_level, human and compact move a body that a server in another process sees', async (t) => {
  const server = await serve(t);
  const forward = require('../actions/compact.json');
  const layouts = {
    low_level: array(FORWARD),
    human: keys(['forward'], KEYS),
    compact: compact(Object.keys(forward).findIndex((name) => name === 'forward'))
  };
  for (const [actions, held] of Object.entries(layouts)) {
    const { game, first } = await begin(t, server, { actions, names: [actions] });
    const from = [...first.position];
    await until(game, held, 40, (frame) => length(from, [...frame.position]) > 2);
    const there = (await server.tell({ do: 'players' })).find(({ username }) => username === actions);
    assert.ok(length(from, there.at) > 1.5, `${actions}: ${there.at}`);
    await game.session.answer({ id: 9, op: 'close' });
  }
});

test('a program walks round a wall by the real clock, digs, and tells what it was told', async (t) => {
  const server = await serve(t);
  await server.tell({ do: 'run', line: WALL });
  const { game } = await begin(t, server, { actions: 'code', ticks_per_step: 10 });
  const program = `const goal = new GoalXZ(2, 8);
    const moves = new Movements(); moves.canDig = false; bot.pathfinder.setMovements(moves);
    await bot.pathfinder.goto(goal);
    const under = bot.blockAt(bot.entity.position.offset(0, -1, 0));
    await bot.dig(under);
    console.log(under.name, bot.blockAt(under.position).name);
    throw new Error('far enough');`;
  await game.step(code(program));
  const frame = await until(game, code(null), 120, done(0));
  const info = frame.details[0].code_info;
  assert.strictEqual(info.code_error.error_message, 'far enough');
  assert.deepStrictEqual(info.logs, ['grass_block air']);
  assert.ok(Math.abs(frame.position[0] - 2.5) < 1, `${frame.position}`);
});

test('a new program takes over a walk at once; two agents hear each other', async (t) => {
  const { game } = await begin(t, await serve(t), { actions: 'code', width: 2, ticks_per_step: 5 });
  const far = 'await bot.pathfinder.goto(new GoalXZ(8, 60));';
  const listens = 'bot.on("chat", (name, text) => console.log(name, text)); await bot.waitForTicks(4000);';
  const walking = await until(game, (i) => (i === 0 ? code(far, listens) : code(null, null)), 60,
    (frame) => frame.position[2] > 11);
  assert.strictEqual(walking.code_state[0], 1);
  await game.step(code('bot.chat("hello there"); await bot.waitForTicks(2);', null));
  const still = await until(game, code(null, null), 20, done(0));
  const heard = await until(game, code(null, null), 40,
    (frame) => frame.details[1].code_info.logs.length > 0);
  assert.deepStrictEqual(heard.details[1].code_info.logs, ['r0 hello there']);
  assert.ok(length([...still.position], [...heard.position]) < 1.5); // the walk was ended
  assert.deepStrictEqual(walking.details[0].entities.map(({ name }) => name), ['r1']);
});

test('death interrupts a program and ends the episode; the next begins alive', async (t) => {
  const server = await serve(t);
  const { game } = await begin(t, server, { actions: 'code', ticks_per_step: 4 });
  await game.step(code('bot.setControlState("forward", true); await bot.waitForTicks(4000);'));
  await server.tell({ do: 'hurt', name: 'r0', amount: 100 });
  const frame = await until(game, code(null), 40, (each) => each.game_over[0] === 1);
  assert.ok(events(frame).some(({ type }) => type === 'death'));
  assert.strictEqual(frame.deaths[0], 1);
  assert.strictEqual(frame.details[0].code_info.stopped, 'the agent died');
  assert.strictEqual(frame.control_state[0], 0);
  const next = await game.reset();
  assert.deepStrictEqual([next.game_over[0], next.life[0], next.deaths[0]], [0, 20, 0]);
  const alive = await game.step(code('bot.chat("again");'));
  assert.deepStrictEqual([alive.game_over[0], alive.code_state[2]], [0, 0]);
});

test('with respawn a death is counted and play continues', async (t) => {
  const server = await serve(t);
  const { game } = await begin(t, server, { server: { respawn: true } });
  await server.tell({ do: 'hurt', name: 'r0', amount: 100 });
  const frame = await until(game, array(IDLE), 60, (each) => each.deaths[0] === 1 && each.life[0] === 20);
  assert.strictEqual(frame.game_over[0], 0);
});

test('names that the version does not have are answered with the nearest', async (t) => {
  const { game } = await begin(t, await serve(t), { actions: 'code', ticks_per_step: 2 });
  const tries = `const say = (fn) => { try { fn(); } catch (error) { console.log(error.message); } };
    say(() => bot.findBlock({ matching: 'oak_lgo' }));
    say(() => bot.recipesFor('stonne_pickaxe'));`;
  await game.step(code(tries));
  const frame = await until(game, code(null), 20, done(0));
  const [block, item] = frame.details[0].code_info.logs;
  assert.match(block, /no block is called "oak_lgo" in 1\.16\.5; nearest: oak_log/);
  assert.match(item, /stonne_pickaxe.*nearest: stone_pickaxe/);
});

test('the trace has the blocks that the client saw itself dig, what it picked up, and chat', async (t) => {
  const { game } = await begin(t, await serve(t), { actions: 'code', names: ['Ann'] });
  const program = `const block = bot.blockAt(bot.entity.position.offset(0, -1, 0)); await bot.dig(block);
    await bot.waitForTicks(30); bot.chat('Done.');`;
  await game.step(code(program));
  const seen = [];
  for (let i = 0; i < 60 && !seen.some(({ type }) => type === 'chat'); i++) {
    const frame = await game.step(code(null));
    seen.push(...frame.details[0].trace);
  }
  const plain = seen.map(({ tick, position, ...event }) => event);
  assert.deepStrictEqual(plain, [
    { type: 'dug', who: 'Ann', block: 'grass_block', properties: { snowy: false }, tool: '' },
    { type: 'picked', who: 'Ann', item: 'dirt', count: 1, thrower: '' },
    { type: 'chat', who: 'Ann', text: 'Done.' }
  ]);
});

'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { Game } = require('../game');
const { Journal } = require('../snapshot');

const config = (agents) => ({
  mode: 'embedded', version: '1.16.5', width: agents, agents,
  names: Array.from({ length: agents }, (_, i) => `a${i}`), actions: 'low_level',
  ticks_per_step: 3, view_distance: 2, rgb: null,
  senses: { sight_distance: 48, line_of_sight: true, hearing_distance: 50, chat_distance: 50 },
  needs: true, code: { time_ms: 100, memory_mb: 32, calls: 100 }, server: { respawn: false }
});
const start = (seed) => ({
  seed, episode: 0, items: [{ name: 'dirt', count: 5, slot: null }], blocks: [], commands: [],
  targets: [{ kind: 'zombie', count: 2, distance: 3, name: 'zombie' }],
  state: { world: 2, biome: 'forest', site: 'wild', time: 'night', weather: 'rain', difficulty: 'hard' }
});

/** Returns an action column: all agents walk, jump and turn, by the number of the step. */
function move(width, step) {
  const bytes = Buffer.alloc(width * 64);
  for (let i = 0; i < width; i++) {
    [1, step % 3, (step + i) % 4, 12, 12 + (step % 3) - 1, 0, 0, 0]
      .forEach((value, k) => bytes.writeBigInt64LE(BigInt(value), (i * 8 + k) * 8));
  }
  return { action: bytes };
}

async function play(game, from, to) {
  const shown = [];
  for (let step = from; step < to; step++) {
    const { columns, details } = await game.step(move(game.config.width, step));
    shown.push([columns.toString('hex'), JSON.stringify(details)]);
  }
  return shown;
}

test('a restored world shows what it showed and continues as it continued, bit for bit', async () => {
  const game = new Game(config(1));
  await game.reset([0], [start(5)]);
  const [shown] = (await play(game, 0, 20)).slice(-1);
  const saved = game.snapshot(0);
  const went = await play(game, 20, 60);
  await game.reset([0], [start(6)]);
  await play(game, 0, 5);
  const frame = await game.restore(0, saved);
  assert.deepStrictEqual([frame.columns.toString('hex'), JSON.stringify(frame.details)], shown);
  assert.deepStrictEqual(await play(game, 20, 60), went);
  const other = new Game(config(1));
  await other.restore(0, saved);
  assert.deepStrictEqual(await play(other, 20, 60), went);
  game.close();
  other.close();
});

test('an episode is the same whatever was played in the slot and beside it', async () => {
  const game = new Game(config(2));
  const begin = () => game.reset([0, 1], [start(7), start(7)]);
  await begin();
  const first = await play(game, 0, 30);
  await game.reset([0, 1], [start(8), start(8)]);
  await play(game, 0, 17);
  await game.reset([1], [start(9)]);
  await play(game, 0, 3);
  await begin();
  assert.deepStrictEqual(await play(game, 0, 30), first);
  game.close();
});

test('an agent that begins again joins the world as it is, with its own items', async () => {
  const game = new Game(config(2));
  await game.reset([0, 1], [start(1), start(1)]);
  await play(game, 0, 5);
  const [world] = game.worlds;
  const given = { ...start(1), items: [{ name: 'stick', count: 3, slot: null }] };
  const { details } = await game.reset([1], [given]);
  assert.strictEqual(game.worlds[0], world);
  assert.deepStrictEqual(details[0].inventory_all, { 36: { name: 'stick', count: 3 } });
  assert.deepStrictEqual([details[0].tick, details[0].life_stats.life], [0, 20]);
  await play(game, 5, 8);
  assert.deepStrictEqual(game.details.map(({ tick }) => tick), [24, 9]);
  await game.reset([0, 1], [start(1), start(1)]);
  assert.notStrictEqual(game.worlds[0], world);
  game.close();
});

test('a journal is bounded: a world that is played for too long has no snapshot', () => {
  const journal = new Journal(3);
  journal.reset([]);
  journal.step([]);
  journal.command(0, {});
  assert.ok(journal.bytes().length > 0);
  for (let i = 0; i < 5; i++) journal.step([]);
  assert.strictEqual(journal.entries, null, 'nothing is kept');
  assert.throws(() => journal.bytes(), /more than 3 steps since it began.*begin a new episode/);
});

'use strict';
const test = require('node:test');
const assert = require('node:assert');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');
const fs = require('node:fs');
const { spawn } = require('node:child_process');
const { encode } = require('@msgpack/msgpack');
const { Reader, pack } = require('../wire');
const { Session, serve } = require('../main');
const { decodeActions } = require('../decode');
const { columnsOf } = require('../actions');

const CONFIG = {
  mode: 'embedded', version: '1.16.5', width: 2, agents: 1, names: ['a0'], actions: 'low_level',
  ticks_per_step: 2, view_distance: 2, rgb: null,
  senses: { sight_distance: 48, line_of_sight: true, hearing_distance: 50, chat_distance: 50 },
  needs: true, code: { time_ms: 100, memory_mb: 32, calls: 100 }, server: { doMobSpawning: false }
};
const START = { seed: 1, episode: 0, state: { world: 1, biome: 'plains', site: 'flat', time: 'day',
  weather: 'clear', difficulty: 'normal' }, items: [], targets: [], blocks: [], commands: [] };

/** Returns the action column that does nothing in some slots. */
function still(width) {
  const bytes = Buffer.alloc(width * 64);
  for (let i = 0; i < width; i++) for (const k of [3, 4]) bytes.writeBigInt64LE(12n, (i * 8 + k) * 8);
  return { action: bytes };
}

test('messages are read from a stream however it is split', () => {
  const sent = [{ id: 1, op: 'step' }, { id: 2, bytes: Buffer.from([1, 2, 3]) }, { id: 3, list: [null] }];
  const bytes = Buffer.concat(sent.map(pack));
  for (const size of [1, 2, 3, 5, 7, bytes.length]) {
    const reader = new Reader();
    const got = [];
    for (let at = 0; at < bytes.length; at += size) got.push(...reader.push(bytes.subarray(at, at + size)));
    assert.deepStrictEqual(got.map(({ id }) => id), [1, 2, 3], `in pieces of ${size}`);
    assert.deepStrictEqual([...got[1].bytes], [1, 2, 3]);
  }
});

test('a stream that does not consist of messages is refused', () => {
  assert.throws(() => new Reader().push(Buffer.from([0, 0, 0, 0])), /0 bytes was announced/);
  assert.throws(() => new Reader().push(Buffer.from([255, 255, 255, 255, 1])), /was announced/);
});

test('actions are read by column and slot, and refused when their size is wrong', () => {
  const low = columnsOf('low_level');
  const column = still(2).action;
  column.writeBigInt64LE(7n, 8 * 8);
  const rows = decodeActions(low, { action: column }, 2);
  assert.deepStrictEqual(rows.map(({ action }) => action[0]), [0, 7]);
  assert.throws(() => decodeActions(low, { action: Buffer.alloc(63) }, 1), /expected 64 bytes/);
  assert.throws(() => decodeActions(low, {}, 1), /action: expected 64 bytes/);
  const code = columnsOf('code');
  const kind = Buffer.alloc(8);
  kind.writeBigInt64LE(1n);
  assert.deepStrictEqual(decodeActions(code, { kind, code: ['go()'] }, 1), [{ kind: 1, code: 'go()' }]);
  assert.throws(() => decodeActions(code, { kind, code: [] }, 1), /expected 1 texts/);
});

test('a session says hello, resets, steps, saves, restores and closes', async () => {
  const session = new Session();
  const ask = (op, fields) => session.answer({ id: 5, op, ...fields });
  assert.match((await ask('step', { actions: {} })).error.message, /step before hello/);
  const hello = await ask('hello', { config: CONFIG });
  assert.strictEqual(hello.ok, true, hello.error?.message);
  assert.strictEqual(hello.packages.mineflayer, '4.39.0');
  assert.strictEqual(hello.node, process.version);
  const keys = hello.layout.map(({ key }) => key);
  assert.ok(keys.includes('game_over') && keys.includes('life'));
  const reset = await ask('reset', { slots: [1, 0], starts: [START, START] });
  assert.strictEqual(reset.ok, true, reset.error?.message);
  assert.strictEqual(reset.details.length, 2);
  const step = await ask('step', { actions: still(2) });
  assert.strictEqual(step.columns.length, reset.columns.length);
  assert.strictEqual(step.details[0].tick, 2);
  const { snapshot } = await ask('snapshot', { slot: 1 });
  const after = await ask('step', { actions: still(2) });
  const kept = Buffer.from(after.columns);
  const restored = await ask('restore', { slot: 1, snapshot });
  assert.strictEqual(restored.details[0].tick, 2);
  await ask('restore', { slot: 0, snapshot });
  assert.deepStrictEqual((await ask('step', { actions: still(2) })).columns, kept);
  assert.deepStrictEqual(await ask('close'), { id: 5, ok: true });
});

test('invalid requests are answered with the kind of error, and the session continues', async () => {
  const session = new Session();
  await session.answer({ id: 1, op: 'hello', config: CONFIG });
  const ask = async (op, fields) => (await session.answer({ id: 2, op, ...fields })).error;
  const wrong = (state, more) => ({ slots: [0],
    starts: [{ ...START, ...more, state: { ...START.state, ...state } }] });
  assert.deepStrictEqual((await ask('reset', wrong({ time: 'soon' }))).kind, 'state');
  const item = await ask('reset', wrong({}, { items: [{ name: 'no_item', count: 1, slot: null }] }));
  assert.deepStrictEqual([item.kind, /no_item/.test(item.message)], ['state', true]);
  const mob = await ask('reset', wrong({}, { targets: [{ kind: 'dragonfly', count: 1, distance: 2 }] }));
  assert.deepStrictEqual([mob.kind, /dragonfly/.test(mob.message)], ['state', true]);
  assert.deepStrictEqual((await ask('step', { actions: {} })).kind, 'action');
  assert.deepStrictEqual((await ask('restore', { slot: 0, snapshot: encode({ no: 1 }) })).kind, 'state');
  assert.deepStrictEqual((await ask('restore', { slot: 0, snapshot: Buffer.from('x') })).kind, 'state');
  const { ok } = await session.answer({ id: 3, op: 'reset', ...wrong({}) });
  assert.strictEqual(ok, true);
  await session.answer({ id: 4, op: 'close' });
});

test('requests on a socket are answered in their order, and its end ends the session', async () => {
  const file = path.join(os.tmpdir(), `gamut-wire-${process.pid}.sock`);
  fs.rmSync(file, { force: true });
  let left = null;
  const done = new Promise((resolve) => { left = resolve; });
  const server = net.createServer((socket) => serve(socket, left));
  await new Promise((resolve) => { server.listen(file, resolve); });
  const client = net.connect(file);
  const reader = new Reader();
  const got = [];
  const answered = new Promise((resolve) => {
    client.on('data', (chunk) => {
      got.push(...reader.push(chunk));
      if (got.length === 2) resolve();
    });
  });
  client.write(Buffer.concat([pack({ id: 1, op: 'nothing' }), pack({ id: 2, op: 'close' })]));
  await answered;
  assert.deepStrictEqual(got.map(({ id, ok }) => [id, ok]), [[1, false], [2, true]]);
  assert.match(got[0].error.message, /hello, reset, step/);
  assert.strictEqual(await done, 0);
  client.destroy();
  server.close();
});

test('the process ends when its socket does', async () => {
  const main = path.join(__dirname, '..', 'main.js');
  const child = spawn(process.execPath, [main, '3'], { stdio: ['ignore', 'ignore', 'ignore', 'pipe'] });
  const ended = new Promise((resolve) => { child.on('exit', resolve); });
  const reader = new Reader();
  const answer = new Promise((resolve) => {
    child.stdio[3].on('data', (chunk) => { for (const message of reader.push(chunk)) resolve(message); });
  });
  child.stdio[3].write(pack({ id: 9, op: 'hello', config: CONFIG }));
  const hello = await answer;
  assert.deepStrictEqual([hello.id, hello.ok], [9, true]);
  child.stdio[3].destroy();
  assert.strictEqual(await ended, 0);
});

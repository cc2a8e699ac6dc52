'use strict';
/** Servers in their own processes, and sessions that play on them, for tests of remote mode. */
const assert = require('node:assert');
const { fork } = require('node:child_process');
const path = require('node:path');
const { Session } = require('../main');
const { Columns } = require('../observe/columns');

const START = { seed: 1, episode: 0, state: {}, items: [], targets: [], blocks: [], commands: [] };
const IDLE = [0, 0, 0, 12, 12, 0, 0, 0];
const FORWARD = [1, 0, 0, 12, 12, 0, 0, 0];
const UP_MS = 120000; // starting Node takes long on a busy machine

/** Starts a server (remote_server.js); resolves with {port, tell, pid, stop} once it listens. */
async function serve(t, options = {}) {
  const child = fork(path.join(__dirname, 'remote_server.js'), [JSON.stringify(options)],
    { stdio: ['ignore', 'ignore', 'pipe', 'ipc'], execArgv: [] });
  const said = [];
  child.stderr.on('data', (text) => said.push(String(text)));
  const waiting = [];
  const heard = [];
  child.on('message', (answer) => {
    if (waiting.length > 0) waiting.shift()(answer);
    else heard.push(answer);
  });
  const next = () => new Promise((resolve, reject) => {
    if (heard.length > 0) return resolve(heard.shift());
    const timer = setTimeout(() => reject(new Error(`the server is silent: ${said.join('')}`)), UP_MS);
    return waiting.push((answer) => {
      clearTimeout(timer);
      resolve(answer);
    });
  });
  const stop = () => child.kill('SIGKILL');
  t.after(stop);
  const { port } = await next();
  const tell = async (what) => {
    child.send(what);
    const answer = await next();
    assert.strictEqual(answer.error, undefined, answer.error);
    return answer.ok;
  };
  return { port, tell, stop, pid: child.pid, said };
}

const configOf = (port, more = {}) => {
  const width = more.width ?? 1;
  return {
    mode: 'remote', host: '127.0.0.1', port, version: '1.16.5', width, agents: width,
    names: Array.from({ length: width }, (_, i) => `r${i}`), actions: 'low_level',
    compact_actions: [], ticks_per_step: 4, view_distance: 3, rgb: null,
    senses: { sight_distance: 48, line_of_sight: true, hearing_distance: 50, chat_distance: 50 },
    interest: 48, needs: true, code: { time_ms: 100, memory_mb: 32, calls: 2000, on_event: 'go_on' },
    server: { respawn: false }, ...more
  };
};

/** Returns {hello, reset, step, frame} of a session; each throws what the game answers with. */
function play(t, config) {
  const session = new Session();
  t.after(() => session.answer({ id: 0, op: 'close' }));
  const ask = async (op, fields) => {
    const answer = await session.answer({ id: 1, op, ...fields });
    if (!answer.ok) throw Object.assign(new Error(answer.error.message), answer.error);
    return answer;
  };
  const width = config.width;
  const all = Array.from({ length: width }, (_, i) => i);
  const read = (answer, rows) => {
    const frame = new Columns(rows);
    answer.columns.copy(frame.buffer);
    return { ...frame.columns, details: answer.details };
  };
  return {
    session,
    hello: () => ask('hello', { config }),
    reset: async (slots = all) =>
      read(await ask('reset', { slots, starts: slots.map(() => START) }), slots.length),
    step: async (actions) => read(await ask('step', { actions }), width)
  };
}

/** Returns the columns of `low_level`, one action for each agent. */
function array(...actions) {
  const bytes = Buffer.alloc(actions.length * 64);
  actions.forEach((action, i) => action.forEach((v, k) => bytes.writeBigInt64LE(BigInt(v), (i * 8 + k) * 8)));
  return { action: bytes };
}

const numbers = (values) => {
  const bytes = Buffer.alloc(values.length * 8);
  values.forEach((v, i) => bytes.writeBigInt64LE(BigInt(v), i * 8));
  return bytes;
};

/** Returns the columns of `code`: a program for each agent; null lets the old one continue. */
const code = (...programs) => ({
  kind: numbers(programs.map((program) => (program === null ? 0 : 1))),
  code: programs.map((program) => program ?? '')
});

/** Returns the columns of `human`. */
const keys = (pressed, order) => ({
  keys: Buffer.from(order.map((key) => Number(pressed.includes(key)))), camera: numbers([5, 5])
});

const compact = (number) => ({ action: numbers([number]) });

/** Steps until something holds of a frame; fails after `most` steps. */
async function until(game, actions, most, holds) {
  let frame;
  for (let i = 0; i < most; i++) {
    frame = await game.step(typeof actions === 'function' ? actions(i) : actions);
    if (holds(frame)) return frame;
  }
  return assert.fail(`not after ${most} steps: ${JSON.stringify(frame.details.map((each) =>
    [each.code_info, each.event, each.location_stats?.pos])).slice(0, 3000)}`);
}

const events = (frame, slot = 0) => frame.details[slot].event;

module.exports = { serve, play, configOf, array, code, keys, compact, until, events, IDLE, FORWARD };

'use strict';
/** Remote mode against a server of ours that listens on the network, in real time. */
const test = require('node:test');
const assert = require('node:assert');
const net = require('node:net');
const { once } = require('node:events');
const { makeServer } = require('../server');
const { Session } = require('../main');
const { Columns } = require('../observe/columns');

const START = { seed: 1, episode: 0, state: {}, items: [], targets: [], blocks: [], commands: [] };

const config = (port, width = 1) => ({
  mode: 'remote', host: '127.0.0.1', port, version: '1.16.5', width, agents: width,
  names: Array.from({ length: width }, (_, i) => `r${i}`), actions: 'low_level', ticks_per_step: 4,
  view_distance: 2, rgb: null,
  senses: { sight_distance: 48, line_of_sight: true, hearing_distance: 50, chat_distance: 50 },
  needs: true, code: {}, server: { respawn: false }
});

/** Returns a server that listens, and its port. */
async function listen() {
  const serv = makeServer({ listen: { host: '127.0.0.1', port: 0 }, version: '1.16.5', seed: 5,
    generator: 'flat', viewDistance: 2, names: [], log() {}, fail(error) { throw error; } });
  await once(serv, 'listening');
  return { serv, port: serv._server.socketServer.address().port };
}

async function shut(serv) {
  serv.stopTickInterval();
  for (const player of [...serv.players]) player._client.socket.destroy();
  serv._server.socketServer.close();
}

function walk(width) {
  const bytes = Buffer.alloc(width * 64);
  for (let i = 0; i < width; i++) {
    [1, 0, 0, 12, 12, 0, 0, 0].forEach((v, k) => bytes.writeBigInt64LE(BigInt(v), (i * 8 + k) * 8));
  }
  return { action: bytes };
}

function positions({ columns }, width) {
  const frame = new Columns(width);
  columns.copy(frame.buffer);
  return { at: frame.columns.position, over: frame.columns.game_over };
}

test('agents join a server and walk in real time, and a kick is an event and ends the episode', async () => {
  const { serv, port } = await listen();
  const session = new Session();
  const ask = async (op, fields) => {
    const answer = await session.answer({ id: 1, op, ...fields });
    assert.strictEqual(answer.ok, true, answer.error?.message);
    return answer;
  };
  await ask('hello', { config: config(port, 2) });
  const first = await ask('reset', { slots: [0, 1], starts: [START, START] });
  assert.deepStrictEqual(serv.players.map(({ username }) => username).sort(), ['r0', 'r1']);
  const began = process.hrtime.bigint();
  let frame;
  for (let i = 0; i < 6; i++) frame = await ask('step', { actions: walk(2) });
  const seconds = Number(process.hrtime.bigint() - began) / 1e9;
  assert.ok(seconds > 1.1, `24 ticks in ${seconds} s`);
  const [from, to] = [first, frame].map((each) => positions(each, 2).at);
  assert.ok(Math.hypot(to[0] - from[0], to[2] - from[2]) > 1);
  serv.players.find(({ username }) => username === 'r0').kick('go away');
  frame = await ask('step', { actions: walk(2) });
  assert.deepStrictEqual([...positions(frame, 2).over], [1, 0]);
  const kicked = frame.details[0].event.find(({ type }) => type === 'kicked');
  assert.strictEqual(kicked.reason, 'go away');
  const again = await session.answer({ id: 2, op: 'reset', slots: [0], starts: [START] });
  assert.match(again.error.message, /^127.0.0.1:\d+ for r0: go away$/);
  const refused = await session.answer({ id: 3, op: 'snapshot', slot: 0 });
  assert.deepStrictEqual([refused.error.kind, /embedded/.test(refused.error.message)], ['state', true]);
  await ask('close', {});
  await shut(serv);
});

test('the reason of a server that refuses is quoted, and one that does not exist is named', async () => {
  const { serv, port } = await listen();
  serv._server.on('connection', (client) => {
    client.removeAllListeners('login_start');
    client.once('login_start', () => client.end('full house'));
  });
  const refused = await new Session().answer({ id: 1, op: 'hello', config: config(port) });
  assert.strictEqual(refused.error.kind, 'refused');
  assert.match(refused.error.message, new RegExp(`127.0.0.1:${port} for r0: full house`));
  await shut(serv);
  const probe = net.createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const free = probe.address().port;
  probe.close();
  await once(probe, 'close');
  const absent = await new Session().answer({ id: 1, op: 'hello', config: config(free) });
  assert.strictEqual(absent.error.kind, 'refused');
  assert.match(absent.error.message, /ECONNREFUSED/);
});

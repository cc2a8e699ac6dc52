'use strict';
/** The messages of servers that refuse an agent, and what happens to an agent that they remove. */
const test = require('node:test');
const assert = require('node:assert');
const net = require('node:net');
const { once } = require('node:events');
const { Connection } = require('../remote_connection');
const { serve, play, configOf, array, until, events, IDLE } = require('./remote_help');

/** Returns the message with which a game refuses to start. */
async function refusal(t, config) {
  try {
    await play(t, config).hello();
  } catch (error) {
    assert.strictEqual(error.kind, 'refused', error.message);
    return error.message;
  }
  return assert.fail('it started');
}

async function port(t, serveSocket) {
  const server = net.createServer(serveSocket).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return server.address().port;
}

test('a port without a server, and an unknown host', async (t) => {
  const free = await port(t, () => {});
  const closed = net.createServer().listen(0, '127.0.0.1');
  await once(closed, 'listening');
  const nobody = closed.address().port;
  closed.close();
  await once(closed, 'close');
  assert.notStrictEqual(free, nobody);
  for (const host of ['127.0.0.1', 'localhost']) { // a name of several addresses has an error of errors
    const said = await refusal(t, configOf(nobody, { host }));
    assert.match(said, new RegExp(`^${host}:${nobody} for r0: .*ECONNREFUSED.*start the server`));
  }
  const said = await refusal(t, configOf(25566, { host: 'no-such-host.invalid' }));
  assert.match(said, /^no-such-host\.invalid:25566 for r0: .*(ENOTFOUND|EAI_AGAIN).*set bridge\.host/);
});

test('the reason of a server is quoted in English, with advice', async (t) => {
  const away = (translate, more) => ({ translate, ...more });
  const server = await serve(t, { say: {
    full: away('multiplayer.disconnect.server_full'),
    guest: away('multiplayer.disconnect.not_whitelisted'),
    old: away('multiplayer.disconnect.outdated_client', { with: ['1.20.4'] }),
    thief: away('multiplayer.disconnect.unverified_username'),
    banned: { text: 'You are banned', extra: [{ text: ': lag' }] },
    plain: '§cclosed\u001b[2J for\nrepairs'
  } });
  const said = {
    full: /: The server is full!? \(raise max-players/,
    guest: /: You are not white-?listed on this server!? \(let agents in with \/whitelist add/,
    old: /1\.20\.4.*\(set bridge\.version/,
    thief: /: Failed to verify username!? \(it wants accounts.*online-mode=false/,
    banned: /: You are banned: lag$/,
    plain: /: closed \[2J for repairs$/
  };
  for (const [name, pattern] of Object.entries(said)) {
    assert.match(await refusal(t, configOf(server.port, { names: [name] })), pattern);
  }
  for (let i = 0; i < 20; i++) { // also where it is said before the bot's plug-ins are there
    assert.match(await refusal(t, configOf(server.port, { names: ['banned'] })), said.banned);
  }
});

test('a server of another version, one that asks for accounts, and versions that are none', async (t) => {
  const server = await serve(t);
  assert.match(await refusal(t, configOf(server.port, { version: '1.15.2', join_ms: 8000 })),
    /is that a server of Minecraft 1\.15\.2\?; it says that it is .*1\.16\.5, protocol 754: set bridge/);
  const online = await serve(t, { ours: false, online: true });
  assert.match(await refusal(t, configOf(online.port)), /online-mode=false/);
  assert.match(await refusal(t, configOf(server.port, { version: '1.20.99' })),
    /1\.20\.99.*versions that work are 1\.8\.8, /);
});

test('a server that accepts the connection and sends nothing, or closes it', { timeout: 120000 }, async (t) => {
  const sockets = [];
  t.after(() => sockets.forEach((socket) => socket.destroy()));
  const silent = await port(t, (socket) => sockets.push(socket.on('error', () => {})));
  const slams = await port(t, (socket) => socket.on('error', () => {}).end());
  assert.match(await refusal(t, configOf(slams)), /\(the server, or the way to it, closed the connection\)/);
  assert.match(await refusal(t, configOf(silent, { join_ms: 4000 })),
    /nobody in within 4 s; is that a server of Minecraft 1\.16\.5\?/);
});

test('the message says that the connection was closed, however that was noticed', async (t) => {
  const sockets = [];
  t.after(() => sockets.forEach((socket) => socket.destroy()));
  const silent = await port(t, (socket) => sockets.push(socket.on('error', () => {})));
  for (const noticed of ['read ECONNRESET', 'write EPIPE']) {
    const connection = new Connection(configOf(silent), 'r0');
    assert.ok(connection.bot.pathfinder); // at once, so that a fast server's login is heard
    connection.bot.emit('error', new Error(noticed));
    connection.bot.emit('end', 'socketClosed');
    assert.match(connection.lost.error.message, new RegExp(`: ${noticed} \\(the server, or the way to it`));
    connection.leave('too late');
  }
});

test('a kick, a lost connection and a server that dies give an event, an end, and a reason at the reset', async (t) => {
  const server = await serve(t);
  const game = play(t, configOf(server.port, { width: 3 }));
  await game.hello();
  await game.reset();
  const idle = array(IDLE, IDLE, IDLE);
  await server.tell({ do: 'kick', name: 'r1', reason: { translate: 'multiplayer.disconnect.flying' } });
  await server.tell({ do: 'cut', name: 'r2' });
  let frame = await until(game, idle, 40, (each) => each.game_over[1] === 1 && each.game_over[2] === 1);
  assert.strictEqual(frame.game_over[0], 0);
  const kicked = (slot) => events(frame, slot).filter(({ type }) => type === 'kicked');
  assert.strictEqual(kicked(1).length, 1);
  assert.match(kicked(1)[0].reason, /^Flying is not enabled on this server \(set allow-flight/);
  assert.strictEqual(kicked(1)[0].agent, 'r1');
  assert.strictEqual(kicked(2).length, 1);
  assert.match(kicked(2)[0].reason, /ended: socketClosed|ECONNRESET/);
  await assert.rejects(game.reset([1]), /r1: Flying is not enabled on this server \(set allow-flight/);
  await assert.rejects(game.reset([2]), /r2: .*closed the connection/);
  server.stop();
  frame = await until(game, idle, 40, (each) => each.game_over[0] === 1);
  assert.strictEqual(kicked(0).length, 1);
});

test('the connection to a server that stops sending is closed', { timeout: 180000 }, async (t) => {
  const server = await serve(t);
  const game = play(t, configOf(server.port, { ticks_per_step: 20, silence_ms: 5000 }));
  await game.hello();
  await game.reset();
  await server.tell({ do: 'mute' });
  const frame = await until(game, array(IDLE), 90, (each) => each.game_over[0] === 1);
  const { reason } = events(frame).find(({ type }) => type === 'kicked');
  assert.match(reason, /said nothing for 5 s/);
  assert.ok(Number(frame.tick[0]) >= 60);
});

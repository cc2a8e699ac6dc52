'use strict';
/**
 * A server in its own process, for tests of remote mode: a flying-squid that listens on the
 * network. `node remote_server.js '{"version": "1.16.5", "ours": true, ...}'` says its port. Commands,
 * {"do": "kick", ...}, and answers are messages of Node's channel to its parent, else lines of JSON
 * on standard input (which flying-squid's own servers read themselves) and output. It ends with them.
 *
 * Options: version; ours: our mechanics (1.16.5 only), on flat land or, with biome, our own; else
 * flying-squid's, which may be online: it asks for accounts; say: {name or "*": reason} of whom it
 * turns away at the login, null for silence; kick: {after_ms, reason} of everyone who plays; port,
 * 0 for any.
 */
require('../libraries');
const { once } = require('node:events');
const readline = require('node:readline');

const options = JSON.parse(process.argv[2] ?? '{}');
const version = options.version ?? '1.16.5';

function ours() {
  const { makeServer } = require('../server');
  const { makeGenerator } = require('../generator');
  const generator = options.biome === undefined ? 'flat'
    : makeGenerator({ seed: 5, biome: options.biome, site: 'wild' });
  return makeServer({ listen: { host: '127.0.0.1', port: options.port ?? 0 }, version, seed: 5,
    generator, viewDistance: 4, names: [], log() {}, fail() {} });
}

function theirs() {
  const { createMCServer } = require('flying-squid');
  return createMCServer({ version, host: '127.0.0.1', port: options.port ?? 0, motd: 'test',
    'max-players': 20, 'online-mode': Boolean(options.online), gameMode: 0, difficulty: 1,
    generation: { name: 'superflat', options: {} }, plugins: {}, logging: false, 'view-distance': 3,
    'everybody-op': false, 'max-entities': 100, kickTimeout: 10000, hideErrors: true,
    errorHandler: (client, error) => client.end(String(error?.message ?? error)),
    'player-list-text': { header: { text: '' }, footer: { text: '' } } });
}

const serv = options.ours === false ? theirs() : ours();
const player = (name) => serv.players.find(({ username }) => username === name);

function turnAway(client) {
  const say = options.say ?? {};
  const [own] = client.listeners('login_start');
  client.removeAllListeners('login_start');
  client.once('login_start', (packet) => {
    const reason = say[packet.username] ?? say['*'];
    if (reason === undefined) own.call(client, packet);
    else if (reason !== null) client.end('turned away', JSON.stringify(reason));
  });
}

const COMMANDS = {
  kick: ({ name, reason }) => player(name)._client.end(reason, JSON.stringify(reason)),
  hurt: ({ name, amount }) => serv.survival.hurt(player(name), { amount, cause: 'magic' }),
  run: ({ line }) => serv.handleCommand(line),
  cut: ({ name }) => player(name)._client.socket.destroy(),
  mute: () => { // keeps reading, and sends nothing
    for (const each of serv.players) each._client.socket.cork();
  },
  say: (all) => { options.say = all.reasons; },
  players: () => serv.players.map(({ username, position, health }) =>
    ({ username, health, at: [position.x, position.y, position.z] }))
};

/** Kicks each player a while after it came. */
function kickAll({ after_ms: ms, reason }) {
  const seen = new Set();
  setInterval(() => {
    for (const { username } of serv.players.filter((each) => !seen.has(each))) {
      seen.add(player(username));
      setTimeout(() => player(username) && COMMANDS.kick({ name: username, reason }), ms);
    }
  }, 50);
}

function obey(asked) {
  try {
    return { ok: COMMANDS[asked.do](asked) ?? true };
  } catch (error) {
    return { error: String(error.stack) };
  }
}

async function main() {
  const channel = process.send !== undefined;
  const say = (message) => (channel ? process.send(message)
    : process.stdout.write(`${JSON.stringify(message)}\n`));
  if (options.say !== undefined) serv._server.on('connection', turnAway);
  if (!serv._server.socketServer.listening) await once(serv, 'listening');
  say({ port: serv._server.socketServer.address().port });
  if (options.kick !== undefined) kickAll(options.kick);
  const leave = () => process.exit(0);
  if (channel) {
    process.on('message', (asked) => say(obey(asked)));
    process.on('disconnect', leave);
    return;
  }
  const lines = readline.createInterface({ input: process.stdin });
  lines.on('line', (line) => say(obey(JSON.parse(line))));
  lines.on('close', leave);
}

process.on('uncaughtException', (error) => process.stderr.write(`${error.stack}\n`));
main();

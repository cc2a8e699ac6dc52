'use strict';
/**
 * The game process of one Gamut instance: requests come over a socket, whose file
 * descriptor is the last argument, one at a time, and each is answered; the process ends when the
 * socket is closed. Messages are those of wire.js.
 *
 *   request {id, op, ...}             answer {id, ok: true, ...}
 *   hello    config                   node, packages, layout, and sceneTable's where rgb is wanted
 *   reset    slots, starts            columns, details: a frame of len(slots) rows
 *   step     actions {column: ..}     columns, details: a frame of all slots
 *   command  slot, command            answer, or refused: the game's words
 *   state    slot, voxels, mobs       state, see observe/state.js
 *   leave    slot                     nothing; the agent is gone until its slot is reset
 *   snapshot slot                     snapshot
 *   restore  slot, snapshot           columns, details: a frame of one row
 *   close                             nothing; then the process ends
 *
 * A failure is answered by {id, ok: false, error: {kind, message}}: `state` (cannot start from
 * that, or not a snapshot), `action` (invalid action), `refused` (a server does not admit an
 * agent), `bug` (anything else; its stack is in the log).
 */
require('./libraries');
const net = require('node:net');
const { shareVersion } = require('./libraries');
const { Reader, pack } = require('./wire');
const { Game } = require('./game');
const { ActionError } = require('./decode');
const { RemoteGame, EndedError, KickedError, RefusedError } = require('./remote');
const { StateError } = require('./start');
const { SnapshotError } = require('./snapshot');
const { sceneTable } = require('./observe/scene');
const { LAYOUT } = require('./observe/columns');

/** Error kinds of the protocol by error class; any other is a bug. */
const KINDS = [[StateError, 'state'], [SnapshotError, 'state'], [ActionError, 'action'],
  [KickedError, 'kicked'], [EndedError, 'ended'], [RefusedError, 'refused']];
const PACKAGES = ['flying-squid', 'minecraft-data', 'minecraft-protocol', 'mineflayer',
  'mineflayer-pathfinder', 'prismarine-chunk', 'prismarine-world', 'quickjs-emscripten'];

/** Answers requests with a game; a class so that tests can run it without a process. */
class Session {
  constructor() {
    this.game = null;
  }

  /** Returns the answer to a request, never throws. */
  async answer(request) {
    const { id } = request;
    try {
      const run = Session.OPS[request.op];
      if (run === undefined) {
        throw new Error(`no request is called ${request.op}: ${Object.keys(Session.OPS).join(', ')}`);
      }
      if (this.game === null && request.op !== 'hello' && request.op !== 'close') {
        throw new Error(`${request.op} before hello`);
      }
      return { id, ok: true, ...await run.call(this, request) };
    } catch (error) {
      const found = KINDS.find(([type]) => error instanceof type);
      const kind = found === undefined ? 'bug' : found[1];
      if (kind === 'bug') console.error(error?.stack ?? error);
      return { id, ok: false, error: { kind, message: error?.message ?? String(error) } };
    }
  }

  async hello({ config }) {
    this.game = config.mode === 'remote' ? new RemoteGame(config) : new Game(config);
    await this.game.warm();
    const registry = shareVersion(config.version);
    return { node: process.version, packages: versions(), layout: LAYOUT,
      ...(config.rgb || config.person ? sceneTable(registry) : {}) };
  }

  reset({ slots, starts }) {
    return this.game.reset(slots, starts);
  }

  step({ actions }) {
    return this.game.step(actions);
  }

  async command({ slot, command }) {
    return this.game.command(slot, command);
  }

  state({ slot, voxels, mobs }) {
    return { state: this.game.state(slot, { voxels, mobs }) };
  }

  async leave({ slot }) {
    await this.game.leave(slot);
    return {};
  }

  snapshot({ slot }) {
    return { snapshot: this.game.snapshot(slot) };
  }

  restore({ slot, snapshot }) {
    return this.game.restore(slot, snapshot);
  }

  async close() {
    await this.game?.close();
    return {};
  }
}

Session.OPS = Object.fromEntries(['hello', 'reset', 'step', 'command', 'state', 'leave', 'snapshot', 'restore',
  'close']
  .map((op) => [op, Session.prototype[op]]));

function versions() {
  return Object.fromEntries(PACKAGES.map((name) => {
    // Some packages do not allow requiring their package.json.
    const path = require.resolve.paths(name).map((folder) => `${folder}/${name}/package.json`)
      .find((file) => require('node:fs').existsSync(file));
    return [name, path === undefined ? 'missing' : require(path).version];
  }));
}

/** Serves a socket until it is closed. */
function serve(socket, leave) {
  const session = new Session();
  const reader = new Reader();
  let turn = Promise.resolve();
  const handle = async (request) => {
    const answer = await session.answer(request);
    socket.write(pack(answer));
    if (request.op === 'close') socket.end(() => leave(0));
  };
  socket.on('data', (chunk) => {
    try {
      for (const request of reader.push(chunk)) turn = turn.then(() => handle(request));
    } catch (error) {
      console.error(`the socket carries no messages: ${error.message}`);
      leave(1);
    }
  });
  socket.on('error', () => leave(0));
  socket.on('end', () => leave(0));
}

if (require.main === module) {
  process.on('unhandledRejection', (error) => {
    // Libraries start promises that are never awaited; relevant errors reach a caller in other
    // ways.
    console.error('unhandled rejection:', error?.stack ?? error);
  });
  const fd = Number(process.argv.at(-1));
  serve(new net.Socket({ fd, readable: true, writable: true }), (code) => process.exit(code));
}

module.exports = { Session, serve };

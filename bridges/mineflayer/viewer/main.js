'use strict';
/**
 * The process that draws the views of the agents of one Gamut instance; the wire format is that of
 * the game (game/wire.js): requests come over file descriptor 3, a socket, and the process ends
 * when it is closed.
 *
 *   request {id, op, ...}                          answer {id, ok: true, ...}
 *   hello  xvfb, version, width, height, table     opengl
 *   draw   scene, updates, forget                  picture: height x width x 3 bytes
 *   close                                          nothing; then the process ends
 *
 * `forget` lists scenes that are no longer needed. A failure is answered by {id, ok: false, error:
 * {kind: 'bug', message}}.
 */
const net = require('node:net');
const { Reader, pack } = require('../game/wire');
const { startDisplay } = require('./display');

const SOCKET = 3;

class Session {
  constructor() {
    this.display = null;
    this.view = null;
  }

  async hello({ xvfb, ...config }) {
    this.display = await startDisplay(xvfb);
    process.env.DISPLAY = this.display.name;
    const { View } = require('./view');
    this.view = new View(config);
    return { opengl: this.view.screen.describe() };
  }

  draw({ scene, updates, forget }) {
    for (const each of forget) this.view.forget(each);
    return { picture: this.view.draw(scene, updates) };
  }

  async close() {
    await this.display?.stop();
    return {};
  }

  /** Returns the answer to a request, never throws. */
  async answer(request) {
    const { id, op } = request;
    try {
      if (!Session.OPS.includes(op)) throw new Error(`no request is called ${op}: ${Session.OPS.join(', ')}`);
      return { id, ok: true, ...await this[op](request) };
    } catch (error) {
      console.error(error?.stack ?? error);
      return { id, ok: false, error: { kind: 'bug', message: error?.message ?? String(error) } };
    }
  }
}
Session.OPS = ['hello', 'draw', 'close'];

function serve(socket) {
  const session = new Session();
  const reader = new Reader();
  let turn = Promise.resolve();
  const leave = (code) => session.close().finally(() => process.exit(code));
  const handle = async (request) => {
    socket.write(pack(await session.answer(request)));
    if (request.op === 'close') socket.end(() => process.exit(0));
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

serve(new net.Socket({ fd: SOCKET, readable: true, writable: true }));

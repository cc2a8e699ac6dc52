'use strict';
/**
 * An X server without a screen: headless-gl draws through GLX, which needs a server.
 *
 * It is a child of this process and in its group, so it ends with the group; and it ends with its
 * last connection, so it does not outlive a process that was killed.
 */
const { spawn } = require('node:child_process');
const { once } = require('node:events');

const FD = 3;
const START_MS = 20_000;
/** Drawing uses the default framebuffer, whatever the size of the screen. */
const OPTIONS = ['-displayfd', String(FD), '-screen', '0', '16x16x24', '-nolisten', 'tcp', '-terminate'];

/**
 * Starts the server and waits until it accepts connections.
 *
 * @param {string} program path of Xvfb
 * @returns {Promise<{name: string, stop: () => Promise<void>}>} its name, as in DISPLAY, and its end
 * @throws {Error} if it does not come up; what it said is on stderr
 */
async function startDisplay(program) {
  const server = spawn(program, OPTIONS, { stdio: ['ignore', 'inherit', 'inherit', 'pipe'] });
  const gone = Promise.race([once(server, 'exit'), once(server, 'error')]);
  const name = await firstLine(server.stdio[FD], gone);
  server.unref();
  return {
    name: `:${name}`,
    /** Asks it to end, so that it removes its lock file, and waits for that. */
    stop: async () => {
      if (server.exitCode !== null || server.signalCode !== null) return;
      server.ref();
      server.kill('SIGTERM');
      await gone;
    },
  };
}

function firstLine(stream, gone) {
  return new Promise((resolve, reject) => {
    let text = '';
    const timer = setTimeout(() => reject(new Error(`Xvfb was not ready after ${START_MS} ms`)), START_MS);
    const finish = (action, value) => {
      clearTimeout(timer);
      action(value);
    };
    stream.on('data', (bytes) => {
      text += bytes;
      if (text.includes('\n')) finish(resolve, text.trim());
    });
    gone.then(([why]) => finish(reject, new Error(`Xvfb ended at its start: ${why?.message ?? why}`)));
  });
}

module.exports = { startDisplay };

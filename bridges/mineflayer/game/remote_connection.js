'use strict';
/**
 * One agent's connection to a real server: joining, the server's reason when it refuses or removes
 * an agent, and whether it still sends.
 */
require('./libraries');
const mineflayer = require('mineflayer');
const { ping } = require('minecraft-protocol');
const minecraftData = require('minecraft-data');
const { Vec3 } = require('vec3');
const { real } = require('./context');
const { mend } = require('./agents');
const { plain } = require('./observe/events');

const TICK_MS = 50;
const GROUND_MS = 5000; // for the ground under a new agent to arrive
const PING_MS = 3000; // for a server to report its version
const RISE_MS = 10000; // for a dead agent to respawn
const MOST_SAID = 500; // characters of a server's reason
const BLAME_MS = 1000; // an error so shortly before the end of a connection is taken as its reason
/** A server sends the time every second; a client disconnects after thirty without (Minecraft Wiki, Server). */
const SILENCE_MS = 30000;

/** Advice by error message. */
const ADVICE = [
  [/ECONNREFUSED/, 'nobody listens there; start the server, or set bridge.host and bridge.port'],
  [/ENOTFOUND|EAI_AGAIN/, 'no host of that name is known; set bridge.host'],
  [/EHOSTUNREACH|ENETUNREACH|ETIMEDOUT/, 'no way leads there; set bridge.host and bridge.port'],
  [/verif|online-mode|encryption/i, 'it wants accounts of Microsoft\'s, which agents have not; set '
    + 'online-mode=false in its server.properties'],
  [/white-?list/i, 'let agents in with /whitelist add NAME'],
  [/\bfull\b/i, 'raise max-players in its server.properties'],
  [/outdated|incompatible|protocol version|is version/i, 'set bridge.version to its version'],
  [/another location|already (connected|online|logged)|name_taken/i,
    'another player has that name; set bridge.names'],
  [/flying/i, 'set allow-flight=true in its server.properties'],
  [/throttl/i, 'set connection-throttle: -1 in its bukkit.yml'],
  [/socketClosed|ECONNRESET|EPIPE/, 'the server, or the way to it, closed the connection']
];

/** The server refused or removed an agent; the message has the reason. */
class RefusedError extends Error {}

/** The server kicked an agent. */
class KickedError extends RefusedError {}

/** The connection of an agent ended. */
class EndedError extends RefusedError {}

const sleep = (ms) => new Promise((resolve) => { real.setTimeout(resolve, ms); });

/** Returns a text with advice, if there is any for it. */
function advised(text) {
  const found = ADVICE.find(([pattern]) => pattern.test(text));
  return found === undefined ? text : `${text} (${found[1]})`;
}

/** Returns the message of an error; Node's error for several addresses of a host has none of its own. */
function wordsOf(error) {
  const all = error?.errors?.map(({ message }) => message) ?? [error?.message ?? String(error)];
  return all.filter(Boolean).join(', ') || String(error?.code ?? error);
}

/** Returns a server's text as a short line for a terminal: no colours, no control characters. */
const plainly = (text) => text.replace(/§./g, '').replace(/[\p{Cc}\s]+/gu, ' ').trim().slice(0, MOST_SAID);

/** Returns a server's reason in English: a translation key is replaced by the phrase of the version. */
function reasonOf(reason, data) {
  const text = plain(reason);
  const [, key, rest] = /^([a-z]+(?:\.\w+)+) ?(.*)$/s.exec(text) ?? [];
  const phrase = data?.language?.[key];
  if (phrase === undefined) return text;
  return phrase.includes('%s') ? phrase.replace('%s', rest) : `${phrase} ${rest}`.trimEnd();
}

const READS = ['getBlockStateId', 'getBlockType', 'getBlockData', 'getBlockLight', 'getSkyLight',
  'getBiome'];
const mended = new WeakSet();

/** Makes the columns of a world accept any {x, y, z}: those of 1.8 accept only a Vec3. */
function mendColumns(bot) {
  bot.on('chunkColumnLoad', (corner) => {
    const column = bot.world.getColumnAt(corner);
    const methods = column === null || column === undefined ? null : Object.getPrototypeOf(column);
    if (methods === null || mended.has(methods)) return;
    mended.add(methods);
    for (const name of READS.filter((each) => each in methods)) {
      const read = methods[name];
      methods[name] = function readAt(at) {
        return read.call(this, at.modulus === undefined ? new Vec3(at.x, at.y, at.z) : at);
      };
    }
  });
}

/**
 * Makes the item of a dropped entity readable before its server has sent it; mineflayer's own
 * throws.
 */
function mendItems(bot) {
  bot.on('entitySpawn', (entity) => {
    const methods = Object.getPrototypeOf(entity);
    if (mended.has(methods)) return;
    mended.add(methods);
    const read = methods.getDroppedItem;
    methods.getDroppedItem = function droppedItem() {
      try {
        return read.call(this);
      } catch { // its data are missing, or in a form that this version's tables do not have
        return null;
      }
    };
  });
}

/** Resolves with what a server says about its version, for the end of a message; empty if nothing. */
async function versionSaid({ host, port, version }) {
  const asked = ping({ host, port, version, closeTimeout: PING_MS, noPongTimeout: PING_MS })
    .catch(() => null); // it only adds information to a failure
  const said = (await Promise.race([asked, sleep(PING_MS)]))?.version;
  if (said?.name === undefined || said.protocol === minecraftData(version).version.version) return '';
  return `; it says that it is ${said.name}, protocol ${said.protocol}: set bridge.version to that`;
}

/** One agent's connection: its bot, whether the server still speaks, and how it ended. */
class Connection {
  /** @param {object} config as in the protocol's hello @param {string} username */
  constructor(config, username) {
    this.username = username;
    this.where = `${config.host}:${config.port}`;
    this.config = config;
    this.silenceMs = config.silence_ms ?? SILENCE_MS;
    this.stage = 'found';
    this.heard = real.now();
    this.lost = null;
    this.leaving = false;
    this.trouble = { text: '', at: -Infinity };
    this.onLost = () => {};
    this.bot = this.create(config);
    this.follow();
  }

  create(config) {
    try {
      const bot = mineflayer.createBot({
        host: config.host, port: config.port, username: this.username, version: config.version,
        auth: 'offline', hideErrors: true, logErrors: false,
        respawn: Boolean(config.server?.respawn), viewDistance: Math.max(2, config.view_distance)
      });
      mend(bot);
      mendItems(bot);
      if (/^1\.(8|9)(\.|$)/.test(config.version)) mendColumns(bot);
      // Adds the plug-ins now. mineflayer adds them a millisecond later, and misses the login of a
      // server that is faster.
      bot.emit('inject_allowed');
      return bot;
    } catch (error) { // it throws for versions that it has no tables of
      throw new RefusedError(`${this.where} for ${this.username}: ${wordsOf(error)}; versions that `
        + `work are ${mineflayer.testedVersions.join(', ')}`);
    }
  }

  follow() {
    const { bot } = this;
    const client = bot._client;
    client.on('packet', () => { this.heard = real.now(); });
    client.once('encryption_begin', () => { this.stage = 'asked for an account'; });
    bot.once('connect', () => { this.stage = 'connected'; });
    bot.once('login', () => { this.stage = 'logged in'; });
    bot.on('health', () => { // some servers leave it out
      if (!(bot.foodSaturation >= 0)) bot.foodSaturation = 0;
    });
    // For the whole connection, so that none of its errors ends the process; its end comes as
    // `end`.
    bot.on('error', (error) => { this.trouble = { text: wordsOf(error), at: real.now() }; });
    // Before mineflayer's own listener, whose event the agent hears.
    const kicked = ({ reason }) => {
      this.lose(KickedError, reasonOf(reason, minecraftData(this.config.version)));
      real.setImmediate(() => client.socket?.destroy()); // some servers wait for us to leave
    };
    for (const packet of ['disconnect', 'kick_disconnect']) client.prependListener(packet, kicked);
    bot.once('end', (reason) => {
      const recent = real.now() - this.trouble.at < BLAME_MS;
      this.lose(EndedError, recent ? this.trouble.text : `the connection ended: ${reason}`);
    });
  }

  /** Records why the connection ended, the first time; unless we left ourselves. */
  lose(type, said) {
    if (this.lost !== null || this.leaving) return;
    const account = this.stage === 'asked for an account' ? ', after it asked to verify an account' : '';
    const text = advised(plainly(said) + account);
    const message = `${this.where} for ${this.username}: ${text}`;
    this.lost = { text, error: new type(message) };
    this.onLost(text);
  }

  get gone() {
    return this.leaving || this.lost !== null || this.bot._client.ended;
  }

  /** Resolves once the bot has spawned and lives; throws RefusedError with the reason. */
  async join(ms) {
    const { bot } = this;
    // An agent that died before comes back dead, and a server waits for the respawn key.
    const rise = () => bot.respawn();
    bot.on('death', rise);
    const spawned = await this.waitFor('spawn', ms);
    bot.off('death', rise);
    if (this.lost?.error instanceof KickedError) throw new RefusedError(this.lost.error.message);
    if (!spawned || this.lost !== null) {
      this.leave('too late');
      const said = this.lost?.text ?? this.tooLate(ms);
      const more = this.stage === 'found' ? '' : await versionSaid(this.config);
      throw new RefusedError(`${this.where} for ${this.username}: ${said}${more}`);
    }
    const until = real.now() + GROUND_MS;
    while (!this.gone && real.now() < until && bot.blockAt(bot.entity.position) === null) {
      await sleep(TICK_MS);
    }
  }

  tooLate(ms) {
    const within = `within ${Math.round(ms / 1000)} s`;
    if (this.stage === 'found') return advised(`ETIMEDOUT: no connection ${within}`);
    if (this.stage === 'logged in') return `no spawn ${within} after the login`;
    const { version } = this.config;
    return `it took the connection and let nobody in ${within}; is that a server of Minecraft ${version}?`;
  }

  /** Resolves with whether an event of the bot came in time; also false when the connection ends. */
  waitFor(event, ms) {
    return new Promise((resolve) => {
      const done = (came) => {
        real.clearTimeout(timer);
        this.bot.off(event, yes);
        this.bot.off('end', no);
        resolve(came);
      };
      const [yes, no] = [() => done(true), () => done(false)];
      const timer = real.setTimeout(no, ms);
      this.bot.on(event, yes);
      this.bot.on('end', no);
    });
  }

  /** Ends a connection whose server has sent nothing for too long. */
  watch() {
    if (this.gone || real.now() - this.heard < this.silenceMs) return;
    this.lose(EndedError, `the server has said nothing for ${this.silenceMs / 1000} s`);
    this.bot._client.socket?.destroy();
  }

  /** Prepares the body for a new episode; returns whether that succeeded. */
  async refresh() {
    const { bot } = this;
    if (!(bot.health > 0)) {
      const risen = this.waitFor('spawn', RISE_MS);
      bot.respawn();
      if (!await risen) return false;
    }
    bot.clearControlStates();
    bot.stopDigging();
    bot.pathfinder.setGoal(null);
    if (bot.currentWindow) bot.closeWindow(bot.currentWindow);
    if (bot.isSleeping) await bot.wake().catch(() => {}); // another player may have woken it
    return true;
  }

  leave(reason) {
    if (this.leaving) return;
    this.leaving = true;
    if (!this.bot._client.ended) this.bot.quit(reason);
    if (reason === 'too late') this.bot._client.socket?.destroy();
  }
}

module.exports = { Connection, RefusedError, KickedError, EndedError, sleep };

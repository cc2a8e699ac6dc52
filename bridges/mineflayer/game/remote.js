'use strict';
/**
 * Agents on a real server at host:port, in real time. Its world is what it is: a start gives no
 * items and spawns nothing, nothing repeats, and a step lasts as long as its ticks do.
 */
require('./libraries');
const mineflayer = require('mineflayer');
const { real } = require('./context');
const { mend } = require('./agents');
const { Agent } = require('./agent');
const { Columns } = require('./observe/columns');
const { columnsOf } = require('./actions');
const { plain } = require('./observe/events');
const { sceneOf } = require('./scenes');
const { decodeActions } = require('./decode');
const { StateError } = require('./start');

const JOIN_MS = 30000;
const TICK_MS = 50;
const DAY = 24000;

/** The server did not let an agent in; the message has its reason. */
class RefusedError extends Error {}

const sleep = (ms) => new Promise((resolve) => { real.setTimeout(resolve, ms); });

/** Resolves with a bot that has spawned; throws RefusedError with what the server said. */
function join(config, username) {
  const where = `${config.host}:${config.port}`;
  return new Promise((resolve, reject) => {
    const bot = mineflayer.createBot({
      host: config.host, port: config.port, username, version: config.version, auth: 'offline',
      hideErrors: true, logErrors: false, respawn: Boolean(config.server?.respawn),
      viewDistance: Math.max(2, config.view_distance)
    });
    mend(bot);
    const fail = (text) => {
      real.clearTimeout(timer);
      if (bot._client?.ended === false) bot._client.end('refused');
      reject(new RefusedError(`${where} for ${username}: ${text}`));
    };
    const timer = real.setTimeout(() => fail(`no spawn within ${JOIN_MS / 1000} s`), JOIN_MS);
    let refusal = null;
    bot.on('kicked', (reason) => { refusal = plain(reason); });
    bot.on('error', (error) => fail(refusal ?? error.message));
    bot.once('end', (reason) => fail(refusal ?? `the connection ended: ${reason}`));
    bot.once('spawn', () => {
      real.clearTimeout(timer);
      bot.removeAllListeners('error');
      bot.on('error', () => {}); // what ends the connection comes as `end`
      resolve(bot);
    });
  });
}

/** Slots that are players of one real server; the same methods as Game. */
class RemoteGame {
  /** @param {object} config as in the protocol's hello */
  constructor(config) {
    this.config = config;
    this.names = config.names;
    this.serv = null;
    this.targets = [];
    this.ticks = 0;
    this.layout = columnsOf(config.actions);
    this.agents = new Array(config.width).fill(null);
    this.last = new Columns(config.width);
    this.details = Array.from({ length: config.width }, () => ({}));
    this.idle = new Array(config.width).fill(true);
  }

  /** Joins with the first agent, so that a server that refuses is known at the start. */
  async warm() {
    this.bots = new Array(this.config.width).fill(null);
    this.bots[0] = await join(this.config, this.names[0]);
    this.firstTime = this.bots[0].time.time ?? 0;
  }

  tick() {
    return this.ticks;
  }

  day() {
    const now = this.bots[0]?.time?.time ?? this.firstTime;
    return Math.max(0, Math.floor(now / DAY) - Math.floor(this.firstTime / DAY));
  }

  async reset(slots) {
    for (const slot of slots) {
      this.agents[slot]?.leave();
      this.bots[slot] = await this.alive(this.bots[slot], this.names[slot]);
      this.agents[slot] = new Agent(this, this.bots[slot], this.config);
      this.show(slot);
    }
    return this.frame(slots);
  }

  /** Returns a bot that plays: the same one if it still does, else a new connection. */
  async alive(bot, name) {
    const gone = bot === null || bot._client.ended;
    if (!gone && bot.health > 0) {
      bot.clearControlStates();
      bot.pathfinder.setGoal(null);
      return bot;
    }
    if (!gone) bot.quit('a new episode');
    return join(this.config, name);
  }

  async step(columns) {
    const rows = decodeActions(this.layout, columns, this.config.width);
    const playing = rows.map((_, slot) => slot).filter((slot) => !this.idle[slot]);
    for (const slot of playing) await this.agents[slot].act(rows[slot]);
    const began = real.now();
    for (let i = 1; i <= this.config.ticks_per_step; i++) {
      await sleep(Math.max(0, began + i * TICK_MS - real.now()));
      this.ticks++;
      for (const slot of playing) this.agents[slot].afterTick();
    }
    for (const slot of playing) this.show(slot);
    return this.frame(rows.map((_, slot) => slot));
  }

  show(slot) {
    const agent = this.agents[slot];
    const { values, details } = agent.look();
    this.last.write(slot, values);
    this.details[slot] = this.config.rgb ? { ...details, scene: sceneOf(agent) } : details;
    this.idle[slot] = values.game_over || values.game_truncated;
  }

  frame(slots) {
    const columns = new Columns(slots.length);
    slots.forEach((slot, row) => columns.copy(row, this.last, slot));
    return { columns: columns.buffer, details: slots.map((slot) => this.details[slot]) };
  }

  snapshot() {
    throw new StateError('a real server cannot be saved: play in mode embedded for snapshots');
  }

  restore() {
    return this.snapshot();
  }

  /** Takes every agent off the server. */
  close() {
    for (const agent of this.agents) agent?.leave();
    for (const bot of this.bots ?? []) if (bot !== null && !bot._client.ended) bot.quit('bye');
  }
}

module.exports = { RemoteGame, RefusedError };

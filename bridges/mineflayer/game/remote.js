'use strict';
/**
 * Agents on a real server at host:port, in real time. Its world is used as it is: a start gives no
 * items and spawns nothing, nothing is reproducible, and a step lasts as long as its ticks.
 *
 * If an agent loses its connection (a kick, a lost connection, no messages), it gets an event
 * `kicked` with the server's reason, and its episode is over. The following reset fails with the
 * same reason: it belongs in the log of the run, and a server that repeatedly removes agents must
 * end a run and not fill it with episodes of one step.
 */
const { shareVersion } = require('./libraries');
const { real } = require('./context');
const { Agent } = require('./agent');
const { Columns } = require('./observe/columns');
const { columnsOf } = require('./actions');
const { sceneOf } = require('./scenes');
const { decodeActions } = require('./decode');
const { StateError } = require('./start');
const { beginStep } = require('./sandbox/patience');
const { Connection, RefusedError, KickedError, EndedError, sleep } = require('./remote_connection');

const TICK_MS = 50;
const DAY = 24000;
const JOIN_MS = 30000; // for one agent to join
const RESET_MS = 50000; // for all of a reset; the bridge waits a minute for it
const AT_ONCE = 4; // agents that join concurrently
const THROTTLED_MS = 4500; // Bukkit servers admit an address once in four seconds
/** Tables of a version that a server fills when an agent joins: its dimensions, biomes, chat. */
const TOLD = ['dimensionsById', 'dimensionsByName', 'dimensionsArray', 'biomes', 'biomesByName',
  'biomesArray', 'chatFormattingById', 'chatFormattingByName'];

/** Returns the time sent by a server, in ticks of its world; null before the first. */
const timeOf = (bot) => bot?.time?.time ?? null;

/** Slots that are players of one real server; the same methods as Game. */
class RemoteGame {
  /**
   * @param {object} config as in the protocol's hello; for tests also `join_ms` and `silence_ms`, how
   *   long an agent may take to come in, and a server may say nothing
   */
  constructor(config) {
    this.config = config;
    this.joinMs = config.join_ms ?? JOIN_MS;
    this.names = [...config.names];
    this.serv = null;
    this.targets = [];
    this.ticks = 0;
    this.layout = columnsOf(config.actions);
    this.agents = new Array(config.width).fill(null);
    this.connections = new Array(config.width).fill(null);
    this.last = new Columns(config.width);
    this.details = Array.from({ length: config.width }, () => ({}));
    this.idle = new Array(config.width).fill(true);
  }

  /** Joins with the first agent, so that a server that refuses is detected at the start. */
  async warm() {
    await this.enter(0, real.now() + this.joinMs);
    // All agents share the tables of a version from now on (main.js, for the renderer), which
    // ignore what servers send: what this one sent to the first agent has to be in them.
    const told = this.connections[0].bot.registry;
    const registry = shareVersion(this.config.version);
    for (const key of TOLD) if (told[key] !== undefined) registry[key] = told[key];
  }

  tick() {
    return this.ticks;
  }

  /** Begins episodes: the agents continue from their current state, or join. */
  async reset(slots, starts = []) {
    slots.forEach((slot, i) => { if (starts[i]?.name) this.names[slot] = starts[i].name; });
    const until = real.now() + RESET_MS;
    for (const slot of slots) {
      this.idle[slot] = true;
      this.agents[slot]?.leave();
      this.agents[slot] = null;
    }
    for (const slot of slots) {
      const lost = this.connections[slot]?.lost ?? null;
      if (lost !== null) throw lost.error;
    }
    for (let i = 0; i < slots.length; i += AT_ONCE) {
      if (real.now() > until) {
        throw new RefusedError(`${this.config.host}:${this.config.port}: ${i} of ${slots.length} agents `
          + `came in within ${RESET_MS / 1000} s; begin with fewer, or have the server let them in faster`);
      }
      await Promise.all(slots.slice(i, i + AT_ONCE).map((slot) => this.enter(slot, until)));
    }
    for (const slot of slots) this.begin(slot);
    return this.frame(slots);
  }

  /** Gives a slot a bot that plays: the same one if it is still connected, else a new connection. */
  async enter(slot, until) {
    const old = this.connections[slot];
    if (old !== null && !old.gone && await old.refresh()) return;
    old?.leave('a new episode');
    const begun = real.now();
    for (;;) {
      const connection = new Connection(this.config, this.names[slot]);
      this.connections[slot] = connection;
      const ms = Math.max(TICK_MS, Math.min(begun + this.joinMs, until) - real.now());
      try {
        await connection.join(ms);
        return;
      } catch (error) {
        const again = real.now() + 2 * THROTTLED_MS < Math.min(begun + this.joinMs, until);
        if (!again || !/throttl/i.test(error.message)) throw error;
      }
      await sleep(THROTTLED_MS);
    }
  }

  begin(slot) {
    const connection = this.connections[slot];
    const { bot } = connection;
    const agent = new Agent(this.episode(bot), bot, this.config);
    this.agents[slot] = agent;
    // Before the agent's own listener, so that its event says why the connection ended.
    connection.onLost = (text) => agent.end('kicked', text);
    if (connection.lost !== null) agent.end('kicked', connection.lost.text);
    this.show(slot);
  }

  /** Returns this world for an episode that begins now: days count from here. */
  episode(bot) {
    const view = Object.create(this);
    let first = timeOf(bot);
    view.day = () => {
      first ??= timeOf(bot);
      const now = timeOf(bot) ?? 0;
      return Math.max(0, Math.floor(now / DAY) - Math.floor((first ?? 0) / DAY));
    };
    return view;
  }

  /**
   * Plays one action in every slot that is not over, in the real time of the ticks of a step.
   * Delays are not made up for: the next step begins when it is requested.
   */
  async step(columns) {
    const rows = decodeActions(this.layout, columns, this.config.width);
    beginStep();
    const playing = rows.map((_, slot) => slot).filter((slot) => !this.idle[slot]);
    for (const slot of playing) await this.agents[slot].act(rows[slot]);
    const began = real.now();
    for (let i = 1; i <= this.config.ticks_per_step; i++) {
      await sleep(Math.max(0, began + i * TICK_MS - real.now()));
      this.ticks++;
      for (const slot of playing) this.pulse(slot);
    }
    for (const slot of playing) this.show(slot);
    return this.frame(rows.map((_, slot) => slot));
  }

  pulse(slot) {
    const agent = this.agents[slot];
    this.connections[slot].watch();
    if (!agent.over) agent.afterTick();
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

  /** Disconnects an agent; its slot is idle until it is reset. */
  leave(slot) {
    this.idle[slot] = true;
    this.agents[slot]?.leave();
    this.connections[slot]?.leave('bye');
    this.agents[slot] = this.connections[slot] = null;
  }

  snapshot() {
    throw new StateError('a real server cannot be saved: play in mode embedded for snapshots');
  }

  restore() {
    return this.snapshot();
  }

  /** Disconnects every agent. */
  close() {
    for (const agent of this.agents) agent?.leave();
    for (const connection of this.connections) connection?.leave('bye');
  }
}

module.exports = { RemoteGame, RefusedError, KickedError, EndedError };

'use strict';
/**
 * One world: made from a start, stepped with actions, and never used again. A reset makes a new
 * server, new bots and a new clock, so nothing of an episode can affect a later one.
 */
const { UserError } = require('flying-squid');
const { real } = require('./context');
const { World, openWorld } = require('./harness');
const { Agent } = require('./agent');
const { Counters } = require('./observe/signals');
const { Built } = require('./observe/built');
const { Statistics } = require('./observe/statistics');
const { follow } = require('./observe/trace');
const { Privileged } = require('./observe/privileged');
const { drain, check, tick } = require('./stepper');
const { prepareWorld, runCommands, spawnTargets, equip, give, StateError } = require('./start');
const { Journal } = require('./snapshot');
const { makeGenerator } = require('./generator');
const { sceneOf } = require('./scenes');
const { sourceOf } = require('./survival/commands');
const { ScriptedPlayer } = require('./cast');

const ACTION_MS = 15000; // real time that an action may take before the tick
/** Degrees of the directions in which players look, as the protocol counts them. */
const FACINGS = { south: 0, west: 90, north: 180, east: 270 };
const DAY_BACK = 12000; // a larger decrease of the time of day means midnight

/** Returns the text that seeds a world's random numbers: its seed and its state, nothing else. */
function chanceOf(start) {
  const state = Object.keys(start.state).sort().map((key) => `${key}=${start.state[key]}`);
  return `${start.seed};${state.join(';')}`;
}

function generatorOf(state) {
  return makeGenerator({ seed: state.world ?? 0, biome: state.biome ?? 'plains',
    site: state.site ?? 'wild' });
}

class GameWorld extends World {
  constructor(config, start) {
    super({ seed: chanceOf(start), viewDistance: config.view_distance,
      respawn: Boolean(config.server?.respawn) });
    this.config = config;
    this.names = [...config.names];
    this.agents = new Array(config.agents).fill(null);
    this.targets = [];
    this.cast = [];
    /** The agent of the player that a person plays instead of its script; null for none. */
    this.person = null;
    this.days = 0;
    this.lastTime = 0;
    this.journal = new Journal();
    /** What judges see of worlds with regions or scripted players; null in others. */
    this.privileged = null;
  }

  /** Game ticks since the world began. */
  tick() {
    return this.ticks;
  }

  /** Midnights since the world began, whether the agents slept or not. */
  day() {
    return this.days;
  }

  async begin(begins) {
    const { start } = begins[0];
    this.journal.reset(begins);
    await openWorld(this, {
      generator: generatorOf(start.state),
      difficulty: start.state.difficulty ?? 'normal',
      needs: this.config.needs,
      interest: this.config.interest,
      chatDistance: this.config.senses.chat_distance
    });
    Object.assign(this.serv.survival?.rules ?? {}, rulesOf(this.config.server));
    this.counters = new Counters(this);
    follow(this);
    this.built = new Built(this);
    this.statistics = new Statistics(this.serv);
    await this.run(async () => {
      prepareWorld(this, start);
      await this.settle();
    });
    await this.enter(begins);
    await this.enterCast(start);
    await this.run(async () => {
      spawnTargets(this, start);
      runCommands(this, start);
      this.serv.tracker.flush();
      await this.settle();
    });
    this.lastTime = this.serv.time ?? 0;
    const { regions = [] } = start;
    if (regions.length === 0 && this.cast.length === 0 && this.person === null) return;
    this.privileged = new Privileged(this, regions);
    for (const { index } of begins) this.privileged.follow(this.agents[index]);
  }

  async settle() {
    await drain(this);
    check(this);
  }

  /** Adds agents with their items. */
  async enter(begins) {
    for (const { index, start } of begins) if (start.name) this.names[index] = start.name;
    const bots = await this.joinAll(begins.map(({ index }) => this.names[index]));
    await this.run(async () => {
      bots.forEach((bot, i) => {
        const { index, start } = begins[i];
        this.agents[index] = new Agent(this, bot, this.config);
        equip(this.agents[index], start);
      });
      await this.settle();
    });
  }

  /** Adds the scripted players of a start. */
  async enterCast({ players = [] }) {
    if (players.length === 0) return;
    const bots = await this.joinAll(players.map(({ name }) => name));
    const spawn = this.serv.spawnOf(0).floored();
    await this.run(async () => {
      bots.forEach((bot, i) => {
        const player = this.serv.uuidToPlayer[bot._client.uuid];
        give(player, bot.registry, players[i].items);
        const { at: [x, y, z], facing } = players[i];
        player.teleport(spawn.offset(x + 0.5, y, z + 0.5));
        if (facing) player.sendSelfPosition(undefined, [FACINGS[facing], 0]);
        if (players[i].name === this.config.person?.name) {
          this.person = new Agent(this, bot, { ...this.config, ...this.config.person });
        } else this.cast.push(new ScriptedPlayer(this, bot, players[i], spawn));
      });
      await this.settle();
    });
  }

  /** Adds agents again while others continue to play. */
  async rejoin(begins) {
    this.journal.reset(begins);
    await this.remove(begins.map(({ index }) => index));
    await this.enter(begins);
  }

  /** Takes agents out of the world. */
  async remove(indices) {
    await this.run(async () => {
      for (const index of indices) {
        const agent = this.agents[index];
        if (agent === null) continue;
        agent.leave();
        this.bots.splice(this.bots.indexOf(agent.bot), 1);
        agent.bot._client.end('a new episode');
        this.agents[index] = null;
      }
      await this.settle();
    });
  }

  /** Plays actions, `[[agent index, row]]`, for the ticks of a step. */
  async play(actions) {
    await this.run(async () => {
      for (const [index, row] of actions) await this.begun(this.agents[index].act(row));
      if (this.person !== null) await this.begun(this.personActs(actions[0]?.[1]));
      this.journal.step(actions);
      await drain(this);
      check(this);
      for (let i = 0; i < this.config.ticks_per_step; i++) {
        await tick(this);
        this.ticks++;
        this.countDays();
        for (const agent of [...this.agents, this.person]) {
          if (agent !== null && !agent.stopped) agent.afterTick();
        }
        for (const player of this.cast) player.tick();
      }
    });
  }

  /** Lets the person act by the columns of a row that are the person's, while the episode runs. */
  personActs(row) {
    if (row === undefined) return undefined;
    if (row['person/say'] !== '') this.person.bot.chat(row['person/say']);
    return this.person.act({ keys: row['person/keys'], camera: row['person/camera'] });
  }

  /**
   * Runs a command as one of the agents, between two ticks; returns what the game answers:
   * `{answer}`, or `{refused}` in its words.
   */
  async command(index, command) {
    const { player } = this.agents[index];
    this.journal.command(index, command);
    return this.run(async () => {
      let said;
      try {
        said = { answer: String(this.serv.survival.command(command, sourceOf(player))) };
      } catch (error) {
        if (!(error instanceof UserError)) throw error;
        said = { refused: error.message };
      }
      this.serv.tracker.flush();
      await this.settle();
      return said;
    });
  }

  /**
   * Waits until the tick may come; throws what the action threw. One after the
   * other: an action may wait in real time (while a sandbox is made), and agents must act in the
   * same order every time.
   */
  async begun(action) {
    if (!(action instanceof Promise)) return;
    let outcome = null;
    action.then(() => { outcome = {}; }, (error) => { outcome = { error }; });
    const began = real.now();
    while (outcome === null) {
      await drain(this);
      if (real.now() - began > ACTION_MS) {
        throw new Error(`an action did not let the tick come within ${ACTION_MS / 1000} s`);
      }
    }
    if (outcome.error !== undefined) throw outcome.error;
  }

  countDays() {
    const time = this.serv.time ?? 0;
    if (this.lastTime - time > DAY_BACK) this.days++;
    this.lastTime = time;
  }

  /** Adds the ray-caster's data to an agent's details: its own if it observes pictures, a person's. */
  withScene(agent, details) {
    const shown = { ...details };
    if (this.config.rgb) shown.scene = this.run(() => sceneOf(agent));
    if (this.person !== null) shown.person_scene = this.run(() => sceneOf(this.person));
    return shown;
  }

  /** Returns a snapshot; throws a StateError while a generated program runs. */
  snapshot() {
    const busy = this.agents.find((agent) => agent !== null && agent.codeState().running);
    if (busy !== undefined) {
      throw new StateError(`the world cannot be saved while a program of ${busy.name} runs; `
        + 'wait for its end or put an empty program in its place');
    }
    return this.journal.bytes();
  }

  close() {
    for (const agent of [...this.agents, this.person]) agent?.leave();
    super.close();
  }
}

/** Returns the game rules among an instance's server options. */
function rulesOf(server) {
  const { respawn, ...rules } = server ?? {};
  return rules;
}

/**
 * Returns a world at the beginning of its agents' episodes.
 *
 * @param {object} config of the instance
 * @param {Array} begins `{index, start}`: which agents, each with its start; the first start is the
 *   world's
 */
async function makeGameWorld(config, begins) {
  const world = new GameWorld(config, begins[0].start);
  await world.begin(begins);
  return world;
}

module.exports = { makeGameWorld };

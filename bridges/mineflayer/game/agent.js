'use strict';
/**
 * One agent of a world: its bot, its senses, its counters, its actions.
 *
 * Actions and generated programs get this object; they use `bot`, `senses`, `tick()`, `name` and
 * `world`. Everything else is for the frame.
 */
const { Senses } = require('./observe/senses');
const { Events } = require('./observe/events');
const { Trace } = require('./observe/trace');
const { Display } = require('./observe/display');
const { Observer } = require('./observe');
const { zero, walked } = require('./observe/signals');
const { tablesOf } = require('./observe/tables');
const { makeActor } = require('./actions');

/** Below this height there is no ground, and the void has killed every mortal being. */
const LOST_BELOW = -128;
const IDLE_CODE = { running: false, ticks: 0, error: 0, info: null };

class Agent {
  /**
   * @param {object} world `serv` (null on a remote server), `names`, `tick()`, `day()`
   * @param {object} bot mineflayer bot that has spawned
   * @param {object} config of the instance, as in the protocol's hello
   */
  constructor(world, bot, config) {
    this.world = world;
    this.bot = bot;
    this.name = bot.username;
    this.config = config;
    this.embedded = world.serv !== null;
    this.player = this.embedded ? world.serv.uuidToPlayer[bot._client.uuid] : null;
    this.counts = zero();
    this.firstTick = world.tick();
    this.bornAt = 0;
    this.over = false;
    this.stopped = false;
    this.listeners = [];
    const { opaque } = tablesOf(bot.registry);
    this.senses = new Senses(bot, config.senses, opaque);
    bot.senses = this.senses; // for the search of paths (agents.js)
    this.trace = new Trace(this);
    this.events = new Events(this, this.embedded);
    this.observer = new Observer(this);
    this.actor = makeActor(config.actions, this);
    /** What lies over its picture, if that is wanted. */
    this.display = config.rgb?.hud ? new Display(this) : null;
    this.lastPlace = bot.entity.position.clone();
    // It also spawns where it comes to from another dimension.
    let dead = false;
    this.listen(bot, 'death', () => { dead = true; });
    this.listen(bot, 'spawn', () => {
      if (dead) this.bornAt = this.tick();
      dead = false;
    });
    this.listen(bot, 'end', (reason) => this.end('kicked', `the connection ended: ${reason}`));
    if (!this.embedded) this.listen(bot, 'death', () => this.died());
  }

  /** Listens to an emitter until the agent leaves. */
  listen(emitter, event, listener) {
    emitter.on(event, listener);
    this.listeners.push([emitter, event, listener]);
  }

  /** Game ticks since this agent's episode began. */
  tick() {
    return this.world.tick() - this.firstTick;
  }

  /** Game ticks as programs count them. */
  now() {
    return this.tick();
  }

  /** Days that have begun since the episode did. */
  day() {
    return this.world.day();
  }

  /** Time of the day, 0 to 23999: that of our server, else what the remote server sent last. */
  timeOfDay() {
    const time = this.embedded ? this.world.serv.time : this.bot.time.timeOfDay;
    return (time ?? 0) % 24000;
  }

  died() {
    if (!this.config.server?.respawn) this.over = true;
    if (!this.embedded) this.counts.deaths++;
  }

  /** Ends the episode from outside the game's rules, with an event that gives the reason. */
  end(type, message) {
    if (this.over || this.stopped) return;
    this.over = true;
    this.events.ended(type, message);
  }

  /** Updates what changes every tick: the distance walked, a fall out of the world. */
  afterTick() {
    const { position } = this.bot.entity;
    this.counts.distance += walked(this.lastPlace, position);
    this.lastPlace.update(position);
    if (position.y < LOST_BELOW) {
      this.end('fellOutOfWorld', `${this.name} fell out of the world`);
    }
    this.world.privileged?.follow(this);
    this.actor.tick?.();
    this.display?.tick();
  }

  /** Returns the state of the agent's program. */
  codeState() {
    return this.actor.codeState?.() ?? { ...IDLE_CODE, info: this.codeInfo() };
  }

  codeInfo() {
    return { name: this.name, is_running: false, is_ready: true, code_error: {}, last_code: '',
      code_tick: 0 };
  }

  /** Whether an entity is one of the targets of the start; on a remote server, one with a name. */
  isTarget(entity) {
    if (!this.embedded) return entity.type !== 'player' && Boolean(entity.metadata?.[2]);
    return Boolean(this.world.serv.entities[entity.id]?.gamutTarget);
  }

  targetsLeft() {
    if (!this.embedded) return 0;
    return this.world.targets.filter((target) => !target.gamutDead
      && this.world.serv.entities[target.id] === target).length;
  }

  /** Returns what the game has counted of this player, `{group: {name: number}}`; nothing on a real server. */
  statistics() {
    if (!this.embedded) return {};
    const { statistics } = this.world;
    const counted = Object.entries({ ...statistics.of(this.player), ...statistics.deedsOf(this.player) });
    return Object.fromEntries(counted.filter(([, counts]) => Object.keys(counts).length > 0)
      .map(([group, counts]) => [group, { ...counts }]));
  }

  /**
   * Returns the placed blocks that still stand, as far as this agent knows of them: its own, and
   * those of others in sight; none on a real server.
   */
  built() {
    if (!this.embedded) return [];
    return this.world.built.list().filter(({ by, at }) => by === this.name || this.senses.canSeeBlock(at))
      .map(({ at, name }) => [at.x, at.y, at.z, name]);
  }

  ends() {
    return { game_over: this.over, game_truncated: false };
  }

  /**
   * Applies one action; an agent whose episode is over does nothing. Returns a promise if the
   * action continues, undefined if it is complete. Throws ActionError.
   */
  act(row) {
    return this.over ? undefined : this.actor.apply(row);
  }

  /** Returns the agent's row: `{values, details}`. */
  look() {
    return this.observer.look();
  }

  /** Removes all listeners: later events of the bot have no effect. */
  leave() {
    this.stopped = true;
    this.actor.close?.();
    this.scene?.close();
    this.display?.close();
    for (const [emitter, event, listener] of this.listeners) emitter.off(event, listener);
    this.listeners = [];
  }
}

module.exports = { Agent };

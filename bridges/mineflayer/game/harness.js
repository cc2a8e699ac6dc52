'use strict';
/**
 * A world for tests: a server and its bots, stepped by the test.
 *
 *     const w = await makeWorld({ agents: 2, seed: 1, generator: 'flat' });
 *     w.console('/give a0 stone 3');
 *     await w.step(20);
 *     w.bots[0].inventory.items(); w.players[0].inventory; w.serv; w.close();
 */
const { Context } = require('./context');
const { Link } = require('./transport');
const { makeServer } = require('./server');
const { joinBot } = require('./agents');
const { tick, drain, check } = require('./stepper');
const { fromWords } = require('./survival/commands/words');

const VERSION = '1.16.5';

/** A running world: `serv`, `bots`, `players` (the server's side of the bots), `context`, `link`. */
class World {
  constructor(options) {
    this.version = VERSION;
    this.options = options;
    this.viewDistance = options.viewDistance ?? 4;
    this.respawn = options.respawn;
    this.context = new Context(options.seed);
    this.link = new Link(this.context);
    this.bots = [];
    this.lines = [];
    this.ticks = 0;
  }

  /** Keeps an error that the next step throws. */
  fail(error) {
    this.context.errors.push(error instanceof Error ? error : new Error(String(error)));
  }

  /** The server's side of the bots, in their order. */
  get players() {
    return this.bots.map((bot) => this.serv.uuidToPlayer[bot._client.uuid]);
  }

  /** Runs a function with this world's clock and random numbers. */
  run(fn) {
    return this.context.run(fn);
  }

  /** Runs a console command of plain words, without or with its slash, and delivers its packets. */
  async console(line) {
    await this.run(async () => {
      this.serv.survival.command(fromWords(line));
      await drain(this);
      check(this);
    });
  }

  /** Advances the world by some ticks of 50 ms. */
  async step(ticks = 1) {
    await this.run(async () => {
      for (let i = 0; i < ticks; i++) {
        await tick(this);
        this.ticks++;
      }
    });
  }

  /**
   * Steps until a promise settles, and returns its value; throws its error, or an error if it has
   * not settled within `limit` ticks. For mineflayer's longer actions: `await w.until(() =>
   * bot.dig(block))`.
   */
  async until(start, limit = 1200) {
    let state = null;
    const settleWith = (outcome) => (value) => { state = { outcome, value }; };
    await this.run(async () => {
      Promise.resolve().then(start).then(settleWith('gave'), settleWith('threw'));
      await drain(this);
      check(this);
    });
    for (let i = 0; state === null && i < limit; i++) await this.step(1);
    if (state === null) throw new Error(`nothing came of it within ${limit} ticks`);
    if (state.outcome === 'threw') throw state.value;
    return state.value;
  }

  /** Adds one more bot, and returns it once it has spawned. */
  async join(name) {
    const [bot] = await this.joinAll([name]);
    return bot;
  }

  /** Adds bots, in order, and returns them once all have spawned; takes no game time. */
  async joinAll(names) {
    return this.run(async () => {
      const missing = new Set(names);
      const bots = names.map((name) => {
        const bot = joinBot(this, name);
        bot.once('spawn', () => missing.delete(name));
        return bot;
      });
      await drain(this);
      this.serv.tracker.flush();
      await drain(this);
      check(this);
      if (missing.size > 0) throw new Error(`these bots could not join: ${[...missing].join(', ')}`);
      this.bots.push(...bots);
      return bots;
    });
  }

  /** Ends the world: its timers are removed, its bots are disconnected. */
  close() {
    this.context.close();
    this.link.queue = [];
    for (const bot of this.bots) {
      bot._client.ended = true;
      bot.removeAllListeners();
      bot._client.removeAllListeners();
    }
  }
}

/** Makes the server of a world; `options` as in makeServer, except those that the world sets itself. */
async function openWorld(world, options) {
  await world.run(async () => {
    world.serv = makeServer({
      rules: {},
      ...options,
      seed: Math.floor(Math.random() * 2 ** 31) + 1,
      link: world.link,
      version: world.version,
      viewDistance: world.viewDistance,
      names: world.names,
      log: (level, text) => {
        if (level !== 'info') world.lines.push(`${level}: ${text}`);
        if (options.verbose) console.log(level, text);
      },
      fail: (error) => world.fail(error)
    });
    await drain(world);
    check(world);
  });
}

/**
 * Returns a world at rest, with all agents joined, at tick 0.
 *
 * @param {object} options agents (1), names (a0, a1, ...), seed (1), generator ('flat'), survival
 *   (true), difficulty ('normal'), viewDistance (4 chunks), interest (48 blocks), gameMode (0),
 *   respawn (true: bots ask to respawn at once when they die), needs (true), rules ({}), verbose
 *   (false: prints what the server says)
 */
async function makeWorld(options = {}) {
  const world = new World({ seed: 1, ...options });
  const count = options.agents ?? 1;
  world.names = options.names ?? Array.from({ length: count }, (_, i) => `a${i}`);
  await openWorld(world, options);
  await world.joinAll(world.names);
  return world;
}

module.exports = { makeWorld, openWorld, World, VERSION };

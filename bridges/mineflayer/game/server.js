'use strict';
/**
 * Makes the server of one world: flying-squid 1.16.5 in memory, with our mechanics and no network.
 */
const { shareVersion } = require('./libraries');
require('./squid/plugins');
const path = require('node:path');
const { createMCServer } = require('flying-squid');
const UUID = require('uuid-1345');
const { MemoryServer } = require('./transport');
const { fork, asGenerator } = require('./world');
const { currentContext } = require('./context');

/** Distance in blocks within which moving entities are sent, unless a caller says otherwise. */
const INTEREST = 48;
const DIFFICULTIES = { peaceful: 0, easy: 1, normal: 2, hard: 3 };

// Ids of entities come from the random numbers of their world.
const randomUuid = UUID.v4;
UUID.v4 = (...args) => {
  if (currentContext() === null) return randomUuid(...args);
  const hex = Array.from({ length: 32 }, () => Math.floor(Math.random() * 16).toString(16));
  hex[12] = '4';
  hex[16] = '89ab'[Math.floor(Math.random() * 4)];
  return hex.join('').replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, '$1-$2-$3-$4-$5');
};

/**
 * Returns the mechanics of survival: what `survival/index.js` exports, a list of
 * `{name, server, player, entity, save, load}`, with a property `replaces` naming the plugins of
 * flying-squid that they stand in for.
 */
function survivalMechanics() {
  try {
    require.resolve('./survival');
  } catch {
    return { plugins: [], replaces: [] };
  }
  const made = require('./survival');
  const plugins = Array.isArray(made) ? made : made.plugins;
  return { plugins, replaces: made.replaces ?? [] };
}

/**
 * Returns a flying-squid server that is ready for bots.
 *
 * @param {object} options
 *   link: of the world (transport.js); seed: a positive whole number below 2**31; version;
 *   generator: see `asGenerator`; survival: whether our mechanics are on; difficulty: name or
 *   number; gameMode: 0 survival, 1 creative; viewDistance in chunks; interest in blocks;
 *   listen: {host, port} for a server on the network and in real time, instead of `link`;
 *   names: of the agents, in the order of their places at the spawn; rules: for the mechanics;
 *   log(level, text), fail(error): where it speaks to.
 * @returns {object} the server; `serv.gamut` holds these options, `serv.tracker` what is seen.
 */
function makeServer(options) {
  const { link, version } = options;
  shareVersion(version);
  const mechanics = options.survival === false ? { plugins: [], replaces: [] }
    : survivalMechanics();
  const gamut = {
    ...options,
    interest: options.interest ?? INTEREST,
    generator: asGenerator(options.generator, version),
    mechanics: mechanics.plugins,
    replaces: new Set(mechanics.replaces),
    placeOf: (name) => Math.max(0, (options.names ?? []).indexOf(name)),
    context: link?.context
  };
  const serv = createMCServer({
    version,
    ...(options.listen ? options.listen : { Server: MemoryServer, port: 0 }),
    gamut,
    motd: 'Gamut',
    'online-mode': false,
    'max-players': 1000,
    'max-entities': 10000,
    'view-distance': options.viewDistance ?? 4,
    'everybody-op': false,
    gameMode: options.gameMode ?? 0,
    difficulty: DIFFICULTIES[options.difficulty] ?? options.difficulty ?? 2,
    needs: options.needs ?? true,
    keepAlive: false,
    hideErrors: true,
    validateChannelProtocol: false,
    errorHandler: (client, error) => gamut.fail(error),
    plugins: {},
    generation: { name: path.join(__dirname, 'squid', 'generation.js'),
      options: { seed: options.seed, generate: (x, z) => fork(gamut.generator.generate(x, z)) } }
  });
  serv.setMaxListeners(0);
  if (options.listen) serv.on('tick', () => serv.tracker.flush());
  return serv;
}

module.exports = { makeServer, INTEREST, DIFFICULTIES };

'use strict';
/**
 * Bots of a world: real mineflayer clients, on the world's clock.
 */
require('./libraries');
const mineflayer = require('mineflayer');
const { pathfinder, Movements } = require('mineflayer-pathfinder');
const AStar = require('mineflayer-pathfinder/lib/astar');
const { MemoryClient } = require('./transport');
const { currentContext } = require('./context');

/** Milliseconds one node of a path search counts on the world's clock: 2,000 nodes per tick. */
const SEARCH_NODE_MS = 0.02;

const search = AStar.prototype.compute;
AStar.prototype.compute = function compute() {
  const context = currentContext();
  if (context === null) return search.call(this);
  return context.metering(SEARCH_NODE_MS / 2, () => search.call(this)); // it reads it twice a node
};

/**
 * Returns a mineflayer bot that is about to join a server of ours; it has joined when it emits
 * `spawn`, which takes steps of the world's queue but no game time.
 *
 * @param {object} world what makeWorld returns: link, serv, version, viewDistance
 * @param {string} username up to 16 letters, digits and underscores
 */
function joinBot(world, username) {
  let connected = null;
  const bot = mineflayer.createBot({
    username,
    version: world.version,
    auth: 'offline',
    Client: MemoryClient,
    keepAlive: false,
    hideErrors: true,
    logErrors: false,
    respawn: world.respawn ?? true,
    viewDistance: Math.max(2, world.viewDistance),
    connect: (client) => {
      connected = world.link.connect(client, world.version);
      world.serv._server.accept(connected);
    }
  });
  // mineflayer's plugins listen from now on; packets before would be lost.
  bot.once('inject_allowed', () => connected.tell('connect'));
  mend(bot);
  bot.on('error', (error) => world.fail(error));
  bot._client.on('gamut:column', ({ x, z, column }) => bot.world.setColumn(x, z, column));
  return bot;
}

/** Gives any bot of ours, here or on a real server, what mineflayer leaves out. */
function mend(bot) {
  bot.setMaxListeners(0);
  bot.loadPlugin(pathfinder);
  bot.once('inject_allowed', () => {
    // mineflayer reads a number where minecraft-data now says the name.
    bot._client.on('difficulty', ({ difficulty }) => {
      if (typeof difficulty === 'string') bot.game.difficulty = difficulty;
    });
  });
}

module.exports = { joinBot, mend, Movements };

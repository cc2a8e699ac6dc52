'use strict';
/**
 * Bots of a world: real mineflayer clients, on the world's clock.
 */
require('./libraries');
const mineflayer = require('mineflayer');
const { pathfinder } = require('mineflayer-pathfinder');
const { Movements, rememberTools } = require('./paths');
const { takeSeats } = require('./seats');
const { MemoryClient } = require('./transport');

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
  // mineflayer's plugins listen from now on; earlier packets would be lost.
  bot.once('inject_allowed', () => connected.tell('connect'));
  mend(bot);
  bot.on('error', (error) => world.fail(error));
  bot._client.on('gamut:column', ({ x, z, column }) => bot.world.setColumn(x, z, column));
  return bot;
}

/** Ticks after the end of a path until a new search. */
const LINGER = 5;

/**
 * Searches a new path where one has ended beside its goal. If a cell is dug from below, the path
 * leads to its corner, which may already be near enough from the next cell; the library would wait
 * there forever (tests/contract/test_mineflayer_contract.py, the grass below a tree in the snow).
 */
function goOn(bot) {
  let isWhole = false;
  let idle = 0;
  bot.on('path_update', ({ status }) => { isWhole = status === 'success'; });
  bot.on('goal_updated', () => { isWhole = false; });
  bot.on('physicsTick', () => {
    const { goal, movements } = bot.pathfinder;
    const isBusy = bot.pathfinder.isMoving() || bot.pathfinder.isMining() || bot.pathfinder.isBuilding();
    const isBeside = isWhole && !isBusy && goal && !goal.isEnd(bot.entity.position.floored());
    idle = isBeside ? idle + 1 : 0;
    if (idle === LINGER) bot.pathfinder.setMovements(movements); // which discards the path
  });
}

/** Emits `dug` with the block that a bot has dug; the library's own event has the air that is left. */
function nameDug(bot) {
  const { dig } = bot;
  bot.dig = async (block, ...how) => {
    await dig(block, ...how);
    bot.emit('dug', block);
  };
}

/** Numbers of the directions of paintings in the protocol: south, west, north, east. */
const PAINTED = [[0, 1], [-1, 0], [0, -1], [1, 0]];

/** Makes paintings entities, as item frames are: mineflayer knows them as properties of blocks alone. */
function seePaintings(bot) {
  const Entity = require('prismarine-entity')(bot.registry);
  bot._client.on('spawn_entity_painting', ({ entityId, entityUUID, title, location, direction }) => {
    // 1.8 to 1.10 have no such kind in minecraft-data.
    const { id, category, displayName, width = 0.5, height = 0.5 } = bot.registry.entitiesByName.painting ?? {};
    const [dx, dz] = PAINTED[direction] ?? [0, 0];
    const entity = Object.assign(new Entity(entityId), {
      uuid: entityUUID, type: 'other', name: 'painting', displayName, entityType: id, kind: category,
      width, height, motive: title,
    });
    entity.position.set(location.x + 0.5 - dx * 0.47, location.y + 0.25, location.z + 0.5 - dz * 0.47);
    bot.entities[entityId] = entity;
    bot.emit('entitySpawn', entity);
  });
}

/**
 * Keeps the maps that a bot has held as `bot.maps`, by their numbers: `{scale, colours, pointers}`,
 * 128 x 128 bytes of colours, row by row from north to south.
 */
function keepMaps(bot) {
  bot.maps = {};
  bot._client.on('map', ({ itemDamage, scale, icons, columns, rows, x, y, data }) => {
    const map = bot.maps[itemDamage] ??= { colours: new Uint8Array(128 * 128) };
    Object.assign(map, { scale, pointers: icons ?? [] });
    if (!data) return;
    const [width, height] = [columns & 255, rows & 255];
    for (let row = 0; row < height; row++) {
      map.colours.set(data.subarray(row * width, (row + 1) * width), (y + row) * 128 + x);
    }
  });
}

/** Adds to any bot, on our or a real server, what mineflayer lacks. */
function mend(bot) {
  bot.setMaxListeners(0);
  bot.loadPlugin(pathfinder);
  bot.once('inject_allowed', () => goOn(bot));
  bot.once('inject_allowed', () => rememberTools(bot));
  bot.once('inject_allowed', () => nameDug(bot));
  bot.once('inject_allowed', () => takeSeats(bot));
  bot.once('inject_allowed', () => seePaintings(bot));
  bot.once('inject_allowed', () => keepMaps(bot));
  bot.once('inject_allowed', () => {
    // mineflayer expects a number where minecraft-data now has the name.
    bot._client.on('difficulty', ({ difficulty }) => {
      if (typeof difficulty === 'string') bot.game.difficulty = difficulty;
    });
  });
}

module.exports = { joinBot, mend, Movements };

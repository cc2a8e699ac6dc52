'use strict';

/**
 * The Nether and the End beside the overworld: all lie in one world, far apart (generator/nether.js,
 * end.js), so that every rule holds in all. Who comes from one to the other is told that its dimension has changed.
 *
 * `serv.survival.dimensionOf(position)` returns 'overworld', 'the_nether' or 'the_end'; `player.dimension` is
 * that of a player. Event: 'gamut:travelled' {player, dimension}.
 */

const { END_ROW } = require('../generator/end');
const { NETHER_ROW, NETHER_Z } = require('../generator/nether');

const name = 'dimensions';
const SCALE = 8; // blocks of the overworld for one of the Nether
const WORLDS = {
  overworld: 'minecraft:overworld', the_nether: 'minecraft:the_nether', the_end: 'minecraft:the_end',
};

function dimensionOf({ z }) {
  if (z >= END_ROW * 16) return 'the_end';
  return z >= NETHER_ROW * 16 ? 'the_nether' : 'overworld';
}

/** Returns where a place of the overworld or the Nether is in the other: [x, z]. */
function across({ x, z }) {
  return dimensionOf({ z }) === 'overworld'
    ? [x / SCALE, z / SCALE + NETHER_Z]
    : [x * SCALE, (z - NETHER_Z) * SCALE];
}

/** The description of a dimension that clients are sent. */
function typeOf(serv, dimension) {
  const { loginPacket } = serv.registry;
  const types = loginPacket.dimensionCodec.value['minecraft:dimension_type'].value.value.value.value;
  const found = types.find((type) => type.name.value === WORLDS[dimension]);
  return { type: 'compound', name: '', value: found.element.value };
}

/** Tells a player's client that it is in another dimension, and what it sees there. */
function enter(serv, player, dimension) {
  player.dimension = dimension;
  for (const entity of [...player.seen.values()]) serv.tracker.hide(player, entity);
  player._client.write('respawn', {
    dimension: typeOf(serv, dimension),
    worldName: WORLDS[dimension],
    hashedSeed: serv.hashedSeed,
    gamemode: player.gameMode,
    previousGamemode: player.prevGameMode ?? 255,
    isDebug: false,
    isFlat: false,
    copyMetadata: true,
  });
  player.loadedChunks = {};
  player.sendTerrain();
  if (player.health > 0) player.updateHealth(player.health);
  serv.emit('gamut:travelled', { player, dimension });
}

function server(serv) {
  serv.survival.dimensionOf = dimensionOf;
  serv.survival.across = across;
}

function player(player, serv) {
  player.dimension = 'overworld';
  player.on('move_done', ({ position }, cancelled) => {
    if (cancelled || !player.joined) return;
    const dimension = dimensionOf(position);
    if (dimension !== player.dimension) enter(serv, player, dimension);
  });
}

module.exports = { name, server, player };

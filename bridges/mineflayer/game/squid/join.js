'use strict';
/**
 * How a bot joins and leaves a world: replaces flying-squid's login and logout.
 *
 * Everything a client needs to play is sent at once, in the order a vanilla server sends it; no
 * timer is left, no file is read, and nothing is sent again later. Terrain is passed as shared
 * columns (see world.js) in its place among the packets; all else is packets.
 */
const { Vec3 } = require('vec3');
const nbt = require('prismarine-nbt');
const { mix } = require('../context');
const { Columns } = require('./columns');
const { fork, surface } = require('../world');

const ENABLE_REDUCED_DEBUG = 23; // entity_status codes of the protocol
const PERMISSION_LEVEL_0 = 24;
const AT_ONCE = 2; // chunks around a player that it has at once
const PER_TICK = 2; // columns beyond that are sent in one tick
const AGENT_SPACING = 2; // blocks between agents that join at one spawn

/** Returns the offset of the nth agent from the spawn: 0, then rings of a square spiral. */
function place(index) {
  let [x, z, dx, dz] = [0, 0, 0, -1];
  for (let i = 0; i < index; i++) {
    if (x === z || (x < 0 && x === -z) || (x > 0 && x === 1 - z)) [dx, dz] = [-dz, dx];
    x += dx;
    z += dz;
  }
  return [x * AGENT_SPACING, z * AGENT_SPACING];
}

/** Returns where a player stands at a block column: on the ground near the height of the spawn. */
function standing(serv, spawn, [dx, dz]) {
  const x = Math.floor(spawn.x) + dx;
  const z = Math.floor(spawn.z) + dz;
  const column = serv.columnAt(serv.overworld, x >> 4, z >> 4);
  const solid = (y) => {
    const state = column.getBlockStateId({ x: x & 15, y, z: z & 15 });
    return serv.registry.blocksByStateId[state].boundingBox === 'block';
  };
  for (let step = 0; step < 16; step++) {
    for (const y of step === 0 ? [spawn.y] : [spawn.y + step, spawn.y - step]) {
      if (y > 0 && solid(y - 1) && !solid(y) && !solid(y + 1)) return new Vec3(x + 0.5, y, z + 0.5);
    }
  }
  return new Vec3(spawn.x + 0.5, spawn.y, spawn.z + 0.5);
}

module.exports.server = (serv, options) => {
  const { gamut } = options;
  serv.difficulty = options.difficulty;
  // Clients use it only for the look of biomes; it distinguishes two seeds without revealing them.
  serv.hashedSeed = [mix(gamut.seed) | 0, mix(gamut.seed ^ 0x5bd1e995) | 0];
  const columns = new Columns(serv, options['view-distance']);
  serv.columnAt = (world, chunkX, chunkZ) => columns.at(world, chunkX, chunkZ);
  // Which columns without viewers are forgotten, Columns decides.
  serv._worldUnloadPlayerChunk = (chunkX, chunkZ, player) => {
    delete player.loadedChunks[`${chunkX},${chunkZ}`];
    return false;
  };
  serv.getSpawnPoint = async () => serv.spawnOf(0);
  serv.spawnOf = (index) => {
    const { spawn } = gamut.generator;
    if (spawn !== null) return standing(serv, spawn, place(index));
    const column = serv.columnAt(serv.overworld, 0, 0);
    return standing(serv, { x: 8, y: surface(column, 8, 8), z: 8 }, place(index));
  };
  blocks(serv);
  playerList(serv);
  serv.on('tick', () => {
    for (const player of serv.players) if (player.wanted?.length > 0) player.sendMore();
  });
  serv._server.on('connection', (client) => {
    client.on('error', (error) => gamut.fail(error));
  });
  serv._server.on('playerJoin', (client) => {
    const player = serv.initEntity('player', null, serv.overworld, new Vec3(0, 0, 0));
    player._client = client;
    player.type = 'player';
    player.username = client.username;
    player.uuid = client.uuid;
    player.name = 'player';
    for (const plugin of require('flying-squid/src/lib/plugins').builtinPlugins) {
      plugin.player?.(player, serv, options);
    }
    serv.emit('newPlayer', player);
    player.emit('asap');
    player.login();
  });
};

/** Sends changes of blocks to all players who have the chunk, encoded once. */
function blocks(serv) {
  serv.setBlock = async (world, position, stateId) => {
    const at = position.floored();
    if (at.y < 0 || at.y > 255) return;
    const column = serv.columnAt(world, at.x >> 4, at.z >> 4);
    const within = { x: at.x & 15, y: at.y, z: at.z & 15 };
    const before = column.getBlockStateId(within);
    column.setBlockStateId(within, stateId);
    const key = `${at.x >> 4},${at.z >> 4}`;
    const near = serv.players.filter((p) => p.world === world && p.loadedChunks?.[key]);
    serv._writeArray('block_change', { location: at, type: stateId }, near);
    serv.emit('gamut:block', { position: at, before, after: stateId });
    if (stateId === 0) {
      serv.notifyNeighborsOfStateChange?.(world, at, serv.tickCount, serv.tickCount, true);
    } else {
      serv.updateBlock?.(world, at, serv.tickCount, serv.tickCount, true);
    }
  };
}

/** Updates the player list in both directions: the new player learns of all, all learn of it. */
function playerList(serv) {
  const entry = (player) => ({
    uuid: player.uuid,
    name: player.username,
    properties: [],
    gamemode: player.gameMode,
    ping: 0
  });
  const others = (player) => serv.players.filter((each) => each !== player);
  serv._sendPlayerList = (player) => player._client.write('player_info', {
    action: 'add_player', data: serv.players.map(entry)
  });
  serv._sendPlayerEventNewJoin = (player) => serv._writeArray('player_info', {
    action: 'add_player', data: [entry(player)]
  }, others(player));
  serv._sendPlayerEventLeave = (player) => serv._writeArray('player_info', {
    action: 'remove_player', data: [{ uuid: player.uuid }]
  }, others(player));
  serv._sendPlayerEventUpdateGameMode = (player) => serv._writeAll('player_info', {
    action: 'update_game_mode', data: [{ uuid: player.uuid, gamemode: player.gameMode }]
  });
}

module.exports.player = (player, serv, options) => {
  player.crouching = false;
  player.op = false;
  player.view = options['view-distance'];
  player.despawnEntities = (entities) => {
    if (entities.length === 0) return;
    player._client.write('entity_destroy', { entityIds: entities.map((entity) => entity.id) });
  };
  player.kick = (reason = 'You were kicked') => player._client.end(reason);
  player.waitPlayerLogin = () => Promise.resolve();
  player.save = () => Promise.resolve();
  player.setGameMode = (gameMode) => {
    if (gameMode !== player.gameMode) player.prevGameMode = player.gameMode;
    player.gameMode = gameMode;
    player._client.write('game_state_change', { reason: 3, gameMode });
    serv._sendPlayerEventUpdateGameMode(player);
  };
  player.sendBlock = (position, stateId) => {
    player._client.write('block_change', { location: position, type: stateId });
  };
  player.changeBlock = (position, type, data) => serv.setBlock(
    player.world, position, serv.registry.blocks[type].minStateId + (data ?? 0));
  chatDistance(player, serv, options.gamut.chatDistance ?? 0);
  terrain(player, serv, options);
  player.login = () => login(player, serv, options);
  player._client.on('end', () => leave(player, serv));
};

/** Sends a player's chat messages only to players within some blocks; 0 for all. */
function chatDistance(player, serv, distance) {
  if (distance <= 0) return;
  player.on('chat_cancel', (data) => {
    data.whitelist = serv.players.filter((other) => other.world === player.world
      && other.position.distanceTo(player.position) <= distance);
  });
}

/** Writes a column as packets, for clients that are not in this process. */
function writeChunk(client, x, z, column) {
  client.write('map_chunk', {
    x,
    z,
    groundUp: true,
    bitMap: column.getMask(),
    biomes: column.dumpBiomes(),
    ignoreOldData: true,
    heightmaps: nbt.comp({ MOTION_BLOCKING: nbt.longArray(new Array(36).fill([0, 0])) }),
    chunkData: column.dump(),
    blockEntities: []
  });
  client.write('update_light', {
    chunkX: x,
    chunkZ: z,
    trustEdges: true,
    skyLightMask: column.skyLightMask,
    blockLightMask: column.blockLightMask,
    emptySkyLightMask: 0,
    emptyBlockLightMask: 0,
    data: column.dumpLight()
  });
}

/** The columns that a player has: those within its view, sent as it comes near. */
function terrain(player, serv, options) {
  player.loadedChunks = {};
  player.sendChunk = (x, z, column) => {
    if (player._client.tell) player._client.tell('gamut:column', { x, z, column });
    else writeChunk(player._client, x, z, column);
  };
  player._unloadChunk = (chunkX, chunkZ) => {
    delete player.loadedChunks[`${chunkX},${chunkZ}`];
    player._client.write('unload_chunk', { chunkX, chunkZ });
  };
  player.sendTerrain = () => {
    const view = options['view-distance'];
    const [cx, cz] = [player.position.x, player.position.z].map((v) => Math.floor(v / 16));
    player.lastPositionChunkUpdated = player.position;
    player.chunkAt = [cx, cz];
    player._client.write('update_view_position', { chunkX: cx, chunkZ: cz });
    for (const key of Object.keys(player.loadedChunks)) {
      const [x, z] = key.split(',').map(Number);
      if (Math.max(Math.abs(x - cx), Math.abs(z - cz)) > view) player._unloadChunk(x, z);
    }
    player.wanted = spiral(view).map(([x, z]) => [cx + x, cz + z])
      .filter(([x, z]) => !player.loadedChunks[`${x},${z}`]);
    player.sendMore((x, z) => Math.max(Math.abs(x - cx), Math.abs(z - cz)) <= AT_ONCE);
  };
  // Columns next to a player are sent at once, farther ones a few per tick.
  player.sendMore = (all) => {
    let more = PER_TICK;
    while (player.wanted.length > 0) {
      const [x, z] = player.wanted[0];
      if (!all?.(x, z) && more-- <= 0) return;
      player.wanted.shift();
      player.loadedChunks[`${x},${z}`] = 1;
      player.sendChunk(x, z, fork(serv.columnAt(player.world, x, z)));
    }
  };
  player.worldSendInitialChunks = async () => player.sendTerrain();
  player.worldSendRestOfChunks = async () => player.sendTerrain();
  player.worldSendAllChunks = player.worldSendRestOfChunks;
  player.on('move_done', ({ position }, cancelled) => {
    if (cancelled || !player.joined) return;
    const [cx, cz] = player.chunkAt;
    if (Math.floor(position.x / 16) !== cx || Math.floor(position.z / 16) !== cz) {
      player.sendTerrain();
    }
  });
}

const spirals = new Map();

/** Returns the offsets of the columns within a view, the nearest first. */
function spiral(view) {
  if (!spirals.has(view)) {
    const all = [];
    for (let x = -view; x <= view; x++) for (let z = -view; z <= view; z++) all.push([x, z]);
    const far = ([x, z]) => Math.max(Math.abs(x), Math.abs(z));
    spirals.set(view, all.sort((a, b) => far(a) - far(b)));
  }
  return spirals.get(view);
}

function login(player, serv, options) {
  if (serv.uuidToPlayer[player.uuid]) {
    player.kick(`a player named ${player.username} is here already`);
    return;
  }
  player.spawnPoint = serv.spawnOf(options.gamut.placeOf(player.username));
  player.position = player.spawnPoint.clone();
  player.health = 20;
  player.food = 20;
  player.foodSaturation = 5;
  player.gameMode = options.gameMode;
  serv.players.push(player);
  serv.uuidToPlayer[player.uuid] = player;
  sendSelf(player, serv, options);
  player.sendTerrain();
  player.setXp?.(0);
  player._client.write('window_items', {
    windowId: 0, items: player.inventory.slots.map(() => ({ present: false }))
  });
  player._client.write('update_time', { age: [0, 0], time: [0, serv.time ?? 0] });
  serv._sendPlayerList(player);
  serv._sendPlayerEventNewJoin(player);
  player.seen = new Map();
  player.joined = true;
  player.sendSelfPosition();
  player.updateHealth(player.health);
  player.emit('connected');
  player.emit('spawned');
}

function sendSelf(player, serv, options) {
  const client = player._client;
  client.write('login', {
    ...serv.registry.loginPacket,
    entityId: player.id,
    gameMode: player.gameMode,
    previousGameMode: 255,
    worldNames: Object.values(serv.dimensionNames),
    worldName: serv.dimensionNames[0],
    hashedSeed: serv.hashedSeed,
    maxPlayers: 255,
    viewDistance: options['view-distance'],
    reducedDebugInfo: false,
    enableRespawnScreen: true,
    isDebug: false,
    isFlat: false
  });
  client.write('difficulty', { difficulty: serv.difficulty, difficultyLocked: false });
  client.write('held_item_slot', { slot: 0 });
  for (const entityStatus of [ENABLE_REDUCED_DEBUG, PERMISSION_LEVEL_0]) {
    client.write('entity_status', { entityId: player.id, entityStatus });
  }
  player.sendSpawnPosition();
}

function leave(player, serv) {
  if (player.disconnected) return;
  player.disconnected = true;
  player.joined = false;
  serv._sendPlayerEventLeave(player);
  serv.destroyEntity(player);
  const index = serv.players.indexOf(player);
  if (index >= 0) serv.players.splice(index, 1);
  if (serv.uuidToPlayer[player.uuid] === player) delete serv.uuidToPlayer[player.uuid];
  player.emit('disconnected');
}

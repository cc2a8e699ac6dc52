'use strict';
/**
 * Which players see which moving entities: replaces flying-squid's updatePositions and its nearby
 * lists.
 *
 * Positions that arrive change the entity at once; updates for others are collected and sent once
 * per tick (`serv.tracker.flush()`), one packet per entity that moved, encoded once, to the players
 * within the interest radius. An entity comes into view within the radius and leaves view 8 blocks
 * beyond it, so that none flickers at the edge. Clients are trusted, as in flying-squid; but
 * messages of a player who was teleported are ignored until it has confirmed, as in the protocol's
 * description (wiki.vg, Teleport Confirm), so that an old step cannot undo a teleport.
 */
const { Vec3 } = require('vec3');

const OUT_OF_VIEW = 8;
const UNITS = 4096; // of a relative move, per block (protocol 1.9 and later)
const FARTHEST = 32767; // maximum units of one relative move
const LOOK_IS_RELATIVE = 0x18; // a teleport's yaw and pitch are added to the player's own
const FARTHEST_PLACE = 3e7; // blocks from the origin, the end of the world
const DONE = Promise.resolve(true);

/** Returns the signed byte of an angle in degrees: 256 units per turn. */
function angleByte(degrees) {
  return (Math.floor((degrees % 360) * 256 / 360) << 24) >> 24;
}

/** Returns a move in units, from the coordinate that clients assume. */
const steps = (now, known) => Math.round((now - known) * UNITS);

class Tracker {
  constructor(serv, interest) {
    this.serv = serv;
    this.near = interest * interest;
    this.far = (interest + OUT_OF_VIEW) ** 2;
  }

  /** Returns whether a player should see an entity, given whether it does now. */
  inView(player, entity, seen) {
    if (player.world !== entity.world) return false;
    const a = player.position;
    const b = entity.position;
    const dx = a.x - b.x;
    const dy = a.y - b.y;
    const dz = a.z - b.z;
    return dx * dx + dy * dy + dz * dz <= (seen ? this.far : this.near);
  }

  /** Returns the players that see an entity now. */
  watchers(entity) {
    return this.serv.players.filter((player) => player.seen?.has(entity.id));
  }

  /** Sends to every player what moved, appeared and disappeared since the last call. */
  flush() {
    const entities = Object.values(this.serv.entities);
    for (const entity of entities) this.move(entity);
    for (const player of this.serv.players) if (player.seen) this.look(player, entities);
  }

  look(player, entities) {
    for (const [id, entity] of player.seen) {
      if (this.serv.entities[id] !== entity || !this.inView(player, entity, true)) {
        this.hide(player, entity);
      }
    }
    for (const entity of entities) {
      if (entity !== player && !player.seen.has(entity.id) && shown(entity)
        && this.inView(player, entity, false)) {
        player.seen.set(entity.id, entity);
        player.spawnEntity(entity);
      }
    }
  }

  hide(player, entity) {
    player.seen.delete(entity.id);
    player.despawnEntities([entity]);
  }

  /**
   * Sends one packet for an entity that moved or turned since the last one. `knownPosition` is the
   * position that clients assume, the sum of all steps sent to them, so errors do not accumulate.
   */
  move(entity) {
    const { position } = entity;
    const look = [entity.yaw, entity.pitch, entity.headYaw ?? entity.yaw];
    const known = entity.knownPosition;
    const last = entity.knownLook;
    entity.knownLook = look;
    if (known === undefined || last === undefined) {
      entity.knownPosition = position.clone();
      return;
    }
    const delta = [steps(position.x, known.x), steps(position.y, known.y),
      steps(position.z, known.z)];
    const moved = delta[0] !== 0 || delta[1] !== 0 || delta[2] !== 0;
    const turned = look[0] !== last[0] || look[1] !== last[1];
    if (!moved && !turned && look[2] === last[2]) return;
    const far = delta.some((value) => Math.abs(value) > FARTHEST);
    entity.knownPosition = far ? position.clone()
      : known.offset(delta[0] / UNITS, delta[1] / UNITS, delta[2] / UNITS);
    const clients = this.watchers(entity).map((player) => player._client);
    if (clients.length === 0) return;
    const write = (name, fields) => this.serv._server.writeToClients(
      clients, name, { entityId: entity.id, onGround: Boolean(entity.onGround), ...fields });
    const [yaw, pitch, headYaw] = look.map((value) => (Math.trunc(value) << 24) >> 24);
    const [dX, dY, dZ] = delta;
    if (far) {
      write('entity_teleport', { x: position.x, y: position.y, z: position.z, yaw, pitch });
    } else if (moved && turned) {
      write('entity_move_look', { dX, dY, dZ, yaw, pitch });
    } else if (moved) {
      write('rel_entity_move', { dX, dY, dZ });
    } else if (turned) {
      write('entity_look', { yaw, pitch });
    }
    if (look[2] !== last[2]) write('entity_head_rotation', { headYaw });
  }
}

/** A player is visible once it has joined; everything else at once. */
const shown = (entity) => entity.type !== 'player' || entity.joined === true;

module.exports.server = (serv, options) => {
  serv.tracker = new Tracker(serv, options.gamut.interest);
  const clients = (players) => players.filter((p) => p.joined).map((player) => player._client);
  serv._writeArray = (name, fields, players) =>
    serv._server.writeToClients(clients(players), name, fields);
  serv._writeAll = (name, fields) => serv._writeArray(name, fields, serv.players);
  serv.destroyEntity = (entity) => {
    for (const player of serv.tracker.watchers(entity)) serv.tracker.hide(player, entity);
    delete serv.entities[entity.id];
  };
};

module.exports.entity = (entity, serv, options) => {
  const init = entity.initEntity;
  entity.initEntity = (...args) => {
    init(...args);
    entity.viewDistance = options.gamut.interest;
  };
  entity.sendPosition = (position, onGround, teleport = false) => {
    if (position === undefined) throw new TypeError('sendPosition needs a position');
    if (entity.position.equals(position) && entity.onGround === onGround) return DONE;
    return moveTo(entity, { position, onGround, teleport });
  };
  entity.teleport = (position) => entity.sendPosition(position, false, true);
  entity.updateAndSpawn = () => { entity.lastPositionPlayersUpdated = entity.position.clone(); };
  entity.nearbyPlayers = () => serv.tracker.watchers(entity);
  entity.getNearbyPlayers = () => serv.tracker.watchers(entity);
  entity._writeOthersNearby = (name, fields) =>
    serv._writeArray(name, fields, serv.tracker.watchers(entity));
  entity._writeNearby = (name, fields) => serv._writeArray(name, fields,
    entity.type === 'player' ? [...serv.tracker.watchers(entity), entity]
      : serv.tracker.watchers(entity));
};

/** Moves an entity through the events of flying-squid's `behavior`, without its promises. */
function moveTo(entity, data) {
  let cancelled = false;
  entity.emit('move_cancel', data, () => { cancelled = true; });
  entity.emit('move', data, cancelled, Number(cancelled));
  if (!cancelled) {
    entity.position = data.position;
    entity.onGround = data.onGround;
  } else if (entity.type === 'player') {
    entity.sendSelfPosition();
  }
  entity.emit('move_done', data, cancelled);
  return cancelled ? Promise.resolve(false) : DONE;
}

module.exports.player = (player) => {
  player.teleports = 0;
  player.unconfirmed = 0;
  const walk = ({ x, y, z, onGround }) => {
    if (![x, y, z].every((value) => Math.abs(value) <= FARTHEST_PLACE)) return; // not a number, or outside
    // Who rides is where the seat is.
    if (player.unconfirmed === 0 && !player.vehicle) player.sendPosition(new Vec3(x, y, z), onGround);
  };
  const turn = ({ yaw, pitch, onGround }) => {
    if (!Number.isFinite(yaw) || !Number.isFinite(pitch)) return;
    player.yawDegrees = yaw;
    player.pitchDegrees = pitch;
    player.yaw = angleByte(yaw);
    player.pitch = angleByte(pitch);
    if (player.unconfirmed === 0) player.onGround = onGround;
    player.emit('look', { yaw, pitch, onGround });
  };
  player._client.on('teleport_confirm', ({ teleportId }) => {
    if (teleportId === player.unconfirmed) player.unconfirmed = 0;
  });
  player._client.on('position', walk);
  player._client.on('look', turn);
  player._client.on('position_look', (packet) => {
    walk(packet);
    turn(packet);
  });
  player._client.on('flying', ({ onGround }) => {
    if (player.unconfirmed === 0 && !player.vehicle) player.sendPosition(player.position, onGround);
  });
  player.sendSelfPosition = (position, look) => {
    if (position) player.position = position;
    if (look) [player.yawDegrees, player.pitchDegrees] = look;
    const [yaw, pitch] = look ?? [0, 0];
    player.unconfirmed = ++player.teleports;
    const { x, y, z } = player.position;
    player._client.write('position', {
      x, y, z, yaw, pitch, flags: look ? 0 : LOOK_IS_RELATIVE, teleportId: player.unconfirmed
    });
  };
  player.teleport = async (position) => {
    if (player.position.equals(position)) player.sendSelfPosition();
    else if (await player.sendPosition(position, false, true)) player.sendSelfPosition();
  };
  player.sendAbilities = () => {};
};

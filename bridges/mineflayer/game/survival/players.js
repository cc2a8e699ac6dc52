'use strict';

/**
 * Visible state and movement of players: sneaking and sprinting, the swing of an arm, the look
 * (`player.facing`, radians), and the effect of a movement on the mechanics.
 *
 * `serv.survival.onMove(fn)` registers `fn(player, dx, dy, dz, onGround)`, called for every
 * movement a client reports (blocks since its last report); teleports are not reported.
 */

const name = 'players';
const POSE = { standing: 0, sleeping: 2, sneaking: 5 };
const FLAGS = { fire: 1, sneaking: 2, sprinting: 8 };
const ACTIONS = [
  'start_sneaking',
  'stop_sneaking',
  'stop_sleeping',
  'start_sprinting',
  'stop_sprinting',
];
/** Faster than any fall or run: such a step is a teleport. */
const JUMP = 8;

function showState(serv, player) {
  let flags = 0;
  if (player.burning) flags |= FLAGS.fire;
  if (player.crouching) flags |= FLAGS.sneaking;
  if (player.sprinting) flags |= FLAGS.sprinting;
  const pose = player.sleeping ? POSE.sleeping : player.crouching ? POSE.sneaking : POSE.standing;
  player.metadata = [
    { key: 0, type: 0, value: flags },
    { key: 6, type: 18, value: pose },
  ];
  serv.survival.broadcast(player, 'entity_metadata', {
    entityId: player.id,
    metadata: player.metadata,
  });
}

function onAction(player, actionId) {
  const action = typeof actionId === 'number' ? ACTIONS[actionId] : actionId;
  if (action === 'start_sneaking' || action === 'stop_sneaking')
    player.crouching = action === 'start_sneaking';
  else if (action === 'start_sprinting' || action === 'stop_sprinting')
    player.sprinting = action === 'start_sprinting';
  else if (action === 'stop_sleeping') player.emit('wantsUp');
  else return;
  player.showState();
}

/** The effect of a step that a client reports: none if it is a teleport or was refused. */
function onStep(serv, player, { position, onGround, teleport }, cancelled) {
  if (cancelled) return;
  const from = player.position;
  player.feet = position;
  const dx = position.x - from.x;
  const dy = position.y - from.y;
  const dz = position.z - from.z;
  if (teleport || Math.abs(dx) > JUMP || Math.abs(dy) > JUMP || Math.abs(dz) > JUMP) {
    player.fallDistance = 0;
    return;
  }
  for (const fn of serv.survival.movers) fn(player, dx, dy, dz, onGround);
}

function server(serv) {
  serv.survival.movers = [];
  serv.survival.onMove = (fn) => serv.survival.movers.push(fn);
}

function player(player, serv) {
  player.crouching = false;
  player.sprinting = false;
  player.burning = false;
  player.sleeping = null;
  player.feet = null;
  player.fallDistance = 0;
  player.facing = { yaw: 0, pitch: 0 };
  player.metadata = [];
  player.showState = () => showState(serv, player);
  player.on('move', (step, cancelled) => onStep(serv, player, step, cancelled));
  player.on('look', ({ yaw, pitch }) => {
    player.facing = { yaw: (yaw * Math.PI) / 180, pitch: (pitch * Math.PI) / 180 };
  });
  player._client.on('entity_action', ({ actionId } = {}) => onAction(player, actionId));
  player._client.on('arm_animation', ({ hand = 0 } = {}) => {
    serv.survival.broadcast(
      player,
      'animation',
      { entityId: player.id, animation: hand === 1 ? 3 : 0 },
      false,
    );
    player.emit('swings');
  });
}

/**
 * Resets a player to the state of a new one: standing, not burning, nothing in progress.
 */
function loadPlayer(player) {
  player.crouching = false;
  player.sprinting = false;
  player.burning = false;
  player.fallDistance = 0;
  player.showState();
}

function savePlayer(player) {
  return { fallDistance: player.fallDistance };
}

module.exports = { name, server, player, loadPlayer, savePlayer };

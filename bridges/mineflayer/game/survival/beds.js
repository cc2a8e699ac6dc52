'use strict';

/**
 * Beds: respawn points, and nights that are skipped when all sleep for 100 ticks (Minecraft Wiki,
 * "Bed", 1.16). Using a bed by day sets the spawn too. Monsters within 8 blocks (5 up and down)
 * keep players awake.
 */

const { Vec3 } = require('vec3');
const { STEPS } = require('./halves');
const { explode } = require('./mobs/blast');

const name = 'beds';
const LONG_ENOUGH = 100;
const NEAR = 3;

function headOf({ x, y, z, info }) {
  if (info.props.part === 'head') return new Vec3(x, y, z);
  const [dx, dz] = STEPS[info.props.facing];
  return new Vec3(x + dx, y, z + dz);
}

function nightOrStorm(serv) {
  return serv.weather.thunder === 1 || (serv.time >= 12542 && serv.time <= 23459);
}

function monsters(serv, head) {
  return (
    serv.survival.entitiesNear(
      head,
      12,
      (e) =>
        e.type === 'mob' &&
        e.health > 0 &&
        (serv.registry.entitiesByName[e.name] || {}).category === 'Hostile mobs' &&
        Math.abs(e.position.x - head.x) <= 8 &&
        Math.abs(e.position.z - head.z) <= 8 &&
        Math.abs(e.position.y - head.y) <= 5,
    ).length > 0
  );
}

function refuse(serv, player, text) {
  player.system(text);
  serv.emit('gamut:noSleep', { player, reason: text });
  return true;
}

function lie(serv, call) {
  const { player } = call;
  const { blocks } = serv.survival;
  const head = headOf(call);
  if (player.sleeping || blocks.at(head.x, head.y, head.z).id !== call.info.id) return true;
  if (player.position.distanceTo(head.offset(0.5, 0, 0.5)) > NEAR + 1)
    return refuse(serv, player, 'the bed is too far away');
  if (serv.survival.dimensionOf(head) !== 'overworld') {
    blocks.setNamed(head.x, head.y, head.z, 'air');
    explode(serv.survival, head.offset(0.5, 0.5, 0.5), 5, null);
    return true;
  }
  player.bed = head;
  if (!nightOrStorm(serv))
    return refuse(serv, player, 'you can sleep only at night and in thunderstorms');
  if (blocks.at(head.x, head.y, head.z).props.occupied)
    return refuse(serv, player, 'this bed is occupied');
  if (monsters(serv, head))
    return refuse(serv, player, 'you may not rest now, there are monsters nearby');
  setOccupied(blocks, head, true);
  player.sleeping = { since: serv.survival.tick, head };
  player.showState();
  serv.emit('gamut:sleep', { player });
  return true;
}

/** Both halves have the flag: mineflayer looks at the one it clicks. */
function setOccupied(blocks, head, occupied) {
  const info = blocks.at(head.x, head.y, head.z);
  if (info.props.occupied === undefined) return;
  const [dx, dz] = STEPS[info.props.facing];
  blocks.set(head.x, head.y, head.z, blocks.changed(info, { occupied }));
  const foot = blocks.at(head.x - dx, head.y, head.z - dz);
  if (foot.id === info.id)
    blocks.set(head.x - dx, head.y, head.z - dz, blocks.changed(foot, { occupied }));
}

function wake(serv, player) {
  if (!player.sleeping) return;
  setOccupied(serv.survival.blocks, player.sleeping.head, false);
  player.sleeping = null;
  serv.survival.broadcast(player, 'animation', { entityId: player.id, animation: 2 });
  player.showState();
  serv.emit('gamut:wake', { player });
}

function tick(serv) {
  const sleepers = serv.players.filter((p) => p.sleeping);
  if (!sleepers.length) return;
  for (const player of sleepers) {
    const { head } = player.sleeping;
    const gone = !serv.survival.blocks.at(head.x, head.y, head.z).name.endsWith('_bed');
    if (gone || player.health <= 0 || !nightOrStorm(serv)) wake(serv, player);
  }
  const players = serv.players.filter((p) => p.gameMode !== 3 && p.health > 0);
  const deep = (p) => p.sleeping && serv.survival.tick - p.sleeping.since >= LONG_ENOUGH;
  if (!players.length || !players.every(deep)) return;
  if (serv.survival.rules.doDaylightCycle) serv.passTo(0);
  if (serv.survival.rules.doWeatherCycle || serv.weather.rain) serv.survival.setWeather('clear');
  for (const player of players) wake(serv, player);
}

/** The bed's position if it still stands and has room beside it, else the world's spawn. */
function respawnPlace(serv, player) {
  const { bed } = player;
  const { blocks } = serv.survival;
  if (bed && blocks.at(bed.x, bed.y, bed.z).name.endsWith('_bed')) {
    for (let dx = -2; dx <= 2; dx++) {
      for (let dz = -2; dz <= 2; dz++) {
        const spot = bed.offset(dx, 0, dz);
        const open = [0, 1].every((up) => !blocks.at(spot.x, spot.y + up, spot.z).boxes.length);
        if (open && blocks.at(spot.x, spot.y - 1, spot.z).full) return spot.offset(0.5, 0, 0.5);
      }
    }
  }
  if (bed) {
    player.bed = null;
    player._client.write('game_state_change', { reason: 0, gameMode: 0 });
  }
  return player.spawnPoint.clone();
}

function server(serv) {
  const { survival } = serv;
  const names = Object.keys(serv.registry.blocksByName).filter((n) => n.endsWith('_bed'));
  survival.onUseBlock(names, (call) => lie(serv, call));
  survival.onTick(() => tick(serv));
  survival.respawnPlace = (player) => respawnPlace(serv, player);
  survival.wake = (player) => wake(serv, player);
  serv.on('gamut:hurt', ({ victim }) => {
    if (victim.sleeping) wake(serv, victim);
  });
}

function player(player, serv) {
  player.sleeping = null;
  player.bed = null;
  player.on('wantsUp', () => wake(serv, player));
  player.on('disconnected', () => wake(serv, player));
}

function savePlayer(player) {
  return { bed: player.bed ? player.bed.toArray() : null };
}

/** A restore wakes sleepers. */
function loadPlayer(player, serv, data) {
  wake(serv, player);
  player.bed = data && data.bed ? new Vec3(...data.bed) : null;
}

module.exports = { name, server, player, savePlayer, loadPlayer };

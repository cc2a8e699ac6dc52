'use strict';

/**
 * What players throw: snowballs, eggs, ender pearls, bottles of experience (Minecraft Wiki, pages of
 * the items, Java Edition 1.16). How they fly, and what they do where they end, is in
 * mobs/missiles.js. Points of experience go to who threw the bottle.
 */

const { Vec3 } = require('vec3');
const { gaussian } = require('./mobs/missiles');

const name = 'throwing';
const EYES = 1.52;
const SPREAD = 0.0075;
/** `speed` in blocks per tick, `lift` in radians above the look, `pause` ticks until the next one. */
const THROWN = {
  snowball: { speed: 1.5 },
  egg: { speed: 1.5 },
  ender_pearl: { speed: 1.5, pause: 20 },
  experience_bottle: { speed: 0.7, lift: Math.PI / 9 },
};

function toss(serv, { player, slot, item }) {
  const { survival } = serv;
  const { speed, lift = 0, pause = 0 } = THROWN[item.name];
  if (survival.tick < (player.throwAt[item.name] ?? 0)) return false;
  if (pause) {
    player.throwAt[item.name] = survival.tick + pause;
    player._client.write('set_cooldown', { itemID: item.type, cooldownTicks: pause });
  }
  const { yaw, pitch } = player.facing;
  const flat = Math.cos(pitch);
  const off = () => gaussian() * SPREAD;
  const way = new Vec3(-Math.sin(yaw) * flat, -Math.sin(pitch - lift), Math.cos(yaw) * flat);
  const motion = way.scaled(1 / way.norm()).offset(off(), off(), off()).scaled(speed);
  survival.mobs.missiles.shoot(item.name, player, player.position.offset(0, EYES, 0), motion);
  if (player.gameMode !== 1) player.useUp(slot);
  serv.emit('gamut:thrown', { player, item: item.name });
  return true;
}

function server(serv) {
  serv.survival.onUseItem(Object.keys(THROWN), (call) => toss(serv, call));
}

function player(player) {
  player.throwAt = {};
}

module.exports = { name, server, player };

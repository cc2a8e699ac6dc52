'use strict';

/**
 * Effects of the world on a body: falling, lava, fire, drowning, the void, cacti, berry bushes,
 * magma and suffocation (Minecraft Wiki, "Damage", 1.16). Players only: mobs have physics of their
 * own and call `serv.survival.surroundings(entity, width, height)` for the same checks.
 */

const { wornLevel } = require('./enchants');

const name = 'environment';
const AIR = 300;
const WIDTH = 0.6;
const EYES = 1.62;
const SNEAKING_EYES = 1.27;
const SOFT = { hay_block: 0.2, honey_block: 0.2, slime_block: 0 };
const CLIMBED = new Set([
  'ladder',
  'vine',
  'scaffolding',
  'cobweb',
  'twisting_vines',
  'weeping_vines',
  'twisting_vines_plant',
  'weeping_vines_plant',
  'sweet_berry_bush',
]);
const SOULS = 32;
const TOUCH = { lava: 1, fire: 2, soul_fire: 2 | SOULS, cactus: 4, sweet_berry_bush: 8 };

/** Returns the bits of TOUCH for the blocks that a body overlaps, 16 for water. */
function touched(blocks, position, width, height) {
  const half = width / 2 - 0.001;
  const x1 = Math.floor(position.x + half);
  const y1 = Math.floor(position.y + height - 0.001);
  const z1 = Math.floor(position.z + half);
  let bits = 0;
  for (let y = Math.floor(position.y + 0.001); y <= y1; y++) {
    for (let x = Math.floor(position.x - half); x <= x1; x++) {
      for (let z = Math.floor(position.z - half); z <= z1; z++) {
        const stateId = blocks.stateAt(x, y, z);
        if (stateId === 0) continue;
        const info = blocks.info(stateId);
        bits |= (TOUCH[info.name] || 0) | (info.water ? 16 : 0);
      }
    }
  }
  return bits;
}

function setBurning(entity, ticks) {
  const was = entity.fireTicks > 0;
  entity.fireTicks = Math.max(entity.fireTicks || 0, ticks);
  if (!was) flame(entity, true);
}

function flame(entity, burning) {
  entity.burning = burning;
  if (entity.showState) entity.showState();
}

/**
 * Applies damage by the blocks an entity stands in; returns the bits touched. Burning costs 1 a
 * second.
 */
function surroundings(serv, entity, width, height) {
  const { survival } = serv;
  const bits = touched(survival.blocks, entity.position, width, height);
  const heat = survival.rules.fireDamage && !entity.fireProof;
  if (bits & 1 && heat) {
    survival.hurt(entity, { amount: 4, cause: 'lava' });
    setBurning(entity, 300);
  }
  if (bits & 2 && heat) {
    survival.hurt(entity, { amount: bits & SOULS ? 2 : 1, cause: 'fire' });
    setBurning(entity, 160);
  }
  if (bits & 4) survival.hurt(entity, { amount: 1, cause: 'cactus' });
  if (entity.fireTicks > 0) {
    const wet = bits & 16 || (survival.rainsOn && survival.rainsOn(entity.position));
    entity.fireTicks = wet ? 0 : entity.fireTicks - 1;
    if (entity.fireTicks % 20 === 0 && entity.fireTicks > 0 && heat && !(bits & 1)) {
      survival.hurt(entity, { amount: 1, cause: 'burning' });
    }
    if (entity.fireTicks === 0) flame(entity, false);
  }
  if (entity.position.y < -64 && survival.tick % 10 === 0)
    survival.hurt(entity, { amount: 4, cause: 'void' });
  return bits;
}

function showAir(player) {
  player._client.write('entity_metadata', {
    entityId: player.id,
    metadata: [{ key: 1, type: 1, value: player.air }],
  });
}

function breathe(serv, player, eyes) {
  const { survival } = serv;
  const { x, z } = player.position;
  const under = survival.blocks.surface(x, eyes, z, 'water') > eyes - Math.floor(eyes);
  const before = player.air;
  const gills =
    survival.effectLevel(player, 'WaterBreathing') || survival.effectLevel(player, 'ConduitPower');
  if (under && survival.needs && survival.rules.drowningDamage && !gills) {
    const breath = wornLevel(player, 'respiration');
    if (!breath || Math.random() < 1 / (breath + 1)) player.air--;
    if (player.air <= -20) {
      player.air = 0;
      survival.hurt(player, { amount: 2, cause: 'drown' });
    }
  } else {
    player.air = Math.min(AIR, player.air + 4);
  }
  if (player.air !== before) showAir(player);
}

function tickPlayer(serv, player) {
  const { survival } = serv;
  const { blocks } = survival;
  const { x, y, z } = player.position;
  const bits = surroundings(serv, player, WIDTH, player.crouching ? 1.5 : 1.8);
  if (bits & 17) player.fallDistance = 0;
  if (player.health <= 0) return;
  const eyes = y + (player.crouching ? SNEAKING_EYES : EYES);
  breathe(serv, player, eyes);
  const around = 0.24;
  for (const [dx, dz] of [
    [0, 0],
    [around, around],
    [-around, -around],
    [around, -around],
    [-around, around],
  ]) {
    if (!blocks.at(x + dx, eyes, z + dz).suffocates) continue;
    survival.hurt(player, { amount: 1, cause: 'suffocate' });
    break;
  }
  const below = blocks.at(x, y - 0.1, z);
  if (below.name === 'magma_block' && player.onGround && !player.crouching) {
    survival.hurt(player, { amount: 1, cause: 'magma' });
  }
}

function land(serv, player) {
  const { survival } = serv;
  const { x, y, z } = player.feet || player.position;
  const distance = player.fallDistance;
  player.fallDistance = 0;
  if (distance <= 3 || !survival.rules.fallDamage) return;
  const ground = survival.blocks.at(x, y - 0.2, z);
  let factor = SOFT[ground.name] ?? 1;
  if (ground.name === 'slime_block' && player.crouching) factor = 1;
  if (ground.name.endsWith('_bed')) factor = 0.5;
  const jump = survival.effectLevel(player, 'JumpBoost');
  // The client's sums are exact to about 1e-9; Mojang's server rounds the error away by using
  // floats.
  const amount = Math.ceil((distance - 3 - jump) * factor - 1e-4);
  if (amount > 0) survival.hurt(player, { amount, cause: 'fall' });
}

function onMove(serv, player, dx, dy, dz, onGround) {
  const { survival } = serv;
  const to = player.feet || player.position;
  const at = survival.blocks.at(to.x, to.y, to.z);
  if (dy < 0) player.fallDistance -= dy;
  if (at.water || at.lava || CLIMBED.has(at.name)) player.fallDistance = 0;
  if (survival.effectLevel(player, 'SlowFalling') || survival.effectLevel(player, 'Levitation')) {
    player.fallDistance = 0;
  }
  const moved = Math.abs(dx) >= 0.003 || Math.abs(dz) >= 0.003;
  if (at.name === 'sweet_berry_bush' && at.props.age > 0 && moved) {
    survival.hurt(player, { amount: 1, cause: 'berries' });
  }
  if (onGround) land(serv, player);
}

function server(serv) {
  const { survival } = serv;
  survival.surroundings = (entity, width, height) => surroundings(serv, entity, width, height);
  survival.setBurning = setBurning;
  survival.onMove((player, dx, dy, dz, onGround) => {
    if (survival.mortal(player)) onMove(serv, player, dx, dy, dz, onGround);
  });
  survival.onTick(() => {
    for (const player of serv.players) if (survival.mortal(player)) tickPlayer(serv, player);
  });
}

function start(player) {
  player.air = AIR;
  player.fireTicks = 0;
  player.fallDistance = 0;
}

function player(player) {
  start(player);
  player.on('fresh', () => {
    start(player);
    player.burning = false;
    showAir(player);
  });
}

function savePlayer(player) {
  const { air, fireTicks } = player;
  return { air, fireTicks };
}

function loadPlayer(player, serv, data) {
  start(player);
  if (data) Object.assign(player, data);
  player.burning = player.fireTicks > 0;
  player.showState();
  showAir(player);
}

module.exports = { name, server, player, savePlayer, loadPlayer };

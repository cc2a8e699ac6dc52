'use strict';

/**
 * Food, saturation, exhaustion, healing and starving (Minecraft Wiki, "Hunger", 1.16). With
 * `serv.survival.needs` off there is no exhaustion or starving; well-fed players still heal.
 *
 * On players: `exhaust(amount)`, `feed(food, saturation)`, `foodTimer`.
 */

const name = 'hunger';
const FULL = 20;

function exhaust(serv, player, amount) {
  if (!serv.survival.needs || player.gameMode === 1 || player.gameMode === 3) return;
  player.exhaustion = Math.min(40, player.exhaustion + amount);
}

function feed(player, food, saturation) {
  player.food = Math.min(FULL, player.food + food);
  player.foodSaturation = Math.min(player.food, player.foodSaturation + saturation);
  player.showHealth();
}

function spend(serv, player) {
  if (player.exhaustion <= 4) return;
  player.exhaustion -= 4;
  if (player.foodSaturation > 0) player.foodSaturation = Math.max(0, player.foodSaturation - 1);
  else if (serv.difficulty !== 0) player.food = Math.max(0, player.food - 1);
  player.showHealth();
}

function starve(serv, player) {
  const { difficulty } = serv;
  if (!serv.survival.needs || difficulty === 0) return;
  if (player.health > 10 || difficulty === 3 || (player.health > 1 && difficulty === 2)) {
    serv.survival.hurt(player, { amount: 1, cause: 'starve' });
  }
}

function heal(player, points, cost) {
  player.updateHealth(player.health + points);
  player.exhaustion += cost;
}

function tickPlayer(serv, player, tick) {
  const { survival } = serv;
  spend(serv, player);
  const regenerates =
    survival.rules.naturalRegeneration && player.health > 0 && player.health < FULL;
  if (regenerates && player.food >= FULL && player.foodSaturation > 0) {
    if (++player.foodTimer >= 10) {
      const used = Math.min(player.foodSaturation, 6);
      player.foodTimer = 0;
      heal(player, used / 6, survival.needs ? used : 0);
    }
  } else if (regenerates && player.food >= 18) {
    if (++player.foodTimer >= 80) {
      player.foodTimer = 0;
      heal(player, 1, survival.needs ? 6 : 0);
    }
  } else if (player.food <= 0) {
    if (++player.foodTimer >= 80) {
      player.foodTimer = 0;
      starve(serv, player);
    }
  } else {
    player.foodTimer = 0;
  }
  if (serv.difficulty === 0 && survival.rules.naturalRegeneration) {
    if (player.health < FULL && tick % 20 === 0) player.updateHealth(player.health + 1);
    if (player.food < FULL && tick % 10 === 0) feed(player, 1, 0);
  }
}

function onMove(serv, player, dx, dy, dz, onGround) {
  const { survival } = serv;
  const across = Math.hypot(dx, dz);
  const jumped = player.wasOnGround && !onGround && dy > 0.3;
  player.wasOnGround = onGround;
  if (jumped) player.exhaust(player.sprinting ? 0.2 : 0.05);
  if (across === 0 && dy === 0) return;
  const { x, y, z } = player.position;
  if (survival.blocks.at(x, y, z).water) player.exhaust(0.01 * Math.hypot(across, dy));
  else if (onGround && player.sprinting) player.exhaust(0.1 * across);
}

function server(serv) {
  const { survival } = serv;
  survival.onTick((tick) => {
    for (const player of serv.players) if (survival.mortal(player)) tickPlayer(serv, player, tick);
  });
  survival.onMove((player, dx, dy, dz, onGround) => onMove(serv, player, dx, dy, dz, onGround));
}

function start(player) {
  player.food = FULL;
  player.foodSaturation = 5;
  player.exhaustion = 0;
  player.foodTimer = 0;
  player.wasOnGround = false;
}

function player(player, serv) {
  start(player);
  player.exhaust = (amount) => exhaust(serv, player, amount);
  player.feed = (food, saturation) => feed(player, food, saturation);
  player.updateFood = (food) => {
    player.food = food;
    player.showHealth();
  };
  player.updateFoodSaturation = (saturation) => {
    player.foodSaturation = saturation;
    player.showHealth();
  };
  player.on('fresh', () => start(player));
}

function savePlayer(player) {
  const { food, foodSaturation, exhaustion, foodTimer } = player;
  return { food, foodSaturation, exhaustion, foodTimer };
}

function loadPlayer(player, serv, data) {
  start(player);
  if (data) Object.assign(player, data);
  player.showHealth();
}

module.exports = { name, server, player, savePlayer, loadPlayer };

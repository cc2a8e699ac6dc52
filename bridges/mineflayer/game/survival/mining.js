'use strict';

/**
 * Breaking blocks: the server computes the time by tool, water and ground itself, and restores a
 * block broken too early, from too far or in the wrong mode (Minecraft Wiki, "Breaking"). Like
 * Mojang's server it accepts 70 % of the time, for clients with a different clock. Drops by the
 * tool's level (loot.js), durability, experience, exhaustion. 'gamut:mined' {player, block,
 * properties, tool, x, y, z}.
 */

const { Vec3 } = require('vec3');
const { areOne, cellOfOther } = require('./halves');
const { lootOf, oreXp } = require('./loot');
const { EYES } = require('./use');

const name = 'mining';
const LENIENCE = 0.7;
const TOOLS = /_(pickaxe|axe|shovel|hoe)$/;

function enchantments(item) {
  return item && item.nbt ? item.enchants : [];
}

/** Returns the ticks a player needs for a block in its current state; Infinity if it cannot. */
function ticksFor(serv, player, x, y, z) {
  const { blocks } = serv.survival;
  const tool = player.heldStack();
  const { position } = player;
  // minecraft-data gives bedrock and similar blocks no hardness, which would count as none.
  if (!blocks.at(x, y, z).def.diggable) return Infinity;
  const wet = blocks.at(position.x, position.y + EYES, position.z).name === 'water';
  const time = blocks
    .blockAt(x, y, z)
    .digTime(
      tool ? tool.type : null,
      player.gameMode === 1,
      wet,
      !player.onGround,
      [...enchantments(tool), ...enchantments(player.inventory.slots[5])],
      player.effects,
    );
  return time / 50;
}

function acknowledge(serv, player, location, status, successful) {
  player._client.write('acknowledge_player_digging', {
    location,
    block: serv.survival.blocks.stateAt(location.x, location.y, location.z),
    status,
    successful,
  });
}

function showCracks(serv, player, location, stage) {
  serv.survival.broadcast(
    player,
    'block_break_animation',
    {
      entityId: player.id,
      location,
      destroyStage: stage,
    },
    false,
  );
}

function begin(serv, player, location) {
  const { survival } = serv;
  const { x, y, z } = location;
  const info = survival.blocks.at(x, y, z);
  if (info.air || player.gameMode > 1 || !survival.withinReach(player, x, y, z)) {
    refuse(serv, player, location, 0);
    return;
  }
  acknowledge(serv, player, location, 0, true);
  const ticks = ticksFor(serv, player, x, y, z);
  serv.emit('gamut:mining', { player, block: info.name, x, y, z });
  if (ticks === 0) breakBlock(serv, player, x, y, z);
  else player.digging = { x, y, z, since: survival.tick, stateId: info.stateId, stage: -1 };
}

function refuse(serv, player, location, status) {
  player.digging = null;
  serv.survival.blocks.resend(player, location.x, location.y, location.z);
  acknowledge(serv, player, location, status, false);
}

function cancel(serv, player, location) {
  if (player.digging) showCracks(serv, player, location, -1);
  player.digging = null;
  acknowledge(serv, player, location, 1, true);
}

function finish(serv, player, location) {
  const { survival } = serv;
  const { x, y, z } = location;
  const { digging } = player;
  const stateId = survival.blocks.stateAt(x, y, z);
  const same = digging && digging.x === x && digging.y === y && digging.z === z;
  // A block that broke at once is gone by now: the end of digging has no effect.
  if (!same && stateId === 0) return;
  const spent = same ? survival.tick - digging.since + 1 : 0;
  if (
    !same ||
    spent < LENIENCE * ticksFor(serv, player, x, y, z) ||
    !survival.withinReach(player, x, y, z)
  ) {
    if (digging) showCracks(serv, player, location, -1);
    refuse(serv, player, location, 2);
    return;
  }
  player.digging = null;
  showCracks(serv, player, location, -1);
  breakBlock(serv, player, x, y, z);
  acknowledge(serv, player, location, 2, true);
}

/** The other half of a door, a bed or a tall plant: `[x, y, z]`, or null without one. */
function otherHalf(blocks, x, y, z, info) {
  const cell = cellOfOther(info, x, y, z);
  return cell && areOne(info, blocks.at(...cell)) ? cell : null;
}

function remains(info, player) {
  if (info.name === 'ice' && player.gameMode !== 1) return 'water';
  return info.water ? 'water' : 'air';
}

/** Breaks a block for a player: drops, wear, experience. */
function breakBlock(serv, player, x, y, z) {
  const { survival } = serv;
  const info = survival.blocks.at(x, y, z);
  const tool = player.heldStack();
  const goodEnough = !info.def.harvestTools || Boolean(tool && info.def.harvestTools[tool.type]);
  const twin = otherHalf(survival.blocks, x, y, z, info);
  const drops =
    player.gameMode === 1 || !survival.rules.doTileDrops
      ? []
      : lootOf(survival.items, serv.registry, twin ? lower(info) : info, tool, goodEnough);
  // The halves drop here, once: falling.js must not find one without the other.
  survival.handled = twin ? [`${x},${y},${z}`, `${twin}`] : [];
  if (twin) survival.blocks.setNamed(...twin, 'air');
  survival.blocks.setNamed(x, y, z, remains(info, player));
  survival.handled = [];
  for (const [item, count] of drops) survival.popItem(x, y, z, survival.items.make(item, count));
  if (player.gameMode !== 1) {
    if (tool && (info.def.hardness > 0 || tool.name === 'shears')) wear(player, tool);
    player.exhaust(0.005);
    if (goodEnough && !survival.items.level(tool, 'silk_touch')) player.addXp(oreXp(info.name));
  }
  serv.emit('gamut:mined', {
    player,
    block: info.name,
    properties: info.props,
    tool: tool ? tool.name : '',
    x,
    y,
    z,
  });
}

/** The half that drops, whichever half was broken. */
function lower(info) {
  const { props } = info;
  if (props.part) return { ...info, props: { ...props, part: 'head' } };
  return props.half ? { ...info, props: { ...props, half: 'lower' } } : info;
}

function wear(player, tool) {
  if (tool.name.endsWith('_sword') || tool.name === 'trident')
    player.wearSlot(player.heldSlot(), 2);
  else if (TOOLS.test(tool.name) || tool.name === 'shears') player.wearSlot(player.heldSlot(), 1);
}

function crack(serv, player) {
  const { digging } = player;
  const { survival } = serv;
  const { x, y, z } = digging;
  if (survival.blocks.stateAt(x, y, z) !== digging.stateId || player.health <= 0) {
    player.digging = null;
    return;
  }
  const share = (survival.tick - digging.since) / ticksFor(serv, player, x, y, z);
  const stage = Math.min(9, Math.floor(share * 10));
  if (stage === digging.stage) return;
  digging.stage = stage;
  showCracks(serv, player, new Vec3(x, y, z), stage);
}

function server(serv) {
  const { survival } = serv;
  survival.handled = [];
  survival.breakBlock = (player, x, y, z) => breakBlock(serv, player, x, y, z);
  survival.onTick(() => {
    for (const player of serv.players) if (player.digging) crack(serv, player);
  });
}

function player(player, serv) {
  player.digging = null;
  player._client.on('block_dig', ({ status, location }) => {
    if (player.health <= 0) return;
    if (status === 0) begin(serv, player, location);
    else if (status === 1) cancel(serv, player, location);
    else if (status === 2) finish(serv, player, location);
  });
}

function loadPlayer(player) {
  player.digging = null;
}

module.exports = { name, server, player, loadPlayer };

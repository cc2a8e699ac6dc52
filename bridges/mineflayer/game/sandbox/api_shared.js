'use strict';
/**
 * Shared by the families of API entries: copies of the game's objects for programs, and checks of
 * many calls (is it visible, is it within reach).
 */
const { ActionError } = require('./check');

/** Reach of the hand, from the eye to the nearest point of a box (Minecraft Wiki: Player). */
const BLOCK_REACH = 4.5;
const BLOW_REACH = 3;
/** Tolerance for what moves during a tick. */
const SLACK = 0.6;

const round = (value) => Math.round(value * 1e6) / 1e6;
/** Returns [x, y, z] of a Vec3. */
const coordinates = (point) => [round(point.x), round(point.y), round(point.z)];

/** Longest tag of an item that is told, as JSON. */
const LONGEST_TAG = 4000;

/** Adds what the tag of an item says: enchantments, its name, the kind of a potion. */
function tagData(item, data) {
  if (JSON.stringify(item.nbt).length > LONGEST_TAG) return;
  data.nbt = item.nbt;
  if (item.enchants?.length > 0) data.enchants = item.enchants;
  if (item.customName) data.customName = item.customName;
  if (item.repairCost) data.repairCost = item.repairCost;
}

/** Returns a stack of items as plain data, or null. */
function itemData(item) {
  if (!item) return null;
  const data = { type: item.type, name: item.name, count: item.count, slot: item.slot ?? null };
  if (item.metadata) data.metadata = item.metadata;
  if (item.maxDurability) {
    data.maxDurability = item.maxDurability;
    data.durabilityUsed = item.durabilityUsed ?? 0;
  }
  if (item.nbt) tagData(item, data);
  return data;
}

/** Returns a block as plain data: what differs from block to block, not the properties of its kind. */
function blockData(block) {
  const properties = block.getProperties?.() ?? {};
  return {
    type: block.type,
    name: block.name,
    stateId: block.stateId,
    metadata: block.metadata,
    position: coordinates(block.position),
    properties
  };
}

function heldName(entity) {
  return entity.heldItem?.name ?? entity.equipment?.[0]?.name ?? null;
}

/** Professions by their numbers in the protocol, from 1.14 on. */
const PROFESSIONS = ['none', 'armorer', 'butcher', 'cartographer', 'cleric', 'farmer', 'fisherman', 'fletcher',
  'leatherworker', 'librarian', 'mason', 'nitwit', 'shepherd', 'toolsmith', 'weaponsmith'];

/** Returns what a villager's clothes show, {profession, level}, or null. */
function villagerData({ name, metadata }) {
  const shown = name === 'villager' && Object.values(metadata ?? {}).find((each) => each?.villagerProfession >= 0);
  return shown ? { profession: PROFESSIONS[shown.villagerProfession] ?? 'none', level: shown.level } : null;
}

/** Returns an entity as plain data. */
function entityData(entity) {
  const dropped = entity.name === 'item' ? entity.getDroppedItem?.() : null;
  return {
    id: entity.id,
    name: entity.name ?? null,
    type: entity.type ?? null,
    kind: entity.kind ?? null,
    displayName: entity.displayName ?? null,
    username: entity.username ?? null,
    position: coordinates(entity.position),
    velocity: coordinates(entity.velocity),
    yaw: round(entity.yaw),
    pitch: round(entity.pitch),
    height: entity.height,
    width: entity.width,
    onGround: Boolean(entity.onGround),
    health: entity.health ?? null,
    heldItem: heldName(entity),
    villager: villagerData(entity),
    droppedItem: dropped ? { type: dropped.type, name: dropped.name, count: dropped.count } : null
  };
}

const seesBlock = (agent, cell) => agent.senses?.canSeeBlock?.(cell) ?? true;
const seesEntity = (agent, entity) => agent.senses?.canSeeEntity?.(entity) ?? true;
const hears = (agent, point) => agent.senses?.canHear?.(point) ?? true;

/** Returns the block at a cell. @throws {ActionError} where nothing is known of it */
function blockAt(agent, cell) {
  const block = agent.bot.blockAt(cell);
  if (!block) throw new ActionError(`nothing is known of the place ${cell}: it is too far away`);
  return block;
}

const eyeOf = (bot) => bot.entity.position.offset(0, bot.entity.eyeHeight ?? 1.62, 0);

/** Returns the distance from a point to an axis-aligned box. */
function boxDistance(point, low, high) {
  const gap = (axis) => Math.max(low[axis] - point[axis], 0, point[axis] - high[axis]);
  return Math.hypot(gap('x'), gap('y'), gap('z'));
}

const handDistance = (agent, cell) => boxDistance(eyeOf(agent.bot), cell, cell.offset(1, 1, 1));

/**
 * Returns the block at a cell that is seen. @throws {ActionError}, the same for every block that is
 * out of sight: a program must not learn of it by what is refused
 */
function seenBlock(agent, cell, doing = 'look at') {
  if (!seesBlock(agent, cell)) throw new ActionError(`cannot ${doing} the block at ${cell}: it is out of sight`);
  return blockAt(agent, cell);
}

/** Returns the block at a cell that is seen and that a hand reaches. @throws {ActionError} */
function reachedBlock(agent, cell, doing) {
  const far = handDistance(agent, cell);
  if (far > BLOCK_REACH + SLACK) {
    throw new ActionError(`too far away to ${doing} the block at ${cell}: ` +
      `${far.toFixed(1)} blocks, a hand reaches ${BLOCK_REACH}; go nearer (bot.pathfinder.goto)`);
  }
  return seenBlock(agent, cell, doing);
}

/** Returns a visible entity by its number. @throws {ActionError} */
function knownEntity(agent, id) {
  const entity = agent.bot.entities[id];
  if (!entity || !seesEntity(agent, entity)) {
    throw new ActionError(`entity ${id} is gone or out of sight`);
  }
  return entity;
}

/** Returns an entity that a blow or a hand reaches. @throws {ActionError} */
function reachedEntity(agent, id, doing) {
  const entity = knownEntity(agent, id);
  const half = (entity.width ?? 0.6) / 2;
  const low = entity.position.offset(-half, 0, -half);
  const far = boxDistance(eyeOf(agent.bot), low, low.offset(2 * half, entity.height ?? 1, 2 * half));
  if (far > BLOW_REACH + SLACK) {
    throw new ActionError(`too far away to ${doing} ${entity.name}: ${far.toFixed(1)} blocks, ` +
      `${BLOW_REACH} are possible; go nearer (bot.pathfinder.goto)`);
  }
  return entity;
}

/** Returns the stack in a slot of the inventory, which must be the one that the program expects. */
function itemIn(agent, slot, type) {
  const item = agent.bot.inventory.slots[slot];
  if (!item || (type !== undefined && item.type !== type.id)) {
    const wanted = type ? type.name : 'anything';
    const held = item?.name ?? 'nothing';
    throw new ActionError(`slot ${slot} of the inventory does not hold ${wanted}; it holds ${held}`);
  }
  return item;
}

/** @throws {ActionError} when the program that asked has ended */
function stillWanted(signal) {
  if (signal.aborted) throw new ActionError('the program ended');
}

/**
 * Turns to a point of a block that is about to be used, which takes ticks. The library itself turns
 * and then uses the block, even if the program that asked has ended; after this call it uses it at
 * once.
 */
async function turnTo({ bot }, point, signal) {
  await bot.lookAt(point, false);
  stillWanted(signal);
}

const middleOf = (cell) => cell.offset(0.5, 0.5, 0.5);

module.exports = {
  blockData, boxDistance, coordinates, entityData, eyeOf, hears, itemData, itemIn,
  knownEntity, middleOf, reachedBlock, reachedEntity, seenBlock, seesBlock, seesEntity, stillWanted,
  turnTo, villagerData
};

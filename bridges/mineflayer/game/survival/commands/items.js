'use strict';

/** Commands about items: /give, /clear, /replaceitem, /item replace, /enchant. */

const { UserError } = require('flying-squid');
const { someOf, playersOf, blockOf, called } = require('./source');

/** Window slots of a player and the protocol's numbers of what a mob wears, by a slot's name. */
const WORN = {
  'weapon.offhand': [45, 1],
  'armor.feet': [8, 2],
  'armor.legs': [7, 3],
  'armor.chest': [6, 4],
  'armor.head': [5, 5],
};
const HOTBAR = 36;

/** Returns a stack of an item of a command, `{name, nbt}`; null for air. */
function stackOf(serv, { name, nbt = null }, count = 1) {
  if (name === 'air' || count === 0) return null;
  const tag = nbt && { ...JSON.parse(JSON.stringify(nbt)), name: '' };
  return serv.survival.items.make(name, count, tag);
}

/** Returns a stack of an item of a tag, `{id, Count, tag}` of SNBT. */
function stackOfTag(serv, { value }) {
  if (!value.id) return null;
  const name = value.id.value.replace(/^minecraft:/, '');
  return stackOf(serv, { name, nbt: value.tag }, value.Count?.value ?? 1);
}

function give(serv, source, { targets, item, count = 1 }) {
  const players = playersOf(serv, source, targets);
  for (const player of players) {
    const stack = stackOf(serv, item, count);
    if (stack) serv.survival.giveOrToss(player, stack);
  }
  return `Gave ${count} ${item.name} to ${called(players)}`;
}

function clear(serv, source, { targets, item, most = Infinity }) {
  const players = playersOf(serv, source, targets);
  const taken = players.reduce((sum, player) => sum + player.take(item?.name, most), 0);
  return `Removed ${taken} items from ${called(players)}`;
}

/** Puts a stack into a named slot of a player; returns whether it has that slot. */
function putPlayer(player, slot, stack) {
  const [kind, part] = slot.split('.');
  const number = Number(part);
  if (WORN[slot]) player.setSlot(WORN[slot][0], stack);
  else if (kind === 'weapon') player.setSlot(player.heldSlot(), stack);
  else if (kind === 'hotbar') player.setSlot(HOTBAR + number, stack);
  else if (kind === 'inventory') player.setSlot(9 + number, stack);
  else if (kind === 'enderchest') player.ender[number] = stack;
  else if (kind === 'container' && number < 36)
    player.setSlot(number < 9 ? HOTBAR + number : number, stack);
  else return false;
  return true;
}

/** Puts a stack into a hand of a mob or on its body. */
function putMob(serv, mob, slot, stack) {
  const number = slot === 'weapon' || slot === 'weapon.mainhand' ? 0 : WORN[slot]?.[1];
  if (mob.type !== 'mob' || number === undefined) return false;
  mob.equipment ??= [];
  mob.equipment[number] = stack;
  if (number === 5) mob.helmet = stack?.name;
  const item = serv.survival.items.Item.toNotch(stack);
  serv.survival.broadcast(mob, 'entity_equipment', {
    entityId: mob.id,
    equipments: [{ slot: number, item }],
  });
  return true;
}

function replaceitem(serv, source, { targets, at, slot, item, count = 1 }) {
  if (at) return replaceInBlock(serv, blockOf(source, at), slot, stackOf(serv, item, count));
  const found = someOf(serv, source, targets);
  for (const entity of found) {
    const stack = stackOf(serv, item, count);
    const put =
      entity.type === 'player'
        ? putPlayer(entity, slot, stack)
        : putMob(serv, entity, slot, stack);
    if (!put) throw new UserError(`The target does not have slot ${slot}`);
  }
  return `Replaced a slot of ${called(found)} with ${count} ${item.name}`;
}

function replaceInBlock(serv, { x, y, z }, slot, stack) {
  const container = serv.survival.container(x, y, z);
  if (!container) throw new UserError(`Target position ${x}, ${y}, ${z} is not a container`);
  const [kind, part] = slot.split('.');
  if (kind !== 'container' || Number(part) >= container.slots.length)
    throw new UserError(`The target does not have slot ${slot}`);
  serv.survival.setContainerSlot(container, Number(part), stack);
  return `Replaced a slot at ${x}, ${y}, ${z}`;
}

function enchant(serv, source, { targets, enchantment, level = 1 }) {
  const found = someOf(serv, source, targets);
  const def = serv.registry.enchantmentsByName[enchantment];
  if (level > def.maxLevel) {
    throw new UserError(
      `${level} is higher than the maximum level of ${def.maxLevel} supported by that enchantment`,
    );
  }
  for (const player of found) {
    const held = player.heldStack?.();
    if (!held) throw new UserError(`${called([player])} is not holding any item`);
    const suits = serv.registry.itemsByName[held.name].enchantCategories ?? [];
    if (!suits.includes(def.category))
      throw new UserError(`${held.name} cannot support that enchantment`);
    const twin = serv.survival.items.copy(held);
    const others = twin.nbt ? twin.enchants.filter((each) => each.name !== enchantment) : [];
    twin.enchants = [...others, { name: enchantment, lvl: level }];
    player.setSlot(player.heldSlot(), twin);
  }
  return `Applied enchantment ${enchantment} to the items of ${called(found)}`;
}

module.exports = { give, clear, replaceitem, item: replaceitem, enchant };
Object.defineProperties(module.exports, {
  stackOfTag: { value: stackOfTag },
  putMob: { value: putMob },
});

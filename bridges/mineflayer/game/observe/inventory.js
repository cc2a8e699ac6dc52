'use strict';
/**
 * The inventory of an agent, in numbers and in MineLand's lists. Cached until a slot changes: most
 * frames have the same inventory as the one before.
 */

const FIRST = 9; // window slots 9 to 44: the inventory's 27, then the hotbar's 9
const SLOTS = 36;
const HOTBAR = 36;
/** Window slots of feet, legs, body, head, off hand. */
const WORN = [8, 7, 6, 5, 45];
const EQUIPMENT = ['main hand', 'feet', 'legs', 'body', 'head', 'off hand'];

/** Returns an item's durability `[left, maximum]`; zeros for an item without durability. */
function durability(item) {
  if (!item?.maxDurability) return [0, 0];
  return [item.maxDurability - (item.durabilityUsed ?? 0), item.maxDurability];
}

/** Returns the names and levels of an item's enchantments as one text. */
function variant(item) {
  try {
    return (item.enchants ?? []).map(({ name, lvl }) => `${name} ${lvl}`).join(', ');
  } catch {
    return ''; // enchantments in a format that prismarine-item does not read
  }
}

class Inventory {
  constructor(agent, tables) {
    const { bot } = agent;
    this.bot = bot;
    this.tables = tables;
    this.stale = true;
    const forget = () => { this.stale = true; };
    agent.listen(bot.inventory, 'updateSlot', forget);
    agent.listen(bot, 'heldItemChanged', forget);
  }

  /** Returns `{numbers, details, armour}`; the same objects until something changes. */
  look() {
    const held = this.bot.quickBarSlot ?? 0;
    if (!this.stale && held === this.held) return this.seen;
    this.held = held;
    this.stale = false;
    const { slots } = this.bot.inventory;
    const carried = Array.from({ length: SLOTS }, (_, i) => slots[FIRST + i] ?? null);
    const worn = [slots[HOTBAR + held] ?? null, ...WORN.map((slot) => slots[slot] ?? null)];
    this.seen = {
      numbers: numbers(carried, worn, held),
      details: { ...lists(carried, worn), inventory_all: filled(slots) },
      armour: worn.reduce((sum, item, i) =>
        sum + (i > 0 && item ? this.tables.armour.get(item.type) ?? 0 : 0), 0)
    };
    return this.seen;
  }
}

function numbers(carried, worn, held) {
  const id = (item) => item?.type ?? 0;
  const count = (item) => item?.count ?? 0;
  return {
    inventory_id: carried.map(id),
    inventory_count: carried.map(count),
    inventory_durability: carried.flatMap(durability),
    equipment_id: worn.map(id),
    equipment_count: worn.map(count),
    equipment_durability: worn.flatMap(durability),
    held_slot: held
  };
}

function lists(carried, worn) {
  const left = (item) => durability(item)[0];
  const most = (item) => durability(item)[1];
  const equip = {};
  EQUIPMENT.forEach((name, i) => {
    const item = worn[i];
    equip[name] = item === null ? ['air', 0, '', 0, 0]
      : [item.name, item.count, variant(item), left(item), most(item)];
  });
  const full = carried.filter((item) => item !== null).length;
  return {
    equip,
    equipment: {
      name: worn.map((item) => item?.name ?? 'air'),
      quantity: worn.map((item) => item?.count ?? 0),
      variant: worn.map((item) => (item ? variant(item) : '')),
      cur_durability: worn.map(left),
      max_durability: worn.map(most)
    },
    inventory: {
      name: carried.map((item) => item?.name ?? null),
      quantity: carried.map((item) => item?.count ?? null),
      cur_durability: carried.map((item) => (item ? left(item) : null)),
      max_durability: carried.map((item) => (item ? most(item) : null))
    },
    inventory_full_slot_count: full,
    inventory_empty_slot_count: SLOTS - full,
    inventory_slot_count: SLOTS
  };
}

function filled(slots) {
  const all = {};
  slots.forEach((item, slot) => {
    if (item) all[slot] = { name: item.name, count: item.count };
  });
  return all;
}

module.exports = { Inventory };

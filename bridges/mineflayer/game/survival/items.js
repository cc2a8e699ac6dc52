'use strict';

/** Item stacks: creation, comparison, wear, and plain JSON for snapshots. */

const ARMOUR = /_(helmet|chestplate|leggings|boots)$/;

/** Returns the level of an enchantment on an item, 0 without it. */
function level(item, enchantment) {
  if (!item || !item.nbt) return 0;
  const found = item.enchants.find((e) => e.name === enchantment);
  return found ? found.lvl : 0;
}

/** Returns the helpers for the items of a registry (a minecraft-data version). */
function makeItems(registry) {
  const Item = require('prismarine-item')(registry);

  /** Returns a stack by name or id, without wear. Throws on an unknown one. */
  function make(nameOrId, count = 1, nbt = null) {
    const def =
      typeof nameOrId === 'number' ? registry.items[nameOrId] : registry.itemsByName[nameOrId];
    if (!def) throw new Error(`no item is called ${nameOrId}`);
    return new Item(def.id, count, 0, nbt);
  }

  function copy(item, count = item.count) {
    // The tag is cloned: two stacks that share one would wear out together.
    const nbt = item.nbt ? JSON.parse(JSON.stringify(item.nbt)) : null;
    const twin = new Item(item.type, count, item.metadata, nbt);
    return twin;
  }

  function tagOf(item) {
    return item.nbt && Object.keys(item.nbt.value).length ? JSON.stringify(item.nbt) : '';
  }

  /** Returns whether two stacks could share one slot. */
  function same(a, b) {
    return Boolean(a && b && a.type === b.type && tagOf(a) === tagOf(b));
  }

  function toJson(item) {
    return item ? { name: item.name, count: item.count, nbt: item.nbt || null } : null;
  }

  function fromJson(data) {
    return data
      ? make(data.name, data.count, data.nbt ? JSON.parse(JSON.stringify(data.nbt)) : null)
      : null;
  }

  /**
   * Wears an item and returns it, or null when it breaks. Items without durability are returned
   * unchanged. Unbreaking spares each point with probability level / (level + 1) (Minecraft Wiki,
   * "Unbreaking"); armour with 40 % of that.
   */
  function wear(item, points) {
    if (!item || !item.maxDurability || points <= 0) return item;
    const unbreaking = level(item, 'unbreaking');
    const spare = (unbreaking / (unbreaking + 1)) * (ARMOUR.test(item.name) ? 0.4 : 1);
    let lost = 0;
    for (let i = 0; i < points; i++) {
      if (!spare || Math.random() >= spare) lost++;
    }
    const used = (item.durabilityUsed || 0) + lost;
    if (used >= item.maxDurability) return null;
    const worn = copy(item);
    if (used) worn.durabilityUsed = used;
    return worn;
  }

  return { Item, make, copy, same, toJson, fromJson, wear, level };
}

/** Names within the smallest edit distance of `given`, for "did you mean". */
function nearest(given, names, count = 3) {
  return names
    .map((name) => [distance(given, name) - (name.includes(given) ? 4 : 0), name])
    .sort((a, b) => a[0] - b[0] || (a[1] < b[1] ? -1 : 1))
    .slice(0, count)
    .map((pair) => pair[1]);
}

function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const swap = row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(swap, row[j] + 1, next[j - 1] + 1));
    }
    row = next;
  }
  return row[b.length];
}

module.exports = { level, makeItems, nearest };

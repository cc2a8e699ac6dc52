'use strict';

/**
 * Enchanting: the table's three offers, and items that are found or sold enchanted (Minecraft Wiki,
 * "Enchanting mechanics", 1.16). The enchantments, their powers and weights are minecraft-data's.
 *
 * `serv.survival.enchanted(item, power, {treasure})` returns an item with enchantments as a table of
 * this power gives. Event: 'gamut:enchanted' {player, item, levels}.
 */

const { Chance } = require('../generator/noise');

const name = 'enchanting';
/** How well a material takes enchantments; other items have 1. */
const ENCHANTABILITY = {
  tool: { wooden: 15, stone: 5, iron: 14, golden: 22, diamond: 10, netherite: 15 },
  armour: { leather: 15, chainmail: 12, iron: 9, golden: 25, diamond: 10, netherite: 15, turtle: 9 },
};
const ARMOUR = /_(helmet|chestplate|leggings|boots)$/;
/** minecraft-data has the category of thorns wrong. */
const CATEGORIES = { thorns: 'armor_chest' };
const MOST_SHELVES = 15;
const MAX_PRINTED = 32767;

function enchantability(itemName) {
  const material = itemName.split('_')[0];
  const kind = ARMOUR.test(itemName) ? 'armour' : 'tool';
  return ENCHANTABILITY[kind][material] ?? 1;
}

/** Whether an enchantment belongs on an item. */
function belongs(registry, def, itemName) {
  if (itemName === 'book' || itemName === 'enchanted_book') return true;
  const fits = registry.itemsByName[itemName].enchantCategories ?? [];
  return fits.includes(CATEGORIES[def.name] ?? def.category);
}

const excludes = (a, b) => a.name === b.name || a.exclude.includes(b.name) || b.exclude.includes(a.name);
const costs = ({ a, b }, level) => a * level + b;

/** Returns the enchantments that a power can give an item, each at its highest level. */
function possible(registry, itemName, power, treasure) {
  const found = [];
  for (const def of registry.enchantmentsArray) {
    if ((def.treasureOnly && !treasure) || !def.discoverable) continue;
    if (!belongs(registry, def, itemName)) continue;
    for (let level = def.maxLevel; level > 0; level--) {
      if (power < costs(def.minCost, level) || power > costs(def.maxCost, level)) continue;
      found.push({ def, level, weight: def.weight });
      break;
    }
  }
  return found;
}

/** Draws the enchantments `[{name, lvl}]` of an item at a table's level. */
function draw(registry, chance, itemName, level, treasure = false) {
  const able = enchantability(itemName);
  const quarter = Math.floor(able / 4) + 1;
  let power = level + 1 + chance.below(quarter) + chance.below(quarter);
  const bonus = (chance.next() + chance.next() - 1) * 0.15;
  power = Math.max(1, Math.round(power * (1 + bonus)));
  const drawn = [];
  let left = possible(registry, itemName, power, treasure);
  while (left.length > 0) {
    const each = chance.weighted(left);
    drawn.push(each);
    if (chance.below(50) > power) break;
    power = Math.floor(power / 2);
    left = left.filter(({ def }) => !excludes(def, each.def));
  }
  if (itemName === 'book' && drawn.length > 1) drawn.splice(chance.below(drawn.length), 1);
  return drawn.map(({ def, level: lvl }) => ({ name: def.name, lvl }));
}

const tag = (value) => ({ type: 'compound', value });
const short = (value) => ({ type: 'short', value });
const text = (value) => ({ type: 'string', value });

/** Returns the rows of a list of enchantments as the protocol has them. */
function listOf(enchants) {
  const rows = enchants.map(({ name: id, lvl }) => ({ id: text(`minecraft:${id}`), lvl: short(lvl) }));
  return { type: 'list', value: { type: 'compound', value: rows } };
}

/** Returns a copy of an item with these enchantments alone; a book becomes an enchanted one. */
function withEnchants(items, item, enchants) {
  const book = item.name === 'book' || item.name === 'enchanted_book';
  const plain = book && enchants.length === 0;
  const kind = !book ? item.name : plain ? 'book' : 'enchanted_book';
  const { Enchantments, StoredEnchantments, ...rest } = items.copy(item).nbt?.value ?? {};
  if (enchants.length > 0) rest[book ? 'StoredEnchantments' : 'Enchantments'] = listOf(enchants);
  const nbt = Object.keys(rest).length > 0 ? { ...tag(rest), name: '' } : null;
  return items.make(kind, book ? 1 : item.count, nbt);
}

/** Returns the levels that the three offers of a table ask for; 0 where there is none. */
function levelsOf(registry, seed, shelves, item) {
  if (!item || item.count !== 1 || item.enchants.length > 0) return [0, 0, 0];
  if (!registry.enchantmentsArray.some((def) => belongs(registry, def, item.name))) return [0, 0, 0];
  const chance = new Chance(seed);
  const base = 1 + chance.below(8) + (shelves >> 1) + chance.below(shelves + 1);
  const levels = [Math.max(1, Math.floor(base / 3)), Math.floor((base * 2) / 3) + 1, Math.max(base, shelves * 2)];
  return levels.map((level, i) => (level < i + 1 ? 0 : level));
}

/** Returns what an offer will give. */
function offered(registry, seed, index, item, level) {
  return level > 0 ? draw(registry, new Chance(seed + index + 1), item.name, level) : [];
}

/** Counts the bookshelves around a table with air between them and it. */
function shelvesAt(blocks, x, y, z) {
  let count = 0;
  for (let dz = -1; dz <= 1; dz++) {
    for (let dx = -1; dx <= 1; dx++) {
      const clear = (dy) => blocks.at(x + dx, y + dy, z + dz).air;
      if ((dx === 0 && dz === 0) || !clear(0) || !clear(1)) continue;
      const shelf = (sx, sy, sz) => blocks.at(x + sx, y + sy, z + sz).name === 'bookshelf';
      for (const dy of [0, 1]) {
        if (shelf(dx * 2, dy, dz * 2)) count++;
        if (dx !== 0 && dz !== 0) count += shelf(dx * 2, dy, dz) + shelf(dx, dy, dz * 2);
      }
    }
  }
  return Math.min(MOST_SHELVES, count);
}

/** Sends the offers: their levels, and the first enchantment of each. */
function showOffers(serv, station, shelves) {
  const { registry } = serv;
  const seed = station.player.enchantSeed;
  const [item] = station.items;
  station.levels = levelsOf(registry, seed, shelves, item);
  const values = { 3: seed & 0x7ff0 };
  station.levels.forEach((level, index) => {
    const [first] = offered(registry, seed, index, item, level);
    values[index] = Math.min(MAX_PRINTED, level);
    values[4 + index] = first ? registry.enchantmentsByName[first.name].id : -1;
    values[7 + index] = first ? first.lvl : -1;
  });
  station.show(values);
}

function enchant(serv, station, index) {
  const { player, items: [item, lapis], levels } = station;
  const level = levels?.[index] ?? 0;
  const free = player.gameMode === 1;
  if (!item || !level || index < 0 || index > 2) return;
  if (!free && ((lapis?.count ?? 0) <= index || player.experience.level < Math.max(level, index + 1))) return;
  const { items } = serv.survival;
  const enchants = offered(serv.registry, player.enchantSeed, index, item, level);
  if (enchants.length === 0) return;
  station.items[0] = withEnchants(items, item, enchants);
  if (!free) {
    station.items[1] = lapis.count > index + 1 ? items.copy(lapis, lapis.count - index - 1) : null;
    player.setXpLevel(player.experience.level - index - 1);
  }
  player.enchantSeed = newSeed();
  station.update();
  serv.emit('gamut:enchanted', { player, item: item.name, levels: index + 1 });
}

const newSeed = () => Math.floor(Math.random() * 2 ** 31);

function open(serv, { player, x, y, z, info }) {
  const shelves = () => shelvesAt(serv.survival.blocks, x, y, z);
  player.enchantSeed ??= newSeed();
  serv.survival.openStation(player, {
    kind: 'enchantment',
    title: info.def.displayName,
    place: [x, y, z],
    inputs: 2,
    accepts: (index, item) => index === 0 || item.name === 'lapis_lazuli',
    limit: (index) => (index === 0 ? 1 : 64),
    quick: (item) => (item.name === 'lapis_lazuli' ? [1] : [0]),
    changed: (station) => showOffers(serv, station, shelves()),
    pressed: (station, index) => enchant(serv, station, index),
  });
  return true;
}

function server(serv) {
  const { survival } = serv;
  survival.enchanted = (item, power, { treasure = false } = {}) =>
    withEnchants(
      survival.items,
      item,
      draw(serv.registry, new Chance(newSeed()), item.name, power, treasure),
    );
  survival.onUseBlock('enchanting_table', (call) => open(serv, call));
}

/** The offers of a player stay the same until one is taken. */
function savePlayer(player) {
  return player.enchantSeed ?? null;
}

function loadPlayer(player, serv, data) {
  player.enchantSeed = data ?? null;
}

module.exports = { name, server, savePlayer, loadPlayer, belongs, draw, excludes, withEnchants };

'use strict';

/**
 * Anvils, grindstones and smithing tables: repair, joining and renaming for levels, and taking
 * enchantments off (Minecraft Wiki, "Anvil mechanics", "Grindstone", "Smithing", 1.16). What an item
 * is repaired with and its enchantments are minecraft-data's. Events: 'gamut:renamed' {player, item,
 * text}, 'gamut:repaired' {player, item}.
 */

const { belongs, excludes, withEnchants } = require('./enchanting');

const name = 'anvils';
const MOST_COST = 40;
const WEAR = 0.12;
const ANVILS = ['anvil', 'chipped_anvil', 'damaged_anvil'];
/** What one level of an enchantment costs by its weight. */
const PRICE = { 10: 1, 5: 2, 2: 4, 1: 8 };

/** Enchantments that an anvil, unlike a table, puts on a kind of item. */
const ALSO = [
  [/_axe$/, ['sharpness', 'smite', 'bane_of_arthropods']],
  [/^shears$/, ['efficiency']],
  [/_(helmet|leggings|boots)$/, ['thorns']],
];
const also = (itemName, id) => ALSO.some(([of, ids]) => of.test(itemName) && ids.includes(id));

const wornOf = (item) => item.durabilityUsed || 0;

/** The name of an item that a player gave it, or null. */
function nameOf(item) {
  const given = item.customName;
  if (given === null) return null;
  try {
    const data = JSON.parse(given);
    return typeof data === 'object' ? String(data?.text ?? '') : String(data);
  } catch {
    return given;
  }
}

/** Sets the name, '' for none; items keep names as JSON. */
function rename(item, text) {
  if (text) {
    item.customName = JSON.stringify({ text });
    return;
  }
  const { value } = item.nbt;
  delete value.display.value.Name;
  if (Object.keys(value.display.value).length === 0) delete value.display;
}

/** Repairs with material: a quarter each. Returns `{worn, used}`. */
function withMaterial(left, right) {
  let worn = wornOf(left);
  let used = 0;
  const quarter = Math.floor(left.maxDurability / 4);
  while (worn > 0 && used < right.count) {
    worn -= Math.min(worn, quarter);
    used++;
  }
  return { worn, used };
}

/** Joins the enchantments of two items. Returns `{enchants, cost, changed}`, null where none fits. */
function join(registry, left, right, creative) {
  const enchants = left.enchants.map((each) => ({ ...each }));
  const book = right.name === 'enchanted_book';
  let cost = 0;
  let [any, bad] = [false, false];
  for (const { name: id, lvl } of right.enchants) {
    const def = registry.enchantmentsByName[id];
    const there = enchants.find((each) => each.name === id);
    const level = there && there.lvl === lvl ? lvl + 1 : Math.max(lvl, there?.lvl ?? 0);
    let fits = creative || belongs(registry, def, left.name) || also(left.name, id);
    for (const other of enchants) {
      if (other.name === id || !excludes(registry.enchantmentsByName[other.name], def)) continue;
      fits = false;
      cost++;
    }
    if (!fits) {
      bad = true;
      continue;
    }
    any = true;
    const now = Math.min(level, def.maxLevel);
    if (there) there.lvl = now;
    else enchants.push({ name: id, lvl: now });
    cost += now * (book ? Math.max(1, PRICE[def.weight] / 2) : PRICE[def.weight]);
  }
  return bad && !any ? null : { enchants, cost };
}

/** What two different items, or an item and a name, give in an anvil; null if nothing. */
function forged(serv, station) {
  const { registry, survival } = serv;
  const { player, items: [left, right], text } = station;
  if (!left) return null;
  const creative = player.gameMode === 1;
  let item = survival.items.copy(left);
  let [work, naming, used] = [0, 0, 0];
  let worn = wornOf(left);
  if (right) {
    const book = right.name === 'enchanted_book' && right.enchants.length > 0;
    const material = (registry.itemsByName[left.name].repairWith ?? []).includes(right.name);
    if (left.maxDurability && material) {
      ({ worn, used } = withMaterial(left, right));
      if (used === 0) return null;
      work += used;
    } else {
      used = 1;
      if (!book && (left.name !== right.name || !left.maxDurability)) return null;
      if (left.maxDurability && !book) {
        const rest = right.maxDurability - wornOf(right) + Math.floor(left.maxDurability * 0.12);
        const after = Math.max(0, worn - rest);
        if (after < worn) work += 2;
        worn = Math.min(worn, after);
      }
      const joined = join(registry, left, right, creative);
      if (!joined) return null;
      work += left.count > 1 ? MOST_COST : joined.cost;
      item = withEnchants(survival.items, item, joined.enchants);
    }
  }
  const named = nameOf(left);
  if (text ? text !== (named ?? left.displayName) : named !== null) {
    naming = 1;
    rename(item, text);
  }
  if (work + naming <= 0) return null;
  let cost = left.repairCost + (right ? right.repairCost : 0) + work + naming;
  if (work === 0 && cost >= MOST_COST) cost = MOST_COST - 1;
  if (cost >= MOST_COST && !creative) return null;
  if (item.maxDurability && worn !== wornOf(item)) item.durabilityUsed = worn;
  const before = Math.max(left.repairCost, right ? right.repairCost : 0);
  item.repairCost = work > 0 ? before * 2 + 1 : before;
  const taken = () => {
    wearAnvil(serv, player);
    if (naming) serv.emit('gamut:renamed', { player, item: item.name, text });
    if (work) serv.emit('gamut:repaired', { player, item: item.name });
  };
  return { item, cost, use: [left.count, used], taken };
}

/** An anvil is worn by one use in eight, and breaks at last. */
function wearAnvil({ survival }, player) {
  const { place } = player.openWindow;
  const info = survival.blocks.at(place.x, place.y, place.z);
  const stage = ANVILS.indexOf(info.name);
  if (player.gameMode === 1 || stage < 0 || Math.random() >= WEAR) return;
  const next = ANVILS[stage + 1];
  if (!next) {
    survival.blocks.setNamed(place.x, place.y, place.z, 'air');
    return;
  }
  survival.blocks.setNamed(place.x, place.y, place.z, next, { facing: info.props.facing });
  player.openWindow.block = survival.blocks.at(place.x, place.y, place.z).id; // it stays open
}

/** What a grindstone makes: no enchantments but curses, and of two worn items one. */
function ground(serv, station) {
  const { registry, survival } = serv;
  const [one, two] = station.items;
  const first = one ?? two;
  if (!first) return null;
  if ((one && one.count > 1) || (two && two.count > 1)) return null;
  let item = survival.items.copy(first);
  const both = [one, two].filter(Boolean);
  const enchants = both.flatMap((each) => each.enchants);
  if (both.length === 2) {
    if (one.name !== two.name || !one.maxDurability) return null;
    const left = both.reduce((sum, each) => sum + each.maxDurability - wornOf(each), 0);
    const worn = one.maxDurability - left - Math.floor(one.maxDurability * 0.05);
    if (wornOf(item) || worn > 0) item.durabilityUsed = Math.max(0, worn);
  } else if (enchants.length === 0) return null;
  const curses = enchants.filter(({ name: id }) => registry.enchantmentsByName[id].curse);
  item = withEnchants(survival.items, item, curses);
  if (item.nbt?.value.RepairCost) delete item.nbt.value.RepairCost;
  let points = 0;
  for (const { name: id, lvl } of enchants) {
    const { curse, minCost } = registry.enchantmentsByName[id];
    if (!curse) points += minCost.a * lvl + minCost.b;
  }
  const taken = () => {
    const half = Math.ceil(points / 2);
    if (points > 0) station.player.addXp(half + Math.floor(Math.random() * half));
    if (both.length === 2) serv.emit('gamut:repaired', { player: station.player, item: item.name });
  };
  return { item, use: [1, 1], taken };
}

/** A netherite ingot makes netherite gear of diamond gear. */
function smithed(serv, station) {
  const [base, ingot] = station.items;
  if (!base || ingot?.name !== 'netherite_ingot' || !base.name.startsWith('diamond_')) return null;
  const kind = base.name.replace('diamond_', 'netherite_');
  if (!serv.registry.itemsByName[kind]) return null;
  const { items } = serv.survival;
  const item = items.make(kind, 1, items.copy(base).nbt);
  const { player } = station;
  return { item, use: [1, 1], taken: () => serv.emit('gamut:crafted', { player, item: kind, count: 1 }) };
}

/** The stations of this file: their blocks, windows and what they make. */
const STATIONS = [
  { blocks: ANVILS, kind: 'anvil', made: forged, cost: true },
  { blocks: ['grindstone'], kind: 'grindstone', made: ground,
    accepts: (index, item) =>
      Boolean(item.maxDurability) || item.enchants.length > 0 },
  { blocks: ['smithing_table'], kind: 'smithing', made: smithed },
];

function server(serv) {
  for (const { blocks, kind, made, accepts, cost } of STATIONS) {
    serv.survival.onUseBlock(blocks, ({ player, x, y, z, info }) => {
      serv.survival.openStation(player, {
        kind, accepts, title: info.def.displayName, place: [x, y, z], inputs: 2,
        made: (station) => made(serv, station),
        changed: cost ? (station) => station.show({ 0: station.made?.cost ?? 0 }) : undefined,
      });
      return true;
    });
  }
}

module.exports = { name, server };

'use strict';

/**
 * Loot of chests by the tables of loot_tables.json.
 *
 * `serv.survival.fillWithLoot(x, y, z, table, seed)` puts what a table gives into the container at a
 * place, in slots drawn at random. The same seed gives the same things.
 */

const { Chance } = require('../generator/noise');
const { tables: TABLES, as: AS } = require('./loot_tables.json');
const { draw, withEnchants } = require('./enchanting');

const name = 'chest_loot';
/** Power of the enchantments of what is found, as in the game. */
const POWER = [20, 39];

/** Returns the name of a table, without its namespace and folder; undefined if there is none. */
function tableName(given) {
  const short = String(given).replace(/^minecraft:/, '').replace(/^chests\//, '');
  const found = AS[short] ?? short;
  return Object.hasOwn(TABLES, found) ? found : undefined;
}

/** Returns the names of all items that a table may give. */
function itemsOf(table) {
  const rows = TABLES[tableName(table)].flatMap(([, , each]) => each);
  return [...new Set(rows.map(([, item]) => item.replace('*', '')).filter(Boolean))];
}

/** Returns what a table gives, as stacks. */
function rolled(survival, chance, table) {
  const { items, registry } = survival;
  const stacks = [];
  for (const [least, most, rows] of TABLES[table]) {
    for (let n = chance.between(least, most); n > 0; n--) {
      const [, given, low, high] = chance.weighted(rows.map((row) => ({ weight: row[0], row }))).row;
      if (!given) continue;
      const item = items.make(given.replace('*', ''), chance.between(low, high));
      const special = given.endsWith('*');
      const enchants = special ? draw(registry, chance, item.name, chance.between(...POWER), true) : [];
      stacks.push(special ? withEnchants(items, item, enchants) : item);
    }
  }
  return stacks;
}

function fill(survival, x, y, z, table, seed) {
  const container = survival.container(x, y, z);
  const chance = new Chance(seed);
  const free = container.slots.map((item, index) => (item ? -1 : index)).filter((index) => index >= 0);
  for (const stack of rolled(survival, chance, tableName(table))) {
    if (free.length === 0) return;
    const [index] = free.splice(chance.below(free.length), 1);
    survival.setContainerSlot(container, index, stack);
  }
}

function server(serv) {
  const { survival } = serv;
  survival.fillWithLoot = (x, y, z, table, seed = Math.floor(Math.random() * 2 ** 31)) =>
    fill(survival, x, y, z, table, seed);
}

module.exports = { name, server, itemsOf, tableName };

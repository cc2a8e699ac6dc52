'use strict';

/**
 * Crafting in the 2x2 grid of a player and the 3x3 grid of a table, by the recipes of minecraft-
 * data (shaped ones also mirrored). Recipes that compute their result (repair, dyes, fireworks,
 * maps) are not there. 'gamut:crafted' {player, item, count}.
 */

const { Vec3 } = require('vec3');

const name = 'crafting';
const REMAINS = {
  milk_bucket: 'bucket',
  water_bucket: 'bucket',
  lava_bucket: 'bucket',
  honey_bottle: 'glass_bottle',
  dragon_breath: 'glass_bottle',
};
const BOOKS = new Map();

function idOf(cell) {
  if (cell === null || cell === undefined) return -1;
  return typeof cell === 'object' ? (cell.id ?? -1) : cell;
}

/** Returns the recipes of a registry by the sorted ids of their ingredients. */
function bookOf(registry) {
  if (BOOKS.has(registry)) return BOOKS.get(registry);
  const book = new Map();
  for (const recipes of Object.values(registry.recipes)) {
    for (const recipe of recipes) {
      const shape = recipe.inShape && trim(recipe.inShape.map((row) => row.map(idOf)));
      const ids = (shape ? shape.flat() : recipe.ingredients.map(idOf)).filter((id) => id >= 0);
      const key = ids.sort((a, b) => a - b).join(',');
      const entry = { shape, result: { id: idOf(recipe.result), count: recipe.result.count || 1 } };
      if (book.has(key)) book.get(key).push(entry);
      else book.set(key, [entry]);
    }
  }
  BOOKS.set(registry, book);
  return book;
}

/** Returns the rows without empty rows and columns at their edges. */
function trim(rows) {
  const width = Math.max(...rows.map((row) => row.length));
  const filled = rows.map((row) => Array.from({ length: width }, (_, x) => row[x] ?? -1));
  const used = (row) => row.some((id) => id >= 0);
  const ys = filled.map(used);
  const xs = Array.from({ length: width }, (_, x) => filled.some((row) => row[x] >= 0));
  const [y0, y1] = [ys.indexOf(true), ys.lastIndexOf(true)];
  const [x0, x1] = [xs.indexOf(true), xs.lastIndexOf(true)];
  return filled.slice(y0, y1 + 1).map((row) => row.slice(x0, x1 + 1));
}

/** Returns `{id, count}` of the product of a grid (items or null, row by row), or null. */
function resultOf(registry, grid, width) {
  const ids = grid.map((item) => (item ? item.type : -1));
  const used = ids.filter((id) => id >= 0);
  if (!used.length) return null;
  const found = bookOf(registry).get(used.sort((a, b) => a - b).join(','));
  if (!found) return null;
  const rows = [];
  for (let i = 0; i < ids.length; i += width) rows.push(ids.slice(i, i + width));
  const shape = trim(rows);
  const laid = JSON.stringify(shape);
  const mirrored = JSON.stringify(shape.map((row) => row.slice().reverse()));
  const match = found.find(({ shape: wanted }) => {
    const drawn = JSON.stringify(wanted);
    return !wanted || drawn === laid || drawn === mirrored;
  });
  return match ? match.result : null;
}

/** Takes one of each out of the grid and leaves the remains, such as buckets. */
function consume(serv, player, cells) {
  const { items } = serv.survival;
  for (const cell of cells) {
    const item = cell.get();
    if (!item) continue;
    const rest = REMAINS[item.name];
    cell.set(item.count > 1 ? items.copy(item, item.count - 1) : null);
    if (!rest) continue;
    if (!cell.get()) cell.set(items.make(rest));
    else serv.survival.giveOrToss(player, items.make(rest));
  }
}

/** Returns the result slot for grid cells: it follows from the cells. */
function resultSlot(serv, player, cells, width) {
  const { items, registry } = serv.survival;
  let shown = null;
  let made = null;
  const slot = {
    result: true,
    get: () => {
      const result = resultOf(
        registry,
        cells.map((cell) => cell.get()),
        width,
      );
      if (!result) return (made = null);
      const key = `${result.id}x${result.count}`;
      if (!made || shown !== key) made = items.make(result.id, result.count);
      shown = key;
      return made;
    },
    set: () => {},
    taken: (item) => {
      serv.emit('gamut:crafted', { player, item: item.name, count: item.count });
      consume(serv, player, cells);
      made = null;
    },
  };
  return slot;
}

function putBack(serv, player, cells) {
  for (const cell of cells) {
    const item = cell.get();
    if (!item) continue;
    cell.set(null);
    serv.survival.giveOrToss(player, item);
  }
}

function openTable(serv, { player, x, y, z }) {
  const { survival } = serv;
  const stock = new Array(9).fill(null);
  const cells = stock.map((_, i) => ({
    get: () => stock[i],
    set: (item) => {
      stock[i] = item;
    },
  }));
  survival.openWindow(player, {
    kind: 'crafting',
    title: 'Crafting',
    place: new Vec3(x, y, z),
    slots: [resultSlot(serv, player, cells, 3), ...cells],
    quick: () => [],
    closed: () => putBack(serv, player, cells),
  });
  return true;
}

function server(serv) {
  serv.survival.onUseBlock('crafting_table', (call) => openTable(serv, call));
}

/** The grid in a player's own window: slots 1 to 4, and 0 for the result. */
function player(player, serv) {
  const cells = [1, 2, 3, 4].map((i) => player.ownWindow.slots[i]);
  const slot = resultSlot(serv, player, cells, 2);
  player.ownWindow.slots[0] = slot;
  player.on('clicked', (window) => {
    if (window !== player.ownWindow) return;
    const item = slot.get();
    if (item !== player.inventory.slots[0]) player.setSlot(0, item);
  });
  player.on('windowClosed', () => {
    putBack(serv, player, cells);
    if (player.inventory.slots[0]) player.setSlot(0, null);
  });
}

module.exports = { name, server, player, resultOf };

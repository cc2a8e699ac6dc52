'use strict';

/** Commands about blocks: /setblock, /fill, /clone. */

const { UserError } = require('flying-squid');
const { blockOf } = require('./source');
const { stackOfTag } = require('./items');
const { lootOf } = require('../loot');
const { tableName } = require('../chest_loot');

/** As in the game: blocks that one /fill or /clone may concern. */
const MOST = 32768;

/** Returns the values of a command's block properties, which are texts. */
function propsOf({ properties = {} }) {
  return Object.fromEntries(
    Object.entries(properties).map(([key, value]) => [
      key,
      value === 'true' || value === 'false' ? value === 'true' : /^\d+$/.test(value) ? Number(value) : value,
    ]),
  );
}

/** Whether the block at coordinates is that of a command, in the properties that it names. */
function isBlock(serv, source, at, block) {
  const { x, y, z } = blockOf(source, at);
  return matches(serv.survival.blocks.at(x, y, z), block);
}

function matches(info, block) {
  return (
    info.name === block.name &&
    Object.entries(propsOf(block)).every(([key, value]) => info.props[key] === value)
  );
}

/** Writes a block and what its tag puts into it; `drops`: what is there breaks as if dug. */
function put(serv, { x, y, z }, block, drops = false) {
  const { survival } = serv;
  const old = survival.blocks.at(x, y, z);
  const { items: kinds, registry, rules } = survival;
  const loot = drops && rules.doTileDrops ? lootOf(kinds, registry, old, null, true) : [];
  const container = survival.container(x, y, z);
  if (container && !drops) container.slots.fill(null); // nothing drops when it is replaced
  survival.blocks.set(x, y, z, survival.blocks.state(block.name, propsOf(block)));
  for (const [item, count] of loot) survival.popItem(x, y, z, kinds.make(item, count));
  const items = block.nbt?.value.Items?.value.value ?? [];
  const table = block.nbt?.value.LootTable?.value;
  if (items.length === 0 && table === undefined) return;
  const into = survival.container(x, y, z);
  if (!into) throw new UserError(`${block.name} at ${x}, ${y}, ${z} is not a container`);
  if (table !== undefined) {
    if (!tableName(table)) throw new UserError(`Unknown loot table: ${table}`);
    const seed = block.nbt.value.LootTableSeed?.value;
    survival.fillWithLoot(x, y, z, table, typeof seed === 'number' ? seed : undefined);
  }
  items.forEach((tag, index) => {
    const slot = tag.Slot?.value ?? index;
    if (!(slot >= 0 && slot < into.slots.length))
      throw new UserError(`${block.name} does not have slot ${slot}`);
    survival.setContainerSlot(into, slot, stackOfTag(serv, { value: tag }));
  });
}

function setblock(serv, source, { at, block, mode = 'replace' }) {
  const place = blockOf(source, at);
  const { air } = serv.survival.blocks.at(place.x, place.y, place.z);
  if (mode !== 'keep' || air) put(serv, place, block, mode === 'destroy');
  return `Changed the block at ${place.x}, ${place.y}, ${place.z}`;
}

/** Returns the lower and the upper corner of a box; refuses one of too many blocks. */
function boxOf(source, from, to) {
  const [a, b] = [blockOf(source, from), blockOf(source, to)];
  const low = a.min(b);
  const high = a.max(b);
  const size = high.minus(low).offset(1, 1, 1);
  const count = size.x * size.y * size.z;
  if (count > MOST) {
    throw new UserError(
      `Too many blocks in the specified area (maximum ${MOST}, specified ${count})`,
    );
  }
  return { low, high, size, count };
}

function* cells({ low, high }) {
  const at = low.clone();
  for (at.y = low.y; at.y <= high.y; at.y++) {
    for (at.x = low.x; at.x <= high.x; at.x++) {
      for (at.z = low.z; at.z <= high.z; at.z++) yield at.clone();
    }
  }
}

const AIR = { name: 'air' };

function fill(serv, source, { from, to, block, mode = 'replace', only }) {
  const box = boxOf(source, from, to);
  const isShell = (at) =>
    ['x', 'y', 'z'].some((axis) => at[axis] === box.low[axis] || at[axis] === box.high[axis]);
  let count = 0;
  serv.survival.redstone.together(() => {
    for (const at of cells(box)) {
      const there = serv.survival.blocks.at(at.x, at.y, at.z);
      if (only && !matches(there, only)) continue;
      if (mode === 'keep' && !there.air) continue;
      const inside = (mode === 'hollow' || mode === 'outline') && !isShell(at);
      if (inside && mode === 'outline') continue;
      put(serv, at, inside ? AIR : block, mode === 'destroy');
      count++;
    }
  });
  return `Successfully filled ${count} blocks`;
}

function clone(serv, source, { from, to, at, mask = 'replace', mode = 'normal' }) {
  const { survival } = serv;
  const box = boxOf(source, from, to);
  const shift = blockOf(source, at).minus(box.low);
  const overlaps = ['x', 'y', 'z'].every((axis) => Math.abs(shift[axis]) < box.size[axis]);
  if (overlaps && mode === 'normal')
    throw new UserError('The source and destination areas cannot overlap');
  const rows = [...cells(box)].map((cell) => {
    const container = survival.container(cell.x, cell.y, cell.z);
    const items = container?.slots.map((item) => item && survival.items.copy(item));
    return { cell, info: survival.blocks.at(cell.x, cell.y, cell.z), items };
  });
  const kept = rows.filter(({ info }) => mask === 'replace' || !info.air);
  if (mode === 'move') for (const { cell } of kept) put(serv, cell, AIR);
  for (const { cell, info, items } of kept) {
    const { x, y, z } = cell.plus(shift);
    if (y < 0 || y > 255) throw new UserError('That position is out of this world!');
    survival.blocks.set(x, y, z, info.stateId);
    const into = items && survival.container(x, y, z);
    if (into) items.forEach((item, index) => survival.setContainerSlot(into, index, item));
  }
  return `Successfully cloned ${kept.length} blocks`;
}

module.exports = { EXECUTORS: { setblock, fill, clone }, isBlock, put };

'use strict';

/**
 * The blocks with contents: how many `slots` they have, the `window` that shows them, whether a
 * mechanic of their `own` opens it, and what a slot takes, `accepts(index, item)`, from players and
 * hoppers alike (Minecraft Wiki, pages of the blocks, 1.16).
 */

const { accepts: brewable } = require('./brewing');
const { COLOURS } = require('./colours');
const { burnTime } = require('./smelting');

const chest = { slots: 27, window: 'generic_9x3' };
const burns = (index, item) => index !== 1 || burnTime(item.name) > 0 || item.name === 'bucket';
const furnace = (window) => ({ slots: 3, window, own: true, accepts: burns });
const box = { slots: 27, window: 'shulker_box', accepts: (_, item) => !item.name.endsWith('shulker_box') };

const STORES = {
  chest,
  trapped_chest: chest,
  barrel: chest,
  dispenser: { slots: 9, window: 'generic_3x3' },
  dropper: { slots: 9, window: 'generic_3x3' },
  hopper: { slots: 5, window: 'hopper' },
  brewing_stand: { slots: 5, window: 'brewing_stand', own: true, accepts: brewable },
  furnace: furnace('furnace'),
  blast_furnace: furnace('blast_furnace'),
  smoker: furnace('smoker'),
  shulker_box: box,
  ...Object.fromEntries(COLOURS.map((colour) => [`${colour}_shulker_box`, box])),
};

/** Whether a slot of a kind of block takes an item. */
const accepts = (kind, index, item) => STORES[kind].accepts?.(index, item) ?? true;

module.exports = { STORES, accepts };

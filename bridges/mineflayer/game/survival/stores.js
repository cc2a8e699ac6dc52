'use strict';

/**
 * The blocks with contents: how many `slots` they have, the `window` that shows them, and whether
 * a mechanic of their `own` opens it (Minecraft Wiki, pages of the blocks, 1.16).
 */

const { COLOURS } = require('./colours');

const chest = { slots: 27, window: 'generic_9x3' };
const furnace = (window) => ({ slots: 3, window, own: true });
const box = { slots: 27, window: 'shulker_box' };

const STORES = {
  chest,
  trapped_chest: chest,
  barrel: chest,
  dispenser: { slots: 9, window: 'generic_3x3' },
  dropper: { slots: 9, window: 'generic_3x3' },
  hopper: { slots: 5, window: 'hopper' },
  brewing_stand: { slots: 5, window: 'brewing_stand', own: true },
  furnace: furnace('furnace'),
  blast_furnace: furnace('blast_furnace'),
  smoker: furnace('smoker'),
  shulker_box: box,
  ...Object.fromEntries(COLOURS.map((colour) => [`${colour}_shulker_box`, box])),
};

module.exports = { STORES };

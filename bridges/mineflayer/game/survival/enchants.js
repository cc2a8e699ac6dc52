'use strict';

/**
 * What enchantments do (Minecraft Wiki, page of each, 1.16), as numbers for the mechanics that ask:
 * harder blows, less damage, more loot. Efficiency and aqua affinity are prismarine-block's, silk
 * touch is in loot.js, unbreaking in items.js, quick charge in projectiles.js.
 */

const { level } = require('./items');

const name = 'enchants';
const WORN = [5, 6, 7, 8];
const OFF_HAND = 45;
const ARTHROPODS = /^(spider|cave_spider|silverfish|endermite|bee)$/;
/** Points of protection per level: of any damage, and of a kind of it. */
const PROTECTION = [
  ['protection', 1, () => true],
  ['fire_protection', 2, ({ kind }) => kind.fire],
  ['feather_falling', 3, ({ cause }) => cause === 'fall'],
  ['blast_protection', 2, ({ cause }) => cause === 'explosion'],
  ['projectile_protection', 2, ({ cause }) => cause === 'arrow'],
];
const MOST_PROTECTION = 20;
/** Causes that no enchantment protects from. */
const THROUGH = new Set(['starve', 'void', 'command']);

/** Returns what a weapon adds to a blow on a target. */
function sharper(item, target) {
  const sharp = level(item, 'sharpness');
  let more = sharp ? 0.5 * sharp + 0.5 : 0;
  if (target.kind?.undead) more += 2.5 * level(item, 'smite');
  if (ARTHROPODS.test(target.name)) more += 2.5 * level(item, 'bane_of_arthropods');
  return more;
}

/** Returns the share of a damage that worn enchantments let through. */
function spared(player, cause, kind) {
  if (THROUGH.has(cause)) return 1;
  let points = 0;
  for (const slot of WORN) {
    const item = player.inventory.slots[slot];
    if (!item || !item.nbt) continue;
    for (const [each, worth, counts] of PROTECTION) if (counts({ cause, kind })) points += worth * level(item, each);
  }
  return 1 - Math.min(MOST_PROTECTION, points) / 25;
}

/** Returns the damage that the thorns of a player's armour do to an attacker. */
function thorns(player) {
  let damage = 0;
  for (const slot of WORN) {
    const lvl = level(player.inventory.slots[slot], 'thorns');
    if (!lvl || Math.random() >= 0.15 * lvl) continue;
    damage += lvl > 10 ? lvl - 10 : 1 + Math.floor(Math.random() * 4);
    player.wearSlot(slot, 2);
  }
  return damage;
}

/** Returns the damage of an arrow from a bow, per block per tick; 2 is a plain one. */
function bowDamage(bow) {
  const power = level(bow, 'power');
  return 2 + (power ? 0.5 * power + 0.5 : 0);
}

/** Returns the highest level of an enchantment on what a player wears. */
const wornLevel = (player, each) => Math.max(...WORN.map((slot) => level(player.inventory.slots[slot], each)));

/** Mending: experience repairs one worn or held item that has it, 2 points of wear each; returns the rest. */
function mend(player, points) {
  const slots = [player.heldSlot(), OFF_HAND, ...WORN].filter((slot) => {
    const item = player.inventory.slots[slot];
    return level(item, 'mending') > 0 && item.durabilityUsed > 0;
  });
  if (slots.length === 0 || points <= 0) return points;
  const slot = slots[Math.floor(Math.random() * slots.length)];
  const item = player.survivalItems.copy(player.inventory.slots[slot]);
  const repaired = Math.min(points * 2, item.durabilityUsed);
  item.durabilityUsed -= repaired;
  player.setSlot(slot, item);
  return points - Math.ceil(repaired / 2);
}

function player(player, serv) {
  player.survivalItems = serv.survival.items;
  const plain = player.addXp;
  player.addXp = (points) => plain(mend(player, points));
}

module.exports = { name, player, bowDamage, sharper, spared, thorns, wornLevel };

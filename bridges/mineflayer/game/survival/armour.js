'use strict';

/** Armour points, toughness and reduced damage (Minecraft Wiki, "Armor", 1.16). */

const POINTS = {
  leather: [1, 3, 2, 1],
  chainmail: [2, 5, 4, 1],
  iron: [2, 6, 5, 2],
  golden: [2, 5, 3, 1],
  diamond: [3, 8, 6, 3],
  netherite: [3, 8, 6, 3],
};
const TOUGHNESS = { diamond: 2, netherite: 3 };
const PARTS = ['helmet', 'chestplate', 'leggings', 'boots'];
/** Window slots of the four parts, head first. */
const SLOTS = [5, 6, 7, 8];

function piece(itemName) {
  if (itemName === 'turtle_helmet') return { part: 0, points: 2, toughness: 0 };
  const [material, word] = itemName.split('_');
  const part = PARTS.indexOf(word);
  if (part < 0 || !POINTS[material]) return null;
  return { part, points: POINTS[material][part], toughness: TOUGHNESS[material] || 0 };
}

/** Returns the window slot an item is worn in, or -1: 5 head, 6 body, 7 legs, 8 feet. */
function wornSlot(itemName) {
  const found = piece(itemName);
  if (found) return SLOTS[found.part];
  if (itemName === 'elytra') return 6;
  return /_(head|skull)$|^carved_pumpkin$/.test(itemName) ? 5 : -1;
}

/** Returns `{points, toughness, resistance}` of what a player wears, points 0 to 20. */
function armourOf(player) {
  let points = 0;
  let toughness = 0;
  let resistance = 0;
  for (const slot of SLOTS) {
    const item = player.inventory.slots[slot];
    const found = item && piece(item.name);
    if (!found || SLOTS[found.part] !== slot) continue;
    points += found.points;
    toughness += found.toughness;
    if (item.name.startsWith('netherite')) resistance += 0.1;
  }
  return { points: Math.min(20, points), toughness, resistance };
}

/** Returns the damage after the reduction by armour. */
function throughArmour(damage, points, toughness) {
  const held = Math.max(points / 5, points - damage / (2 + toughness / 4));
  return damage * (1 - Math.min(20, held) / 25);
}

module.exports = { armourOf, throughArmour, wornSlot, SLOTS };

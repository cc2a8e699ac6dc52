'use strict';
/**
 * Constants of a version: flags of blocks, points of armour, numbers of things.
 */

/** Names of blocks that fire spreads to (Minecraft Wiki, Fire, "Flammable blocks"), by their words. */
const BURNS = new RegExp('^(.*_planks|.*_log|.*_wood|.*_leaves|.*_wool|.*_carpet|.*_slab_of_wood|'
  + 'bookshelf|tnt|hay_block|vine|grass|tall_grass|fern|large_fern|dead_bush|coal_block|lectern|'
  + 'composter|beehive|bee_nest|scaffolding|bamboo|target|dried_kelp_block|sweet_berry_bush|'
  + '(oak|spruce|birch|jungle|acacia|dark_oak)_(slab|stairs|fence|fence_gate)|'
  + 'dandelion|poppy|blue_orchid|allium|azure_bluet|.*_tulip|oxeye_daisy|cornflower|'
  + 'lily_of_the_valley|wither_rose|sunflower|lilac|rose_bush|peony)$');
const NEVER_BURNS = /^(crimson|warped|stripped_crimson|stripped_warped)_/;
const LIQUIDS = new Set(['water', 'lava', 'bubble_column']);

/** Armour points by material and piece: feet, legs, body, head (Minecraft Wiki, Armor, 1.16). */
const ARMOUR = {
  leather: [1, 2, 3, 1], golden: [1, 3, 5, 2], chainmail: [1, 4, 5, 2], iron: [2, 5, 6, 2],
  diamond: [3, 6, 8, 3], netherite: [3, 6, 8, 3]
};
const PIECES = ['boots', 'leggings', 'chestplate', 'helmet'];

function flagsOf(block) {
  const solid = block.boundingBox === 'block';
  return {
    collidable: solid,
    toolNotRequired: block.harvestTools === undefined,
    liquid: LIQUIDS.has(block.name),
    solid: solid && !block.transparent,
    blocksLight: !block.transparent && block.filterLight > 0,
    burns: BURNS.test(block.name) && !NEVER_BURNS.test(block.name)
  };
}

const made = new WeakMap();

/**
 * Returns the tables of a registry:
 *   states: per block state `{id, name, flags}`; opaque: per block state 1 where sight ends;
 *   armour: points by item id; entity: id by entity name.
 */
function tablesOf(registry) {
  let tables = made.get(registry);
  if (tables === undefined) {
    tables = build(registry);
    made.set(registry, tables);
  }
  return tables;
}

function build(registry) {
  const states = [];
  for (const block of registry.blocksArray) {
    const entry = {
      id: LIQUIDS.has(block.name) || !/^(air|cave_air|void_air)$/.test(block.name) ? block.id : 0,
      name: block.name,
      flags: flagsOf(block)
    };
    const first = block.minStateId ?? block.id << 4;
    const last = block.maxStateId ?? (block.id << 4) + 15;
    for (let state = first; state <= last; state++) states[state] = entry;
  }
  const opaque = Uint8Array.from(states, (entry) => Number(entry?.flags.solid ?? false));
  const armour = new Map();
  for (const [material, points] of Object.entries(ARMOUR)) {
    PIECES.forEach((piece, i) => {
      const item = registry.itemsByName[`${material}_${piece}`];
      if (item) armour.set(item.id, points[i]);
    });
  }
  const shell = registry.itemsByName.turtle_helmet;
  if (shell) armour.set(shell.id, 2);
  const entity = new Map(registry.entitiesArray.map((each) => [each.name, each.id]));
  return { states, opaque, armour, entity };
}

module.exports = { tablesOf };

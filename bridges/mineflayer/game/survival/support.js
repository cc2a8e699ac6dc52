'use strict';

/**
 * Blocks that need support: plants on their soil, torches on walls, doors on the ground (Minecraft
 * Wiki, pages of the blocks, 1.16).
 */

const SOIL = new Set(['grass_block', 'dirt', 'coarse_dirt', 'podzol', 'farmland', 'mycelium']);
const SAND = new Set(['sand', 'red_sand']);
const FLOWERS =
  /^(dandelion|poppy|blue_orchid|allium|azure_bluet|.*_tulip|oxeye_daisy|cornflower|lily_of_the_valley|sunflower|lilac|rose_bush|peony|grass|fern|tall_grass|large_fern|.*_sapling|sweet_berry_bush)$/;
const CROPS = /^(wheat|carrots|potatoes|beetroots|melon_stem|pumpkin_stem|attached_.*_stem)$/;
const ON_GROUND =
  /^(torch|soul_torch|redstone_torch|.*_pressure_plate|.*_carpet|redstone_wire|repeater|comparator|rail|.*_rail|.*_door|cake|snow|flower_pot|potted_.*|.*_sign|.*_banner)$/;
const SIDES = { north: [0, 0, 1], south: [0, 0, -1], west: [1, 0, 0], east: [-1, 0, 0] };
const LOOSE = /^(carpet|potted|flower_pot)|_carpet$/;

function floorHolds(info) {
  return (
    info.full ||
    info.name === 'farmland' ||
    info.name === 'grass_path' ||
    /_fence$|_wall$|glass/.test(info.name) ||
    (info.props.half === 'top' && info.name.endsWith('_stairs')) ||
    info.props.type === 'top' ||
    info.props.type === 'double'
  );
}

function besideWater(blocks, x, y, z) {
  return Object.values(SIDES).some(
    ([dx, , dz]) =>
      blocks.at(x + dx, y - 1, z + dz).water ||
      blocks.at(x + dx, y - 1, z + dz).name === 'frosted_ice',
  );
}

function plantHolds(blocks, x, y, z, info) {
  const below = blocks.at(x, y - 1, z);
  const { name } = info;
  if (CROPS.test(name)) return below.name === 'farmland';
  if (name === 'nether_wart') return below.name === 'soul_sand';
  if (name === 'cactus') {
    const free = Object.values(SIDES).every(([dx, , dz]) => {
      const side = blocks.at(x + dx, y, z + dz);
      return !side.boxes.length && !side.lava;
    });
    return free && (SAND.has(below.name) || below.name === 'cactus');
  }
  if (name === 'sugar_cane') {
    if (below.name === 'sugar_cane') return true;
    return (SOIL.has(below.name) || SAND.has(below.name)) && besideWater(blocks, x, y, z);
  }
  if (name === 'dead_bush')
    return SAND.has(below.name) || SOIL.has(below.name) || /terracotta/.test(below.name);
  if (name === 'cocoa') {
    const [dx, , dz] = SIDES[info.props.facing];
    return /^(stripped_)?jungle_(log|wood)$/.test(blocks.at(x - dx, y, z - dz).name);
  }
  if (info.props.half === 'upper') return below.id === info.id;
  return FLOWERS.test(name) ? SOIL.has(below.name) : null;
}

/** Returns whether the surroundings allow a block at a position. */
function supported(blocks, x, y, z, info) {
  const plant = plantHolds(blocks, x, y, z, info);
  if (plant !== null) return plant;
  const { name, props } = info;
  if (/^(wall_torch|.*_wall_torch|ladder|.*_wall_sign|.*_wall_banner)$/.test(name)) {
    const [dx, , dz] = SIDES[props.facing];
    const wall = blocks.at(x + dx, y, z + dz);
    return /sign|banner/.test(name) ? wall.boxes.length > 0 : wall.full;
  }
  if (props.face !== undefined && (/_button$/.test(name) || name === 'lever')) {
    if (props.face === 'wall') {
      const [dx, , dz] = SIDES[props.facing];
      return blocks.at(x + dx, y, z + dz).full;
    }
    return props.face === 'floor'
      ? floorHolds(blocks.at(x, y - 1, z))
      : blocks.at(x, y + 1, z).full;
  }
  if (/lantern$/.test(name) && props.hanging !== undefined) {
    return props.hanging
      ? blocks.at(x, y + 1, z).boxes.length > 0
      : blocks.at(x, y - 1, z).boxes.length > 0;
  }
  if (!ON_GROUND.test(name)) return true;
  const below = blocks.at(x, y - 1, z);
  return LOOSE.test(name)
    ? !below.air
    : floorHolds(below) || (below.boxes.length > 0 && /sign|banner|cake/.test(name));
}

module.exports = { supported };

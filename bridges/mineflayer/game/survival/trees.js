'use strict';

/**
 * Trees that grow from saplings: plain forms of the game's (Minecraft Wiki, "Tree"), one trunk
 * each.
 */

const HEIGHTS = { oak: [4, 6], birch: [5, 7], spruce: [6, 9], jungle: [4, 7], acacia: [5, 7] };

function between([low, high]) {
  return low + Math.floor(Math.random() * (high - low + 1));
}

/** Layers of leaves as [height above the trunk's top, radius, corners kept]. */
function crown(wood) {
  if (wood === 'spruce')
    return [
      [1, 0, true],
      [0, 1, false],
      [-1, 2, false],
      [-2, 1, false],
      [-3, 2, false],
    ];
  if (wood === 'acacia')
    return [
      [1, 2, false],
      [0, 3, false],
    ];
  return [
    [1, 1, false],
    [0, 1, true],
    [-1, 2, false],
    [-2, 2, true],
  ];
}

/**
 * Grows a tree in place of the sapling at a position. Returns whether there was room: the trunk's
 * cells may contain only plants. Dark oaks need four saplings and do not grow from one.
 */
function growTree(blocks, wood, x, y, z) {
  if (!HEIGHTS[wood]) return false;
  const height = between(HEIGHTS[wood]);
  for (let up = 1; up <= height + 1; up++) {
    const info = blocks.at(x, y + up, z);
    if (y + up > 255 || (info.boxes.length && !info.name.endsWith('_leaves'))) return false;
  }
  const leaf = blocks.state(`${wood}_leaves`, { distance: 1, persistent: false });
  const log = blocks.state(`${wood}_log`, { axis: 'y' });
  blocks.setNamed(x, y - 1, z, 'dirt');
  for (let up = 0; up < height; up++) blocks.set(x, y + up, z, log);
  for (const [above, radius, corners] of crown(wood)) {
    const ly = y + height - 1 + above;
    for (let dx = -radius; dx <= radius; dx++) {
      for (let dz = -radius; dz <= radius; dz++) {
        const corner = radius > 0 && Math.abs(dx) === radius && Math.abs(dz) === radius;
        if (corner && !(corners && Math.random() < 0.5)) continue;
        const there = blocks.at(x + dx, ly, z + dz);
        if (there.air || there.replaceable) blocks.set(x + dx, ly, z + dz, leaf);
      }
    }
  }
  return true;
}

module.exports = { growTree };

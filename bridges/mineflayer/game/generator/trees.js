'use strict';

/**
 * Trees: shapes like those of the game (https://minecraft.wiki/w/Tree), drawn block by block.
 *
 * A tree is {kind, x, y, z, start}: y is the lowest block of the trunk. Leaves are not persistent and
 * carry their distance to the trunk, so that they decay by the game's rule when it is felled.
 * Simplified: no big oaks, no two-wide trunks, no vines, no bee nests.
 */

const { Chance } = require('./noise');

/** Maximum distance of a leaf from the trunk's column. */
const REACH = 5;
/** Steps from a pod of cocoa to its trunk, by its facing. */
const FACINGS = { north: [0, -1], south: [0, 1], west: [-1, 0], east: [1, 0] };
const KINDS = ['oak', 'birch', 'spruce', 'acacia', 'jungle'];

class Trees {
  constructor(states) {
    this.air = states('air');
    this.dirt = states('dirt');
    this.logs = {};
    this.leaves = {};
    this.cocoa = Object.keys(FACINGS).map((facing) => [0, 1, 2].map((age) => states('cocoa', { facing, age })));
    this.isLeaf = new Uint8Array(65536);
    this.isLog = new Uint8Array(65536);
    for (const kind of KINDS) {
      this.logs[kind] = states(`${kind}_log`, { axis: 'y' });
      this.isLog[this.logs[kind]] = 1;
      this.leaves[kind] = [1, 2, 3, 4, 5, 6, 7].map((distance) =>
        states(`${kind}_leaves`, { distance, persistent: false }));
      for (const leaf of this.leaves[kind]) this.isLeaf[leaf] = 1;
    }
  }

  /** Draws the part of a tree that is within the canvas. */
  draw(canvas, tree) {
    if (!canvas.touches(tree.x - REACH, tree.z - REACH, tree.x + REACH, tree.z + REACH)) return;
    const chance = new Chance(tree.start);
    canvas.set(tree.x, tree.y - 1, tree.z, this.dirt);
    if (tree.kind === 'spruce') this.spruce(canvas, tree, chance);
    else if (tree.kind === 'acacia') this.acacia(canvas, tree, chance);
    else this.round(canvas, tree, chance);
  }

  trunk(canvas, kind, x, y0, y1, z) {
    for (let y = y0; y <= y1; y++) {
      const before = canvas.get(x, y, z);
      // Snow and plants are replaced, other trees' trunks stay.
      if (before >= 0 && this.isLog[before] === 0) canvas.set(x, y, z, this.logs[kind]);
    }
  }

  /** Sets a leaf where there is air; where two trees meet, the leaf keeps the smaller distance. */
  leaf(canvas, kind, x, y, z, distance) {
    const before = canvas.get(x, y, z);
    const leaf = this.leaves[kind][Math.min(Math.max(distance, 1), 7) - 1];
    if (before === this.air) canvas.set(x, y, z, leaf);
    else if (this.leaves[kind].includes(before) && before > leaf) canvas.set(x, y, z, leaf);
  }

  /** Draws a level square of leaves, without a share of its corners. */
  layer(canvas, kind, x, y, z, radius, top, chance, corners) {
    for (let dx = -radius; dx <= radius; dx++) {
      for (let dz = -radius; dz <= radius; dz++) {
        const corner = radius > 0 && Math.abs(dx) === radius && Math.abs(dz) === radius;
        // Drawn for every corner, so that what follows does not depend on the canvas.
        if (corner && chance.next() >= corners) continue;
        const above = Math.max(y - top, 0);
        this.leaf(canvas, kind, x + dx, y, z + dz, Math.abs(dx) + Math.abs(dz) + above);
      }
    }
  }

  /** Oak, birch and small jungle trees: four layers around the top of the trunk. */
  round(canvas, { kind, x, y, z }, chance) {
    const tall = kind === 'jungle' ? chance.between(5, 10) : kind === 'birch' ? chance.between(5, 7) : chance.between(4, 6);
    const top = y + tall - 1;
    for (let layer = -2; layer <= 1; layer++) {
      const radius = layer < 0 ? 2 : 1;
      const corners = layer === 1 ? 0 : layer === 0 ? 0.25 : 0.55;
      this.layer(canvas, kind, x, top + layer, z, radius, top, chance, corners);
    }
    this.trunk(canvas, kind, x, y, top, z);
    if (kind === 'jungle') this.pods(canvas, x, y, z, chance);
  }

  /** Cocoa at a fifth of the jungle trees, on each side of the lowest three logs with a chance of a quarter. */
  pods(canvas, x, y, z, chance) {
    if (chance.next() >= 0.2) return;
    for (let up = 0; up < 3; up++) {
      Object.values(FACINGS).forEach(([dx, dz], side) => {
        const pod = this.cocoa[side][chance.below(3)];
        const grows = chance.next() < 0.25;
        if (grows && canvas.get(x - dx, y + up, z - dz) === this.air) canvas.set(x - dx, y + up, z - dz, pod);
      });
    }
  }

  /** A cone whose layers alternately grow and shrink. */
  spruce(canvas, { kind, x, y, z }, chance) {
    const tall = chance.between(6, 9);
    const bare = chance.between(1, 2);
    const widest = chance.between(2, 3);
    const top = y + tall - 1;
    this.leaf(canvas, kind, x, top + 1, z, 1);
    let radius = chance.below(2);
    let limit = 1;
    for (let level = top; level >= y + bare; level--) {
      this.layer(canvas, kind, x, level, z, radius, top, chance, 0);
      if (radius >= limit) {
        radius = limit > 1 ? 1 : 0;
        limit = Math.min(limit + 1, widest);
      } else radius++;
    }
    this.trunk(canvas, kind, x, y, top, z);
  }

  /** A leaning trunk with flat crowns. */
  acacia(canvas, { kind, x, y, z }, chance) {
    const tall = chance.between(5, 7);
    const bend = chance.between(2, tall - 2);
    const [dx, dz] = chance.pick([[1, 0], [-1, 0], [0, 1], [0, -1]]);
    const lean = chance.between(1, 2);
    let atX = x;
    let atZ = z;
    for (let n = 0; n < tall; n++) {
      if (n >= bend && n - bend < lean) {
        atX += dx;
        atZ += dz;
      }
      this.trunk(canvas, kind, atX, y + n, y + n, atZ);
    }
    this.crown(canvas, kind, atX, y + tall - 1, atZ, chance);
    if (chance.next() < 0.6) {
      const reach = chance.between(1, 2);
      for (let n = 1; n <= reach; n++) this.trunk(canvas, kind, x - dx * n, y + bend + n - 1, y + bend + n, z - dz * n);
      this.small(canvas, kind, x - dx * reach, y + bend + reach, z - dz * reach);
    }
  }

  crown(canvas, kind, x, y, z, chance) {
    for (let dx = -3; dx <= 3; dx++) {
      for (let dz = -3; dz <= 3; dz++) {
        const far = Math.abs(dx) + Math.abs(dz);
        const ragged = chance.next() < 0.4;
        if (far <= 4 && !(far === 4 && ragged)) this.leaf(canvas, kind, x + dx, y, z + dz, far);
        if (Math.max(Math.abs(dx), Math.abs(dz)) <= 1) this.leaf(canvas, kind, x + dx, y + 1, z + dz, far + 1);
      }
    }
  }

  small(canvas, kind, x, y, z) {
    for (let dx = -2; dx <= 2; dx++) {
      for (let dz = -2; dz <= 2; dz++) {
        const far = Math.abs(dx) + Math.abs(dz);
        if (far <= 3) this.leaf(canvas, kind, x + dx, y, z + dz, far);
        if (far <= 1) this.leaf(canvas, kind, x + dx, y + 1, z + dz, far + 1);
      }
    }
  }
}

module.exports = { KINDS, REACH, Trees };

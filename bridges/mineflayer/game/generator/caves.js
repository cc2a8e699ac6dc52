'use strict';

/**
 * Caves: hollow places in rock, a function of seed and position.
 *
 * Tunnels are where two 3D noises are both near 0; halls are where a third is high, deep down. The
 * noises are computed on a lattice of 4 x 4 x 4 blocks fixed in the world and interpolated, so that
 * neighbouring chunks agree. Simplified against the game: no ravines, no mineshafts.
 */

const { noise3, seedOf } = require('./noise');

const STEP = 4;
/** Below this level caves are full of lava (as in the game, 11). */
const LAVA_LEVEL = 11;
const LOWEST = 6;
const SIDE = 5;

class Caves {
  constructor(seed) {
    this.first = seedOf(seed, 'tunnel');
    this.second = seedOf(seed, 'tunnel too');
    this.hall = seedOf(seed, 'hall');
    this.lattice = new Float32Array(3 * SIDE * SIDE * 40);
  }

  /** Writes the three noises at a point of the lattice. */
  sample(out, at, x, y, z) {
    out[at] = noise3(this.first, x / 44, y / 30, z / 44);
    out[at + 1] = noise3(this.second, x / 44, y / 30, z / 44);
    out[at + 2] = noise3(this.hall, x / 64, y / 34, z / 64);
  }

  /**
   * Fills the lattice of a chunk up to a height. Must be called before `hollow` is used for that
   * chunk.
   */
  prepare(chunkX, chunkZ, top) {
    const layers = Math.floor(top / STEP) + 2;
    if (this.lattice.length < 3 * SIDE * SIDE * layers) {
      this.lattice = new Float32Array(3 * SIDE * SIDE * layers);
    }
    let at = 0;
    for (let y = 0; y < layers; y++) {
      for (let z = 0; z < SIDE; z++) {
        for (let x = 0; x < SIDE; x++) {
          this.sample(this.lattice, at, chunkX * 16 + x * STEP, y * STEP, chunkZ * 16 + z * STEP);
          at += 3;
        }
      }
    }
  }

  /** Writes the noises of one column of the prepared chunk, layer by layer; returns the array. */
  column(x, z, top, out) {
    const layers = Math.floor(top / STEP) + 2;
    const u = (x & 3) / STEP;
    const v = (z & 3) / STEP;
    const base = ((z >> 2) * SIDE + (x >> 2)) * 3;
    const row = SIDE * 3;
    for (let layer = 0; layer < layers; layer++) {
      const at = base + layer * SIDE * SIDE * 3;
      for (let n = 0; n < 3; n++) {
        const near = this.lattice[at + n] + u * (this.lattice[at + 3 + n] - this.lattice[at + n]);
        const low = this.lattice[at + row + n];
        const far = low + u * (this.lattice[at + row + 3 + n] - low);
        out[layer * 3 + n] = near + v * (far - near);
      }
    }
    return out;
  }

  /** Whether the block at height y is hollow, by the noises of its column. */
  hollow(noises, y, height) {
    const layer = y >> 2;
    const w = (y & 3) / STEP;
    const at = layer * 3;
    const a = noises[at] + w * (noises[at + 3] - noises[at]);
    const b = noises[at + 1] + w * (noises[at + 4] - noises[at + 1]);
    const c = noises[at + 2] + w * (noises[at + 5] - noises[at + 2]);
    return carved(a, b, c, y, height);
  }

  /** Whether one block is hollow; `height` is that of the ground above it. For single queries. */
  hollowAt(x, y, z, height) {
    if (y < LOWEST || y > roof(height)) return false;
    const found = [0, 0, 0];
    const corner = new Float32Array(3);
    for (let k = 0; k < 8; k++) {
      const cx = (x >> 2) + (k & 1);
      const cy = (y >> 2) + ((k >> 1) & 1);
      const cz = (z >> 2) + (k >> 2);
      this.sample(corner, 0, cx * STEP, cy * STEP, cz * STEP);
      const share = near(x, cx) * near(y, cy) * near(z, cz);
      for (let n = 0; n < 3; n++) found[n] += share * corner[n];
    }
    return carved(found[0], found[1], found[2], y, height);
  }
}

function near(at, corner) {
  return 1 - Math.abs(at / STEP - corner);
}

/** Returns the highest level that may be hollow below ground of a given height: not under water. */
function roof(height) {
  return height < 66 ? height - 8 : height;
}

function carved(a, b, c, y, height) {
  const depth = height - y;
  // Few tunnels reach the surface.
  const wide = depth < 5 ? 0.0045 : 0.0085;
  return a * a + b * b < wide || (y < 42 && c > 0.46 && depth > 12);
}

module.exports = { Caves, LAVA_LEVEL, LOWEST, roof };

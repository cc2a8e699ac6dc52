'use strict';

/**
 * Veins of ore and pockets of other rock, with the numbers of the game at 1.16
 * (https://minecraft.wiki/w/Ore, "Distribution before 1.18"): veins a chunk, greatest size, heights.
 *
 * A vein belongs to a chunk and may extend into its neighbours. Simplified: emeralds occur as veins
 * of one in mountains; lapis lazuli follows the same triangle around level 16.
 */

const { Chance, hash, seedOf } = require('./noise');

const VEINS = [
  { name: 'dirt', count: 10, size: 33, low: 0, high: 255 },
  { name: 'gravel', count: 8, size: 33, low: 0, high: 255 },
  { name: 'granite', count: 10, size: 33, low: 0, high: 79 },
  { name: 'diorite', count: 10, size: 33, low: 0, high: 79 },
  { name: 'andesite', count: 10, size: 33, low: 0, high: 79 },
  { name: 'coal_ore', count: 20, size: 17, low: 0, high: 127 },
  { name: 'iron_ore', count: 20, size: 9, low: 0, high: 63 },
  { name: 'gold_ore', count: 2, size: 9, low: 0, high: 31 },
  { name: 'redstone_ore', count: 8, size: 8, low: 0, high: 15 },
  { name: 'diamond_ore', count: 1, size: 8, low: 0, high: 15 },
  { name: 'lapis_ore', count: 1, size: 7, low: 0, high: 31, triangle: true },
];
const EMERALD = { name: 'emerald_ore', low: 4, high: 31, fewest: 3, most: 8 };
const ROCKS = ['stone', 'granite', 'diorite', 'andesite'];

class Ores {
  constructor(seed, states) {
    this.seed = seedOf(seed, 'ores');
    this.veins = VEINS.map((vein) => ({
      ...vein,
      state: states(vein.name),
      swell: Float64Array.from({ length: vein.size }, (_, n) => Math.sin(Math.PI * n / vein.size) + 1),
    }));
    this.emerald = states(EMERALD.name);
    this.rock = new Uint8Array(65536);
    for (const name of ROCKS) this.rock[states(name)] = 1;
  }

  /**
   * Draws the veins of a chunk and of its eight neighbours onto the canvas.
   *
   * `top` is the highest ground of the chunk: veins above it are not drawn. `mountain(x, z)` says
   * where emeralds may be.
   */
  draw(canvas, top, mountain) {
    const chunkX = canvas.x >> 4;
    const chunkZ = canvas.z >> 4;
    this.veins.forEach((vein, kind) => {
      for (let dz = -1; dz <= 1; dz++) {
        for (let dx = -1; dx <= 1; dx++) this.drawKind(canvas, vein, kind, chunkX + dx, chunkZ + dz, top);
      }
    });
    this.drawEmeralds(canvas, mountain);
  }

  drawKind(canvas, vein, kind, chunkX, chunkZ, top) {
    const reach = vein.size / 8 + vein.size / 16 + 1;
    for (let n = 0; n < vein.count; n++) {
      const start = hash(this.seed + kind * 64 + n, chunkX, chunkZ);
      // Its position comes from the bits of one hash, because veins of nine chunks are tested for
      // each chunk.
      const x = chunkX * 16 + (start & 15);
      const z = chunkZ * 16 + ((start >>> 4) & 15);
      if (!canvas.touches(x - reach, z - reach, x + reach, z + reach)) continue;
      const chance = new Chance(start);
      const span = vein.high - vein.low + 1;
      const y = vein.triangle
        ? vein.low + chance.below(span / 2) + chance.below(span / 2)
        : vein.low + chance.below(span);
      if (y <= top + 4) this.drawVein(canvas, vein, x, y, z, chance);
    }
  }

  /** Draws balls along a level line, thickest in the middle. */
  drawVein(canvas, vein, x, y, z, chance) {
    const { size, state, low, high, swell } = vein;
    const turn = chance.next() * Math.PI;
    const alongX = Math.sin(turn) * size / 8;
    const alongZ = Math.cos(turn) * size / 8;
    const from = y + chance.below(3) - 1;
    const to = y + chance.below(3) - 1;
    for (let n = 0; n < size; n++) {
      const part = n / size;
      const radius = (swell[n] * chance.next() * size / 20 + 0.95) / 2;
      const middleX = x + alongX * (1 - 2 * part);
      const middleZ = z + alongZ * (1 - 2 * part);
      if (!canvas.touches(middleX - radius, middleZ - radius, middleX + radius, middleZ + radius)) continue;
      const middleY = from + (to - from) * part;
      this.drawBall(canvas, state, middleX, middleY, middleZ, radius, low, high);
    }
  }

  drawBall(canvas, state, x, y, z, radius, low, high) {
    const { rock } = this;
    const y0 = Math.max(Math.floor(y - radius + 0.5), low, 1);
    const y1 = Math.min(Math.floor(y + radius - 0.5), high);
    const x0 = Math.max(Math.floor(x - radius + 0.5), canvas.x);
    const x1 = Math.min(Math.floor(x + radius - 0.5), canvas.x + 15);
    const z0 = Math.max(Math.floor(z - radius + 0.5), canvas.z);
    const z1 = Math.min(Math.floor(z + radius - 0.5), canvas.z + 15);
    const limit = radius * radius;
    for (let by = y0; by <= y1; by++) {
      for (let bz = z0; bz <= z1; bz++) {
        for (let bx = x0; bx <= x1; bx++) {
          const away = (bx + 0.5 - x) ** 2 + (by + 0.5 - y) ** 2 + (bz + 0.5 - z) ** 2;
          const cell = (by << 8) | ((bz - canvas.z) << 4) | (bx - canvas.x);
          if (away < limit && rock[canvas.cells[cell]] === 1) canvas.cells[cell] = state;
        }
      }
    }
  }

  drawEmeralds(canvas, mountain) {
    const chance = new Chance(hash(this.seed + 4096, canvas.x, canvas.z));
    const count = chance.between(EMERALD.fewest, EMERALD.most);
    for (let n = 0; n < count; n++) {
      const x = canvas.x + chance.below(16);
      const z = canvas.z + chance.below(16);
      const y = chance.between(EMERALD.low, EMERALD.high);
      if (mountain(x, z) && this.rock[canvas.get(x, y, z)] === 1) canvas.set(x, y, z, this.emerald);
    }
  }
}

module.exports = { EMERALD, Ores, VEINS };

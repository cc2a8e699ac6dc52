'use strict';

/** The ground of a chunk: bedrock, rock, soil, water, and the caves in it. */

const { BIOMES, SEA_LEVEL } = require('./climate');
const { LAVA_LEVEL, LOWEST, roof } = require('./caves');
const { hash, seedOf } = require('./noise');
const { NAMES } = require('./plan');

const BEDROCK = 5;
const noises = new Float32Array(3 * 66);

class Ground {
  constructor(seed, climate, caves, states) {
    Object.assign(this, { climate, caves });
    this.seed = seedOf(seed, 'ground');
    for (const name of ['stone', 'bedrock', 'water', 'lava', 'obsidian', 'clay', 'dirt', 'sand', 'gravel', 'grass_block']) {
      this[name] = states(name);
    }
    this.layers = NAMES.map((name) => BIOMES[name].ground.map((block) => states(block)));
    this.wet = NAMES.map((name) => Boolean(BIOMES[name].wet));
  }

  /** Draws the columns of a chunk according to its plan. */
  draw(canvas, plan) {
    for (let column = 0; column < 256; column++) this.drawColumn(canvas.cells, plan, column);
  }

  drawColumn(cells, plan, column) {
    const x = plan.x + (column & 15);
    const z = plan.z + (column >> 4);
    const height = plan.heights[column];
    const water = plan.waters[column];
    const biome = plan.biomes[column];
    const soil = 3 + (hash(this.seed, x, z) & 1);
    let y = 0;
    for (; y < BEDROCK; y++) {
      const solid = y === 0 || hash(this.seed + 1, x, y, z) % BEDROCK >= y;
      cells[(y << 8) | column] = solid ? this.bedrock : this.stone;
    }
    for (; y <= height - soil; y++) cells[(y << 8) | column] = this.stone;
    for (; y <= height; y++) cells[(y << 8) | column] = this.soilAt(plan, biome, x, z, height, height - y, water);
    for (; y <= water; y++) cells[(y << 8) | column] = this.water;
  }

  /** Returns the block at a depth below the top of the ground. */
  soilAt(plan, biome, x, z, height, depth, water) {
    if (water >= 0) return this.bedAt(biome, x, z, height, depth, water);
    const layers = this.layers[biome];
    // Steep and high mountains are bare.
    if (height > 103 && BIOMES[NAMES[biome]].high && hash(this.seed + 2, x >> 2, z >> 2) % 3 !== 0) return this.stone;
    return layers[Math.min(depth, layers.length - 1)];
  }

  /** Returns the block under water: by the biome, in patches; dirt in ponds. */
  bedAt(biome, x, z, height, depth, water) {
    if (water !== SEA_LEVEL - 1) return this.dirt;
    const patch = hash(this.seed + 3, x >> 2, z >> 2) % 16;
    if (patch === 0 && water - height < 9) return this.clay;
    if (patch < 4) return patch < 3 ? this.sand : this.gravel;
    const layers = this.layers[biome];
    const block = layers[Math.min(depth, layers.length - 1)];
    return block === this.grass_block ? this.dirt : block;
  }

  /** Hollows out caves; deep ones are full of lava, with some obsidian on it. */
  carve(canvas, plan) {
    const { cells } = canvas;
    this.caves.prepare(plan.x >> 4, plan.z >> 4, plan.top);
    const pond = plan.pond === null ? 0 : 7;
    for (let column = 0; column < 256; column++) {
      const x = plan.x + (column & 15);
      const z = plan.z + (column >> 4);
      const height = plan.heights[column];
      const last = Math.min(roof(height), plan.waters[column] >= 0 ? height - 8 : height) - pond;
      this.caves.column(column & 15, column >> 4, plan.top, noises);
      for (let y = LOWEST; y <= last; y++) {
        if (!this.caves.hollow(noises, y, height)) continue;
        const cell = (y << 8) | column;
        if (y >= LAVA_LEVEL) cells[cell] = 0;
        else cells[cell] = y === LAVA_LEVEL - 1 && hash(this.seed + 4, x >> 2, z >> 2) % 23 === 0 ? this.obsidian : this.lava;
      }
    }
  }
}

module.exports = { Ground };

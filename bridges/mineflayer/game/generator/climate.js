'use strict';

/**
 * The biome and the height of the ground: functions of a seed and a position.
 *
 * The height does not depend on the biome: both follow from the same slow noises, so that
 * neighbouring biomes meet without a cliff. Simplified against the game: one climate map of two
 * noises, seas no deeper than 30 blocks, no biome smaller than its noise.
 */

const { fractal2, hash, noise2, seedOf } = require('./noise');

/** The level of the sea: the highest block of water is one below (as in the game, 63). */
const SEA_LEVEL = 63;
/** The maximum height of the ground. */
const HIGHEST = 150;

/**
 * The composition of each biome. `ground`: blocks from the top down; `trees`: kinds, and on how
 * many columns of 1,000 one is tried; `wood`: the wood of its houses.
 */
const BIOMES = {
  plains: { ground: ['grass_block', 'dirt'], trees: [['oak', 0.5]], wood: 'oak' },
  forest: { ground: ['grass_block', 'dirt'], trees: [['oak', 20], ['birch', 8]], wood: 'oak' },
  birch_forest: { ground: ['grass_block', 'dirt'], trees: [['birch', 26]], wood: 'birch' },
  taiga: { ground: ['grass_block', 'dirt'], trees: [['spruce', 24]], wood: 'spruce' },
  savanna: { ground: ['grass_block', 'dirt'], trees: [['acacia', 4], ['oak', 0.6]], wood: 'acacia' },
  jungle: { ground: ['grass_block', 'dirt'], trees: [['jungle', 34], ['oak', 6]], wood: 'jungle' },
  desert: { ground: ['sand', 'sand', 'sand', 'sand', 'sandstone'], trees: [], wood: 'oak', dry: true },
  snowy_tundra: { ground: ['grass_block', 'dirt'], trees: [['spruce', 1.6]], wood: 'spruce', cold: true },
  snowy_taiga: { ground: ['grass_block', 'dirt'], trees: [['spruce', 18]], wood: 'spruce', cold: true },
  mountains: { ground: ['grass_block', 'dirt'], trees: [['spruce', 2], ['oak', 1]], wood: 'spruce', high: true },
  beach: { ground: ['sand', 'sand', 'sand', 'sandstone'], trees: [], wood: 'oak' },
  snowy_beach: { ground: ['sand', 'sand', 'sand', 'sandstone'], trees: [], wood: 'spruce', cold: true },
  river: { ground: ['sand', 'dirt'], trees: [], wood: 'oak', wet: true },
  frozen_river: { ground: ['gravel', 'dirt'], trees: [], wood: 'spruce', wet: true, cold: true },
  ocean: { ground: ['gravel', 'gravel', 'dirt'], trees: [], wood: 'oak', wet: true },
  warm_ocean: { ground: ['sand', 'sand', 'sand'], trees: [], wood: 'oak', wet: true },
  frozen_ocean: { ground: ['gravel', 'gravel', 'dirt'], trees: [], wood: 'spruce', wet: true, cold: true },
};

/** The choices of biome, besides 'any'. */
const CHOICES = ['plains', 'forest', 'desert', 'taiga', 'savanna', 'snowy'];

function clamp(value, low, high) {
  return value < low ? low : value > high ? high : value;
}

/** The climate of one seed. `biome` is 'any' or one of CHOICES; `flat` makes all ground level. */
class Climate {
  constructor(seed, biome, flat) {
    const part = (word) => seedOf(seed, word);
    this.biome = biome;
    this.flat = flat;
    this.warmth = part('warmth');
    this.damp = part('damp');
    this.land = part('land');
    this.hills = part('hills');
    this.rough = part('rough');
    this.river = part('river');
    this.grain = part('grain');
  }

  /** Returns the biome of a position that is not water, shore or mountain. */
  landAt(x, z) {
    const choice = this.biome;
    if (choice === 'plains' || choice === 'desert' || choice === 'savanna') return choice;
    const patch = noise2(this.grain, x / 90, z / 90);
    if (choice === 'forest') return patch > 0.22 ? 'birch_forest' : 'forest';
    if (choice === 'taiga') return 'taiga';
    if (choice === 'snowy') return patch > 0.1 ? 'snowy_taiga' : 'snowy_tundra';
    const warmth = noise2(this.warmth, x / 230, z / 230) + 0.04 * patch;
    const damp = noise2(this.damp, x / 190, z / 190) + 0.04 * patch;
    if (warmth < -0.3) return damp > 0.08 ? 'snowy_taiga' : 'snowy_tundra';
    if (warmth < -0.1) return 'taiga';
    if (warmth < 0.16) return damp > 0 ? (patch > 0.22 ? 'birch_forest' : 'forest') : 'plains';
    if (damp < -0.02) return 'desert';
    return damp < 0.24 ? 'savanna' : 'jungle';
  }

  /**
   * Returns the height of the ground's top block and its cause: `land` above 0 is land, `stream` is
   * 1 in the middle of a river and 0 away from one.
   */
  shapeAt(x, z) {
    if (this.flat) return { height: SEA_LEVEL, land: 1, stream: 0 };
    const away = (x * x + z * z) / 62500;
    // There is land around the origin, where worlds begin.
    const land = fractal2(this.land, x / 360, z / 360, 3) + 0.14 + 0.4 * Math.exp(-away);
    const roll = fractal2(this.hills, x / 120, z / 120, 4);
    const rough = clamp(noise2(this.rough, x / 420, z / 420) * 1.6 + 0.3, 0, 1);
    let height = SEA_LEVEL + 1.4;
    if (land < 0) height += Math.max(land * 70, -26) + roll * 3;
    else {
      const inland = Math.min(land * 6, 1);
      height += inland * (3 + land * 9 + (roll + 0.25) * (2.5 + 11 * rough));
      const peak = clamp((rough - 0.72) * 3.6, 0, 1) * inland;
      height += peak * peak * (34 + 44 * Math.abs(roll));
    }
    const stream = this.streamAt(x, z, height, land);
    height += (SEA_LEVEL - 4.5 - height) * stream * stream * (3 - 2 * stream);
    return { height: clamp(Math.floor(height), 30, HIGHEST), land, stream };
  }

  streamAt(x, z, height, land) {
    if (land < 0.02 || height > 92) return 0;
    const bend = Math.abs(fractal2(this.river, x / 250, z / 250, 2));
    const near = clamp(1.35 - bend / 0.03, 0, 1);
    return near * clamp((92 - height) / 12, 0, 1);
  }

  /** Returns the name of the biome of a column; `shape` as from shapeAt, if it is known. */
  biomeAt(x, z, shape = this.shapeAt(x, z)) {
    const land = this.landAt(x, z);
    if (this.flat) return land;
    const { cold, dry } = BIOMES[land];
    if (shape.height < SEA_LEVEL - 1) {
      if (shape.land >= 0) return cold ? 'frozen_river' : 'river';
      return cold ? 'frozen_ocean' : dry || land === 'savanna' ? 'warm_ocean' : 'ocean';
    }
    if (shape.height <= SEA_LEVEL + 1 && shape.land < 0.07) return cold ? 'snowy_beach' : 'beach';
    return shape.height > 96 && !dry ? 'mountains' : land;
  }

  /** Returns a number in [0, 1) for a column, for scattered objects; `salt` distinguishes uses. */
  scatter(x, z, salt) {
    return hash(this.grain + salt, x, z) / 4294967296;
  }
}

module.exports = { BIOMES, CHOICES, Climate, HIGHEST, SEA_LEVEL };

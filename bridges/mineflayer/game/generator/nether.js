'use strict';

/**
 * The Nether: hollow netherrack between two layers of bedrock over a sea of lava, with five biomes,
 * ores, glowstone, huge fungi, and fortresses (Minecraft Wiki, "The Nether", 1.16). It lies in the
 * same world, from the chunk row NETHER_ROW on: a place (x, z) of it is at (x, z + NETHER_Z).
 *
 * Simplified: biomes do not mix, fortresses are crossing bridges with one platform, there are no
 * bastions and no fossils.
 */

const { Chance, hash, noise2, noise3, seedOf } = require('./noise');

const NETHER_Z = 65536;
const NETHER_ROW = (NETHER_Z / 16) >> 1;
const TOP = 128;
const LAVA = 31;
const STEP = 4;
const SIDE = 5;
const LAYERS = TOP / STEP + 1;
const REGION = 12; // chunks of a square that has one fortress
const ARM = 44; // blocks of a fortress's bridges
const DECK = 62;

/** Biomes by two slow noises: what the ground is made of, what covers it, and what grows. */
const BIOMES = {
  nether_wastes: { ground: 'netherrack', cover: 'netherrack', grows: ['brown_mushroom', 'red_mushroom'] },
  soul_sand_valley: { ground: 'soul_soil', cover: 'soul_sand', grows: [] },
  crimson_forest: { ground: 'netherrack', cover: 'crimson_nylium', grows: ['crimson_roots', 'crimson_fungus'], tree: 'crimson' },
  warped_forest: { ground: 'netherrack', cover: 'warped_nylium', grows: ['warped_roots', 'nether_sprouts', 'warped_fungus'], tree: 'warped' },
  basalt_deltas: { ground: 'basalt', cover: 'blackstone', grows: [] },
};
/** Ores and other blobs: veins in a chunk, blocks of each, lowest and highest y. */
const VEINS = [
  ['nether_quartz_ore', 16, 9, 10, 117], ['nether_gold_ore', 10, 7, 10, 117], ['magma_block', 4, 20, 27, 36],
  ['blackstone', 2, 20, 5, 31], ['gravel', 2, 20, 5, 41], ['soul_sand', 2, 20, 5, 40], ['ancient_debris', 1, 2, 8, 22],
];

class Nether {
  constructor(seed, states, registry) {
    this.seed = seedOf(seed, 'nether');
    this.states = states;
    this.known = new Map();
    this.lattice = new Float32Array(SIDE * SIDE * LAYERS);
    this.biomeIds = Object.fromEntries(Object.keys(BIOMES).map((name) => [name, registry.biomesByName[name].id]));
  }

  /** Returns a named state, looked up once. */
  state(name, props) {
    if (props) return this.states(name, props);
    if (!this.known.has(name)) this.known.set(name, this.states(name));
    return this.known.get(name);
  }

  biomeAt(x, z) {
    const warm = noise2(this.seed ^ 0x51ed, x / 190, z / 190);
    const wild = noise2(this.seed ^ 0x2f35, x / 190, z / 190);
    if (Math.abs(warm) < 0.16 && Math.abs(wild) < 0.3) return 'nether_wastes';
    if (warm > 0) return wild > 0 ? 'crimson_forest' : wild > -0.25 ? 'nether_wastes' : 'basalt_deltas';
    return wild > 0 ? 'warped_forest' : 'soul_sand_valley';
  }

  /** How solid a point is: above 0 is rock. Open in the middle, closed at floor and ceiling. */
  density(x, y, z) {
    const rough = noise3(this.seed, x / 56, y / 28, z / 56) + noise3(this.seed ^ 0x77, x / 22, y / 14, z / 22) / 2;
    const edge = Math.max(0, (14 - y) / 14, (y - 108) / 14);
    return rough - 0.08 + edge * 1.6;
  }

  prepare(cx, cz) {
    let at = 0;
    for (let k = 0; k < LAYERS; k++) {
      for (let j = 0; j < SIDE; j++) {
        for (let i = 0; i < SIDE; i++)
          this.lattice[at++] = this.density(cx * 16 + i * STEP, k * STEP, cz * 16 + j * STEP);
      }
    }
  }

  /** Whether a cell of the prepared chunk is rock; x and z from 0 to 15. */
  isRock(x, y, z) {
    const { lattice } = this;
    const [i, j, k] = [x >> 2, z >> 2, y >> 2];
    const [u, v, w] = [(x & 3) / STEP, (z & 3) / STEP, (y & 3) / STEP];
    const at = (k * SIDE + j) * SIDE + i;
    const plane = (base) => {
      const near = lattice[base] + u * (lattice[base + 1] - lattice[base]);
      const far = lattice[base + SIDE] + u * (lattice[base + SIDE + 1] - lattice[base + SIDE]);
      return near + v * (far - near);
    };
    const low = plane(at);
    return low + w * (plane(at + SIDE * SIDE) - low) > 0;
  }

  /** Draws a chunk. */
  draw(canvas, cx, cz) {
    const chance = new Chance(hash(this.seed, cx, cz));
    this.prepare(cx, cz);
    for (let z = 0; z < 16; z++) for (let x = 0; x < 16; x++) this.column(canvas, cx, cz, x, z);
    for (const [name, veins, size, low, high] of VEINS) {
      for (let i = 0; i < veins; i++) this.vein(canvas, chance, this.state(name), size, low, high);
    }
    for (let i = 0; i < 6; i++) this.glowstone(canvas, chance);
    this.plants(canvas, chance);
    this.fortress(canvas, cx, cz);
  }

  column(canvas, cx, cz, x, z) {
    const [wx, wz] = [cx * 16 + x, cz * 16 + z];
    const { ground, cover } = BIOMES[this.biomeAt(wx, wz)];
    const [rock, top, lava, bedrock] = [ground, cover, 'lava', 'bedrock'].map((name) => this.state(name));
    const netherrack = this.state('netherrack');
    let open = false;
    let depth = 0;
    for (let y = TOP - 1; y >= 0; y--) {
      const edge = Math.min(y, TOP - 1 - y);
      if (edge < 5 && hash(this.seed, wx, y, wz) % 5 >= edge) {
        canvas.set(wx, y, wz, bedrock);
        open = false;
        continue;
      }
      if (!this.isRock(x, y, z)) {
        if (y <= LAVA) canvas.set(wx, y, wz, lava);
        open = true;
        continue;
      }
      if (open) depth = y > LAVA ? 4 : 0;
      // What covers the ground lies where it is open above; beneath, the rock of the biome.
      canvas.set(wx, y, wz, open && depth > 0 ? top : depth > 0 ? rock : netherrack);
      open = false;
      if (depth > 0) depth--;
    }
  }

  vein(canvas, chance, state, size, low, high) {
    const rocks = ['netherrack', 'basalt', 'soul_soil'].map((name) => this.state(name));
    let [x, y, z] = [canvas.x + chance.below(16), chance.between(low, high), canvas.z + chance.below(16)];
    for (let i = 0; i < size; i++) {
      if (rocks.includes(canvas.get(x, y, z))) canvas.set(x, y, z, state);
      x += chance.between(-1, 1);
      y += chance.between(-1, 1);
      z += chance.between(-1, 1);
    }
  }

  /** Glowstone hangs under the ceiling. */
  glowstone(canvas, chance) {
    const glow = this.state('glowstone');
    const [x0, z0] = [canvas.x + chance.between(3, 12), canvas.z + chance.between(3, 12)];
    let y0 = chance.between(50, 118);
    while (y0 < 120 && canvas.get(x0, y0, z0) === 0) y0++;
    if (canvas.get(x0, y0, z0) <= 0 || canvas.get(x0, y0 - 1, z0) !== 0) return;
    let [x, y, z] = [x0, y0 - 1, z0];
    for (let i = 0; i < 24; i++) {
      if (canvas.get(x, y, z) === 0) canvas.set(x, y, z, glow);
      [x, y, z] = [x0 + chance.between(-2, 2), y0 - 1 - chance.below(4), z0 + chance.between(-2, 2)];
      const beside = [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, -1]]
        .some(([dx, dy, dz]) => canvas.get(x + dx, y + dy, z + dz) === glow);
      if (!beside) [x, y, z] = [x0, y0 - 1, z0];
    }
  }

  /** Returns the lowest open ground of a column from some height down, or -1. */
  groundOf(canvas, x, z, from) {
    for (let y = from; y > LAVA; y--) {
      if (canvas.get(x, y, z) === 0 && canvas.get(x, y - 1, z) > 0) return y;
    }
    return -1;
  }

  plants(canvas, chance) {
    for (let i = 0; i < 40; i++) {
      const [x, z] = [canvas.x + chance.between(2, 13), canvas.z + chance.between(2, 13)];
      const y = this.groundOf(canvas, x, z, chance.between(40, 110));
      const biome = BIOMES[this.biomeAt(x, z)];
      const below = y < 0 ? 0 : canvas.get(x, y - 1, z);
      if (below !== this.state(biome.cover) || biome.grows.length === 0) continue;
      if (biome.tree && i < 8) this.fungus(canvas, chance, x, y, z, biome.tree);
      else if (biome.tree || i < 4) canvas.set(x, y, z, this.state(chance.pick(biome.grows)));
      else if (i < 8) canvas.set(x, y, z, this.state('fire'));
    }
  }

  /** A huge fungus: a stem under a cap of wart blocks, with shroomlights. */
  fungus(canvas, chance, x, y, z, wood) {
    const height = chance.between(4, 9);
    for (let up = 0; up <= height + 1; up++) if (canvas.get(x, y + up, z) !== 0) return;
    const stem = this.state(`${wood}_stem`);
    const wart = this.state(wood === 'crimson' ? 'nether_wart_block' : 'warped_wart_block');
    for (let dy = 0; dy <= 2; dy++) {
      const reach = dy === 2 ? 1 : 2;
      for (let dx = -reach; dx <= reach; dx++) {
        for (let dz = -reach; dz <= reach; dz++) {
          if (canvas.get(x + dx, y + height - 1 + dy, z + dz) !== 0) continue;
          const light = dy === 0 && chance.below(10) === 0;
          canvas.set(x + dx, y + height - 1 + dy, z + dz, light ? this.state('shroomlight') : wart);
        }
      }
    }
    for (let up = 0; up < height; up++) canvas.set(x, y + up, z, stem);
  }

  /** The middle of the fortress of a region of chunks. */
  middleOf(rx, rz) {
    const chance = new Chance(hash(this.seed ^ 0x0f07, rx, rz));
    const at = (r) => r * REGION * 16 + chance.between(48, REGION * 16 - 48);
    return [at(rx), at(rz)];
  }

  /** The middles of the fortresses that may reach a chunk. */
  fortressesNear(cx, cz) {
    const [rx, rz] = [Math.floor(cx / REGION), Math.floor(cz / REGION)];
    return [-1, 0, 1].flatMap((dx) => [-1, 0, 1].map((dz) => this.middleOf(rx + dx, rz + dz)))
      .filter(([x, z]) => Math.abs(x - cx * 16 - 8) < ARM + 16 && Math.abs(z - cz * 16 - 8) < ARM + 16);
  }

  fortress(canvas, cx, cz) {
    for (const [mx, mz] of this.fortressesNear(cx, cz)) {
      this.bridge(canvas, mx, mz, 1, 0);
      this.bridge(canvas, mx, mz, 0, 1);
      this.platform(canvas, mx, mz);
      this.garden(canvas, mx + ARM - 4, mz);
    }
  }

  box(canvas, [x0, y0, z0], [x1, y1, z1], state) {
    for (let y = y0; y <= y1; y++) for (let z = z0; z <= z1; z++) for (let x = x0; x <= x1; x++) canvas.set(x, y, z, state);
  }

  bridge(canvas, mx, mz, ax, az) {
    const bricks = this.state('nether_bricks');
    const [wx, wz] = [az * 2, ax * 2];
    const ends = (y, w) => [[mx - ax * ARM - Math.min(w, wx), y, mz - az * ARM - Math.min(w, wz)],
      [mx + ax * ARM + Math.min(w, wx), y, mz + az * ARM + Math.min(w, wz)]];
    const [low, high] = ends(DECK, 2);
    this.box(canvas, low, high, bricks);
    this.box(canvas, [low[0], DECK + 1, low[2]], [high[0], DECK + 5, high[2]], 0);
    for (const side of [-2, 2]) {
      const fence = this.state('nether_brick_fence', ax ? { east: true, west: true } : { north: true, south: true });
      this.box(canvas, [mx - ax * ARM + az * side, DECK + 1, mz - az * ARM + ax * side],
        [mx + ax * ARM + az * side, DECK + 1, mz + az * ARM + ax * side], fence);
    }
    for (let far = -ARM; far <= ARM; far += 11) {
      const [px, pz] = [mx + ax * far, mz + az * far];
      this.box(canvas, [px - (az ? 1 : 0), 5, pz - (ax ? 1 : 0)], [px + (az ? 1 : 0), DECK - 1, pz + (ax ? 1 : 0)], bricks);
    }
  }

  /** Where blazes come from. */
  platform(canvas, mx, mz) {
    this.box(canvas, [mx - 5, DECK, mz - 5], [mx + 5, DECK, mz + 5], this.state('nether_bricks'));
    this.box(canvas, [mx - 5, DECK + 1, mz - 5], [mx + 5, DECK + 7, mz + 5], 0);
    this.box(canvas, [mx - 1, DECK + 1, mz - 1], [mx + 1, DECK + 1, mz + 1], this.state('nether_bricks'));
    canvas.set(mx, DECK + 2, mz, this.state('spawner'));
  }

  /** Nether wart on soul sand. */
  garden(canvas, x, z) {
    this.box(canvas, [x, DECK, z - 1], [x + 3, DECK, z + 1], this.state('soul_sand'));
    this.box(canvas, [x, DECK + 1, z - 1], [x + 3, DECK + 1, z + 1], this.state('nether_wart', { age: 3 }));
  }

  /** Returns the spawners of a chunk, [{x, y, z, kind}]. */
  spawners(cx, cz) {
    return this.fortressesNear(cx, cz).filter(([x, z]) => x >> 4 === cx && z >> 4 === cz)
      .map(([x, z]) => ({ x, y: DECK + 2, z, kind: 'blaze' }));
  }
}

module.exports = { Nether, NETHER_Z, NETHER_ROW };

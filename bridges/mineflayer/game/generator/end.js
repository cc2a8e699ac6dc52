'use strict';

/**
 * The End: an island of end stone over the void, ten pillars of obsidian, and a podium of bedrock
 * (Minecraft Wiki, "The End", 1.16); and the strongholds of the overworld whose portals lead there.
 * It lies in the same world, from the chunk row END_ROW on: its middle is at (0, END_Z).
 *
 * Simplified: there are no outer islands; a stronghold is its portal room alone, and nearer than in
 * the game, since episodes are short.
 */

const { Chance, hash, noise2, seedOf } = require('./noise');

const END_Z = 131072;
const END_ROW = (END_Z - 32768) / 16;
const TOP = 60; // of the island
const RADIUS = 104;
const DEEP = 36;
const PILLARS = 10;
const RING = 42; // blocks from the middle to a pillar
/** Where those who come stand: the middle of a platform of obsidian. */
const LANDING = { x: 100, y: 49, z: END_Z };
const STRONGHOLDS = 3;
const NEAREST = 420;
const ROOM = { wide: 7, long: 8, y: 28, high: 7 };

/** The pillars: [{x, z, radius, top}], the highest y of obsidian. */
const pillars = Array.from({ length: PILLARS }, (_, i) => {
  const angle = (2 * Math.PI * i) / PILLARS;
  return {
    x: Math.round(RING * Math.cos(angle)), z: END_Z + Math.round(RING * Math.sin(angle)),
    radius: 2 + (i % 4), top: 76 + 3 * i,
  };
});

class End {
  constructor(seed, states, registry) {
    this.seed = seedOf(seed, 'end');
    this.states = states;
    this.biomeId = registry.biomesByName.the_end.id;
  }

  /** Draws a chunk of the End. */
  draw(canvas) {
    const stone = this.states('end_stone');
    for (let z = canvas.z; z < canvas.z + 16; z++) {
      for (let x = canvas.x; x < canvas.x + 16; x++) {
        const far = Math.hypot(x, z - END_Z) / (RADIUS + 6 * noise2(this.seed, x / 24, z / 24));
        if (far >= 1) continue;
        const top = Math.round(TOP - 14 * far ** 6 + 2 * noise2(this.seed ^ 1, x / 20, z / 20));
        const low = Math.round(top - 1 - DEEP * (1 - far * far) - 3 * noise2(this.seed ^ 2, x / 9, z / 9));
        for (let y = low; y <= top; y++) canvas.set(x, y, z, stone);
      }
    }
    const [obsidian, bedrock] = [this.states('obsidian'), this.states('bedrock')];
    for (const pillar of pillars) {
      const { x, z, radius, top } = pillar;
      if (!canvas.touches(x - radius, z - radius, x + radius, z + radius)) continue;
      for (let dx = -radius; dx <= radius; dx++) {
        for (let dz = -radius; dz <= radius; dz++) {
          if (dx * dx + dz * dz > radius * radius + 1) continue;
          for (let y = 40; y <= top; y++) canvas.set(x + dx, y, z + dz, obsidian);
        }
      }
      canvas.set(x, top + 1, z, bedrock);
    }
    this.podium(canvas, bedrock);
    const { x, y, z } = LANDING;
    for (let dx = -2; dx <= 2; dx++) {
      for (let dz = -2; dz <= 2; dz++) {
        canvas.set(x + dx, y - 1, z + dz, obsidian);
        for (let up = 0; up < 3; up++) canvas.set(x + dx, y + up, z + dz, 0);
      }
    }
  }

  podium(canvas, bedrock) {
    const base = TOP + 2;
    for (let dx = -3; dx <= 3; dx++) {
      for (let dz = -3; dz <= 3; dz++) {
        const far = Math.hypot(dx, dz);
        if (far > 3.6) continue;
        canvas.set(dx, base, END_Z + dz, bedrock);
        for (let y = TOP - 4; y < base; y++) canvas.set(dx, y, END_Z + dz, this.states('end_stone'));
        for (let y = base + 1; y <= base + 6; y++) canvas.set(dx, y, END_Z + dz, 0);
        if (far > 2.5) canvas.set(dx, base + 1, END_Z + dz, bedrock);
      }
    }
    for (let y = base + 1; y <= base + 4; y++) canvas.set(0, y, END_Z, bedrock);
  }

  /** The middles of the strongholds: {x, y, z} of the floor under the portal. */
  strongholds() {
    this.all ??= this.placed();
    return this.all;
  }

  placed() {
    const chance = new Chance(hash(this.seed, 3));
    const turn = chance.next() * 2 * Math.PI;
    return Array.from({ length: STRONGHOLDS }, (_, i) => {
      const angle = turn + (2 * Math.PI * i) / STRONGHOLDS;
      const far = NEAREST + chance.below(200);
      return { x: Math.round(far * Math.cos(angle)), y: ROOM.y, z: Math.round(far * Math.sin(angle)) };
    });
  }

  /** Draws what of a stronghold lies in a chunk of the overworld. */
  drawStronghold(canvas) {
    for (const middle of this.strongholds()) {
      const { wide, long, high } = ROOM;
      if (!canvas.touches(middle.x - wide, middle.z - long, middle.x + wide, middle.z + long)) continue;
      this.room(canvas, middle);
    }
  }

  room(canvas, { x, y, z }) {
    const { wide, long, high } = ROOM;
    const bricks = ['stone_bricks', 'stone_bricks', 'mossy_stone_bricks', 'cracked_stone_bricks'].map((name) => this.states(name));
    for (let dy = -2; dy <= high; dy++) {
      for (let dx = -wide; dx <= wide; dx++) {
        for (let dz = -long; dz <= long; dz++) {
          const wall = dy < 0 || dy === high || Math.abs(dx) === wide || Math.abs(dz) === long;
          const at = [x + dx, y + dy, z + dz];
          canvas.set(...at, wall ? bricks[hash(this.seed, ...at) & 3] : 0);
        }
      }
    }
    const lava = this.states('lava');
    for (let dx = -1; dx <= 1; dx++) for (let dz = -1; dz <= 1; dz++) canvas.set(x + dx, y - 1, z + dz, lava);
    for (const { at: [dx, dz], facing } of FRAMES) {
      for (let up = 0; up < 2; up++) canvas.set(x + dx, y + up, z + dz, bricks[0]);
      const eye = hash(this.seed ^ 9, x + dx, z + dz) % 10 === 0;
      canvas.set(x + dx, y + 2, z + dz, this.states('end_portal_frame', { eye, facing }));
    }
    for (let step = 0; step < 2; step++) {
      for (let dx = -1; dx <= 1; dx++) {
        for (let up = 0; up <= step; up++)
          canvas.set(x + dx, y + up, z + 4 - step, up === step ? this.states('stone_brick_stairs', { facing: 'north' }) : bricks[0]);
      }
    }
    for (const side of [-1, 1]) canvas.set(x + side * (wide - 1), y + 3, z, this.states('wall_torch', { facing: side > 0 ? 'west' : 'east' }));
    canvas.set(x, y, z + 6, this.states('spawner'));
  }

  /** Returns the spawners of a chunk of the overworld, [{x, y, z, kind}]. */
  spawners(cx, cz) {
    return this.strongholds().map(({ x, y, z }) => ({ x, y, z: z + 6, kind: 'silverfish' }))
      .filter(({ x, z }) => x >> 4 === cx && z >> 4 === cz);
  }
}

/** The twelve frames around a portal's middle. */
const FRAMES = [-1, 0, 1].flatMap((i) => [
  { at: [i, -2], facing: 'south' }, { at: [i, 2], facing: 'north' },
  { at: [-2, i], facing: 'east' }, { at: [2, i], facing: 'west' },
]);

module.exports = { End, END_Z, END_ROW, LANDING, TOP, FRAMES, pillars };

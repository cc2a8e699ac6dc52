'use strict';

/**
 * Spawning and despawning of mobs (Minecraft Wiki, "Spawn", Java Edition 1.16): monsters in the
 * dark, bats in caves, animals on grass, phantoms over players who have not slept for three days;
 * monsters despawn far from players, and all of them on peaceful.
 *
 * Simplified: a few chunks are tried per tick instead of all (the caps are reached a little later);
 * the caps are the game's in proportion to the loaded chunks; fish and squid spawn with the world's
 * chunks only; no slimes in swamps, no patrols, sieges, raids and jockeys; no mob has
 * armour. Regional difficulty is that of a new world. New animals spawn only in worlds whose
 * generator makes animals (not on flat sites).
 */

const { Vec3 } = require('vec3');
const { KINDS: ANIMALS } = require('../generator/animals');
const { hash } = require('../generator/noise');
const { KINDS } = require('./mobs/kinds');
const { darkEnough, lightAt, isDay, seesSky } = require('./mobs/light');

const name = 'spawning';
const TRIES = 4; // chunks tried every other tick
const COUNTED = 20; // ticks between counts of mobs
const CHARTED = 100; // and of chunks
const ANIMALS_EVERY = 400;
const WHOLE = 289; // chunks that the game's caps are for: 17 by 17
const CAPS = { monster: 70, animal: 10, bat: 15 };
const TOO_NEAR = 24; // blocks from any player and from the spawn
const GONE = 128;
const FAR = 32; // farther than this, monsters despawn at random
const PATIENCE = 600; // ticks that a monster stays far before it may despawn
const SLEEPLESS = 72000; // ticks without sleep after which phantoms come
const RANGE = 8; // chunks around players

const COMMON = [
  ['spider', 100],
  ['zombie', 95],
  ['zombie_villager', 5],
  ['skeleton', 100],
  ['creeper', 100],
  ['enderman', 10],
  ['witch', 5],
];
const swap = (out, into) => [...COMMON.filter(([kind]) => !out.includes(kind)), ...into];
const DRY = swap(
  ['zombie', 'zombie_villager'],
  [
    ['husk', 80],
    ['zombie', 19],
    ['zombie_villager', 1],
  ],
);
const COLD = swap(
  ['skeleton'],
  [
    ['stray', 80],
    ['skeleton', 20],
  ],
);
/** In the Nether and the End it is dark enough everywhere. */
const NETHER = {
  nether_wastes: [['ghast', 50], ['zombified_piglin', 100], ['magma_cube', 2], ['enderman', 1], ['piglin', 15]],
  soul_sand_valley: [['skeleton', 20], ['ghast', 50], ['enderman', 1]],
  crimson_forest: [['zombified_piglin', 1], ['hoglin', 9], ['piglin', 5]],
  warped_forest: [['enderman', 1]],
  basalt_deltas: [['ghast', 40], ['magma_cube', 100]],
  the_end: [['enderman', 10]],
};
/** On the bricks of its fortresses. */
const FORTRESS = [['blaze', 10], ['zombified_piglin', 5], ['wither_skeleton', 8], ['skeleton', 2], ['magma_cube', 3]];
const BY_BIOME = {
  ...NETHER,
  desert: DRY,
  desert_hills: DRY,
  snowy_tundra: COLD,
  ice_spikes: COLD,
  frozen_river: COLD,
};

/** Slimes live in one chunk of ten, deep down, in the light as in the dark. */
const SLIMES = { below: 40, share: 0.1, chunks: 10, kinds: [['slime', 1]] };
const inSlimeChunk = (serv, x, z) => hash(serv.hashedSeed[0], x >> 4, z >> 4) % SLIMES.chunks === 0;

function draw(weights) {
  let left = Math.random() * weights.reduce((sum, [, weight]) => sum + weight, 0);
  return weights.find(([, weight]) => (left -= weight) < 0)[0];
}

const below = (limit) => Math.floor(Math.random() * limit);

class Spawning {
  constructor(survival) {
    this.survival = survival;
    this.serv = survival.serv;
    this.chunks = [];
    this.counts = { monster: 0, animal: 0, bat: 0 };
    this.home = null;
    this.wild = false;
    this.rested = 0;
  }

  get mobs() {
    return this.survival.mobs;
  }

  /** Returns the cap that a mob counts towards, or null. */
  category(mob) {
    if (mob.name === 'bat') return 'bat';
    if (mob.kind.hostile) return 'monster';
    return mob.kind.brain === 'animal' ? 'animal' : null;
  }

  count(tick) {
    const { serv } = this;
    this.counts = { monster: 0, animal: 0, bat: 0 };
    for (const mob of this.mobs.list.values()) {
      const category = mob.health > 0 ? this.category(mob) : null;
      if (category) this.counts[category]++;
    }
    if (this.chunks.length > 0 && tick % CHARTED !== 0) return;
    this.home = serv.spawnOf(0);
    const players = serv.players.filter((player) => player.joined);
    this.chunks = Object.keys(serv.overworld.columns)
      .map((key) => key.split(',').map(Number))
      .filter(([cx, cz]) =>
        players.some(
          ({ position }) =>
            Math.abs((position.x >> 4) - cx) <= RANGE && Math.abs((position.z >> 4) - cz) <= RANGE,
        ),
      );
  }

  room(category) {
    return this.counts[category] < Math.ceil((CAPS[category] * this.chunks.length) / WHOLE);
  }

  tick(tick) {
    const { serv, survival } = this;
    if (tick % COUNTED === 0) {
      this.count(tick);
      this.depart(tick);
    }
    if (!survival.rules.doMobSpawning || this.chunks.length === 0) return;
    if (serv.difficulty > 0 && tick % 2 === 0 && this.room('monster')) this.tryAll('monster');
    if (this.room('bat') && tick % 8 === 0) this.tryAll('bat');
    if (tick % ANIMALS_EVERY === 0 && this.isWild() && this.room('animal')) this.animals();
    if (tick % 1200 === 0 && serv.difficulty > 0 && !isDay(serv)) this.phantoms(tick);
  }

  /** Returns whether the generator puts animals into this world; cached once true. */
  isWild() {
    const { generator } = this.serv.gamut;
    this.wild ||= this.chunks.some(([cx, cz]) => (generator.animals?.(cx, cz) ?? []).length > 0);
    return this.wild;
  }

  tryAll(category) {
    for (let i = 0; i < TRIES && this.room(category); i++) {
      const [cx, cz] = this.chunks[below(this.chunks.length)];
      const x = cx * 16 + below(16);
      const z = cz * 16 + below(16);
      const y = below(this.top(cx, cz, x, z) + 2);
      if (this.open(x, y, z)) this.group(category, x, y, z);
    }
  }

  /** Returns the y of the highest block of a column. */
  top(cx, cz, x, z) {
    const column = this.serv.overworld.getLoadedColumn(cx, cz);
    if (!column) return 0;
    const at = { x: x & 15, y: 255, z: z & 15 };
    for (; at.y > 0; at.y--) {
      if (!column.sections[at.y >> 4]) at.y &= ~15;
      else if (column.getBlockStateId(at) !== 0) return at.y;
    }
    return 0;
  }

  open(x, y, z) {
    const info = this.survival.blocks.at(x, y, z);
    return info.boxes.length === 0 && !info.liquid && !info.water;
  }

  /** Tries positions around one for up to four of a kind. */
  group(category, x, y, z) {
    let kind = null;
    let [gx, gz] = [x, z];
    for (let i = 0; i < 4 && this.room(category); i++) {
      gx += below(6) - below(6);
      gz += below(6) - below(6);
      const nearest = this.nearest(gx, y, gz);
      if (nearest < TOO_NEAR || nearest > GONE) continue;
      kind ??= category === 'bat' ? 'bat' : draw(this.kindsAt(gx, y, gz));
      if (!this.fits(kind, gx, y, gz) || !this.suits(category, gx, y, gz, kind)) continue;
      this.mobs.spawn(kind, new Vec3(gx + 0.5, y, gz + 0.5), { natural: true });
      this.counts[category]++;
    }
  }

  kindsAt(x, y, z) {
    if (this.survival.blocks.at(x, y - 1, z).name === 'nether_bricks') return FORTRESS;
    const slimy = y < SLIMES.below && inSlimeChunk(this.serv, x, z) && !seesSky(this.survival, x, y, z);
    if (slimy && Math.random() < SLIMES.share) return SLIMES.kinds;
    return BY_BIOME[this.biome(x, y, z)] || COMMON;
  }

  suits(category, x, y, z, kind) {
    if (kind === 'slime') return true;
    const { survival } = this;
    const inNether = NETHER[this.biome(x, y, z)] !== undefined;
    if (category === 'monster') return inNether || darkEnough(survival, x, y, z);
    if (inNether) return false;
    return y < 63 && lightAt(survival, x, y, z) <= below(4) && !seesSky(survival, x, y, z);
  }

  biome(x, y, z) {
    const column = this.serv.overworld.getLoadedColumn(x >> 4, z >> 4);
    const id = column ? column.getBiome({ x: x & 15, y, z: z & 15 }) : 0;
    return this.serv.registry.biomes[id]?.name ?? 'plains';
  }

  nearest(x, y, z) {
    const { home } = this;
    let best = Math.hypot(home.x - x, home.y - y, home.z - z) < TOO_NEAR ? 0 : Infinity;
    for (const { joined, position } of this.serv.players) {
      if (joined) best = Math.min(best, Math.hypot(position.x - x, position.y - y, position.z - z));
    }
    return best;
  }

  /** Whether a kind has ground under it and room to stand in. */
  fits(kind, x, y, z) {
    const { blocks, registry } = this.survival;
    const def = registry.entitiesByName[kind];
    const ground = blocks.at(x, y - 1, z);
    if (kind !== 'bat' && (!ground.suffocates || ground.name === 'bedrock')) return false;
    const around = def.width > 1 ? 1 : 0;
    for (let up = 0; up < Math.ceil(def.height); up++) {
      for (let dx = -around; dx <= around; dx++) {
        for (let dz = -around; dz <= around; dz++)
          if (!this.open(x + dx, y + up, z + dz)) return false;
      }
    }
    return true;
  }

  /** Puts a group of the biome's animals on lit grass somewhere. */
  animals() {
    const { survival } = this;
    for (let i = 0; i < TRIES; i++) {
      const [cx, cz] = this.chunks[below(this.chunks.length)];
      const x = cx * 16 + below(16);
      const z = cz * 16 + below(16);
      const y = this.top(cx, cz, x, z) + 1;
      const kinds = ANIMALS[this.biome(x, y, z)];
      if (!kinds || this.nearest(x, y, z) < TOO_NEAR) continue;
      const kind = draw(kinds.map((row) => [row.kind, row.weight]));
      if (KINDS[kind].moves !== 'walk') continue;
      for (let n = 0; n < 4 && this.room('animal'); n++) {
        const [ax, az] = [x + below(6) - below(6), z + below(6) - below(6)];
        const grass = survival.blocks.at(ax, y - 1, az).name === 'grass_block';
        if (!grass || !this.fits(kind, ax, y, az) || lightAt(survival, ax, y, az) < 9) continue;
        this.mobs.spawn(kind, new Vec3(ax + 0.5, y, az + 0.5));
        this.counts.animal++;
      }
      return;
    }
  }

  phantoms(tick) {
    if (tick - this.rested < SLEEPLESS) return;
    for (const player of this.mobs.players) {
      const { x, y, z } = player.position;
      if (y < 63 || player.dimension !== 'overworld' || !seesSky(this.survival, x, y + 1, z)) continue;
      if (Math.random() >= (tick - this.rested - SLEEPLESS) / (tick - this.rested)) continue;
      const at = new Vec3(x + below(21) - 10, y + 20 + below(15), z + below(21) - 10);
      this.mobs.spawn('phantom', at, { natural: true });
    }
  }

  /** Removes hostile mobs on peaceful, and natural ones without a player near. */
  depart(tick) {
    const { serv, mobs } = this;
    for (const mob of [...mobs.list.values()]) {
      if (serv.difficulty === 0 && mob.kind.hostile && !mob.kind.peaceful) {
        mobs.remove(mob);
        continue;
      }
      if (!mob.natural || mob.gamutTarget || mob.gamutName) continue;
      const away = mobs.nearest(mob);
      if (away <= FAR) mob.idleSince = tick;
      const bored = tick - mob.idleSince > PATIENCE && Math.random() < COUNTED / 800;
      if (away > GONE || (away > FAR && bored)) mobs.remove(mob);
    }
  }
}

function server(serv) {
  const { survival } = serv;
  const spawning = new Spawning(survival);
  survival.spawning = spawning;
  survival.onTick((tick) => spawning.tick(tick));
  serv.on('gamut:wake', () => {
    spawning.rested = survival.tick;
  });
}

function save(serv) {
  const { counts, chunks, home, wild, rested } = serv.survival.spawning;
  return {
    counts: { ...counts },
    chunks: chunks.map((chunk) => [...chunk]),
    wild,
    rested,
    home: home && home.toArray(),
  };
}

function load(serv, data) {
  const { spawning } = serv.survival;
  Object.assign(
    spawning,
    data
      ? { ...data, counts: { ...data.counts }, home: data.home && new Vec3(...data.home) }
      : {
          counts: { monster: 0, animal: 0, bat: 0 },
          chunks: [],
          home: null,
          wild: false,
          rested: 0,
        },
  );
}

/** The kinds that come after a world was made. */
const NATURAL = [...new Set([...COMMON, ...DRY, ...COLD, ...FORTRESS, ...SLIMES.kinds, ...Object.values(NETHER).flat()].map(([kind]) => kind)), 'bat', 'phantom'];

module.exports = { NATURAL, name, server, save, load };

'use strict';

/**
 * Fire (Minecraft Wiki, "Fire", Java Edition 1.16): each is updated about every 30 to 39 ticks,
 * grows older (0 to 15), burns up its fuel, spreads to free positions beside fuel, and goes out
 * without fuel, in rain, or with the block it stands on. On netherrack and magma it burns forever,
 * soul fire too. Lava ignites flammable blocks near it. With the rule doFireTick off, fire does not
 * change.
 *
 * - `serv.survival.ignite(x, y, z)`: starts a fire at a free position, returns whether it burns
 * - `serv.survival.fire.fuel(stateId)`: how readily a block catches fire and burns up, [0, 0] if it
 *   is not flammable
 *
 * Flint and steel and fire charges light fires. Lava searches for fuel once it has flowed, or once
 * fuel was placed within its reach; its updates are random, like random ticks (growth.js).
 *
 * Simplified: lightning does not strike; at most
 * `MOST` fires are updated in a tick, the others in the next ones.
 */

const { FACES } = require('./blocks');
const { TickQueue, keyOf, unpack } = require('./fluids/queue');

const name = 'fire';
const MOST = 256;
const OLD = 15;
const PER_SECTION = 4096;
const HUMID = 0.85;
const FOREVER = new Set(['netherrack', 'magma_block']);
const SOULS = new Set(['soul_sand', 'soul_soil']);
const WOOD = '(oak|spruce|birch|jungle|acacia|dark_oak)';
const PLANTS = [
  'grass|fern|dead_bush|sunflower|lilac|rose_bush|peony|tall_grass|large_fern|dandelion|poppy',
  'blue_orchid|allium|azure_bluet|.*_tulip|oxeye_daisy|cornflower|lily_of_the_valley|wither_rose',
  'sweet_berry_bush',
].join('|');
/** Flammable blocks: how readily each catches fire, and how readily it burns up. */
const FUELS = [
  [`${WOOD}_(planks|slab|fence|fence_gate|stairs)|composter|beehive`, 5, 20],
  [`(stripped_)?${WOOD}_(log|wood)|coal_block`, 5, 5],
  ['.*_leaves|.*_wool|dried_kelp_block', 30, 60],
  ['bookshelf|lectern|bee_nest', 30, 20],
  ['tnt|vine', 15, 100],
  [PLANTS, 60, 100],
  ['.*_carpet|hay_block', 60, 20],
  ['target', 15, 20],
  ['bamboo|scaffolding', 60, 60],
].map(([names, catches, burns]) => [new RegExp(`^(${names})$`), catches, burns]);
/** Further blocks that lava ignites: other things of wood. */
const WOODEN = new RegExp(
  `^(${[
    `${WOOD}_(door|trapdoor|pressure_plate|sign|wall_sign)|(trapped_)?chest|barrel|loom|.*_bed`,
    '(crafting|cartography|fletching|smithing)_table|note_block|jukebox|.*_banner',
  ].join('|')})$`,
);
const NOT_FUEL = [0, 0];
/** The blocks around a fire that it may burn up, in the game's order, each with one chance in. */
const EATEN = [
  [5, 300],
  [4, 300],
  [0, 250],
  [1, 250],
  [2, 300],
  [3, 300],
];
const CROSS = [
  [0, 0],
  [-1, 0],
  [1, 0],
  [0, -1],
  [0, 1],
];
const below = (n) => Math.floor(Math.random() * n);

const KNOWN = new WeakMap();

/** Returns the fuel of all block states used so far, shared by all worlds of a process. */
function fuelTable(registry) {
  if (!KNOWN.has(registry)) KNOWN.set(registry, []);
  return KNOWN.get(registry);
}

class Fire {
  constructor(survival) {
    this.survival = survival;
    this.serv = survival.serv;
    this.blocks = survival.blocks;
    this.fluids = survival.fluids;
    this.fuels = fuelTable(survival.registry);
    this.queue = new TickQueue(MOST);
    /** Soul fires, and lava that may ignite something, by state id. */
    this.souls = new Set();
    this.hot = new Set();
  }

  fuel(stateId) {
    if (stateId <= 0) return NOT_FUEL;
    return (this.fuels[stateId] ??= this.fuelOf(this.blocks.info(stateId)));
  }

  fuelOf(info) {
    const found = FUELS.find(([names]) => names.test(info.name));
    return found && info.props.waterlogged !== true ? [found[1], found[2]] : NOT_FUEL;
  }

  read(x, y, z) {
    return this.fluids.read(x, y, z);
  }

  burns(x, y, z) {
    return this.fuel(this.read(x, y, z).stateId)[0] > 0;
  }

  besideFuel(x, y, z) {
    return FACES.some(([dx, dy, dz]) => this.burns(x + dx, y + dy, z + dz));
  }

  /** Whether a fire can be at a position. */
  lasts(x, y, z) {
    return this.read(x, y - 1, z).sturdy || this.besideFuel(x, y, z);
  }

  /** The state of a fire: one without ground is attached to the sides that burn. */
  stateFor(x, y, z, age) {
    if (this.read(x, y - 1, z).sturdy || this.burns(x, y - 1, z))
      return this.blocks.state('fire', { age });
    const [, up, north, south, west, east] = FACES.map(([dx, dy, dz]) =>
      this.burns(x + dx, y + dy, z + dz),
    );
    return this.blocks.state('fire', { age, up, north, south, west, east });
  }

  ignite(x, y, z) {
    this.fluids.forget();
    const here = this.read(x, y, z);
    if (!here.info || !here.info.air) return false;
    if (SOULS.has(this.read(x, y - 1, z).info?.name)) {
      this.blocks.setNamed(x, y, z, 'soul_fire');
      return true;
    }
    if (!this.lasts(x, y, z)) return false;
    this.blocks.set(x, y, z, this.stateFor(x, y, z, 0));
    return true;
  }

  wait(x, y, z) {
    this.queue.add(this.survival.tick + 30 + below(10), keyOf(x, y, z));
  }

  /** Whether rain falls on a fire or beside it. */
  rained(x, y, z) {
    if (!this.serv.weather.rain) return false;
    return CROSS.some(([dx, dz]) => this.survival.rainsOn({ x: x + dx, y, z: z + dz }));
  }

  humid(x, z) {
    const column = this.serv.overworld.getLoadedColumn(x >> 4, z >> 4);
    const biome = this.serv.registry.biomes[column.getBiome({ x: x & 15, y: 0, z: z & 15 })];
    return Boolean(biome && biome.rainfall > HUMID);
  }

  tick(x, y, z) {
    const here = this.read(x, y, z);
    if (here.info?.name !== 'fire') return;
    this.wait(x, y, z);
    if (!this.survival.rules.doFireTick) return;
    if (!this.lasts(x, y, z)) {
      this.out(x, y, z);
      return;
    }
    const { age } = here.info.props;
    const lasting = FOREVER.has(this.read(x, y - 1, z).info?.name);
    if (!lasting && this.rained(x, y, z) && Math.random() < 0.2 + age * 0.03) {
      this.out(x, y, z);
      return;
    }
    const older = Math.min(OLD, age + (below(3) >> 1));
    if (older !== age) this.blocks.set(x, y, z, this.blocks.changed(here.info, { age: older }));
    if (!lasting && this.starves(x, y, z, age)) return;
    const humid = this.humid(x, z);
    for (const [face, oneIn] of EATEN) this.eat(x, y, z, face, humid ? oneIn - 50 : oneIn, age);
    this.spread(x, y, z, age, humid);
  }

  out(x, y, z) {
    this.blocks.setNamed(x, y, z, 'air');
  }

  /** Whether a fire has nothing left to burn, so that it goes out sooner or later. */
  starves(x, y, z, age) {
    const under = this.read(x, y - 1, z);
    if (!this.besideFuel(x, y, z)) {
      if (!under.sturdy || age > 3) this.out(x, y, z);
      return true;
    }
    if (age < OLD || below(4) !== 0 || this.fuel(under.stateId)[0] > 0) return false;
    this.out(x, y, z);
    return true;
  }

  /** May burn up the block across a face, and leave a fire there. */
  eat(x, y, z, face, oneIn, age) {
    const [dx, dy, dz] = FACES[face];
    const [ex, ey, ez] = [x + dx, y + dy, z + dz];
    const readiness = this.fuel(this.read(ex, ey, ez).stateId)[1];
    if (below(oneIn) >= readiness || this.survival.primeTnt(ex, ey, ez)) return;
    const stays = below(age + 10) < 5 && !this.survival.rainsOn({ x: ex, y: ey, z: ez });
    const young = Math.min(OLD, age + (below(5) >> 2));
    if (stays) this.blocks.set(ex, ey, ez, this.stateFor(ex, ey, ez, young));
    else this.out(ex, ey, ez);
  }

  /** How readily a free position catches fire from its neighbours. */
  catches(x, y, z) {
    const here = this.read(x, y, z);
    if (!here.info || !here.info.air) return 0;
    let most = 0;
    for (const [dx, dy, dz] of FACES) {
      const [readiness] = this.fuel(this.read(x + dx, y + dy, z + dz).stateId);
      if (readiness > most) most = readiness;
    }
    return most;
  }

  spread(x, y, z, age, humid) {
    for (let dx = -1; dx <= 1; dx++) {
      for (let dz = -1; dz <= 1; dz++) {
        for (let dy = -1; dy <= 4; dy++) {
          const readiness = this.catches(x + dx, y + dy, z + dz);
          if (readiness === 0) continue;
          const oneIn = dy > 1 ? 100 * dy : 100;
          const chance = Math.floor((readiness + 40 + this.serv.difficulty * 7) / (age + 30));
          const least = humid ? chance >> 1 : chance;
          if (least <= 0 || below(oneIn) > least || this.rained(x + dx, y + dy, z + dz)) continue;
          const young = Math.min(OLD, age + (below(5) >> 2));
          this.blocks.set(x + dx, y + dy, z + dz, this.stateFor(x + dx, y + dy, z + dz, young));
        }
      }
    }
  }

  /** Called on every change of a block. */
  changed(x, y, z, now) {
    this.fluids.forget();
    if (now.name === 'fire') this.wait(x, y, z);
    else if (now.name === 'soul_fire') this.souls.add(keyOf(x, y, z));
    else if (now.lava) this.heat(x, y, z);
    else if (this.kindles(now)) this.heatAbout(x, y, z);
    if (this.queue.size === 0 && this.souls.size === 0) return;
    this.look(x, y, z);
    for (const [dx, dy, dz] of FACES) this.look(x + dx, y + dy, z + dz);
  }

  /** Removes a fire that has lost its support. */
  look(x, y, z) {
    const blockName = this.read(x, y, z).info?.name;
    if (blockName === 'fire') {
      if (!this.lasts(x, y, z)) this.out(x, y, z);
    } else if (blockName === 'soul_fire') {
      if (!SOULS.has(this.read(x, y - 1, z).info?.name)) this.out(x, y, z);
    } else if (this.souls.size) this.souls.delete(keyOf(x, y, z));
  }

  /** Whether lava can ignite a block. */
  kindles(info) {
    return this.fuel(info.stateId)[0] > 0 || WOODEN.test(info.name);
  }

  kindlesAt(x, y, z) {
    const { info } = this.read(x, y, z);
    return Boolean(info) && this.kindles(info);
  }

  heatAbout(x, y, z) {
    for (let dx = -2; dx <= 2; dx++) {
      for (let dz = -2; dz <= 2; dz++) {
        for (let dy = -3; dy <= 0; dy++) {
          if (this.read(x + dx, y + dy, z + dz).info?.lava) this.heat(x + dx, y + dy, z + dz);
        }
      }
    }
  }

  /** Schedules the next attempt of lava to ignite something. */
  heat(x, y, z) {
    const key = keyOf(x, y, z);
    const p = this.survival.rules.randomTickSpeed / PER_SECTION;
    if (p <= 0 || key < 0 || this.hot.has(key)) return;
    this.hot.add(key);
    const delay = p >= 1 ? 1 : Math.log(1 - Math.random()) / Math.log(1 - p);
    this.survival.schedule(delay, 'lavaSparks', [x, y, z]);
  }

  spark(x, y, z) {
    this.fluids.forget();
    this.hot.delete(keyOf(x, y, z));
    if (!this.read(x, y, z).info?.lava) return;
    this.heat(x, y, z);
    if (!this.survival.rules.doFireTick) return;
    const steps = below(3);
    if (steps > 0) this.sparkUp(x, y, z, steps);
    else this.sparkAside(x, y, z);
  }

  sparkUp(x, y, z, steps) {
    let [sx, sy, sz] = [x, y, z];
    for (let i = 0; i < steps; i++) {
      sx += below(3) - 1;
      sy++;
      sz += below(3) - 1;
      const there = this.read(sx, sy, sz);
      if (!there.info?.air) {
        if (there.solid) return;
      } else if (FACES.some(([dx, dy, dz]) => this.kindlesAt(sx + dx, sy + dy, sz + dz))) {
        this.blocks.set(sx, sy, sz, this.stateFor(sx, sy, sz, 0));
        return;
      }
    }
  }

  sparkAside(x, y, z) {
    for (let i = 0; i < 3; i++) {
      const [sx, sz] = [x + below(3) - 1, z + below(3) - 1];
      if (!this.read(sx, y + 1, sz).info?.air || !this.kindlesAt(sx, y, sz)) continue;
      this.blocks.set(sx, y + 1, sz, this.stateFor(sx, y + 1, sz, 0));
    }
  }
}

/** Uses flint and steel or a fire charge on a face of a block. */
function light(serv, { player, x, y, z, face, slot, item }) {
  if (!FACES[face]) return false;
  const [dx, dy, dz] = FACES[face];
  if (!serv.survival.ignite(x + dx, y + dy, z + dz)) return false;
  serv.emit('gamut:lit', { player, item: item.name });
  if (item.name === 'flint_and_steel') player.wearSlot(slot, 1);
  else if (player.gameMode !== 1) player.useUp(slot);
  return true;
}

function server(serv) {
  const { survival } = serv;
  const fire = new Fire(survival);
  survival.fire = fire;
  survival.ignite = (x, y, z) => fire.ignite(x, y, z);
  survival.atStart.rules = { doFireTick: true, ...survival.atStart.rules };
  survival.rules = { doFireTick: true, ...survival.rules };
  survival.blocks.onChange((x, y, z, old, now) => fire.changed(x, y, z, now));
  survival.onScheduled('lavaSparks', ([x, y, z]) => fire.spark(x, y, z));
  survival.onTick((tick) => {
    fire.fluids.forget();
    fire.queue.run(tick, (key) => unpack(key, (x, y, z) => fire.tick(x, y, z)));
  });
  survival.onUseItemOn(['flint_and_steel', 'fire_charge'], (call) => light(serv, call));
}

/** Returns the fires that wait for their update, and the lava that may ignite something. */
function save(serv) {
  const { queue, souls, hot } = serv.survival.fire;
  return { queue: queue.save(), souls: [...souls], hot: [...hot] };
}

/** The corresponding timetable is core.js's. */
function load(serv, data) {
  const { fire } = serv.survival;
  fire.queue.load(data ? data.queue : null);
  fire.souls = new Set(data ? data.souls : []);
  fire.hot = new Set(data ? data.hot : []);
}

module.exports = { name, server, save, load };

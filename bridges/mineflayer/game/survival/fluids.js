'use strict';

/**
 * Water and lava that flow (Minecraft Wiki, "Fluid", "Water", "Lava", Java Edition 1.16): water
 * every 5 ticks and 7 blocks far, lava every 30 ticks and 3 blocks far, down first, then towards
 * the nearest way down within 5 (water) or 3 (lava) steps, else to all sides. Two sources of water
 * beside a block make a third one over solid ground or a source. Water washes weak blocks away,
 * which drop, and goes into blocks that can be waterlogged where it would be a source; lava burns
 * them up. Lava beside or below water turns to obsidian or cobblestone, water below lava to stone.
 *
 * Nothing flows without a cause: a liquid is updated only after a block in or beside it changes, so
 * seas and lava of the generator cost nothing. No random numbers are used.
 *
 * - `serv.survival.pour(x, y, z, 'water' | 'lava')`: empties a bucket there, returns whether it
 *   could
 * - `serv.survival.fluids.read(x, y, z)`: the properties of a block for liquids (fluids/states.js)
 *
 * Simplified: at the edge of the loaded chunks liquids stop, and continue only when a block beside
 * them changes; at most `MOST` blocks flow in a tick, the others in the next ones; no bubble
 * columns; dripping and lava's slower fall are omitted.
 */

const { FACES } = require('./blocks');
const { lootOf } = require('./loot');
const { TickQueue, keyOf, unpack } = require('./fluids/queue');
const { WATER, LAVA, OPEN, LOGS, WALL, makeStates, passes } = require('./fluids/states');
const { Ways } = require('./fluids/ways');
const { carryAll } = require('./fluids/currents');

const name = 'fluids';
const NAMES = [null, 'water', 'lava'];
/** By liquid: ticks between two updates, and levels lost per block. */
const DELAY = [0, 5, 30];
const LOST = [0, 1, 2];
const NONE = -1;
const FALLING = 8;
const [DOWN, UP] = [0, 1];
const SIDES = [2, 3, 4, 5];
const MOST = 1024;
/** Drops that differ from what a tool would get: snow leaves nothing, cobwebs their string. */
const WASHES_OUT = { snow: [], cobweb: [['string', 1]] };

/** Positions of neighbours that lava must not touch, in the game's order. */
const TOUCHES = [UP, ...SIDES];

class Fluids {
  constructor(survival) {
    this.survival = survival;
    this.blocks = survival.blocks;
    this.of = makeStates(survival.blocks);
    this.queue = new TickQueue(MOST);
    this.ways = new Ways(this);
    this.spot = { x: 0, y: 0, z: 0 };
    this.forget();
  }

  /** Clears the cached column: another may have replaced it. */
  forget() {
    this.column = null;
    this.columnX = NaN;
    this.columnZ = NaN;
  }

  /** Returns the properties of a block for liquids; a WALL outside the world and in unloaded chunks. */
  read(x, y, z) {
    if (y < 0 || y > 255) return WALL;
    if (x >> 4 !== this.columnX || z >> 4 !== this.columnZ) {
      this.columnX = x >> 4;
      this.columnZ = z >> 4;
      this.column = this.survival.serv.overworld.getLoadedColumn(this.columnX, this.columnZ);
    }
    if (!this.column) return WALL;
    const { spot } = this;
    spot.x = x & 15;
    spot.y = y;
    spot.z = z & 15;
    return this.of(this.column.getBlockStateId(spot));
  }

  /** Returns the level that a liquid gets at a block from its neighbours, or NONE. */
  becoming(kind, x, y, z, here) {
    let most = 0;
    let sources = 0;
    for (const face of SIDES) {
      const there = this.read(x + FACES[face][0], y, z + FACES[face][2]);
      if (there.kind !== kind || !passes(here, face, there)) continue;
      if (there.source) sources++;
      if (there.amount > most) most = there.amount;
    }
    if (kind === WATER && sources >= 2) {
      const below = this.read(x, y - 1, z);
      if (below.solid || (below.kind === WATER && below.source)) return 0;
    }
    const above = this.read(x, y + 1, z);
    if (above.kind === kind && passes(here, UP, above)) return FALLING;
    const amount = most - LOST[kind];
    return amount > 0 ? 8 - amount : NONE;
  }

  /** Returns whether a block takes in a liquid of a level. */
  holds(there, kind, level) {
    return there.room === OPEN || (there.room === LOGS && kind === WATER && level === 0);
  }

  /** Returns whether a liquid can continue into a block that is not a source of it. */
  enters(here, face, there, kind, level) {
    if (there.source && there.kind === kind) return false;
    return this.holds(there, kind, level) && passes(here, face, there);
  }

  /**
   * Returns whether a liquid falls at a block: into the same liquid or into a block that can
   * contain it.
   */
  isHole(x, y, z, here, kind, level) {
    const below = this.read(x, y - 1, z);
    return (below.kind === kind || this.holds(below, kind, level)) && passes(here, DOWN, below);
  }

  /** Returns whether a liquid replaces the contents of a block. */
  replaces(x, y, z, there, face, kind) {
    if (there.kind === WATER) return face === DOWN && kind !== WATER;
    if (there.kind !== LAVA) return true;
    return kind === WATER && (there.amount >= 4 || this.read(x, y + 1, z).kind === LAVA);
  }

  /** Lets a liquid flow into the neighbour of a block. Returns whether it could. */
  spread(x, y, z, here, face, kind, level) {
    const [dx, dy, dz] = FACES[face];
    const spot = [x + dx, y + dy, z + dz];
    const there = this.read(...spot);
    if (!this.replaces(...spot, there, face, kind)) return false;
    if (!this.holds(there, kind, level) || !passes(here, face, there)) return false;
    if (kind === LAVA && face === DOWN && there.kind === WATER) {
      if (there.info.name === 'water') this.blocks.setNamed(...spot, 'stone');
    } else this.put(...spot, there, kind, level);
    return true;
  }

  /** Replaces a block, which is washed away, by a liquid, or waterlogs it. */
  put(x, y, z, there, kind, level) {
    const { blocks, survival } = this;
    if (there.room === LOGS) {
      const more = there.info.props.lit ? { lit: false } : {};
      blocks.set(x, y, z, blocks.changed(there.info, { waterlogged: true, ...more }));
      return;
    }
    const washed = kind === WATER && survival.rules.doTileDrops && !there.info.air && !there.kind;
    const drops = washed
      ? (WASHES_OUT[there.info.name] ??
        lootOf(survival.items, survival.registry, there.info, null, true))
      : [];
    blocks.setNamed(x, y, z, NAMES[kind], { level });
    for (const [item, count] of drops) {
      if (survival.registry.itemsByName[item])
        survival.popItem(x, y, z, survival.items.make(item, count));
    }
  }

  /** Updates a liquid at its scheduled time. */
  tick(x, y, z, kind) {
    let here = this.read(x, y, z);
    if (here.kind !== kind) return;
    if (!here.source) {
      const level = this.becoming(kind, x, y, z, here);
      if (level === NONE) {
        this.blocks.setNamed(x, y, z, 'air');
        return;
      }
      if (level !== here.level) {
        this.blocks.setNamed(x, y, z, NAMES[kind], { level });
        here = this.read(x, y, z);
        if (here.kind !== kind) return;
      }
    }
    this.flow(x, y, z, here, kind);
  }

  flow(x, y, z, here, kind) {
    const below = this.read(x, y - 1, z);
    const level = this.becoming(kind, x, y - 1, z, below);
    if (this.spread(x, y, z, here, DOWN, kind, level)) {
      if (this.sourcesBeside(x, y, z, kind) >= 3) this.flowAside(x, y, z, here, kind);
    } else if (here.source || !this.isHole(x, y, z, here, kind, level)) {
      this.flowAside(x, y, z, here, kind);
    }
  }

  sourcesBeside(x, y, z, kind) {
    let count = 0;
    for (const face of SIDES) {
      const there = this.read(x + FACES[face][0], y, z + FACES[face][2]);
      if (there.kind === kind && there.source) count++;
    }
    return count;
  }

  flowAside(x, y, z, here, kind) {
    if (here.level !== FALLING && here.amount <= LOST[kind]) return;
    const { faces, levels } = this.ways.find(x, y, z, here, kind);
    const wanted = levels.slice();
    for (const face of SIDES) {
      if (faces & (1 << face)) this.spread(x, y, z, here, face, kind, wanted[face]);
    }
  }

  /** Schedules the update of a liquid; lava that touches water hardens at once. */
  wake(x, y, z, there) {
    if (there.kind === LAVA && this.harden(x, y, z, there)) return;
    this.queue.add(this.survival.tick + DELAY[there.kind], keyOf(x, y, z, there.kind - 1));
  }

  /** Returns whether lava at a block turned to stone by what it touches. */
  harden(x, y, z, here) {
    const onSoul = this.read(x, y - 1, z).info?.name === 'soul_soil';
    for (const face of TOUCHES) {
      const [dx, dy, dz] = FACES[face];
      const there = this.read(x + dx, y + dy, z + dz);
      let into = null;
      if (there.kind === WATER) into = here.source ? 'obsidian' : 'cobblestone';
      else if (onSoul && there.info?.name === 'blue_ice') into = 'basalt';
      if (into === null) continue;
      this.blocks.setNamed(x, y, z, into);
      return true;
    }
    return false;
  }

  /** Called on every change of a block. */
  changed(x, y, z, now) {
    this.forget();
    const here = this.of(now.stateId);
    if (here.kind) this.wake(x, y, z, here);
    for (let face = 0; face < 6; face++) {
      const [dx, dy, dz] = FACES[face];
      const there = this.read(x + dx, y + dy, z + dz);
      if (there.kind) this.wake(x + dx, y + dy, z + dz, there);
      // Powder turns to concrete in water, except in what is below it.
      if (here.kind === WATER && face !== UP) this.solidify(x + dx, y + dy, z + dz, there.info);
      else if (there.kind === WATER && face !== DOWN) this.solidify(x, y, z, now);
    }
  }

  solidify(x, y, z, info) {
    if (info === null || !info.name.endsWith('_concrete_powder')) return;
    if (this.read(x, y, z).info === info)
      this.blocks.setNamed(x, y, z, info.name.replace('_powder', ''));
  }

  tickAll(tick) {
    this.forget();
    this.queue.run(tick, (key) => unpack(key, (x, y, z, bit) => this.tick(x, y, z, bit + 1)));
    carryAll(this.survival);
  }

  /** Empties a bucket into a block. Returns whether it could. */
  pour(x, y, z, liquid) {
    this.forget();
    const kind = NAMES.indexOf(liquid);
    const there = this.read(x, y, z);
    if (there === WALL || (there.kind === kind && there.source)) return false;
    if (!this.holds(there, kind, 0) && !there.info.replaceable) return false;
    this.put(x, y, z, there, kind, 0);
    return true;
  }
}

function server(serv) {
  const { survival } = serv;
  const fluids = new Fluids(survival);
  survival.fluids = fluids;
  survival.pour = (x, y, z, liquid) => fluids.pour(x, y, z, liquid);
  survival.blocks.onChange((x, y, z, old, now) => fluids.changed(x, y, z, now));
  survival.onTick((tick) => fluids.tickAll(tick));
}

/** Returns the liquids that wait for their update. */
function save(serv) {
  return serv.survival.fluids.queue.save();
}

function load(serv, data) {
  const { fluids } = serv.survival;
  fluids.forget();
  fluids.queue.load(data);
}

module.exports = { name, server, save, load };

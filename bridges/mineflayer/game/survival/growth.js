'use strict';

/**
 * Growth and decay by random ticks. The game picks randomTickSpeed blocks of 4,096 per section and
 * tick; here every growing block has its own next tick, drawn from the same (geometric)
 * distribution, so that blocks that do not grow cost nothing. Light is ignored.
 *
 * `serv.survival.onRandomTick(test, fn)`: `fn(x, y, z, info)` for blocks whose name passes `test`.
 * Blocks of a freshly generated chunk are found when the chunk comes.
 */

const name = 'growth';
const PER_SECTION = 4096;
const GROWABLE = new WeakMap();
const SCANNED = new WeakMap();

function keyOf(x, y, z) {
  return `${x},${y},${z}`;
}

/** Ticks to the next random tick of one block. */
function wait(survival) {
  const p = survival.rules.randomTickSpeed / PER_SECTION;
  return p <= 0 ? Infinity : Math.ceil(Math.log(1 - Math.random()) / Math.log(1 - p));
}

class Growth {
  constructor(survival) {
    this.survival = survival;
    this.rules = [];
    this.byName = new Map();
    this.growing = new Map();
    this.serial = 0;
  }

  handler(blockName) {
    if (!this.byName.has(blockName)) {
      const found = this.rules.find(([test]) => test.test(blockName));
      this.byName.set(blockName, found ? found[1] : null);
    }
    return this.byName.get(blockName);
  }

  /** Draws the next random tick of a block. */
  plan(x, y, z) {
    const delay = wait(this.survival);
    if (delay === Infinity) return;
    const token = ++this.serial;
    this.growing.set(keyOf(x, y, z), token);
    this.survival.schedule(delay, 'grow', [x, y, z, token]);
  }

  changed(x, y, z, old, now) {
    const key = keyOf(x, y, z);
    if (!this.handler(now.name)) this.growing.delete(key);
    else if (!this.growing.has(key)) this.plan(x, y, z);
  }

  tick([x, y, z, token]) {
    const key = keyOf(x, y, z);
    if (this.growing.get(key) !== token) return;
    const { blocks } = this.survival;
    const info = blocks.at(x, y, z);
    const act = this.handler(info.name);
    this.growing.delete(key);
    if (!act) return;
    act(x, y, z, info);
    if (this.handler(blocks.at(x, y, z).name) && !this.growing.has(key)) this.plan(x, y, z);
  }

  /** The state ids that grow, as a set. */
  growable() {
    const { registry } = this.survival;
    if (!GROWABLE.has(registry)) {
      const states = new Set();
      for (const def of registry.blocksArray) {
        if (!this.handler(def.name)) continue;
        for (let id = def.minStateId; id <= def.maxStateId; id++) states.add(id);
      }
      GROWABLE.set(registry, states);
    }
    return GROWABLE.get(registry);
  }

  /** Finds the growing blocks of a column. */
  scan(column, chunkX, chunkZ) {
    column.sections.forEach((section, index) => {
      if (!section) return;
      const whole = column.shared && column.shared.blocks & (1 << index);
      for (const [x, y, z] of this.within(section, Boolean(whole))) {
        const spot = [chunkX * 16 + x, index * 16 + y, chunkZ * 16 + z];
        if (!this.growing.has(keyOf(...spot))) this.plan(...spot);
      }
    });
  }

  /**
   * Returns the positions of growing blocks in a section. Sections that no world has written to
   * (world.js) are searched once per process.
   */
  within(section, untouched) {
    if (untouched && SCANNED.has(section)) return SCANNED.get(section);
    const states = this.growable();
    const found = [];
    if (!section.palette || section.palette.some((id) => states.has(id))) {
      for (let i = 0; i < 4096; i++) {
        const [x, y, z] = [i & 15, i >> 8, (i >> 4) & 15];
        if (states.has(section.getBlock({ x, y, z }))) found.push([x, y, z]);
      }
    }
    if (untouched) SCANNED.set(section, found);
    return found;
  }
}

function scanAll(serv, growth) {
  for (const [key, column] of Object.entries(serv.overworld.columns)) {
    const [chunkX, chunkZ] = key.split(',').map(Number);
    growth.scan(column, chunkX, chunkZ);
  }
}

function watch(serv, growth) {
  const world = serv.overworld;
  growth.world = world;
  world.on('chunkColumnLoad', (corner) => {
    const [chunkX, chunkZ] = [corner.x >> 4, corner.z >> 4];
    if (serv.overworld === world)
      growth.scan(world.getLoadedColumn(chunkX, chunkZ), chunkX, chunkZ);
  });
}

function server(serv) {
  const { survival } = serv;
  const growth = new Growth(survival);
  survival.growth = growth;
  survival.onRandomTick = (test, fn) => growth.rules.push([test, fn]);
  survival.onScheduled('grow', (data) => growth.tick(data));
  survival.blocks.onChange((x, y, z, old, now) => growth.changed(x, y, z, old, now));
  survival.onTick(() => {
    if (growth.world === serv.overworld) return;
    watch(serv, growth);
    scanAll(serv, growth);
  });
}

function save(serv) {
  const { growing, serial } = serv.survival.growth;
  return { growing: [...growing.entries()], serial };
}

/**
 * The corresponding timetable is core.js's. Without data, the blocks of the world start again.
 */
function load(serv, data) {
  const { growth } = serv.survival;
  growth.growing = new Map(data ? data.growing : []);
  growth.serial = data ? data.serial : 0;
  if (!data) growth.world = null;
}

module.exports = { name, server, save, load };

'use strict';

/**
 * Synchronous access to block states. flying-squid's own calls return promises even for chunks in
 * memory; mechanics that run every tick cannot wait for them. A chunk that is not loaded reads as
 * air; a write creates it.
 */

const { Vec3 } = require('vec3');

const FACES = [
  [0, -1, 0],
  [0, 1, 0],
  [0, 0, -1],
  [0, 0, 1],
  [-1, 0, 0],
  [1, 0, 0],
];
const FACE_NAMES = ['down', 'up', 'north', 'south', 'west', 'east'];
const LIQUIDS = new Set(['water', 'lava', 'bubble_column']);
const SUNKEN = new Set(['seagrass', 'tall_seagrass', 'kelp', 'kelp_plant']);
/** Blocks that a placed block may replace (Minecraft Wiki, "Replaceable"). */
const REPLACEABLE = new Set([
  'air',
  'cave_air',
  'void_air',
  'water',
  'lava',
  'grass',
  'fern',
  'dead_bush',
  'seagrass',
  'tall_grass',
  'large_fern',
  'tall_seagrass',
  'vine',
  'fire',
  'soul_fire',
  'snow',
  'crimson_roots',
  'warped_roots',
  'nether_sprouts',
  'structure_void',
  'bubble_column',
]);

/** Properties of the states of a registry, shared by all worlds of a process. */
const KNOWN = new WeakMap();

/**
 * Returns the values of a state's properties: numbers, booleans or words, by name. minecraft-data
 * has some numbers (layers, pickles) as words.
 */
function decode(def, stateId) {
  const props = {};
  let rest = stateId - def.minStateId;
  const states = def.states || [];
  for (let i = states.length - 1; i >= 0; i--) {
    const { name, type, num_values: count, values } = states[i];
    const index = rest % count;
    rest = Math.floor(rest / count);
    if (type === 'bool') props[name] = index === 0;
    else if (!values) props[name] = index;
    else props[name] = /^\d+$/.test(values[index]) ? Number(values[index]) : values[index];
  }
  return props;
}

/** Returns the state id of `def` with `props`; a property not given keeps its default. */
function encode(def, props) {
  const all = { ...decode(def, def.defaultState ?? def.minStateId), ...props };
  let state = 0;
  for (const { name, type, num_values: count, values } of def.states || []) {
    let index;
    if (type === 'bool') index = all[name] ? 0 : 1;
    else if (values) index = values.map(String).indexOf(String(all[name]));
    else index = all[name];
    if (!(index >= 0 && index < count)) {
      throw new Error(`${def.name} has no state with ${name}=${all[name]}`);
    }
    state = state * count + index;
  }
  return def.minStateId + state;
}

function levelOf(name, props) {
  if (SUNKEN.has(name) || name === 'bubble_column') return 0;
  return props.level ?? 0;
}

/** The properties of a state that the mechanics use, computed once per state id. */
function describe(registry, stateId) {
  const def = registry.blocksByStateId[stateId] || registry.blocksByName.air;
  const props = decode(def, stateId);
  const table = registry.blockCollisionShapes;
  const ids = table.blocks[def.name];
  const shape = Array.isArray(ids) ? ids[stateId - def.minStateId] : ids;
  const boxes = table.shapes[shape] || [];
  const water =
    def.name === 'water' ||
    SUNKEN.has(def.name) ||
    def.name === 'bubble_column' ||
    props.waterlogged === true;
  const full = boxes.length === 1 && boxes[0].every((v, i) => v === (i < 3 ? 0 : 1));
  return {
    stateId,
    id: def.id,
    name: def.name,
    def,
    props,
    boxes,
    full,
    water,
    lava: def.name === 'lava',
    liquid: LIQUIDS.has(def.name),
    level: water || def.name === 'lava' ? levelOf(def.name, props) : 0,
    // Glass and leaves are full cubes, but do not suffocate.
    suffocates:
      full && !/glass|leaves|ice$|barrier|glowstone|sea_lantern|slime|honey/.test(def.name),
    replaceable: REPLACEABLE.has(def.name) && !(def.name === 'snow' && props.layers > 1),
    plate: def.name.endsWith('_pressure_plate'),
    air: def.name === 'air' || def.name === 'cave_air' || def.name === 'void_air',
  };
}

/**
 * The blocks of a server's overworld.
 *
 * `onChange(fn)` registers `fn(x, y, z, oldInfo, newInfo)`, called after every write in the order
 * of registration; a write inside such a call is allowed and nests.
 */
class Blocks {
  constructor(serv) {
    this.serv = serv;
    this.registry = serv.registry;
    if (!KNOWN.has(serv.registry)) KNOWN.set(serv.registry, []);
    this.infos = KNOWN.get(serv.registry);
    this.listeners = [];
    this.scratch = { x: 0, y: 0, z: 0 };
  }

  /** Returns what is known of a state id (see `describe`). */
  info(stateId) {
    return (this.infos[stateId] ??= describe(this.registry, stateId));
  }

  loaded(x, z) {
    return Boolean(this.serv.overworld.getLoadedColumn(Math.floor(x) >> 4, Math.floor(z) >> 4));
  }

  /**
   * Returns the state id at whole or broken coordinates; 0 outside the world and in unloaded
   * chunks.
   */
  stateAt(x, y, z) {
    const by = Math.floor(y);
    if (by < 0 || by > 255) return 0;
    const bx = Math.floor(x);
    const bz = Math.floor(z);
    const column = this.serv.overworld.getLoadedColumn(bx >> 4, bz >> 4);
    if (!column) return 0;
    this.scratch.x = bx & 15;
    this.scratch.y = by;
    this.scratch.z = bz & 15;
    return column.getBlockStateId(this.scratch);
  }

  at(x, y, z) {
    return this.info(this.stateAt(x, y, z));
  }

  /** Returns the prismarine block at a position, for its `digTime` and `canHarvest`. */
  blockAt(x, y, z) {
    return this.serv.overworld.sync.getBlock(new Vec3(Math.floor(x), Math.floor(y), Math.floor(z)));
  }

  /** Returns the id of a named block's state with the properties given. */
  state(name, props = {}) {
    const def = this.registry.blocksByName[name];
    if (!def) throw new Error(`no block is called ${name}`);
    return encode(def, props);
  }

  /** Returns the id of the state `info` has once `props` are changed. */
  changed(info, props) {
    return encode(info.def, { ...info.props, ...props });
  }

  onChange(listener) {
    this.listeners.push(listener);
  }

  /** Listens to every write (`serv.setBlock` emits 'gamut:block'). */
  listen() {
    this.serv.on('gamut:block', ({ position, before, after }) => {
      if (before === after) return;
      const old = this.info(before);
      const now = this.info(after);
      for (const listener of this.listeners) listener(position.x, position.y, position.z, old, now);
    });
  }

  /** Writes a state, informs the players that have the chunk and then the listeners. */
  set(x, y, z, stateId) {
    if (this.stateAt(x, y, z) === stateId && this.loaded(x, z)) return;
    this.serv.setBlock(this.serv.overworld, new Vec3(x, y, z), stateId);
  }

  setNamed(x, y, z, name, props) {
    this.set(x, y, z, this.state(name, props));
  }

  /** Sends the actual block at a position to one player. */
  resend(player, x, y, z) {
    const location = new Vec3(x, y, z);
    player._client.write('block_change', { location, type: this.stateAt(x, y, z) });
  }

  /** Returns the height of the liquid's surface in a block, 0 to 1; 0 without liquid. */
  surface(x, y, z, kind) {
    const here = this.at(x, y, z);
    if (!here[kind]) return 0;
    if (this.at(x, y + 1, z)[kind]) return 1;
    return (here.level >= 8 ? 8 : 8 - here.level) / 9;
  }
}

module.exports = { Blocks, FACES, FACE_NAMES, decode, encode };

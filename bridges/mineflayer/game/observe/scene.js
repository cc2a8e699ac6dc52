'use strict';

/**
 * The data from which the ray-caster draws a bot's view: blocks, sky light, biomes, bodies.
 *
 * Blocks are sent as numbers of *appearances*: block states that look the same share one. The table
 * of appearances is sent once (`sceneTable`), a box of blocks when the bot has moved away from the
 * middle of the last one, and single changes in between. All is read from the bot's own world, so
 * it is what its client knows, embedded or remote.
 */

const { boxesOf, countStates, lightTables, propertiesOf, rangeOf } = require('../generator/blocks');

/** Half the sides of the box of blocks, x, y, z, in blocks. */
const REACH = [40, 24, 40];
/**
 * The box depends on the cell of so many blocks that contains the eye: on the bot's position, not
 * on its path, so that a restored world has the same picture.
 */
const CELL = 8;
const MOST_CHANGES = 400;
const MOST_BODIES = 48;
const BODY_REACH = 44;
/** Properties that affect the look of a block beyond its boxes. */
const SHOWN = new Set([
  'age', 'axis', 'face', 'facing', 'half', 'hanging', 'layers', 'level', 'lit', 'moisture', 'open', 'part',
  'snowy', 'stage',
]);
/** Blocks that differ in their boxes only. */
const BY_BOXES = new RegExp([
  'stairs|slab|wall$|fence|pane|trapdoor|anvil|hopper|_rod$|bars$|bell|lectern|grindstone',
  'rail$|note_block|repeater|comparator|cocoa|campfire|beehive|bee_nest|glazed|shulker',
  'stonecutter',
].join('|'));
const BABY = 2;
const SNEAKING = 4;

const tables = new Map();

function shown(block, stateId) {
  if (!block.states || BY_BOXES.test(block.name)) return {};
  const all = propertiesOf(block, stateId);
  const some = {};
  for (const key of Object.keys(all).sort()) if (SHOWN.has(key)) some[key] = all[key];
  return some;
}

/** Returns {appearances, byState, opaque} of a version of the game; made once. */
function looksOf(registry) {
  const version = registry.version.minecraftVersion;
  if (tables.has(version)) return tables.get(version);
  const size = countStates(registry);
  const looks = { appearances: [['air', [], {}, 0, 1]], byState: new Uint16Array(size), opaque: new Uint8Array(size) };
  const { emission, opacity } = lightTables(registry);
  const numbers = new Map();
  for (const block of registry.blocksArray) {
    if (/^(cave_|void_)?air$/.test(block.name)) continue;
    const [first, last] = rangeOf(block);
    for (let id = first; id <= last; id++) {
      const look = [block.name, boxesOf(registry, block, id), shown(block, id), emission[id], opacity[id]];
      const key = JSON.stringify(look);
      if (!numbers.has(key)) numbers.set(key, looks.appearances.push(look) - 1);
      looks.byState[id] = numbers.get(key);
      looks.opaque[id] = opacity[id] === 15 || /leaves$|^water$|^lava$|^ice$/.test(block.name) ? 1 : 0;
    }
  }
  tables.set(version, looks);
  return looks;
}

/**
 * Returns the meaning of the numbers in scenes, to be sent once, with `hello`.
 *
 * `appearances`: [name, boxes [[x0, y0, z0, x1, y1, z1]] of collision, {property: value}, light given,
 * light taken (15: all)] by number, 0 is air; `entities`: [name, width, height in blocks] by kind; `items`: names by number; `biomes`:
 * names by number. Gaps are null.
 */
function sceneTable(registry) {
  const list = (array, entry) => {
    const made = [];
    for (const each of array) made[each.id] = entry(each);
    return Array.from(made, (each) => (each === undefined ? null : each));
  };
  return {
    appearances: looksOf(registry).appearances,
    entities: list(registry.entitiesArray, (each) => [each.name, each.width, each.height]),
    items: list(registry.itemsArray, (each) => each.name),
    biomes: list(registry.biomesArray, (each) => each.name),
  };
}

/** Writes the appearances of a section into a box; both in world coordinates. */
function readSection(section, x0, y0, z0, box, byState) {
  const { data, palette } = section;
  const [ox, oy, oz] = box.origin;
  const [sx, sy, sz] = box.size;
  const looks = palette === null ? byState : Uint16Array.from(palette, (state) => byState[state]);
  if (palette !== null && looks.every((look) => look === 0)) return;
  const bits = data.bitsPerValue;
  const perLong = Math.floor(64 / bits);
  const mask = (1 << bits) - 1;
  const { data: words } = data;
  const xa = Math.max(ox - x0, 0);
  const xb = Math.min(ox + sx - x0, 16);
  for (let y = Math.max(oy - y0, 0); y < Math.min(oy + sy - y0, 16); y++) {
    for (let z = Math.max(oz - z0, 0); z < Math.min(oz + sz - z0, 16); z++) {
      let out = ((x0 + xa - ox) * sz + z0 + z - oz) * sy + y0 + y - oy;
      for (let i = (y << 8) | (z << 4) | xa, end = i - xa + xb; i < end; i++, out += sz * sy) {
        const long = Math.floor(i / perLong);
        const shift = (i - long * perLong) * bits;
        let value = shift >= 32 ? words[2 * long + 1] >>> (shift - 32) : words[2 * long] >>> shift;
        if (shift < 32 && shift + bits > 32) value |= words[2 * long + 1] << (32 - shift);
        box.cells[out] = looks[value & mask];
      }
    }
  }
}

/** The same through the column's own methods, for versions with another internal format. */
function readSlowly(column, x0, z0, box, byState) {
  const [ox, oy, oz] = box.origin;
  const [sx, sy, sz] = box.size;
  const at = { x: 0, y: 0, z: 0 };
  for (let x = Math.max(ox, x0); x < Math.min(ox + sx, x0 + 16); x++) {
    for (let z = Math.max(oz, z0); z < Math.min(oz + sz, z0 + 16); z++) {
      at.x = x & 15;
      at.z = z & 15;
      const base = ((x - ox) * sz + z - oz) * sy - oy;
      for (at.y = oy; at.y < oy + sy; at.y++) box.cells[base + at.y] = byState[column.getBlockStateId(at)] || 0;
    }
  }
}

/** Whether a column keeps its blocks as 1.16 does, so that they can be read from its words. */
function isPlain({ sections }) {
  return Array.isArray(sections) && sections.length === 16 && sections.every((section) => section === null ||
    (section.data && section.data.valuesPerLong !== undefined && section.palette !== undefined));
}

/** A client's view of one column of chunks: the highest block that stops sky light, by z << 4 | x. */
function heightsOf(column, opaque, lowest, highest) {
  const heights = new Int16Array(256).fill(lowest - 1);
  const at = { x: 0, y: 0, z: 0 };
  const sections = isPlain(column) ? column.sections : null;
  for (let cell = 0; cell < 256; cell++) {
    at.x = cell & 15;
    at.z = cell >> 4;
    for (at.y = highest - 1; at.y >= lowest; at.y--) {
      if (sections !== null && sections[at.y >> 4] === null) at.y &= ~15;
      else if (opaque[column.getBlockStateId(at)] === 1) {
        heights[cell] = at.y;
        break;
      }
    }
  }
  return heights;
}

class SceneFeed {
  /**
   * Follows one bot. Call `update()` after each step and send its result; `reset()` when the
   * receiver starts again; `close()` when the bot leaves.
   */
  constructor(bot, { reach = REACH } = {}) {
    this.bot = bot;
    this.reach = reach;
    this.size = reach.map((half) => 2 * half);
    this.looks = looksOf(bot.registry);
    this.heights = new Map();
    this.listeners = {
      blockUpdate: (before, after) => this.changed(after),
      chunkColumnLoad: (corner) => this.moved(corner),
      chunkColumnUnload: (corner) => this.moved(corner),
    };
    for (const [event, listener] of Object.entries(this.listeners)) bot.on(event, listener);
    this.reset();
  }

  /** Makes the next update a complete one. */
  reset() {
    this.origin = null;
    this.changes = [];
    this.heights.clear();
  }

  close() {
    for (const [event, listener] of Object.entries(this.listeners)) this.bot.off(event, listener);
    this.heights.clear();
  }

  inside(x, y, z) {
    const { origin, size } = this;
    return origin !== null && x >= origin[0] && x < origin[0] + size[0] && y >= origin[1] &&
      y < origin[1] + size[1] && z >= origin[2] && z < origin[2] + size[2];
  }

  changed(block) {
    if (!block || !block.position) return;
    const { x, y, z } = block.position;
    const heights = this.heights.get(`${x >> 4},${z >> 4}`);
    let risen = false;
    if (heights !== undefined) {
      const cell = ((z & 15) << 4) | (x & 15);
      const before = heights[cell];
      if (this.looks.opaque[block.stateId] === 1) heights[cell] = Math.max(before, y);
      else if (y === before) heights[cell] = this.below(x, y - 1, z);
      risen = heights[cell] !== before;
    }
    if (this.origin === null) return; // the pending box will contain it
    if (this.inside(x, y, z)) this.changes.push(x, y, z);
    else if (risen && this.inside(x, this.origin[1], z)) this.origin = null;
  }

  /** Returns the height of the highest block from y down that stops the sky. */
  below(x, y, z) {
    const column = this.bot.world.getColumn(x >> 4, z >> 4);
    const at = { x: x & 15, y, z: z & 15 };
    const lowest = column.minY || 0;
    while (at.y >= lowest && this.looks.opaque[column.getBlockStateId(at)] !== 1) at.y--;
    return at.y;
  }

  /** A column of chunks was loaded or unloaded. */
  moved(corner) {
    this.heights.delete(`${corner.x >> 4},${corner.z >> 4}`);
    const { origin, size } = this;
    if (origin === null) return;
    const apart = corner.x + 16 <= origin[0] || corner.x >= origin[0] + size[0] ||
      corner.z + 16 <= origin[2] || corner.z >= origin[2] + size[2];
    if (!apart) this.origin = null;
  }

  /** Returns the box of blocks around a point, and makes it the base of later changes. */
  box(x, y, z) {
    const [rx, ry, rz] = this.reach;
    const [sx, , sz] = this.size;
    this.origin = [cornerOf(x, rx), cornerOf(y, ry), cornerOf(z, rz)];
    this.changes = [];
    const box = { origin: this.origin, size: this.size, cells: new Uint16Array(sx * sz * this.size[1]) };
    const heights = new Int16Array(sx * sz).fill(-1);
    const biomes = new Uint8Array(sx * sz);
    const [ox, , oz] = this.origin;
    for (let cx = ox >> 4; cx <= (ox + sx - 1) >> 4; cx++) {
      for (let cz = oz >> 4; cz <= (oz + sz - 1) >> 4; cz++) {
        const column = this.bot.world.getColumn(cx, cz);
        if (column) this.readColumn(column, cx, cz, box, heights, biomes);
      }
    }
    return { origin: box.origin, size: box.size, blocks: bytes(box.cells), heights: bytes(heights), biomes: bytes(biomes) };
  }

  readColumn(column, cx, cz, box, heights, biomes) {
    const [ox, oy, oz] = box.origin;
    const [sx, sy, sz] = box.size;
    const { byState, opaque } = this.looks;
    if (!isPlain(column)) readSlowly(column, cx * 16, cz * 16, box, byState);
    else {
      column.sections.forEach((section, n) => {
        if (section !== null && n * 16 + 16 > oy && n * 16 < oy + sy) readSection(section, cx * 16, n * 16, cz * 16, box, byState);
      });
    }
    const key = `${cx},${cz}`;
    const lowest = column.minY || 0;
    if (!this.heights.has(key)) this.heights.set(key, heightsOf(column, opaque, lowest, lowest + (column.worldHeight || 256)));
    const known = this.heights.get(key);
    const at = { x: 0, y: Math.max(oy + (sy >> 1), lowest), z: 0 };
    for (let cell = 0; cell < 256; cell++) {
      const x = cx * 16 + (cell & 15) - ox;
      const z = cz * 16 + (cell >> 4) - oz;
      if (x < 0 || x >= sx || z < 0 || z >= sz) continue;
      at.x = cell & 15;
      at.z = cell >> 4;
      heights[x * sz + z] = known[cell];
      biomes[x * sz + z] = column.getBiome(at) & 255;
    }
  }

  /** Returns rows of x, y, z, appearance, height of the column, for the blocks that changed. */
  listChanges() {
    const count = this.changes.length / 3;
    const rows = new Int32Array(count * 5);
    for (let n = 0; n < count; n++) {
      const [x, y, z] = this.changes.slice(3 * n, 3 * n + 3);
      const column = this.bot.world.getColumn(x >> 4, z >> 4);
      const state = column ? column.getBlockStateId({ x: x & 15, y, z: z & 15 }) : 0;
      const heights = this.heights.get(`${x >> 4},${z >> 4}`);
      rows.set([x, y, z, this.looks.byState[state] || 0, heights ? heights[((z & 15) << 4) | (x & 15)] : -1], 5 * n);
    }
    this.changes = [];
    return bytes(rows);
  }

  /**
   * Returns the scene as a plain map of numbers and Buffers (little-endian).
   *
   * `eye` [x, y, z]; `yaw`, `pitch` in radians as mineflayer has them (the look is -sin yaw, sin pitch,
   * -cos yaw); `time` 0 to 23999; `rain`, `thunder` 0 to 1;
   * `box`, null or {origin, size, blocks uint16 [x][z][y], heights int16 [x][z], biomes uint8 [x][z]};
   * `changes`, int32 rows of x, y, z, appearance, height; `bodies`, float32 rows of kind, x, y, z from
   * the eye, yaw, head's yaw, variant, flags (2 young, 4 sneaking), nearest first.
   */
  update() {
    const { bot } = this;
    const { position, yaw, pitch } = bot.entity;
    const eye = [position.x, position.y + eyeHeight(bot), position.z];
    const far = this.origin === null || eye.some((at, n) => this.origin[n] !== cornerOf(at, this.reach[n]));
    const whole = far || this.changes.length > 3 * MOST_CHANGES;
    return {
      eye,
      yaw,
      pitch,
      time: bot.time.timeOfDay || 0,
      rain: bot.rainState || 0,
      thunder: bot.thunderState || 0,
      box: whole ? this.box(...eye) : null,
      changes: this.listChanges(),
      bodies: this.bodies(eye),
    };
  }

  bodies(eye) {
    const near = [];
    for (const entity of Object.values(this.bot.entities)) {
      if (entity === this.bot.entity || !entity.position || entity.isValid === false) continue;
      const { x, y, z } = entity.position;
      const away = (x - eye[0]) ** 2 + (y - eye[1]) ** 2 + (z - eye[2]) ** 2;
      if (away < BODY_REACH ** 2) near.push([away, entity]);
    }
    near.sort((a, b) => a[0] - b[0] || a[1].id - b[1].id);
    const count = Math.min(near.length, MOST_BODIES);
    const rows = new Float32Array(count * 8);
    for (let n = 0; n < count; n++) rows.set(bodyRow(this.bot, near[n][1], eye), 8 * n);
    return bytes(rows);
  }
}

/** Returns the lowest block, along one axis, of the box for an eye. */
function cornerOf(eye, reach) {
  return Math.floor(eye / CELL) * CELL + CELL / 2 - reach;
}

function bodyRow(bot, entity, eye) {
  const { x, y, z } = entity.position;
  const kind = bot.registry.entitiesByName[entity.name];
  const number = kind ? kind.id : -1;
  const head = entity.headYaw === undefined ? entity.yaw : entity.headYaw;
  return [number, x - eye[0], y - eye[1], z - eye[2], entity.yaw, head, variantOf(entity), flagsOf(entity)];
}

/** Returns what distinguishes bodies of a kind: item, wool, or a hash of a player's name. */
function variantOf(entity) {
  if (entity.name === 'item') {
    const item = entity.getDroppedItem();
    return item ? item.type : 0;
  }
  // Metadata 16 of a sheep is its colour, and 16 when it is shorn (protocol 1.14 to 1.16).
  if (entity.name === 'sheep') return entity.metadata[16] || 0;
  if (entity.name !== 'player') return 0;
  let sum = 0;
  for (const letter of entity.username || '') sum = (sum * 31 + letter.charCodeAt(0)) % 4096;
  return sum;
}

function flagsOf(entity) {
  const state = typeof entity.metadata[0] === 'number' ? entity.metadata[0] : 0;
  const young = entity.metadata[15] === true || (entity.name === 'zombie' && entity.metadata[16] === true);
  return (young ? BABY : 0) | (state & 2 ? SNEAKING : 0);
}

function eyeHeight(bot) {
  if (bot.isSleeping) return 0.2;
  return bot.controlState && bot.controlState.sneak ? 1.27 : 1.62;
}

function bytes(array) {
  return Buffer.from(array.buffer, array.byteOffset, array.byteLength);
}

module.exports = { REACH, SceneFeed, sceneTable };

'use strict';

/**
 * Maps: an empty one that is used becomes a filled one, which shows the ground around its holders as
 * they walk, as far as it is loaded (Minecraft Wiki, "Map" and "Map item format", Java Edition 1.16).
 * The colours of blocks are a table, map_colours.json. A map has 128 x 128 cells of a byte, four
 * times the number of a colour and its shade, 0 to 2; 0 is unexplored.
 *
 * `serv.survival.maps.get(id)` is `{id, scale, x, z (its middle), colours}`.
 *
 * Maps are not zoomed out, copied or locked.
 */

const { rows: COLOURS } = require('./map_colours.json');
const { OFF_HAND } = require('./inventory');

const name = 'maps';
const SIDE = 128; // cells
const PART = 64; // cells of a side of what a packet shows
const TOLD = 5; // ticks between packets
const GIVEN_SCALE = 3; // of filled maps that no player has drawn
const EDGE = 63; // steps of half a cell from the middle to the edge, for the pointer
const WATER = 12;
const STONE = 11;
const DIRT = 10;
const POINTER = 0;
const POINTER_OUTSIDE = 6;

const KNOWN = new WeakMap();

/** Returns the colours of block states by their numbers. */
function coloursOf(blocks) {
  const { registry } = blocks;
  if (KNOWN.has(registry)) return KNOWN.get(registry);
  const patterns = COLOURS.map(([colour, pattern]) => [colour, new RegExp(`^(${pattern})$`)]);
  const found = [];
  for (const block of registry.blocksArray) {
    const row = patterns.find(([, pattern]) => pattern.test(block.name));
    for (let state = block.minStateId; state <= block.maxStateId; state++) {
      const info = blocks.info(state);
      const own = row ? row[0] : info.full ? STONE : 0;
      found[state] = info.water && !info.full ? WATER : own;
    }
  }
  KNOWN.set(registry, found);
  return found;
}

/** The highest block with a colour in each place, computed once per column of chunks and after changes. */
class Tops {
  constructor(blocks) {
    this.blocks = blocks;
    this.colours = coloursOf(blocks);
    this.known = new Map();
    blocks.onChange((x, y, z) => {
      const tops = this.known.get(`${x >> 4},${z >> 4}`);
      if (tops) tops[((z & 15) << 4) | (x & 15)] = this.top(x, z);
    });
  }

  top(x, z) {
    const column = this.blocks.serv.overworld.getLoadedColumn(x >> 4, z >> 4);
    const at = { x: x & 15, y: 255, z: z & 15 };
    for (; at.y >= 0; at.y--) {
      if (column.sections?.[at.y >> 4] === null) at.y &= ~15;
      else if (this.colours[column.getBlockStateId(at)] !== 0) return at.y;
    }
    return -1;
  }

  /** Returns the heights of a column of chunks by z << 4 | x; null where it is not loaded. */
  of(chunkX, chunkZ) {
    const key = `${chunkX},${chunkZ}`;
    if (!this.blocks.loaded(chunkX * 16, chunkZ * 16)) return null;
    if (!this.known.has(key)) {
      const tops = Int16Array.from({ length: 256 }, (_, cell) =>
        this.top(chunkX * 16 + (cell & 15), chunkZ * 16 + (cell >> 4)));
      this.known.set(key, tops);
    }
    return this.known.get(key);
  }
}

class Maps {
  constructor(serv) {
    this.serv = serv;
    this.list = new Map();
    this.tops = null; // made when the first map is drawn
  }

  get(id) {
    return this.list.get(id);
  }

  /** Makes a map whose square contains a place. */
  make({ x, z }, scale) {
    const width = SIDE << scale;
    const middle = (v) => Math.floor((v + 64) / width) * width + width / 2 - 64;
    const map = {
      id: this.list.size, scale, x: middle(x), z: middle(z), colours: new Uint8Array(SIDE * SIDE),
      steps: new Map(), changed: new Map(),
    };
    this.list.set(map.id, map);
    return map;
  }

  /** Returns the item of a map. */
  itemOf({ id }) {
    const value = { map: { type: 'int', value: id } };
    return this.serv.survival.items.make('filled_map', 1, { type: 'compound', name: '', value });
  }

  /** Returns the map of a stack; one that was given without is made. */
  of(player, slot) {
    const stack = player.inventory.slots[slot];
    const known = this.list.get(stack.nbt?.value.map?.value);
    if (known) return known;
    const map = this.make(this.serv.spawnOf(0), GIVEN_SCALE);
    player.setSlot(slot, this.itemOf(map));
    return map;
  }

  tick() {
    const held = this.serv.players.filter((player) => player.joined).flatMap((player) =>
      [player.heldSlot(), OFF_HAND]
        .filter((slot) => player.inventory.slots[slot]?.name === 'filled_map')
        .map((slot) => [this.of(player, slot), player]));
    for (const [map, player] of held) this.draw(map, player);
    if (this.serv.survival.tick % TOLD === 0) for (const [map, player] of held) this.tell(map, player);
  }

  /** Draws a sixteenth of the cells around a player: every sixteenth row from north to south. */
  draw(map, player) {
    const { survival } = this.serv;
    this.tops ??= new Tops(survival.blocks);
    const width = 1 << map.scale;
    const roofed = survival.dimensionOf(player.position) === 'the_nether';
    const reach = SIDE / width / (roofed ? 2 : 1);
    const step = (map.steps.get(player.username) ?? 0) + 1;
    map.steps.set(player.username, step);
    const own = (v, middle) => Math.floor((v - middle) / width) + SIDE / 2;
    const [px, pz] = [own(player.position.x, map.x), own(player.position.z, map.z)];
    for (let i = Math.max(0, px - reach + 1); i < Math.min(SIDE, px + reach); i++) {
      if ((i & 15) !== (step & 15)) continue;
      let before = 0;
      for (let j = Math.max(-1, pz - reach - 1); j < Math.min(SIDE, pz + reach); j++) {
        const cell = this.cell(map, i, j, roofed);
        if (cell === null) continue;
        const { height, colour, depth } = cell;
        const mixed = (i + j) & 1;
        const rise = ((height - before) * 4) / (width + 4) + (mixed - 0.5) * 0.4;
        before = height;
        const apart = (i - px) ** 2 + (j - pz) ** 2;
        const outer = apart > (reach - 2) ** 2;
        if (j < 0 || apart >= reach ** 2 || (outer && mixed === 0)) continue;
        const wet = depth * 0.1 + mixed * 0.2;
        const shade = colour === WATER ? (wet < 0.5 ? 2 : wet > 0.9 ? 0 : 1) : rise > 0.6 ? 2 : rise < -0.6 ? 0 : 1;
        this.set(map, i, j, colour * 4 + shade);
      }
    }
  }

  /** Returns what is in a cell: its mean height and depth of water, and its most frequent colour. */
  cell(map, i, j, roofed) {
    const width = 1 << map.scale;
    const x0 = map.x + (i - SIDE / 2) * width;
    const z0 = map.z + (j - SIDE / 2) * width;
    const tops = this.tops.of(x0 >> 4, z0 >> 4);
    if (tops === null) return null;
    if (roofed) {
      const noise = (x0 + Math.imul(z0, 231871)) | 0;
      const drawn = (Math.imul(Math.imul(noise, noise), 31287121) + Math.imul(noise, 11)) | 0;
      return { height: 100, depth: 0, colour: (drawn >> 20) & 1 ? STONE : DIRT };
    }
    const counts = new Map();
    let [height, depth] = [0, 0];
    for (let x = x0; x < x0 + width; x++) {
      for (let z = z0; z < z0 + width; z++) {
        const y = Math.max(0, tops[((z & 15) << 4) | (x & 15)]);
        const colour = this.tops.colours[this.serv.survival.blocks.stateAt(x, y, z)];
        if (colour === WATER) depth += this.depth(x, y, z);
        height += y;
        counts.set(colour, (counts.get(colour) ?? 0) + 1);
      }
    }
    const most = Math.max(...counts.values());
    const colour = [...counts.keys()].find((each) => counts.get(each) === most);
    return { height: height / width ** 2, depth: depth / width ** 2, colour };
  }

  depth(x, y, z) {
    let deep = 1;
    while (y - deep > 0 && this.serv.survival.blocks.at(x, y - deep, z).water) deep++;
    return deep;
  }

  set(map, i, j, value) {
    if (map.colours[j * SIDE + i] === value) return;
    map.colours[j * SIDE + i] = value;
    const part = Math.floor(j / PART) * 2 + Math.floor(i / PART);
    map.changed.set(part, this.serv.survival.tick);
  }

  /** Sends a holder the quarters of a map that have changed since it was told, and where it is. */
  tell(map, player) {
    const { tick } = this.serv.survival;
    const last = player.mapsTold.get(map.id) ?? -1;
    player.mapsTold.set(map.id, tick);
    const head = { itemDamage: map.id, scale: map.scale, trackingPosition: true, locked: false, icons: pointers(map, player) };
    const changed = [...map.changed].filter(([, at]) => at > last);
    if (changed.length === 0) player._client.write('map', { ...head, columns: 0 });
    for (const [part] of changed) {
      const [x, y] = [(part % 2) * PART, (part >> 1) * PART];
      const data = Buffer.alloc(PART * PART);
      for (let row = 0; row < PART; row++) {
        const from = (y + row) * SIDE + x;
        data.set(map.colours.subarray(from, from + PART), row * PART);
      }
      player._client.write('map', { ...head, columns: PART, rows: PART, x, y, data });
    }
  }
}

/** Returns the pointer of a player on a map: in its place, at the edge nearby, or none. */
function pointers(map, { position, facing }) {
  const half = (v, middle) => ((v - middle) / (1 << map.scale)) * 2;
  const [x, z] = [half(position.x, map.x), half(position.z, map.z)];
  const far = Math.max(Math.abs(x), Math.abs(z));
  if (far >= 2 * EDGE * 320 / SIDE) return [];
  const outside = far > 2 * EDGE;
  const at = (v) => Math.max(-128, Math.min(127, Math.round(v)));
  const direction = outside ? 0 : Math.round((facing.yaw / (2 * Math.PI)) * 16) & 15;
  return [{ type: outside ? POINTER_OUTSIDE : POINTER, x: at(x), z: at(z), direction }];
}

function open(serv, { player, slot }) {
  const { maps } = serv.survival;
  const map = maps.make(player.position, 0);
  const item = maps.itemOf(map);
  if (player.gameMode === 1) serv.survival.giveOrToss(player, item);
  else serv.survival.exchange(player, slot, item);
  serv.emit('gamut:mapped', { player, item: 'map' });
}

function server(serv) {
  const { survival } = serv;
  survival.maps = new Maps(serv);
  survival.onUseItem('map', (call) => open(serv, call));
  survival.onTick(() => survival.maps.tick());
}

function player(player) {
  player.mapsTold = new Map();
}

function save(serv) {
  return [...serv.survival.maps.list.values()].map(({ scale, x, z, colours, steps }) => ({
    scale, x, z, colours: Buffer.from(colours).toString('base64'), steps: [...steps],
  }));
}

function load(serv, data) {
  const { maps } = serv.survival;
  maps.list.clear();
  for (const { scale, x, z, colours, steps } of data ?? []) {
    const map = maps.make({ x, z }, scale);
    map.colours.set(Buffer.from(colours, 'base64'));
    map.steps = new Map(steps);
    for (let part = 0; part < 4; part++) map.changed.set(part, serv.survival.tick);
  }
}

module.exports = { name, server, player, save, load };

'use strict';

/**
 * Paths on the ground: A* over the cells a body can stand in, with a limit on visited cells. Steps
 * go to the eight neighbours, one block up or a few down. A body takes up as many cells each way as
 * its width and height need, as in the game; x and z of a path are those of the cell of its lowest
 * corner. If the goal cannot be reached the path leads to the nearest reachable cell.
 */

const OPEN = 0; // no obstacle
const LOW = 1; // slabs, carpets: one stands inside the cell
const SOLID = 2; // one stands on it
const TALL = 3; // fences and walls: neither through nor over
const WATER = 4;
const DANGER = 5;
const DANGERS = new Set([
  'lava',
  'fire',
  'soul_fire',
  'cactus',
  'magma_block',
  'sweet_berry_bush',
  'campfire',
  'soul_campfire',
  'wither_rose',
]);
const WATER_COST = 8;
const DROP = 3;
const SPAN = 64; // blocks from the start that a way may lead
const SIDES = [
  [1, 0],
  [-1, 0],
  [0, 1],
  [0, -1],
];
/** Corners, each by the two sides it lies between: one along x, one along z. */
const CORNERS = [
  [0, 2],
  [0, 3],
  [1, 2],
  [1, 3],
];

function classify(info) {
  if (DANGERS.has(info.name)) return DANGER;
  if (info.water) return WATER;
  let top = 0;
  for (const box of info.boxes) top = Math.max(top, box[4]);
  if (info.boxes.length === 0 || (info.props.open === true && /door$|gate$/.test(info.name)))
    return OPEN;
  if (top > 1) return TALL;
  return top <= 0.5 ? LOW : SOLID;
}

/** The cells of a world as a walker sees them; one search at a time. */
class Ground {
  constructor(blocks) {
    this.blocks = blocks;
    this.kinds = [];
    /** Cells that a body is wide: those from x and z on. */
    this.size = 1;
    /** Blocks down that a walker dares to jump. */
    this.drop = DROP;
    this.column = null;
    this.cx = NaN;
    this.cz = NaN;
    this.spot = { x: 0, y: 0, z: 0 };
  }

  /** Clears the cached column: worlds may have replaced it since the last search. */
  begin() {
    this.cx = NaN;
  }

  kind(x, y, z) {
    if (y < 0 || y > 255) return OPEN;
    if (x >> 4 !== this.cx || z >> 4 !== this.cz) {
      this.cx = x >> 4;
      this.cz = z >> 4;
      this.column = this.blocks.serv.overworld.getLoadedColumn(this.cx, this.cz);
    }
    if (!this.column) return TALL;
    const { spot } = this;
    spot.x = x & 15;
    spot.y = y;
    spot.z = z & 15;
    const stateId = this.column.getBlockStateId(spot);
    if (stateId === 0) return OPEN;
    return (this.kinds[stateId] ??= classify(this.blocks.info(stateId)));
  }

  /** Whether a body of `height` cells fits in above a floor at y, `from` so many cells up. */
  room(x, y, z, height, from = 0) {
    const { size } = this;
    for (let dx = 0; dx < size; dx++) {
      for (let dz = 0; dz < size; dz++) {
        for (let i = from; i < height; i++) {
          const kind = this.kind(x + dx, y + i, z + dz);
          if (kind !== OPEN && kind !== WATER && !(i === 0 && kind === LOW)) return false;
        }
      }
    }
    return true;
  }

  /** `stand` for a body that is one cell wide, as most are. */
  standNarrow(x, y, z, height) {
    const here = this.kind(x, y, z);
    if (here !== OPEN && here !== WATER && here !== LOW) return -1;
    for (let i = 1; i < height; i++) {
      const kind = this.kind(x, y + i, z);
      if (kind !== OPEN && kind !== WATER) return -1;
    }
    if (here === WATER) return WATER_COST;
    const below = this.kind(x, y - 1, z);
    if (below === WATER) return WATER_COST;
    return below === SOLID || (here === LOW && below !== DANGER) ? 0 : -1;
  }

  /** Returns the extra cost of standing in a cell, or -1 if that cannot be. */
  stand(x, y, z, height) {
    const { size } = this;
    if (size === 1) return this.standNarrow(x, y, z, height);
    if (!this.room(x, y, z, height)) return -1;
    let held = false;
    for (let dx = 0; dx < size; dx++) {
      for (let dz = 0; dz < size; dz++) {
        const here = this.kind(x + dx, y, z + dz);
        if (here === WATER) return WATER_COST;
        const below = this.kind(x + dx, y - 1, z + dz);
        if (below === WATER) return WATER_COST;
        if (below === DANGER) return -1;
        held ||= here === LOW || below === SOLID;
      }
    }
    return held ? 0 : -1;
  }

  /** Returns the y of the step, up or down, at a side where one cannot stand at y, or -1. */
  landing(x, y, z, nx, nz, height) {
    if (!this.room(nx, y, nz, height)) {
      const free = this.room(x, y + 1, z, height, height - 1);
      return free && this.stand(nx, y + 1, nz, height) >= 0 ? y + 1 : -1;
    }
    for (let down = 1; down <= this.drop; down++) {
      if (this.stand(nx, y - down, nz, height) >= 0) return y - down;
      if (!this.room(nx, y - down, nz, height)) return -1;
    }
    return -1;
  }
}

/** A binary heap of cells by the estimated cost of a path through them. */
class Heap {
  constructor() {
    this.items = [];
  }

  push(item) {
    const { items } = this;
    let i = items.length;
    items.push(item);
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (items[parent].total <= item.total) break;
      items[i] = items[parent];
      i = parent;
    }
    items[i] = item;
  }

  pop() {
    const { items } = this;
    const top = items[0];
    const last = items.pop();
    if (items.length === 0) return top;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= items.length) break;
      if (child + 1 < items.length && items[child + 1].total < items[child].total) child++;
      if (items[child].total >= last.total) break;
      items[i] = items[child];
      i = child;
    }
    items[i] = last;
    return top;
  }
}

const away = (x, y, z, goal) => Math.hypot(x - goal.x, y - goal.y, z - goal.z);

const level = [0, 0, 0, 0];

/** Returns the neighbours of a cell as `[x, y, z, cost]`. */
function neighbours(ground, node, height) {
  const { x, y, z } = node;
  const found = [];
  for (let i = 0; i < 4; i++) {
    const nx = x + SIDES[i][0];
    const nz = z + SIDES[i][1];
    level[i] = ground.stand(nx, y, nz, height);
    if (level[i] >= 0) {
      found.push([nx, y, nz, 1 + level[i]]);
      continue;
    }
    const ny = ground.landing(x, y, z, nx, nz, height);
    if (ny < 0) continue;
    const extra = ground.stand(nx, ny, nz, height);
    found.push([nx, ny, nz, 1 + Math.abs(ny - y) * 0.5 + extra]);
  }
  for (const [alongX, alongZ] of CORNERS) {
    if (level[alongX] < 0 || level[alongZ] < 0) continue;
    const nx = x + SIDES[alongX][0];
    const nz = z + SIDES[alongZ][1];
    const extra = ground.stand(nx, y, nz, height);
    if (extra >= 0) found.push([nx, y, nz, Math.SQRT2 + extra]);
  }
  return found;
}

function retrace(node) {
  const steps = [];
  for (let at = node; at.from; at = at.from) steps.push(at.x, at.y, at.z);
  const path = [];
  for (let i = steps.length - 3; i >= 0; i -= 3) path.push(steps[i], steps[i + 1], steps[i + 2]);
  return path;
}

/** Returns how many cells wide a body is on its way; the middle of its cells is half of that on. */
const widthOf = (body) => Math.floor(body.width + 1);

/** Returns the cell a body at a place stands in, its feet on the ground. */
function footing(ground, position, height) {
  const corner = (ground.size - 1) / 2;
  const x = Math.floor(position.x - corner);
  const z = Math.floor(position.z - corner);
  let y = Math.floor(position.y + 0.01);
  if (ground.stand(x, y, z, height) < 0 && ground.stand(x, y + 1, z, height) >= 0) y++;
  for (
    let i = 0;
    i < 4 && ground.stand(x, y, z, height) < 0 && ground.kind(x, y - 1, z) === OPEN;
    i++
  )
    y--;
  return { x, y, z };
}

/**
 * Returns a way as flat whole numbers [x, y, z, x, y, z, ...], the start left out; empty if there
 * is none that leads nearer.
 *
 * @param {Ground} ground
 * @param {object} from, to places {x, y, z}; `body` {width, height} in blocks
 * @param {number} budget cells to look at, at most
 * @param {number} reach how near to the goal is near enough, in blocks
 * @param {number} drop blocks down that one step may lead
 */
function findPath(ground, from, to, body, budget, reach = 0, drop = DROP) {
  ground.begin();
  ground.drop = drop;
  ground.size = widthOf(body);
  const cells = Math.ceil(body.height);
  const start = footing(ground, from, cells);
  const goal = footing(ground, to, 1);
  const key = (x, y, z) => ((x - start.x + SPAN) * 256 + (z - start.z + SPAN)) * 256 + y;
  const first = { ...start, cost: 0, total: away(start.x, start.y, start.z, goal), from: null };
  const best = new Map([[key(start.x, start.y, start.z), 0]]);
  const heap = new Heap();
  heap.push(first);
  let nearest = first;
  let nearestAway = first.total;
  for (let looked = 0; looked < budget && heap.items.length > 0; looked++) {
    const node = heap.pop();
    const left = node.total - node.cost;
    if (left < nearestAway - 1e-9) {
      nearest = node;
      nearestAway = left;
    }
    if (left <= reach) break;
    if (node.cost > best.get(key(node.x, node.y, node.z))) continue;
    for (const [x, y, z, cost] of neighbours(ground, node, cells)) {
      if (Math.abs(x - start.x) >= SPAN || Math.abs(z - start.z) >= SPAN) continue;
      const total = node.cost + cost;
      const id = key(x, y, z);
      if (best.has(id) && best.get(id) <= total) continue;
      best.set(id, total);
      heap.push({ x, y, z, cost: total, total: total + away(x, y, z, goal), from: node });
    }
  }
  return retrace(nearest);
}

module.exports = { Ground, findPath, widthOf };

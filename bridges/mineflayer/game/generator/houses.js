'use strict';

/**
 * The buildings of villages: huts, a smithy, farms, a well, lamps. All designs are our own.
 *
 * A design is {name, wide, deep, tall, draw(pen, chance)}. Within it x runs from 0 to wide - 1 along
 * the front, z from 0 (the front, where the door is) to deep - 1, y from 0, the floor. The pen turns
 * it and its blocks' facings into the world.
 */

const { Chance } = require('./noise');

const TURNS = ['south', 'west', 'north', 'east'];
const BEDS = ['red', 'white', 'yellow', 'blue', 'green', 'orange'];
const CROPS = [['wheat', 7], ['carrots', 7], ['potatoes', 7], ['beetroots', 3]];

/** The materials of a biome's houses. */
function materials(wood, dry) {
  if (dry) {
    const smooth = 'smooth_sandstone';
    return { wall: 'sandstone', post: 'cut_sandstone', floor: smooth, roof: smooth, wood, base: 'sandstone', path: smooth };
  }
  const planks = `${wood}_planks`;
  return { wall: planks, post: `${wood}_log`, floor: planks, roof: planks, wood, base: 'cobblestone', path: 'grass_path' };
}

/** Draws in a design's own coordinates, rotated by `turn` quarters; the front faces `facing`. */
class Pen {
  constructor(canvas, states, box, chests) {
    Object.assign(this, { canvas, states, box, chests });
    this.m = materials(box.wood, box.dry);
  }

  /** Returns the world position of a position in the design. */
  place(x, y, z) {
    const { box } = this;
    const u = box.wide - 1 - x;
    const v = box.deep - 1 - z;
    switch (box.turn) {
      case 0: return [box.x + x, box.y + y, box.z + v];
      case 1: return [box.x + z, box.y + y, box.z + x];
      case 2: return [box.x + u, box.y + y, box.z + z];
      default: return [box.x + v, box.y + y, box.z + u];
    }
  }

  /** Returns the world's name of a direction of the design: 'front', 'back', 'left', 'right'. */
  side(name) {
    const quarter = { front: 0, left: 1, back: 2, right: 3 }[name];
    // A design that is not rotated has its front to the south.
    return TURNS[(this.box.turn + quarter) % 4];
  }

  put(x, y, z, name, properties) {
    const [wx, wy, wz] = this.place(x, y, z);
    if (this.canvas.holds(wx, wy, wz)) this.canvas.set(wx, wy, wz, this.states(name, properties));
  }

  fill(x0, y0, z0, x1, y1, z1, name, properties) {
    const state = this.states(name, properties);
    for (let y = y0; y <= y1; y++) {
      for (let z = z0; z <= z1; z++) {
        for (let x = x0; x <= x1; x++) {
          const [wx, wy, wz] = this.place(x, y, z);
          this.canvas.set(wx, wy, wz, state);
        }
      }
    }
  }

  door(x, y, z) {
    const facing = this.side('back');
    this.put(x, y, z, `${this.m.wood}_door`, { facing, half: 'lower', open: false });
    this.put(x, y + 1, z, `${this.m.wood}_door`, { facing, half: 'upper', open: false });
  }

  bed(x, y, z, colour) {
    const facing = this.side('back');
    this.put(x, y, z, `${colour}_bed`, { facing, part: 'foot' });
    this.put(x, y, z + 1, `${colour}_bed`, { facing, part: 'head' });
  }

  /** A chest that faces the front, with contents. */
  chest(x, y, z, items) {
    const [wx, wy, wz] = this.place(x, y, z);
    this.put(x, y, z, 'chest', { facing: this.side('front') });
    this.chests.push({ x: wx, y: wy, z: wz, items });
  }

  torch(x, y, z, from) {
    this.put(x, y, z, 'wall_torch', { facing: this.side(from) });
  }

  pane(x, y, z, along) {
    const properties = along === 'x'
      ? { [this.side('left')]: true, [this.side('right')]: true }
      : { [this.side('front')]: true, [this.side('back')]: true };
    this.put(x, y, z, 'glass_pane', properties);
  }
}

function someOf(chance, table) {
  return table
    .filter(([, share]) => chance.next() < share)
    .map(([name, , low, high]) => ({ name, count: chance.between(low, high) }));
}

const HOME = [
  ['bread', 0.7, 1, 4], ['apple', 0.6, 1, 3], ['wheat_seeds', 0.4, 2, 6],
  ['oak_sapling', 0.3, 1, 2], ['torch', 0.5, 2, 8], ['stick', 0.4, 2, 6], ['string', 0.3, 1, 3],
];
const SMITH = [
  ['iron_ingot', 0.8, 1, 5], ['gold_ingot', 0.3, 1, 3], ['diamond', 0.15, 1, 2],
  ['coal', 0.7, 2, 8], ['iron_pickaxe', 0.25, 1, 1], ['iron_sword', 0.25, 1, 1],
  ['bread', 0.5, 1, 3], ['iron_helmet', 0.2, 1, 1], ['obsidian', 0.2, 1, 4],
];

/** Draws floor, walls with posts at the corners, a stepped roof and a door in the middle. */
function shell(pen, wide, deep, tall) {
  const { m } = pen;
  pen.fill(0, 0, 0, wide - 1, 0, deep - 1, m.floor);
  pen.fill(0, 1, 0, wide - 1, tall, deep - 1, m.wall);
  pen.fill(1, 1, 1, wide - 2, tall, deep - 2, 'air');
  for (const x of [0, wide - 1]) for (const z of [0, deep - 1]) pen.fill(x, 1, z, x, tall, z, m.post);
  const middle = wide >> 1;
  for (let step = 0; step <= middle; step++) {
    const y = tall + 1 + step;
    pen.fill(step, y, 0, wide - 1 - step, y, deep - 1, m.roof);
    if (step < middle) pen.fill(step + 1, y, 1, wide - 2 - step, y, deep - 2, 'air');
  }
  pen.door(middle, 1, 0);
}

const hut = {
  name: 'hut', wide: 5, deep: 6, tall: 9,
  draw(pen, chance) {
    shell(pen, 5, 6, 3);
    pen.pane(0, 2, 3, 'z');
    pen.pane(4, 2, 3, 'z');
    pen.bed(1, 1, 3, chance.pick(BEDS));
    pen.put(3, 1, 4, 'crafting_table');
    pen.torch(2, 3, 4, 'front');
    if (chance.next() < 0.5) pen.chest(3, 1, 3, someOf(chance, HOME));
  },
};

const house = {
  name: 'house', wide: 7, deep: 8, tall: 11,
  draw(pen, chance) {
    shell(pen, 7, 8, 3);
    for (const z of [2, 5]) {
      pen.pane(0, 2, z, 'z');
      pen.pane(6, 2, z, 'z');
    }
    pen.pane(1, 2, 0, 'x');
    pen.pane(5, 2, 0, 'x');
    pen.bed(1, 1, 5, chance.pick(BEDS));
    pen.bed(2, 1, 5, chance.pick(BEDS));
    pen.chest(5, 1, 6, someOf(chance, HOME));
    pen.put(5, 1, 5, 'crafting_table');
    pen.put(5, 1, 4, 'furnace', { facing: pen.side('left') });
    pen.fill(1, 1, 1, 1, 2, 1, 'bookshelf');
    pen.torch(3, 3, 6, 'front');
    pen.torch(3, 3, 1, 'back');
  },
};

const smithy = {
  name: 'smithy', wide: 8, deep: 7, tall: 6,
  draw(pen, chance) {
    pen.fill(0, 0, 0, 7, 0, 6, 'cobblestone');
    pen.fill(0, 1, 3, 7, 3, 6, 'cobblestone');
    pen.fill(1, 1, 4, 6, 3, 5, 'air');
    for (const x of [0, 7]) pen.fill(x, 1, 0, x, 3, 0, `${pen.m.wood}_fence`);
    pen.fill(0, 4, 0, 7, 4, 6, pen.m.roof);
    pen.fill(0, 5, 0, 7, 5, 6, `${pen.m.wood}_slab`, { type: 'bottom' });
    pen.door(2, 1, 3);
    pen.put(5, 1, 2, 'furnace', { facing: pen.side('front') });
    pen.put(6, 1, 2, 'furnace', { facing: pen.side('front') });
    pen.put(4, 1, 2, 'blast_furnace', { facing: pen.side('front') });
    pen.put(1, 1, 1, 'anvil', { facing: pen.side('front') });
    pen.chest(6, 1, 5, someOf(chance, SMITH));
    pen.put(1, 1, 5, 'smithing_table');
    pen.torch(4, 3, 5, 'front');
    pen.torch(4, 3, 2, 'front');
    pen.pane(7, 2, 4, 'z');
  },
};

const farm = {
  name: 'farm', wide: 7, deep: 9, tall: 3,
  draw(pen, chance) {
    pen.fill(0, 0, 0, 6, 0, 8, `${pen.m.wood}_log`);
    for (const strip of [1, 4]) {
      const [crop, last] = chance.pick(CROPS);
      for (let x = strip; x < strip + 2; x++) {
        for (let z = 1; z < 8; z++) {
          pen.put(x, 0, z, 'farmland', { moisture: 7 });
          pen.put(x, 1, z, crop, { age: Math.min(chance.between(0, last + 3), last) });
        }
      }
    }
    pen.fill(3, 0, 1, 3, 0, 7, 'water');
    pen.fill(1, -1, 1, 5, -1, 7, 'dirt');
    pen.put(0, 1, 0, 'composter');
  },
};

const well = {
  name: 'well', wide: 4, deep: 4, tall: 5,
  draw(pen) {
    pen.fill(0, -3, 0, 3, 1, 3, 'cobblestone');
    pen.fill(1, -2, 1, 2, 0, 2, 'water');
    pen.fill(1, 1, 1, 2, 1, 2, 'air');
    for (const x of [0, 3]) for (const z of [0, 3]) pen.fill(x, 2, z, x, 3, z, `${pen.m.wood}_fence`);
    pen.fill(0, 4, 0, 3, 4, 3, 'cobblestone_slab', { type: 'bottom' });
  },
};

const lamp = {
  name: 'lamp', wide: 1, deep: 1, tall: 5,
  draw(pen) {
    pen.fill(0, 1, 0, 0, 3, 0, `${pen.m.wood}_fence`);
    pen.put(0, 4, 0, 'torch');
  },
};

const pens = {
  name: 'pen', wide: 8, deep: 8, tall: 3,
  draw(pen) {
    for (let n = 0; n < 8; n++) {
      const across = { [pen.side('left')]: n > 0, [pen.side('right')]: n < 7 };
      const along = { [pen.side('front')]: n > 0, [pen.side('back')]: n < 7 };
      for (const z of [0, 7]) pen.put(n, 1, z, `${pen.m.wood}_fence`, n % 7 ? across : {});
      for (const x of [0, 7]) if (n % 7) pen.put(x, 1, n, `${pen.m.wood}_fence`, along);
    }
    pen.put(4, 1, 0, `${pen.m.wood}_fence_gate`, { facing: pen.side('back') });
    pen.put(6, 1, 6, 'hay_block', { axis: 'y' });
  },
};

const DESIGNS = { farm, house, hut, lamp, pen: pens, smithy, well };

/**
 * Draws the part of a building that is within the canvas: its base down to the ground, the room
 * above it, the building.
 *
 * `box` is {design, turn, x, y, z, wide, deep, wood, dry, start}: y is the floor; `groundAt(x, z)`
 * returns the ground. Chests are added to `chests`, whichever part of the building is within the
 * canvas.
 */
function drawBuilding(canvas, states, box, groundAt, chests) {
  const design = DESIGNS[box.design];
  const sideways = box.turn % 2 === 1;
  const width = sideways ? box.deep : box.wide;
  const depth = sideways ? box.wide : box.deep;
  const pen = new Pen(canvas, states, box, chests);
  const level = states(box.design === 'pen' ? 'grass_block' : pen.m.base);
  const open = box.design === 'pen' || box.design === 'lamp';
  for (let x = Math.max(box.x, canvas.x); x < Math.min(box.x + width, canvas.x + 16); x++) {
    for (let z = Math.max(box.z, canvas.z); z < Math.min(box.z + depth, canvas.z + 16); z++) {
      const from = open ? box.y : box.y - 1;
      for (let y = Math.min(groundAt(x, z), from); y <= from; y++) canvas.set(x, y, z, level);
      for (let y = box.y + 1; y <= box.y + design.tall; y++) canvas.set(x, y, z, 0);
    }
  }
  design.draw(pen, new Chance(box.start));
}

module.exports = { DESIGNS, Pen, drawBuilding, materials };

'use strict';

/**
 * Rails: the shapes they take beside one another, and how minecarts follow them (Minecraft Wiki,
 * "Rail", "Powered Rail" and "Minecart", Java Edition 1.16). The middle of a rail is a straight
 * line between two of its edges; a cart is moved along it.
 */

const { Vec3 } = require('vec3');

const name = 'rails';
const STEP = { north: [0, -1], south: [0, 1], west: [-1, 0], east: [1, 0] };
const SIDES = Object.keys(STEP);
const BACK = { north: 'south', south: 'north', west: 'east', east: 'west' };
const IS_RAIL = /(^|_)rail$/;
const MOST = 0.4; // blocks per tick
const SLOPE = 0.0078125; // gained per tick downhill
const BOOST = 0.06; // of a powered rail per tick
const CHAIN = 8; // rails that a powered one passes its power on to
const FEET = 0.0625; // a cart's height above the ground

/** The two sides that each shape joins, and the side that is a block higher. */
const SHAPES = {
  north_south: ['north', 'south'], east_west: ['west', 'east'],
  ascending_east: ['west', 'east', 'east'], ascending_west: ['east', 'west', 'west'],
  ascending_north: ['south', 'north', 'north'], ascending_south: ['north', 'south', 'south'],
  south_east: ['south', 'east'], south_west: ['south', 'west'],
  north_west: ['north', 'west'], north_east: ['north', 'east'],
};

const isRail = (info) => IS_RAIL.test(info.name);

/** Returns the rail a cart is on: {x, y, z, info}, or null. */
function railAt(blocks, { x, y, z }) {
  const [bx, bz] = [Math.floor(x), Math.floor(z)];
  for (const by of [Math.floor(y + 0.01), Math.floor(y + 0.01) - 1]) {
    const info = blocks.at(bx, by, bz);
    if (isRail(info)) return { x: bx, y: by, z: bz, info };
  }
  return null;
}

/** Returns the point of a rail's edge, and the cell that it leads to: same height or one higher. */
function edge({ x, y, z }, side, high) {
  const [dx, dz] = STEP[side];
  const up = side === high ? 1 : 0;
  return {
    side,
    point: new Vec3(x + 0.5 + dx * 0.5, y + FEET + up, z + 0.5 + dz * 0.5),
    next: [x + dx, y + up, z + dz],
  };
}

/** Moves a cart along the rail that it is on, and those that follow, for one tick. */
function ride(survival, cart, first) {
  const { blocks } = survival;
  const { motion } = cart;
  let rail = first;
  let [a, b, along] = ends(rail, motion);
  let speed = Math.max(0, motion.x * along.x + motion.z * along.z);
  if (speed < 1e-6) [a, b, along, speed] = started(survival, rail, a, b, along);
  speed += SLOPE * (a.point.y - b.point.y);
  if (speed < 0) {
    [a, b] = [b, a];
    along = along.scaled(-1);
    speed = -speed;
  }
  speed = powered(rail.info, speed);
  let left = Math.min(MOST, speed * (cart.riders.length ? 0.75 : 1));
  let at = cart.position;
  for (let cells = 0; cells < 3 && rail; cells++) {
    const whole = b.point.minus(a.point);
    const flat = Math.hypot(whole.x, whole.z);
    const done = ((at.x - a.point.x) * whole.x + (at.z - a.point.z) * whole.z) / (flat * flat);
    const share = Math.max(0, Math.min(1, done)) + left / flat;
    at = a.point.plus(whole.scaled(Math.min(1, share)));
    if (share < 1) break;
    left = (share - 1) * flat;
    const next = onward(blocks, b);
    const [dx, dz] = STEP[b.side];
    if (!next) {
      at = blocks.at(...b.next).full ? at : at.offset(dx * (left + 0.01), 0, dz * (left + 0.01));
      if (blocks.at(...b.next).full) speed = 0;
      along = new Vec3(dx, 0, dz);
      break;
    }
    rail = next;
    // It enters by the edge it comes to, whatever way the rail bends.
    const [c, d] = edges(rail);
    [a, b] = c.side === BACK[b.side] ? [c, d] : [d, c];
    along = direction(a, b);
  }
  speed *= cart.riders.length ? 0.997 : 0.96;
  cart.motion = along.scaled(speed);
  if (at.distanceTo(cart.position) > 1e-6) survival.moveEntity(cart, at.x, at.y, at.z, true);
}

function edges(rail) {
  const [one, two, high] = SHAPES[rail.info.props.shape];
  return [edge(rail, one, high), edge(rail, two, high)];
}

function direction(a, b) {
  const way = b.point.minus(a.point);
  const flat = Math.hypot(way.x, way.z);
  return new Vec3(way.x / flat, 0, way.z / flat);
}

/** The edges of a rail in the direction of a motion: from, to, and the unit vector. */
function ends(rail, motion) {
  const [a, b] = edges(rail);
  const along = direction(a, b);
  return motion.x * along.x + motion.z * along.z < 0 ? [b, a, along.scaled(-1)] : [a, b, along];
}

/** A powered rail beside a full block pushes a cart that stands away from it. */
function started({ blocks }, rail, a, b, along) {
  if (rail.info.name !== 'powered_rail' || !rail.info.props.powered) return [a, b, along, 0];
  const full = ({ next }) => blocks.at(...next).full;
  if (full(a)) return [a, b, along, 0.02];
  if (full(b)) return [b, a, along.scaled(-1), 0.02];
  return [a, b, along, 0];
}

function powered(info, speed) {
  if (info.name !== 'powered_rail') return speed;
  if (info.props.powered) return speed > 0.01 ? speed + BOOST : speed;
  return speed < 0.03 ? 0 : speed / 2;
}

/** The rail that an edge leads to, there or one lower; null for none. */
function onward(blocks, { next: [x, y, z], side }) {
  for (const by of [y, y - 1]) {
    const info = blocks.at(x, by, z);
    if (isRail(info)) {
      const sides = SHAPES[info.props.shape];
      const high = sides[2] === BACK[side];
      // One lower only if it rises to here.
      if (!sides.slice(0, 2).includes(BACK[side]) || (by < y && !high)) return null;
      return { x, y: by, z, info };
    }
  }
  return null;
}

/** Returns the cells of the rails of a kind that share a power: up to 8 to each side, and the first. */
function chainOf(blocks, x, y, z) {
  const first = { x, y, z, info: blocks.at(x, y, z) };
  const chain = [[x, y, z]];
  for (const start of edges(first)) {
    let out = start;
    for (let i = 0; i < CHAIN; i++) {
      const rail = onward(blocks, out);
      if (!rail || rail.info.name !== first.info.name) break;
      chain.push([rail.x, rail.y, rail.z]);
      out = edges(rail).find(({ side }) => side !== BACK[out.side]);
    }
  }
  return chain;
}

/** Returns the rail beside a cell on a side, one higher or lower too: [x, y, z, info, rise], or null. */
function beside(blocks, x, y, z, side) {
  const [dx, dz] = STEP[side];
  for (const rise of [0, 1, -1]) {
    const info = blocks.at(x + dx, y + rise, z + dz);
    if (isRail(info)) return { x: x + dx, y: y + rise, z: z + dz, info, rise };
  }
  return null;
}

/** Whether a rail that lies on a side of another (see `beside`) has an edge to it. */
function faces(other, side) {
  const [one, two, high] = SHAPES[other.info.props.shape];
  const back = BACK[side];
  return (one === back || two === back) && (high === back) === (other.rise === -1);
}

/** Returns the sides on which a rail and another one join. */
function joined(blocks, { x, y, z, info }) {
  const [one, two, high] = SHAPES[info.props.shape];
  return [one, two].filter((side) => {
    const other = beside(blocks, x, y, z, side);
    return other && (high === side) === (other.rise === 1) && faces(other, side);
  });
}

/** The shape of a rail that joins some sides; the first side of each axis that rises makes it rise. */
function shapeOf(sides, rises, turns, axis) {
  const has = (side) => sides.includes(side);
  const northSouth = has('north') || has('south');
  const eastWest = has('east') || has('west');
  if (turns && northSouth && eastWest && sides.length === 2 && !(has('north') && has('south'))) {
    return `${has('south') ? 'south' : 'north'}_${has('east') ? 'east' : 'west'}`;
  }
  const way = northSouth === eastWest ? axis : northSouth ? 'north_south' : 'east_west';
  const high = (way === 'north_south' ? ['north', 'south'] : ['east', 'west']).find((side) => rises.has(side));
  return high ? `ascending_${high}` : way;
}

/** Lets a rail join those beside it that have a free end; returns its shape. */
function fit(blocks, x, y, z, info) {
  const turns = info.name === 'rail';
  const axis = info.props.shape === 'east_west' || /^ascending_(east|west)$/.test(info.props.shape)
    ? 'east_west' : 'north_south';
  const open = [];
  const rises = new Set();
  for (const side of SIDES) {
    const other = beside(blocks, x, y, z, side);
    if (!other) continue;
    const taken = joined(blocks, other).filter((each) => each !== BACK[side]);
    if (taken.length >= 2 && !faces(other, side)) continue;
    open.push(side);
    if (other.rise === 1) rises.add(side);
  }
  // Straight on goes before a bend; of three ways, south and east.
  const straight = [['north', 'south'], ['west', 'east']].find((pair) => pair.every((side) => open.includes(side)));
  const chosen = straight ?? (open.length > 2 || !turns ? pick(open, turns, axis) : open);
  return shapeOf(chosen, rises, turns, axis);
}

function pick(open, turns, axis) {
  if (!turns) {
    const along = open.filter((side) => (axis === 'north_south') === (side === 'north' || side === 'south'));
    return along.length ? along : open.slice(0, 1);
  }
  return ['south', 'east', 'north', 'west'].filter((side) => open.includes(side)).slice(0, 2);
}

/** Gives a new rail its shape, then those beside it that are free to bend. */
function lay(blocks, x, y, z) {
  const info = blocks.at(x, y, z);
  const shape = fit(blocks, x, y, z, info);
  if (shape !== info.props.shape) blocks.set(x, y, z, blocks.changed(info, { shape }));
  for (const side of SIDES) {
    const other = beside(blocks, x, y, z, side);
    if (!other) continue;
    if (joined(blocks, other).length >= 2) continue;
    const bent = fit(blocks, other.x, other.y, other.z, other.info);
    if (bent !== other.info.props.shape)
      blocks.set(other.x, other.y, other.z, blocks.changed(other.info, { shape: bent }));
  }
}

function server(serv) {
  const { blocks } = serv.survival;
  serv.on('gamut:placed', ({ block, x, y, z }) => {
    if (IS_RAIL.test(block) && isRail(blocks.at(x, y, z))) lay(blocks, x, y, z);
  });
}

module.exports = { name, server, railAt, ride, chainOf };

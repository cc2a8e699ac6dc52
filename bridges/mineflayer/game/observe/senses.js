'use strict';
/**
 * What an agent can see and hear. Enforced here for observations, events and generated programs
 * alike; a limit of 0 is disabled.
 *
 * Sight is a sphere around the eye, in all directions: what an agent could see if it turned. With
 * `line_of_sight`, full opaque blocks stop it; leaves, glass, plants and half blocks do not.
 */

const FACES = [[0.5, 0.5, 0.5], [0.5, 1, 0.5], [0.5, 0, 0.5], [0, 0.5, 0.5], [1, 0.5, 0.5],
  [0.5, 0.5, 0], [0.5, 0.5, 1]];
const JUST_OUTSIDE = 0.01; // blocks, so that a face's own block does not hide it

const beyond = (limit, distance) => limit > 0 && distance > limit;
/** Returns a coordinate of a point of a block, moved out of it where it is on a face. */
const outside = (part) => part + (part - 0.5) * 2 * JUST_OUTSIDE;
/** Whether an eye is behind a face at 0 or 1 of an axis. */
const behind = (part, eye, cell) => (part === 0 && eye > cell) || (part === 1 && eye < cell + 1);
/** Returns the part of a ray up to the first border of a cell along an axis. */
function first(ray, cell, from, whole) {
  if (ray === 0) return Infinity;
  return (ray > 0 ? cell + 1 - from : from - cell) * whole;
}

const within = { x: 0, y: 0, z: 0 };

class Senses {
  /**
   * @param {object} bot a mineflayer bot
   * @param {object} limits sight_distance, line_of_sight, hearing_distance, chat_distance
   * @param {Uint8Array} opaque per block state, 1 where sight ends
   */
  constructor(bot, limits, opaque) {
    this.bot = bot;
    this.limits = limits;
    this.opaque = opaque;
  }

  /** Maximum distance of sight, in blocks; Infinity without limit. */
  get sight() {
    return this.limits.sight_distance > 0 ? this.limits.sight_distance : Infinity;
  }

  eye() {
    const { position, eyeHeight } = this.bot.entity;
    return position.offset(0, eyeHeight ?? 1.62, 0);
  }

  /** Returns whether nothing opaque is between the eye and a point. */
  clear(point) {
    return this.clearBetween(this.eye(), point);
  }

  /** Returns whether nothing opaque is between two points; the cells of both do not count. */
  clearBetween(from, to) {
    const ray = { x: to.x - from.x, y: to.y - from.y, z: to.z - from.z };
    const end = { x: Math.floor(to.x), y: Math.floor(to.y), z: Math.floor(to.z) };
    // Per axis: the cell, the way of the ray, the part of the ray per cell and up to the next cell.
    let [x, y, z] = [Math.floor(from.x), Math.floor(from.y), Math.floor(from.z)];
    const [sx, sy, sz] = [Math.sign(ray.x), Math.sign(ray.y), Math.sign(ray.z)];
    const [ex, ey, ez] = [Math.abs(1 / ray.x), Math.abs(1 / ray.y), Math.abs(1 / ray.z)];
    let nx = first(ray.x, x, from.x, ex);
    let ny = first(ray.y, y, from.y, ey);
    let nz = first(ray.z, z, from.z, ez);
    const { opaque } = this;
    for (;;) {
      if (nx < ny && nx < nz) {
        if (nx > 1) return true;
        x += sx;
        nx += ex;
      } else if (ny < nz && !(nx < ny)) {
        if (ny > 1) return true;
        y += sy;
        ny += ey;
      } else {
        if (nz > 1) return true;
        z += sz;
        nz += ez;
      }
      if (x === end.x && y === end.y && z === end.z) return true;
      if (opaque[this.stateAt(x, y, z)] === 1) return false;
    }
  }

  /** Returns the state of the block in a cell; that of air where nothing is loaded. */
  stateAt(x, y, z) {
    const [cx, cz] = [x >> 4, z >> 4];
    if (cx !== this.lastX || cz !== this.lastZ || this.bot.world.async.columns[this.lastKey] !== this.last) {
      this.lastX = cx;
      this.lastZ = cz;
      this.lastKey = `${cx},${cz}`;
      this.last = this.bot.world.async.columns[this.lastKey];
    }
    if (this.last === undefined) return 0;
    within.x = x & 15;
    within.y = y;
    within.z = z & 15;
    return this.last.getBlockStateId(within);
  }

  /** Returns whether all sides of a cell touch opaque blocks: it cannot be seen from anywhere. */
  isBuried(x, y, z) {
    const { opaque } = this;
    return opaque[this.stateAt(x, y + 1, z)] === 1 && opaque[this.stateAt(x, y, z + 1)] === 1
      && opaque[this.stateAt(x, y, z - 1)] === 1 && opaque[this.stateAt(x + 1, y, z)] === 1
      && opaque[this.stateAt(x - 1, y, z)] === 1 && opaque[this.stateAt(x, y - 1, z)] === 1;
  }

  /** Returns whether an entity can be seen: its eyes, its middle or its feet. */
  canSeeEntity(entity) {
    const eye = this.eye();
    const height = entity.height || 1;
    if (beyond(this.limits.sight_distance, eye.distanceTo(entity.position))) return false;
    if (!this.limits.line_of_sight) return true;
    return [0.85, 0.5, 0.05].some((part) =>
      this.clearBetween(eye, entity.position.offset(0, height * part, 0)));
  }

  /** Returns whether a block can be seen: the middle of it or of one of its faces. */
  canSeeBlock(position) {
    const eye = this.eye();
    const at = position.floored();
    if (beyond(this.limits.sight_distance, eye.distanceTo(at.offset(0.5, 0.5, 0.5)))) return false;
    if (!this.limits.line_of_sight) return true;
    const isOpaque = this.opaque[this.stateAt(at.x, at.y, at.z)] === 1;
    return FACES.some(([x, y, z]) => {
      // An opaque block hides its own back faces.
      if (isOpaque && (behind(x, eye.x, at.x) || behind(y, eye.y, at.y) || behind(z, eye.z, at.z))) return false;
      // The cell in which the line ends counts: a face that another block covers is in that block's
      // cell.
      const isCovered = (x !== 0.5 || y !== 0.5 || z !== 0.5)
        && this.opaque[this.stateAt(at.x + (x - 0.5) * 2, at.y + (y - 0.5) * 2, at.z + (z - 0.5) * 2)] === 1;
      if (isCovered) return false;
      // From the block to the eye: what hides a block of a cave is near it.
      return this.clearBetween({ x: at.x + outside(x), y: at.y + outside(y), z: at.z + outside(z) }, eye);
    });
  }

  /** Returns whether a sound at a place is heard. */
  canHear(position) {
    return !beyond(this.limits.hearing_distance, this.bot.entity.position.distanceTo(position));
  }
}

module.exports = { Senses };

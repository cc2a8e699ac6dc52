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

  clearBetween(from, to) {
    const { bot, opaque } = this;
    const delta = [to.x - from.x, to.y - from.y, to.z - from.z];
    const start = [from.x, from.y, from.z];
    const cell = start.map(Math.floor);
    const end = [to.x, to.y, to.z].map(Math.floor);
    const step = delta.map(Math.sign);
    const every = delta.map((d) => (d === 0 ? Infinity : Math.abs(1 / d)));
    const next = delta.map((d, i) => {
      if (d === 0) return Infinity;
      return (d > 0 ? cell[i] + 1 - start[i] : start[i] - cell[i]) * every[i];
    });
    const columns = bot.world.async.columns;
    const within = { x: 0, y: 0, z: 0 };
    for (;;) {
      const axis = next[0] < next[1] ? (next[0] < next[2] ? 0 : 2) : (next[1] < next[2] ? 1 : 2);
      if (next[axis] > 1) return true;
      cell[axis] += step[axis];
      next[axis] += every[axis];
      if (cell[0] === end[0] && cell[1] === end[1] && cell[2] === end[2]) return true;
      const column = columns[`${cell[0] >> 4},${cell[2] >> 4}`];
      if (column === undefined) continue;
      within.x = cell[0] & 15;
      within.y = cell[1];
      within.z = cell[2] & 15;
      if (opaque[column.getBlockStateId(within)] === 1) return false;
    }
  }

  /** Returns whether the block in a cell is opaque and not the one at `position`. */
  covers(cell, position) {
    if (cell.equals(position)) return false;
    const column = this.bot.world.async.columns[`${cell.x >> 4},${cell.z >> 4}`];
    const within = { x: cell.x & 15, y: cell.y, z: cell.z & 15 };
    return column !== undefined && this.opaque[column.getBlockStateId(within)] === 1;
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
    return FACES.some(([x, y, z]) => {
      const out = (v) => v + (v - 0.5) * 2 * JUST_OUTSIDE;
      const target = at.offset(out(x), out(y), out(z));
      // The cell in which the line ends counts: a face that another block covers is in that block's
      // cell.
      return !this.covers(target.floored(), at) && this.clearBetween(eye, target);
    });
  }

  /** Returns whether a sound at a place is heard. */
  canHear(position) {
    return !beyond(this.limits.hearing_distance, this.bot.entity.position.distanceTo(position));
  }
}

module.exports = { Senses };

'use strict';

/**
 * Where a liquid that cannot fall flows: to the sides with the shortest way down, to all open sides
 * if there is none nearby (Minecraft Wiki, "Fluid", 1.16). One search in rings replaces the game's
 * search from each side, with the same result.
 */

const { FACES } = require('../blocks');
const { passes } = require('./states');

/** By liquid: number of steps after the first in which a way down is searched. */
const FAR = [0, 4, 2];
const SIDES = [2, 3, 4, 5];
const EDGE = 5;
const WIDE = 2 * EDGE + 1;
const MIDDLE = EDGE * WIDE + EDGE;
/** Distance to each side in the square of the search. */
const STEPS = FACES.map(([dx, , dz]) => dz * WIDE + dx);
const FLOWING = 1;

class Ways {
  constructor(fluids) {
    this.fluids = fluids;
    this.cells = new Array(WIDE * WIDE).fill(null);
    /** The ring in which a cell was reached, 0 for none, and from which sides, as bits. */
    this.rings = new Uint8Array(WIDE * WIDE);
    this.from = new Uint8Array(WIDE * WIDE);
    this.found = { faces: 0, levels: [0, 0, 0, 0, 0, 0] };
  }

  /**
   * Returns `{faces, levels}`: the sides to flow to as bits, and the level that the liquid has at
   * each side. The next call overwrites it.
   */
  find(x, y, z, here, kind) {
    const { fluids, found } = this;
    this.rings.fill(0);
    this.from.fill(0);
    this.rings[MIDDLE] = 255;
    let edge = [];
    let open = 0;
    let holes = 0;
    for (const face of SIDES) {
      const [dx, , dz] = FACES[face];
      const there = fluids.read(x + dx, y, z + dz);
      const level = fluids.becoming(kind, x + dx, y, z + dz, there);
      found.levels[face] = level;
      if (!fluids.enters(here, face, there, kind, level)) continue;
      open |= 1 << face;
      if (fluids.isHole(x + dx, y, z + dz, there, kind, FLOWING)) holes |= 1 << face;
      edge.push(this.reach(MIDDLE + STEPS[face], 1, there));
      this.from[MIDDLE + STEPS[face]] = 1 << face;
    }
    for (let ring = 2; !holes && edge.length && ring <= FAR[kind] + 1; ring++) {
      edge = this.widen(x, y, z, edge, ring, kind);
      for (const cell of edge) if (this.falls(x, y, z, cell, kind)) holes |= this.from[cell];
    }
    found.faces = holes || open;
    return found;
  }

  reach(cell, ring, there) {
    this.rings[cell] = ring;
    this.cells[cell] = there;
    return cell;
  }

  falls(x, y, z, cell, kind) {
    const [dx, dz] = [(cell % WIDE) - EDGE, Math.floor(cell / WIDE) - EDGE];
    return this.fluids.isHole(x + dx, y, z + dz, this.cells[cell], kind, FLOWING);
  }

  /** Returns the cells of the next step. */
  widen(x, y, z, edge, ring, kind) {
    const next = [];
    for (const cell of edge) {
      for (const face of SIDES) {
        const to = cell + STEPS[face];
        if (this.rings[to] !== 0 && this.rings[to] !== ring) continue;
        const [dx, dz] = [(to % WIDE) - EDGE, Math.floor(to / WIDE) - EDGE];
        const known = this.rings[to] === ring;
        const there = known ? this.cells[to] : this.fluids.read(x + dx, y, z + dz);
        const from = this.cells[cell];
        const open = known
          ? passes(from, face, there)
          : this.fluids.enters(from, face, there, kind, FLOWING);
        if (!open) continue;
        if (!known) next.push(this.reach(to, ring, there));
        this.from[to] |= this.from[cell];
      }
    }
    return next;
  }
}

module.exports = { Ways };

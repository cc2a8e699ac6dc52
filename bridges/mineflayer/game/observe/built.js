'use strict';
/**
 * The blocks that agents have placed in a world and that still stand.
 */

const MOST = 4096; // maximum number of blocks stored; later ones are ignored

class Built {
  /** @param {object} world with `serv`, whose mechanics emit 'gamut:placed' {player, x, y, z} */
  constructor(world) {
    this.serv = world.serv;
    this.places = new Map();
    this.listed = [];
    this.serv.on('gamut:placed', ({ x, y, z }) => {
      if (this.places.size < MOST) this.places.set(`${x},${y},${z}`, { x, y, z, state: -1 });
    });
  }

  /** Returns `[x, y, z, name]` of each, in the order of placing; the same list until one changes. */
  list() {
    let changed = false;
    for (const [key, place] of this.places) {
      const { x, y, z } = place;
      const column = this.serv.columnAt(this.serv.overworld, x >> 4, z >> 4);
      const state = column.getBlockStateId({ x: x & 15, y, z: z & 15 });
      if (state === place.state) continue;
      changed = true;
      place.state = state;
      place.name = this.serv.registry.blocksByStateId[state].name;
      if (state === 0) this.places.delete(key);
    }
    if (changed) this.listed = [...this.places.values()].map(({ x, y, z, name }) => [x, y, z, name]);
    return this.listed;
  }
}

module.exports = { Built };

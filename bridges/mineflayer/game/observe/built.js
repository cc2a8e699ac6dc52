'use strict';
/**
 * The blocks that agents have placed in a world and that still stand.
 */
const { Vec3 } = require('vec3');

const MOST = 4096; // maximum number of blocks stored; later ones are ignored

class Built {
  /** @param {object} world with `serv`, whose mechanics emit 'gamut:placed' {player, x, y, z} */
  constructor(world) {
    this.serv = world.serv;
    this.places = new Map();
    this.serv.on('gamut:placed', ({ player, x, y, z }) => {
      const key = `${x},${y},${z}`;
      if (this.places.size >= MOST && !this.places.has(key)) return;
      this.places.set(key, { by: player.username, at: new Vec3(x, y, z), state: -1 });
    });
  }

  /** Returns `{by (name of the agent), at, name}` of each, in the order of placing. */
  list() {
    for (const [key, place] of this.places) {
      const { x, y, z } = place.at;
      const column = this.serv.columnAt(this.serv.overworld, x >> 4, z >> 4);
      const state = column.getBlockStateId({ x: x & 15, y, z: z & 15 });
      if (state === place.state) continue;
      place.state = state;
      place.name = this.serv.registry.blocksByStateId[state].name;
      if (state === 0) this.places.delete(key);
    }
    return [...this.places.values()];
  }
}

module.exports = { Built };

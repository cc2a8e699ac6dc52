'use strict';
/**
 * The columns of a server's world: made when they are needed, and forgotten when a world that is
 * played for long has very many. Of a forgotten column the blocks that were changed are kept, and put
 * into the generator's column when it is needed again; its wild animals go, and come again with it. A
 * column with players near, or with anything in it that has a history, is not forgotten.
 */

const MOST = 1024; // columns, of about 55 kB each
const SPARE = 256; // the newest columns, which are kept, and how many more come before the next look
const MARGIN = 2; // columns beyond the view of a player

const keyOf = (chunkX, chunkZ) => `${chunkX},${chunkZ}`;

/** Whether a creature is as the generator or chance made it. */
function isWild(entity) {
  const { type, gamutName, gamutTarget, owner, tame, built, tags, leash, vehicle, riders, merchant, saddled } = entity;
  return type === 'mob' && !gamutName && !gamutTarget && !owner && !tame && !built && !tags?.size && !leash
    && !vehicle && !riders?.length && !merchant && !saddled;
}

class Columns {
  constructor(serv, view) {
    this.serv = serv;
    this.view = view;
    this.order = new Map(); // columns in the order in which they were made
    this.changes = new Map(); // by column: states by the number of a block
    this.limit = MOST;
    serv.on('gamut:block', ({ position: { x, y, z }, after }) => {
      const key = keyOf(x >> 4, z >> 4);
      if (!this.changes.has(key)) this.changes.set(key, new Map());
      this.changes.get(key).set((y << 8) | ((z & 15) << 4) | (x & 15), after);
    });
  }

  at(world, chunkX, chunkZ) {
    const known = world.getLoadedColumn(chunkX, chunkZ);
    if (known !== undefined) return known;
    const column = world.chunkGenerator(chunkX, chunkZ);
    const key = keyOf(chunkX, chunkZ);
    for (const [cell, state] of this.changes.get(key) ?? [])
      column.setBlockStateId({ x: cell & 15, y: cell >> 8, z: (cell >> 4) & 15 }, state);
    this.order.set(key, [chunkX, chunkZ]);
    world.setLoadedColumn(chunkX, chunkZ, column, false);
    if (this.order.size > this.limit) this.forget(world);
    return column;
  }

  forget(world) {
    const players = this.serv.players.map(({ position: { x, z } }) => [Math.floor(x) >> 4, Math.floor(z) >> 4]);
    const near = (x, z) => players.some(([px, pz]) =>
      Math.max(Math.abs(px - x), Math.abs(pz - z)) <= this.view + MARGIN);
    const inside = new Map();
    for (const entity of Object.values(this.serv.entities)) {
      const key = keyOf(Math.floor(entity.position.x) >> 4, Math.floor(entity.position.z) >> 4);
      inside.set(key, [...inside.get(key) ?? [], entity]);
    }
    for (const [key, [x, z]] of [...this.order].slice(0, -SPARE)) {
      if (this.order.size <= MOST - SPARE) break;
      const there = inside.get(key) ?? [];
      if (near(x, z) || !there.every(isWild)) continue;
      for (const animal of there) this.serv.survival.mobs.remove(animal);
      this.order.delete(key);
      world.unloadColumn(x, z);
    }
    this.limit = Math.max(MOST, this.order.size + SPARE);
  }
}

module.exports = { Columns, MOST };

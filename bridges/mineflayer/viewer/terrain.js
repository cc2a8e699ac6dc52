'use strict';
/**
 * The blocks around an agent, as meshes of 16 x 16 x 16 that prismarine-viewer's mesher makes.
 *
 * A mesh depends only on its section and one block beyond; so it is cached by a hash of these:
 * worlds, episodes and agents with the same blocks share it.
 */
const { createHash } = require('node:crypto');
const THREE = require('three');
const { Vec3 } = require('vec3');
const { getSectionGeometry } = require('prismarine-viewer/viewer/lib/models');

const SIDE = 16;
const EDGE = SIDE + 2;
/** Represents positions outside the box. */
const NOTHING = 0xffff;
/** The same for the mesher: it draws nothing there, and no faces towards it. */
const OUTSIDE = { name: 'outside', type: -1, isCube: true, transparent: false, variant: [], biome: { name: 'plains' },
  position: new Vec3(0, 0, 0), getProperties: () => ({}) };
/** The mesher drops faces at the bottom of old worlds, y = 0; newer ones go deeper. A multiple of 16. */
const LIFT = 4096;
/** Maximum distance by which a block's model can extend beyond its section, in blocks. */
const OVER = 1;
const KEPT_MB = 128;
const MB = 2 ** 20;

/** Meshes by their contents; those not in use are discarded, oldest first, beyond some megabytes. */
class Meshes {
  /**
   * @param {Array} blocks by appearance, see blocks.js
   * @param {Array<string>} biomes names by number
   * @param {object} states models of prismarine-viewer, by block
   */
  constructor(blocks, biomes, states) {
    this.blocks = blocks;
    this.biomes = biomes.map((name) => ({ name: name ?? 'plains' }));
    this.states = states;
    this.hidden = Uint8Array.from(blocks, (block) => (block.isCube && !block.transparent ? 1 : 0));
    this.known = new Map();
    this.bytes = 0;
  }

  /** Returns the entry of a section, made if it is new; give it back with `leave`. */
  take(key, section) {
    let entry = this.known.get(key);
    if (entry === undefined) {
      entry = { key, users: 0, ...this.make(section) };
      this.bytes += entry.bytes;
    }
    this.known.delete(key); // so that it becomes the newest
    this.known.set(key, entry);
    entry.users += 1;
    return entry;
  }

  leave(entry) {
    entry.users -= 1;
    if (this.bytes <= KEPT_MB * MB) return;
    for (const each of this.known.values()) {
      if (each.users > 0) continue;
      this.known.delete(each.key);
      this.bytes -= each.bytes;
      each.geometry?.dispose();
      if (this.bytes <= KEPT_MB * MB) return;
    }
  }

  make({ world, x, y, z }) {
    const { positions, normals, colors, uvs, indices } = getSectionGeometry(x, y + LIFT, z, world, this.states);
    if (indices.length === 0) return { geometry: null, bytes: 0 };
    const geometry = new THREE.BufferGeometry();
    for (const [name, array, size] of [['position', positions, 3], ['normal', normals, 3], ['color', colors, 3],
      ['uv', uvs, 2]]) {
      geometry.setAttribute(name, new THREE.BufferAttribute(array, size));
    }
    geometry.setIndex(indices);
    geometry.computeBoundingSphere();
    // Once here and once in the memory of the graphics library.
    return { geometry, bytes: 2 * (positions.byteLength * 3 + uvs.byteLength + geometry.index.array.byteLength) };
  }
}

/** The terrain of one scene. */
class Terrain {
  constructor(meshes, material) {
    this.meshes = meshes;
    this.material = material;
    this.group = new THREE.Group();
    this.sections = new Map();
    this.stale = new Set();
    this.cells = null;
    this.room = new THREE.Box3();
    this.around = new Uint16Array(EDGE ** 3 + SIDE ** 2);
  }

  /** Applies a box of blocks, see game/observe/scene.js. */
  fill({ origin, size, blocks, biomes }) {
    [this.ox, this.oy, this.oz] = origin;
    [this.wide, this.tall, this.deep] = size;
    const bytes = Uint8Array.from(blocks);
    this.cells = new Uint16Array(bytes.buffer);
    this.biomes = Uint8Array.from(biomes);
    this.stale.clear();
    const [[x0, x1], [y0, y1], [z0, z1]] = origin.map((low, n) => [low >> 4, (low + size[n] - 1) >> 4]);
    for (const key of this.sections.keys()) this.stale.add(key);
    for (let x = x0; x <= x1; x++) {
      for (let y = y0; y <= y1; y++) for (let z = z0; z <= z1; z++) this.stale.add(`${x},${y},${z}`);
    }
  }

  /** Sets single blocks: rows of x, y, z, appearance, height. */
  change(rows) {
    for (let at = 0; at < rows.length; at += 5) {
      const [x, y, z, appearance] = rows.subarray(at, at + 4);
      const place = this.placeOf(x, y, z);
      if (place < 0) continue;
      this.cells[place] = appearance;
      for (let sx = (x - 1) >> 4; sx <= (x + 1) >> 4; sx++) {
        for (let sy = (y - 1) >> 4; sy <= (y + 1) >> 4; sy++) {
          for (let sz = (z - 1) >> 4; sz <= (z + 1) >> 4; sz++) this.stale.add(`${sx},${sy},${sz}`);
        }
      }
    }
  }

  /**
   * Updates the meshes that a camera can see; the others wait until one does.
   *
   * @param {{intersectsBox: function(THREE.Box3): boolean}} seen its THREE.Frustum
   */
  update(seen) {
    for (const name of this.stale) {
      const low = name.split(',').map((n) => n * SIDE);
      this.room.min.set(...low).addScalar(-OVER);
      this.room.max.set(...low).addScalar(SIDE + OVER);
      if (!seen.intersectsBox(this.room)) continue;
      this.renew(name);
      this.stale.delete(name);
    }
  }

  renew(name) {
    const [sx, sy, sz] = name.split(',').map(Number);
    const key = this.read(sx * SIDE, sy * SIDE, sz * SIDE);
    const former = this.sections.get(name);
    if ((former?.entry.key ?? null) === key) return;
    this.remove(name);
    if (key === null) return;
    const entry = this.meshes.take(key, { world: this, x: sx * SIDE, y: sy * SIDE, z: sz * SIDE });
    let mesh = null;
    if (entry.geometry !== null) {
      mesh = new THREE.Mesh(entry.geometry, this.material);
      mesh.position.set((sx + 0.5) * SIDE, (sy + 0.5) * SIDE, (sz + 0.5) * SIDE);
      mesh.userData.order = name;
      this.group.add(mesh);
    }
    this.sections.set(name, { entry, mesh });
  }

  remove(name) {
    const former = this.sections.get(name);
    if (former === undefined) return;
    if (former.mesh !== null) this.group.remove(former.mesh);
    this.meshes.leave(former.entry);
    this.sections.delete(name);
  }

  close() {
    for (const name of [...this.sections.keys()]) this.remove(name);
  }

  /** Returns the cache key of a section's mesh; null where nothing is visible. */
  read(x0, y0, z0) {
    const { around, cells, meshes } = this;
    around.fill(NOTHING, 0, EDGE ** 3).fill(0, EDGE ** 3);
    let [out, air, hidden] = [0, true, true];
    for (let x = x0 - 1; x <= x0 + SIDE; x++) {
      for (let z = z0 - 1; z <= z0 + SIDE; z++, out += EDGE) {
        const low = Math.max(y0 - 1, this.oy);
        const high = Math.min(y0 + SIDE, this.oy + this.tall - 1);
        const from = this.placeOf(x, low, z);
        if (from < 0 || high < low) continue;
        for (let n = 0; n <= high - low; n++) {
          const cell = cells[from + n];
          around[out + low - y0 + 1 + n] = cell;
          if (cell !== 0) air = false;
          if (meshes.hidden[cell] === 0) hidden = false;
        }
      }
    }
    if (air || hidden) return null;
    for (let x = 0; x < SIDE; x++) {
      for (let z = 0; z < SIDE; z++) around[EDGE ** 3 + x * SIDE + z] = this.biomeAt(x0 + x, z0 + z);
    }
    return createHash('sha1').update(around).digest('base64');
  }

  biomeAt(x, z) {
    const place = this.placeOf(x, this.oy, z);
    return place < 0 ? 0 : this.biomes[place / this.tall];
  }

  /** Returns the index of a block in `cells`; -1 outside. */
  placeOf(x, y, z) {
    const [column, row, level] = [x - this.ox, z - this.oz, y - this.oy];
    const inside = column >= 0 && column < this.wide && row >= 0 && row < this.deep && level >= 0 && level < this.tall;
    return inside ? (column * this.deep + row) * this.tall + level : -1;
  }

  /** Answers the mesher: the block at a position, the same object for all blocks of an appearance. */
  getBlock(at) {
    // The mesher's coordinates are rotated by matrices of sines: integers except for the last bits.
    const [x, y, z] = [Math.round(at.x), Math.round(at.y), Math.round(at.z)];
    const place = this.placeOf(x, y - LIFT, z);
    if (place < 0) return OUTSIDE;
    const block = this.meshes.blocks[this.cells[place]];
    block.position.set(x, y, z);
    block.biome = this.meshes.biomes[this.biomes[Math.floor(place / this.tall)]] ?? OUTSIDE.biome;
    return block;
  }

  /** Returns the name of the block that a point is in; undefined outside. */
  nameAt([x, y, z]) {
    const place = this.cells === null ? -1 : this.placeOf(Math.floor(x), Math.floor(y), Math.floor(z));
    return place < 0 ? undefined : this.meshes.blocks[this.cells[place]].name;
  }
}

module.exports = { Meshes, Terrain };

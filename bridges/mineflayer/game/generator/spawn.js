'use strict';

/** The spawn point of players. */

const { BIOMES, SEA_LEVEL } = require('./climate');

const STRIDE = 5;
const RINGS = 300;

/** Whether the ground within six blocks of a column is dry and fairly level. */
function levelAt(climate, x, z, height) {
  for (const far of [3, 6]) {
    for (const [dx, dz] of [[far, 0], [-far, 0], [0, far], [0, -far]]) {
      const beside = climate.shapeAt(x + dx, z + dz).height;
      if (beside < SEA_LEVEL || Math.abs(beside - height) > 2) return false;
    }
  }
  return true;
}

/** Whether a player can stand on top of a column of a chunk with nothing above. */
function openAt(chunk, x, z, height) {
  const at = { x: x & 15, y: height, z: z & 15 };
  if (chunk.getBlockStateId(at) === 0) return false;
  return chunk.getSkyLight({ ...at, y: height + 1 }) === 15 && chunk.getSkyLight({ ...at, y: height + 2 }) === 15;
}

function suits(world, x, z) {
  const shape = world.climate.shapeAt(x, z);
  if (shape.height < SEA_LEVEL + 1 || shape.height > 100) return false;
  if (BIOMES[world.climate.biomeAt(x, z, shape)].wet || !levelAt(world.climate, x, z, shape.height)) return false;
  if (world.villages.takes(x, z, 4) || world.plans.waterAt(x, z) >= 0) return false;
  return openAt(world.chunkAt(x >> 4, z >> 4), x, z, shape.height);
}

/**
 * Returns {x, y, z} of the feet of a new player: the first suitable column on squares around a
 * start.
 *
 * Throws Error if there is none within 1,500 blocks.
 */
function findSpawn(world) {
  for (let ring = 0; ring < RINGS; ring++) {
    for (let a = -ring; a <= ring; a++) {
      const edge = Math.abs(a) === ring;
      for (let b = -ring; b <= ring; b += edge || ring === 0 ? 1 : 2 * ring) {
        const x = world.x + a * STRIDE;
        const z = world.z + b * STRIDE;
        if (suits(world, x, z)) return { x: x + 0.5, y: world.climate.shapeAt(x, z).height + 1, z: z + 0.5 };
      }
    }
  }
  throw new Error(`no dry land within ${RINGS * STRIDE} blocks of the origin of this world`);
}

module.exports = { findSpawn };

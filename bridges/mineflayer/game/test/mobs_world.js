'use strict';

/** A flat world of plains whose generator claims to put animals into one chunk in a hundred. */

const { fork } = require('../world');
const { shareVersion } = require('../libraries');

function flat() {
  const registry = shareVersion('1.16.5');
  const Column = require('prismarine-chunk')(registry);
  const column = new Column();
  ['bedrock', 'dirt', 'dirt', 'grass_block'].forEach((block, y) => {
    for (let i = 0; i < 256; i++) {
      column.setBlockStateId(
        { x: i & 15, y, z: i >> 4 },
        registry.blocksByName[block].defaultState,
      );
    }
  });
  for (let i = 0; i < 65536 - 1024; i++)
    column.setSkyLight({ x: i & 15, y: 4 + (i >> 8), z: (i >> 4) & 15 }, 15);
  column.loadBiomes(new Array(1024).fill(registry.biomesByName.plains.id));
  return {
    generate: () => fork(column),
    spawn: { x: 8, y: 4, z: 8 },
    animals: (x, z) => (x === 1 && z === 1 ? [{ kind: 'cow', x: 24, y: 4, z: 24 }] : []),
  };
}

module.exports = { flat };

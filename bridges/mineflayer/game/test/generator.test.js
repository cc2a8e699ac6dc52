'use strict';

const assert = require('node:assert');
const { createHash } = require('node:crypto');
const { test } = require('node:test');

const registry = require('prismarine-registry')('1.16.5');
const { makeGenerator } = require('../generator');
const { lightTables, makeStates, propertiesOf } = require('../generator/blocks');
const { Climate } = require('../generator/climate');
const { VEINS } = require('../generator/ores');
const { Trees } = require('../generator/trees');
const { REGION, Villages } = require('../generator/villages');

const states = makeStates(registry);

/** Returns the bytes that a client would get of a chunk. */
function bytesOf(chunk) {
  return createHash('sha256').update(chunk.dump()).update(chunk.dumpLight()).update(chunk.biomes.join()).digest('hex');
}

function nameAt(chunk, x, y, z) {
  return registry.blocksByStateId[chunk.getBlockStateId({ x: x & 15, y, z: z & 15 })].name;
}

/** Returns a reader of names over a square of chunks. */
function reader(generator) {
  const chunks = new Map();
  return (x, y, z) => {
    const key = `${x >> 4},${z >> 4}`;
    if (!chunks.has(key)) chunks.set(key, generator.generate(x >> 4, z >> 4));
    return nameAt(chunks.get(key), x, y, z);
  };
}

/** Calls back with the name and place of every block of a square of chunks. */
function visit(generator, from, to, each, top = 256) {
  for (let cx = from; cx <= to; cx++) {
    for (let cz = from; cz <= to; cz++) {
      const chunk = generator.generate(cx, cz);
      for (let y = 0; y < top; y++) {
        if (chunk.sections[y >> 4] === null) continue;
        for (let cell = 0; cell < 256; cell++) each(nameAt(chunk, cell & 15, y, cell >> 4), cx * 16 + (cell & 15), y, cz * 16 + (cell >> 4));
      }
    }
  }
}

function countNames(generator, from, to) {
  const counts = {};
  visit(generator, from, to, (name) => { counts[name] = (counts[name] || 0) + 1; });
  return counts;
}

test('block states are those of the game', () => {
  assert.strictEqual(states('grass_block'), registry.blocksByName.grass_block.defaultState);
  const stairs = registry.blocksByName.oak_stairs;
  for (let id = stairs.minStateId; id <= stairs.maxStateId; id += 7) {
    assert.strictEqual(states('oak_stairs', propertiesOf(stairs, id)), id);
  }
  assert.throws(() => states('oak_leaves', { distance: 9 }), /oak_leaves: distance cannot be 9/);
  assert.throws(() => states('oak_leaves', { colour: 1 }), /no property colour/);
  assert.throws(() => states('raw_iron_block'), /no block is called raw_iron_block in 1.16.5/);
});

test('light follows the game where minecraft-data does not', () => {
  const { emission, opacity, open } = lightTables(registry);
  assert.strictEqual(emission[states('furnace', { lit: false })], 0);
  assert.strictEqual(emission[states('furnace', { lit: true })], 13);
  assert.strictEqual(emission[states('lantern')], 15);
  assert.strictEqual(opacity[states('redstone_ore')], 15);
  assert.strictEqual(opacity[states('glass')], 1);
  assert.strictEqual(open[states('oak_leaves')], 0);
  assert.strictEqual(open[states('oak_door')], 1);
});

test('the same seed gives the same bytes in any order, another seed others', () => {
  const places = [[0, 0], [1, 0], [-1, 3], [7, -9]];
  // Options differ, so that nothing comes from the cache of chunks.
  const one = makeGenerator({ seed: 42, biome: 'any' });
  const first = places.map(([x, z]) => bytesOf(one.generate(x, z)));
  // Enough other chunks to remove the first ones from every cache.
  for (let n = 0; n < 700; n++) one.generate(100 + (n % 27), 100 + Math.floor(n / 27));
  const again = [...places].reverse().map(([x, z]) => bytesOf(one.generate(x, z))).reverse();
  assert.deepStrictEqual(again, first);
  const other = makeGenerator({ seed: 43, biome: 'any' });
  places.forEach(([x, z], n) => assert.notStrictEqual(bytesOf(other.generate(x, z)), first[n]));
  const large = makeGenerator({ seed: 42 + 2 ** 40, biome: 'any' });
  assert.notStrictEqual(bytesOf(large.generate(0, 0)), first[0]);
});

test('a chunk can be changed by its receiver alone', () => {
  const generator = makeGenerator({ seed: 5, biome: 'plains' });
  const before = bytesOf(generator.generate(2, 2));
  const mine = generator.generate(2, 2);
  for (let y = 0; y < 200; y++) mine.setBlockStateId({ x: 3, y, z: 3 }, states('gold_block'));
  mine.setSkyLight({ x: 1, y: 70, z: 1 }, 3);
  mine.setBiome({ x: 1, y: 70, z: 1 }, 0);
  assert.strictEqual(bytesOf(generator.generate(2, 2)), before);
});

test('clients load what was generated', () => {
  const chunk = makeGenerator({ seed: 6, biome: 'forest' }).generate(1, 1);
  const copy = new chunk.constructor();
  copy.load(chunk.dump(), chunk.getMask());
  copy.loadLight(chunk.dumpLight(), chunk.skyLightMask, chunk.blockLightMask);
  for (let n = 0; n < 4000; n++) {
    const at = { x: n & 15, y: (n * 7) % 110, z: (n >> 4) & 15 };
    assert.strictEqual(copy.getBlockStateId(at), chunk.getBlockStateId(at));
    assert.strictEqual(copy.getSkyLight(at), chunk.getSkyLight(at));
    assert.strictEqual(copy.getBlockLight(at), chunk.getBlockLight(at));
  }
});

test('trees across the borders of chunks are complete', () => {
  const read = reader(makeGenerator({ seed: 8, biome: 'snowy' }));
  const tops = [];
  visit(makeGenerator({ seed: 8, biome: 'snowy' }), 0, 7, (name, x, y, z) => {
    if (name === 'spruce_log' && read(x, y + 1, z) === 'spruce_leaves') tops.push({ x, y, z });
  }, 120);
  // Only trees that stand alone: leaves of others would hide what is missing.
  const alone = tops.filter((one) => tops.every((two) => one === two || Math.abs(one.x - two.x) + Math.abs(one.z - two.z) > 8));
  const sides = [[1, 0], [-1, 0], [0, 1], [0, -1]];
  let crossing = 0;
  for (const { x, y, z } of alone) {
    // A spruce is the same on all sides, layer by layer.
    for (let down = 0; down < 5; down++) {
      const leaves = sides.filter(([dx, dz]) => read(x + dx, y - down, z + dz) === 'spruce_leaves').length;
      assert.ok(leaves === 0 || leaves === 4, `${leaves} leaves about ${x} ${y - down} ${z}`);
    }
    if (x % 16 === 0 || x % 16 === 15 || z % 16 === 0 || z % 16 === 15) crossing++;
  }
  assert.ok(crossing > 2, `${crossing} of ${alone.length} lone trees at borders`);
});

test('cocoa grows at some jungle trees, each pod at a log that it faces, and at no other tree', () => {
  const trees = new Trees(states);
  const block = registry.blocksByName.cocoa;
  const steps = { north: [0, -1], south: [0, 1], west: [-1, 0], east: [1, 0] };
  const seen = { jungle: 0, oak: 0 };
  const ages = new Set();
  for (const kind of ['jungle', 'oak']) {
    for (let start = 0; start < 200; start++) {
      const cells = new Map();
      const key = (x, y, z) => `${x} ${y} ${z}`;
      const canvas = { touches: () => true, get: (x, y, z) => cells.get(key(x, y, z)) ?? 0, set: (x, y, z, state) => cells.set(key(x, y, z), state) };
      trees.draw(canvas, { kind, x: 0, y: 64, z: 0, start });
      const pods = [...cells].filter(([, state]) => state >= block.minStateId && state <= block.maxStateId);
      if (pods.length > 0) seen[kind] += 1;
      for (const [place, state] of pods) {
        const [x, y, z] = place.split(' ').map(Number);
        const { facing, age } = propertiesOf(block, state);
        const [dx, dz] = steps[facing];
        assert.strictEqual(registry.blocksByStateId[canvas.get(x + dx, y, z + dz)].name, 'jungle_log');
        assert.ok(y <= 66);
        ages.add(age);
      }
    }
  }
  // A fifth of 200, less those whose twelve chances of a quarter all fail.
  assert.ok(seen.jungle > 20 && seen.jungle < 60, `${seen.jungle} of 200 trees`);
  assert.strictEqual(seen.oak, 0);
  assert.strictEqual(ages.size, 3);
});

test('huts across the borders of chunks are complete, with door, bed and table', () => {
  const villages = new Villages(9, new Climate(9, 'plains', false), states);
  const generator = makeGenerator({ seed: 9, biome: 'plains' });
  const read = reader(generator);
  let crossing = 0;
  for (let rx = -2; rx < 2; rx++) {
    for (const box of (villages.ofRegion(rx, 0) || { boxes: [] }).boxes) {
      if (box.design !== 'hut') continue;
      const found = {};
      for (let x = box.x; x <= box.x1; x++) {
        for (let z = box.z; z <= box.z1; z++) {
          for (let y = box.y; y <= box.y + 7; y++) found[read(x, y, z)] = (found[read(x, y, z)] || 0) + 1;
        }
      }
      assert.strictEqual(found.oak_door, 2);
      assert.strictEqual(found.crafting_table, 1);
      assert.strictEqual(Object.entries(found).find(([name]) => name.endsWith('_bed'))[1], 2);
      assert.strictEqual(found.oak_log, 12);
      if (box.x >> 4 !== box.x1 >> 4 || box.z >> 4 !== box.z1 >> 4) crossing++;
    }
  }
  assert.ok(crossing > 0);
});

test('villages have chests with things in them, crops and villagers', () => {
  const generator = makeGenerator({ seed: 9, biome: 'plains' });
  const village = new Villages(9, new Climate(9, 'plains', false), states).near(-REGION, -REGION, REGION, REGION)[0];
  const read = reader(generator);
  const names = new Set();
  const kinds = new Set();
  let things = 0;
  for (let cx = (village.x >> 4) - 3; cx <= (village.x >> 4) + 3; cx++) {
    for (let cz = (village.z >> 4) - 3; cz <= (village.z >> 4) + 3; cz++) {
      for (const chest of generator.chests(cx, cz)) {
        assert.strictEqual(read(chest.x, chest.y, chest.z), 'chest');
        for (const item of chest.items) {
          assert.ok(registry.itemsByName[item.name] && item.count > 0, item.name);
          things++;
        }
      }
      for (const animal of generator.animals(cx, cz)) kinds.add(animal.kind);
      for (let cell = 0; cell < 256; cell++) for (let y = 60; y < 90; y++) names.add(read(cx * 16 + (cell & 15), y, cz * 16 + (cell >> 4)));
    }
  }
  assert.ok(things > 0);
  assert.ok(kinds.has('villager'));
  assert.ok(names.has('farmland'));
  assert.ok(['wheat', 'carrots', 'potatoes', 'beetroots'].some((crop) => names.has(crop)));
});

const HAS = {
  plains: { some: ['grass_block', 'grass', 'dandelion', 'oak_log', 'water'], none: ['cactus', 'snow'] },
  forest: { some: ['oak_log', 'birch_log', 'oak_leaves', 'poppy'], none: ['cactus', 'acacia_log'] },
  desert: { some: ['sand', 'sandstone', 'cactus', 'dead_bush'], none: ['grass_block', 'oak_leaves', 'snow'] },
  taiga: { some: ['spruce_log', 'fern', 'sweet_berry_bush'], none: ['cactus', 'birch_log'] },
  savanna: { some: ['acacia_log', 'acacia_leaves', 'grass'], none: ['cactus', 'spruce_leaves'] },
  snowy: { some: ['snow', 'spruce_log'], none: ['cactus', 'acacia_log'] },
};

for (const [biome, { some, none }] of Object.entries(HAS)) {
  test(`${biome} has what it should`, () => {
    const counts = countNames(makeGenerator({ seed: 31, biome }), -4, 4);
    for (const name of some) assert.ok(counts[name] > 0, `no ${name}`);
    for (const name of none) assert.strictEqual(counts[name], undefined, `${name} in ${biome}`);
  });
}

test('a world of any biome has many', () => {
  const generator = makeGenerator({ seed: 17 });
  const found = new Set();
  for (let x = -800; x <= 800; x += 50) for (let z = -800; z <= 800; z += 50) found.add(generator.biomeAt(x, z));
  for (const biome of ['plains', 'forest', 'desert', 'taiga', 'savanna', 'snowy_tundra', 'ocean', 'river']) {
    assert.ok(found.has(biome), `no ${biome} among ${[...found]}`);
  }
});

test('ores occur at their heights, as many as in the game', () => {
  const counts = {};
  visit(makeGenerator({ seed: 77, biome: 'plains' }), 0, 7, (name, x, y) => {
    const vein = VEINS.find((each) => each.name === name && name.endsWith('_ore'));
    if (!vein) return;
    assert.ok(y >= vein.low && y <= vein.high, `${name} at ${y}`);
    counts[name] = (counts[name] || 0) + 1;
  }, 128);
  // Blocks a chunk, https://minecraft.wiki/w/Ore: coal about 142, iron 77, gold 8.2, redstone 25, diamond 3.1, lapis 3.4.
  const expected = { coal_ore: 142, iron_ore: 77, gold_ore: 8.2, redstone_ore: 25, diamond_ore: 3.1, lapis_ore: 3.4 };
  for (const [name, mean] of Object.entries(expected)) {
    const share = counts[name] / 64 / mean;
    assert.ok(share > 0.6 && share < 1.6, `${name}: ${counts[name] / 64} a chunk`);
  }
});

test('the world ends in bedrock, and caves are dry above lava', () => {
  let hollow = 0;
  visit(makeGenerator({ seed: 3, biome: 'plains' }), -2, 2, (name, x, y) => {
    if (y === 0) assert.strictEqual(name, 'bedrock');
    if (name === 'lava') assert.ok(y < 11);
    if (y > 11 && y < 50 && name === 'air') hollow++;
    if (y < 11 && name === 'air') assert.fail(`air at ${y}`);
  }, 60);
  assert.ok(hollow > 2000, `${hollow} hollow blocks`);
});

test('players begin on dry land under the open sky', () => {
  for (let seed = 0; seed < 8; seed++) {
    const generator = makeGenerator({ seed, biome: ['any', 'plains', 'desert', 'snowy'][seed % 4] });
    const { x, y, z } = generator.spawn;
    const read = reader(generator);
    const [bx, bz] = [Math.floor(x), Math.floor(z)];
    assert.deepStrictEqual(makeGenerator({ seed, biome: ['any', 'plains', 'desert', 'snowy'][seed % 4] }).spawn, { x, y, z });
    assert.ok(!/air|water|lava|ice|leaves/.test(read(bx, y - 1, bz)), read(bx, y - 1, bz));
    for (let up = y; up < 200; up++) assert.ok(['air', 'snow', 'grass', 'fern'].includes(read(bx, up, bz)) || registry.blocksByName[read(bx, up, bz)].boundingBox === 'empty');
  }
});

test('flat ground is flat, with ores below and nothing on it', () => {
  const generator = makeGenerator({ seed: 4, biome: 'desert', site: 'flat' });
  const read = reader(generator);
  for (let x = -20; x < 20; x += 3) {
    assert.strictEqual(read(x, 63, x), 'sand');
    assert.strictEqual(read(x, 64, x), 'air');
  }
  assert.deepStrictEqual(generator.spawn, { x: 0.5, y: 64, z: 0.5 });
  assert.deepStrictEqual(generator.animals(0, 0), []);
  assert.ok(countNames(generator, 0, 1).iron_ore > 0);
});

test('the sky lights what is under it, lamps what is around them', () => {
  const generator = makeGenerator({ seed: 6, biome: 'plains' });
  const { x, y, z } = generator.spawn;
  const chunk = generator.generate(Math.floor(x / 16), Math.floor(z / 16));
  const at = (up) => ({ x: Math.floor(x) & 15, y: y + up, z: Math.floor(z) & 15 });
  assert.strictEqual(chunk.getSkyLight(at(0)), 15);
  assert.strictEqual(chunk.getSkyLight(at(-2)), 0);
  let lit = 0;
  for (let cx = -3; cx <= 3; cx++) {
    for (let cz = -3; cz <= 3; cz++) {
      const each = generator.generate(cx, cz);
      for (let n = 0; n < 256 * 11; n++) {
        const place = { x: n & 15, y: n >> 8, z: (n >> 4) & 15 };
        if (nameAt(each, place.x, place.y, place.z) !== 'lava') continue;
        assert.strictEqual(each.getBlockLight(place), 15);
        lit++;
      }
    }
  }
  assert.ok(lit > 50);
});

test('animals belong to their biome and stand on the ground', () => {
  const generator = makeGenerator({ seed: 21, biome: 'plains' });
  const kinds = {};
  for (let cx = -12; cx <= 12; cx++) {
    for (let cz = -12; cz <= 12; cz++) {
      for (const { kind, x, y, z } of generator.animals(cx, cz)) {
        kinds[kind] = (kinds[kind] || 0) + 1;
        assert.ok(registry.entitiesByName[kind], kind);
        const deep = ['zombie', 'skeleton', 'cave_spider'].includes(kind); // in dungeons and mineshafts
        assert.ok(Number.isFinite(x + y + z) && y > (deep ? 10 : 30) && y < 160);
      }
    }
  }
  for (const kind of ['sheep', 'cow', 'pig', 'chicken']) assert.ok(kinds[kind] > 2, `${kind}: ${kinds[kind]}`);
  assert.deepStrictEqual(generator.animals(3, 4), makeGenerator({ seed: 21, biome: 'plains' }).animals(3, 4));
});

test('invalid options are named', () => {
  assert.throws(() => makeGenerator({ seed: 1, biome: 'swamp' }), /any or one of plains, forest.*not swamp/);
  assert.throws(() => makeGenerator({ seed: 1.5 }), /whole number/);
  assert.throws(() => makeGenerator({ seed: 1, site: 'hill' }), /wild, flat/);
  assert.throws(() => makeGenerator({ seed: 1, version: '1.12.2' }), /1\.16/);
});

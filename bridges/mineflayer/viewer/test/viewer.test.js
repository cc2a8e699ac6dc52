'use strict';
/** What the viewer makes of scenes, without a screen: `node --test` with the viewer's packages. */
const test = require('node:test');
const assert = require('node:assert/strict');
const minecraftData = require('minecraft-data');
const THREE = require('three');
const { getVersion } = require('prismarine-viewer/viewer/lib/version');
const { sceneTable } = require('../../game/observe/scene');
const { blocksOf } = require('../blocks');
const { Bodies } = require('../bodies');
const { hourOf } = require('../hour');
const { Meshes, Terrain } = require('../terrain');

const VERSION = '1.16.5';
const registry = minecraftData(VERSION);
const states = require('prismarine-viewer/public/blocksStates/1.16.4.json');
const CUBOID = [[0, 0, 0, 1, 1, 1]];
const APPEARANCES = [
  ['air', [], {}, 0, 1],
  ['stone', CUBOID, {}, 0, 15],
  ['grass_block', CUBOID, { snowy: false }, 0, 15],
  ['oak_stairs', [[0, 0, 0, 1, 0.5, 1], [0, 0.5, 0, 1, 1, 0.5]], {}, 0, 1],
  ['furnace', CUBOID, { facing: 'south', lit: true }, 13, 15],
  ['water', [], { level: 0 }, 0, 1],
];
const [AIR, STONE] = [0, 1];
const SIZE = [32, 32, 32];

/** A camera that sees everything. */
const ALL = { intersectsBox: () => true };

const terrain = (meshes = new Meshes(blocksOf(VERSION, APPEARANCES, states), ['ocean', 'plains'], states)) =>
  new Terrain(meshes, new THREE.MeshBasicMaterial());

/** A floor of stone up to y = 8 within a box, and what `put` says, {'x,y,z': appearance}. */
function box(put = {}, origin = [-12, 0, -12]) {
  const cells = new Uint16Array(SIZE[0] * SIZE[1] * SIZE[2]);
  const place = (x, y, z) => ((x - origin[0]) * SIZE[2] + z - origin[2]) * SIZE[1] + y - origin[1];
  for (let x = 0; x < SIZE[0]; x++) {
    for (let z = 0; z < SIZE[2]; z++) cells.fill(STONE, (x * SIZE[2] + z) * SIZE[1], (x * SIZE[2] + z) * SIZE[1] + 8);
  }
  for (const [key, appearance] of Object.entries(put)) cells[place(...key.split(',').map(Number))] = appearance;
  const biomes = new Uint8Array(SIZE[0] * SIZE[2]).fill(1);
  return { origin, size: SIZE, blocks: new Uint8Array(cells.buffer), biomes };
}

const shown = ({ sections }) => Object.fromEntries([...sections].map(([name, { entry }]) => [name, entry.key]).sort());

test('an appearance is shown as a state of its block with its properties and its shape', () => {
  const [, stone, grass, stairs, furnace, water] = blocksOf(VERSION, APPEARANCES, states);
  assert.equal(stone.name, 'stone');
  assert.equal(stone.isCube, true);
  assert.equal(grass.getProperties().snowy, false);
  assert.deepEqual(furnace.getProperties(), { facing: 'south', lit: true });
  const { half, facing, waterlogged } = stairs.getProperties();
  assert.deepEqual([half, facing, waterlogged], ['bottom', 'north', false]);
  assert.equal(water.metadata, 0);
});

test('every appearance of a block is shown as that block, in places that are numbers', () => {
  for (const version of [VERSION, '1.12.2']) {
    const { appearances } = sceneTable(minecraftData(version));
    const models = require(`prismarine-viewer/public/blocksStates/${getVersion(version)}.json`);
    const blocks = blocksOf(version, appearances, models);
    assert.deepEqual(blocks.map(({ name }) => name), appearances.map(([name]) => name));
    const all = terrain(new Meshes(blocks, ['ocean', 'plains'], models));
    const { origin, size, ...rest } = box();
    const cells = new Uint16Array(SIZE[0] * SIZE[1] * SIZE[2]);
    for (let n = 0; n < cells.length; n += 2) cells[n] = n / 2 % blocks.length;
    all.fill({ origin, size, ...rest, blocks: new Uint8Array(cells.buffer) });
    all.update(ALL);
    let corners = 0;
    for (const { entry } of all.sections.values()) {
      const { position, uv } = entry.geometry.attributes;
      corners += position.count;
      assert.ok([position, uv].every(({ array }) => array.every(Number.isFinite)), version);
      assert.equal(entry.geometry.index.count % 3, 0);
    }
    assert.ok(corners > 24 * blocks.length, version);
    all.close();
  }
});

test('blocks that nobody knows leave a gap, not an error', () => {
  assert.equal(blocksOf(VERSION, [['of_a_mod', CUBOID, {}, 0, 15]], states)[0].name, 'air');
});

test('chests and beds, which have no model, are shown as their boxes, signs as posts; air and barriers are not', () => {
  const low = [[0, 0, 0, 1, 0.5625, 1]];
  const rows = [['chest', CUBOID], ['red_bed', low], ['oak_sign', []], ['barrier', CUBOID], ['air', []],
    ['stone', CUBOID]].map(([name, boxes]) => [name, boxes, {}, 0, 1]);
  const [chest, bed, sign, ...others] = blocksOf(VERSION, rows, states)
    .map((block) => block.variant?.[0].model.elements);
  assert.deepEqual([chest[0].from, chest[0].to], [[0, 0, 0], [16, 16, 16]]);
  assert.deepEqual(bed[0].to, [16, 9, 16]);
  assert.equal(sign.length, 1);
  assert.deepEqual(others, [undefined, undefined, undefined]);
});

test('every kind of creature can be shown, young and of every colour', () => {
  const kinds = [];
  for (const { id, name, width, height } of registry.entitiesArray) kinds[id] = [name, width, height];
  const items = [];
  for (const { id, name } of registry.itemsArray) items[id] = name;
  const bodies = new Bodies(kinds, items);
  const scene = new THREE.Scene();
  const sheep = registry.entitiesByName.sheep.id;
  const thing = registry.entitiesByName.item.id;
  const rows = [...registry.entitiesArray.map(({ id }) => [id, 1, 2, 3, 0.5, 0, 0, 2]),
    ...Array.from({ length: 32 }, (_, variant) => [sheep, 0, 0, 0, 0, 0, variant, 0]),
    [thing, 0, 0, 0, 0, 0, registry.itemsByName.apple.id, 0], [thing, 0, 0, 0, 0, 0, 60_000, 0],
    [-1, 0, 0, 0, 0, 0, 0, 0]];
  bodies.show(Float32Array.from(rows.flat()), [10, 20, 30], scene);
  assert.equal(scene.children.length, rows.length);
  for (const body of scene.children) {
    let parts = 0;
    body.traverse((part) => { parts += part.isMesh || part.isSprite ? 1 : 0; });
    assert.ok(parts > 0, `${body.userData.order} has nothing to show`);
  }
  assert.deepEqual(scene.children[0].position.toArray(), [11, 22, 33]);
  assert.equal(scene.children[0].scale.x, 0.5);
  bodies.clear(scene);
  assert.equal(scene.children.length, 0);
});

test('a sheep has wool of its colour, a shorn one none', () => {
  const bodies = new Bodies([['sheep', 0.9, 1.3]], []);
  const parts = (variant) => bodies.borrow(0, variant).children[0].children;
  assert.equal(parts(14).some((part) => part.material.color.getHex() === 0xb02e26), true);
  assert.equal(parts(14).length, parts(30).length + 1);
});

test('what is seen of blocks does not depend on how they came there', () => {
  const put = { '0,8,0': STONE, '3,8,-4': 3 };
  const once = terrain();
  once.fill(box(put));
  once.update(ALL);
  const later = terrain(once.meshes);
  later.fill(box({ '0,9,0': 4 }));
  later.update(ALL);
  later.change(Int32Array.from([0, 9, 0, AIR, 0, 0, 8, 0, STONE, 0, 3, 8, -4, 3, 0]));
  later.update(ALL);
  assert.deepEqual(shown(later), shown(once));
  assert.notEqual(Object.keys(shown(once)).length, 0);
  later.change(Int32Array.from([0, 8, 0, AIR, 0]));
  later.update(ALL);
  assert.notDeepEqual(shown(later), shown(once));
});

test('what no camera has seen is made when one does, as it is by then', () => {
  const late = terrain();
  late.fill(box({ '0,9,0': STONE }));
  late.update({ intersectsBox: () => false });
  assert.equal(late.sections.size, 0);
  late.change(Int32Array.from([0, 9, 0, AIR, 0]));
  late.update({ intersectsBox: ({ min, max }) => min.x < 0 && max.x > 0 });
  assert.ok(late.sections.size > 0);
  late.update(ALL);
  const once = terrain(late.meshes);
  once.fill(box());
  once.update(ALL);
  assert.deepEqual(shown(late), shown(once));
});

test('equal sections share a mesh, wherever they are', () => {
  const one = terrain();
  one.fill(box());
  one.update(ALL);
  const before = one.meshes.known.size;
  const other = terrain(one.meshes);
  other.fill(box({}, [-12 + 512, 0, -12 - 64]));
  other.update(ALL);
  assert.equal(one.meshes.known.size, before);
  for (const entry of one.meshes.known.values()) assert.ok(entry.users > 1);
  one.close();
  other.close();
  for (const entry of one.meshes.known.values()) assert.equal(entry.users, 0);
});

test('only the top of a floor is drawn: not what lies against other blocks, nor the sides of the box', () => {
  const flat = terrain();
  flat.fill(box());
  flat.update(ALL);
  const faces = [...flat.sections.values()].reduce((sum, { entry }) => sum + entry.geometry.index.count / 6, 0);
  assert.equal(faces, SIZE[0] * SIZE[2]);
});

test('nights are darker than days, storms too, and water is blue', () => {
  const at = (time, rain = 0, wet = false) => hourOf({ time, rain, thunder: 0 }, wet);
  assert.ok(at(18_000).shade[0] < 0.3 * at(6000).shade[0]);
  assert.ok(at(18_000).sky[2] < 0.3 * at(6000).sky[2]);
  assert.ok(at(6000, 1).shade[0] < at(6000).shade[0]);
  const [red, , blue] = at(6000, 0, true).sky;
  assert.ok(blue > 3 * red);
});

'use strict';

/** Structures: what they are made of, where they stand, and what their chests hold. */

const test = require('node:test');
const assert = require('node:assert');
const registry = require('prismarine-registry')('1.16.5');
const { makeGenerator } = require('../generator');
const { Climate } = require('../generator/climate');
const { makeStates } = require('../generator/blocks');
const { DESIGNS, Structures } = require('../generator/structures');
const { Villages } = require('../generator/villages');
const { itemsOf, tableName } = require('../survival/chest_loot');
const { tables } = require('../survival/loot_tables.json');
const { begin, play } = require('./actions_help');
const { inWorld, seen, words } = require('./survival_help');

const states = makeStates(registry);
/** A biome in which each is found, and blocks that it has some of. */
const MADE_OF = {
  desert_temple: ['desert', ['sandstone', 'blue_terracotta', 'tnt', 'chiseled_sandstone', 'stone_pressure_plate']],
  jungle_temple: ['any', ['mossy_cobblestone', 'lever', 'dispenser', 'tripwire']],
  igloo: ['snowy', ['snow_block', 'furnace', 'red_bed', 'brewing_stand', 'ladder', 'cauldron']],
  pillager_outpost: ['plains', ['dark_oak_planks', 'dark_oak_log', 'birch_planks', 'mossy_cobblestone']],
  shipwreck: ['plains', ['oak_planks', 'oak_log', 'water']],
  ruined_portal: ['plains', ['obsidian', 'netherrack', 'crying_obsidian']],
  mineshaft: ['plains', ['oak_fence', 'oak_planks', 'rail', 'cobweb']],
  dungeon: ['plains', ['cobblestone', 'mossy_cobblestone']],
};

function of(biome, seed) {
  const climate = new Climate(seed, biome, false);
  return new Structures(seed, climate, states, new Villages(seed, climate, states));
}

const SPAN = { jungle_temple: 4000 };
/** Returns up to `most` structures of a kind. */
function some(kind, seed, most = 3) {
  const span = SPAN[kind] ?? 1200;
  return of(MADE_OF[kind][0], seed).near(-span, -span, span, span).filter(({ design }) => design === kind).slice(0, most);
}

/** Reads a generator's blocks by place. */
function reader(generator) {
  const columns = new Map();
  return (x, y, z) => {
    const key = `${x >> 4},${z >> 4}`;
    if (!columns.has(key)) columns.set(key, generator.generate(x >> 4, z >> 4));
    return registry.blocksByStateId[columns.get(key).getBlockStateId({ x: x & 15, y, z: z & 15 })].name;
  };
}

test('every kind of structure has a test here', () => {
  assert.deepStrictEqual(Object.keys(MADE_OF).sort(), Object.keys(DESIGNS).sort());
});

for (const [kind, [biome, blocks]] of Object.entries(MADE_OF)) {
  test(`a ${kind} is made of what it should be, with chests that hold its loot`, () => {
    const found = some(kind, 5);
    assert.ok(found.length > 0, `no ${kind}`);
    const generator = makeGenerator({ seed: 5, biome });
    const read = reader(generator);
    const names = new Set();
    let chests = 0;
    for (const box of found) {
      for (let x = box.x; x <= box.x1; x++) {
        for (let z = box.z; z <= box.z1; z++) for (let y = box.y - 14; y < box.y + 20; y++) names.add(read(x, y, z));
      }
      for (let cx = box.x >> 4; cx <= box.x1 >> 4; cx++) {
        for (let cz = box.z >> 4; cz <= box.z1 >> 4; cz++) {
          for (const { x, y, z, loot } of generator.chests(cx, cz).filter((chest) => chest.loot)) {
            assert.ok(['chest', 'dispenser'].includes(read(x, y, z)), `${read(x, y, z)} at ${x} ${y} ${z}`);
            assert.ok(tableName(loot), loot);
            chests++;
          }
        }
      }
    }
    for (const name of blocks) assert.ok(names.has(name), `no ${name} in ${kind}`);
    assert.ok(chests >= found.length * 0.5, `${chests} chests`);
  });
}

test('structures are where their seed says, and the same in any order of chunks', () => {
  const box = some('desert_temple', 9, 1)[0];
  const [cx, cz] = [box.x >> 4, box.z >> 4];
  const bytes = (order) => {
    const generator = makeGenerator({ seed: 9, biome: 'desert' });
    const made = new Map(order.map(([x, z]) => [`${x},${z}`, generator.generate(x, z).dump().toString('base64')]));
    return [...made.keys()].sort().map((key) => made.get(key));
  };
  const order = [[cx, cz], [cx + 1, cz], [cx, cz + 1], [cx + 1, cz + 1]];
  assert.deepStrictEqual(bytes(order), bytes([...order].reverse()));
  assert.notDeepStrictEqual(some('desert_temple', 9, 1)[0], some('desert_temple', 10, 1)[0]);
});

test('none stands in a house, in a tree, on steep ground, or near the origin if it is dangerous', () => {
  for (const seed of [1, 2, 3]) {
    const structures = of('plains', seed);
    for (const box of structures.near(-800, -800, 800, 800)) {
      const { on, away } = DESIGNS[box.design];
      assert.ok(Math.hypot(box.x, box.z) >= away, box.design);
      if (on !== 'ground') continue;
      for (const { boxes } of structures.villages.near(box.x, box.z, box.x1, box.z1)) {
        for (const house of boxes) {
          assert.ok(house.x1 < box.x || house.x > box.x1 || house.z1 < box.z || house.z > box.z1, `${box.design} in a house`);
        }
      }
      assert.ok(structures.takes(box.x, box.z, 0));
    }
  }
  assert.ok(DESIGNS.pillager_outpost.away >= 100);
});

test('what loot tables name exists', () => {
  for (const name of Object.keys(tables)) for (const item of itemsOf(name)) assert.ok(registry.itemsByName[item], item);
  for (const { steps } of Object.values(DESIGNS)) {
    for (const step of steps.filter((each) => each.includes('chest') || each.includes('loot'))) {
      assert.ok(tableName(step.find((each) => typeof each === 'string' && tableName(each))), JSON.stringify(step));
    }
  }
});

test('a world is begun where a dungeon took the place of a chest of a mineshaft', async () => {
  const world = await begin({ view_distance: 1 }, { state: { world: 441102968, biome: 'plains', site: 'wild' } });
  const { survival } = world.serv;
  const cell = [-75, 25, -25];
  await world.run(async () => {
    await world.serv.overworld.getColumn(-5, -2);
    assert.equal(survival.blocks.at(...cell).name, 'cobblestone');
  });
  await world.close();
});

test('a chest of a temple that is reached holds what its table gives, the same each time', async () => {
  const [box] = some('desert_temple', 3, 1);
  const holds = async () => {
    const world = await begin({ view_distance: 2 }, { state: { world: 3, biome: 'desert', site: 'wild' } });
    const { survival } = world.serv;
    await world.run(async () => {
      world.agents[0].player.teleport(world.origin.clone().set(box.x + 10, box.y + 14, box.z + 10));
      await world.settle();
    });
    await play(world, { action: [0, 0, 0, 12, 12, 0, 0, 0] }, 60);
    const chests = [...survival.containers.values()].filter(({ y }) => y === box.y - 11);
    assert.strictEqual(chests.length, 4);
    const things = chests.map(({ slots }) => slots.map(words).join());
    world.close();
    return things;
  };
  const things = await holds();
  assert.ok(things.every((each) => /bone|gunpowder|rotten_flesh|string|sand/.test(each)), things.join(' / '));
  assert.deepStrictEqual(await holds(), things);
});

test('/setblock fills a chest by its loot table, the same with the same seed', () =>
  inWorld({}, async (w, bot) => {
    const nbt = (table, seed) => ({ type: 'compound', value: { LootTable: { type: 'string', value: table },
      ...(seed ? { LootTableSeed: { type: 'int', value: seed } } : {}) } });
    const put = (x, table, seed) => w.run(() => w.serv.survival.command({ name: 'setblock',
      args: { at: [['', x], ['', 4], ['', 8]], block: { name: 'chest', nbt: nbt(table, seed) } } }));
    put(10, 'minecraft:chests/buried_treasure');
    for (const x of [12, 14]) put(x, 'chests/simple_dungeon', 77);
    await w.step(2);
    const open = async (x) => {
      const chest = await w.until(() => bot.openChest(seen(bot, x, 4, 8)));
      const items = chest.containerItems().map((item) => `${words(item)} ${JSON.stringify(item.enchants)}`);
      await w.until(() => chest.close());
      return items;
    };
    assert.ok((await open(10)).some((each) => each.startsWith('heart_of_the_sea')));
    w.run(() => w.serv.survival.blocks.setNamed(12, 4, 8, 'chest', { type: 'single' }));
    const [one, two] = [w.serv.survival.container(12, 4, 8), w.serv.survival.container(14, 4, 8)];
    assert.deepStrictEqual(one.slots.map(words), two.slots.map(words));
    assert.throws(() => put(16, 'chests/nowhere'), /Unknown loot table/);
  }));

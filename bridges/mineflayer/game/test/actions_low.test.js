'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { CRAFTABLES, columnsOf, makeActor } = require('../actions');
const { ActionError } = require('../decode');
const { begin, low, play, playUntil, blockAt, countOf, look } = require('./actions_help');

const DOWN = low({ pitch: -6 });
const dug = (world) => world.agents[0].actor.hands.dug?.block ?? null;
const near = (a, b, slack = 1e-9) => assert.ok(Math.abs(a - b) <= slack, `${a} is not ${b}`);
/** Yaw of the first agent that looks along +z, with pitch 0, in a world where it stands still. */
async function ahead(world) {
  world.run(() => { Object.assign(world.bots[0].entity, { yaw: Math.PI, pitch: 0 }); });
  await play(world, low());
}

test('the neutral action does nothing and zeros turn by half a circle', async () => {
  const world = await begin();
  await ahead(world);
  const { entity } = world.bots[0];
  const place = entity.position.clone();
  await play(world, low(), 20);
  assert.ok(entity.position.equals(place));
  near(entity.yaw, Math.PI);
  await play(world, { action: [0, 0, 0, 12, 0, 0, 0, 0] });
  near(Math.abs(entity.yaw), 0, 1e-9);
  await play(world, { action: [0, 0, 0, 0, 12, 0, 0, 0] });
  near(entity.pitch, -Math.PI / 2);
  world.close();
});

test('the camera turns at once, 15 degrees a bin, and stops at straight up', async () => {
  const world = await begin();
  await ahead(world);
  await play(world, low({ pitch: 3, yaw: -2 }));
  near(world.bots[0].entity.pitch, Math.PI / 4);
  near(world.bots[0].entity.yaw, Math.PI - Math.PI / 6);
  await play(world, low({ pitch: 12 }), 2);
  near(world.bots[0].entity.pitch, Math.PI / 2);
  world.close();
});

test('keys are those of the action: walking, sneaking, sprinting, jumping', async () => {
  const world = await begin();
  await ahead(world);
  const { entity } = world.bots[0];
  const speed = async (row) => {
    await play(world, row, 20);
    const from = entity.position.clone();
    await play(world, row, 20);
    return entity.position.distanceTo(from);
  };
  near(await speed(low({ move: 1 })), 4.317, 0.05);
  near(await speed(low({ move: 2 })), 4.317, 0.05);
  near(await speed(low({ strafe: 1 })), 4.317, 0.05);
  near(await speed(low({ move: 1, posture: 2 })), 1.295, 0.05);
  near(await speed(low({ move: 1, posture: 3 })), 5.612, 0.2);
  await play(world, low(), 10);
  const ground = entity.position.y;
  await play(world, low({ posture: 1 }), 4);
  assert.ok(entity.position.y > ground + 0.5);
  world.close();
});

test('digging continues while it is chosen, ends when it is not, and the drop is picked up', async () => {
  const world = await begin();
  await play(world, DOWN);
  await play(world, low({ do: 'dig' }), 5);
  await play(world, low(), 30);
  assert.strictEqual(blockAt(world, 0, -1, 0), 'grass_block');
  const steps = await playUntil(world, low({ do: 'dig' }), () => blockAt(world, 0, -1, 0) === 'air');
  assert.ok(steps >= 18 && steps <= 20, `grass by hand takes 18 ticks, took ${steps}`);
  await playUntil(world, low(), () => countOf(world, 'dirt') === 1);
  // Falling into the hole and digging on: the next block comes after the pause.
  await playUntil(world, low({ do: 'dig' }), () => blockAt(world, 0, -2, 0) === 'air');
  await play(world, low({ do: 'stop' }));
  assert.strictEqual(dug(world), null);
  world.close();
});

test('another block under the cursor begins again', async () => {
  const world = await begin({}, { blocks: [[0, 2], [1, 2], [-1, 2]].map(([x, z]) => (
    { x, y: 1, z, name: 'dirt' })) });
  await ahead(world);
  await play(world, low({ do: 'dig' }), 10);
  assert.strictEqual(dug(world).position.x, 0);
  await play(world, low({ do: 'dig', yaw: -2 }));
  assert.strictEqual(Math.abs(dug(world).position.x), 1);
  assert.strictEqual(dug(world).name, 'dirt');
  assert.strictEqual(blockAt(world, 0, 1, 2), 'dirt');
  world.close();
});

test('craft makes planks, sticks by hand, and a pickaxe at a table that place puts down', async () => {
  const world = await begin({}, { items: [{ name: 'oak_log', count: 4, slot: null }] });
  await ahead(world);
  const make = (name) => play(world, low({ do: 'craft', craft: CRAFTABLES.indexOf(name) }));
  for (let i = 0; i < 3; i++) await make('oak_planks');
  assert.strictEqual(countOf(world, 'oak_planks'), 12);
  await make('stick');
  await make('crafting_table');
  assert.strictEqual(countOf(world, 'stick'), 4);
  assert.strictEqual(countOf(world, 'crafting_table'), 1);
  await make('wooden_pickaxe');
  assert.strictEqual(countOf(world, 'wooden_pickaxe'), 0);
  const { details } = look(world);
  const failed = details.event.find(({ type }) => type === 'actionFailed');
  assert.match(failed.message, /wooden_pickaxe: a crafting table within 4.5 blocks is missing/);
  const { slot } = world.bots[0].inventory.items().find(({ name }) => name === 'crafting_table');
  await play(world, low({ pitch: -3, do: 'place', slot }), 1);
  await play(world, low(), 3);
  assert.strictEqual(countOf(world, 'crafting_table'), 0);
  const { yaw, pitch } = world.bots[0].entity;
  await make('wooden_pickaxe');
  assert.strictEqual(countOf(world, 'wooden_pickaxe'), 1);
  assert.deepStrictEqual([world.bots[0].entity.yaw, world.bots[0].entity.pitch], [yaw, pitch]);
  assert.strictEqual(look(world).values.items_crafted > 0, true);
  world.close();
});

test('equip, drop and destroy move what is in a slot', async () => {
  const world = await begin({}, { items: [{ name: 'dirt', count: 64, slot: null },
    { name: 'stone', count: 5, slot: null }] });
  await ahead(world);
  const slotOf = (name) => world.bots[0].inventory.items().find((item) => item.name === name).slot;
  assert.strictEqual(world.bots[0].heldItem.name, 'dirt');
  await play(world, low({ do: 'equip', slot: slotOf('stone') }));
  assert.strictEqual(world.bots[0].heldItem.name, 'stone');
  await play(world, low({ do: 'drop' }));
  assert.strictEqual(countOf(world, 'stone'), 0);
  await play(world, low({ do: 'destroy', slot: slotOf('dirt') }));
  assert.strictEqual(countOf(world, 'dirt'), 0);
  await play(world, low({ do: 'destroy', slot: 20 }));
  assert.match(look(world).details.event.at(-1).message, /destroy: slot 20 is empty/);
  world.close();
});

test('use eats what is held for as long as it is chosen', async () => {
  const world = await begin({}, { items: [{ name: 'bread', count: 2, slot: null }] });
  await ahead(world);
  await world.console('/effect give a0 hunger 30 50');
  await playUntil(world, low(), () => world.bots[0].food < 16, 900);
  const food = world.bots[0].food;
  await play(world, low({ do: 'use' }), 20);
  await play(world, low(), 20);
  assert.strictEqual(countOf(world, 'bread'), 2, 'letting go half way eats nothing');
  await playUntil(world, low({ do: 'use' }), () => countOf(world, 'bread') === 1, 40);
  assert.ok(world.bots[0].food > food);
  world.close();
});

test('attack strikes what is looked at and nothing behind', async () => {
  const world = await begin({ agents: 2 }, { items: [{ name: 'iron_sword', count: 1, slot: null }] });
  const [me, other] = world.bots;
  const meet = (yaw) => world.run(() => Object.assign(me.entity, { yaw, pitch: 0 }));
  const way = other.entity.position.minus(me.entity.position);
  const yaw = Math.atan2(-way.x, -way.z);
  meet(yaw + Math.PI);
  await play(world, low(), 20);
  await play(world, low({ do: 'attack' }));
  assert.strictEqual(world.players[1].health, 20);
  meet(yaw);
  await play(world, low(), 20);
  await play(world, low({ do: 'attack' }));
  assert.strictEqual(world.players[1].health, 14);
  assert.strictEqual(look(world).values.damage_dealt, 6);
  world.close();
});

test('use opens gates with and without something in the hand', async () => {
  for (const items of [[], [{ name: 'stick', count: 1, slot: null }]]) {
    const world = await begin({}, { items, blocks: [{ x: 0, y: 1, z: 2, name: 'oak_fence_gate' }] });
    await ahead(world);
    const open = () => {
      const block = world.bots[0].blockAt(world.serv.spawnOf(0).floored().offset(0, 1, 2));
      return block.getProperties().open;
    };
    const before = open();
    await play(world, low({ do: 'use', pitch: 0 }));
    await play(world, low(), 2);
    assert.notStrictEqual(open(), before);
    world.close();
  }
});

test('an agent that leaves restores its bot', async () => {
  const world = await begin({}, { blocks: [{ x: 0, y: 0, z: 2, name: 'stone' }] });
  await play(world, low({ do: 'dig', pitch: -6 }), 2);
  assert.ok(dug(world));
  world.run(() => world.agents[0].leave());
  await world.step(2);
  assert.strictEqual(world.players[0].digging, null);
  const [bot] = world.bots;
  await world.until(() => bot.lookAt(bot.entity.position.offset(3, 1.62, 0), true));
  near(bot.entity.yaw, -Math.PI / 2, 0.01);
  world.close();
});

test('numbers out of range are refused by name', async () => {
  const world = await begin();
  const wrong = [[5, 10, 'do'], [3, 25, 'pitch'], [7, 46, 'slot'], [0, -1, 'move'], [6, 1.5, 'craft']];
  for (const [place, value, name] of wrong) {
    const row = low();
    row.action[place] = value;
    assert.throws(() => world.run(() => world.agents[0].actor.apply(row)),
      (error) => error instanceof ActionError && error.message.includes(`action/${name}`));
  }
  assert.throws(() => columnsOf('nonsense'), /low_level, human, mouse, code, compact, got nonsense/);
  assert.throws(() => makeActor('nonsense', {}), /got nonsense/);
  world.close();
});

test('there are 244 craftable items, each with a recipe, in the order of their ids', () => {
  const data = require('minecraft-data')('1.16.5');
  assert.strictEqual(CRAFTABLES.length, columnsOf('low_level').action.sizes[6]);
  const order = Object.values(data.items).map(({ name }) => name);
  const ids = CRAFTABLES.map((name) => order.indexOf(name));
  assert.deepStrictEqual(ids, [...new Set(ids)].sort((a, b) => a - b));
  for (const name of CRAFTABLES) assert.ok(data.recipes[data.itemsByName[name].id], name);
});

'use strict';
/** Names of mineflayer's plugins that MineLand's prompts use: goals, pvp, collectBlock, beds, fishing. */
const assert = require('node:assert');
const test = require('node:test');
const { begin, blockAt, countOf, look, play, playUntil } = require('./actions_help');

const RESUME = { kind: 0, code: '' };
const NEW = (code) => ({ kind: 1, code });

/** Plays a program to its end; returns `{world, error, logs, place}`, the place from where it began. */
async function played(code, start = {}, over = {}) {
  const world = await begin({ actions: 'code', ...over }, start);
  await play(world, NEW(code));
  const state = () => world.agents[0].codeState();
  let info = world.run(state).info;
  if (info.is_running) await playUntil(world, RESUME, () => { ({ info } = state()); return !info.is_running; }, 1500);
  const place = world.bots[0].entity.position.minus(world.origin);
  return { world, error: info.code_error, logs: info.logs, place };
}

const at = (x, y, z, name) => ({ x, y, z, name });

test('beds are known by name', async () => {
  const { world, error, logs } = await played(`
    const bed = bot.findBlock({ matching: (block) => bot.isABed(block), maxDistance: 16 });
    console.log(bed.name, bot.isABed(bot.blockAt(bot.entity.position.offset(0, -1, 0))), bot.isABed(null));`,
  { blocks: [at(3, 0, 0, 'red_bed')] });
  assert.deepStrictEqual(error, {});
  assert.deepStrictEqual(logs, ['red_bed false false']);
  world.close();
});

test('a place to place a block from is found, and the block is placed', async () => {
  const { world, error } = await played(`
    const { x, y, z } = bot.entity.position.floored();
    const place = new Vec3(x + 8, y, z);
    await bot.pathfinder.goto(new GoalPlaceBlock(place, bot.world, { range: 4 }));
    await bot.equip('stone', 'hand');
    await bot.placeBlock(bot.blockAt(place.offset(0, -1, 0)), new Vec3(0, 1, 0));`,
  { items: [{ name: 'stone', count: 1, slot: null }] });
  assert.deepStrictEqual(error, {});
  assert.strictEqual(blockAt(world, 8, 0, 0), 'stone');
  world.close();
});

test('goals are combined: the nearest of some, all at once, and away from one', async () => {
  const { world, error, logs } = await played(`
    const from = bot.entity.position.clone();
    const near = (x, z) => new GoalNear(from.x + x, from.y, from.z + z, 1);
    const told = () => { const { x, z } = bot.entity.position.minus(from); console.log(Math.round(x), Math.round(z)); };
    const any = new GoalCompositeAny([near(30, 0)]);
    any.push(near(-5, 0));
    await bot.pathfinder.goto(any);
    told();
    await bot.pathfinder.goto(new GoalCompositeAll([new GoalXZ(from.x, from.z), near(0, 0)]));
    told();
    await bot.pathfinder.goto(new GoalInvert(new goals.GoalNear(from.x, from.y, from.z, 6)));
    console.log(bot.entity.position.distanceTo(from) > 5.5);`);
  assert.deepStrictEqual(error, {});
  assert.match(logs[0], /^-[34] -?0$/);
  assert.match(logs[1], /^-?0 -?0$/);
  assert.strictEqual(logs[2], 'true');
  world.close();
});

test('a goal to break a block leads to where it can be dug', async () => {
  const { world, error } = await played(`
    const { x, y, z } = bot.blockAt(bot.findBlock({ matching: 'oak_log', maxDistance: 32 }).position).position;
    await bot.pathfinder.goto(new GoalBreakBlock(x, y, z, bot));
    await bot.dig(bot.blockAt(new Vec3(x, y, z)));`,
  { blocks: [at(12, 0, 0, 'oak_log')] });
  assert.deepStrictEqual(error, {});
  assert.strictEqual(blockAt(world, 12, 0, 0), 'air');
  world.close();
});

const SHEEP = {
  targets: [{ kind: 'sheep', count: 1, distance: 5, name: 'sheep' }],
  items: [{ name: 'iron_sword', count: 1, slot: null }]
};

test('a fight goes on by itself until its target is dead, and says so', async () => {
  const { world, error, logs } = await played(`
    const sheep = bot.nearestEntity(({ name }) => name === 'sheep');
    bot.once('stoppedAttacking', () => console.log('stopped'));
    await bot.pvp.attack(sheep);
    console.log(bot.pvp.target.name);
    while (sheep.isValid) await bot.waitForTicks(5);
    console.log(String(bot.pvp.target));`, SHEEP);
  assert.deepStrictEqual(error, {});
  assert.deepStrictEqual(logs, ['sheep', 'stopped', 'null']);
  assert.strictEqual(look(world).values.kills, 1);
  world.close();
});

test('a fight that is called off ends', async () => {
  const { world, error, logs } = await played(`
    const sheep = bot.nearestEntity(({ name }) => name === 'sheep');
    bot.pvp.attack(sheep);
    await bot.waitForTicks(2);
    bot.pvp.stop();
    await bot.waitForTicks(40);
    console.log(String(bot.pvp.target), sheep.isValid);`, SHEEP);
  assert.deepStrictEqual(error, {});
  assert.deepStrictEqual(logs, ['null true']);
  world.close();
});

test('blocks and items on the ground are collected', async () => {
  const blocks = [at(4, 0, 1, 'oak_log'), at(5, 0, 1, 'oak_log'), at(6, 0, 1, 'oak_log')];
  const { world, error, logs } = await played(`
    const targets = bot.findBlocks({ matching: 'oak_log', maxDistance: 16, count: 3 }).map((cell) => bot.blockAt(cell));
    await bot.collectBlock.collect(targets, { ignoreNoPath: true, count: 2 });
    console.log(bot.inventory.count('oak_log'));
    await bot.collectBlock.collect(bot.blockAt(targets[2].position));
    console.log(bot.inventory.count('oak_log'));
    await bot.toss('oak_log', null, 3);
    await bot.waitForTicks(5);
    await bot.pathfinder.goto(new GoalNear(targets[0].position.x - 6, targets[0].position.y, targets[0].position.z, 1));
    await bot.collectBlock.collect(bot.nearestEntity(({ name }) => name === 'item'));`, { blocks });
  assert.deepStrictEqual(error, {});
  assert.deepStrictEqual(logs, ['2', '3']);
  assert.strictEqual(countOf(world, 'oak_log'), 3);
  world.close();
});

test('what cannot be collected is an error, unless that is to be ignored', async () => {
  const blocks = [at(4, 0, 1, 'stone')];
  const { world, error, logs } = await played(`
    const stone = bot.findBlock({ matching: 'stone', maxDistance: 16 });
    await bot.collectBlock.collect(stone, { ignoreNoPath: true });
    console.log('went on');
    await bot.collectBlock.collect(stone);`, { blocks });
  assert.deepStrictEqual(logs, ['went on']);
  assert.match(error.error_message, /stone drops nothing without one of/);
  world.close();
});

test('fishing catches something, and says what it takes', async () => {
  const items = ['stone', 'fishing_rod'].map((name) => ({ name, count: 1, slot: null }));
  const blocks = [];
  for (let x = -3; x <= 3; x++) for (let z = 2; z <= 20; z++) blocks.push(at(x, -1, z, 'water'));
  const { world, error, logs } = await played(`
    try { await bot.fish(); } catch (e) { console.log(e.message); }
    await bot.equip('fishing_rod', 'hand');
    await bot.lookAt(bot.entity.position.offset(0, 0, 7), true);
    const before = bot.experience.points;
    await bot.fish();
    await bot.waitForTicks(40);
    console.log(bot.experience.points > before);`, { items, blocks });
  assert.deepStrictEqual(error, {});
  assert.deepStrictEqual(logs, ['no fishing_rod is held (bot.equip first)', 'true']);
  world.close();
});

test('a chest is used step by step, with the names of programs in prompts', async () => {
  const { world, error, logs } = await played(`
    const { x, y, z } = bot.entity.position.floored();
    const place = new Vec3(x + 6, y, z);
    await moveToChest(bot, place);
    const block = bot.blockAt(place);
    let chest = await bot.openContainer(block);
    await chest.deposit(bot.inventory.findInventoryItem(mcData.itemsByName.torch.id).type, null, 5);
    await closeChest(bot, block);
    chest = await bot.openContainer(block);
    console.log(chest.findContainerItem(mcData.itemsByName.torch.id).count, chest.findContainerItem('stone'));
    await chest.withdraw(chest.findContainerItem(mcData.itemsByName.torch.id).type, null, 2);
    console.log(chest.findInventoryItem('torch').count);
    await closeChest(bot, block);
    await closeChest(bot, block);`,
  { blocks: [at(6, 0, 0, 'chest')], items: [{ name: 'torch', count: 8, slot: null }] });
  assert.deepStrictEqual(error, {});
  assert.deepStrictEqual(logs, ['5 null', '5']);
  assert.strictEqual(countOf(world, 'torch'), 5);
  assert.strictEqual(world.bots[0].currentWindow ?? null, null);
  world.close();
});

test('a program walks where it wants while it fights', async () => {
  const { world, error } = await played(`
    const sheep = bot.nearestEntity(({ name }) => name === 'sheep');
    await bot.pvp.attack(sheep);
    const { x, y, z } = sheep.position;
    await bot.pathfinder.goto(new GoalBlock(x, y, z));
    await bot.waitForTicks(1);`, { ...SHEEP, targets: [{ ...SHEEP.targets[0], distance: 12 }] });
  assert.deepStrictEqual(error, {});
  assert.strictEqual(look(world).values.kills, 1);
  world.close();
});

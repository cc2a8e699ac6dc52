'use strict';
/** The helpers of MineLand and Voyager, played in the survival world. */
const assert = require('node:assert');
const test = require('node:test');
const { makeWorld } = require('../harness');
const { makeApi } = require('../sandbox/api');
const { Sandbox } = require('../sandbox/runtime');
const { spawnStill } = require('./mobs_help');

/** Returns play(source): the state after a program of a lone agent, its world stepped along. */
async function scene(commands) {
  const world = await makeWorld({ agents: 1, seed: 2, generator: 'flat' });
  const sandbox = new Sandbox({ agent: { bot: world.bots[0], now: () => world.ticks }, api: makeApi(), holdMs: 300000 });
  await world.step(5);
  const here = world.bots[0].entity.position.floored();
  for (const command of commands(here)) await world.console(command);
  await world.step(10);
  return {
    world,
    here,
    async play(source, ticks = 2400) {
      await world.run(() => sandbox.start(source));
      for (let i = 0; i < ticks && sandbox.running; i++) {
        world.run(() => sandbox.tick());
        await world.step(1);
      }
      return sandbox.state();
    }
  };
}

const CARRIED = 'console.log(bot.inventory.items().map((item) => `${item.count} ${item.name}`).sort().join(", "));';

test('crafting: by hand, at a table that was placed, and what is missing', async () => {
  const { play, world } = await scene(() => ['/give a0 oak_log 3']);
  const first = await play(`
    await craftItem(bot, 'oak_planks', 3);
    await craftItem(bot, 'crafting_table');
    await placeItem(bot, 'crafting_table', bot.entity.position.offset(2, 0, 1));
    await craftItem('stick');
    await craftItem(bot, 'wooden_pickaxe');
    ${CARRIED}`);
  assert.strictEqual(first.error, null);
  assert.deepStrictEqual(first.logs, ['2 stick, 3 oak_planks, 1 wooden_pickaxe'.split(', ').sort().join(', ')]);
  const { error } = await play(`await craftItem(bot, 'stone_pickaxe', 1);`);
  assert.match(error.message, /cannot craft stone_pickaxe: it takes 3 more (cobblestone|blackstone)/);
  world.close();
});

test('mining: the right tool is taken and drops are picked up; without it, its name', async () => {
  const blocks = ({ x, y, z }) => [`/setblock ${x + 6} ${y} ${z} stone`, `/setblock ${x + 6} ${y} ${z + 2} stone`];
  const { play, world } = await scene((here) => blocks(here));
  const bare = await play('await mineBlock(bot, "stone", 1);');
  assert.match(bare.error.message, /stone drops nothing without one of .*wooden_pickaxe/);
  await world.console('/give a0 dirt 1');
  await world.console('/give a0 wooden_pickaxe 1');
  await world.step(5);
  const done = await play(`console.log(await mineBlock(bot, 'stone', 2)); ${CARRIED}`);
  assert.strictEqual(done.error, null);
  assert.strictEqual(done.logs[0], '2');
  assert.match(done.logs[1], /2 cobblestone/);
  const none = await play('await mineBlock(bot, "stone", 1);');
  assert.match(none.error.message, /mined 0 of 1 stone: no stone within 48 blocks/);
  const unknown = await play('await mineBlock(bot, "stoen", 1);');
  assert.match(unknown.error.message, /no block is called "stoen" in 1.16.5; nearest: .*stone/);
  world.close();
});

test('mining: exactly as many as asked, with those on the way', async () => {
  const { play, world } = await scene(({ x, y, z }) => [`/fill ${x + 4} ${y} ${z - 3} ${x + 12} ${y + 4} ${z + 3} stone`,
    '/give a0 stone_pickaxe 1']);
  let carried = 0;
  const dug = [];
  world.serv.on('gamut:mined', ({ block }) => dug.push(block));
  for (const count of [4, 3]) {
    dug.length = 0;
    const { error, logs } = await play(`console.log(await mineBlock(bot, 'stone', ${count}));`, 3000);
    assert.strictEqual(error, null);
    assert.deepStrictEqual(logs, [String(count)]);
    carried += count;
    const has = world.bots[0].inventory.items().find(({ name }) => name === 'cobblestone');
    assert.strictEqual(has.count, carried);
    assert.strictEqual(dug.filter((block) => block === 'stone').length, count);
  }
  world.close();
});

test('chests: put in, look, take out, and missing items', async () => {
  const { play, world, here } = await scene(({ x, y, z }) => [`/setblock ${x - 4} ${y} ${z} chest`, '/give a0 dirt 10']);
  const place = `new Vec3(${here.x - 4}, ${here.y}, ${here.z})`;
  const { logs, error } = await play(`
    const chest = ${place};
    await depositItemIntoChest(bot, chest, { dirt: 7 });
    console.log(await checkItemInsideChest(bot, chest));
    await getItemFromChest(bot, chest, { dirt: 2 });
    ${CARRIED}
    await getItemFromChest(bot, chest, { dirt: 9 });`);
  assert.deepStrictEqual(logs, ['{"dirt":7}', '5 dirt']);
  assert.match(error.message, /the chest held only 5 of 9 dirt/);
  world.close();
});

test('smelting: with as much fuel as needed', async () => {
  const { play, world } = await scene(({ x, y, z }) => [`/setblock ${x + 4} ${y} ${z + 4} furnace`, '/give a0 iron_ore 2', '/give a0 coal 3']);
  const { logs, error } = await play(`console.log(await smeltItem(bot, 'iron_ore', 'coal', 2)); ${CARRIED}`);
  assert.strictEqual(error, null);
  assert.deepStrictEqual(logs, ['2', '2 coal, 2 iron_ingot']);
  const { error: lack } = await play(`await smeltItem(bot, 'iron_ore', 'coal', 2);`);
  assert.match(lack.message, /cannot smelt 2 iron_ore: it takes 2 more iron_ore/);
  world.close();
});

test('walks and fights', async () => {
  const { play, world, here } = await scene(() => ['/give a0 diamond_sword 1']);
  const goal = `new Vec3(${here.x + 8}, ${here.y}, ${here.z})`;
  const walk = await play(`await moveTo(bot, ${goal}, 1); console.log(bot.entity.position.distanceTo(${goal}) <= 2);`);
  assert.deepStrictEqual(walk.logs, ['true']);
  assert.match((await play('await killMob(bot, "cow");')).error.message, /no cow in sight/);
  assert.match((await play('await killMob(bot, "zombi");')).error.message, /no entity is called "zombi" .*nearest: zombie,/);
  assert.match((await play('await bot.equip(mcData.itemsByName.diamond_axe.id);')).error.message, /bot.equip: diamond_axe is not in/);
  assert.match((await play('await followPlayer(bot, "nobody");')).error.message, /no player is called "nobody"; there are a0/);
  // At night, when it does not burn; others may come, so the one that was nearest is followed.
  await world.console('/time set 18000');
  await world.console(`/summon zombie ${here.x + 5} ${here.y} ${here.z}`);
  await world.step(5);
  const fight = await play(`
    const nearest = bot.nearestEntity({ name: 'zombie' });
    await killMob(bot, 'zombie', 60);
    console.log(nearest.isValid);`);
  assert.strictEqual(fight.error, null);
  assert.deepStrictEqual(fight.logs, ['false']);
  world.close();
});

test('shoot kills with a crossbow', async () => {
  const { world, play, here } = await scene(() => ['/give a0 crossbow', '/give a0 arrow 16']);
  spawnStill(world, 'cow', here.x + 8, here.y, here.z);
  await world.step(2);
  const { error, logs } = await play("await shoot('crossbow', 'cow'); console.log(16 - bot.inventory.count('arrow') > 0);");
  assert.strictEqual(error, null);
  assert.deepStrictEqual(logs, ['true']);
  world.close();
});

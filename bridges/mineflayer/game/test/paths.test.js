'use strict';
/** Searches for paths: what paths.js keeps while it searches changes none. */
const assert = require('node:assert');
const test = require('node:test');
const { goals } = require('mineflayer-pathfinder');
const { begin } = require('./actions_help');
const { Movements } = require('../paths');

const TICKS = 4;

/** Movements that keep nothing: `cells` cannot be set. */
class Forgetful extends Movements {
  get cells() { return null; }

  set cells(_) { /* nothing is kept */ }
}

/** Returns the paths to some goals, each as after every tick of its search, and how often a block was made. */
function search({ bot }, Kind, offsets) {
  let asked = 0;
  const { blockAt } = bot;
  const here = bot.entity.position;
  const movements = new Kind(bot);
  bot.pathfinder.setMovements(movements);
  movements.bot = Object.create(bot, { blockAt: { value: (...args) => { asked++; return blockAt(...args); } } });
  // Where creatures stand, on all ways to the east and south.
  movements.updateCollisionIndex = () => {
    const { x, y, z } = here.floored();
    for (let i = -9; i <= 9; i++) {
      for (let j = -9; j <= 9; j++) {
        Object.assign(movements.entityIntersections, { [`${x + 2},${y + i},${z + j}`]: 2, [`${x + j},${y + i},${z + 2}`]: 1 });
      }
    }
  };
  const found = offsets.map(([x, y, z]) => {
    const goal = new goals.GoalNear(here.x + x, here.y + y, here.z + z, 1);
    const ticks = [];
    for (const { result } of bot.pathfinder.getPathFromTo(movements, here, goal, { tickTimeout: 5 })) {
      const { status, cost, visitedNodes, generatedNodes, path } = result;
      ticks.push(JSON.stringify({ status, cost, visitedNodes, generatedNodes, path }));
      if (ticks.length === TICKS) break;
    }
    return ticks;
  });
  return { found, asked };
}

for (const [site, biome] of [['wild', 'snowy'], ['wild', 'forest'], ['flat', 'plains']]) {
  test(`paths are those of the library, ${site} ${biome}`, async () => {
    const items = [{ name: 'dirt', count: 8 }, { name: 'iron_pickaxe', count: 1 }, { name: 'stone_axe', count: 1 }];
    const world = await begin({ actions: 'code' }, { state: { site, biome }, items });
    await world.play([[0, { kind: 0, code: '' }]]);
    const offsets = [[12, 0, 3], [-9, 5, 9], [4, -12, -7], [20, 1, -14], [0, 12, 0]];
    const [quick, plain] = world.run(() => [Movements, Forgetful].map((kind) => search(world.agents[0], kind, offsets)));
    assert.deepStrictEqual(quick.found, plain.found);
    assert.ok(quick.found.some((ticks) => ticks.length > 3), 'no search took long');
    assert.ok(quick.asked < plain.asked / 4, `${quick.asked} and ${plain.asked} blocks`);
    world.close();
  });
}

test('a block that is unloaded before it is dug ends no world, and the walk goes on', async () => {
  const world = await begin({ actions: 'code' }, { state: { site: 'flat' }, items: [{ name: 'iron_pickaxe', count: 1 }] });
  const { bot } = world.agents[0];
  const { bestHarvestTool } = bot.pathfinder;
  let asked = 0;
  // As the library does when `blockAt` finds nothing; not while it searches.
  bot.pathfinder.bestHarvestTool = (block) =>
    bestHarvestTool(bot.pathfinder.movements.cells || asked++ > 0 ? block : null);
  const { x, y, z } = bot.entity.position.floored();
  await world.play([[0, { kind: 1, code: `await bot.pathfinder.goto(new GoalBlock(${x}, ${y - 2}, ${z}));` }]]);
  for (let n = 0; n < 60 && bot.entity.position.y > y - 2; n++) await world.play([[0, { kind: 0, code: '' }]]);
  assert.ok(asked > 1, `${asked} blocks were asked for`);
  assert.strictEqual(bot.entity.position.floored().y, y - 2);
  world.close();
});

'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { fromWords } = require('../survival/commands/words');
const { stateOf } = require('../observe/state');
const { replay } = require('../snapshot');
const { makeGameWorld } = require('../gameworld');
const { MOUSE_KEYS: KEYS } = require('../actions/human');
const { makeGenerator } = require('../generator');
const { begin, play, playUntil } = require('./actions_help');

const row = (held = [], camera = [0, 0]) => ({ keys: KEYS.map((key) => Number(held.includes(key))), camera });
const mouse = (start, over) => begin({ actions: 'mouse', ...over }, start);
const run = (world, line) => world.command(0, fromWords(line));
const state = (world, boxes = {}) => world.run(() => stateOf(world.agents[0], boxes));
const near = (a, b, slack = 1e-4) => assert.ok(Math.abs(a - b) <= slack, `${a} is not ${b}`);

test('the camera turns by degrees, which the state gives back in the convention of the game', async () => {
  const world = await mouse();
  await run(world, '/tp @s ~ ~ ~ 0 0');
  await play(world, row());
  near(state(world).yaw, 0);
  await play(world, row([], [12.5, 90]));
  near(state(world).yaw, 90);
  near(state(world).pitch, 12.5);
  await play(world, row([], [0, 100]));
  near(state(world).yaw, -170);
  const from = state(world);
  await run(world, '/tp @s ~ ~ ~ 0 0');
  await play(world, row(['forward']), 20);
  assert.ok(state(world).zpos > from.zpos + 3, 'yaw 0 looks along +z');
  assert.throws(() => world.agents[0].act(row([], [NaN, 0])), /camera: expected numbers from -180 to 180/);
  world.close();
});

test('a command answers between two ticks, and a refused one says why', async () => {
  const world = await mouse();
  const { age } = world.agents[0].look().values;
  assert.match((await run(world, '/give @s diamond_sword')).answer, /diamond_sword/i);
  assert.match((await run(world, '/tp @s nobody')).refused, /No entity was found/);
  const { inventory, equipped_items } = state(world);
  assert.deepStrictEqual(inventory[0], { slot_id: 0, type: 'diamond_sword', quantity: 1 });
  assert.deepStrictEqual(inventory[1], { slot_id: 1, type: 'none', quantity: 0 });
  assert.strictEqual(inventory.length, 36);
  assert.deepStrictEqual(JSON.parse(equipped_items.mainhand), { type: 'diamond_sword', maxDamage: 1561, damage: 0 });
  assert.strictEqual(JSON.parse(equipped_items.head).type, 'air');
  assert.strictEqual(world.agents[0].look().values.age, age);
  world.close();
});

test('statistics are counted by the names of the game', async () => {
  const world = await mouse();
  await run(world, '/give @s diamond_sword');
  await run(world, '/summon pig ~ ~ ~2');
  const pig = Object.values(world.serv.entities).find(({ name }) => name === 'pig');
  for (let blow = 0; blow < 5 && pig.health > 0; blow++) {
    const { x, y, z } = pig.position;
    await run(world, `/tp @s ${x} ${y} ${z - 1.5} 0 35`);
    await play(world, row());
    await play(world, row(['attack']));
    await play(world, row(), 15);
  }
  const hunted = state(world);
  assert.strictEqual(hunted.custom.mob_kills, 1);
  assert.strictEqual(hunted.damage_dealt.pig, 100);
  assert.ok(hunted.use_item.diamond_sword >= 2);
  await playUntil(world, row(['forward']), () => state(world).pickup.porkchop > 0, 100);
  assert.ok(state(world).custom.walk_one_cm > 0);
  await run(world, '/clear @s');
  await run(world, '/give @s stone 2');
  await run(world, '/tp @s ~ ~ ~ 0 60');
  await playUntil(world, row(['use']), () => state(world).use_item.stone === 1, 40);
  await run(world, '/give @s diamond_pickaxe');
  await play(world, row(['hotbar.2']));
  await playUntil(world, row(['attack']), () => state(world).mine_block.stone === 1, 60);
  assert.ok(state(world).use_item.diamond_pickaxe >= 1);
  await playUntil(world, row(['jump']), () => state(world).custom.jump > 0, 20);
  const ticks = state(world).custom.play_one_minute;
  await play(world, row(), 10);
  assert.strictEqual(state(world).custom.play_one_minute, ticks + 10);
  world.close();
});

test('ways in a boat count, and what is done beside the statistics of the game', async () => {
  const world = await mouse();
  const [agent] = world.agents;
  await run(world, '/tp @s ~ ~ ~ 0 30');
  await run(world, '/summon boat ~ ~ ~2');
  await play(world, row(), 2);
  await playUntil(world, row(['use']), () => Boolean(agent.player.vehicle), 40);
  await play(world, row(['forward']), 20);
  assert.ok(state(world).custom.boat_one_cm > 100);
  assert.strictEqual(agent.statistics().custom.boat_one_cm, state(world).custom.boat_one_cm);
  await run(world, '/clear @s');
  await run(world, '/give @s flint_and_steel');
  await playUntil(world, row(['sneak']), () => !agent.player.vehicle, 40);
  await run(world, '/tp @s ~3 ~ ~ 0 60');
  await playUntil(world, row(['use']), () => state(world).use_item.flint_and_steel === 1, 40);
  world.serv.emit('gamut:tamed', { player: agent.player, entity: { name: 'wolf' } });
  world.serv.emit('gamut:traded', { player: agent.player, item: 'bread', count: 6 });
  const { tame, trade } = agent.statistics();
  assert.deepStrictEqual([tame, trade], [{ wolf: 1 }, { bread: 6 }]);
  world.close();
});

test('somebody who is killed is at once back at the spawn, and statistics stay', async () => {
  const world = await mouse({}, { server: { respawn: true, doMobSpawning: false } });
  const { xpos, ypos, zpos } = state(world);
  await run(world, '/tp @s ~20 ~ ~');
  await run(world, '/kill');
  await play(world, row());
  const back = state(world);
  assert.strictEqual(back.custom.deaths, 1);
  assert.strictEqual(back.health, 20);
  near(Math.hypot(back.xpos - xpos, back.ypos - ypos, back.zpos - zpos), 0, 1);
  assert.strictEqual(world.agents[0].look().values.game_over, false);
  await run(world, '/kill');
  await play(world, row());
  assert.strictEqual(state(world).custom.deaths, 2);
  world.close();
});

test('blocks and mobs of a box are listed by their places from the feet', async () => {
  const world = await mouse();
  await run(world, '/setblock ~2 ~ ~-1 obsidian');
  await run(world, '/summon cow ~ ~ ~3');
  await play(world, row());
  const { voxels, mobs } = state(world, { voxels: [-2, 2, -1, 1, -2, 2], mobs: [-5, 5, -5, 5, -5, 5] });
  assert.strictEqual(voxels.length, 75);
  assert.deepStrictEqual(voxels.filter(({ type }) => type === 'obsidian'), [{ type: 'obsidian', x: 2, y: 0, z: -1 }]);
  assert.strictEqual(voxels.filter(({ type, y }) => type === 'grass_block' && y === -1).length, 25);
  assert.deepStrictEqual(mobs.map(({ type }) => type), ['cow']);
  near(mobs[0].z, 3, 0.6);
  assert.deepStrictEqual(state(world, { voxels: [-999, 999, -99, 99, -999, 999] }).voxels, []);
  world.close();
});

test('/teleportbiome leads to the nearest ground of a biome', async () => {
  const world = await mouse({ state: { site: 'wild', biome: 'any', world: 5 } });
  for (const biome of ['desert', 'taiga', 'plains']) {
    assert.match((await run(world, `/teleportbiome @a ${biome} ~ ~0 ~`)).answer, /Teleported/);
    await play(world, row(), 5);
    const { biome_id, xpos, ypos, zpos } = state(world);
    assert.strictEqual(world.bots[0].registry.biomes[biome_id].name, biome);
    assert.ok(ypos >= 60, `${biome}: ${xpos} ${ypos} ${zpos}`);
  }
  assert.match((await run(world, '/teleportbiome @a atlantis')).refused, /Could not find a biome of type atlantis/);
  world.close();
});

test('the place of a biome is one where the chunk has it', () => {
  const generator = makeGenerator({ seed: 6 });
  const { biomes } = require('prismarine-registry')('1.16.5');
  for (let i = 0; i < 60; i++) {
    const { x, z } = generator.nearestBiome('plains', i * 3.7 - 100, 40 - i * 2.3);
    const found = generator.generate(x >> 4, z >> 4).getBiome({ x: x & 15, y: 64, z: z & 15 });
    assert.strictEqual(biomes[found].name, 'plains', `${x} ${z}`);
  }
  assert.strictEqual(generator.nearestBiome('atlantis', 0, 0), null);
});

test('a world is restored with the commands that were run in it', async () => {
  const world = await mouse();
  await run(world, '/give @s bread 3');
  await play(world, row(['forward']), 5);
  await run(world, '/summon sheep ~ ~ ~2');
  await play(world, row(['forward']), 3);
  const config = { ...world.config };
  const again = await replay(makeGameWorld, config, world.snapshot());
  const boxes = { mobs: [-9, 9, -9, 9, -9, 9] };
  assert.deepStrictEqual(again.run(() => stateOf(again.agents[0], boxes)), state(world, boxes));
  world.close();
  again.close();
});

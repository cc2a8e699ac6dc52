'use strict';
const test = require('node:test');
const assert = require('node:assert');
const crypto = require('node:crypto');
const { Vec3 } = require('vec3');
const { makeWorld } = require('../harness');
const { fork } = require('../world');

const near = (a, b, within = 0.01) => assert.ok(a.distanceTo(b) <= within, `${a} is not at ${b}`);

/** Plays a scene with walking, jumping and chance; returns a digest of all positions in it. */
async function digest(options, ticks) {
  const world = await makeWorld(options);
  const hash = crypto.createHash('sha256');
  for (let t = 0; t < ticks; t++) {
    if (t % 20 === 0) {
      world.run(() => world.bots.forEach((bot, i) => {
        bot.setControlState('forward', Math.random() < 0.7);
        bot.setControlState('jump', i % 2 === 0);
        bot.look(Math.random() * 6, 0, true);
      }));
    }
    await world.step(1);
    for (const bot of world.bots) {
      for (const { id, position } of Object.values(bot.entities)) hash.update(`${id}${position}`);
    }
    for (const player of world.players) hash.update(`${player.position}`);
  }
  world.close();
  return hash.digest('hex');
}

test('bots join, see one another and stand apart on the ground', async () => {
  const world = await makeWorld({ agents: 3, survival: false });
  for (const bot of world.bots) {
    assert.deepStrictEqual(Object.keys(bot.players).sort(), ['a0', 'a1', 'a2']);
    const others = Object.values(bot.entities).map((entity) => entity.username).sort();
    assert.deepStrictEqual(others, ['a0', 'a1', 'a2']);
    assert.strictEqual(bot.health, 20);
  }
  const places = world.bots.map((bot) => `${bot.entity.position}`);
  assert.strictEqual(new Set(places).size, 3);
  await world.step(20);
  assert.deepStrictEqual(world.bots.map((bot) => `${bot.entity.position}`), places);
  world.close();
});

test('one tick is one step of every bot and of the server', async () => {
  const world = await makeWorld({ agents: 2, survival: false });
  let [server, bots] = [0, 0];
  world.serv.on('tick', () => { server++; });
  for (const bot of world.bots) bot.on('physicsTick', () => { bots++; });
  await world.step(400);
  assert.deepStrictEqual([server, bots], [400, 800]);
  assert.strictEqual(world.context.now, 20000);
  world.close();
});

test('walking is as fast as in the game, on both sides and in the eyes of others', async () => {
  const world = await makeWorld({ agents: 2, survival: false });
  const [bot, other] = world.bots;
  await world.step(5);
  const from = bot.entity.position.clone();
  world.run(() => bot.setControlState('forward', true));
  await world.step(40);
  const way = from.distanceTo(bot.entity.position);
  assert.ok(Math.abs(way / 2 - 4.317) < 0.25, `${way / 2} blocks a second`);
  near(world.players[0].position, bot.entity.position, 0);
  near(other.entities[bot.entity.id].position, bot.entity.position, 0.001);
  world.close();
});

test('a change of a block reaches everyone near it, and no other world', async () => {
  const [world, beside] = [await makeWorld({ agents: 2, survival: false }), await makeWorld({})];
  const at = new Vec3(10, 4, 10);
  await world.run(() => world.serv.setBlock(world.serv.overworld, at,
    world.serv.registry.blocksByName.stone.defaultState));
  await world.step(1);
  assert.deepStrictEqual(world.bots.map((bot) => bot.blockAt(at).name), ['stone', 'stone']);
  assert.strictEqual((await world.serv.overworld.getBlock(at)).name, 'stone');
  assert.strictEqual(beside.bots[0].blockAt(at).name, 'air');
  assert.strictEqual((await beside.serv.overworld.getBlock(at)).name, 'air');
  world.close();
  beside.close();
});

test('columns share unchanged sections, and copy a section when it is written to', async () => {
  const world = await makeWorld({});
  const column = world.serv.columnAt(world.serv.overworld, 0, 0);
  const [one, two] = [fork(column), fork(column)];
  one.setBlockStateId({ x: 1, y: 1, z: 1 }, 1);
  one.setBiome({ x: 0, y: 0, z: 0 }, 9);
  one.setSkyLight({ x: 0, y: 20, z: 0 }, 3);
  const read = (c) => [c.getBlockStateId({ x: 1, y: 1, z: 1 }), c.getBiome({ x: 0, y: 0, z: 0 }),
    c.getSkyLight({ x: 0, y: 20, z: 0 })];
  assert.deepStrictEqual(read(one), [1, 9, 3]);
  assert.deepStrictEqual(read(two), read(column));
  assert.notDeepStrictEqual(read(two), read(one));
  column.setBlockStateId({ x: 1, y: 1, z: 1 }, 2);
  assert.strictEqual(two.getBlockStateId({ x: 1, y: 1, z: 1 }), 10);
  assert.strictEqual(one.sections[1] === two.sections[1], true);
  world.close();
});

test('a teleport is not undone by a step that was on its way', async () => {
  const world = await makeWorld({ survival: false });
  const [bot] = world.bots;
  world.run(() => bot.setControlState('forward', true));
  await world.step(10);
  const up = world.players[0].position.offset(30, 0, 7);
  await world.run(() => world.players[0].teleport(up));
  await world.step(1);
  near(world.players[0].position, up, 1);
  near(bot.entity.position, world.players[0].position, 0);
  await world.step(40);
  assert.ok(world.players[0].position.x > up.x - 1);
  world.close();
});

test('an entity is known only within the interest radius', async () => {
  const world = await makeWorld({ agents: 2, interest: 20, survival: false });
  const [bot, far] = world.bots;
  const id = far.entity.id;
  assert.ok(bot.entities[id]);
  await world.run(() => world.players[1].teleport(world.players[1].position.offset(40, 0, 0)));
  await world.step(2);
  assert.strictEqual(bot.entities[id], undefined);
  await world.step(40); // terrain still comes
  const before = world.link.delivered;
  world.run(() => far.setControlState('jump', true));
  await world.step(20);
  world.run(() => far.setControlState('jump', false));
  // The steps of the one who jumps, up, and the time of day, down; nothing for the other.
  assert.ok(world.link.delivered - before < 30, 'packets continue without anybody to see');
  await world.run(() => world.players[1].teleport(world.players[0].position.offset(3, 0, 0)));
  await world.step(20);
  near(bot.entities[id].position, far.entity.position, 0.001);
  world.close();
});

test('far terrain is sent as a player walks, and what was built is still there when it returns', async () => {
  const world = await makeWorld({ viewDistance: 2, survival: false });
  const [bot] = world.bots;
  const mark = bot.entity.position.offset(3, 0, 0).floored();
  await world.run(() => world.serv.setBlock(world.serv.overworld, mark, 1));
  const go = (x) => world.run(() => world.players[0].teleport(bot.entity.position.offset(x, 0, 0)));
  await go(200);
  await world.step(40);
  assert.strictEqual(bot.world.getColumnAt(mark), undefined);
  assert.ok(bot.blockAt(bot.entity.position.offset(30, -1, 0)));
  await go(-200);
  await world.step(40);
  assert.strictEqual(bot.blockAt(mark).name, 'stone');
  world.close();
});

test('a bot that leaves disappears for the others, and its name can join again', async () => {
  const world = await makeWorld({ agents: 2 });
  const left = [];
  world.bots[0].on('playerLeft', ({ username }) => left.push(username));
  world.run(() => world.bots[1].quit());
  await world.step(2);
  assert.deepStrictEqual(left, ['a1']);
  assert.deepStrictEqual(Object.keys(world.bots[0].players), ['a0']);
  world.bots.pop();
  const again = await world.join('a1');
  assert.strictEqual(again.health, 20);
  assert.strictEqual(world.serv.players.length, 2);
  world.close();
});

test('a second player with the same name is refused with the reason', async () => {
  const world = await makeWorld({});
  await assert.rejects(world.join('a0'), /could not join: a0/);
  world.close();
});

test('agents are no operators', async () => {
  const world = await makeWorld({});
  const said = [];
  world.bots[0].on('messagestr', (text) => said.push(text));
  world.run(() => world.bots[0].chat('/gamemode creative'));
  await world.step(2);
  assert.ok(said.some((text) => /permission|console only/.test(text)), said.join());
  assert.strictEqual(world.players[0].gameMode, 0);
  world.close();
});

test('errors in callbacks of the world are thrown by the step', async () => {
  const world = await makeWorld({});
  world.run(() => setTimeout(() => { throw new Error('wrong'); }, 60));
  await world.step(1);
  await assert.rejects(world.step(1), /wrong/);
  world.run(() => world.players[0]._client.write('entity_destroy', {}));
  await assert.rejects(world.step(1), /cannot write the packet play.entity_destroy/);
  world.close();
});

test('the same seed plays the same 1,000 ticks with 4 agents, another seed others', async () => {
  const first = await digest({ agents: 4, seed: 3 }, 1000);
  assert.strictEqual(await digest({ agents: 4, seed: 3 }, 1000), first);
  assert.notStrictEqual(await digest({ agents: 4, seed: 4 }, 300), await digest({ agents: 4, seed: 3 }, 300));
});

test('worlds that are stepped in turn do not touch one another', async () => {
  const alone = await digest({ agents: 2, seed: 5 }, 200);
  const beside = await makeWorld({ agents: 3, seed: 9 });
  const pair = digest({ agents: 2, seed: 5 }, 100);
  await pair;
  await beside.step(30);
  assert.strictEqual(await digest({ agents: 2, seed: 5 }, 200), alone);
  beside.close();
});

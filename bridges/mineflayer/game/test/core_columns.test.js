'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { makeWorld } = require('../harness');
const { MOST } = require('../squid/columns');

test('a world forgets columns that are far away, but nothing that was built or has a history', async () => {
  const w = await makeWorld({ agents: 1, seed: 7, generator: 'flat', viewDistance: 2 });
  const { serv } = w;
  const { survival } = serv;
  const load = (chunkX, chunkZ = 9) => w.run(() => serv.columnAt(serv.overworld, chunkX, chunkZ));
  const loaded = (chunkX, chunkZ = 9) => survival.blocks.loaded(chunkX * 16, chunkZ * 16);
  await w.step(5);
  for (const chunkX of [20, 21, 22]) load(chunkX);
  await w.console('/setblock 325 5 150 gold_block');
  await w.console('/summon cow 340.5 4 150.5');
  await w.console('/summon cow 360.5 4 150.5');
  w.run(() => { Object.values(serv.entities).find(({ position }) => position.x > 352).gamutName = 'Bess'; });
  for (let i = 0; i < MOST; i++) load(30 + i);
  assert.ok(Object.keys(serv.overworld.columns).length <= MOST);
  assert.deepStrictEqual([20, 21, 22].map((x) => loaded(x)), [false, false, true]);
  assert.deepStrictEqual(Object.values(serv.entities).filter(({ name }) => name === 'cow').map((cow) => cow.gamutName), ['Bess']);
  assert.ok(loaded(0, 0) && loaded(30 + MOST - 1), 'what is near a player or new is kept');
  load(20);
  assert.strictEqual(survival.blocks.at(325, 5, 150).name, 'gold_block');
  assert.strictEqual(survival.blocks.at(325, 3, 150).name, 'grass_block');
  await w.step(3);
  w.close();
});

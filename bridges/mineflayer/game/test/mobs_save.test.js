'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { makeWorld } = require('../harness');
const { mobs, spawn, Vec3 } = require('./mobs_help');
const plugin = require('../survival/mobs');

const KINDS = [
  'zombie',
  'skeleton',
  'sheep',
  'chicken',
  'creeper',
  'slime',
  'spider',
  'bat',
  'squid',
  'wolf',
  'blaze',
  'villager',
];

/** A world with a crowd that is after its player. */
async function crowd(seed) {
  const w = await makeWorld({ seed, generator: 'flat', rules: { doMobSpawning: false } });
  await w.console('/time set 18000');
  const { x, z } = w.players[0].position;
  KINDS.forEach((kind, i) => spawn(w, kind, x + (i % 4) * 4 - 6, 4, z + 6 + Math.floor(i / 4) * 3));
  return w;
}

/** Everything about the mobs of a world that can be compared. */
const story = (w) => JSON.stringify(w.run(() => plugin.save(w.serv)));

test('equal seeds give equal worlds, other seeds others', async () => {
  const told = [];
  for (const seed of [5, 5, 6]) {
    const w = await crowd(seed);
    const lines = [];
    for (let i = 0; i < 15; i++) {
      await w.step(20);
      lines.push(story(w), JSON.stringify(w.players[0].position), w.players[0].health);
    }
    told.push(lines.join('\n'));
    w.close();
  }
  assert.equal(told[0], told[1]);
  assert.notEqual(told[0], told[2]);
});

/** Saves, or restores, the state of all mechanics of a world, its time and its random numbers. */
function saveAll(w) {
  return w.run(() => ({
    words: [...w.context.words],
    mechanics: w.serv.gamut.mechanics.map((each) => JSON.parse(JSON.stringify(each.save(w.serv)))),
  }));
}

function loadAll(w, { words, mechanics }) {
  w.run(() => {
    w.serv.gamut.mechanics.forEach((each, i) =>
      each.load(w.serv, JSON.parse(JSON.stringify(mechanics[i]))),
    );
    w.context.words.set(words);
  });
}

test('saving and loading changes nothing: the world continues as it would have', async () => {
  const w = await crowd(9);
  // The client is not saved: its player stays where it is and no mob hunts it.
  await w.console('/gamemode creative a0');
  const { x, z } = w.players[0].position;
  spawn(w, 'iron_golem', x, 4, z + 14);
  spawn(w, 'husk', x + 14, 4, z + 14);
  await w.step(75);
  const [zombie] = mobs(w, 'zombie');
  const before = story(w);
  const rows = JSON.parse(before).rows;
  assert.ok(
    rows.some((row) => typeof row.mind.target === 'number'),
    'somebody is after somebody',
  );
  assert.ok(
    rows.some((row) => row.mind.path !== null),
    'somebody is on its way',
  );
  const saved = saveAll(w);
  await w.step(60);
  const after = story(w);
  assert.notEqual(after, before);
  loadAll(w, saved);
  assert.equal(story(w), before, 'what was loaded is what was saved');
  assert.notEqual(mobs(w, 'zombie')[0], zombie);
  await w.step(60);
  assert.equal(story(w), after);
  for (const mob of mobs(w)) assert.ok(w.bots[0].entities[mob.id], `${mob.name} is seen again`);
  w.run(() => plugin.load(w.serv, null));
  await w.step(2);
  assert.deepEqual(mobs(w), []);
  assert.deepEqual(
    Object.values(w.bots[0].entities).filter((e) => KINDS.includes(e.name)),
    [],
  );
  w.close();
});

test('players are remembered by their names', async () => {
  const w = await makeWorld({ seed: 2, generator: 'flat', rules: { doMobSpawning: false } });
  await w.console('/time set 18000');
  const { x, z } = w.players[0].position;
  const zombie = spawn(w, 'zombie', x + 5, 4, z);
  await w.step(20);
  assert.equal(zombie.mind.target, w.players[0].id);
  const data = JSON.parse(story(w));
  assert.deepEqual(data.rows[0].mind.target, { player: 'a0' });
  w.close();
  const other = await makeWorld({
    seed: 3,
    generator: 'flat',
    agents: 2,
    names: ['late', 'a0'],
    rules: { doMobSpawning: false },
  });
  await other.console('/time set 18000');
  other.run(() => plugin.load(other.serv, data));
  const [again] = mobs(other, 'zombie');
  assert.equal(again.mind.target, other.players[1].id);
  assert.deepEqual(again.position.toArray(), data.rows[0].position);
  other.close();
});

test('missiles are saved in flight', async () => {
  const w = await makeWorld({ seed: 2, generator: 'flat', rules: { doMobSpawning: false } });
  const { missiles } = w.serv.survival.mobs;
  const { x, y, z } = w.players[0].position;
  w.run(() =>
    missiles.shoot('small_fireball', null, new Vec3(x + 9, y + 1, z), new Vec3(-0.2, 0, 0)),
  );
  await w.step(3);
  const data = JSON.parse(story(w));
  assert.equal(data.missiles.length, 1);
  w.run(() => plugin.load(w.serv, data));
  assert.equal(story(w), JSON.stringify(data));
  await w.step(20);
  assert.ok(w.players[0].health < 20);
  w.close();
});

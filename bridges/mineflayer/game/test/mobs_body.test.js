'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, until, mobs, spawn, spawnStill, calm, Vec3 } = require('./mobs_help');
const { KINDS } = require('../survival/mobs/kinds');
const { Ground, findPath } = require('../survival/mobs/path');
const { explode } = require('../survival/mobs/blast');
const { hitsBlock, clear } = require('../survival/mobs/ray');

const near = (actual, wanted, slack) =>
  assert.ok(Math.abs(actual - wanted) <= slack, `${actual}, not ${wanted}`);

/** A mob that has a body but no behaviour. */
function dumb(w, kind, x, y, z, options) {
  const mob = spawn(w, kind, x, y, z, options);
  mob.kind = { ...mob.kind, brain: 'still', prey: [], food: [] };
  return mob;
}

test('a mob falls, lands on its block, is hurt by more than three blocks, and rests', () =>
  inWorld({}, async (w) => {
    await calm(w);
    const cow = dumb(w, 'cow', 20.5, 7, 20.5);
    const pig = dumb(w, 'pig', 24.5, 12, 20.5);
    const chicken = dumb(w, 'chicken', 26.5, 14, 20.5);
    await w.console('/setblock 20 4 20 stone_slab');
    await w.step(120);
    assert.equal(cow.position.y, 4.5);
    assert.equal(cow.health, 10);
    assert.equal(pig.position.y, 4);
    assert.equal(pig.health, 10 - 5);
    assert.equal(chicken.position.y, 4);
    assert.equal(chicken.health, 4);
    assert.ok(cow.resting && pig.resting && chicken.resting);
    await w.console('/setblock 20 4 20 air');
    await w.step(10);
    assert.equal(cow.position.y, 4, 'a mob at rest falls when its ground goes');
    assert.equal(w.bots[0].entities[cow.id].position.y, 4);
  }));

test('knock-back moves a mob, walls stop it, and it walks up steps but not walls', () =>
  inWorld({}, async (w) => {
    await calm(w);
    const cow = dumb(w, 'cow', 20.5, 4, 20.5);
    await w.step(5);
    await w.console('/fill 22 4 18 22 6 22 stone');
    w.run(() =>
      w.serv.survival.hurt(cow, {
        amount: 1,
        cause: 'blow',
        from: new Vec3(18, 4, 20.5),
        knockback: 1.5,
      }),
    );
    await w.step(30);
    near(cow.position.x, 22 - 0.45, 0.01);
    assert.equal(cow.position.y, 4);
    await w.console('/fill 30 4 18 34 4 22 stone_slab');
    const horse = spawn(w, 'horse', 28.5, 4, 20.5);
    await w.step(3);
    horse.mind.path = [29, 4, 20, 30, 4, 20, 31, 4, 20, 32, 4, 20];
    await until(w, () => horse.mind.path === null, 200);
    near(horse.position.y, 4.5, 1e-6);
  }));

test('walkers float, fish swim and dry out on land', () =>
  inWorld({}, async (w) => {
    await calm(w);
    await w.console('/fill 18 0 18 30 5 30 stone');
    await w.console('/fill 19 1 19 29 5 29 water');
    const pig = dumb(w, 'pig', 22.5, 2, 22.5);
    const squid = spawn(w, 'squid', 25.5, 3, 25.5);
    const stranded = spawn(w, 'cod', 10.5, 4, 30.5);
    await w.step(150);
    assert.ok(pig.position.y > 4.5, `the pig floats at ${pig.position.y}`);
    const { x, y, z } = squid.position;
    assert.ok(
      x > 19 && x < 30 && z > 19 && z < 30 && y >= 1 && y < 6,
      `the squid is at ${squid.position}`,
    );
    assert.equal(squid.health, 10);
    assert.equal(stranded.health, 3);
    await w.step(250);
    assert.ok(!(stranded.health > 0));
  }));

test('paths go around walls, up and down steps, and to the nearest place if there is no path', () =>
  inWorld({}, async (w) => {
    await calm(w);
    const { blocks } = w.serv.survival;
    const ground = new Ground(blocks);
    const way = (from, to, height = 2, budget = 400) =>
      w.run(() => findPath(ground, from, to, { width: 0.6, height }, budget));
    const last = (path) => path.slice(-3);
    assert.deepEqual(last(way({ x: 0.5, y: 4, z: 0.5 }, { x: 5.5, y: 4, z: 0.5 })), [5, 4, 0]);
    await w.console('/fill 3 4 -4 3 6 4 stone');
    const round = way({ x: 0.5, y: 4, z: 0.5 }, { x: 6.5, y: 4, z: 0.5 });
    assert.deepEqual(last(round), [6, 4, 0]);
    assert.ok(
      round.some((v, i) => i % 3 === 2 && Math.abs(v) >= 5),
      'it goes round the end of the wall',
    );
    for (let i = 0; i < round.length; i += 3) {
      assert.equal(blocks.at(round[i], round[i + 1], round[i + 2]).name, 'air');
    }
    await w.console('/fill 3 4 -4 3 4 4 air');
    await w.console('/fill 3 4 -4 3 6 4 air');
    await w.console('/fill 3 4 -20 3 4 20 stone');
    const over = way({ x: 0.5, y: 4, z: 0.5 }, { x: 6.5, y: 4, z: 0.5 });
    assert.ok(
      over.some((v, i) => i % 3 === 1 && v === 5),
      'it steps over a single block',
    );
    await w.console('/fill 3 4 -20 3 4 20 oak_fence');
    const fenced = way({ x: 0.5, y: 4, z: 0.5 }, { x: 6.5, y: 4, z: 0.5 }, 2, 200);
    assert.deepEqual(last(fenced), [2, 4, 0], 'fences are too high');
    await w.console('/fill 20 4 20 24 6 24 stone');
    const shut = way({ x: 18.5, y: 4, z: 22.5 }, { x: 22.5, y: 5, z: 22.5 }, 2, 100);
    assert.ok(shut.length === 0 || shut[shut.length - 3] < 20);
  }));

test('lines hit what they should', () =>
  inWorld({}, async (w) => {
    await w.console('/setblock 5 5 5 stone_slab');
    await w.console('/setblock 5 5 9 glass');
    const { blocks } = w.serv.survival;
    near(hitsBlock(blocks, [2.5, 5.25, 5.5], [7.5, 5.25, 5.5]), 0.5, 1e-9);
    assert.equal(hitsBlock(blocks, [2.5, 5.75, 5.5], [7.5, 5.75, 5.5]), Infinity);
    assert.equal(clear(blocks, 2.5, 5.25, 9.5, 7.5, 5.25, 9.5), true, 'glass hides nothing');
    assert.equal(clear(blocks, 2.5, 5.25, 9.5, 2.5, 2.5, 9.5), false);
  }));

test('every kind can be made, lives a while and is shown', () =>
  inWorld({ generator: 'flat', difficulty: 'hard' }, async (w, bot, player) => {
    await calm(w);
    await w.console('/gamerule mobGriefing false');
    await w.console('/gamemode creative a0');
    const kinds = Object.keys(KINDS);
    kinds.forEach((kind, i) =>
      spawn(
        w,
        kind,
        player.position.x + (i % 9) * 3 - 12,
        5,
        player.position.z + Math.floor(i / 9) * 3 - 12,
      ),
    );
    await w.step(3);
    for (const kind of kinds) {
      const mob = mobs(w, kind)[0];
      const { width, height } = w.serv.registry.entitiesByName[kind];
      assert.ok(mob.maxHealth > 0 && mob.width > 0 && mob.height > 0, kind);
      assert.ok(mob.width <= width && mob.height <= height, kind);
      assert.equal(bot.entities[mob.id].name, kind);
    }
    assert.equal(mobs(w, 'zombie')[0].maxHealth, 20);
    assert.equal(mobs(w, 'elder_guardian')[0].maxHealth, 80);
    assert.equal(mobs(w, 'wither')[0].maxHealth, 300);
    await w.step(200);
  }));

test('names, targets and children are as asked', () =>
  inWorld({}, async (w, bot) => {
    await calm(w);
    const mob = spawn(w, 'cow', 12.5, 4, 12.5, { name: 'Bess', target: true, baby: true });
    await w.step(2);
    const seen = bot.entities[mob.id];
    assert.deepEqual(JSON.parse(seen.metadata[2]), { text: 'Bess' });
    assert.equal(seen.metadata[15], true);
    assert.equal(seen.metadata[8], 10);
    assert.ok(mob.gamutTarget && mob.baby && mob.width === 0.45);
    assert.throws(() => spawn(w, 'zombi', 12.5, 4, 12.5), /no mob is called "zombi".*zombie/);
  }));

test('wide bodies take wide paths, and hunters jump down where others do not', () =>
  inWorld({}, async (w) => {
    await calm(w);
    const ground = new Ground(w.serv.survival.blocks);
    const way = (from, to, body, drop) =>
      w.run(() => findPath(ground, from, to, body, 400, 0, drop));
    await w.console('/fill 13 4 -3 13 6 9 stone');
    await w.console('/setblock 13 4 3 air');
    await w.console('/setblock 13 5 3 air');
    const [here, there] = [
      { x: 10.5, y: 4, z: 3.5 },
      { x: 16.5, y: 4, z: 3.5 },
    ];
    const zombie = way(here, there, { width: 0.6, height: 1.95 });
    const hoglin = way(here, there, { width: 1.4, height: 1.4 });
    assert.ok(zombie.length / 3 <= 7, 'through the gap');
    assert.ok(hoglin.length / 3 > 12, 'round the wall');
    await w.console('/fill 30 4 30 30 8 30 stone');
    const top = { x: 30.5, y: 9, z: 30.5 };
    const down = { x: 34.5, y: 4, z: 30.5 };
    assert.deepEqual(way(top, down, { width: 0.6, height: 1.95 }), []);
    assert.deepEqual(way(top, down, { width: 0.6, height: 1.95 }, 6).slice(-3), [34, 4, 30]);
  }));

test('mobs in a pool get out of it', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    await w.console('/time set 18000');
    const { x, z } = player.position;
    const [fx, fz] = [Math.floor(x), Math.floor(z)];
    await w.console(`/fill ${fx + 4} 1 ${fz - 3} ${fx + 10} 3 ${fz + 3} water`);
    const zombie = spawn(w, 'zombie', fx + 8.5, 2, fz + 0.5);
    await until(w, () => player.health < 20, 900);
    assert.ok(zombie.position.x < fx + 4);
  }));

test('a mob without a will stays where it is, whatever strikes it, and no one sees it move', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    await w.console('/setblock 11 4 8 water');
    for (const kind of ['cow', 'zombie', 'bat', 'slime']) {
      await w.console('/tp a0 8.5 4 8.5');
      const mob = spawnStill(w, kind, 10.5, 4, 8.5);
      await w.step(12);
      const shown = bot.entities[mob.id];
      const stays = () => {
        for (const { position } of [mob, shown])
          assert.deepEqual(position.toArray(), [10.5, 4, 8.5], kind);
        assert.deepEqual([mob.motion, shown.velocity].map((v) => v.norm()), [0, 0], kind);
      };
      mob.maxHealth = mob.health = 200;
      for (let i = 0; i < 3; i++) {
        w.run(() => bot.attack(shown));
        await w.step(12);
        stays();
      }
      assert.ok(mob.health < 200, `${kind} was hit`);
      await w.console('/tp a0 30 4 30');
      w.run(() => {
        w.serv.survival.hurt(mob, { amount: 5, cause: 'arrow', by: player, knockback: 1 });
        explode(w.serv.survival, new Vec3(11.5, 5, 8.5), 1, null);
        spawn(w, 'pig', 10.7, 4, 8.6);
      });
      await w.step(20);
      stays();
      for (const each of mobs(w)) w.run(() => w.serv.survival.mobs.remove(each));
    }
  }));

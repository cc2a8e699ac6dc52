'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, until, mobs, spawn, Vec3 } = require('./mobs_help');
const { darkEnough, lightAt } = require('../survival/mobs/light');

const monsters = (w) => mobs(w).filter((mob) => mob.kind.hostile);
const hold = async (w) => w.console('/gamerule doDaylightCycle false');

test('by night monsters come, as many as the cap allows, none near players, and by day none', () =>
  inWorld({ difficulty: 'normal' }, async (w, bot, player) => {
    await hold(w);
    await w.console('/gamemode creative a0');
    await w.console('/time set 6000');
    await w.step(600);
    assert.deepEqual(mobs(w), [], 'nobody comes to a flat world by day');
    await w.console('/time set 18000');
    const first = new Map();
    w.serv.on('tick', () => {
      for (const mob of mobs(w)) if (!first.has(mob.id)) first.set(mob.id, mob.position.clone());
    });
    await w.step(1200);
    const chunks = Object.keys(w.serv.overworld.columns).length;
    assert.ok(monsters(w).length >= 5, `only ${monsters(w).length} came`);
    assert.ok(monsters(w).length <= Math.ceil((70 * chunks) / 289), `${monsters(w).length} came`);
    for (const place of first.values()) {
      assert.ok(place.distanceTo(player.position) >= 23, `one came at ${place}`);
      assert.equal(place.y, 4);
    }
    assert.ok(new Set(monsters(w).map((mob) => mob.name)).size >= 2);
  }));

test('on peaceful monsters are removed and none spawn; animals stay', () =>
  inWorld({}, async (w) => {
    await hold(w);
    await w.console('/time set 18000');
    spawn(w, 'zombie', 30.5, 4, 30.5);
    spawn(w, 'slime', 34.5, 4, 30.5);
    spawn(w, 'cow', 30.5, 4, 34.5);
    await w.console('/difficulty peaceful');
    await w.step(800);
    assert.deepEqual(
      mobs(w).map((mob) => mob.name),
      ['cow'],
    );
  }));

test('with doMobSpawning false no mob spawns', () =>
  inWorld({ rules: { doMobSpawning: false } }, async (w) => {
    await hold(w);
    await w.console('/time set 18000');
    await w.step(600);
    assert.deepEqual(mobs(w), []);
  }));

test('lamps that were placed keep monsters away, walls between do not count as air', () =>
  inWorld({}, async (w) => {
    const { survival } = w.serv;
    await w.console('/time set 18000');
    const often = (x) =>
      w.run(() => {
        let times = 0;
        for (let i = 0; i < 200; i++) if (darkEnough(survival, x, 4, 30)) times++;
        return times;
      });
    assert.ok(often(30) > 10);
    await w.console('/setblock 33 4 30 torch');
    assert.equal(often(30), 0, 'three blocks from a torch');
    assert.ok(often(20) > 10, 'thirteen blocks from a torch');
    await w.console('/fill 31 0 25 31 20 35 stone');
    assert.ok(often(30) > 0, 'behind a wall');
    assert.equal(lightAt(survival, 20, 4, 20), 4, 'the sky at midnight');
    await w.console('/time set 6000');
    assert.equal(lightAt(survival, 20, 4, 20), 15, 'the sky at noon');
    assert.equal(often(20), 0);
  }));

test('natural mobs disappear when no player is near; summoned ones stay', () =>
  inWorld({}, async (w) => {
    await w.console('/gamerule doMobSpawning false');
    await w.console('/gamemode creative a0');
    const own = spawn(w, 'husk', 10.5, 4, 200.5, { natural: true });
    const called = spawn(w, 'husk', 10.5, 4, 205.5);
    const target = spawn(w, 'husk', 10.5, 4, 210.5, { natural: true, target: true });
    await w.step(45);
    assert.deepEqual(
      mobs(w).map((mob) => mob.id),
      [called.id, target.id],
    );
    assert.equal(w.serv.entities[own.id], undefined);
    const idle = spawn(w, 'husk', 10.5, 4, 60.5, { natural: true });
    await until(w, () => w.serv.entities[idle.id] === undefined, 6000);
    assert.equal(mobs(w).length, 2);
  }));

test('animals spawn again in worlds that have them, on lit grass', async () => {
  const { flat } = require('./mobs_world');
  await inWorld({ generator: flat() }, async (w) => {
    await hold(w);
    await w.console('/time set 6000');
    await until(w, () => mobs(w).length > 0, 4000);
    const kinds = new Set(['sheep', 'pig', 'chicken', 'cow', 'horse', 'donkey']);
    for (const mob of mobs(w)) {
      assert.ok(kinds.has(mob.name), mob.name);
      assert.ok(mob.position.distanceTo(new Vec3(8, 4, 8)) > 20);
    }
  });
});

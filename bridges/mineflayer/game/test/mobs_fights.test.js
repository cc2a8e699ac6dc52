'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, events, until, at, mobs, spawn, calm, Vec3 } = require('./mobs_help');

const near = (actual, wanted, slack = 1e-6) =>
  assert.ok(Math.abs(actual - wanted) <= slack, `${actual}, not ${wanted}`);
const NIGHT = '/time set 18000';

/** First blow that a mob lands on the player, as health lost. */
async function firstBlow(w, kind, limit = 600) {
  const hurts = events(w, 'gamut:hurt');
  const mine = () => hurts.find((h) => h.victim === w.players[0] && h.by && h.by.name === kind);
  await until(w, mine, limit);
  return mine();
}

test('a zombie walks round a wall and hits by difficulty', async () => {
  for (const [difficulty, wanted] of [
    ['easy', 2.5],
    ['normal', 3],
    ['hard', 4.5],
  ]) {
    await inWorld({ difficulty }, async (w, bot, player) => {
      await calm(w);
      await w.console(NIGHT);
      const { x, z } = player.position;
      const wall = Math.floor(x) + 4;
      // A wall between the two, low enough to be seen over, too high to be climbed.
      await w.console(
        `/fill ${wall} 4 ${Math.floor(z) - 5} ${wall} 4 ${Math.floor(z) + 5} oak_fence`,
      );
      const zombie = spawn(w, 'zombie', x + 8, 4, z);
      let farthest = 0;
      w.serv.on('tick', () => {
        if (zombie.position.x > x + 4)
          farthest = Math.max(farthest, Math.abs(zombie.position.z - z));
      });
      const blow = await firstBlow(w, 'zombie');
      near(blow.amount, wanted);
      assert.ok(farthest > 4, `it went ${farthest} blocks aside`);
      assert.equal(blow.cause, 'blow');
    });
  }
});

test('a zombie hits once a second, not through walls, and no one in creative mode', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    await w.console(NIGHT);
    const { x, z } = player.position;
    await w.console(`/fill ${x - 2.5} 4 ${z - 2.5} ${x + 1.5} 8 ${z + 1.5} stone`);
    await w.console(`/fill ${x - 1.5} 4 ${z - 1.5} ${x + 0.5} 6 ${z + 0.5} air`);
    const zombie = spawn(w, 'zombie', x + 3, 4, z);
    await w.step(200);
    assert.equal(player.health, 20, 'stone keeps it out');
    await w.console(`/fill ${x - 2.5} 4 ${z - 2.5} ${x + 1.5} 8 ${z + 1.5} air`);
    const hurts = events(w, 'gamut:hurt');
    const ticks = [];
    w.serv.on('gamut:hurt', ({ victim }) => {
      if (victim === player) ticks.push(w.serv.survival.tick);
    });
    await until(w, () => hurts.length >= 3, 400);
    assert.ok(ticks[1] - ticks[0] >= 20 && ticks[2] - ticks[1] >= 20, String(ticks));
    await w.console('/gamemode creative a0');
    const before = hurts.length;
    await w.step(100);
    assert.equal(hurts.length, before);
    assert.equal(zombie.mind.target, null);
  }));

test('a skeleton draws, shoots an arrow that flies and hits, and keeps its distance', () =>
  inWorld({ difficulty: 'hard' }, async (w, bot, player) => {
    await calm(w);
    await w.console(NIGHT);
    const { x, z } = player.position;
    const skeleton = spawn(w, 'skeleton', x + 10, 4, z);
    const arrows = () => Object.values(w.serv.entities).filter((e) => e.name === 'arrow');
    await until(w, () => arrows().length > 0, 200);
    const [arrow] = arrows();
    const start = arrow.position.clone();
    await w.step(3);
    assert.ok(
      Object.values(bot.entities).some((e) => e.name === 'arrow'),
      'the client sees it',
    );
    assert.ok(arrow.position.distanceTo(start) > 3, 'it flies');
    const blow = await firstBlow(w, 'skeleton');
    assert.equal(blow.cause, 'arrow');
    assert.ok(blow.amount >= 3 && blow.amount <= 6, `an arrow did ${blow.amount}`);
    assert.ok(skeleton.position.distanceTo(player.position) > 4);
    w.run(() => w.serv.survival.mobs.remove(skeleton));
    spawn(w, 'stray', x + 8, 4, z);
    await firstBlow(w, 'stray');
    assert.ok(w.serv.survival.effectLevel(player, 'Slowness') > 0);
  }));

test('fireballs stop in walls, hit and burn, and can be sent back', () =>
  inWorld({ difficulty: 'hard' }, async (w, bot, player) => {
    await calm(w);
    const { missiles } = w.serv.survival.mobs;
    const { x, y, z } = player.position;
    const shoot = (kind, from) =>
      w.run(() => missiles.shoot(kind, null, from, new Vec3(-0.5, 0, 0)));
    await w.console(
      `/fill ${Math.floor(x) + 3} 4 ${Math.floor(z)} ${Math.floor(x) + 3} 6 ${Math.floor(z)} stone`,
    );
    const first = shoot('small_fireball', new Vec3(x + 8, y + 1.2, z));
    await w.step(20);
    assert.equal(player.health, 20);
    assert.equal(w.serv.entities[first.id], undefined);
    shoot('small_fireball', new Vec3(x + 2, y + 1.2, z));
    await w.step(5);
    near(20 - player.health, 5, 1e-6);
    assert.ok(player.fireTicks > 0);
    await w.console('/gamemode creative a0');
    const ghast = spawn(w, 'ghast', x, 6, z - 14);
    ghast.ai = null;
    const ball = shoot('fireball', new Vec3(x, y + 1.5, z - 4));
    w.run(() => {
      ball.motion = new Vec3(0, 0, 0);
      ball.aim = new Vec3(0, 0, 0);
    });
    await w.until(() => bot.lookAt(ghast.position.offset(0, 1, 0), true));
    await w.step(1);
    w.run(() => player.emit('attacks', ball));
    await until(w, () => !(ghast.health > 0), 60);
  }));

test('a creeper swells, explodes, hurts by distance and breaks what is weak', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    await w.console(NIGHT);
    const bangs = events(w, 'gamut:explosion');
    const { x, z } = player.position;
    await w.console(`/setblock ${Math.floor(x) + 2} 4 ${Math.floor(z)} obsidian`);
    const creeper = spawn(w, 'creeper', x + 6, 4, z);
    await until(w, () => creeper.mind.phase > 0, 200);
    await w.step(1);
    assert.equal(bot.entities[creeper.id].metadata[15], 1, 'the client sees it swell');
    const began = w.serv.survival.tick;
    await until(w, () => bangs.length > 0, 100);
    assert.ok(w.serv.survival.tick - began >= 25, 'it takes 30 ticks');
    assert.ok(player.health < 20, 'it hurts');
    await w.step(2);
    assert.equal(mobs(w, 'creeper').length, 0);
    const c = bangs[0].position.floored();
    assert.equal(at(w, c.x, 3, c.z).name, 'air', 'grass is gone');
    assert.equal(at(w, Math.floor(x) + 2, 4, Math.floor(z)).name, 'obsidian', 'obsidian stands');
    assert.equal(at(w, c.x, 0, c.z).name, 'bedrock');
  }));

test('an explosion hurts less from afar and behind walls, and may leave blocks alone', () =>
  inWorld({}, async (w) => {
    await calm(w);
    await w.console('/gamerule mobGriefing false');
    const { explode } = require('../survival/mobs/blast');
    const cow = (x, z) => Object.assign(spawn(w, 'iron_golem', x, 4, z), { ai: null });
    const [close, far, shut] = [cow(32.5, 30.5), cow(30.5, 34.5), cow(27.5, 30.5)];
    await w.console('/fill 28 4 26 29 9 34 stone');
    await w.step(2);
    w.run(() => explode(w.serv.survival, new Vec3(30.5, 4, 30.5), 3, null));
    const lost = [close, far, shut].map((mob) => 100 - mob.health);
    assert.ok(lost[0] > lost[1] && lost[1] > 0, String(lost));
    const far2 = 1 - 2 / 6;
    assert.ok(lost[0] <= Math.floor(((far2 * far2 + far2) / 2) * 42 + 1), String(lost));
    assert.ok(lost[2] <= 1, `behind the wall it lost ${lost[2]}`);
    assert.equal(at(w, 30, 3, 30).name, 'grass_block');
  }));

test('bites: cave spiders poison, husks starve, wither skeletons wither', () =>
  inWorld({ difficulty: 'normal' }, async (w, bot, player) => {
    await calm(w);
    await w.console(NIGHT);
    const { x, z } = player.position;
    for (const [kind, effect] of [
      ['cave_spider', 'Poison'],
      ['husk', 'Hunger'],
      ['wither_skeleton', 'Wither'],
    ]) {
      const mob = spawn(w, kind, x + 2, 4, z);
      await firstBlow(w, kind, 200);
      assert.ok(w.serv.survival.effectLevel(player, effect) > 0, `${kind} gives ${effect}`);
      w.run(() => {
        w.serv.survival.mobs.remove(mob);
        player.clearEffects();
        player.updateHealth(20);
      });
      await w.console(`/tp a0 ${x} 4 ${z}`);
      await w.step(12);
    }
  }));

test('blazes, ghasts, witches, shulkers, guardians, evokers and the wither hurt from afar', () =>
  inWorld({ difficulty: 'normal' }, async (w, bot, player) => {
    await calm(w);
    await w.console('/gamerule mobGriefing false');
    await w.console(NIGHT);
    const { x, z } = player.position;
    for (const kind of [
      'blaze',
      'ghast',
      'witch',
      'shulker',
      'guardian',
      'elder_guardian',
      'evoker',
      'wither',
      'pillager',
      'stray',
    ]) {
      const mob = spawn(w, kind, x + 7, 5, z);
      await firstBlow(w, kind, 600);
      w.run(() => {
        for (const each of mobs(w)) w.serv.survival.mobs.remove(each);
        player.clearEffects();
        player.fireTicks = 0;
        player.updateHealth(20);
      });
      assert.equal(w.serv.entities[mob.id], undefined);
      await w.console(`/tp a0 ${x} 4 ${z}`);
      await w.step(30);
      w.run(() => player.updateHealth(20));
    }
  }));

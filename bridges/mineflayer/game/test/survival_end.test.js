'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { makeGenerator } = require('../generator');
const { END_Z, FRAMES, LANDING, pillars } = require('../generator/end');
const { inWorld, at, count, seen, until, Vec3 } = require('./survival_help');
const { calm, mobs } = require('./mobs_help');

const id = (w, name) => w.serv.registry.itemsByName[name].id;
const flat = () => makeGenerator({ seed: 3, biome: 'plains', site: 'flat' });

test('twelve eyes open the portal to the End, which has a dragon, and its death opens the way home', () =>
  inWorld({ generator: flat() }, async (w, bot, player) => {
    await calm(w);
    const home = player.position.clone();
    const { x, y, z } = home.floored();
    for (const { at: [dx, dz], facing } of FRAMES)
      await w.console(`/setblock ${x + dx} ${y} ${z + 4 + dz} end_portal_frame[facing=${facing}]`);
    await w.console('/give a0 ender_eye 12');
    await w.until(() => bot.equip(id(w, 'ender_eye'), 'hand'));
    await w.console('/gamemode creative a0');
    for (const { at: [dx, dz] } of FRAMES) {
      assert.equal(at(w, x, y, z + 4).name, 'air', 'not before the last eye');
      await w.until(() => bot.activateBlock(seen(bot, x + dx, y, z + 4 + dz)));
      await w.step(1);
    }
    assert.equal(at(w, x + 1, y, z + 5).name, 'end_portal');
    await w.console(`/tp a0 ${x + 0.5} ${y} ${z + 4.5}`);
    await until(w, () => bot.game.dimension === 'the_end', 20);
    await w.step(5);
    assert.ok(player.position.distanceTo(new Vec3(LANDING.x + 0.5, LANDING.y, LANDING.z + 0.5)) < 1);
    assert.equal(bot.blockAt(player.position.offset(0, -1, 0).floored()).name, 'obsidian');
    assert.equal(bot.blockAt(new Vec3(LANDING.x - 30, 50, END_Z)).name, 'end_stone');
    const [dragon] = mobs(w, 'ender_dragon');
    assert.deepEqual([dragon.health, w.serv.survival.crystals.size], [200, 10]);
    assert.ok(dragon.gamutTarget, 'tasks count its death');
    dragon.updateHealth(100);
    await w.step(100);
    assert.ok(dragon.health >= 105, `crystals heal it: ${dragon.health}`);
    const [pillar] = pillars;
    await w.console(`/tp a0 ${pillar.x + 6.5} ${pillar.top + 2} ${pillar.z + 0.5}`);
    await w.console('/give a0 snowball 4');
    await w.until(() => bot.equip(id(w, 'snowball'), 'hand'));
    await w.until(() => bot.lookAt(new Vec3(pillar.x + 0.5, pillar.top + 3.2, pillar.z + 0.5), true));
    await w.step(1);
    w.run(() => bot.activateItem());
    await until(w, () => w.serv.survival.crystals.size === 9, 40);
    w.run(() => w.serv.survival.hurt(dragon, { amount: 1000, cause: 'blow', by: player }));
    await w.step(30);
    assert.equal(player.experience.points, 12000);
    assert.equal(at(w, 0, 67, END_Z).name, 'dragon_egg');
    assert.equal(at(w, 1, 63, END_Z).name, 'end_portal');
    await w.console(`/tp a0 1.5 63 ${END_Z + 0.5}`);
    await until(w, () => bot.game.dimension === 'overworld', 20);
    await w.step(3);
    assert.ok(player.position.distanceTo(home) < 4);
    assert.equal(count(player, 'ender_eye'), 12, 'a creative player uses none up');
  }));

test('a dragon dives at players and hurts them', () =>
  inWorld({ generator: flat() }, async (w, bot, player) => {
    await calm(w);
    await w.console(`/tp a0 20.5 63 ${END_Z + 0.5}`);
    await w.step(5);
    w.run(() => w.serv.survival.spawnMob('ender_dragon', new Vec3(0.5, 90, END_Z + 0.5)));
    await until(w, () => player.health < 20, 600);
    assert.equal(bot.game.dimension, 'the_end');
  }));

test('an eye that is thrown flies towards a stronghold, whose room has frames and silverfish', () => {
  const wild = makeGenerator({ seed: 3, biome: 'plains' });
  const strongholds = wild.strongholds();
  assert.equal(strongholds.length, 3);
  const { x, y, z } = strongholds[0];
  const registry = require('prismarine-registry')('1.16.5');
  const nameAt = (bx, by, bz) => {
    const state = wild.generate(bx >> 4, bz >> 4).getBlockStateId({ x: bx & 15, y: by, z: bz & 15 });
    return registry.blocksByStateId[state].name;
  };
  for (const { at: [dx, dz] } of FRAMES) assert.equal(nameAt(x + dx, y + 2, z + dz), 'end_portal_frame');
  assert.equal(nameAt(x, y, z + 6), 'spawner');
  assert.deepEqual(wild.spawners(x >> 4, (z + 6) >> 4), [{ x, y, z: z + 6, kind: 'silverfish' }]);
  return inWorld({ generator: wild }, async (w, bot, player) => {
    await calm(w);
    await w.console('/give a0 ender_eye 3');
    await w.until(() => bot.equip(id(w, 'ender_eye'), 'hand'));
    const from = player.position.clone();
    const nearest = strongholds.sort((a, b) =>
      Math.hypot(a.x - from.x, a.z - from.z) - Math.hypot(b.x - from.x, b.z - from.z))[0];
    w.run(() => bot.activateItem());
    await w.step(40);
    const eye = bot.nearestEntity(({ name }) => name === 'eye_of_ender');
    const [way, to] = [eye.position.minus(from), new Vec3(nearest.x, 0, nearest.z).minus(from)];
    const cos = (way.x * to.x + way.z * to.z) / (Math.hypot(way.x, way.z) * Math.hypot(to.x, to.z));
    assert.ok(cos > 0.99, `${cos}`);
    assert.equal(count(player, 'ender_eye'), 2);
    await w.step(60);
    assert.equal(w.serv.survival.eyes.size, 0);
  });
});

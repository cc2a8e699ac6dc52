'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, events, until, at, mobs, spawn, calm } = require('./mobs_help');

const NIGHT = '/time set 18000';
const DAY = '/time set 6000';

test('sheep flee from who hits them, drop wool and mutton, cooked when burning', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    await w.console(DAY);
    const { x, z } = player.position;
    const sheep = spawn(w, 'sheep', x + 2, 4, z, { colour: 'black' });
    await w.step(5);
    w.run(() =>
      w.serv.survival.hurt(sheep, { amount: 1, cause: 'blow', by: player, knockback: 0.4 }),
    );
    await w.step(60);
    assert.ok(
      sheep.position.distanceTo(player.position) > 5,
      `it got ${sheep.position.distanceTo(player.position)} away`,
    );
    const drops = () => [...w.serv.survival.drops.values()].map((e) => e.stack.name).sort();
    w.run(() => w.serv.survival.hurt(sheep, { amount: 100, cause: 'blow', by: player }));
    await w.step(1);
    assert.deepEqual([...new Set(drops())], ['black_wool', 'mutton']);
    await w.step(25);
    assert.equal(w.serv.entities[sheep.id], undefined);
    await w.console('/kill @e');
    for (const e of [...w.serv.survival.drops.values()])
      w.run(() => w.serv.survival.removeEntity(e));
    await w.step(1);
    const other = spawn(w, 'sheep', x + 12, 4, z, { colour: 'white' });
    w.run(() => {
      w.serv.survival.setShorn(other, true);
      w.serv.survival.setBurning(other, 100);
      w.serv.survival.hurt(other, { amount: 100, cause: 'burning' });
    });
    await w.step(1);
    assert.deepEqual([...new Set(drops())], ['cooked_mutton']);
  }));

test('sheep eat grass and their wool grows; hens lay; animals follow their food', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    const { x, z } = player.position;
    const sheep = spawn(w, 'sheep', x + 5, 4, z);
    w.run(() => w.serv.survival.setShorn(sheep, true));
    const grazed = events(w, 'gamut:grazed');
    await until(w, () => grazed.length > 0, 6000);
    assert.equal(sheep.shorn, false);
    const spot = sheep.position.floored();
    assert.equal(at(w, spot.x, 3, spot.z).name, 'dirt');
    const hen = spawn(w, 'chicken', x + 3, 4, z + 3);
    hen.eggAt = w.serv.survival.tick + 10;
    await w.step(15);
    const eggs = () =>
      [...w.serv.survival.drops.values()].filter((e) => e.stack.name === 'egg').length +
      player.inventory.slots.filter((item) => item && item.name === 'egg').length;
    assert.equal(eggs(), 1);
    await w.console('/give a0 wheat');
    const cow = spawn(w, 'cow', x - 8, 4, z - 3);
    const away = () => cow.position.distanceTo(player.position);
    await until(w, () => away() < 3, 300);
    const pig = spawn(w, 'pig', x - 8, 4, z + 3);
    await w.step(100);
    assert.ok(pig.mind.lure === null, 'pigs do not care for wheat');
  }));

test('undead burn by day, not under roofs or helmets, husks never; at night none burn', () =>
  inWorld({}, async (w) => {
    await calm(w);
    await w.console('/gamemode creative a0');
    await w.console(NIGHT);
    await w.console('/fill 38 8 38 42 8 42 stone');
    const open = spawn(w, 'zombie', 30.5, 4, 20.5);
    const roofed = spawn(w, 'zombie', 40.5, 4, 40.5);
    const hatted = spawn(w, 'skeleton', 30.5, 4, 24.5);
    const husk = spawn(w, 'husk', 30.5, 4, 28.5);
    roofed.kind = { ...roofed.kind, brain: 'still' };
    hatted.helmet = 'iron_helmet';
    await w.step(100);
    assert.ok(mobs(w).every((mob) => !mob.burning && mob.health === 20));
    await w.console(DAY);
    await w.step(200);
    assert.ok(open.health < 20, 'it burns');
    assert.deepEqual(
      [roofed, hatted, husk].map((mob) => mob.health),
      [20, 20, 20],
    );
    await until(w, () => !(open.health > 0), 800);
  }));

test('spiders are peaceful by day, endermen until looked at, piglins attack together', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    await w.console(DAY);
    const { x, z } = player.position;
    const spider = spawn(w, 'spider', x + 6, 4, z);
    await w.step(60);
    assert.equal(spider.mind.target, null);
    await w.console(NIGHT);
    await until(w, () => spider.mind.target === player.id, 100);
    w.run(() => w.serv.survival.mobs.remove(spider));
    await w.until(() => bot.lookAt(player.position.offset(5, 1, 5), true));
    const enderman = spawn(w, 'enderman', x, 4, z - 8);
    await w.step(40);
    assert.equal(enderman.mind.target, null);
    for (let i = 0; i < 40 && enderman.mind.target === null; i++) {
      await w.until(() => bot.lookAt(enderman.position.offset(0, enderman.eyes, 0), true));
      await w.step(2);
    }
    assert.equal(enderman.mind.target, player.id);
    w.run(() => w.serv.survival.mobs.remove(enderman));
    const pigs = [0, 1, 2].map((i) => spawn(w, 'zombified_piglin', x + 10, 4, z + i * 3));
    await w.step(20);
    assert.ok(pigs.every((mob) => mob.mind.target === null));
    w.run(() => w.serv.survival.hurt(pigs[0], { amount: 1, cause: 'blow', by: player }));
    await w.step(5);
    assert.ok(pigs.every((mob) => mob.mind.target === player.id));
  }));

test('slimes split, golems fight, villagers run', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    await w.console('/gamemode creative a0');
    await w.console(NIGHT);
    const slime = spawn(w, 'slime', 20.5, 4, 20.5, { size: 4 });
    assert.equal(slime.maxHealth, 16);
    await w.step(5);
    w.run(() => w.serv.survival.hurt(slime, { amount: 100, cause: 'blow', by: player }));
    await w.step(30);
    const small = mobs(w, 'slime');
    assert.ok(
      small.length >= 2 &&
        small.length <= 4 &&
        small.every((mob) => mob.size === 2 && mob.maxHealth === 4),
    );
    w.run(() => small.forEach((mob) => w.serv.survival.mobs.remove(mob)));
    spawn(w, 'iron_golem', 20.5, 4, 20.5);
    const zombie = spawn(w, 'zombie', 26.5, 4, 20.5);
    await until(w, () => !(zombie.health > 0), 600);
    const folk = spawn(w, 'villager', 10.5, 4, 40.5);
    const husk = spawn(w, 'husk', 14.5, 4, 40.5);
    await w.step(60);
    assert.ok(folk.position.x < 10.4, `the villager went to ${folk.position}`);
    assert.equal(husk.mind.target, folk.id);
  }));

test("loot is within the game's ranges, rare finds need a player", () =>
  inWorld({}, async (w) => {
    const { lootOfMob } = require('../survival/mobs/loot');
    const gather = (mob, slain) =>
      w.run(() => {
        const sums = {};
        for (let i = 0; i < 400; i++) {
          for (const [item, n] of lootOfMob(w.serv.registry, mob, slain)) {
            sums[item] = sums[item] || { times: 0, most: 0, least: 99 };
            sums[item].times++;
            sums[item].most = Math.max(sums[item].most, n);
            sums[item].least = Math.min(sums[item].least, n);
          }
        }
        return sums;
      });
    const { KINDS } = require('../survival/mobs/kinds');
    for (const kind of Object.keys(KINDS)) {
      for (const item of Object.keys(gather({ name: kind, size: 1 }, true))) {
        assert.ok(w.serv.registry.itemsByName[item], `${kind} drops ${item}`);
      }
    }
    const zombie = gather({ name: 'zombie' }, false);
    assert.deepEqual(Object.keys(zombie), ['rotten_flesh']);
    assert.equal(zombie.rotten_flesh.most, 2);
    const cow = gather({ name: 'cow' }, false);
    assert.deepEqual([cow.beef.least, cow.beef.most, cow.beef.times], [1, 3, 400]);
    assert.deepEqual(gather({ name: 'blaze' }, false), {});
    assert.ok(gather({ name: 'blaze' }, true).blaze_rod.times > 100);
    assert.deepEqual(gather({ name: 'cow', baby: true }, true), {});
  }));

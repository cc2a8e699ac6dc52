'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, agree, count, events, until, Vec3 } = require('./survival_help');

const near = (actual, wanted, slack = 1e-6) =>
  assert.ok(Math.abs(actual - wanted) <= slack, `${actual}, not ${wanted}`);

/** Lifts the bot and lets it fall `blocks` blocks onto the flat ground. */
async function dropFrom(w, player, blocks) {
  await w.console(`/tp a0 ${player.position.x} ${4 + blocks} ${player.position.z}`);
  await until(w, () => player.position.y > 4.5, 5);
  await until(w, () => player.position.y <= 4 && player.onGround, 200);
  await w.step(1);
}

test('falls cost a point per block above three, and hay softens them', () =>
  inWorld({}, async (w, bot, player) => {
    const hurts = events(w, 'gamut:hurt');
    await w.console('/gamerule naturalRegeneration false');
    await dropFrom(w, player, 3);
    assert.equal(player.health, 20);
    await dropFrom(w, player, 12);
    assert.equal(player.health, 11);
    assert.equal(bot.health, 11);
    assert.deepEqual(
      hurts.map((h) => [h.cause, h.amount]),
      [['fall', 9]],
    );
    await w.step(20);
    await w.console('/fill 6 3 6 10 3 10 hay_block');
    await dropFrom(w, player, 13);
    near(player.health, 9);
  }));

test('death drops everything on the spot, and the bot respawns alive', () =>
  inWorld({}, async (w, bot, player) => {
    const deaths = events(w, 'gamut:death');
    const said = [];
    for (const name of ['death', 'respawn', 'spawn']) bot.on(name, () => said.push(name));
    await w.console('/give a0 diamond 3');
    await w.console('/give a0 bread 2');
    await w.console('/xp add a0 100');
    await w.console('/tp a0 20 4 20');
    await w.step(5);
    await w.console('/kill a0');
    await w.step(40);
    assert.deepEqual(
      deaths.map((d) => [d.victim.username, d.cause, d.by]),
      [['a0', 'command', null]],
    );
    assert.deepEqual(said, ['death', 'respawn', 'spawn']);
    assert.deepEqual([bot.health, bot.food, player.health, bot.experience.points], [20, 20, 20, 0]);
    assert.ok(bot.entity.position.distanceTo(player.spawnPoint) < 1, String(bot.entity.position));
    assert.ok(player.position.distanceTo(player.spawnPoint) < 1, String(player.position));
    agree(bot, player);
    assert.equal(count(player, 'diamond'), 0);
    const lying = [...w.serv.survival.drops.values()].map(
      (e) => `${e.stack.name} x${e.stack.count}`,
    );
    assert.deepEqual(lying.sort(), ['bread x2', 'diamond x3']);
    await w.console('/tp a0 20 4 20');
    await w.step(60);
    await w.run(() => bot.setControlState('forward', true));
    await w.step(40);
    assert.ok(bot.entity.position.distanceTo(new Vec3(20, 4, 20)) > 3, 'it walks again');
  }));

test('keepInventory keeps it', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/gamerule keepInventory true');
    await w.console('/give a0 diamond 3');
    await w.console('/kill a0');
    await w.step(40);
    assert.equal(count(player, 'diamond'), 3);
    agree(bot, player);
  }));

test('within half a second of a blow only the excess of a harder one counts', () =>
  inWorld({}, async (w, bot, player) => {
    const { survival } = w.serv;
    await w.console('/gamerule naturalRegeneration false');
    const hit = (amount) => w.run(() => survival.hurt(player, { amount, cause: 'magic' }));
    assert.equal(hit(3), 3);
    assert.equal(hit(2), 0);
    assert.equal(hit(5), 2);
    await w.step(9);
    assert.equal(hit(5), 0);
    await w.step(1);
    assert.equal(hit(5), 5);
    assert.equal(player.health, 10);
    assert.throws(
      () => hit(Number.NaN) + survival.hurt(player, { amount: 1, cause: 'boredom' }),
      /no cause of damage/,
    );
  }));

test('lava burns by 4 each half second, then fire by 1 a second until water puts it out', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/gamerule naturalRegeneration false');
    const { x, z } = player.position.floored();
    await w.console(`/setblock ${x} 4 ${z} lava`);
    await w.step(12);
    assert.equal(player.health, 12);
    await w.console(`/setblock ${x} 4 ${z} air`);
    assert.ok(player.burning);
    assert.equal(bot.entity.metadata[0] & 1, 1);
    const before = player.health;
    await w.step(60);
    assert.equal(player.health, before - 3);
    await w.console(`/setblock ${x} 4 ${z} water`);
    await w.step(30);
    assert.equal(player.burning, false);
    assert.equal(player.health, before - 3);
  }));

test('fire resistance keeps lava off; cactus, walls and the void hurt', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/gamerule naturalRegeneration false');
    const { x, z } = player.position.floored();
    await w.console('/effect give a0 fire_resistance 60');
    const about = `${x - 1} 4 ${z - 1} ${x + 1} 4 ${z + 1}`;
    await w.console(`/fill ${about} glass`);
    await w.console(`/setblock ${x} 4 ${z} lava`);
    await w.step(40);
    assert.equal(player.health, 20);
    await w.console(`/fill ${about} air`);
    const causes = events(w, 'gamut:hurt');
    await w.console(`/setblock ${x} 5 ${z} stone`);
    await w.step(15);
    await w.console(`/setblock ${x} 5 ${z} air`);
    assert.deepEqual(
      causes.map((c) => [c.cause, c.amount]),
      [
        ['suffocate', 1],
        ['suffocate', 1],
      ],
    );
    await w.console(`/setblock ${x} 3 ${z} sand`);
    await w.console(`/setblock ${x} 4 ${z} cactus`);
    await w.step(12);
    assert.equal(causes.at(-1).cause, 'cactus');
    await w.console(`/setblock ${x} 4 ${z} air`);
    await w.console(`/fill ${x} 0 ${z} ${x} 3 ${z} air`);
    await until(w, () => player.health <= 0 || causes.some((c) => c.cause === 'void'), 400);
    assert.equal(causes.at(-1).cause, 'void');
  }));

test('air lasts 15 seconds under water, then each second costs 2; out of it, air comes back', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/gamerule naturalRegeneration false');
    const { x, z } = player.position.floored();
    await w.console(`/fill ${x - 1} 4 ${z - 1} ${x + 1} 8 ${z + 1} glass`);
    await w.console(`/fill ${x} 4 ${z} ${x} 7 ${z} water`);
    await w.step(200);
    assert.equal(player.health, 20);
    assert.ok(bot.oxygenLevel < 10, `oxygen ${bot.oxygenLevel}`);
    await until(w, () => player.health < 20, 200);
    assert.equal(player.health, 18);
    await w.step(20);
    assert.equal(player.health, 16);
    await w.console(`/fill ${x} 4 ${z} ${x} 7 ${z} air`);
    await w.step(80);
    assert.equal(player.stats.oxygen, 300);
    assert.equal(bot.oxygenLevel, 20);
  }));

test('without needs no one drowns or starves', () =>
  inWorld({}, async (w, bot, player) => {
    w.serv.survival.needs = false;
    const { x, z } = player.position.floored();
    await w.console(`/fill ${x - 1} 4 ${z - 1} ${x + 1} 8 ${z + 1} glass`);
    await w.console(`/fill ${x} 4 ${z} ${x} 7 ${z} water`);
    w.run(() => player.exhaust(30));
    await w.step(400);
    assert.deepEqual(
      [player.health, player.food, player.stats.oxygen, player.stats.exhaustion],
      [20, 20, 300, 0],
    );
  }));

test('bread takes 32 ticks, feeds 5 and 6, and is one less; a full stomach takes none', () =>
  inWorld({}, async (w, bot, player) => {
    const eaten = events(w, 'gamut:eat');
    await w.console('/give a0 bread 3');
    w.run(() => {
      player.updateFood(10);
      player.updateFoodSaturation(0);
    });
    await w.step(1);
    const start = w.ticks;
    await w.until(() => bot.consume());
    assert.ok(w.ticks - start >= 32 && w.ticks - start <= 34, `${w.ticks - start} ticks`);
    await w.step(1);
    assert.deepEqual(
      [player.food, player.foodSaturation, bot.food, count(player, 'bread')],
      [15, 6, 15, 2],
    );
    agree(bot, player);
    assert.deepEqual(
      eaten.map((e) => [e.player.username, e.item]),
      [['a0', 'bread']],
    );
    w.run(() => bot.activateItem());
    await w.step(10);
    w.run(() => bot.deactivateItem());
    await w.step(40);
    assert.equal(count(player, 'bread'), 2);
  }));

test('soup leaves its bowl, golden apples heal, milk ends effects', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/give a0 mushroom_stew');
    w.run(() => player.updateFood(5));
    await w.step(1);
    await w.until(() => bot.consume());
    await w.step(1);
    assert.equal(bot.inventory.slots[36].name, 'bowl');
    agree(bot, player);
    await w.console('/clear a0');
    await w.console('/give a0 golden_apple');
    w.run(() => player.updateHealth(10));
    await w.until(() => bot.consume());
    await w.step(110);
    assert.ok(player.health >= 13, `health ${player.health}`);
    await w.console('/effect give a0 poison 600');
    await w.console('/give a0 milk_bucket');
    await w.step(30);
    const poisoned = player.health;
    await w.until(() => bot.consume());
    await w.step(1);
    assert.ok(poisoned < 20);
    assert.deepEqual(Object.values(player.effects).filter(Boolean), []);
    assert.equal(bot.inventory.slots[36].name, 'bucket');
  }));

test('sprinting tires, four of exhaustion cost a point of saturation, then of food', () =>
  inWorld({}, async (w, bot, player) => {
    w.run(() => {
      bot.setControlState('forward', true);
      bot.setControlState('sprint', true);
    });
    await w.step(1);
    const from = player.position.clone();
    const before = player.stats.exhaustion;
    await w.step(100);
    const metres = from.distanceTo(player.position);
    const spent = (5 - player.foodSaturation) * 4 + player.stats.exhaustion - before;
    near(spent, metres * 0.1, 0.15);
    assert.ok(player.sprinting);
    w.run(() => {
      bot.clearControlStates();
      player.exhaust(20);
      player.updateFoodSaturation(0);
    });
    await w.step(10);
    assert.ok(player.food < 20 && bot.food === player.food, `food ${player.food}, ${bot.food}`);
  }));

test('a jump costs 0.05, a sprinting jump 0.2', () =>
  inWorld({}, async (w, bot, player) => {
    const jump = async () => {
      const before = player.stats.exhaustion;
      w.run(() => bot.setControlState('jump', true));
      await w.step(2);
      w.run(() => bot.setControlState('jump', false));
      await w.step(20);
      return player.stats.exhaustion - before;
    };
    near(await jump(), 0.05);
    w.run(() => bot.setControlState('sprint', true));
    await w.step(2);
    // A sprinting jump leaps ahead a little, and sprinting costs by the metre.
    near(await jump(), 0.2, 0.03);
  }));

test('health comes back fast when full and fed, slowly at 18, not at 17', () =>
  inWorld({}, async (w, bot, player) => {
    const gain = async (food, saturation, ticks) => {
      w.run(() => {
        player.updateHealth(5);
        player.updateFood(food);
        player.updateFoodSaturation(saturation);
        player.exhaustion = 0;
        player.foodTimer = 0;
      });
      await w.step(ticks);
      return player.health - 5;
    };
    near(await gain(20, 20, 10), 1);
    near(await gain(18, 0, 80), 1);
    near(await gain(17, 0, 160), 0);
    assert.equal(bot.health, player.health);
  }));

test('starving kills on hard only, stops at 1 on normal and at 10 on easy; peaceful feeds and heals', () =>
  inWorld({}, async (w, bot, player) => {
    const starve = async (difficulty, health) => {
      await w.console(`/difficulty ${difficulty}`);
      w.run(() => {
        player.updateHealth(health);
        player.updateFood(0);
        player.updateFoodSaturation(0);
      });
      await w.step(85 * 3);
      return player.health;
    };
    assert.equal(await starve('easy', 11), 10);
    assert.equal(await starve('normal', 2), 1);
    const deaths = events(w, 'gamut:death');
    await starve('hard', 2);
    assert.deepEqual(
      deaths.map((d) => d.cause),
      ['starve'],
    );
    await w.console('/difficulty peaceful');
    w.run(() => {
      player.updateHealth(10);
      player.updateFood(5);
    });
    await w.step(100);
    assert.ok(
      player.health >= 15 && player.food >= 15,
      `health ${player.health} food ${player.food}`,
    );
  }));

test('sneaking and sprinting show to others, and players know each other both ways', () =>
  inWorld({ agents: 3 }, async (w, bot, player) => {
    for (const b of w.bots) assert.deepEqual(Object.keys(b.players).sort(), ['a0', 'a1', 'a2']);
    await w.run(() => bot.setControlState('sneak', true));
    await w.step(2);
    assert.equal(player.crouching, true);
    const view = w.bots[1].players.a0.entity;
    assert.equal(view.crouching, true);
    await w.run(() => {
      bot.setControlState('sneak', false);
      bot.setControlState('sprint', true);
    });
    await w.step(2);
    assert.deepEqual([player.crouching, player.sprinting, view.crouching], [false, true, false]);
    const late = await w.join('late');
    await w.step(2);
    assert.deepEqual(Object.keys(late.players).sort(), ['a0', 'a1', 'a2', 'late']);
    assert.ok(bot.players.late.entity, 'the newcomer is seen');
  }));

test('levels: 7 points for the first, 9 for the second, 112 at thirty', () => {
  const { describe } = require('../survival/xp');
  assert.deepEqual(describe(7), { points: 7, level: 1, progress: 0 });
  assert.deepEqual(describe(20), { points: 20, level: 2, progress: 4 / 11 });
  assert.equal(describe(1395).level, 30);
  assert.equal(describe(1395 + 111).level, 30);
  assert.equal(describe(1395 + 112).level, 31);
});

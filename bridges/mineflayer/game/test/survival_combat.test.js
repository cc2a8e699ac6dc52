'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, events, until, Vec3 } = require('./survival_help');

const near = (actual, wanted, slack = 1e-6) =>
  assert.ok(Math.abs(actual - wanted) <= slack, `${actual}, not ${wanted}`);

/** A world with a mob that stays where it is, two blocks before the bot. */
async function facing(w, kind, player, distance = 2) {
  const { x, z } = player.position;
  await w.console(`/summon ${kind} ${x} 4 ${z - distance}`);
  await w.step(3);
  const mob = Object.values(w.serv.entities).find((e) => e.name === kind);
  // A mob with behaviour would walk away or burn; it keeps the motion that a blow gives it.
  mob.kind = { ...mob.kind, brain: 'still', moves: 'still', undead: false };
  return mob;
}

const view = (bot, entity) => bot.entities[entity.id];
const stay = (w, mob, at) =>
  w.run(() => {
    mob.position = at.clone();
    mob.health = 200;
    mob.maxHealth = 200;
    mob.hurtTick = -100;
  });

test('weapons hurt as they should when charged, less when not', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/gamerule naturalRegeneration false');
    const mob = await facing(w, 'cow', player);
    const place = mob.position.clone();
    const blow = async (item, wait) => {
      await w.console('/clear a0');
      if (item) await w.console(`/give a0 ${item}`);
      await w.step(wait);
      stay(w, mob, place);
      w.run(() => bot.attack(view(bot, mob)));
      await w.step(1);
      return 200 - mob.health;
    };
    near(await blow(null, 60), 1);
    near(await blow('iron_sword', 60), 6);
    near(await blow('diamond_axe', 60), 9);
    near(await blow('stone_pickaxe', 60), 3);
    near(await blow('trident', 60), 9);
    await w.step(60);
    near(await blow('iron_sword', 60), 6);
    stay(w, mob, place);
    w.run(() => bot.attack(view(bot, mob)));
    await w.step(1);
    const filled = 1.5 / 12.5;
    assert.ok(200 - mob.health < 2, `an uncharged blow did ${200 - mob.health}`);
    near(200 - mob.health, 6 * (0.2 + 0.8 * filled * filled), 0.2);
  }));

test('a falling blow is critical, a sprinting one pushes far, and swords wear by one', () =>
  inWorld({}, async (w, bot, player) => {
    const mob = await facing(w, 'cow', player);
    const place = mob.position.clone();
    await w.console('/give a0 iron_sword');
    await w.step(30);
    w.run(() => bot.setControlState('jump', true));
    await until(w, () => player.fallDistance > 0.1 && !player.onGround, 40);
    stay(w, mob, place);
    w.run(() => {
      bot.setControlState('jump', false);
      bot.attack(view(bot, mob));
    });
    await w.step(1);
    near(200 - mob.health, 9);
    await w.step(30);
    stay(w, mob, place);
    w.run(() => {
      mob.motion = new Vec3(0, 0, 0);
      bot.attack(view(bot, mob));
    });
    await w.step(1);
    const plain = Math.hypot(mob.motion.x, mob.motion.z);
    near(plain, 0.4, 1e-3);
    await w.step(30);
    w.run(() => bot.setControlState('sprint', true));
    await w.step(2);
    stay(w, mob, place);
    w.run(() => {
      mob.motion = new Vec3(0, 0, 0);
      bot.attack(view(bot, mob));
    });
    await w.step(1);
    assert.ok(Math.hypot(mob.motion.x, mob.motion.z) > 0.6, `thrown by ${mob.motion}`);
    assert.equal(player.heldStack().durabilityUsed, 3);
    assert.equal(bot.heldItem.durabilityUsed, 3);
  }));

test('a charged sword sweeps its neighbours for one', () =>
  inWorld({}, async (w, bot, player) => {
    const mob = await facing(w, 'cow', player);
    const { x, y, z } = mob.position;
    await w.console(`/summon pig ${x + 1} ${y} ${z}`);
    await w.console('/give a0 diamond_sword');
    await w.step(30);
    const pig = Object.values(w.serv.entities).find((e) => e.name === 'pig');
    const hurts = events(w, 'gamut:hurt');
    stay(w, mob, mob.position);
    w.run(() => {
      pig.ownPhysics = true;
      pig.position = new Vec3(x + 1, y, z);
      bot.attack(view(bot, mob));
    });
    await w.step(1);
    assert.deepEqual(
      hurts.map((h) => [h.victim.name, h.cause, h.amount]),
      [
        ['pig', 'sweep', 1],
        ['cow', 'blow', 7],
      ].reverse(),
    );
  }));

test('out of reach nothing is hit', () =>
  inWorld({}, async (w, bot, player) => {
    const mob = await facing(w, 'cow', player, 5);
    const before = mob.health;
    w.run(() => bot.attack(view(bot, mob)));
    await w.step(1);
    assert.equal(mob.health, before);
  }));

test('armour takes its share, wears, and breaks; blows throw players back', () =>
  inWorld({ agents: 2, difficulty: 'normal' }, async (w, bot, player) => {
    const { throughArmour } = require('../survival/armour');
    near(throughArmour(10, 15, 0), 10 * (1 - 10 / 25));
    near(throughArmour(10, 20, 8), 10 * (1 - 17.5 / 25));
    near(throughArmour(4, 2, 0), 4 * (1 - 0.4 / 25));
    await w.console('/gamerule naturalRegeneration false');
    const other = w.players[1];
    await w.console(`/tp a1 ${player.position.x} 4 ${player.position.z - 2}`);
    for (const [name, where] of [
      ['iron_chestplate', 'torso'],
      ['golden_boots', 'feet'],
    ]) {
      await w.console(`/give a1 ${name}`);
      await w.until(() => w.bots[1].equip(w.serv.registry.itemsByName[name].id, where));
    }
    await w.console('/give a0 iron_sword');
    await w.step(30);
    const from = other.position.clone();
    w.run(() => bot.attack(view(bot, other)));
    await w.step(1);
    near(20 - other.health, throughArmour(6, 7, 0), 1e-6);
    assert.equal(other.inventory.slots[6].durabilityUsed, 1);
    await w.step(15);
    assert.ok(other.position.distanceTo(from) > 0.8, `thrown ${other.position.distanceTo(from)}`);
    near(w.bots[1].health, other.health, 1e-4);
    const broke = events(w, 'gamut:broke');
    w.run(() => {
      other.inventory.slots[8].durabilityUsed = other.inventory.slots[8].maxDurability - 1;
    });
    w.run(() => w.serv.survival.hurt(other, { amount: 2, cause: 'blow' }));
    await w.step(1);
    assert.equal(other.inventory.slots[8], null);
    assert.deepEqual(
      broke.map((b) => b.item),
      ['golden_boots'],
    );
  }));

test('a raised shield stops blows from the front, not from behind, and wears', () =>
  inWorld({ agents: 2 }, async (w, bot, player) => {
    const { survival } = w.serv;
    await w.console('/give a0 shield');
    await w.until(() => bot.equip(w.serv.registry.itemsByName.shield.id, 'off-hand'));
    await w.until(() => bot.lookAt(player.position.offset(0, 1.6, -3), true));
    w.run(() => bot.activateItem(true));
    await w.step(8);
    const front = player.position.offset(0, 0, -2);
    const hit = (from, cause = 'blow') =>
      w.run(() => survival.hurt(player, { amount: 6, cause, from }));
    assert.equal(hit(front), 0);
    assert.equal(player.health, 20);
    assert.equal(player.inventory.slots[45].durabilityUsed, 7);
    assert.equal(hit(player.position.offset(0, 0, 2)), 6);
    await w.step(12);
    w.run(() => bot.deactivateItem());
    await w.step(1);
    assert.equal(hit(front), 6);
  }));

test('mobs hurt by difficulty: half and one on easy, half as much again on hard, nothing on peaceful', () =>
  inWorld({}, async (w, bot, player) => {
    const mob = await facing(w, 'zombie', player);
    await w.console('/gamerule naturalRegeneration false');
    const { survival } = w.serv;
    const hit = async (difficulty) => {
      await w.console(`/difficulty ${difficulty}`);
      await w.step(12);
      return w.run(() => survival.hurt(player, { amount: 3, cause: 'blow', by: mob }));
    };
    assert.deepEqual(
      [await hit('peaceful'), await hit('easy'), await hit('normal'), await hit('hard')],
      [0, 2.5, 3, 4.5],
    );
  }));

test('a kill is an event and gives experience, and the corpse disappears after a second', () =>
  inWorld({}, async (w, bot, player) => {
    const mob = await facing(w, 'zombie', player);
    const deaths = events(w, 'gamut:death');
    const died = [];
    bot.on('entityDead', (e) => died.push(e.name));
    await w.console('/give a0 diamond_sword');
    await w.step(30);
    w.run(() => {
      mob.health = 1;
      bot.attack(view(bot, mob));
    });
    await w.step(2);
    assert.deepEqual(
      deaths.map((d) => [d.victim.name, d.cause, d.by.username]),
      [['zombie', 'blow', 'a0']],
    );
    assert.deepEqual(died, ['zombie']);
    assert.equal(bot.experience.points, 5);
    assert.ok(view(bot, mob));
    await w.step(25);
    assert.equal(view(bot, mob), undefined);
    assert.equal(w.serv.entities[mob.id], undefined);
  }));

test('an axe puts a shield down for five seconds', () =>
  inWorld({ agents: 2, seed: 4 }, async (w, bot, player) => {
    const other = w.players[1];
    await w.console(`/tp a1 ${player.position.x} 4 ${player.position.z - 2}`);
    await w.console('/give a1 shield');
    await w.console('/give a0 iron_axe');
    await w.until(() => w.bots[1].equip(w.serv.registry.itemsByName.shield.id, 'off-hand'));
    await w.until(() => w.bots[1].lookAt(player.position.offset(0, 1.6, 0), true));
    const raise = async () => {
      w.run(() => w.bots[1].activateItem(true));
      await w.step(30);
    };
    await raise();
    assert.ok(other.blockingSince > 0);
    for (let i = 0; i < 40 && other.blockingSince; i++) {
      w.run(() => bot.attack(view(bot, other)));
      await w.step(30);
    }
    assert.equal(other.blockingSince, 0);
    await raise();
    assert.equal(other.blockingSince, 0, 'not yet');
    await w.step(100);
    await raise();
    assert.ok(other.blockingSince > 0);
  }));

test('a drawn bow hits far away, uses an arrow and wears; arrows that miss stick and can be picked up', () =>
  inWorld({}, async (w, bot, player) => {
    const mob = await facing(w, 'cow', player, 12);
    const hurts = events(w, 'gamut:hurt');
    await w.console('/give a0 bow');
    await w.console('/give a0 arrow 5');
    stay(w, mob, mob.position);
    await w.until(() => bot.lookAt(mob.position.offset(0, 1.2, 0), true));
    await w.step(2);
    const loose = async (ticks) => {
      w.run(() => bot.activateItem());
      await w.step(ticks);
      w.run(() => bot.deactivateItem());
      await w.step(1);
    };
    await loose(1);
    assert.equal(w.serv.survival.arrows.size, 0, 'hardly drawn, not shot');
    await loose(25);
    assert.ok(Object.values(bot.entities).some((e) => e.name === 'arrow'));
    await w.step(10);
    assert.deepEqual(
      hurts.map((h) => [h.victim.name, h.cause, h.by.username]),
      [['cow', 'arrow', 'a0']],
    );
    assert.ok(hurts[0].amount >= 6 && hurts[0].amount <= 10, `${hurts[0].amount}`);
    assert.equal(player.inventory.slots[37].count, 4);
    assert.equal(bot.inventory.slots[37].count, 4);
    assert.equal(bot.heldItem.durabilityUsed, 1);
    assert.equal(w.serv.survival.arrows.size, 0);
    await w.until(() => bot.look(Math.PI / 2, -0.6, true));
    await w.step(2);
    await loose(25);
    await w.step(20);
    const [arrow] = w.serv.survival.arrows.values();
    assert.ok(arrow.stuck && Math.abs(arrow.position.y - 4) < 0.1, String(arrow.position));
    await w.console(`/tp a0 ${arrow.position.x} 4 ${arrow.position.z}`);
    await w.step(3);
    assert.equal(player.inventory.slots[37].count, 4);
    assert.equal(Object.values(bot.entities).filter((e) => e.name === 'arrow').length, 0);
  }));

test('a crossbow is loaded by holding, keeps its arrow, and shoots at the next click', () =>
  inWorld({}, async (w, bot, player) => {
    const mob = await facing(w, 'cow', player, 12);
    const hurts = events(w, 'gamut:hurt');
    await w.console('/give a0 crossbow');
    await w.console('/give a0 arrow 5');
    stay(w, mob, mob.position);
    await w.until(() => bot.lookAt(mob.position.offset(0, 1, 0), true));
    await w.step(2);
    const hold = async (ticks) => {
      w.run(() => bot.activateItem());
      await w.step(ticks);
      w.run(() => bot.deactivateItem());
      await w.step(1);
    };
    const arrows = () => player.inventory.slots[37].count;
    await hold(20);
    assert.equal(arrows(), 5, 'held for too short');
    await hold(27);
    assert.equal(arrows(), 4);
    assert.equal(w.serv.survival.arrows.size, 0);
    assert.equal(bot.heldItem.nbt.value.Charged.value, 1);
    await hold(1);
    await w.step(10);
    assert.deepEqual(hurts.map((h) => [h.victim.name, h.cause, h.by.username]), [['cow', 'arrow', 'a0']]);
    assert.ok(hurts[0].amount >= 6 && hurts[0].amount <= 11, `${hurts[0].amount}`);
    assert.equal(bot.heldItem.nbt?.value?.Charged, undefined);
    assert.equal(bot.heldItem.durabilityUsed, 1);
    await hold(1);
    assert.equal(arrows(), 4, 'it must be loaded again');
  }));

test('arrows of mobs hurt players and shields stop them', () =>
  inWorld({}, async (w, bot, player) => {
    const mob = await facing(w, 'skeleton', player, 8);
    const { survival } = w.serv;
    await w.console('/gamerule naturalRegeneration false');
    const shoot = async () => {
      const from = mob.position.offset(0, 1.5, 0);
      const direction = player.position.offset(0, 1.2, 0).minus(from);
      w.run(() => survival.shoot(mob, { from, direction, speed: 1.6, spread: 0 }));
      await w.step(20);
    };
    await shoot();
    assert.equal(player.health, 16);
    await w.console('/give a0 shield');
    await w.until(() => bot.equip(w.serv.registry.itemsByName.shield.id, 'off-hand'));
    await w.until(() => bot.lookAt(mob.position.offset(0, 1.6, 0), true));
    w.run(() => bot.activateItem(true));
    await w.step(8);
    await shoot();
    assert.equal(player.health, 16);
  }));

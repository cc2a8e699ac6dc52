'use strict';

/** What enchantments do, in fights, in mines and under water. */

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, until, Vec3 } = require('./survival_help');
const { lootOf } = require('../survival/loot');
const { lootOfMob } = require('../survival/mobs/loot');

const enchanted = (w, name, enchants) => {
  const item = w.serv.survival.items.make(name);
  item.enchants = Object.entries(enchants).map(([each, lvl]) => ({ name: each, lvl }));
  return item;
};
const wear = (w, player, slot, name, enchants) => w.run(() => player.setSlot(slot, enchanted(w, name, enchants)));

/** Strikes a mob of a kind once with a sword; returns what it lost, and the mob. */
async function blow(w, bot, player, kind, enchants) {
  const mob = w.run(() => w.serv.survival.spawnMob(kind, new Vec3(10.5, 4, 8.5)));
  mob.ai = null;
  mob.maxHealth = mob.health = 100;
  wear(w, player, 36, 'iron_sword', enchants);
  await w.step(20);
  await w.run(() => w.serv.survival.attack(player, mob));
  const lost = 100 - mob.health;
  await w.step(1);
  return [lost, mob];
}

test('sharpness, smite and bane add to a blow on whom they are for', () =>
  inWorld({}, async (w, bot, player) => {
    for (const [kind, enchants, lost] of [
      ['cow', {}, 6], ['cow', { sharpness: 3 }, 8], ['husk', { smite: 2 }, 11], ['cow', { smite: 2 }, 6],
      ['spider', { bane_of_arthropods: 1 }, 8.5],
    ]) {
      const [took, mob] = await blow(w, bot, player, kind, enchants);
      const armour = kind === 'husk' ? 0.984 : 1; // two points of armour
      assert.ok(Math.abs(took - lost * armour) < 0.4, `${kind} ${JSON.stringify(enchants)}: ${took}`);
      w.run(() => w.serv.survival.mobs.remove(mob));
    }
  }));

test('fire aspect burns, and knockback pushes farther', () =>
  inWorld({}, async (w, bot, player) => {
    const [, burning] = await blow(w, bot, player, 'cow', { fire_aspect: 2 });
    assert.ok(burning.fireTicks > 140, `${burning.fireTicks}`);
    w.run(() => w.serv.survival.mobs.remove(burning));
    const pushes = [];
    for (const enchants of [{}, { knockback: 2 }]) {
      const mob = w.run(() => w.serv.survival.spawnMob('cow', new Vec3(10.5, 4, 8.5)));
      mob.maxHealth = mob.health = 100;
      wear(w, player, 36, 'iron_sword', enchants);
      await w.step(20);
      w.run(() => {
        mob.position = new Vec3(10.5, 4, 8.5);
        w.serv.survival.attack(player, mob);
        pushes.push(Math.hypot(mob.motion.x, mob.motion.z));
        w.serv.survival.mobs.remove(mob);
      });
      await w.step(1);
    }
    assert.ok(pushes[1] > pushes[0] + 0.5, `${pushes}`);
  }));

test('armour of protection and boots of feather falling let less through', () =>
  inWorld({ rules: { naturalRegeneration: false } }, async (w, bot, player) => {
    const { survival } = w.serv;
    const hit = (amount, cause) =>
      w.run(() => {
        player.updateHealth(20);
        player.hurtTick = -100;
        return survival.hurt(player, { amount, cause });
      });
    assert.equal(hit(10, 'fall'), 10);
    wear(w, player, 8, 'golden_boots', { feather_falling: 4 });
    assert.ok(Math.abs(hit(10, 'fall') - 10 * (1 - 12 / 25)) < 1e-9);
    wear(w, player, 6, 'golden_chestplate', { protection: 4 });
    wear(w, player, 7, 'golden_leggings', { fire_protection: 4 });
    assert.ok(Math.abs(hit(10, 'fall') - 10 * (1 - 16 / 25)) < 1e-9);
    assert.ok(Math.abs(hit(10, 'burning') - 10 * (1 - 12 / 25)) < 1e-9);
    assert.equal(hit(10, 'starve'), 10);
  }));

test('respiration makes air last, and mending repairs with experience', () =>
  inWorld({}, async (w, bot, player) => {
    for (const y of [4, 5, 6]) await w.console(`/setblock 8 ${y} 8 water`);
    const spent = [];
    for (const enchants of [{}, { respiration: 3 }]) {
      wear(w, player, 5, 'golden_helmet', enchants);
      await w.console('/tp a0 8.5 4 8.5');
      w.run(() => { player.air = 300; });
      await w.step(80);
      spent.push(300 - player.air);
    }
    assert.ok(spent[1] < spent[0] * 0.6, `${spent}`);
    const shears = enchanted(w, 'shears', { mending: 1 });
    shears.durabilityUsed = 30;
    w.run(() => player.setSlot(player.heldSlot(), shears));
    const before = player.experience.points;
    w.run(() => player.addXp(10));
    assert.equal(player.heldStack().durabilityUsed, 10);
    w.run(() => player.addXp(10));
    assert.equal(player.heldStack().durabilityUsed, 0);
    assert.equal(player.experience.points, before + 5);
  }));

test('a bow of power, flame and infinity shoots harder, burns, and needs one arrow', () =>
  inWorld({}, async (w, bot, player) => {
    const shot = async (enchants) => {
      wear(w, player, 36, 'bow', enchants);
      w.run(() => player.setSlot(37, w.serv.survival.items.make('arrow', 1)));
      const mob = w.run(() => w.serv.survival.spawnMob('cow', new Vec3(8.5, 4, 2.5)));
      mob.ai = null;
      mob.maxHealth = mob.health = 100;
      await w.step(2);
      await w.until(() => bot.lookAt(mob.position.offset(0, 1, 0), true));
      w.run(() => bot.activateItem());
      await w.step(12);
      w.run(() => bot.deactivateItem());
      await until(w, () => mob.health < 100, 30);
      const result = [100 - mob.health, mob.fireTicks > 0, player.inventory.slots[37]?.count ?? 0];
      w.run(() => w.serv.survival.mobs.remove(mob));
      await w.step(2);
      return result;
    };
    const [plain, burns, left] = await shot({});
    assert.deepEqual([burns, left], [false, 0]);
    const [strong, flames, kept] = await shot({ power: 5, flame: 1, infinity: 1 });
    assert.ok(strong >= plain * 1.8, `${plain} ${strong}`);
    assert.deepEqual([flames, kept], [true, 1]);
  }));

test('fortune and looting give more', () =>
  inWorld({}, async (w) => {
    const { survival, registry } = w.serv;
    const mean = (draw) => {
      let sum = 0;
      for (let i = 0; i < 2000; i++) for (const [, count] of w.run(draw)) sum += count;
      return sum / 2000;
    };
    const ore = survival.blocks.info(registry.blocksByName.diamond_ore.defaultState);
    const dig = (enchants) => {
      const tool = enchanted(w, 'iron_pickaxe', enchants);
      return mean(() => lootOf(survival.items, registry, ore, tool, true));
    };
    assert.equal(dig({}), 1);
    assert.ok(Math.abs(dig({ fortune: 3 }) - 2.2) < 0.15);
    const kill = (looting) => mean(() => lootOfMob(registry, { name: 'spider' }, true, looting));
    assert.ok(kill(3) > kill(0) + 1.5);
    const kept = lootOf(survival.items, registry, survival.blocks.info(registry.blocksByName.farmland.defaultState),
      enchanted(w, 'iron_shovel', { silk_touch: 1 }), true);
    assert.deepEqual(kept, [['dirt', 1]]);
  }));

'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, agree, at, count, events, Vec3 } = require('./survival_help');
const trades = require('../survival/trades.json');
const { OFFER } = require('../survival/trading');

const villagerOf = (bot) => Object.values(bot.entities).find(({ name }) => name === 'villager');
const mobOf = (w) => [...w.serv.survival.mobs.list.values()].find(({ name }) => name === 'villager');
const texts = ({ trades: offers }) =>
  offers.map(({ inputs, outputs, realPrice }) =>
    [...inputs.map((item, i) => `${i === 0 ? realPrice : item.count} ${item.name}`), outputs[0].name].join(' '));

const CLERIC = { type: 'plains', profession: 'cleric', level: 2 };
const tag = (id, n) => ({ type: 'compound', value: { id: { value: `minecraft:${id}` }, Count: { value: n } } });
const MASON = {
  VillagerData: { value: { profession: { value: 'minecraft:mason' }, level: { value: 1 } } },
  Offers: { value: { Recipes: { value: { value: [
    { buy: tag('wheat', 3), sell: tag('emerald', 1), maxUses: { value: 2 }, xp: { value: 12 } },
    { buy: tag('emerald', 2), buyB: tag('book', 1), sell: tag('bookshelf', 1), maxUses: { value: 5 } },
  ] } } } },
};

/** A world in which a villager stands still beside the bot: with a merchant, or the tags of a command. */
const withVillager = ({ merchant, tags }, play, more = {}) =>
  inWorld(more, async (w, bot, player) => {
    const at = new Vec3(10.5, 4, 8.5);
    if (tags) {
      const point = [10.5, 4, 8.5].map((n) => ['', n]);
      await w.run(() => w.serv.survival.command({ name: 'summon', args: { kind: 'villager', at: point, nbt: { value: tags } } }));
    } else await w.run(() => w.serv.survival.spawnMob('villager', at, { merchant }));
    const mob = mobOf(w);
    mob.ai = null;
    await w.step(3);
    await play(w, bot, player, mob);
  });

test('a villager shows its profession and level, and offers two trades of each level', () =>
  withVillager({ merchant: CLERIC }, async (w, bot, player, mob) => {
    assert.deepEqual(villagerOf(bot).metadata[17], { villagerType: 2, villagerProfession: 4, level: 2 });
    const window = await w.until(() => bot.openVillager(villagerOf(bot)));
    assert.deepEqual(texts(window).sort(), [
      '1 emerald lapis_lazuli', '1 emerald redstone', '3 gold_ingot emerald', '32 rotten_flesh emerald',
    ]);
    assert.equal(mob.merchant.offers.length, 4);
  }));

test('trading takes the price, gives the item and experience, and ends when it is sold out', () =>
  withVillager({ tags: MASON }, async (w, bot, player, mob) => {
    await w.console('/give a0 wheat 10');
    await w.console('/give a0 emerald 4');
    await w.console('/give a0 book 1');
    await w.step(2);
    const traded = events(w, 'gamut:traded');
    const window = await w.until(() => bot.openVillager(villagerOf(bot)));
    await w.until(() => bot.trade(window, 0, 2));
    await w.step(2);
    assert.deepEqual([count(player, 'wheat'), count(player, 'emerald')], [4, 6]);
    await assert.rejects(w.until(() => bot.trade(window, 0, 1)), /blocked/);
    await w.until(() => bot.trade(window, 1, 1));
    await w.step(2);
    assert.deepEqual(['emerald', 'book', 'bookshelf'].map((each) => count(player, each)), [4, 0, 1]);
    assert.ok(player.experience.points >= 9 && player.experience.points <= 18);
    assert.deepEqual(traded.map(({ item }) => item), ['emerald', 'emerald', 'bookshelf']);
    await w.until(() => window.close());
    await w.step(2);
    // 25 points of experience: level 2, with two offers of it.
    assert.deepEqual([mob.merchant.xp, mob.merchant.level], [25, 2]);
    agree(bot, player);
  }));

test('an offer is sold again half a day later, at a higher price', () =>
  withVillager({ tags: MASON }, async (w, bot, player, mob) => {
    await w.console('/give a0 wheat 64');
    await w.step(2);
    mob.merchant.offers[0].share = 0.5;
    const window = await w.until(() => bot.openVillager(villagerOf(bot)));
    await w.until(() => bot.trade(window, 0, 2));
    await w.until(() => window.close());
    mob.merchant.stocked -= 12000;
    const again = await w.until(() => bot.openVillager(villagerOf(bot)));
    assert.equal(again.trades[0].realPrice, 6);
    await w.until(() => bot.trade(again, 0, 1));
    await w.step(2);
    assert.equal(count(player, 'wheat'), 64 - 6 - 6);
    agree(bot, player);
  }));

test('what is not enough is refused, and what was put in comes back', () =>
  withVillager({ tags: MASON }, async (w, bot, player) => {
    await w.console('/give a0 wheat 2');
    await w.step(2);
    const window = await w.until(() => bot.openVillager(villagerOf(bot)));
    await assert.rejects(w.until(() => bot.trade(window, 0, 1)), /Not enough/);
    w.run(() => bot._client.write('select_trade', { slot: 0 }));
    await w.step(2);
    assert.equal(window.slots[2], null);
    await w.until(() => window.close());
    await w.step(2);
    assert.equal(count(player, 'wheat'), 2);
    agree(bot, player);
  }));

test('a villager without a job takes up that of a job site near it, and loses it again', () =>
  withVillager({}, async (w, bot, player, mob) => {
    assert.equal(mob.merchant.profession, 'none');
    await w.console('/setblock 12 4 12 lectern');
    assert.equal(mob.merchant.profession, 'librarian');
    assert.ok(mob.merchant.offers.length === 2);
    await w.console('/setblock 12 4 12 air');
    assert.equal(mob.merchant.profession, 'none');
    await w.console('/setblock 12 4 12 composter');
    await w.console('/setblock 13 4 12 smoker');
    assert.equal(mob.merchant.profession, 'farmer');
    await w.run(() => w.serv.survival.spawnMob('villager', new Vec3(10.5, 4, 12.5)));
    const jobs = [...w.serv.survival.mobs.list.values()].map(({ merchant }) => merchant.profession);
    assert.deepEqual(jobs, ['farmer', 'butcher']);
    assert.equal(at(w, 13, 4, 12).name, 'smoker');
  }));

test('a villager trades with one player at a time, and the window closes when it dies', () =>
  withVillager({ tags: MASON }, async (w, bot, player, mob) => {
    await w.until(() => bot.openVillager(villagerOf(bot)));
    const [, other] = w.bots;
    w.run(() => other.activateEntity(villagerOf(other)));
    await w.step(10);
    assert.equal(other.currentWindow, null);
    w.serv.survival.hurt(mob, { amount: 100, cause: 'command' });
    await w.step(3);
    assert.equal(bot.currentWindow, null);
    assert.equal(player.openWindow, null);
  }, { agents: 2 }));

test('a wandering trader sells six things', () =>
  inWorld({}, async (w, bot) => {
    await w.console('/summon wandering_trader 10.5 4 8.5');
    for (const mob of w.serv.survival.mobs.list.values()) mob.ai = null;
    await w.step(3);
    const trader = Object.values(bot.entities).find(({ name }) => name === 'wandering_trader');
    const window = await w.until(() => bot.openEntity(trader));
    assert.equal(window.type, 'minecraft:merchant');
    const [mob] = w.serv.survival.mobs.list.values();
    assert.equal(mob.merchant.offers.length, 6);
  }));

test('what every offer names exists, and every profession has its site', () =>
  inWorld({}, async (w) => {
    const { registry } = w.serv;
    const rows = Object.values(trades.professions).flatMap(({ levels }) => levels.flat());
    rows.push(...trades.traders.wandering_trader.flatMap(([, some]) => some));
    assert.ok(rows.length > 150);
    for (const text of rows.flatMap(([wants, gives]) => [...wants.split(' + '), gives])) {
      const [, , item] = OFFER.exec(text);
      const named = item.replace(/\*$/, '').replace(/\{colour[^}]*\}/, 'white').replace('{wood}', 'oak');
      assert.ok(registry.itemsByName[named], item);
    }
    for (const { site } of Object.values(trades.professions)) if (site) assert.ok(registry.blocksByName[site], site);
  }));

'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, slot, count, at, seen, agree, words, events } = require('./survival_help');

test('commands do what they say, and counts are numbers', () =>
  inWorld({ agents: 2 }, async (w, bot, player) => {
    await w.console('/give a0 minecraft:oak_log 4');
    await w.console('/give a0 oak_log 3');
    assert.equal(slot(bot, player, 36), 'oak_log x7');
    assert.equal(typeof player.inventory.slots[36].count, 'number');
    await w.console('/give @a iron_sword 2');
    assert.equal(count(w.players[1], 'iron_sword'), 2);
    await w.console('/clear a0 oak_log 5');
    assert.equal(count(player, 'oak_log'), 2);
    await w.console('/clear a0');
    assert.deepEqual(player.inventory.slots.filter(Boolean), []);
    agree(bot, player);
    await w.console('/fill 3 4 3 5 5 5 oak_stairs[facing=west,half=top]');
    assert.deepEqual(
      [at(w, 4, 5, 4).name, at(w, 4, 5, 4).props.facing, seen(bot, 5, 4, 5).name],
      ['oak_stairs', 'west', 'oak_stairs'],
    );
    await w.console('/time set noon');
    assert.equal(bot.time.timeOfDay, 6000);
    await w.console('/time add 20000');
    assert.deepEqual([w.serv.time, w.serv.day], [2000, 1]);
    await w.console('/tp a0 a1');
    await w.step(2);
    assert.ok(bot.entity.position.distanceTo(w.bots[1].entity.position) < 0.1);
    await w.console('/tp a0 30 4 -7.5');
    await w.step(2);
    assert.deepEqual(
      [bot.entity.position.x, bot.entity.position.z, player.position.x],
      [30, -7.5, 30],
    );
    await w.console('/effect give a0 speed 5 1');
    await w.step(1);
    assert.equal(bot.entity.effects[1].amplifier, 1);
    await w.step(101);
    assert.equal(bot.entity.effects[1], undefined);
    await w.console('/difficulty hard');
    assert.equal(bot.game.difficulty, 'hard');
    for (let i = 0; i < 3; i++) await w.console('/summon pig 31 4 -7.5');
    await w.step(2);
    assert.equal(Object.values(bot.entities).filter((e) => e.name === 'pig').length, 3);
  }));

test('the game mode changes on both sides', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/gamemode creative a0');
    assert.equal(bot.game.gameMode, 'creative');
    w.run(() => w.serv.survival.hurt(player, { amount: 5, cause: 'lava' }));
    assert.equal(player.health, 20);
    await w.console('/gamemode survival a0');
    assert.deepEqual([player.gameMode, bot.game.gameMode], [0, 'survival']);
  }));

test('what cannot be done is refused in the words of the game', () =>
  inWorld({}, async (w, bot, player) => {
    const refused = (line, words) =>
      assert.rejects(w.console(line), (error) => words.test(error.message));
    await refused('/give b0 diamond 3', /^No player was found$/);
    await refused('/effect give @s speed', /^No entity was found$/);
    await refused('/setblock 1 256 1 stone', /^That position is out of this world!$/);
    await refused('/fill 0 0 0 200 200 200 stone', /maximum 32768, specified 8120601/);
    await refused('/clone 0 4 0 2 4 2 1 4 1', /cannot overlap/);
    await refused('/replaceitem block 8 9 8 container.0 dirt', /8, 9, 8 is not a container/);
    await refused('/replaceitem entity a0 container.53 dirt', /does not have slot container.53/);
    await refused('/enchant a0 sharpness 1', /a0 is not holding any item/);
    await w.console('/give a0 dirt');
    await refused('/enchant a0 sharpness 1', /dirt cannot support/);
    await refused('/enchant a0 infinity 2', /higher than the maximum level of 1/);
    await w.console('/difficulty peaceful');
    await refused('/summon zombie 8 4 8', /Unable to summon entity/);
    assert.equal(count(player, 'diamond'), 0);
  }));

test('players have no commands', () =>
  inWorld({ agents: 2 }, async (w, bot, player) => {
    const chat = [];
    bot.on('message', (m) => chat.push(m.toString()));
    for (const line of [
      '/give a0 diamond 3',
      '/kill a1',
      '/tp a0 100 4 100',
      '/gamemode creative',
      '/op a0',
      '/setblock 8 5 8 stone',
      '/stop',
    ]) {
      await w.run(() => bot.chat(line));
      await w.step(2);
    }
    assert.equal(count(player, 'diamond'), 0);
    assert.equal(w.players[1].health, 20);
    assert.equal(player.gameMode, 0);
    assert.equal(at(w, 8, 5, 8).name, 'air');
    assert.ok(player.position.x < 20 && !player.op);
    assert.equal(
      chat.filter((c) => /permission|console only|not found/i.test(c)).length,
      7,
      chat.join('\n'),
    );
  }));

/** Plays a little of everything. */
async function play(w, bot) {
  await w.console('/give a0 oak_log 8');
  await w.console('/setblock 10 4 8 furnace');
  await w.console('/setblock 10 4 10 chest');
  await w.console('/setblock 6 12 6 sand');
  await w.console('/fill 12 3 4 14 3 12 farmland');
  await w.console('/fill 12 4 4 14 4 12 wheat');
  await w.until(() =>
    bot.craft(bot.recipesFor(w.serv.registry.itemsByName.oak_planks.id, null, 1, null)[0], 2, null),
  );
  const furnace = await w.until(() => bot.openFurnace(seen(bot, 10, 4, 8)));
  await w.until(() => furnace.putInput(w.serv.registry.itemsByName.oak_log.id, null, 3));
  await w.until(() => furnace.putFuel(w.serv.registry.itemsByName.oak_planks.id, null, 4));
  await w.until(() => furnace.close());
  const chest = await w.until(() => bot.openChest(seen(bot, 10, 4, 10)));
  await w.until(() => chest.deposit(w.serv.registry.itemsByName.oak_log.id, null, 2));
  await w.until(() => chest.close());
  await w.until(() => bot.toss(w.serv.registry.itemsByName.oak_planks.id, null, 2));
  await w.console('/weather rain');
  await w.console('/gamerule keepInventory true');
  await w.console('/effect give a0 poison 3');
  w.run(() => {
    bot.setControlState('forward', true);
    bot.setControlState('sprint', true);
  });
  await w.step(150);
}

/** All that the mechanics keep, as text. */
const saved = (w) =>
  JSON.stringify(w.run(() => require('../survival').plugins.map((p) => [p.name, p.save(w.serv)])));

test('two runs of one seed keep the same state, another seed does not', async () => {
  const run = async (seed) => {
    let text;
    await inWorld({ seed }, async (w, bot) => {
      await play(w, bot);
      text = saved(w);
    });
    return text;
  };
  const [first, second, other] = [await run(11), await run(11), await run(12)];
  assert.equal(first, second);
  assert.notEqual(first, other);
});

test('saved state is plain data and is restored completely; without data the state is new', () =>
  inWorld({}, async (w, bot, player) => {
    const { plugins } = require('../survival');
    const fresh = saved(w);
    await play(w, bot);
    const kept = saved(w);
    const data = JSON.parse(kept);
    assert.notEqual(kept, fresh);
    const load = (of) =>
      w.run(() => plugins.forEach((p, i) => p.load(w.serv, of ? of[i][1] : null)));
    w.run(() => bot.clearControlStates());
    await w.step(200);
    load(data);
    await w.step(0);
    assert.equal(saved(w), kept);
    await w.step(1);
    agree(bot, player);
    assert.equal(bot.isRaining, true);
    assert.deepEqual(w.serv.survival.container(10, 4, 10).slots.filter(Boolean).map(words), [
      'oak_log x2',
    ]);
    const furnace = w.serv.survival.container(10, 4, 8);
    const before = words(furnace.slots[2]);
    await w.step(210);
    assert.notEqual(words(furnace.slots[2]), before, 'the furnace works on');
    load(null);
    const blank = JSON.parse(saved(w));
    const of = (name) => blank.find((row) => row[0] === name)[1];
    assert.deepEqual(of('containers').world, []);
    assert.deepEqual(of('drops').world, []);
    assert.equal(of('clock').world.age, 0);
    assert.deepEqual(of('core').world.rules.keepInventory, false);
    assert.deepEqual(of('health').players.a0, { health: 20, hurtTick: -20, lastBlow: 0 });
    assert.deepEqual(of('inventory').players.a0.slots.filter(Boolean), []);
    assert.deepEqual(Object.values(of('effects').players.a0).filter(Boolean), []);
    await w.step(2);
    assert.equal(bot.inventory.items().length, 0);
  }));

test('the agreed events and numbers are there', () =>
  inWorld({}, async (w, bot, player) => {
    assert.deepEqual(
      Object.keys(player.stats)
        .filter((k) => k !== 'tick')
        .sort(),
      ['armour', 'exhaustion', 'food', 'health', 'oxygen', 'saturation', 'xp'],
    );
    const picked = events(w, 'gamut:picked');
    w.run(() =>
      w.serv.survival.drop(player.position.clone(), w.serv.survival.items.make('apple', 3)),
    );
    await w.step(15);
    assert.deepEqual(
      picked.map((p) => [p.player.username, p.item, p.count]),
      [['a0', 'apple', 3]],
    );
  }));

'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, events, until, count, mobs, summon, calm, Vec3 } = require('./mobs_help');

const id = (w, name) => w.serv.registry.itemsByName[name].id;
const clientSide = (bot, mob) => bot.entities[mob.id];

async function hold(w, bot, name) {
  await w.until(() => bot.equip(id(w, name), 'hand'));
}

/** Feeds an animal by mineflayer's own call. */
async function feed(w, bot, mob) {
  await w.until(() => bot.activateEntity(clientSide(bot, mob)));
  await w.step(1);
}

test('two cows that are fed wheat have a calf, rest, and the feeder earns experience', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    const bred = events(w, 'gamut:bred');
    await w.console('/give a0 wheat 5');
    for (const x of [9, 10]) await w.console(`/summon cow ${x}.5 4 9.5`);
    await w.step(2);
    await hold(w, bot, 'wheat');
    const [one, two] = mobs(w, 'cow');
    await feed(w, bot, one);
    await w.step(100);
    assert.equal(bred.length, 0, 'it takes two');
    await feed(w, bot, two);
    assert.equal(count(player, 'wheat'), 3);
    await feed(w, bot, two);
    assert.equal(count(player, 'wheat'), 3, 'who is in love eats no more');
    await until(w, () => bred.length === 1, 400);
    const calf = bred[0].entity;
    assert.deepEqual([calf.name, calf.baby, calf.health], ['cow', true, 10]);
    assert.ok(player.experience.points >= 1 && player.experience.points <= 7);
    await w.step(2);
    assert.equal(clientSide(bot, calf).metadata[15], true, 'the client sees a young one');
    assert.ok(one.age > 5900 && two.age > 5900);
    await feed(w, bot, one);
    assert.equal(count(player, 'wheat'), 3, 'parents rest for five minutes');
    const { age } = calf;
    await feed(w, bot, calf);
    assert.equal(count(player, 'wheat'), 2);
    assert.ok(calf.age - age > 2300, `a tenth sooner: ${calf.age - age}`);
    calf.age = -2;
    await w.step(3);
    assert.equal(calf.baby, false);
  }));

test('a lamb has the colour of its parents mixed, a mule comes of a horse and a donkey', () =>
  inWorld({}, async (w, bot) => {
    await calm(w);
    const bred = events(w, 'gamut:bred');
    summon(w, 'sheep', [9.5, 4, 9.5], { Color: 14, InLove: 600 });
    summon(w, 'sheep', [10.5, 4, 9.5], { Color: 0, InLove: 600 });
    await until(w, () => bred.length === 1, 300);
    assert.equal(bred[0].entity.colour, 'pink');
    summon(w, 'horse', [9.5, 4, 12.5], { Tame: 1, InLove: 600 });
    summon(w, 'donkey', [10.5, 4, 12.5], { Tame: 1, InLove: 600 });
    await until(w, () => bred.length === 2, 300);
    assert.equal(bred[1].entity.name, 'mule');
    assert.ok(bot);
  }));

test('a wolf is tamed with bones, sits, gets up, follows, and fights whom its owner fights', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    await w.console('/give a0 bone 64');
    summon(w, 'wolf', [9.5, 4, 9.5], { NoAI: 1 });
    await w.step(2);
    const [wolf] = mobs(w, 'wolf');
    await hold(w, bot, 'bone');
    let used = 0;
    for (; !wolf.tame && used < 60; used++) await feed(w, bot, wolf);
    assert.equal(count(player, 'bone'), 64 - used);
    assert.deepEqual([wolf.owner, wolf.sitting, wolf.health], ['a0', true, 20]);
    assert.equal(clientSide(bot, wolf).metadata[16], 5, 'tame and sitting');
    wolf.ai = 'animal';
    await w.console('/tp a0 16.5 4 16.5');
    await w.step(100);
    assert.ok(wolf.position.distanceTo(new Vec3(9.5, 4, 9.5)) < 1, 'a sitting wolf stays');
    await w.console('/tp a0 10.5 4 10.5');
    await w.step(2);
    await feed(w, bot, wolf);
    assert.equal(wolf.sitting, false);
    await w.console('/tp a0 30.5 4 30.5');
    await until(w, () => wolf.position.distanceTo(player.position) < 8, 200);
    await w.console('/summon cow 31.5 4 31.5');
    await w.step(2);
    const [cow] = mobs(w, 'cow');
    w.run(() => bot.attack(clientSide(bot, cow)));
    const hurts = events(w, 'gamut:hurt');
    await until(w, () => hurts.some(({ victim, by }) => victim === cow && by === wolf), 300);
    w.run(() => bot.attack(clientSide(bot, wolf)));
    await w.step(100);
    assert.equal(player.health, 20, 'it does not fight its owner');
  }));

test('a fed wolf heals, a hungry parrot is tamed with seeds, and a name tag names', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    await w.console('/give a0 beef 4');
    await w.console('/give a0 wheat_seeds 64');
    summon(w, 'wolf', [9.5, 4, 9.5], { Owner: 'a0', Health: 10, NoAI: 1 });
    summon(w, 'parrot', [7.5, 4, 9.5], { NoAI: 1 });
    await w.step(2);
    const [wolf] = mobs(w, 'wolf');
    assert.deepEqual([wolf.tame, wolf.owner], [true, 'a0']);
    await hold(w, bot, 'beef');
    await feed(w, bot, wolf);
    assert.equal(wolf.health, 13);
    const [parrot] = mobs(w, 'parrot');
    await hold(w, bot, 'wheat_seeds');
    for (let i = 0; !parrot.tame && i < 64; i++) await feed(w, bot, parrot);
    assert.equal(parrot.owner, 'a0');
    await w.console('/give a0 red_dye');
    summon(w, 'sheep', [8.5, 4, 9.5], { NoAI: 1 });
    await w.step(2);
    const [sheep] = mobs(w, 'sheep');
    await hold(w, bot, 'red_dye');
    await feed(w, bot, sheep);
    assert.deepEqual([sheep.colour, count(player, 'red_dye')], ['red', 0]);
    const tag = w.serv.survival.items.make('name_tag');
    tag.customName = '{"text":"Dolly"}';
    w.run(() => player.setSlot(36, tag));
    w.run(() => bot.setQuickBarSlot(0));
    await w.step(1);
    await feed(w, bot, sheep);
    assert.equal(sheep.gamutName, 'Dolly');
    assert.equal(player.inventory.slots[36], null);
  }));

test('a cow on a lead comes along, and is let off; a lead tears', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    await w.console('/give a0 lead 2');
    const cow = summon(w, 'cow', [9.5, 4, 9.5]);
    await w.step(2);
    await hold(w, bot, 'lead');
    await feed(w, bot, cow);
    assert.deepEqual([cow.leash, count(player, 'lead')], ['a0', 1]);
    await w.console('/tp a0 16.5 4 9.5');
    await until(w, () => cow.position.distanceTo(player.position) < 5, 200);
    await w.console(`/tp a0 ${cow.position.x + 1} 4 ${cow.position.z}`);
    await w.step(2);
    await feed(w, bot, cow);
    assert.equal(cow.leash, null);
    await until(w, () => count(player, 'lead') === 2, 60);
    await feed(w, bot, cow);
    await w.console('/tp a0 60.5 4 9.5');
    await w.step(3);
    assert.equal(cow.leash, null);
  }));

'use strict';

/**
 * Subjects of mineflayer's own tests against Mojang's server (its folder test/externalTests), played
 * again in the embedded world. mineflayer_subjects.json has all of them: which test plays each, or
 * why none does.
 */

const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const assert = require('node:assert');
const { inWorld, agree, count, seen, until, Vec3 } = require('./survival_help');
const subjects = require('./mineflayer_subjects.json');

const UP = new Vec3(0, 1, 0);
const id = (w, name) => w.serv.registry.itemsByName[name].id;

async function place(w, bot, name, [x, y, z]) {
  await w.until(() => bot.equip(id(w, name), 'hand'));
  await w.until(() => bot.lookAt(new Vec3(x + 0.5, y, z + 0.5), true));
  await w.step(1);
  await w.until(() => bot.placeBlock(seen(bot, x, y - 1, z), UP));
  await w.step(1);
}

test('mineflayer: chests and trapped chests, small and large, take bones and give them back', () =>
  inWorld({}, async (w, bot, player) => {
    const chests = {
      chest: { small: [7, 4, 6], large: [[11, 4, 8], [11, 4, 9]] },
      trapped_chest: { small: [6, 4, 8], large: [[8, 4, 11], [9, 4, 11]] },
    };
    await w.console('/give a0 bone 3');
    for (const [name, { small, large }] of Object.entries(chests)) {
      await w.console(`/give a0 ${name} 3`);
      await w.step(1);
      for (const cell of [small, ...large]) await place(w, bot, name, cell);
      for (const [cell, slots, bones] of [[small, 27, 1], [large[0], 54, 2], [large[1], 54, 2]]) {
        const chest = await w.until(() => bot.openChest(seen(bot, ...cell)));
        assert.deepEqual([chest.inventoryStart, chest.containerItems()], [slots, []]);
        await w.until(() => chest.deposit(id(w, 'bone'), null, bones));
        await w.until(() => chest.close());
        assert.equal(count(player, 'bone'), 3 - bones);
        const again = await w.until(() => bot.openContainer(seen(bot, ...cell)));
        await w.until(() => again.withdraw(id(w, 'bone'), null, bones));
        await w.until(() => again.close());
      }
    }
    assert.equal(count(player, 'bone'), 3);
    agree(bot, player);
  }));

test('mineflayer: the lid of a large chest moves once when it opens, and names both halves', () =>
  inWorld({}, async (w, bot) => {
    await w.console('/setblock 10 4 8 chest[facing=north,type=left]');
    await w.console('/setblock 11 4 8 chest[facing=north,type=right]');
    await w.step(1);
    const lids = [];
    w.run(() =>
      bot.on('chestLidMove', (block, open, other) =>
        lids.push([block.position.x, open, other?.position.x]),
      ),
    );
    const chest = await w.until(() => bot.openChest(seen(bot, 10, 4, 8)));
    await w.step(2);
    assert.deepEqual(lids, [[10, 1, 11]]);
    await w.until(() => chest.close());
    await w.step(2);
    assert.deepEqual(lids.slice(1), [[10, 0, 11]]);
  }));

test('mineflayer: a bed that commands set by halves is slept in and left', () =>
  inWorld({ agents: 2 }, async (w, bot) => {
    await w.console('/setblock 10 4 8 red_bed[part=foot]');
    await w.console('/setblock 10 4 9 red_bed[part=head]');
    await w.console('/tp a1 12.5 4 12.5');
    await w.console('/time set 18000');
    await w.step(21);
    for (const z of [8, 9]) assert.ok(bot.isABed(seen(bot, 10, 4, z)));
    await w.until(() => bot.sleep(seen(bot, 10, 4, 8)));
    assert.equal(bot.isSleeping, true);
    w.run(() => bot.wake());
    await until(w, () => !bot.isSleeping, 20);
  }));

test('mineflayer: experience comes in points and levels', () =>
  inWorld({}, async (w, bot) => {
    let heard = 0;
    w.run(() => bot.on('experience', () => heard++));
    await w.console('/xp add a0 10 points');
    await w.step(1);
    assert.deepEqual([bot.experience.level, bot.experience.points, heard], [1, 10, 1]);
    assert.ok(Math.abs(bot.experience.progress - 3 / 9) < 1e-6);
    await w.console('/xp add a0 100 levels');
    await w.step(1);
    assert.deepEqual([bot.experience.level, heard], [101, 2]);
    assert.ok(bot.experience.points > 10);
    assert.ok(bot.experience.progress > 0 && bot.experience.progress < 1);
  }));

test('mineflayer: time of day, day, phase of the moon, and whether days pass', () =>
  inWorld({}, async (w, bot) => {
    const { time } = bot;
    await w.console('/gamerule doDaylightCycle false');
    for (const [set, isDay] of [[18000, false], [6000, true], [12000, true], [1, true]]) {
      await w.console(`/time set ${set}`);
      await w.step(20);
      assert.deepEqual([time.timeOfDay, time.isDay, time.doDaylightCycle], [set, isDay, false]);
    }
    await w.console('/gamerule doDaylightCycle true');
    await w.step(20);
    const { day, moonPhase, age } = time;
    await w.console('/time add 24000');
    await w.step(20);
    assert.deepEqual([time.day, time.moonPhase], [day + 1, (moonPhase + 1) % 8]);
    assert.deepEqual([time.doDaylightCycle, time.age], [true, age + 20]);
    for (const [word, isDay] of [['day', true], ['night', false]]) {
      await w.console(`/time set ${word}`);
      await w.step(1);
      assert.equal(time.isDay, isDay, word);
    }
  }));

test('mineflayer: what is held changes, is tossed and is used', () =>
  inWorld({}, async (w, bot, player) => {
    const held = [];
    w.run(() => bot.on('heldItemChanged', (item) => held.push(item?.name ?? null)));
    assert.equal(bot.heldItem, null);
    for (const item of ['stone', 'diamond', 'bread']) {
      await w.console(`/replaceitem entity a0 weapon.mainhand ${item}`);
      await w.step(1);
      assert.equal(bot.heldItem.name, item);
    }
    assert.deepEqual([...new Set(held)], ['stone', 'diamond', 'bread']);
    player.food = 10;
    w.run(() => bot.activateItem());
    await w.step(3);
    assert.deepEqual([bot.usingHeldItem, player.using.item], [true, 'bread']);
    w.run(() => bot.deactivateItem());
    await w.step(1);
    await w.until(() => bot.tossStack(bot.heldItem));
    await w.step(1);
    assert.equal(bot.heldItem, null);
    assert.equal(count(player, 'bread'), 0);
  }));

test('mineflayer: an agent that dies while it digs stops, and lives again', () =>
  inWorld({}, async (w, bot, player) => {
    const ground = seen(bot, 8, 3, 8);
    const happened = [];
    w.run(() => {
      bot.dig(ground).catch((error) => happened.push(error.message));
      bot.once('death', () => happened.push('death'));
    });
    await until(w, () => player.digging, 40);
    await w.console('/kill a0');
    await w.step(2);
    assert.deepEqual(happened.sort(), ['Digging aborted', 'death']);
    await until(w, () => bot.health === 20, 100);
    assert.equal(seen(bot, 8, 3, 8).name, ground.name);
  }));

test('mineflayer: in creative mode slots are set, and the agent flies', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/gamemode creative a0');
    await w.step(1);
    const { Item } = w.serv.survival.items;
    for (const [item, words] of [[new Item(id(w, 'stone'), 7), 'stone 7'], [null, null]]) {
      await w.until(() => bot.creative.setInventorySlot(36, item));
      await w.step(1);
      for (const { slots } of [bot.inventory, player.inventory])
        assert.equal(slots[36] && `${slots[36].name} ${slots[36].count}`, words);
    }
    const goal = bot.entity.position.offset(0, 3, 2);
    await w.until(() => bot.creative.flyTo(goal));
    await w.step(20);
    assert.ok(player.position.distanceTo(goal) < 0.5, `${player.position}, not ${goal}`);
  }));

test('mineflayer: what is looked at, and how long a block takes to dig with the eyes under water', () =>
  inWorld({}, async (w, bot) => {
    const { position } = bot.entity;
    await w.until(() => bot.lookAt(position.offset(0, 30, 0), true));
    assert.equal(bot.blockAtCursor(), null);
    await w.until(() => bot.lookAt(position.offset(0, -3, 0), true));
    assert.deepEqual(bot.blockAtCursor().position, position.offset(0, -1, 0).floored());
    await w.console('/setblock 9 4 8 dirt');
    await w.console('/fill 7 4 7 9 6 9 glass keep');
    const dry = bot.digTime(seen(bot, 9, 4, 8));
    await w.console('/setblock 8 4 8 water');
    await w.step(2);
    assert.equal(bot.digTime(seen(bot, 9, 4, 8)), dry, 'wet feet do not slow a digger down');
    await w.console('/setblock 8 5 8 water');
    await w.step(20);
    const wet = bot.digTime(seen(bot, 9, 4, 8));
    assert.ok(wet >= 5 * dry, `${dry} ms dry, ${wet} ms under water`);
  }));

test('mineflayer: a click on what is no longer in a slot is refused, and the slots are put right', () =>
  inWorld({ agents: 2 }, async (w, bot, player) => {
    await w.console('/setblock 9 4 10 chest');
    w.serv.survival.fillContainer(9, 4, 10, [{ name: 'diamond', count: 5 }]);
    await w.step(1);
    for (const each of w.bots) await w.until(() => each.openChest(each.blockAt(new Vec3(9, 4, 10))));
    // Both in the same tick: the second has not seen yet that the first took it.
    const clicks = [];
    await w.run(async () => {
      for (const each of w.bots)
        clicks.push(each.clickWindow(0, 0, 0).then(() => 'taken', () => 'refused'));
    });
    await w.step(2);
    assert.deepEqual(await w.run(() => Promise.all(clicks)), ['taken', 'refused']);
    const cursors = w.bots.map((each) => each.currentWindow.selectedItem?.count ?? 0);
    assert.deepEqual(cursors, [5, 0]);
    assert.deepEqual(w.players.map((each) => each.cursor?.count ?? 0), cursors);
    for (const each of w.bots) assert.equal(each.currentWindow.slots[0], null);
  }));

test('each subject of mineflayer is that of a test here, or says why not', () => {
  const texts = fs
    .readdirSync(__dirname)
    .filter((file) => file.endsWith('.test.js'))
    .map((file) => fs.readFileSync(path.join(__dirname, file), 'utf8'));
  const isTest = (title) => texts.some((text) => text.includes(`test('${title}`));
  for (const [subject, { test: title, left_out: why }] of Object.entries(subjects)) {
    assert.ok((title === undefined) !== (why === undefined), `${subject}: a test or a reason`);
    if (title !== undefined) assert.ok(isTest(title), `${subject}: no test "${title}"`);
    else assert.ok(why.length > 15, `${subject}: ${why}`);
  }
});

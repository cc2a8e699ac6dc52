'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, at, count, seen, until, Vec3 } = require('./survival_help');
const { summon, mobs, calm } = require('./mobs_help');

const id = (w, name) => w.serv.registry.itemsByName[name].id;
const props = (w, x, y, z) => at(w, x, y, z).props;

async function use(w, bot, x, y, z) {
  await w.until(() => bot.activateBlock(seen(bot, x, y, z)));
  await w.step(1);
}

async function place(w, bot, name, [x, y, z], face = new Vec3(0, 1, 0)) {
  await w.until(() => bot.equip(id(w, name), 'hand'));
  await w.until(() => bot.placeBlock(seen(bot, x - face.x, y - face.y, z - face.z), face));
  await w.step(1);
}

test('dust that a player lays carries power from a lever to a lamp, one less each block', () =>
  inWorld({}, async (w, bot) => {
    await w.console('/gamemode creative a0');
    await w.console('/give a0 redstone 64');
    await w.console('/give a0 lever');
    await w.console('/give a0 redstone_lamp');
    await place(w, bot, 'lever', [9, 4, 6]);
    for (const x of [10, 11, 12]) await place(w, bot, 'redstone', [x, 4, 6]);
    await w.console('/tp a0 11.5 4 8.5');
    await w.step(1);
    await place(w, bot, 'redstone_lamp', [13, 4, 6]);
    assert.deepEqual([props(w, 13, 4, 6).lit, props(w, 12, 4, 6).east], [false, 'side']);
    await use(w, bot, 9, 4, 6);
    assert.deepEqual([10, 11, 12].map((x) => props(w, x, 4, 6).power), [15, 14, 13]);
    assert.equal(props(w, 13, 4, 6).lit, true);
    assert.equal(seen(bot, 12, 4, 6).getProperties().power, 13, 'the client sees it');
    await use(w, bot, 9, 4, 6);
    assert.deepEqual([10, 11, 12].map((x) => props(w, x, 4, 6).power), [0, 0, 0]);
    await w.step(5);
    assert.equal(props(w, 13, 4, 6).lit, false, 'two redstone ticks later');
  }));

test('a large net of dust is computed once for a change, however much of it is near', () =>
  inWorld({}, async (w) => {
    const { redstone } = w.serv.survival;
    const { spread } = redstone;
    let count = 0;
    redstone.spread = (...cell) => {
      count++;
      spread.apply(redstone, cell);
    };
    await w.console('/fill 3 4 3 14 4 14 redstone_wire');
    assert.equal(count, 1, 'when it is laid');
    await w.console('/setblock 8 5 8 redstone_block');
    assert.equal(count, 2);
    assert.deepEqual([[8, 8], [9, 8], [9, 9], [14, 14], [3, 3]].map(([x, z]) => props(w, x, 4, z).power), [15, 14, 13, 3, 5]);
    await w.console('/setblock 8 5 8 air');
    assert.deepEqual([count, props(w, 8, 4, 8).power, props(w, 3, 4, 3).power], [3, 0, 0]);
    assert.deepEqual([props(w, 3, 4, 3).north, props(w, 3, 4, 3).south], ['none', 'side']);
  }));

test('dust reaches 15 blocks, climbs, and stops at a block that conducts above it', () =>
  inWorld({}, async (w) => {
    await w.console('/fill 10 4 8 27 4 8 redstone_wire');
    await w.console('/setblock 9 4 8 redstone_block');
    assert.deepEqual([10, 24, 25].map((x) => props(w, x, 4, 8).power), [15, 1, 0]);
    await w.console('/setblock 9 4 8 air');
    assert.equal(props(w, 10, 4, 8).power, 0);
    await w.console('/setblock 13 4 12 stone');
    await w.console('/setblock 12 4 12 redstone_wire');
    await w.console('/setblock 13 5 12 redstone_wire');
    await w.console('/setblock 11 4 12 redstone_block');
    assert.deepEqual([props(w, 12, 4, 12).power, props(w, 13, 5, 12).power], [15, 14]);
    assert.equal(props(w, 12, 4, 12).east, 'up');
    await w.console('/setblock 12 5 12 stone');
    assert.equal(props(w, 13, 5, 12).power, 0);
    await w.console('/setblock 12 5 12 glass');
    assert.equal(props(w, 13, 5, 12).power, 14);
  }));

test('a lever powers the block it hangs on and doors beside it; weak power does not pass a block', () =>
  inWorld({}, async (w, bot) => {
    await w.console('/setblock 9 4 10 stone');
    await w.console('/setblock 10 4 10 iron_door[half=lower]');
    await w.console('/setblock 10 5 10 iron_door[half=upper]');
    await w.console('/setblock 9 4 9 lever[face=wall,facing=north]');
    await use(w, bot, 9, 4, 9);
    assert.deepEqual([props(w, 10, 4, 10).open, props(w, 10, 5, 10).open], [true, true]);
    await use(w, bot, 9, 4, 9);
    assert.equal(props(w, 10, 4, 10).open, false);
    await w.console('/setblock 9 4 9 redstone_block');
    assert.equal(props(w, 10, 4, 10).open, false, 'a block of redstone powers no other block through');
  }));

test('a torch turns off when its block has power: an inverter', () =>
  inWorld({}, async (w) => {
    await w.console('/setblock 9 4 8 stone');
    await w.console('/setblock 10 4 8 redstone_wall_torch[facing=east]');
    await w.console('/setblock 11 4 8 redstone_lamp');
    await w.step(3);
    assert.equal(props(w, 11, 4, 8).lit, true);
    await w.console('/setblock 9 5 8 lever[face=floor,powered=true]');
    await w.step(3);
    assert.equal(props(w, 10, 4, 8).lit, false);
    await w.step(5);
    assert.equal(props(w, 11, 4, 8).lit, false);
    await w.console('/setblock 9 5 8 air');
    await w.step(3);
    assert.deepEqual([props(w, 10, 4, 8).lit, props(w, 11, 4, 8).lit], [true, true]);
  }));

test('a repeater delays, renews the power, and goes one way; a click changes its delay', () =>
  inWorld({}, async (w, bot) => {
    await w.console('/setblock 8 4 10 repeater[facing=north,delay=1]');
    await w.console('/setblock 8 4 11 redstone_wire');
    await use(w, bot, 8, 4, 10);
    await use(w, bot, 8, 4, 10);
    assert.equal(props(w, 8, 4, 10).delay, 3);
    await w.console('/setblock 8 4 9 redstone_block');
    await w.step(5);
    assert.equal(props(w, 8, 4, 11).power, 0);
    await w.step(2);
    assert.deepEqual([props(w, 8, 4, 10).powered, props(w, 8, 4, 11).power], [true, 15]);
    await w.console('/setblock 8 4 9 air');
    await w.step(7);
    assert.equal(props(w, 8, 4, 11).power, 0);
    await w.console('/setblock 8 4 11 redstone_block');
    await w.step(8);
    assert.equal(props(w, 8, 4, 10).powered, false, 'not backwards');
  }));

test('a torch and a repeater in a ring blink: a clock', () =>
  inWorld({}, async (w) => {
    await w.console('/setblock 8 4 10 stone');
    await w.console('/setblock 9 4 10 redstone_wall_torch[facing=east]');
    await w.console('/setblock 10 4 10 redstone_wire');
    await w.console('/setblock 10 4 11 redstone_wire');
    await w.console('/fill 8 4 12 10 4 12 redstone_wire');
    await w.console('/setblock 8 4 11 repeater[facing=south,delay=4]');
    let flips = 0;
    let last = null;
    for (let i = 0; i < 200; i++) {
      await w.step(1);
      const { lit } = props(w, 9, 4, 10);
      if (last !== null && lit !== last) flips++;
      last = lit;
    }
    assert.ok(flips > 10 && flips < 30, `${flips}`);
  }));

test('pistons push up to 12 blocks and those who stand there, sticky ones draw back', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/setblock 10 4 8 piston[facing=east]');
    await w.console('/fill 11 4 8 22 4 8 stone');
    await w.console('/setblock 10 5 8 redstone_block');
    await w.step(2);
    assert.equal(at(w, 11, 4, 8).name, 'piston_head');
    assert.deepEqual([at(w, 12, 4, 8).name, at(w, 23, 4, 8).name], ['stone', 'stone']);
    await w.console('/setblock 10 5 8 air');
    await w.step(2);
    assert.deepEqual([at(w, 11, 4, 8).name, at(w, 12, 4, 8).name, props(w, 10, 4, 8).extended],
      ['air', 'stone', false]);
    await w.console('/setblock 11 4 8 stone');
    await w.console('/setblock 10 5 8 redstone_block');
    await w.step(2);
    assert.equal(props(w, 10, 4, 8).extended, false, '13 are too many');
    await w.console('/setblock 10 4 12 sticky_piston[facing=south]');
    await w.console('/setblock 10 4 13 oak_planks');
    await w.console('/tp a0 10.5 4 14.5');
    await w.console('/setblock 9 4 12 redstone_block');
    await w.step(2);
    assert.equal(at(w, 10, 4, 14).name, 'oak_planks');
    assert.ok(player.position.z > 15, `pushed to ${player.position}`);
    assert.ok(bot.entity.position.distanceTo(player.position) < 0.1);
    await w.console('/setblock 9 4 12 air');
    await w.step(2);
    assert.deepEqual([at(w, 10, 4, 13).name, at(w, 10, 4, 14).name], ['oak_planks', 'air']);
    await w.console('/setblock 10 4 14 obsidian');
    await w.console('/setblock 9 4 12 redstone_block');
    await w.step(2);
    assert.equal(props(w, 10, 4, 12).extended, false, 'obsidian is not moved');
  }));

test('the head of a piston is broken with it, and breaks what is weak', () =>
  inWorld({}, async (w) => {
    await w.console('/setblock 10 4 8 piston[facing=east]');
    await w.console('/setblock 11 4 8 torch');
    await w.console('/setblock 10 5 8 redstone_block');
    await w.step(2);
    assert.equal(at(w, 11, 4, 8).name, 'piston_head');
    assert.ok([...w.serv.survival.drops.values()].some(({ stack }) => stack.name === 'torch'));
    await w.console('/setblock 10 4 8 air');
    assert.equal(at(w, 11, 4, 8).name, 'air');
  }));

test('TNT is lit by flint and steel and by redstone, sets off its neighbours, and all it breaks drops', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    await w.console('/give a0 flint_and_steel');
    await w.console('/setblock 8 4 11 tnt');
    await w.until(() => bot.equip(id(w, 'flint_and_steel'), 'hand'));
    await use(w, bot, 8, 4, 11);
    assert.equal(at(w, 8, 4, 11).name, 'air');
    assert.equal(bot.nearestEntity(({ name }) => name === 'tnt').name, 'tnt');
    assert.equal(player.inventory.slots[36].durabilityUsed, 1);
    await w.step(70);
    assert.equal(at(w, 8, 3, 11).name, 'grass_block');
    await w.console('/tp a0 40.5 4 40.5');
    await w.step(20);
    assert.equal(at(w, 8, 3, 11).name, 'air', 'a crater');
    await w.console('/fill 20 4 20 22 4 20 tnt');
    await w.console('/setblock 19 4 20 redstone_block');
    assert.deepEqual([20, 21].map((x) => at(w, x, 4, 20).name), ['air', 'tnt']);
    await w.step(82);
    assert.ok(w.serv.survival.tnt.size > 0, 'a chain');
    await w.step(40);
    assert.equal(at(w, 22, 4, 20).name, 'air');
    await w.console('/tp a0 20.5 10 26.5');
    const cow = summon(w, 'cow', [30.5, 4, 30.5]);
    await w.console('/summon tnt 31.5 4 30.5');
    await w.step(2);
    assert.ok(!(cow.health > 0));
  }));

test('of much TNT that is due at once, four explode in a tick, and all at last', () =>
  inWorld({}, async (w) => {
    const { survival } = w.serv;
    for (let i = 0; i < 10; i++) w.run(() => survival.spawnTnt(new Vec3(8.5, 60 + 12 * i, 8.5), 1));
    const left = [];
    for (let i = 0; i < 3; i++) {
      await w.step(1);
      left.push(survival.tnt.size);
    }
    assert.deepEqual(left, [6, 2, 0]);
  }));

test('pressure plates: a player presses stone, an item only wood; an iron door opens', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    await w.console('/setblock 8 4 10 stone_pressure_plate');
    await w.console('/setblock 8 4 11 iron_door[half=lower]');
    await w.console('/setblock 8 5 11 iron_door[half=upper]');
    await w.until(() => bot.lookAt(new Vec3(8.5, 5.6, 20), true));
    w.run(() => bot.setControlState('forward', true));
    await until(w, () => props(w, 8, 4, 10).powered, 40);
    w.run(() => bot.setControlState('forward', false));
    await w.step(1);
    assert.equal(props(w, 8, 4, 11).open, true);
    await w.console('/tp a0 14.5 4 8.5');
    await w.step(25);
    assert.deepEqual([props(w, 8, 4, 10).powered, props(w, 8, 4, 11).open], [false, false]);
    for (const [kind, powered] of [['stone', false], ['oak', true]]) {
      await w.console(`/setblock 20 4 8 ${kind}_pressure_plate`);
      w.run(() => w.serv.survival.drop(new Vec3(20.5, 4.5, 8.5), w.serv.survival.items.make('stick')));
      await w.step(20);
      assert.equal(props(w, 20, 4, 8).powered, powered, kind);
    }
    await w.console('/setblock 24 4 8 stone_pressure_plate');
    summon(w, 'cow', [24.5, 4, 8.5]);
    await w.step(3);
    assert.equal(props(w, 24, 4, 8).powered, true, 'a cow');
    assert.ok(mobs(w, 'cow').length === 1 && player.health === 20);
  }));

test('powered rails pass their power on to 8 others, detector rails feel a cart', () =>
  inWorld({}, async (w) => {
    await w.console('/fill 10 4 8 22 4 8 powered_rail[shape=east_west]');
    await w.console('/setblock 9 4 8 redstone_block');
    assert.deepEqual([10, 18, 19].map((x) => props(w, x, 4, 8).powered), [true, true, false]);
    await w.console('/setblock 9 4 8 air');
    assert.equal(props(w, 18, 4, 8).powered, false);
    await w.console('/setblock 10 4 14 detector_rail[shape=east_west]');
    await w.console('/setblock 10 4 15 redstone_lamp');
    await w.console('/summon minecart 10.5 4.06 14.5');
    await w.step(12);
    assert.deepEqual([props(w, 10, 4, 14).powered, props(w, 10, 4, 15).lit], [true, true]);
    w.run(() => {
      for (const cart of w.serv.survival.vehicles.values()) w.serv.survival.removeEntity(cart);
    });
    await w.step(30);
    assert.equal(props(w, 10, 4, 15).lit, false);
  }));

test('an observer gives a pulse when what it looks at changes, a powered hopper stops', () =>
  inWorld({}, async (w) => {
    await w.console('/setblock 10 4 8 observer[facing=east]');
    await w.console('/setblock 9 4 8 redstone_lamp');
    await w.console('/setblock 11 4 8 stone');
    await w.step(3);
    assert.equal(props(w, 9, 4, 8).lit, true);
    await w.step(8);
    assert.deepEqual([props(w, 10, 4, 8).powered, props(w, 9, 4, 8).lit], [false, false]);
    await w.console('/setblock 10 4 12 hopper');
    await w.console('/setblock 10 4 13 redstone_block');
    assert.equal(props(w, 10, 4, 12).enabled, false);
  }));


'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, agree, count, events, until, seen, at, Vec3 } = require('./survival_help');

const UP = new Vec3(0, 1, 0);
const props = (w, x, y, z) => at(w, x, y, z).props;

/** Gives the bot a block and has it placed on a face. */
async function place(w, bot, player, name, on, face = UP, options = null) {
  await w.console('/clear a0');
  await w.console(`/give a0 ${name}`);
  await w.step(1);
  const block = seen(bot, ...on);
  if (options) await w.until(() => bot._placeBlockWithOptions(block, face, options));
  else await w.until(() => bot.placeBlock(block, face));
  await w.step(1);
  assert.equal(count(player, name), 0, `${name} is used up`);
}

test('placing: both sides and others see it, the stack shrinks, and it is an event', () =>
  inWorld({ agents: 2 }, async (w, bot, player) => {
    const placed = events(w, 'gamut:placed');
    await place(w, bot, player, 'cobblestone', [11, 3, 8]);
    for (const b of w.bots) assert.equal(seen(b, 11, 4, 8).name, 'cobblestone');
    assert.equal(at(w, 11, 4, 8).name, 'cobblestone');
    assert.deepEqual(
      placed.map((p) => [p.player.username, p.block, p.x, p.y, p.z]),
      [['a0', 'cobblestone', 11, 4, 8]],
    );
    agree(bot, player);
  }));

test('no block is placed where someone stands, where another block is, or out of reach', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/give a0 stone 5');
    await w.step(1);
    await assert.rejects(
      w.until(() => bot.placeBlock(seen(bot, 8, 3, 8), UP)),
      /refused to place/,
    );
    const far = seen(bot, 16, 3, 8);
    w.run(() =>
      bot._client.write('block_place', {
        location: far.position,
        direction: 1,
        hand: 0,
        cursorX: 0.5,
        cursorY: 1,
        cursorZ: 0.5,
        insideBlock: false,
      }),
    );
    await w.step(1);
    assert.equal(at(w, 16, 4, 8).name, 'air');
    await w.console('/clear a0');
    await w.console('/give a0 torch 5');
    await w.console('/fill 11 4 8 11 5 8 glass');
    await w.console('/setblock 10 5 8 stone');
    await w.step(1);
    await assert.rejects(
      w.until(() => bot.placeBlock(seen(bot, 10, 5, 8), new Vec3(1, 0, 0))),
      /refused to place/,
    );
    assert.equal(count(player, 'torch'), 5);
    await w.console('/clear a0');
    await w.console('/give a0 stone_slab 2');
    await w.console('/tp a0 8.5 4.5 8.5');
    await w.console('/setblock 8 4 8 stone_slab');
    await w.step(5);
    await assert.rejects(
      w.until(() => bot.placeBlock(seen(bot, 8, 4, 8), UP)),
      /refused to place|No block has been placed/,
    );
    assert.equal(at(w, 8, 4, 8).props.type, 'bottom');
    assert.equal(count(player, 'stone_slab'), 2);
    agree(bot, player);
  }));

test('blocks are turned as a player looks: logs, stairs, furnaces, slabs, torches, doors', () =>
  inWorld({}, async (w, bot, player) => {
    await place(w, bot, player, 'oak_log', [11, 3, 8]);
    assert.equal(props(w, 11, 4, 8).axis, 'y');
    await place(w, bot, player, 'oak_log', [11, 4, 8], new Vec3(-1, 0, 0));
    assert.equal(props(w, 10, 4, 8).axis, 'x');
    await w.console('/fill 10 4 8 11 4 8 air');
    await place(w, bot, player, 'oak_stairs', [11, 3, 8]);
    assert.deepEqual([props(w, 11, 4, 8).facing, props(w, 11, 4, 8).half], ['east', 'bottom']);
    await w.console('/setblock 11 4 8 air');
    await place(w, bot, player, 'furnace', [11, 3, 8]);
    assert.equal(props(w, 11, 4, 8).facing, 'west');
    await place(w, bot, player, 'torch', [11, 4, 8], new Vec3(-1, 0, 0), { half: 'top' }).catch(
      () => {},
    );
    await w.console('/fill 10 4 8 11 4 8 air');
    await w.console('/setblock 11 4 8 stone');
    await place(w, bot, player, 'torch', [11, 4, 8], new Vec3(-1, 0, 0));
    assert.deepEqual([at(w, 10, 4, 8).name, props(w, 10, 4, 8).facing], ['wall_torch', 'west']);
    await w.console('/fill 10 4 8 11 4 8 air');
    await place(w, bot, player, 'stone_slab', [11, 3, 8]);
    assert.equal(props(w, 11, 4, 8).type, 'bottom');
    await place(w, bot, player, 'stone_slab', [11, 4, 8]).catch(() => {});
    assert.equal(props(w, 11, 4, 8).type, 'double');
    await w.console('/setblock 11 4 8 air');
    await place(w, bot, player, 'oak_door', [11, 3, 8]);
    assert.deepEqual(
      [at(w, 11, 4, 8), at(w, 11, 5, 8)].map((i) => [i.name, i.props.half, i.props.facing]),
      [
        ['oak_door', 'lower', 'east'],
        ['oak_door', 'upper', 'east'],
      ],
    );
  }));

test('doors, trapdoors and gates open by hand, iron ones by a lever, buttons are released again', () =>
  inWorld({}, async (w, bot, player) => {
    const use = async (x, y, z) => {
      await w.until(() => bot.activateBlock(seen(bot, x, y, z)));
      await w.step(1);
    };
    await w.console('/setblock 10 5 8 oak_door[half=upper]');
    await w.console('/setblock 10 4 8 oak_door[half=lower]');
    await w.console('/setblock 10 4 8 air');
    await w.console('/clear a0');
    await place(w, bot, player, 'oak_door', [10, 3, 8]);
    await use(10, 4, 8);
    assert.deepEqual([props(w, 10, 4, 8).open, props(w, 10, 5, 8).open], [true, true]);
    assert.equal(seen(bot, 10, 5, 8).getProperties().open, true);
    await use(10, 5, 8);
    assert.deepEqual([props(w, 10, 4, 8).open, props(w, 10, 5, 8).open], [false, false]);
    for (const block of ['oak_trapdoor', 'oak_fence_gate']) {
      await w.console(`/setblock 8 4 10 ${block}`);
      await use(8, 4, 10);
      assert.equal(props(w, 8, 4, 10).open, true, block);
    }
    await w.console('/setblock 6 4 8 iron_trapdoor');
    await w.console('/setblock 6 4 9 lever[face=floor]');
    await w.console('/setblock 6 4 7 stone_button[face=floor]');
    await use(6, 4, 8);
    assert.equal(props(w, 6, 4, 8).open, false);
    await use(6, 4, 9);
    assert.deepEqual([props(w, 6, 4, 8).open, props(w, 6, 4, 9).powered], [true, true]);
    await use(6, 4, 9);
    assert.equal(props(w, 6, 4, 8).open, false);
    await use(6, 4, 7);
    assert.equal(props(w, 6, 4, 8).open, true);
    await w.step(22);
    assert.deepEqual([props(w, 6, 4, 8).open, props(w, 6, 4, 7).powered], [false, false]);
  }));

test('sneaking with something in hand places against a chest instead of opening it', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/setblock 10 4 8 chest');
    w.run(() => bot.setControlState('sneak', true));
    await w.step(2);
    await place(w, bot, player, 'stone', [10, 4, 8], UP);
    assert.equal(at(w, 10, 5, 8).name, 'stone');
    assert.equal(player.openWindow, null);
  }));

test('sand and gravel fall and come to rest, also after digging below; torches fall off', () =>
  inWorld({}, async (w, bot) => {
    await w.console('/setblock 11 9 8 sand');
    await w.console('/setblock 11 10 8 gravel');
    await w.step(6);
    assert.ok(Object.values(bot.entities).some((e) => e.name === 'falling_block'));
    await w.step(40);
    assert.deepEqual(
      [4, 5, 9, 10].map((y) => at(w, 11, y, 8).name),
      ['sand', 'gravel', 'air', 'air'],
    );
    assert.deepEqual(
      [4, 5].map((y) => seen(bot, 11, y, 8).name),
      ['sand', 'gravel'],
    );
    assert.ok(!Object.values(bot.entities).some((e) => e.name === 'falling_block'));
    await w.until(() => bot.dig(seen(bot, 11, 4, 8), true));
    await w.step(30);
    assert.deepEqual(
      [4, 5].map((y) => at(w, 11, y, 8).name),
      ['gravel', 'air'],
    );
    await w.console('/setblock 6 4 8 stone');
    await w.console('/setblock 6 5 8 torch');
    await w.console('/setblock 6 4 8 air');
    await w.step(2);
    assert.equal(at(w, 6, 5, 8).name, 'air');
    assert.ok([...w.serv.survival.drops.values()].some((e) => e.stack.name === 'torch'));
    await w.console('/setblock 5 4 5 torch');
    await w.console('/setblock 5 9 5 sand');
    await w.step(40);
    assert.equal(at(w, 5, 4, 5).name, 'torch');
    assert.ok([...w.serv.survival.drops.values()].some((e) => e.stack.name === 'sand'));
  }));

test('beds: the night passes when all sleep, not before; dead players respawn at their bed', () =>
  inWorld({ agents: 2 }, async (w, bot, player) => {
    await w.console('/tp a1 12.5 4 8.5');
    await place(w, bot, player, 'red_bed', [10, 3, 8]);
    const bed = seen(bot, 10, 4, 8);
    await assert.rejects(
      w.until(() => bot.sleep(bed)),
      /not night/,
    );
    await w.console('/time set 14000');
    await w.step(20);
    await w.until(() => bot.sleep(bed));
    assert.equal(bot.isSleeping, true);
    assert.equal(props(w, 10, 4, 8).occupied, true);
    await w.step(150);
    assert.ok(w.serv.time > 14000 && w.serv.time < 15000, `time ${w.serv.time}`);
    await w.console('/setblock 12 4 10 blue_bed[part=head,facing=south]');
    await w.console('/setblock 12 4 9 blue_bed[part=foot,facing=south]');
    await w.step(2);
    await w.until(() => w.bots[1].sleep(w.bots[1].blockAt(new Vec3(12, 4, 9))));
    const day = w.serv.day;
    await until(w, () => !bot.isSleeping && !w.bots[1].isSleeping, 200);
    assert.equal(w.serv.day, day + 1);
    assert.ok(w.serv.time < 200, `time ${w.serv.time}`);
    await w.step(21);
    assert.ok(
      bot.time.timeOfDay < 400 && bot.time.day === day + 1,
      `${bot.time.day} ${bot.time.timeOfDay}`,
    );
    assert.equal(props(w, 10, 4, 8).occupied, false);
    await w.console('/tp a0 40 4 40');
    await w.step(5);
    await w.console('/kill a0');
    await w.step(50);
    assert.ok(player.position.distanceTo(new Vec3(10, 4, 8)) < 4, String(player.position));
    assert.ok(bot.entity.position.distanceTo(player.position) < 0.2);
  }));

test('monsters keep players awake', () =>
  inWorld({}, async (w, bot, player) => {
    await place(w, bot, player, 'red_bed', [10, 3, 8]);
    await w.console('/time set 14000');
    await w.console('/summon zombie 14 4 8');
    await w.step(2);
    const no = events(w, 'gamut:noSleep');
    w.run(() => bot.activateBlock(seen(bot, 10, 4, 8)));
    await w.step(2);
    assert.equal(player.sleeping, null);
    assert.match(no[0].reason, /monsters/);
  }));

test('weather: rain is rain at the client and puts fires out, thunder is thunder, clear is clear', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/weather rain');
    assert.deepEqual([bot.isRaining, bot.rainState, bot.thunderState], [true, 1, 0]);
    w.run(() => w.serv.survival.setBurning(player, 200));
    await w.step(2);
    assert.equal(player.burning, false);
    await w.console('/weather thunder');
    assert.deepEqual([bot.isRaining, bot.thunderState], [true, 1]);
    await w.console('/weather clear');
    assert.deepEqual([bot.isRaining, bot.rainState, bot.thunderState], [false, 0, 0]);
    await w.console('/gamerule doWeatherCycle true');
    await w.console('/weather rain 1');
    await w.step(25);
    assert.equal(bot.isRaining, false);
  }));

test('time continues by ticks and days, or stands still', () =>
  inWorld({}, async (w, bot) => {
    await w.console('/time set 23990');
    await w.step(20);
    assert.ok(w.serv.time < 20 && w.serv.day === 1, `${w.serv.day} ${w.serv.time}`);
    await w.step(20);
    assert.equal(bot.time.day, 1);
    await w.console('/gamerule doDaylightCycle false');
    const { time } = w.serv;
    await w.step(40);
    assert.equal(w.serv.time, time);
  }));

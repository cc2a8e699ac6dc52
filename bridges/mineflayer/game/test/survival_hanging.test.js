'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, count, until, at, summon, mobs, calm, Vec3 } = require('./mobs_help');

const id = (w, name) => w.serv.registry.itemsByName[name].id;
const hold = (w, bot, name) => w.until(() => bot.equip(id(w, name), 'hand'));
const hung = (w) => [...w.serv.survival.hanging.all.values()];

/** Clicks with what is in hand on a face of a block. */
async function click(w, bot, [x, y, z], face) {
  await w.run(() => bot._client.write('block_place', {
    location: { x, y, z }, direction: face, hand: 0, cursorX: 0.5, cursorY: 0.5, cursorZ: 0.5, insideBlock: false,
  }));
  await w.step(2);
}

/** A wall to the east of the player, its face to the west at x = 11. */
const wall = (w) => w.console('/fill 11 4 6 11 7 12 stone');

test('an item frame hangs on a wall, takes an item in, turns it, gives it back and comes off', () =>
  inWorld({}, async (w, bot, player) => {
    await wall(w);
    await w.console('/tp a0 9.5 4 9.5');
    for (const [name, n] of [['item_frame', 2], ['diamond', 2]]) await w.console(`/give a0 ${name} ${n}`);
    await hold(w, bot, 'item_frame');
    await click(w, bot, [11, 5, 9], 4);
    const [frame] = hung(w);
    assert.deepEqual([frame.name, frame.cell, frame.face], ['item_frame', [10, 5, 9], 4]);
    assert.equal(count(player, 'item_frame'), 1);
    await click(w, bot, [11, 5, 9], 4);
    assert.equal(hung(w).length, 1, 'there is no room for a second one');
    const mine = bot.entities[frame.id];
    assert.equal(mine.name, 'item_frame');
    await hold(w, bot, 'diamond');
    const use = async () => { await w.run(() => bot._client.write('use_entity', { target: frame.id, mouse: 0, hand: 0, sneaking: false })); await w.step(2); };
    await use();
    assert.equal(count(player, 'diamond'), 1);
    assert.equal(mine.metadata[7].itemId ?? mine.metadata[7].blockId, id(w, 'diamond'));
    await use();
    assert.deepEqual([count(player, 'diamond'), frame.rotation, mine.metadata[8]], [1, 1, 1]);
    const strike = async () => { await w.run(() => bot.attack(mine)); await w.step(40); };
    await strike();
    assert.deepEqual([count(player, 'diamond'), hung(w).length, frame.stack], [2, 1, null]);
    await strike();
    assert.deepEqual([count(player, 'item_frame'), hung(w).length, bot.entities[frame.id]], [2, 0, undefined]);
  }));

test('a frame falls when its wall is gone, and one that is summoned in the air', () =>
  inWorld({}, async (w, bot) => {
    await wall(w);
    await w.console('/tp a0 4.5 4 9.5');
    summon(w, 'item_frame', [10, 5, 9], { Facing: 4 });
    summon(w, 'item_frame', [8, 6, 9]);
    await w.step(80);
    assert.equal(hung(w).length, 2);
    await until(w, () => hung(w).length === 1, 60);
    await w.console('/setblock 11 5 9 air');
    await until(w, () => hung(w).length === 0, 120);
    const items = Object.values(bot.entities).filter(({ name }) => name === 'item');
    assert.equal(items.length, 2);
  }));

test('an explosion takes a frame down, with what is in it', () =>
  inWorld({}, async (w) => {
    await wall(w);
    await w.console('/tp a0 2.5 4 2.5');
    const frame = summon(w, 'item_frame', [10, 5, 9], { Facing: 4 });
    frame.stack = w.serv.survival.items.make('diamond');
    await w.console('/summon tnt 8.5 4 9.5');
    await w.step(5);
    assert.equal(hung(w).length, 0);
    const fallen = [...w.serv.survival.drops.values()].map(({ stack }) => stack.name);
    assert.ok(['item_frame', 'diamond'].every((name) => fallen.includes(name)), `${fallen}`);
  }));

test('a painting is one of the largest that fit, is seen by clients and falls as an item', () =>
  inWorld({}, async (w, bot, player) => {
    await wall(w);
    await w.console('/tp a0 9.5 4 9.5');
    await w.console('/give a0 painting 3');
    await hold(w, bot, 'painting');
    await click(w, bot, [9, 3, 9], 1);
    assert.equal(hung(w).length, 0, 'not on the ground');
    await click(w, bot, [11, 5, 9], 4);
    const [painting] = hung(w);
    assert.ok(painting.box[4] - painting.box[1] === 4 && painting.box[5] - painting.box[2] === 4, `${painting.box}`);
    const mine = bot.entities[painting.id];
    assert.deepEqual([mine.name, mine.motive], ['painting', painting.motive]);
    assert.ok(bot.blockAt(new Vec3(10, 5, 9)).painting);
    await click(w, bot, [11, 6, 8], 4);
    assert.equal(hung(w).length, 1, 'there is one');
    await w.run(() => bot.attack(mine));
    await w.step(40);
    assert.deepEqual([hung(w).length, count(player, 'painting')], [0, 3]);
    await w.console('/fill 11 4 6 11 7 12 air');
    await w.console('/setblock 11 5 9 stone');
    await click(w, bot, [11, 5, 9], 4);
    const [small] = hung(w);
    assert.equal(small.box[5] - small.box[2], 1);
  }));

test('a pumpkin on snow or iron makes a golem, in any direction; a shape that is not whole does not', () =>
  inWorld({}, async (w, bot) => {
    await calm(w);
    await w.console('/tp a0 2.5 4 2.5');
    await w.console('/give a0 jack_o_lantern 1');
    for (const y of [4, 5]) await w.console(`/setblock 4 ${y} 2 snow_block`);
    await hold(w, bot, 'jack_o_lantern');
    await click(w, bot, [4, 5, 2], 1);
    assert.deepEqual(mobs(w).map(({ name, built }) => [name, built]), [['snow_golem', true]]);
    assert.ok([4, 5, 6].every((y) => at(w, 4, y, 2).air));
    await w.console('/fill 8 4 8 8 4 9 snow_block');
    await w.console('/setblock 8 4 10 carved_pumpkin');
    assert.equal(mobs(w, 'snow_golem').length, 2, 'a lying one');
    for (const cell of ['12 4 12', '12 5 12', '11 5 12']) await w.console(`/setblock ${cell} iron_block`);
    await w.console('/setblock 12 6 12 carved_pumpkin');
    assert.equal(mobs(w, 'iron_golem').length, 0, 'an arm is missing');
    await w.console('/setblock 13 5 12 iron_block');
    await w.console('/setblock 12 6 12 air');
    await w.console('/setblock 12 6 12 carved_pumpkin');
    const [golem] = mobs(w, 'iron_golem');
    assert.deepEqual(golem.position.floored().toArray(), [12, 4, 12]);
    w.run(() => w.serv.survival.hurt(golem, { amount: 2, cause: 'blow', by: w.players[0] }));
    await w.step(40);
    assert.equal(golem.mind.target, null, 'it spares its maker');
  }));

test('shears carve pumpkins, and bare snow golems and mooshrooms', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    await w.console('/tp a0 9.5 4 9.5');
    await w.console('/setblock 11 4 9 pumpkin');
    await w.console('/setblock 9 4 11 pumpkin');
    await hold(w, bot, 'stone').catch(() => {});
    await click(w, bot, [11, 4, 9], 4);
    assert.equal(at(w, 11, 4, 9).name, 'pumpkin', 'not by hand');
    await w.console('/give a0 shears 1');
    await hold(w, bot, 'shears');
    await click(w, bot, [11, 4, 9], 4);
    assert.deepEqual([at(w, 11, 4, 9).name, at(w, 11, 4, 9).props.facing], ['carved_pumpkin', 'west']);
    await click(w, bot, [9, 4, 11], 1);
    assert.equal(at(w, 9, 4, 11).name, 'carved_pumpkin');
    await w.step(40);
    assert.ok(count(player, 'pumpkin_seeds') >= 4);
    const golem = summon(w, 'snow_golem', [10.5, 4, 9.5], { NoAI: 1 });
    const cow = summon(w, 'mooshroom', [9.5, 4, 8.5], { NoAI: 1 });
    await w.step(2);
    assert.equal(bot.entities[golem.id].metadata[15], 16);
    for (const each of [golem, golem, cow]) await w.until(() => bot.activateEntity(bot.entities[each.id]));
    await w.step(60);
    assert.equal(bot.entities[golem.id].metadata[15], 0);
    assert.deepEqual([count(player, 'carved_pumpkin'), count(player, 'red_mushroom')], [1, 5]);
    assert.deepEqual([mobs(w, 'mooshroom').length, mobs(w, 'cow').length], [0, 1]);
    assert.equal(player.heldStack().durabilityUsed, 4);
  }));

/** The colour of a block in a map's colours. */
const shown = (map, colours, x, z) => colours[(z - map.z + 64) * 128 + x - map.x + 64] >> 2;

test('an empty map shows the ground, as far as it is loaded, and follows changes and its holder', () =>
  inWorld({ viewDistance: 2 }, async (w, bot, player) => {
    await calm(w);
    await w.console('/tp a0 9.5 4 9.5');
    for (const block of ['20 3 9 water', '0 3 9 sand', '5 4 9 torch']) await w.console(`/setblock ${block}`);
    await w.console('/give a0 map 2');
    await hold(w, bot, 'map');
    await w.run(() => bot.activateItem());
    await w.step(2);
    assert.deepEqual([count(player, 'map'), count(player, 'filled_map')], [1, 1]);
    await hold(w, bot, 'filled_map');
    await w.step(40);
    const map = w.serv.survival.maps.get(0);
    const mine = bot.maps[0];
    assert.deepEqual(Buffer.from(mine.colours), Buffer.from(map.colours));
    const [grass, water, sand, unknown] = [1, 12, 2, 0];
    assert.deepEqual([[9, 11], [20, 9], [0, 9], [5, 9]].map(([x, z]) => shown(map, mine.colours, x, z)),
      [grass, water, sand, grass]);
    assert.equal(shown(map, mine.colours, map.x + 60, map.z + 60), unknown);
    assert.deepEqual([mine.pointers.length, mine.pointers[0].type], [1, 0]);
    const before = mine.colours.filter(Boolean).length;
    await w.console('/setblock 9 20 12 obsidian');
    await w.step(30);
    assert.equal(shown(map, mine.colours, 9, 12), 29);
    await w.console(`/tp a0 ${map.x + 50} 4 9.5`);
    await w.step(60);
    assert.ok(mine.colours.filter(Boolean).length > before + 500, 'more is explored');
    await w.console('/clear a0');
    await w.console('/give a0 filled_map 1');
    await hold(w, bot, 'filled_map');
    await w.step(10);
    assert.equal(w.serv.survival.maps.get(1).scale, 3, 'one that nobody has drawn shows the spawn');
  }));

test('frames and maps are saved and restored', () =>
  inWorld({}, async (w, bot) => {
    const { plugins } = require('../survival');
    const part = (name) => plugins.find((plugin) => plugin.name === name);
    await wall(w);
    summon(w, 'item_frame', [10, 5, 9], { Facing: 4 });
    await w.console('/give a0 map 1');
    await hold(w, bot, 'map');
    await w.run(() => bot.activateItem());
    await w.step(30);
    for (const name of ['hanging', 'maps']) {
      const saved = JSON.parse(JSON.stringify(part(name).save(w.serv)));
      w.run(() => part(name).load(w.serv, null));
      assert.notDeepEqual(part(name).save(w.serv), saved);
      w.run(() => part(name).load(w.serv, saved));
      assert.deepEqual(JSON.parse(JSON.stringify(part(name).save(w.serv))), saved);
    }
  }));

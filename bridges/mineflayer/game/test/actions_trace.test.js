'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { fromWords } = require('../survival/commands/words');
const { KEYS } = require('../actions');
const { begin, low } = require('./actions_help');

const run = (world, ...lines) => lines.reduce(
  (before, line) => before.then(() => world.command(0, fromWords(line))), Promise.resolve());
/** Returns the trace of an agent since the last call, without the ticks and, by default, its own name. */
const traceOf = (world, index = 0) => world.run(() => world.agents[index].look()).details.trace
  .map(({ tick, ...event }) => { assert.ok(Number.isInteger(tick)); return event; });
const own = (world, index = 0) => traceOf(world, index)
  .filter(({ who }) => who === world.agents[index].name).map(({ who, ...event }) => event);
const at = (world, x, y, z) => world.origin.offset(x, y, z);
const place = (world, x, y, z) => at(world, x, y, z).toArray();
const idOf = (world, name) => world.bots[0].registry.itemsByName[name].id;

test('what is dug, placed, crafted, smelted, eaten and trodden down is in the trace', async () => {
  const world = await begin();
  const [bot] = world.bots;
  await run(world, '/give @s wooden_hoe', '/give @s oak_stairs 2', '/give @s wheat 3', '/give @s bread',
    '/setblock ~2 ~-1 ~ farmland', '/setblock ~2 ~ ~ wheat[age=7]', '/setblock ~-2 ~ ~ crafting_table',
    '/setblock ~ ~ ~-2 furnace', '/setblock ~3 ~-1 ~3 farmland');
  await world.step(5);
  traceOf(world);
  await world.until(() => bot.equip(idOf(world, 'wooden_hoe'), 'hand'));
  await world.until(() => bot.dig(bot.blockAt(at(world, 2, 0, 0))));
  await world.until(() => bot.equip(idOf(world, 'oak_stairs'), 'hand'));
  await world.until(() => bot.placeBlock(bot.blockAt(at(world, 0, -1, 2)), { x: 0, y: 1, z: 0 }));
  const [dug, placed] = own(world).filter(({ type }) => type === 'dug' || type === 'placed');
  assert.deepStrictEqual(dug, { type: 'dug', block: 'wheat', properties: { age: 7 },
    position: place(world, 2, 0, 0), tool: 'wooden_hoe' });
  assert.strictEqual(placed.block, 'oak_stairs');
  assert.strictEqual(placed.properties.half, 'bottom');
  assert.deepStrictEqual(placed.position, place(world, 0, 0, 2));

  const table = bot.blockAt(at(world, -2, 0, 0));
  const [recipe] = bot.recipesFor(idOf(world, 'bread'), null, 1, table);
  await world.until(() => bot.craft(recipe, 1, table));
  assert.deepStrictEqual(own(world).find(({ type }) => type === 'crafted'),
    { type: 'crafted', item: 'bread', count: 1, position: place(world, -2, 0, 0) });

  await run(world, '/give @s sand 2', '/give @s coal', '/effect give @s hunger 2 255');
  await world.step(30);
  const furnace = await world.until(() => bot.openFurnace(bot.blockAt(at(world, 0, 0, -2))));
  await world.until(() => furnace.putInput(idOf(world, 'sand'), null, 1));
  await world.until(() => furnace.putFuel(idOf(world, 'coal'), null, 1));
  await world.step(210);
  await world.until(() => furnace.takeOutput());
  world.run(() => furnace.close());
  const where = { block: 'furnace', position: place(world, 0, 0, -2) };
  assert.deepStrictEqual(own(world).filter(({ type }) => type !== 'picked'), [
    { type: 'opened', ...where },
    { type: 'put', ...where, item: 'sand', count: 1 },
    { type: 'put', ...where, item: 'coal', count: 1 },
    { type: 'smelted', item: 'glass', count: 1, position: where.position },
    { type: 'took', ...where, item: 'glass', count: 1 },
  ]);

  await world.until(() => bot.equip(idOf(world, 'bread'), 'hand'));
  await world.until(() => bot.consume());
  assert.deepStrictEqual(own(world), [{ type: 'ate', item: 'bread' }]);

  await run(world, '/tp @s ~3 ~6 ~3');
  await world.step(40);
  assert.deepStrictEqual(own(world), [{ type: 'trampled', position: place(world, 3, -1, 3) }]);
  world.close();
});

test('contents change by what a window has moved in all, in a large chest too', async () => {
  const world = await begin();
  const [bot] = world.bots;
  await run(world, '/setblock ~2 ~ ~ chest[facing=west,type=right]', '/setblock ~2 ~ ~1 chest[facing=west,type=left]',
    '/replaceitem block ~2 ~ ~ container.3 iron_ingot 20', '/give @s dirt 9');
  await world.step(5);
  traceOf(world);
  const chest = await world.until(() => bot.openContainer(bot.blockAt(at(world, 2, 0, 0))));
  await world.until(() => chest.withdraw(idOf(world, 'iron_ingot'), null, 7));
  const [opened, took] = own(world);
  const { other_half: other, ...event } = took;
  assert.strictEqual(opened.type, 'opened');
  assert.deepStrictEqual({ ...event, position: [event.position, other].sort() }, { type: 'took', block: 'chest',
    position: [place(world, 2, 0, 0), place(world, 2, 0, 1)].sort(), item: 'iron_ingot', count: 7 });
  // A shift-click, from the player's part of the window.
  const slot = chest.slots.findIndex((item) => item?.name === 'dirt');
  await world.until(() => bot.clickWindow(slot, 0, 1));
  assert.deepStrictEqual(own(world).map(({ type, item, count }) => [type, item, count]), [['put', 'dirt', 9]]);
  // Taken to the cursor and put back is nothing.
  const full = chest.slots.findIndex((item) => item?.name === 'iron_ingot');
  await world.until(() => bot.clickWindow(full, 0, 0));
  await world.until(() => bot.clickWindow(full, 0, 0));
  assert.deepStrictEqual(own(world), []);
  // What is at the cursor when the window closes was taken.
  await world.until(() => bot.clickWindow(full, 0, 0));
  world.run(() => chest.close());
  await world.step(2);
  assert.deepStrictEqual(own(world).map(({ type, count }) => [type, count]), [['took', 13]]);
  world.close();
});

test('who gave is told, by stack and by part of a stack; what the dead drop is nobody\'s gift', async () => {
  const world = await begin({ agents: 2, server: { respawn: true, doMobSpawning: false } });
  const [giver, taker] = world.bots;
  await run(world, '/tp a1 ~ ~ ~9', '/give a0 stone 10', '/give a1 dirt 2240', '/give a1 stone 60');
  await world.step(2);
  traceOf(world);
  traceOf(world, 1);
  await world.until(() => giver.look(Math.PI, 0, true));
  await world.step(2);
  await world.until(() => giver.toss(idOf(world, 'stone'), null, 9));
  await world.step(60);
  const tosses = own(world);
  const [tossed] = tosses;
  assert.deepStrictEqual([tossed.type, tossed.item], ['tossed', 'stone']);
  assert.strictEqual(tosses.reduce((sum, { count }) => sum + count, 0), 9); // mineflayer's toss is one by one
  assert.ok(Math.abs(tossed.yaw - Math.PI) < 0.1, `${tossed.yaw}`);
  await run(world, '/tp a1 ~ ~ ~4');
  await world.step(30);
  // It has room for 4 of the 9.
  assert.deepStrictEqual(own(world), [{ type: 'gave', item: 'stone', count: 4, to: 'a1' }]);
  const [{ position, ...picked }] = own(world, 1);
  assert.deepStrictEqual(picked, { type: 'picked', item: 'stone', count: 4, thrower: 'a0' });
  assert.strictEqual(position.length, 3);
  await run(world, '/tp a1 ~ ~ ~-1', '/clear a1', '/kill a0');
  await world.step(60);
  assert.deepStrictEqual(own(world, 1).map(({ item, count, thrower }) => [item, count, thrower]), [['stone', 1, '']]);
  assert.deepStrictEqual(own(world), []);
  world.close();
});

test('chat and blows are in the traces of both', async () => {
  const world = await begin({ agents: 2 });
  const [one, two] = world.bots;
  await world.step(5);
  traceOf(world);
  traceOf(world, 1);
  world.run(() => one.chat('Hello "\u{1F600}"'));
  await world.step(15);
  world.run(() => one.attack(one.players.a1.entity));
  await world.step(2);
  assert.ok(two.health < 20);
  const both = [{ type: 'chat', who: 'a0', text: 'Hello "\u{1F600}"' }, { type: 'hit', who: 'a0', entity: 'a1' }];
  assert.deepStrictEqual(traceOf(world), both);
  assert.deepStrictEqual(traceOf(world, 1), both);
  world.close();
});

test('judges get the blocks of watched regions once, then what changes; the trace who enters', async () => {
  const box = (name, low, high) => ({ name, low, high, centre: null, radius: 0, watch: true });
  const regions = [box('plot', [3, -1, 0], [4, 0, 0]),
    { name: 'spot', low: [4, -2, 4], high: [8, 2, 8], centre: [6, 0, 6], radius: 2, watch: false }];
  const world = await begin({ agents: 2 }, { regions, blocks: [{ x: 3, y: 0, z: 0, name: 'oak_stairs', properties: { half: 'top' } }] });
  const see = (index = 0) => world.run(() => world.agents[index].look()).details;
  const first = see().privileged;
  assert.deepStrictEqual(Object.keys(first.regions.plot), ['3 -1 0', '3 0 0', '4 -1 0']);
  assert.match(first.regions.plot['3 0 0'], /^oak_stairs\[facing=north,half=top,/);
  assert.deepStrictEqual(first.origin, world.origin.toArray());
  assert.deepStrictEqual(Object.keys(first.players), ['a0', 'a1']);
  await run(world, '/setblock ~3 ~ ~ air', '/setblock ~4 ~ ~ stone', '/setblock ~5 ~ ~ stone', '/give a1 dirt 3', '/tp @s ~6 ~ ~5');
  await world.play([]);
  const { trace, privileged } = see();
  assert.deepStrictEqual(privileged.regions, { plot: { '3 0 0': 'air', '4 0 0': 'stone' } });
  assert.deepStrictEqual(privileged.players.a1.items, { dirt: 3 });
  assert.deepStrictEqual(trace.map(({ type, region }) => [type, region]), [['entered', 'spot']]);
  assert.deepStrictEqual(see().privileged.regions, {});
  assert.strictEqual(Object.keys(see(1).privileged.regions.plot).length, 3, 'each agent has its own');
  await run(world, '/tp @s ~ ~ ~-5');
  await world.play([]);
  assert.deepStrictEqual(see().trace.map(({ type, region }) => [type, region]), [['left', 'spot']]);
  world.run(() => world.serv.survival.toss(world.agents[1].player, world.serv.survival.items.make('dirt', 2)));
  const [{ position, ...drop }] = see().privileged.drops;
  assert.deepStrictEqual(drop, { item: 'dirt', count: 2, thrower: 'a1' });
  world.close();
  const plain = await begin();
  assert.strictEqual(plain.run(() => plain.agents[0].look()).details.privileged, undefined);
  plain.close();
});

const player = (more) => ({ name: 'Ada', at: [4, 0, 0], items: [], script: [], answers: [], ask: 'often', facing: '', ...more });

test('a scripted player looks, waits for chat and items, hands over, hits, and answers once', async () => {
  const world = await begin({}, { players: [player({ facing: 'east', ask: 'once', items: [{ name: 'bread', count: 3, slot: null }],
    answers: [['how many', 'Eight.']],
    script: [{ say: 'Bring me dirt.' }, { wait_chat: { pattern: 'ready', ticks: 400 } }, { look: [4, 3, -9] }, { wait: 3 },
      { look: 'a0' }, { wait_item: { item: 'dirt', count: 2, ticks: 400 } }, { give: { item: 'bread', count: 2, to: 'a0' } },
      { hit: 'a0' }, { wait_chat: { pattern: 'never', ticks: 20 } }, { say: 'Bye.' }] })] });
  const [bot] = world.bots;
  const seen = [];
  const play = async (ticks) => {
    for (let i = 0; i < ticks; i++) await world.play([]);
    const { details } = world.run(() => world.agents[0].look());
    seen.push(...details.trace);
    return details.privileged.players.Ada;
  };
  const said = () => seen.filter(({ type, who }) => type === 'chat' && who === 'Ada').map(({ text }) => text);
  const near = (yaw, wanted) => assert.ok(Math.abs(yaw - wanted) < 0.02, `${yaw} is not ${wanted}`);
  near((await play(0)).yaw, 1.5 * Math.PI);
  await run(world, '/give @s dirt 5');
  await play(5);
  world.run(() => bot.chat('How many?'));
  await play(15);
  world.run(() => bot.chat('How many, I said?'));
  await play(30);
  assert.deepStrictEqual(said(), ['Bring me dirt.', 'Eight.']);
  world.run(() => bot.chat('I am ready'));
  near((await play(3)).yaw, 0);
  near((await play(6)).yaw, Math.PI / 2);
  world.run(() => bot.look(-Math.PI / 2, 0, true));
  await play(2);
  await world.until(() => bot.toss(idOf(world, 'dirt'), null, 2));
  await play(120);
  assert.deepStrictEqual(said(), ['Bring me dirt.', 'Eight.', 'Bye.']);
  const sum = (kind) => seen.filter(({ type }) => type === kind).reduce((all, { count }) => all + count, 0);
  assert.deepStrictEqual([sum('gave'), sum('picked')], [2, 2]);
  const { tick, ...blow } = seen.find(({ type }) => type === 'hit');
  assert.deepStrictEqual(blow, { type: 'hit', who: 'Ada', entity: 'a0' });
  assert.strictEqual(world.players.at(-1).op, false);
  world.close();
});

test('packets of operators and of creative mode are refused, and are violations', async () => {
  const world = await begin();
  const [bot] = world.bots;
  traceOf(world);
  const sent = [['chat', { message: '/give @s diamond' }], ['tab_complete', { transactionId: 1, text: '/se' }],
    ['set_creative_slot', { slot: 36, item: { present: false } }],
    ['query_block_nbt', { transactionId: 1, location: at(world, 0, 0, 0) }]];
  for (const [packet, fields] of sent) world.run(() => bot._client.write(packet, fields));
  await world.step(2);
  assert.deepStrictEqual(own(world).map(({ type, rule, evidence }) => [type, rule, evidence.split(' ')[0]]), [
    ['violation', 'operator_command', '/give'], ['violation', 'operator_command', '/se'],
    ['violation', 'protocol_access', 'set_creative_slot'], ['violation', 'protocol_access', 'query_block_nbt']]);
  assert.deepStrictEqual(bot.inventory.items(), []);
  world.run(() => bot._client.write('chat', { message: 'I/O is fine' }));
  await world.step(2);
  assert.deepStrictEqual(own(world).map(({ type }) => type), ['chat']);
  world.close();
});

test('a person in place of a script talks, hits, walks and hands over; the agent hears and sees it', async () => {
  const person = { name: 'Ada', actions: 'human', rgb: { height: 9, width: 16, hud: true } };
  const world = await begin({ person }, { players: [player({ at: [2, 0, 0], facing: 'west',
    items: [{ name: 'bread', count: 3, slot: null }], script: [{ say: 'Not said.' }], answers: [['.', 'Nor this.']] })] });
  const seen = [];
  const play = async (steps, say, ...keys) => {
    for (let i = 0; i < steps; i++) {
      const row = { 'person/keys': KEYS.map((key) => Number(keys.includes(key))), 'person/camera': [5, 5],
        'person/say': i === 0 ? say : '' };
      await world.play([[0, { ...low(), ...row }]]);
    }
    const details = world.withScene(world.agents[0], world.run(() => world.agents[0].look().details));
    assert.strictEqual(details.scene, undefined);
    assert.ok(details.person_scene.display);
    seen.push(...details.trace.map(({ tick, position, ...event }) => event));
    return details.privileged.players.Ada;
  };
  const before = (await play(1, 'Hello?')).position;
  world.run(() => world.bots[0].chat('How many?'));
  await play(20, '', 'attack');
  await play(10, '', 'drop');
  await play(40, '');
  assert.deepStrictEqual((await play(1, '')).items, { bread: 2 });
  const { position } = await play(8, '', 'back');
  assert.ok(position[0] > before[0] + 0.5, `${position} after ${before}`);
  assert.deepStrictEqual(seen.filter(({ type }) => type === 'chat').map(({ who, text }) => [who, text]),
    [['Ada', 'Hello?'], ['a0', 'How many?']]);
  assert.deepStrictEqual(seen.find(({ type }) => type === 'hit'), { type: 'hit', who: 'Ada', entity: 'a0' });
  assert.deepStrictEqual(seen.find(({ type }) => type === 'picked'),
    { type: 'picked', who: 'a0', item: 'bread', count: 1, thrower: 'Ada' });
  world.close();
});

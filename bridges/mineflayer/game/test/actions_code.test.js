'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { ERRORS } = require('../actions/code');
const { begin, play, playUntil, blockAt, countOf, look } = require('./actions_help');

const RESUME = { kind: 0, code: '' };
const NEW = (code) => ({ kind: 1, code });
const program = (start, over) => begin({ actions: 'code', ...over }, start);
const state = (world, index = 0) => world.run(() => world.agents[index].codeState());
const keys = (bot) => ['forward', 'back', 'left', 'right', 'jump', 'sprint', 'sneak']
  .filter((key) => bot.getControlState(key));

test('a program runs over many steps and ends', async () => {
  const world = await program();
  await play(world, NEW('bot.chat("on my way"); await bot.waitForTicks(10); await moveTo(4, 64, 4, 1);'));
  const first = look(world);
  assert.deepStrictEqual(first.values.code_state, [1, 1, 0]);
  assert.ok(first.details.chat.some((line) => line.endsWith('on my way')));
  const steps = await playUntil(world, RESUME, () => !state(world).running, 200);
  assert.ok(steps > 20);
  assert.ok(world.bots[0].entity.position.distanceTo(world.bots[0].entity.position.clone().set(4.5, 64, 4.5)) < 2);
  const { details, values } = look(world);
  assert.strictEqual(values.code_state[0], 0);
  assert.strictEqual(details.code_info.is_ready, true);
  world.close();
});

test('senses and helpers work in the real game: a log is mined', async () => {
  const world = await program({ blocks: [{ x: 4, y: 0, z: 4, name: 'oak_log' }, { x: 4, y: 1, z: 4, name: 'oak_log' }] });
  await play(world, NEW('return await mineBlock("oak_log", 2);'));
  await playUntil(world, RESUME, () => !state(world).running, 900);
  assert.deepStrictEqual(look(world).details.code_info.code_error, {});
  assert.strictEqual(countOf(world, 'oak_log'), 2);
  world.close();
});

test('a visible block is found, however many of its kind are nearer and hidden', async () => {
  const world = await program({ blocks: [{ x: 9, y: 0, z: 3, name: 'dirt' }, { x: 12, y: 0, z: 0, name: 'stone' }] });
  await play(world, NEW(`for (const matching of ['dirt', 'stone', ({ name }) => name === 'stone']) {
    for (const count of [1, 9]) {
      const cells = bot.findBlocks({ matching, maxDistance: 32, count });
      console.log(cells.length, \`\${cells[0]?.minus(new Vec3(${world.origin.x}, ${world.origin.y}, ${world.origin.z}))}\`);
    }
  }`));
  const { logs } = state(world).info;
  assert.deepStrictEqual(logs, [...new Array(2).fill('1 (9, 0, 3)'), ...new Array(4).fill('1 (12, 0, 0)')]);
  world.close();
});

test('an error is reported once, with its line, and its number stays until the next program', async () => {
  const world = await program();
  await play(world, NEW('await bot.waitForTicks(2);\nthrow new Error("no way");'));
  await play(world, RESUME, 2);
  const { details, values } = look(world);
  assert.strictEqual(details.code_info.code_error.error_message, 'no way');
  assert.strictEqual(details.code_info.code_error.error_line, 2);
  assert.strictEqual(values.code_errors, 1);
  assert.deepStrictEqual(values.code_state.slice(0, 1), [0]);
  assert.strictEqual(ERRORS[values.code_state[2] - 1], 'Error');
  await play(world, RESUME);
  assert.deepStrictEqual(look(world).details.code_info.code_error, {});
  assert.strictEqual(look(world).values.code_state[2], 1);
  await play(world, NEW('bot.setControlState("forward"'));
  assert.strictEqual(ERRORS[look(world).values.code_state[2] - 1], 'SyntaxError');
  assert.strictEqual(look(world).values.code_errors, 2);
  await play(world, NEW(''));
  assert.strictEqual(look(world).values.code_state[2], 0);
  world.close();
});

test('a new program ends a walk, a dig and pressed keys at once', async () => {
  const world = await program();
  const [bot] = world.bots;
  const still = async () => {
    assert.deepStrictEqual(keys(bot), []);
    assert.strictEqual(bot.targetDigBlock, null);
    assert.ok(!bot.pathfinder.isMoving());
    await play(world, RESUME, 15);
    const place = bot.entity.position.clone();
    await play(world, RESUME, 20);
    assert.ok(bot.entity.position.distanceTo(place) < 0.01, 'it stands still');
  };
  await play(world, NEW('await moveTo(40, 64, 0, 1);'));
  await play(world, RESUME, 30);
  assert.ok(bot.entity.position.x > 2);
  await play(world, NEW('await bot.waitForTicks(200);'));
  await still();
  await play(world, NEW('await bot.dig(bot.blockAt(bot.entity.position.offset(0, -1, 0)));'));
  await play(world, RESUME, 3);
  assert.ok(bot.targetDigBlock);
  await play(world, NEW('await bot.waitForTicks(200);'));
  await still();
  await play(world, NEW('bot.setControlState("forward", true); bot.setControlState("jump", true);'
    + 'await bot.waitForTicks(100);'));
  await play(world, RESUME, 5);
  assert.deepStrictEqual(keys(bot), ['forward', 'jump']);
  await play(world, NEW('await bot.waitForTicks(200);'));
  await still();
  world.close();
});

test('what a program left set at its end is released when the next one begins', async () => {
  const world = await program({ items: [{ name: 'shield', count: 1 }], blocks: [{ x: 0, y: 0, z: 2, name: 'chest' }] });
  const [bot] = world.bots;
  const begun = async (source) => {
    await play(world, NEW(source));
    await playUntil(world, RESUME, () => !state(world).running);
    assert.strictEqual(world.agents[0].actor.error, null);
  };
  await begun('const ways = new Movements(); ways.canDig = false; bot.pathfinder.setMovements(ways);'
    + 'bot.pathfinder.setGoal(new GoalNear(40, 64, 0, 1));');
  await play(world, RESUME, 10);
  assert.ok(bot.pathfinder.goal, 'one that ends well leaves its goal');
  await play(world, NEW('await bot.waitForTicks(60);'));
  assert.strictEqual(bot.pathfinder.goal, null);
  assert.strictEqual(bot.pathfinder.movements.canDig, true);
  await play(world, RESUME, 15);
  const place = bot.entity.position.clone();
  await play(world, RESUME, 20);
  assert.ok(bot.entity.position.distanceTo(place) < 0.01, 'it stands still');
  await begun(`await moveTo(${world.origin.x}, ${world.origin.y}, ${world.origin.z}, 1);`
    + 'await bot.equip("shield", "off-hand"); bot.activateItem(true);');
  assert.ok(bot.usingHeldItem);
  await play(world, NEW('await bot.waitForTicks(60);'));
  assert.ok(!bot.usingHeldItem);
  await begun('await bot.openChest(bot.findBlock({ matching: "chest" }));');
  assert.ok(bot.currentWindow);
  await play(world, NEW('await bot.waitForTicks(60);'));
  assert.strictEqual(bot.currentWindow, null);
  world.close();
});

test('what a program was turning to when the next one came is not opened, used or placed', async () => {
  const blocks = [['chest', 0, 2], ['furnace', -2, 0], ['crafting_table', 2, 0], ['oak_fence_gate', 2, 2]]
    .map(([name, x, z]) => ({ x, y: 0, z, name }));
  const find = (name) => `bot.findBlock({ matching: '${name}' })`;
  const open = `const chest = await bot.openChest(${find('chest')}); await chest.deposit('stick', null, 1);`;
  const first = {
    chest: open,
    furnace: `await bot.openFurnace(${find('furnace')});`,
    table: `const t = ${find('crafting_table')}; await bot.craft(bot.recipesFor('chest', null, 1, t)[0], 1, t);`,
    gate: `await bot.activateBlock(${find('oak_fence_gate')});`,
    place: `await bot.equip('dirt'); await bot.placeBlock(${find('furnace')}, new Vec3(0, 1, 0));`
  };
  for (const [name, source] of Object.entries(first)) {
    const items = ['stick', 'oak_planks', 'dirt'].map((item) => ({ name: item, count: 9 }));
    const world = await program({ blocks, items }, { ticks_per_step: 3 });
    await play(world, NEW(source));
    assert.ok(state(world).running, `${name}: it turns`);
    await play(world, NEW(`${open} await bot.waitForTicks(30);`));
    await playUntil(world, RESUME, () => !state(world).running);
    assert.strictEqual(world.agents[0].actor.error, null, `after ${name}`);
    assert.deepStrictEqual(['stick', 'oak_planks', 'dirt'].map((item) => countOf(world, item)), [8, 9, 9], name);
    const gate = world.bots[0].blockAt(world.origin.offset(2, 0, 2));
    assert.strictEqual(gate.getProperties().open, false, name);
    assert.strictEqual(blockAt(world, -2, 1, 0), 'air', name);
    world.close();
  }
});

test('death stops the program and is given as the reason', async () => {
  const world = await program({}, { server: { respawn: true, doMobSpawning: false } });
  await play(world, NEW('bot.setControlState("forward", true); while (true) await bot.waitForTicks(1);'));
  await play(world, RESUME, 5);
  await world.console('/kill a0');
  await play(world, RESUME, 5);
  const { code_info: info } = look(world).details;
  assert.strictEqual(info.is_running, false);
  assert.strictEqual(info.stopped, 'the agent died');
  assert.deepStrictEqual(keys(world.bots[0]), []);
  assert.strictEqual(look(world).values.code_errors, 0);
  world.close();
});

test('events stop programs only if configured to', async () => {
  for (const [onEvent, running] of [['go_on', true], ['stop', false]]) {
    const world = await program({}, { agents: 2, code: { time_ms: 100, memory_mb: 32, calls: 1000, on_event: onEvent } });
    await world.play([[0, NEW('await bot.waitForTicks(500);')], [1, NEW('bot.chat("hello a9");')]]);
    await world.play([[0, RESUME], [1, RESUME]]);
    assert.strictEqual(state(world).running, true, 'not its name');
    await world.play([[0, RESUME], [1, NEW('bot.chat("hello a0");')]]);
    await world.play([[0, RESUME], [1, RESUME]]);
    assert.strictEqual(state(world).running, running);
    if (!running) assert.strictEqual(state(world).info.stopped, 'a1 spoke to it');
    world.close();
  }
  const world = await program({}, { agents: 2, code: { on_event: 'stop' } });
  await world.play([[0, NEW('await bot.waitForTicks(500);')], [1, NEW('')]]);
  // A server that is not ours tells a chat line to everybody.
  for (const [limit, running] of [[0.5, true], [50, false]]) {
    world.agents[0].senses.limits.chat_distance = limit;
    await world.run(() => world.players[1].teleport(world.players[0].position.offset(3, 0, 0)));
    await world.play([[0, RESUME], [1, RESUME]]);
    world.run(() => world.bots[0].emit('chat', 'a1', 'hello a0'));
    assert.strictEqual(state(world).running, running, `heard within ${limit}`);
  }
  world.close();
  await assert.rejects(program({}, { code: { on_event: 'sometimes' } }), /go_on, stop, got sometimes/);
});

test('a program runs in every tick of a step', async () => {
  const world = await program({}, { ticks_per_step: 5 });
  await play(world, NEW('for (let i = 0; i < 9; i++) { console.log(bot.currentTick); await bot.waitForTicks(1); }'));
  assert.strictEqual(state(world).info.logs.length, 5);
  await play(world, RESUME);
  assert.strictEqual(state(world).running, false);
  assert.strictEqual(state(world).info.logs.length, 9);
  world.close();
});

test('a program that loops forever does not change what another one does', async () => {
  const walk = NEW('await moveTo(6, 64, 3, 1); bot.chat("there");');
  const outcomes = [];
  for (const other of ['while (true) {}', 'bot.toss("stone", 3)', 'const a = []; for (;;) a.push("x".repeat(1e5));']) {
    const world = await program({}, { agents: 2 });
    await world.play([[0, walk], [1, NEW(other)]]);
    for (let i = 0; i < 60; i++) await world.play([[0, RESUME], [1, RESUME]]);
    assert.notStrictEqual(state(world, 1).error, 0);
    outcomes.push([world.bots[0].entity.position.toString(), state(world).ticks, state(world).running]);
    world.close();
  }
  assert.deepStrictEqual(outcomes[1], outcomes[0]);
  assert.deepStrictEqual(outcomes[2], outcomes[0]);
});

test('inventory actions that are not awaited run one after the other without harm', async () => {
  const items = ['dirt', 'oak_log', 'stick'].map((name) => ({ name, count: 16 }));
  const blocks = [{ x: 2, y: 0, z: 0, name: 'chest' }, { x: 0, y: 0, z: 2, name: 'furnace' }];
  const world = await program({ items, blocks }, { agents: 2 });
  const other = NEW('for (;;) { console.log(bot.currentTick); await bot.waitForTicks(1); }');
  await world.play([[1, other], [0, NEW(`const recipe = bot.recipesFor('oak_planks', null, 1, null)[0];
    for (let i = 0; i < 12; i++) bot.craft(recipe, 1).catch((error) => console.log(error.message));`)]]);
  for (let i = 0; i < 30; i++) await world.play([[0, RESUME], [1, RESUME]]);
  assert.deepStrictEqual([state(world).running, ...['oak_log', 'oak_planks'].map((name) => countOf(world, name))], [false, 4, 48]);
  await world.play([[1, RESUME], [0, NEW(`const [c, f] = ['chest', 'furnace'].map((matching) => bot.findBlock({ matching }));
    for (;;) {
      for (let i = 0; i < 15; i++) {
        bot.openChest(c).then((chest) => chest.deposit('dirt', null, 1)).catch(() => {});
        bot.openFurnace(f).then((furnace) => furnace.putFuel('stick', null, 1)).catch(() => {});
        bot.toss('dirt', null, 1).catch(() => {});
      }
      await bot.waitForTicks(3);
    }`)]]);
  for (let i = 0; i < 30; i++) await world.play([[0, RESUME], [1, RESUME]]);
  assert.strictEqual(state(world, 1).info.logs.length, 62);
  world.close();
});

test('the same programs give the same world', async () => {
  const run = async () => {
    const world = await program({}, { agents: 2 });
    const source = NEW('for (let i = 0; i < 4; i++) { await moveTo(Math.random() * 8, 64, Math.random() * 8, 1); }'
      + 'await bot.dig(bot.blockAt(bot.entity.position.offset(0, -1, 0)));');
    await world.play([[0, source], [1, source]]);
    const seen = [];
    for (let i = 0; i < 150; i++) {
      await world.play([[0, RESUME], [1, RESUME]]);
      seen.push(JSON.stringify(world.bots.map((bot) => bot.entity.position)));
    }
    const ground = blockAt(world, 0, -1, 0);
    world.close();
    return [seen, ground];
  };
  assert.deepStrictEqual(await run(), await run());
});

test('a command in the chat and a scan beyond the limits are refused, and the trace has them as violations', async () => {
  const world = await program({});
  await play(world, NEW('try { bot.chat("/give @s diamond \u{1F48E}"); } catch {}'));
  await play(world, RESUME, 2);
  const trace = () => look(world).details.trace;
  assert.deepStrictEqual(trace().map(({ type, rule, evidence }) => [type, rule, evidence]),
    [['violation', 'operator_command', '/give @s diamond \u{1F48E}']]);
  assert.strictEqual(countOf(world, 'diamond'), 0);
  for (const limits of ['maxDistance: 500', 'count: 9999']) {
    await play(world, NEW(`try { bot.findBlocks({ matching: 'stone', ${limits} }); } catch {}`));
    await play(world, RESUME, 2);
    const [{ type, rule, evidence }] = trace();
    assert.deepStrictEqual([type, rule], ['violation', 'bulk_scan']);
    assert.match(evidence, /expected a.*number/);
  }
  await play(world, NEW(`for (const o of [{ count: 0 }, { maxDistance: -1 }, { maxDistance: '9' }]) {
    try { bot.findBlocks({ matching: 'stone', ...o }); } catch {}
  }`));
  await play(world, RESUME, 2);
  assert.deepStrictEqual(trace(), [], 'a search that is merely wrong is no violation');
  world.close();
});

test('mineBlock picks up what fell out of sight, behind the rim of the hole', async () => {
  const rim = [[2, 0], [4, 0], [3, 1], [3, -1]].map(([x, z]) => ({ x, y: 0, z, name: 'stone' }));
  const world = await program({ blocks: [...rim, { x: 3, y: 0, z: 0, name: 'oak_planks' }] });
  await play(world, NEW('console.log(await mineBlock("oak_planks", 1));'));
  await playUntil(world, RESUME, () => !state(world).running, 400);
  assert.deepStrictEqual(look(world).details.code_info.logs, ['1']);
  assert.strictEqual(countOf(world, 'oak_planks'), 1);
  world.close();
});

'use strict';
/** Servers of other versions than 1.16.5, old and new: flying-squid's own, in another process. */
const test = require('node:test');
const assert = require('node:assert');
const { serve, play, configOf, array, code, until, events } = require('./remote_help');
const { CRAFTABLES } = require('../actions');

/** One of them stands for all, unless all are asked for. */
const VERSIONS = process.env.LONG ? ['1.8.8', '1.12.2', '1.18.2', '1.20.4', '1.21.4'] : ['1.20.4'];
/** It looks first: at the first look flying-squid puts a player back to where it came in. */
const PROGRAM = `await bot.look(1, 0, true);
  await bot.waitForTicks(4);
  const { x, z } = bot.entity.position;
  console.log(bot.blockAt(bot.entity.position.offset(0, -1, 0)).name);
  bot.on('chat', (name, text) => console.log(name, text));
  bot.chat('here I am');
  await bot.pathfinder.goto(new GoalXZ(Math.floor(x) + 5, Math.floor(z)));
  await bot.dig(bot.blockAt(bot.entity.position.offset(0, -1, 0)));
  await bot.waitForTicks(2);`;
const DIG = 8;
const CRAFT = 4;

async function begin(t, server, more) {
  const game = play(t, configOf(server.port, { ticks_per_step: 5, ...more }));
  await game.hello();
  return { game, first: await game.reset() };
}

for (const version of VERSIONS) {
  test(`on ${version} agents see, walk, dig, talk and craft`, { timeout: 300000 }, async (t) => {
    const server = await serve(t, { version, ours: false });
    const { game, first } = await begin(t, server, { version, actions: 'code', rgb: { height: 8, width: 8 } });
    assert.ok(first.life.every(Number.isFinite));
    assert.ok(first.details[0].scene.box.blocks.some((byte) => byte !== 0));
    assert.match(first.details[0].voxels.block_name[1][0][1], /^grass/);
    await game.step(code(PROGRAM));
    const frame = await until(game, code(null), 200, (each) => each.code_state[0] === 0);
    assert.deepStrictEqual(frame.details[0].code_info.code_error, {});
    assert.match(frame.details[0].code_info.logs[0], /^grass/);
    assert.ok(frame.details[0].code_info.logs.includes('r0 here I am'));
    assert.ok(Math.abs(frame.position[0] - first.position[0] - 5) < 2);
    await game.session.answer({ id: 9, op: 'close' });

    const { game: hands } = await begin(t, server, { version, names: ['hands'] });
    // Off the edges of blocks, and again: a server may put a player that has just joined back there.
    const [walk, dig] = [array([1, 1, 0, 6, 12, 0, 0, 0]), array([0, 0, 0, 6, 12, DIG, 0, 0])];
    await until(hands, (n) => (n % 12 === 0 ? walk : dig), 600, (each) => each.voxels_id[10] === 0
      || each.position[1] < 4.5);
    const made = await hands.step(array([0, 0, 0, 12, 12, CRAFT, CRAFTABLES.indexOf('oak_planks'), 0]));
    const failed = events(made).find(({ type }) => type === 'actionFailed');
    assert.match(failed.message, /^1\.(8|12)/.test(version)
      ? /oak_planks: there is no such item in 1\./ : /oak_planks: .* missing/);
  });
}

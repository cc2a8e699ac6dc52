'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { Game } = require('../game');

const CONFIG = {
  mode: 'embedded', version: '1.16.5', width: 1, agents: 1, names: ['a0'], actions: 'human', ticks_per_step: 1,
  view_distance: 2, rgb: null, needs: true, code: { time_ms: 100, memory_mb: 32, calls: 100 }, server: {},
  senses: { sight_distance: 48, line_of_sight: true, hearing_distance: 50, chat_distance: 50 }
};

test('a herd stands in its sector and band, other animals are no targets', async () => {
  for (const [bearing, middle] of [[0, 0], [90, 90], [240, -120]]) {
    const game = new Game(CONFIG);
    await game.reset([0], [{
      seed: bearing, episode: 0, items: [], blocks: [], commands: [],
      targets: [
        { kind: 'sheep', count: 4, name: 'sheep', bearing, sector: 30, band: [6, 8] },
        { kind: 'cow', count: 2, wild: true, bearing: 0, sector: 360, band: [3, 13] }
      ],
      state: { world: 2, biome: 'plains', site: 'flat', time: 'noon', difficulty: 'easy' }
    }]);
    const [world] = game.worlds;
    const { position, yaw } = world.agents[0].bot.entity;
    assert.deepStrictEqual(world.targets.map(({ name }) => name), Array(4).fill('sheep'));
    for (const sheep of world.targets) {
      const { x, z } = sheep.position.minus(position);
      assert.ok(Math.hypot(x, z) >= 5.9 && Math.hypot(x, z) <= 8.1);
      const right = yaw - Math.atan2(-x, -z) - (middle * Math.PI) / 180;
      const off = Math.atan2(Math.sin(right), Math.cos(right));
      assert.ok(Math.abs(off) <= (16 * Math.PI) / 180, `${bearing}: ${off}`);
    }
    const cows = Object.values(world.serv.entities).filter(({ name }) => name === 'cow');
    assert.deepStrictEqual(cows.map(({ gamutTarget }) => gamutTarget), [undefined, undefined]);
    game.close();
  }
});

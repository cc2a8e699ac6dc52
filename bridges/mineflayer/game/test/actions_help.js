'use strict';
/** For tests of actions: a world that is played, and actions by name. */
const { Vec3 } = require('vec3');
const { makeGameWorld } = require('../gameworld');

const config = (over = {}) => {
  const agents = over.agents ?? 1;
  return {
    mode: 'embedded', version: '1.16.5', width: agents, agents,
    names: Array.from({ length: agents }, (_, i) => `a${i}`), actions: 'low_level',
    ticks_per_step: 1, view_distance: 3, rgb: null,
    senses: { sight_distance: 48, line_of_sight: true, hearing_distance: 50, chat_distance: 50 },
    needs: true, code: { time_ms: 100, memory_mb: 32, calls: 1000 },
    server: { respawn: false, doMobSpawning: false, doDaylightCycle: false }, ...over
  };
};

/** Returns a world of `over.agents` agents at its start; `items` [{name, count, slot}] for each. */
async function begin(over = {}, start = {}) {
  const made = config(over);
  const state = { world: 3, biome: 'plains', site: 'flat', time: 'day', weather: 'clear',
    difficulty: 'normal', ...start.state };
  const whole = { seed: 1, episode: 0, items: [], targets: [], blocks: [], commands: [], ...start, state };
  const world = await makeGameWorld(made, Array.from({ length: made.agents }, (_, index) => ({ index, start: whole })));
  world.origin = world.serv.spawnOf(0).floored();
  return world;
}

const DO = { nothing: 0, use: 1, drop: 2, attack: 3, craft: 4, equip: 5, place: 6, destroy: 7, dig: 8,
  stop: 9 };

/** Returns a low_level row: `low({move: 1, do: 'dig', pitch: -2})`; turns count from no turn. */
function low({ move = 0, strafe = 0, posture = 0, pitch = 0, yaw = 0, craft = 0, slot = 0, ...more } = {}) {
  return { action: [move, strafe, posture, 12 + pitch, 12 + yaw, DO[more.do ?? 'nothing'], craft, slot] };
}

/** Plays one action of the first agent for some steps. */
async function play(world, row, steps = 1) {
  for (let i = 0; i < steps; i++) await world.play([[0, row]]);
}

/** Plays until something is so; returns after how many steps. */
async function playUntil(world, row, isSo, most = 400) {
  for (let i = 1; i <= most; i++) {
    await play(world, row);
    if (world.run(isSo)) return i;
  }
  throw new Error(`it did not come about within ${most} steps`);
}

/** Returns the name of the block at an offset from the place where the agents began. */
function blockAt(world, x, y, z) {
  const at = world.origin.offset(x, y, z);
  const column = world.serv.columnAt(world.serv.overworld, at.x >> 4, at.z >> 4);
  return world.serv.registry.blocksByStateId[
    column.getBlockStateId(new Vec3(at.x & 15, at.y, at.z & 15))].name;
}

const countOf = (world, name, index = 0) => world.bots[index].inventory.items()
  .filter((item) => item.name === name).reduce((sum, { count }) => sum + count, 0);

/** Returns the details of the first agent's row. */
const look = (world, index = 0) => world.run(() => world.agents[index].look());

module.exports = { begin, low, play, playUntil, blockAt, countOf, look };

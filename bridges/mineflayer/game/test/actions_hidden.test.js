'use strict';
/**
 * Two worlds that differ only in blocks out of sight: all calls of the API, by its table, and all
 * observations are the same in both.
 */
const test = require('node:test');
const assert = require('node:assert');
const { checkArguments } = require('../sandbox/check');
const { makeApi } = require('../sandbox/api');
const { EndReason } = require('../sandbox/engine');
const { begin, look } = require('./actions_help');

/** Half the width of the block of stone around the agent, and of the room in it. */
const ROCK = 6;
const ROOM = 2;
const SIDES = [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]];
const SEEN = ['chest', 'furnace', 'crafting_table', 'red_bed', 'glass', 'stone', 'torch', 'enchanting_table', 'anvil'];
const OPAQUE = ['stone', 'diamond_ore', 'bedrock', 'obsidian', 'crafting_table', 'bookshelf', 'oak_log'];
/** None that moves, grows or falls: what happens to it would change the random numbers of the world. */
const ANY = [...OPAQUE, 'furnace', 'air', 'glass', 'chest', 'red_bed', 'barrel', 'cobweb', 'iron_bars', 'enchanting_table',
  'smithing_table', 'brewing_stand'];
/** Ticks after which an action is ended. */
const PATIENCE = 10;
/** The same for walks: the path is known, and no block has been dug yet. */
const WALK_PATIENCE = 3;
const ITEMS = ['diamond_pickaxe', 'cobblestone', 'bread', 'oak_planks', 'stick', 'iron_ore', 'coal'];

/** Returns random numbers from a seed: mulberry32 by Tommy Ettinger (public domain). */
function chance(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

function* around(far, low = 0) {
  for (let x = -far; x <= far; x++) {
    for (let y = low; y <= far; y++) for (let z = -far; z <= far; z++) yield [x, y, z];
  }
}

const isRoom = ([x, y, z]) => Math.max(Math.abs(x), Math.abs(z)) <= ROOM && y >= 0 && y <= ROOM;

/** Returns a world whose agent stands in a closed room in stone; `share` of its walls is something else. */
async function rock(seed, share) {
  const draw = chance(seed);
  const blocks = [];
  for (const cell of around(ROCK)) {
    const [x, y, z] = cell;
    const isSeen = !isRoom(cell) && isRoom([x, y, Math.sign(z) * (Math.abs(z) - 1)]) && draw() < share;
    const name = isSeen ? SEEN[Math.floor(draw() * SEEN.length)] : isRoom(cell) ? 'air' : 'stone';
    blocks.push({ x, y, z, name });
  }
  const items = ITEMS.map((name, i) => ({ name, count: name === 'diamond_pickaxe' ? 1 : 8, slot: 36 + i }));
  return begin({ actions: 'code', ticks_per_step: 1 }, { blocks, items: items.map(({ name, count }) => ({ name, count })) });
}

/** Returns those of some cells to which no line leads: neither open to the agent's cell nor beside one that is. */
function hiddenOf(world, cells) {
  const { opaque } = world.agents[0].senses;
  const column = ({ x, z }) => world.serv.columnAt(world.serv.overworld, x >> 4, z >> 4);
  const isOpaque = (cell) => opaque[column(cell).getBlockStateId({ x: cell.x & 15, y: cell.y, z: cell.z & 15 })] === 1;
  const seen = new Set([`${world.origin}`]);
  const open = [world.origin];
  for (const cell of open) {
    for (const side of SIDES) {
      const next = cell.offset(...side);
      if (seen.has(`${next}`)) continue;
      seen.add(`${next}`);
      if (!isOpaque(next)) open.push(next);
    }
    assert.ok(open.length < 500, 'the room is not closed');
  }
  return cells.filter((cell) => !seen.has(`${cell}`));
}

/** Puts other blocks where the agent does not see: in both worlds the same cells, drawn alike. */
function replaceHidden(world, cells, kinds, draw) {
  for (const cell of cells) {
    const name = kinds[Math.floor(draw() * kinds.length)];
    const { defaultState } = world.serv.registry.blocksByName[name];
    world.serv.setBlock(world.serv.overworld, cell, defaultState);
  }
}

/** Returns arguments of a type to try: for cells all of `cells`, else a few. */
function samples(spec, cells, entity) {
  switch (spec.type) {
    case 'cell': return spec.name === 'faceVector' ? [[0, 1, 0], [0, 0, 1], [-1, 0, 0]]
      : cells.map(({ x, y, z }) => [x, y, z]);
    case 'point': return cells.slice(0, 4).map(({ x, y, z }) => [x + 0.5, y + 0.5, z + 0.5]);
    case 'boolean': return [true];
    case 'choice': return spec.of;
    case 'text': return ['diamond_ore'];
    case 'item': return ['stick', 'iron_pickaxe', 'cobblestone'];
    case 'block': return ['diamond_ore'];
    case 'entity': return ['cow'];
    case 'list': return [ANY.slice(0, spec.max).filter((name) => spec.of.type === 'block' || name === 'stone')];
    case 'record': return records(spec, cells);
    default: return spec.name === 'entity' || spec.name === 'id' ? [entity] : [Math.max(spec.min ?? 1, Math.min(spec.max ?? 1, 1))];
  }
}

/** Returns records of a type: walks to all cells, searches of different widths, else the defaults. */
function records({ fields }, cells) {
  if (fields.kind) {
    return fields.kind.of.filter((kind) => kind !== 'GoalFollow').flatMap((kind) =>
      cells.map(({ x, y, z }) => ({ kind, x, y, z, range: 1 })));
  }
  if (!fields.matching) return [{}];
  return [{ matching: ['stone', 'chest'], maxDistance: 5, count: 1 },
    ...ANY.map((name) => ({ matching: [name], maxDistance: 8, count: 200 }))];
}

/** Returns lists of arguments: each sample of each argument, with the first of the others. */
function argumentsOf(entry, cells, entity) {
  const all = entry.args.map((spec) => samples(spec, cells, entity));
  if (all.length === 0) return [[]];
  const firsts = all.map(([one]) => one);
  return all.flatMap((some, i) => some.map((one) => firsts.map((other, k) => (k === i ? one : other))));
}

/** Returns what a call answers, and after how many ticks. */
async function answer(world, entry, values) {
  const [agent] = world.agents;
  const told = (value) => JSON.stringify(value ?? null);
  const failed = (error) => `${error.name}: ${error.message}`;
  const sandbox = { agent, events: [], refusedLines: 0, exceed: (message) => { throw new EndReason('x', message); } };
  let outcome = null;
  const paths = [];
  const note = ({ status, path }) => paths.push(status, ...path.map(String));
  agent.bot.on('path_update', note);
  const patience = isWalk(entry) ? WALK_PATIENCE : PATIENCE;
  const abort = new AbortController();
  await world.run(async () => {
    try {
      const checked = checkArguments(entry, values, agent.bot.registry);
      if (!entry.async) outcome = told(entry.run(agent, checked, sandbox));
      else if (entry.wait) outcome = told(entry.wait(checked));
      else entry.run(agent, checked, abort.signal).then((value) => { outcome ??= told(value); }, (error) => { outcome ??= failed(error); });
    } catch (error) {
      outcome = failed(error);
    }
  });
  let ticks = 0;
  for (; outcome === null && ticks < patience; ticks++) await world.play([]);
  abort.abort();
  agent.bot.off('path_update', note);
  const shown = JSON.stringify(look(world), (_, value) => (typeof value === 'bigint' ? String(value) : value));
  return [{ outcome: outcome ?? 'goes on', ticks, paths }, shown];
}

/** Plays calls in two worlds and compares. */
async function compare(seed, kinds, share, wanted, cellsOf) {
  const worlds = [await rock(seed, share), await rock(seed, share)];
  const { origin } = worlds[0];
  // The outermost layer touches the open air.
  const all = [...around(ROCK - 1, -3)].map(([x, y, z]) => origin.offset(x, y, z)).filter(({ y }) => y > 0);
  const hidden = hiddenOf(worlds[0], all);
  const near = hidden.filter((cell) => cell.distanceTo(origin) <= 5);
  assert.ok(near.length > 30, `${near.length} hidden cells within reach`);
  const api = makeApi();
  for (const entry of [...api.entries.values()].filter(wanted)) {
    const draw = chance(seed + entry.name.length);
    for (const world of worlds) await world.run(async () => { replaceHidden(world, hidden, kinds, draw); await world.settle(); });
    const cells = cellsOf(hidden, near, draw, origin);
    for (const values of argumentsOf(entry, cells, worlds[0].bots[0].entity.id)) {
      const [a, b] = [await answer(worlds[0], entry, values), await answer(worlds[1], entry, values)];
      const call = `${entry.name} ${JSON.stringify(values)}`;
      assert.deepStrictEqual(b[0], a[0], call);
      assert.ok(b[1] === a[1], `other observations after ${call}`);
    }
    for (const world of worlds) await world.play([]);
    for (const world of worlds) world.run(() => api.release(world.agents[0]));
  }
  for (const world of worlds) world.close();
}

function isWalk({ name }) { return ['goto', 'setGoal'].includes(name); }
const pick = (cells, count, draw) => Array.from({ length: count }, () => cells[Math.floor(draw() * cells.length)]);
const SEEDS = process.env.LONG ? Array.from({ length: 10 }, (_, i) => i + 1) : [1];
/** Cells within reach and anywhere that calls are about. */
const [NEAR, FAR] = process.env.LONG ? [4, 2] : [2, 1];

for (const seed of SEEDS) {
  test(`no answer and no observation differs by a hidden block, seed ${seed}`, () =>
    compare(seed, ANY, 0.3, (entry) => !isWalk(entry), (hidden, near, draw, origin) =>
      [...pick(near, NEAR, draw), ...pick(hidden, FAR, draw)]));

  test(`no path differs by a hidden block of rock, seed ${seed}`, () =>
    compare(seed, OPAQUE, 0, isWalk, (hidden, _near, draw) => pick(hidden, 1, draw)));
}

// Shared by the programs of the oracles: walking. A path search is expensive, a straight line is
// not: no path is searched where a line is enough. Paths may be dug, and built of dirt: mined
// material that is needed must not be used for building.
const FREELY = { scafoldingBlocks: ['dirt'] };
bot.pathfinder.setMovements(FREELY);
// Ticks after which a search ends: the tasks that need one have a day.
const GIVE_UP = 22000;
const have = (name) => bot.inventory.count(name);
const log = (text) => console.log(text);
const feet = () => bot.entity.position.floored();

/** Runs an action that may fail in the game; returns whether it succeeded. */
async function tried(work) {
  try {
    await work();
    return true;
  } catch (error) {
    if (error.name !== 'ActionError') throw error;
    log(error.message);
    return false;
  }
}

const sees = (names, maxDistance = 48) => bot.findBlock({ matching: names, maxDistance });
const turns = [[1, 0], [0, 1], [-1, 0], [0, -1], [1, 1], [-1, 1], [-1, -1], [1, -1]];
let way = Math.floor(Math.random() * 8);
const ROCK = /stone|ore|ite$|obsidian|terracotta/;
const PICKS = ['wooden', 'stone', 'iron', 'diamond'];
const ROCKS = ['dirt', 'cobblestone', 'andesite', 'diorite', 'granite'];
const builds = () => ROCKS.some((name) => have(name) > 0);
const walkTo = (goal, ticks) => tried(() => bot.pathfinder.goto(goal, ticks));

/** Whether rock is above the head: leaves do not count. */
function roofed() {
  for (let dy = 2; dy < 40; dy++) {
    const block = bot.blockAt(feet().offset(0, dy, 0));
    if (block && block.boundingBox === 'block' && !/leaves|log/.test(block.name)) return true;
  }
  return false;
}

let [outside, shut] = [null, null];

/**
 * Goes back to the open, or climbs up from below the ground, but does not try where it just failed.
 * A path search costs little if it is one block long.
 */
async function surface() {
  if (!roofed()) outside = bot.entity.position;
  else if (!shut || shut.distanceTo(bot.entity.position) > 12) await climb();
}

async function climb() {
  if (outside?.distanceTo(bot.entity.position) < 40) {
    bot.pathfinder.setMovements({ ...FREELY, canDig: false });
    await walkTo(new GoalNear(outside.x, outside.y, outside.z, 1), 400);
  }
  bot.pathfinder.setMovements({ scafoldingBlocks: ROCKS });
  for (let poor = 0; roofed() && poor < 6;) {
    const { x, y, z } = feet();
    const [dx, dz] = turns[way % 4];
    if (builds() && await walkTo(new GoalBlock(x, y + 1, z), 200)) continue;
    await tried(() => bore(new Vec3(x + 5 * dx, y + 5, z + 5 * dz)));
    if (feet().y > y) continue;
    way += 1;
    poor += 1;
  }
  shut = roofed() ? bot.entity.position : null;
  bot.pathfinder.setMovements(FREELY);
}

const solid = (block) => block?.boundingBox === 'block';

/** Whether the ground ends two blocks ahead: a fall of more than four blocks, or lava. */
function cliff(x, z) {
  for (let dy = 1; dy >= -4; dy--) {
    const block = bot.blockAt(feet().offset(2 * x, dy, 2 * z));
    // What is hidden by the ground becomes visible a step later.
    if (!block || solid(block) || block.name === 'water') return false;
    if (block.name === 'lava') return true;
  }
  return true;
}

/** Digs a block with the best tool; returns whether there was one within reach. */
async function clear(cell) {
  const block = bot.blockAt(cell);
  if (!solid(block) || /table|furnace|chest|bedrock/.test(block.name) || !bot.canDigBlock(block)) return false;
  const pick = ROCK.test(block.name) && PICKS.findLast((kind) => have(`${kind}_pickaxe`) > 0);
  return tried(async () => {
    if (pick) await bot.equip(`${pick}_pickaxe`, 'hand');
    await bot.dig(block);
  });
}

/** Whether a block takes long to dig: rock without a pickaxe. */
const tough = (cell) => ROCK.test(bot.blockAt(cell)?.name) && !PICKS.some((kind) => have(`${kind}_pickaxe`) > 0);

/** Makes room for a step up or ahead, but not in rock by hand; returns whether something was dug. */
async function room(x, z) {
  let dug = false;
  // The own cell too: a fence takes only the middle of a block.
  for (const [dx, dy, dz] of [[0, 0, 0], [x, 1, z], [0, 2, 0], [x, 2, z], [x, 0, z]]) {
    const cell = feet().offset(dx, dy, dz);
    if ((dug && dy === 0) || tough(cell)) continue;
    dug = await clear(cell) || dug;
  }
  return dug;
}

function press(x, z) {
  const ahead = bot.blockAt(feet().offset(x, 0, z));
  bot.setControlState('forward', true);
  bot.setControlState('sprint', true);
  bot.setControlState('jump', bot.entity.isInWater || solid(ahead) || ahead?.name === 'water');
}

/**
 * Walks straight towards what `goal` gives, without searching for a way, until it is `range` blocks
 * away along the ground, or `test` gives something. Returns that, true when there, else null.
 */
async function approach(goal, range, ticks, test = () => null) {
  let from = null;
  let stuck = 0;
  let look = 0;
  try {
    let wait = 2;
    for (let t = 0; t < ticks; t += wait) {
      const here = bot.entity.position;
      const to = goal();
      const [dx, dz] = [to.x - here.x, to.z - here.z];
      const far = Math.hypot(dx, dz);
      if (far <= range) return true;
      const [x, z] = [Math.round(dx / far), Math.round(dz / far)];
      if (t >= look) {
        look = t + 20;
        const found = test();
        if (found) return found;
        if (from && Math.hypot(here.x - from.x, here.z - from.z) < 0.7) {
          stuck += 1;
          if (stuck > 6) return null;
          bot.clearControlStates();
          if (!await room(x, z) && stuck > 2) return null;
        }
        from = here;
      }
      if (far > 2 && cliff(x, z)) return null;
      const yaw = Math.atan2(-dx, -dz);
      if (Math.cos(yaw - bot.entity.yaw) < 0.995) await bot.look(yaw, 0);
      press(x, z);
      // Every awaited call wakes the program: far away it may sleep.
      wait = far > 5 ? 5 : 2;
      await bot.waitForTicks(wait);
    }
  } finally {
    bot.clearControlStates();
  }
  return null;
}

/** Walks over the items around a position. */
async function gather(place, radius = 5) {
  await bot.waitForTicks(12);
  const passed = new Set();
  for (let tries = 0; tries < 5; tries++) {
    const item = bot.nearestEntity((entity) => entity.name === 'item' && !passed.has(entity.id) &&
      entity.position.distanceTo(place) < radius && Math.abs(entity.position.y - bot.entity.position.y) < 3);
    if (!item) return;
    passed.add(item.id);
    await approach(() => item.position, 0.6, 40);
    await bot.waitForTicks(3);
  }
}

/** Digs one block nearer to a position: horizontally, or down, or up by a step. */
async function bore(cell) {
  const { x, y, z } = feet();
  const [dx, dz] = [cell.x - x, cell.z - z];
  if (Math.abs(dx) + Math.abs(dz) <= 1 && cell.y < y) return sink();
  if (Math.abs(dx) + Math.abs(dz) <= 2 && cell.y > y + 2) {
    if (!builds()) throw new ActionError(`nothing to climb to ${cell} with`);
    bot.pathfinder.setMovements({ scafoldingBlocks: ROCKS });
    return walkTo(new GoalBlock(x, y + 1, z), 100);
  }
  const [sx, sz] = Math.abs(dx) >= Math.abs(dz) ? [Math.sign(dx), 0] : [0, Math.sign(dz)];
  const slope = cell.y < y - 1 ? -1 : cell.y > y + 2 ? 1 : 0;
  if (slope > 0) await clear(feet().offset(0, 2, 0));
  for (const dy of slope > 0 ? [2, 1] : slope < 0 ? [1, 0, -1] : [1, 0]) await clear(feet().offset(sx, dy, sz));
  const to = new Vec3(x + sx + 0.5, y, z + sz + 0.5);
  return approach(() => to, 0.3, 30);
}

/** Digs the block under the feet, and falls down; returns whether it did. */
async function sink() {
  const { x, y, z } = feet();
  await walkTo(new GoalBlock(x, y, z), 20); // moves to the middle of the block
  await clear(feet().offset(0, -1, 0));
  await bot.waitForTicks(8);
  return feet().y < y;
}

/** Comes within reach of a block: straight, else by digging. */
async function near(cell, range = 2.2) {
  const there = () => bot.canDigBlock(bot.blockAt(cell) ?? { position: cell });
  const within = () => feet().distanceTo(cell) < 5 && Boolean(bot.blockAt(cell)) && there();
  if (within()) return;
  await approach(() => cell.offset(0.5, 0, 0.5), range, 240);
  for (let steps = 0; steps < 24 && !within(); steps++) {
    if (!await bore(cell) && steps > 8) break;
  }
  if (!within()) throw new ActionError(`no way to ${cell}`);
}

// The corners of a square spiral around the place where the search began: how far apart, which is
// next, and the directions to it.
const STRIDE = 48;
let spot = null;
let heading = turns[way % 4];
let [legs, side] = [1, 0];

/** Goes on to the next point of the spiral. */
function nextSpot() {
  const [x, z] = heading;
  spot = spot.offset(x * STRIDE, 0, z * STRIDE);
  side += 1;
  if (side % legs > 0) return;
  heading = [-z, x];
  if (side < 2 * legs) return;
  [legs, side] = [legs + 1, 0];
}

/** Walks towards a place, and along what is in the way; returns what `test` gives, or null. */
async function headFor(place, test, ticks) {
  const end = bot.currentTick + ticks;
  const hand = Math.random() < 0.5 ? 1 : -1;
  for (let blocked = 0; bot.currentTick < end && blocked < 14; blocked++) {
    const found = await approach(() => place, 8, end - bot.currentTick, test);
    if (found === true) return test();
    if (found) return found;
    await surface();
    const { x, y, z } = bot.entity.position;
    const ahead = Math.atan2(place.z - z, place.x - x);
    if (blocked % 7 === 6) {
      // Shut in by walls or cliffs: a path is searched.
      await walkTo(new GoalNear(x + 12 * Math.cos(ahead), y, z + 12 * Math.sin(ahead), 6), 300);
      continue;
    }
    const turned = ahead + (blocked % 7 < 3 ? hand : -hand) * (1 + blocked % 3) * 0.8;
    const aside = new Vec3(x + 10 * Math.cos(turned), y, z + 10 * Math.sin(turned));
    const seen = await approach(() => aside, 1.5, 80, test);
    if (seen && seen !== true) return seen;
    await bot.waitForTicks(1);
  }
  return test();
}

/**
 * Walks until something is found, and returns what `test` gives: along a spiral, which passes
 * every place once. At the end of the time it waits.
 */
async function explore(test) {
  let found = test();
  for (; !found; nextSpot()) {
    if (bot.currentTick > GIVE_UP) {
      log('gives up');
      await bot.waitForTicks(24000);
    }
    await bot.waitForTicks(1); // a tick allows few searches
    await surface();
    spot = spot ?? bot.entity.position;
    found = await headFor(spot, test, 500);
    if (found) break;
  }
  return found;
}

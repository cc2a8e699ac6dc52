// Shared by the experts' programs, each of which has what it uses of it. It is preceded by MEMORY, {name:
// [x, y, z]}, USER, and ASKED, {n, m} as far as the request says them, and followed by the program of a
// task, which uses what any program may use (docs/mineflayer-api.md).
const PLAYER = 'Player1';
const me = bot.username;
const home = bot.entity.position;
const have = (name) => bot.inventory.count(name);
const held = (pattern) => bot.inventory.items().find(({ name }) => pattern.test(name));
const vec = ([x, y, z]) => new Vec3(x, y, z);
const numbers = (text) => (text.match(/-?\d+/g) ?? []).map(Number);
const WALK = { canDig: false, scafoldingBlocks: [], allow1by1towers: false, maxDropDown: 6 };
const DIG = { ...WALK, canDig: true };
bot.pathfinder.setMovements(WALK);
const heard = [];
bot.on('chat', (who, text) => { if (who !== me) heard.push(text); });

/** Waits until a test gives something, or for some ticks. */
async function until(test, ticks) {
  for (let t = 0; t < ticks && !test(); t += 2) await bot.waitForTicks(2);
}

/** Runs an action that may fail in the game; returns whether it succeeded. */
async function tried(work) {
  try {
    await work();
    return true;
  } catch (error) {
    if (error.name !== 'ActionError') throw error;
    console.log(error.message);
    return false;
  }
}

/** Asks the player one question; returns the answer. */
async function ask(question) {
  const before = heard.length;
  bot.chat(question);
  await until(() => heard.length > before, 200);
  return heard[before] ?? '';
}

/** What the request says by a pattern, or else the answer to a question. */
async function open(pattern, question) {
  return (request.match(pattern) ?? (await ask(question)).match(pattern))[0];
}

/** How many are asked for. */
async function amount(question = 'How many?') {
  return ASKED.n ?? Number(await open(/-?\d+/, question));
}

/** Where a place is: remembered, or asked for. */
async function place(name) {
  return vec(MEMORY[name] ?? numbers(await ask(`Where is ${name}?`)).slice(-3));
}

/** Walks to within a distance of a position; far ones in parts. */
async function walk(at, range = 2, movements = WALK) {
  bot.pathfinder.setMovements(movements);
  for (let tries = 0; tries < 4 && bot.entity.position.distanceTo(at) > Math.max(range, 0.8); tries++) {
    if (await tried(() => bot.pathfinder.goto(new GoalNear(at.x, at.y, at.z, range), 1200))) break;
  }
}

/** Takes items out of the chest at a place; if it is not there, out of the nearest chest that has them. */
async function fetch(at, wanted) {
  await walk(at, 3);
  const chests = bot.findBlocks({ matching: 'chest', maxDistance: 16, point: at, count: 16 });
  chests.sort((a, b) => a.distanceTo(at) - b.distanceTo(at));
  for (const chest of chests) {
    let held = {};
    if (!await tried(async () => { held = await checkItemInsideChest(chest); })) continue;
    const items = typeof wanted === 'function' ? wanted(held) : wanted;
    if (!Object.keys(items).every((name) => held[name] >= items[name]) || !Object.keys(items).length) continue;
    if (await tried(() => getItemFromChest(chest, items))) return;
  }
  throw new ActionError(`no chest at ${at} has what is wanted`);
}

const player = () => bot.nearestEntity({ username: PLAYER });

/** Goes to the player and looks at it. */
async function toPlayer() {
  if (!player()) await walk(home, 1);
  await until(player, 100);
  await walk(player().position, 2);
  await bot.lookAt(player().position.offset(0, 1, 0));
  await bot.waitForTicks(4);
}

/** Brings items to the player. */
async function give(items) {
  await toPlayer();
  for (const [name, count] of Object.entries(items)) if (count > 0) await bot.toss(name, null, count);
  await bot.waitForTicks(60);
}

/** Picks up the items around a position. */
async function gather(at, radius = 6) {
  await bot.waitForTicks(12);
  const failed = new Set();
  for (let tries = 0; tries < 40; tries++) {
    const item = bot.nearestEntity((one) => one.name === 'item' && !failed.has(one.id) && one.position.distanceTo(at) <= radius);
    if (!item) return;
    const { x, y, z } = item.position.offset(0, 0.3, 0).floored();
    if (!await tried(() => bot.pathfinder.goto(new GoalBlock(x, y, z), 100)) &&
      !await tried(() => bot.pathfinder.goto(new GoalNear(x, y, z, 1), 100))) failed.add(item.id);
    await bot.waitForTicks(4);
    if (item.isValid) failed.add(item.id);
  }
}

const carried = () => bot.inventory.items().reduce((sum, { count }) => sum + count, 0);

/** Picks up what fell where a block was dug, also out of sight. */
async function fetchFrom(cell) {
  const before = carried();
  await gather(cell, 4);
  for (const dy of [0, -1]) {
    if (carried() > before) return;
    await tried(() => bot.pathfinder.goto(new GoalBlock(cell.x, cell.y + dy, cell.z), 200));
    await bot.waitForTicks(12);
  }
}

/**
 * Digs blocks of a kind, low ones first, until a test holds; picks up what falls.
 * `where` limits which; `tool` is the name of what is held, or '' for the best.
 */
async function mine(kind, enough, { where = () => true, tool = '', far = 24, point = null, ways = WALK } = {}) {
  const failed = new Set();
  const base = bot.entity.position;
  let dug = 0;
  bot.pathfinder.setMovements(ways);
  for (let poor = 0; !enough() && poor < 10;) {
    await bot.waitForTicks(1);
    const from = point ?? bot.entity.position;
    const cells = bot.findBlocks({ matching: kind, maxDistance: far, point: from, count: 200 })
      .filter((cell) => !failed.has(`${cell}`) && where(cell));
    cells.sort((a, b) => a.distanceTo(bot.entity.position) + 2 * a.y - b.distanceTo(bot.entity.position) - 2 * b.y);
    const [cell] = cells;
    if (!cell) {
      // What is seen at a slant is hidden: look from somewhere else.
      const [dx, dz] = [[0, 0], [-5, 0], [0, 5], [0, -5], [5, 0]][poor++ % 5];
      failed.clear();
      await gather(bot.entity.position, 6);
      await walk(base.offset(dx, 0, dz), 1, ways);
      continue;
    }
    const done = await tried(async () => {
      if (!bot.blockAt(cell) || !bot.canDigBlock(bot.blockAt(cell))) await walk(cell.offset(0.5, 0, 0.5), 2, ways);
      if (!bot.blockAt(cell)) await bot.pathfinder.goto(new GoalGetToBlock(cell.x, cell.y, cell.z), 200);
      const block = bot.blockAt(cell);
      if (!block) throw new ActionError(`${cell} is out of sight`);
      const item = tool ? held(new RegExp(tool)) : null;
      if (item && bot.heldItem?.name !== item.name) await bot.equip(item.name, 'hand');
      await bot.dig(block);
    });
    if (!done) {
      failed.add(`${cell}`);
      continue;
    }
    dug += 1;
    if (ways === DIG) await fetchFrom(cell);
    else if (dug % 4 === 0 || enough()) await gather(cell, 6);
  }
  if (!enough()) await gather(bot.entity.position, 8);
}

/** Places blocks, low ones first, from where they can be reached. */
async function build(cells, name, stand = null) {
  const left = [...cells];
  for (let tries = 0; left.length && tries < 5; tries++) {
    for (const cell of left.splice(0)) {
      const now = bot.blockAt(cell);
      if (now && now.boundingBox === 'block') continue;
      const kind = typeof name === 'function' ? name() : name;
      if (stand) await walk(stand(cell), 0);
      else if (bot.entity.position.distanceTo(cell.offset(0.5, 0.5, 0.5)) < 1.6) await stepAway(cell);
      if (!await tried(() => placeItem(kind, cell))) {
        left.push(cell);
        if (!stand) await stepAway(cell);
      }
    }
  }
  return left.length === 0;
}

/** Goes a few blocks away from a position, on the ground, to another side each time. */
let side = 0;
async function stepAway(cell) {
  const [x, z] = [[3, 0], [0, 3], [-3, 0], [0, -3]][side++ % 4];
  await tried(() => bot.pathfinder.goto(new GoalNearXZ(cell.x + x, cell.z + z, 0.8), 100));
}

/** Positions of a ring of walls, row by row; its corner, side and height. */
function ring(corner, width, height) {
  const cells = [];
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      for (let z = 0; z < width; z++) {
        if (x % (width - 1) === 0 || z % (width - 1) === 0) cells.push(corner.offset(x, y, z));
      }
    }
  }
  return cells;
}

/** Positions of a square. */
function square(corner, width) {
  const cells = [];
  for (let x = 0; x < width; x++) for (let z = 0; z < width; z++) cells.push(corner.offset(x, 0, z));
  return cells;
}

/** Where to stand to build around a middle: two blocks outside of a cell, on the ground. */
const outside = (middle, half) => (cell) => {
  const [dx, dz] = [cell.x - middle.x, cell.z - middle.z];
  const away = (d) => (Math.abs(d) >= half ? 2 * Math.sign(d) : 0);
  return new Vec3(cell.x + away(dx), middle.y, cell.z + away(dz));
};

const ripe = (cell) => bot.blockAt(cell)?.properties.age === 7;

/** Harvests ripe wheat until there is enough. */
async function harvest(count) {
  const farm = await place('Farm');
  await walk(farm, 4);
  await mine('wheat', () => have('wheat') >= count, { where: ripe, point: farm, far: 16 });
}

await until(() => heard.length > 0, 200);
const request = heard[0] ?? '';
const material = () => request.match(/ (\w+) (?:logs|stained)/)?.[1];

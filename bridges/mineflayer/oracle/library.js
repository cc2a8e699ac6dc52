// Shared by the programs of the oracles: getting items by any means. It is preceded by the
// constants of a task and followed by the program of its family.
const WOODS = ['oak', 'spruce', 'birch', 'jungle', 'acacia', 'dark_oak'];
const COLOURS = ['poppy', 'dandelion', 'allium', 'cornflower', 'azure_bluet', 'lily_of_the_valley'];
// Blocks that drop an item, and the pickaxe that they need: 0 none, 1 wooden, 2 stone, 3 iron.
const MINE = {
  cobblestone: [['stone', 'cobblestone'], 1], coal: [['coal_ore'], 1], iron_ore: [['iron_ore'], 2],
  gold_ore: [['gold_ore'], 3], diamond: [['diamond_ore'], 3], redstone: [['redstone_ore'], 3],
  lapis_lazuli: [['lapis_ore'], 2], emerald: [['emerald_ore'], 3], obsidian: [['obsidian'], 4],
  andesite: [['andesite'], 1], diorite: [['diorite'], 1], granite: [['granite'], 1],
  dirt: [['dirt', 'grass_block'], 0], sand: [['sand'], 0], gravel: [['gravel'], 0],
  flint: [['gravel'], 0], clay_ball: [['clay'], 0], cactus: [['cactus'], 0],
  sugar_cane: [['sugar_cane'], 0], pumpkin: [['pumpkin'], 0], melon_slice: [['melon'], 0],
  brown_mushroom: [['brown_mushroom'], 0], red_mushroom: [['red_mushroom'], 0],
  wheat_seeds: [['grass', 'tall_grass'], 0], wheat: [['wheat'], 0], carrot: [['carrots'], 0],
  potato: [['potatoes'], 0],
  snowball: [['snow'], 0]
};
for (const wood of WOODS) MINE[`${wood}_log`] = [[`${wood}_log`], 0];
for (const flower of COLOURS) MINE[flower] = [[flower], 0];
const KILL = {
  beef: 'cow', leather: 'cow', porkchop: 'pig', mutton: 'sheep', white_wool: 'sheep', rabbit: 'rabbit',
  chicken: 'chicken', feather: 'chicken', cod: 'cod', salmon: 'salmon', string: 'spider', bone: 'skeleton',
  rotten_flesh: 'zombie'
};
const SMELT = {
  iron_ingot: 'iron_ore', gold_ingot: 'gold_ore', stone: 'cobblestone', smooth_stone: 'stone', glass: 'sand',
  brick: 'clay_ball', green_dye: 'cactus', baked_potato: 'potato', cooked_beef: 'beef',
  cooked_porkchop: 'porkchop', cooked_mutton: 'mutton', cooked_chicken: 'chicken', cooked_rabbit: 'rabbit',
  cooked_cod: 'cod', cooked_salmon: 'salmon'
};
const DEPTH = { iron_ore: 30, gold_ore: 26, diamond: 11, redstone: 11, lapis_lazuli: 14, coal: 45 };
const pickLevel = () => PICKS.findLastIndex((kind) => have(`${kind}_pickaxe`) > 0) + 1;
async function needPick(level) {
  if (pickLevel() >= level) return;
  if (level > 1) await needPick(level - 1);
  await obtain(`${PICKS[level - 1]}_pickaxe`, have(`${PICKS[level - 1]}_pickaxe`) + 1);
}

/** Digs a way under the ground to a height, then along it, until a block comes into sight. */
async function tunnel(names, height) {
  if (feet().y > 55 && pickLevel() < 3) await wood(6); // for handles, tables and fuel: none grows down there
  for (let poor = 0; feet().y > height + 1 && poor < 6;) {
    if (sees(names, 16)) return;
    await needPick(1);
    if (await sink()) continue;
    const [dx, dz] = turns[way++ % 4];
    await room(dx, dz);
    await approach(() => bot.entity.position.offset(dx, 0, dz), 0.2, 20);
    poor += 1;
  }
  const [x, z] = turns[way % 4];
  for (let i = 0; i < 30 && !sees(names, 16); i++) {
    await needPick(1);
    const { y } = feet();
    const to = feet().offset(x + 0.5, 0, z + 0.5);
    await clear(feet().offset(x, 1, z));
    await clear(feet().offset(x, 0, z));
    if (!await approach(() => to, 0.3, 30) || Math.abs(feet().y - y) > 6) break;
  }
  way += 1;
}

const shunned = new Set();

/** Mines a block that is in sight, and picks up what it drops. */
async function take(block) {
  await near(block.position);
  const had = bot.blockAt(block.position);
  if (had?.name !== block.name || !await clear(block.position)) {
    if (solid(block)) throw new ActionError(`no way to the ${block.name} at ${block.position}`);
    await bot.dig(block);
  }
  await gather(block.position);
}

async function mine(name, count) {
  const [blocks, level] = MINE[name];
  if (name.endsWith('_log')) await chop(blocks, () => have(name) >= count);
  let poor = 0;
  while (have(name) < count && poor < 25) {
    await needPick(level);
    await bot.waitForTicks(1); // a tick allows few searches
    const cell = bot.findBlocks({ matching: blocks, maxDistance: 48, count: 32 }).find((one) => !shunned.has(`${one}`));
    const block = cell && bot.blockAt(cell);
    const had = have(name);
    if (block) {
      if (!await tried(() => take(block))) shunned.add(`${cell}`);
    } else if (DEPTH[name]) await tunnel(blocks, DEPTH[name]);
    else if (level > 0) await tunnel(blocks, Math.max(50, feet().y - 8));
    else await explore(() => sees(blocks));
    // Grass and gravel rarely drop the item: a try that mined some is not a failure.
    poor = have(name) > had ? 0 : poor + (block && /grass|gravel/.test(block.name) ? 0.2 : 1);
  }
  if (have(name) < count) throw new ActionError(`found no more ${name}`);
}

/** Pursues a creature and strikes it until it is dead, then picks up its drops. */
async function chase(prey) {
  const sword = bot.inventory.items().find(({ name }) => /_sword$|_axe$/.test(name));
  if (sword) await bot.equip(sword, 'hand');
  let place = prey.position;
  for (let t = 0; t < 40 && prey.isValid; t++) {
    if (!await approach(() => prey.position, 2.2, 100)) {
      // Behind a cliff or a wall: a path is searched.
      const { x, y, z } = prey.position;
      if (!prey.isValid || !await walkTo(new GoalNear(x, y, z, 2), 300)) break;
    }
    place = prey.position;
    await bot.lookAt(place.offset(0, prey.height * 0.7, 0));
    if (!prey.isValid || bot.entity.position.distanceTo(prey.position) > 3.4) continue;
    if (await tried(() => bot.attack(prey))) await bot.waitForTicks(sword ? 13 : 10);
    for (let i = 0; i < 25 && prey.health <= 0 && prey.isValid; i++) await bot.waitForTicks(1);
  }
  if (prey.isValid) throw new ActionError(`the ${prey.name} got away`);
  await gather(place, 8);
}

const lost = new Set();

async function hunt(name, count) {
  for (let poor = 0; have(name) < count && poor < 12; poor++) {
    const prey = await explore(() => bot.nearestEntity((one) => one.name === KILL[name] && !lost.has(one.id)));
    if (await tried(() => chase(prey))) poor = -1;
    else lost.add(prey.id);
  }
  if (have(name) < count) throw new ActionError(`found no more ${name}`);
}

const felled = new Set();
const shaft = ({ x, z }) => `${x} ${z}`;

/** Fells the reachable part of a trunk, and picks up the logs; fails if it got nothing. */
async function fell(cell, kinds, search) {
  const isLog = (at) => kinds.includes(bot.blockAt(at)?.name);
  const there = await approach(() => cell.offset(0.5, 0, 0.5), 1.6, 240);
  if (!there) await walkTo(new GoalNear(cell.x, cell.y, cell.z, 2), 300);
  let foot = cell;
  // Leaves may have hidden the lowest log.
  for (let at = cell, dy = 0; dy < 8; dy++, at = at.offset(0, -1, 0)) if (isLog(at)) foot = at;
  if (search) await near(foot);
  let dug = 0;
  for (let dy = 0; dy < 8; dy++) {
    const block = bot.blockAt(foot.offset(0, dy, 0));
    if (!block || !kinds.includes(block.name) || !bot.canDigBlock(block)) continue;
    await bot.dig(block);
    dug += 1;
  }
  if (dug === 0) throw new ActionError(`reached nothing of the trunk at ${foot}`);
  await gather(foot);
}

/** Fells trees, the nearest first, until there is enough. */
async function chop(kinds, enough) {
  const tree = () => bot.findBlocks({ matching: kinds, maxDistance: 48, count: 64 })
    .find((cell) => !felled.has(shaft(cell)));
  for (let poor = 0; !enough() && poor < 12; poor++) {
    const cell = await explore(tree);
    if (await tried(() => fell(cell, kinds, poor % 4 === 3))) poor = -1;
    // The rest of it is out of reach.
    felled.add(shaft(cell));
  }
}

/** Gets logs of any wood, the nearest first; available planks count a quarter each. */
async function wood(logs) {
  const held = () => WOODS.reduce((sum, kind) => sum + have(`${kind}_log`) + have(`${kind}_planks`) / 4, 0);
  await chop(WOODS.map((kind) => `${kind}_log`), () => held() >= logs);
}

/** Puts a block of the inventory on the ground beside the agent. */
async function put(name) {
  for (const dy of [0, 1, -1]) {
    for (const [x, z] of turns) {
      for (const far of [1, 2]) {
        const cell = feet().offset(x * far, dy, z * far);
        const [there, under] = [bot.blockAt(cell), bot.blockAt(cell.offset(0, -1, 0))];
        if (!there || !under || there.boundingBox === 'block' || under.boundingBox !== 'block') continue;
        if (/water|lava/.test(there.name)) continue;
        if (await tried(() => placeItem(name, cell))) return;
      }
    }
  }
  // A hole or a tunnel: make room.
  const [x, z] = turns[way++ % 4];
  await tried(() => bot.dig(bot.blockAt(feet().offset(x, 0, z))));
  if (!await tried(() => placeItem(name, feet().offset(x, 0, z)))) {
    throw new ActionError(`no place for ${name}`);
  }
}

async function station(name) {
  if (sees([name], 12)) return;
  await obtain(name, 1);
  await put(name);
}

async function fuel(count) {
  const burns = ['coal', 'charcoal', ...WOODS.map((kind) => `${kind}_planks`)];
  for (const name of burns) if (have(name) * (name.endsWith('coal') ? 8 : 1.5) >= count) return name;
  await wood(Math.ceil(count / 6) + 1);
  const kind = WOODS.find((one) => have(`${one}_log`) > 0);
  if (kind) await tried(() => craftItem(`${kind}_planks`, Math.min(have(`${kind}_log`), Math.ceil(count / 6) + 1)));
  return burns.find((name) => have(name) * 1.5 >= count) ?? `${kind}_planks`;
}

async function smelt(name, count) {
  const from = SMELT[name];
  for (let tries = 0; have(name) < count && tries < 8; tries++) {
    const left = Math.min(32, count - have(name));
    // Before smelting: a furnace is made of the same stones.
    if (!sees(['furnace'], 12)) await obtain('furnace', 1);
    const burn = await fuel(left);
    await obtain(from, left);
    await station('furnace');
    await tried(() => smeltItem(from, burn, left));
  }
  if (have(name) < count) throw new ActionError(`could not smelt ${name}`);
}

/** The difficulty of getting what a recipe lacks. */
function lack({ delta }) {
  return delta.filter(({ count }) => count < 0).reduce((sum, { id, count }) => {
    const { name } = mcData.items[id];
    const missing = Math.max(0, -count - have(name));
    const kind = name.replace(/_planks$/, '');
    if (missing > 0 && kind !== name && have(`${kind}_log`) > 0) return sum + missing / 8;
    const hard = MINE[name] || /_planks$|^stick$/.test(name) ? 1 : SMELT[name] || KILL[name] ? 3 : 20;
    return sum + missing * hard;
  }, 0);
}

const open = new Set();
async function craft(name, count) {
  if (open.has(name)) throw new ActionError(`${name} takes itself`);
  open.add(name);
  try {
    for (let tries = 0; have(name) < count && tries < 20; tries++) await craftOnce(name);
  } finally {
    open.delete(name);
  }
  if (have(name) < count) throw new ActionError(`could not craft ${name}`);
}

async function craftOnce(name) {
  const { id } = mcData.itemsByName[name];
  let table = null;
  let recipes = bot.recipesAll(id, null, null);
  if (recipes.length === 0) {
    await station('crafting_table');
    table = sees(['crafting_table'], 24);
    recipes = bot.recipesAll(id, null, table);
  }
  if (recipes.length === 0) throw new ActionError(`there is no way to get ${name}`);
  const planks = (recipe) => recipe.delta.some((part) => /_planks$|_log$/.test(mcData.items[part.id].name));
  // Any wood will do; sticks are made of bamboo too.
  if (recipes.filter(planks).length > 1 && recipes.every((recipe) => lack(recipe) > 0)) await wood(5);
  const best = recipes.reduce((a, b) => (lack(b) < lack(a) ? b : a));
  // Getting one part may use up another.
  for (let tries = 0; tries < 4 && lack(best) > 0; tries++) {
    const parts = best.delta.filter(({ count }) => count < 0)
      .map(({ id, count }) => [mcData.items[id].name, -count])
      .sort(([a], [b]) => Boolean(MINE[a]) - Boolean(MINE[b]) || /_planks$/.test(a) - /_planks$/.test(b));
    for (const [part, needed] of parts) await obtain(part, needed);
  }
  // Getting the ingredients may have led far from the table.
  if (table && !sees(['crafting_table'], 24)) await station('crafting_table');
  await tried(() => craftItem(name, 1));
}

/** Makes sure that there are `count` of an item in the inventory. */
async function obtain(name, count) {
  if (have(name) >= count) return;
  log(`${count} ${name}`);
  if (SPECIAL[name]) await SPECIAL[name](count);
  else if (MINE[name]) await mine(name, count);
  else if (KILL[name]) await hunt(name, count);
  else if (SMELT[name]) await smelt(name, count);
  else await craft(name, count);
}

/** Fills a bucket from a liquid in sight. */
const scoop = (liquid) => async (count) => {
  while (have(`${liquid}_bucket`) < count) {
    await obtain('bucket', 1);
    const block = await explore(() => sees([liquid], 32));
    if (!block) throw new ActionError(`no ${liquid} in sight`);
    await walkTo(new GoalNear(block.position.x, block.position.y, block.position.z, 2), 600);
    await bot.equip('bucket');
    await bot.lookAt(block.position.offset(0.5, 0.9, 0.5));
    bot.activateItem();
    await bot.waitForTicks(10);
  }
};

/** Digs the leaves of oaks within reach, tree after tree, and picks up what they drop. */
const rake = (name, tool) => async (count) => {
  const leaves = () => bot.findBlocks({ matching: ['oak_leaves'], maxDistance: 6, count: 64 })
    .filter((cell) => !shunned.has(`${cell}`));
  // A search for trunks is cheaper than one for leaves.
  const tree = () => bot.findBlocks({ matching: ['oak_log'], maxDistance: 48, count: 64 })
    .find((cell) => !felled.has(shaft(cell)));
  if (tool) await obtain(tool, 1);
  while (have(name) < count) {
    const cell = await explore(tree);
    felled.add(shaft(cell));
    const there = await approach(() => cell.offset(0.5, 0, 0.5), 1.2, 240);
    if (!there) await walkTo(new GoalNear(cell.x, feet().y, cell.z, 3), 200);
    if (tool) await bot.equip(tool, 'hand');
    for (let more = 4; more > 0; more--) {
      await bot.waitForTicks(1);
      const reached = leaves().filter((one) => bot.canDigBlock(bot.blockAt(one) ?? { position: one }));
      if (reached.length === 0) break;
      for (const one of reached) if (have(name) < count && !await tried(() => bot.dig(bot.blockAt(one)))) shunned.add(`${one}`);
      await gather(bot.entity.position, 6);
    }
  }
};

const SPECIAL = {
  water_bucket: scoop('water'), lava_bucket: scoop('lava'), oak_leaves: rake('oak_leaves', 'shears'),
  oak_sapling: rake('oak_sapling'), apple: rake('apple')
};

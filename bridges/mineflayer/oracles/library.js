// What programs of the oracles share: getting things, whatever it takes. Before it stand the
// constants of a task; after it the program of its family.
const WOODS = ['oak', 'spruce', 'birch', 'jungle', 'acacia', 'dark_oak'];
const PICKS = ['wooden', 'stone', 'iron', 'diamond'];
const COLOURS = ['poppy', 'dandelion', 'allium', 'cornflower', 'azure_bluet', 'lily_of_the_valley'];
// Blocks that drop an item, and the pickaxe that it takes: 0 none, 1 wooden, 2 stone, 3 iron.
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
  potato: [['potatoes'], 0], oak_sapling: [['oak_leaves'], 0], apple: [['oak_leaves'], 0],
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
// Ways may be dug, and built of dirt: what was mined for something is not to be built with.
const FREELY = { scafoldingBlocks: ['dirt'] };
bot.pathfinder.setMovements(FREELY);
const have = (name) => bot.inventory.count(name);
const log = (text) => console.log(text);
const feet = () => bot.entity.position.floored();

/** Runs something that may fail in the game; returns whether it did not. */
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

/** Comes up from below the ground. */
async function surface() {
  for (let i = 0; i < 4 && feet().y < 58; i++) {
    await tried(() => bot.pathfinder.goto(new GoalY(Math.min(64, feet().y + 12)), 900));
  }
}

/** Walks about, digging nothing, until something is found: what `test` gives, or null after some legs. */
async function explore(test, legs = 12) {
  const seen = test();
  if (seen) return seen;
  await surface();
  bot.pathfinder.setMovements({ canDig: false, allow1by1towers: false, maxDropDown: 3, scafoldingBlocks: [] });
  try {
    return await roam(test, legs);
  } finally {
    bot.pathfinder.setMovements(FREELY);
  }
}

async function roam(test, legs) {
  for (let leg = 0; leg < legs; leg++) {
    const found = test();
    if (found) return found;
    const from = bot.entity.position;
    const [x, z] = turns[way % 8];
    const seen = await exploreUntil(new Vec3(x, 0, z), 20, test);
    if (seen) return seen;
    // Against water or a cliff: another way.
    if (bot.entity.position.distanceTo(from) < 16) way = (way + 1 + Math.floor(Math.random() * 5)) % 8;
  }
  return null;
}

const pickLevel = () => PICKS.findLastIndex((kind) => have(`${kind}_pickaxe`) > 0) + 1;
async function needPick(level) {
  if (pickLevel() >= level) return;
  if (level > 1) await needPick(level - 1);
  await obtain(`${PICKS[level - 1]}_pickaxe`, have(`${PICKS[level - 1]}_pickaxe`) + 1);
}

/** Makes a way under the ground towards a height, then along it, until a block comes into sight. */
async function tunnel(names, height) {
  const { y } = feet();
  if (y > height + 2) {
    for (let at = y - 4; at > height - 2; at -= 4) {
      if (sees(names, 16)) return;
      await needPick(1);
      if (!await tried(() => bot.pathfinder.goto(new GoalY(Math.max(height, at)), 900))) break;
    }
  }
  const [x, z] = turns[way % 4];
  for (let i = 0; i < 10 && !sees(names, 16); i++) {
    await needPick(1);
    const to = feet().offset(x * 5, 0, z * 5);
    if (!await tried(() => bot.pathfinder.goto(new GoalBlock(to.x, to.y, to.z), 900))) break;
  }
  way += 1;
}

async function mine(name, count) {
  const [blocks, level] = MINE[name];
  let poor = 0;
  while (have(name) < count && poor < 25) {
    await needPick(level);
    const block = sees(blocks);
    const had = have(name);
    if (block) await tried(() => mineBlock(block.name, 1));
    else if (DEPTH[name]) await tunnel(blocks, DEPTH[name]);
    else if (level > 0) await tunnel(blocks, Math.max(50, feet().y - 8));
    else await explore(() => sees(blocks), 4);
    // Leaves, grass and gravel seldom give what is wanted: a try that mined is none in vain.
    poor = have(name) > had ? 0 : poor + (block && /leaves|grass|gravel/.test(block.name) ? 0.2 : 1);
  }
  if (have(name) < count) throw new ActionError(`found no more ${name}`);
}

async function hunt(name, count) {
  for (let poor = 0; have(name) < count && poor < 12; poor++) {
    const found = await explore(() => bot.nearestEntity({ name: KILL[name] }));
    if (found) await tried(() => killMob(KILL[name], 60));
  }
  if (have(name) < count) throw new ActionError(`found no more ${name}`);
}

/** Gets logs of any wood, whichever is nearest; what planks there are counts a quarter each. */
async function wood(logs) {
  const all = WOODS.map((kind) => `${kind}_log`);
  const held = () => WOODS.reduce((sum, kind) => sum + have(`${kind}_log`) + have(`${kind}_planks`) / 4, 0);
  for (let poor = 0; held() < logs && poor < 20; poor++) {
    const block = await explore(() => sees(all), 8);
    if (block && await tried(() => mineBlock(block.name, 1))) poor = 0;
  }
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
  while (have(name) < count) {
    const left = Math.min(32, count - have(name));
    await obtain(from, left);
    const burn = await fuel(left);
    await station('furnace');
    await smeltItem(from, burn, left);
  }
}

/** How hard what a recipe lacks is to get. */
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
  if (recipes.length > 1 && recipes.every(planks) && recipes.every((recipe) => lack(recipe) > 0)) await wood(5);
  const best = recipes.reduce((a, b) => (lack(b) < lack(a) ? b : a));
  // Getting one part may use up another.
  for (let tries = 0; tries < 4 && lack(best) > 0; tries++) {
    const parts = best.delta.filter(({ count }) => count < 0)
      .map(({ id, count }) => [mcData.items[id].name, -count])
      .sort(([a], [b]) => Boolean(MINE[a]) - Boolean(MINE[b]) || /_planks$/.test(a) - /_planks$/.test(b));
    for (const [part, needed] of parts) await obtain(part, needed);
  }
  // Getting the parts may have led far from the table.
  if (table && !sees(['crafting_table'], 24)) await station('crafting_table');
  await tried(() => craftItem(name, 1));
}

/** Sees to it that there are `count` of an item in the inventory. */
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
    await tried(() => bot.pathfinder.goto(new GoalNear(block.position.x, block.position.y, block.position.z, 2), 600));
    await bot.equip('bucket');
    await bot.lookAt(block.position.offset(0.5, 0.9, 0.5));
    bot.activateItem();
    await bot.waitForTicks(10);
  }
};

async function leaves(count) {
  await obtain('shears', 1);
  for (let poor = 0; have('oak_leaves') < count && poor < 20; poor++) {
    await explore(() => sees(['oak_leaves']));
    await tried(() => mineBlock('oak_leaves', 1));
  }
}

const SPECIAL = { water_bucket: scoop('water'), lava_bucket: scoop('lava'), oak_leaves: leaves };

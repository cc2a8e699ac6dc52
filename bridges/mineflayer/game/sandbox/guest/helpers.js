// MineLand's and Voyager's helpers, part 1: blocks and crafting. They do only what any program can do.
const { bot, call, goTo, goals, mcData, placed, shown, xyz, Vec3, ArgumentError } = guest;
const { ActionError } = globalThis;
const RADIUS = 48;
const SECOND = 20; // ticks

/** Returns a helper that may be called with or without the bot as its first argument. */
guest.helper = (fn) => placed(async (...args) => fn(...(args[0] === bot ? args.slice(1) : args)));

/** Returns the record of a kind; an unknown name is an error that names the nearest. */
guest.kind = (kinds, name) => {
  const record = typeof name === 'string' ? mcData[kinds][name] : undefined;
  if (record) return record;
  if (typeof name !== 'string') throw new ArgumentError(`expected the name of one of ${kinds}, got ${shown(name)}`);
  if (kinds === 'blocks') call('findBlocks', { matching: [name], maxDistance: 0 });
  if (kinds === 'items') call('recipes', name);
  if (kinds === 'entities') call('entities', { name, maxDistance: 0 });
  throw new ArgumentError(`no kind of ${kinds} is called ${shown(name)}; mcData.${kinds}Array lists them`);
};
const whole = (value, low, high, what) => {
  if (Number.isInteger(value) && value >= low && value <= high) return value;
  throw new ArgumentError(`${what}: expected a whole number from ${low} to ${high}, got ${shown(value)}`);
};
guest.whole = whole;

/** Walks to a goal; blocks of the kind of a `task` {kind, left, places} that it digs on the way count. */
const walk = async (goal, ticks, task) => {
  if (!task) {
    await goTo(goal, ticks);
    return;
  }
  // With none left only what is reached at once is worth a search.
  const { dug, failed } = await goTo(goal, task.left > 0 ? ticks : SECOND, { block: task.kind, most: task.left });
  task.left -= dug.length;
  task.places.push(...dug);
  if (failed && task.left > 0) throw new ActionError(failed);
};

/** Walks to within `range` of a position, unless it is that near. */
const goNear = async (point, range, ticks = 60 * SECOND, task = undefined) => {
  const place = new Vec3(...xyz(point, 'moveTo'));
  if (bot.entity.position.distanceTo(place) <= range) return;
  await walk(goals.GoalNear(place.x, place.y, place.z, range), ticks, task);
};
guest.goNear = goNear;

/** Walks over what lies on the ground within `radius` of a place, for a while. */
const pickUp = async (place, radius = 4, task = undefined) => {
  await bot.waitForTicks(12); // items cannot be picked up in their first half second
  for (let tries = 0; tries < 4; tries++) {
    const lies = (entity) => entity.name === 'item' && entity.position.distanceTo(place) <= radius;
    const item = bot.nearestEntity(lies);
    if (!item) {
      // What fell into a hole may be hidden by its rim.
      const { x, y, z } = bot.entity.position.minus(place);
      if (tries > 0 || Math.hypot(x, z) < 1.5 || Math.abs(y) > 2) return;
      await walk(goals.GoalNear(place.x, place.y, place.z, 1), 5 * SECOND, task).catch(() => {});
      continue;
    }
    // An item may lie slightly below the surface: the agent must stand in the cell above.
    const at = item.position.offset(0, 0.3, 0).floored();
    try {
      await walk(goals.GoalBlock(at.x, at.y, at.z), 5 * SECOND, task);
    } catch {
      // It may lie where no one can stand: being near it is enough.
      await walk(goals.GoalNear(at.x, at.y, at.z, 1), 5 * SECOND, task).catch(() => {});
    }
    await bot.waitForTicks(4);
  }
};
guest.pickUp = pickUp;

const equipFor = async (block) => {
  const slot = call('bestTool', xyz(block, 'bestTool'));
  const item = slot === null ? null : bot.inventory.slots[slot];
  if (item) await bot.equip(item, 'hand');
  const held = bot.heldItem;
  if (!block.canHarvest(held ? held.type : null)) {
    const tools = Object.keys(block.harvestTools).map((id) => mcData.items[id].name).join(', ');
    throw new ActionError(`${block.name} drops nothing without one of ${tools}`);
  }
};
guest.equipFor = equipFor;

const digOne = async (block, task) => {
  await equipFor(block);
  if (!bot.canDigBlock(block)) await goNear(block.position, 3, 60 * SECOND, task);
  if (task?.left === 0) return true;
  const now = bot.blockAt(block.position);
  if (!now || now.type !== block.type) return false;
  if (!bot.canDigBlock(now)) {
    const { x, y, z } = block.position;
    await walk(goals.GoalGetToBlock(x, y, z), 30 * SECOND, task);
    if (task?.left === 0) return true;
  }
  await bot.dig(now);
  if (task) {
    task.left -= 1;
    task.places.push(xyz(block.position, 'dig'));
  }
  await pickUp(block.position, 4, task);
  return true;
};
guest.digOne = digOne;

/** Mines the nearest blocks of a kind and picks up what they drop. Returns how many it mined. */
const mineBlock = guest.helper(async (name, count = 1) => {
  const { id } = guest.kind('blocks', name);
  whole(count, 1, 64, 'mineBlock(count)');
  const failed = new Set();
  const task = { kind: name, left: count, places: [] };
  const carried = () => bot.inventory.items().reduce((sum, item) => sum + item.count, 0);
  const before = carried();
  let last = '';
  while (task.left > 0) {
    const cells = bot.findBlocks({ matching: id, maxDistance: RADIUS, count: 32 });
    const cell = cells.find((one) => !failed.has(`${one}`));
    if (!cell || failed.size >= 8) {
      const why = last ? ` (the last try: ${last})` : '';
      throw new ActionError(`mined ${count - task.left} of ${count} ${name}: no ${failed.size > 0 ? 'other ' : ''}${name} ` +
        `within ${RADIUS} blocks can be reached${why}; explore first`);
    }
    try {
      const block = bot.blockAt(cell);
      if (!block || !await digOne(block, task)) failed.add(`${cell}`);
    } catch (error) {
      if (!(error instanceof ActionError) || /drops nothing/.test(error.message)) throw error;
      last = error.message;
      failed.add(`${cell}`);
    }
  }
  // What was dug on the way lies where the agent has been, or fell from there.
  for (const place of task.places) {
    if (carried() - before >= count) break;
    await pickUp(new Vec3(...place), 3, task);
  }
  return count;
});

/** Returns, as a text, what is missing for the recipe that lacks least. */
const lackOf = (recipes) => {
  const lacks = recipes.map(({ delta }) => delta
    .filter(({ count }) => count < 0)
    .map(({ id, count }) => ({ id, lack: -count - bot.inventory.count(id) }))
    .filter(({ lack }) => lack > 0));
  lacks.sort((a, b) => a.reduce((n, { lack }) => n + lack, 0) - b.reduce((n, { lack }) => n + lack, 0));
  return (lacks[0] ?? []).map(({ id, lack }) => `${lack} more ${mcData.items[id].name}`).join(' and ');
};

/** Crafts an item `count` times, at a table within 48 blocks where one is needed. */
const craftItem = guest.helper(async (name, count = 1) => {
  const { id } = guest.kind('items', name);
  whole(count, 1, 64, 'craftItem(count)');
  const [byHand] = bot.recipesFor(id, null, 1, null);
  if (byHand) {
    await bot.craft(byHand, count);
    return;
  }
  const any = bot.recipesAll(id, null, null);
  const table = bot.findBlock({ matching: mcData.blocksByName.crafting_table.id, maxDistance: RADIUS });
  if (!table) {
    const needsTable = `a crafting_table within ${RADIUS} blocks is needed (placeItem)`;
    const lack = any.length > 0 ? `it takes ${lackOf(any)}` : needsTable;
    throw new ActionError(`cannot craft ${name}: ${lack}`);
  }
  await goNear(table.position, 3);
  const [recipe] = bot.recipesFor(id, null, 1, table);
  if (!recipe) {
    const all = bot.recipesAll(id, null, table);
    const why = all.length > 0 ? `it takes ${lackOf(all)}` : 'there is no recipe for it';
    throw new ActionError(`cannot craft ${name}: ${why}`);
  }
  await bot.craft(recipe, count, table);
});

/** How many items one piece of fuel smelts (Minecraft Wiki: Smelting). */
const smelts = (fuel) => {
  const table = {
    coal: 8, charcoal: 8, coal_block: 80, lava_bucket: 100, blaze_rod: 12, dried_kelp_block: 20, stick: 0.5
  };
  if (fuel in table) return table[fuel];
  return /_(planks|log|wood|stem|hyphae)$/.test(fuel) ? 1.5 : 0.5;
};

/** Smelts items in a furnace within 48 blocks, with as much fuel as they need. */
const smeltItem = guest.helper(async (itemName, fuelName, count = 1) => {
  const item = guest.kind('items', itemName);
  const fuel = guest.kind('items', fuelName);
  whole(count, 1, 64, 'smeltItem(count)');
  const fuelCount = Math.ceil(count / smelts(fuel.name));
  for (const [kind, need] of [[item, count], [fuel, fuelCount]]) {
    const has = bot.inventory.count(kind.id);
    if (has >= need) continue;
    throw new ActionError(`cannot smelt ${count} ${item.name}: it takes ${need - has} more ${kind.name}`);
  }
  const block = bot.findBlock({ matching: mcData.blocksByName.furnace.id, maxDistance: RADIUS });
  if (!block) {
    throw new ActionError(`cannot smelt ${item.name}: a furnace within ${RADIUS} blocks is needed (placeItem)`);
  }
  await goNear(block.position, 3);
  const furnace = await bot.openFurnace(block);
  try {
    await furnace.putFuel(fuel.id, null, fuelCount);
    await furnace.putInput(item.id, null, count);
    const limit = count * 11 + 10;
    for (let i = 0; i < limit && (furnace.outputItem()?.count ?? 0) < count; i++) await bot.waitForTicks(SECOND);
    const out = furnace.outputItem();
    if (!out) {
      throw new ActionError(`${item.name} was not smelted within ${limit} s: can it be, and does ${fuel.name} burn?`);
    }
    await furnace.takeOutput();
    return out.count;
  } finally {
    furnace.close();
  }
});

const FACES = [[0, -1, 0], [0, 0, -1], [0, 0, 1], [-1, 0, 0], [1, 0, 0], [0, 1, 0]];

/** Places an item of the inventory as a block at a position, against a neighbour of it. */
const placeItem = guest.helper(async (name, position) => {
  const { id } = guest.kind('items', name);
  const target = new Vec3(...xyz(position, 'placeItem(position)')).floored();
  if (bot.inventory.count(id) === 0) throw new ActionError(`no ${name} in the inventory to place`);
  await goNear(target, 4);
  const here = bot.entity.position.floored();
  if (here.equals(target) || here.offset(0, 1, 0).equals(target)) {
    throw new ActionError(`cannot place ${name} at ${target}: the agent stands there`);
  }
  for (const [x, y, z] of FACES) {
    const support = bot.blockAt(target.offset(x, y, z));
    if (!support || support.boundingBox !== 'block') continue;
    await bot.equip(bot.inventory.findInventoryItem(id), 'hand');
    await bot.placeBlock(support, new Vec3(-x, -y, -z));
    return;
  }
  throw new ActionError(`cannot place ${name} at ${target}: no block beside it to place it against`);
});

guest.provide({ mineBlock, craftItem, smeltItem, placeItem });

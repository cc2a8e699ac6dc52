// Plays the steps of an atomic task, STEPS, with what its start gives: [verb, name, ...]. The game's
// own rules decide whether that is enough.
const point = ({ x, y, z }) => new GoalNear(x, y, z, 2);

/** Walks to a place: straight, else along a path. */
async function walk(place, range = 1.5) {
  if (await approach(() => place.offset(0.5, 0, 0.5), range, 200)) return;
  await walkTo(point(place), 400);
}

function inSight(names) {
  const found = sees([names].flat(), 32);
  if (!found) throw new ActionError(`no ${names} in sight`);
  return found;
}

/** Puts a block on the ground beside the agent; returns its cell. */
async function put(name) {
  for (const [dx, dz] of turns) {
    for (const far of [1, 2]) {
      for (const dy of [0, 1, -1]) {
        const cell = feet().offset(dx * far, dy, dz * far);
        const [there, under] = [bot.blockAt(cell), bot.blockAt(cell.offset(0, -1, 0))];
        if (!there || !solid(under) || there.boundingBox === 'block' || /water|lava/.test(there.name)) continue;
        if (await tried(() => placeItem(name, cell))) return cell;
      }
    }
  }
  throw new ActionError(`no place for ${name}`);
}

async function table() {
  if (!sees(['crafting_table'], 8) && have('crafting_table') > 0) await put('crafting_table');
}

async function dig(name) {
  const block = inSight(name);
  await walk(block.position, 2);
  const tool = bot.inventory.items().find((item) => /_(pickaxe|axe|shovel|hoe)$|^shears$/.test(item.name));
  if (tool) await bot.equip(tool, 'hand');
  await bot.dig(bot.blockAt(block.position));
  await gather(block.position, 3);
}

async function cut(source, target) {
  const block = inSight('stonecutter');
  await walk(block.position);
  const window = await bot.openBlock(block);
  const stack = window.items().find(({ name }) => name === source);
  await bot.moveSlotItem(stack.slot, 0);
  for (let k = 0; k < 16; k++) {
    if (!await tried(() => window.pressButton(k))) break;
    await bot.waitForTicks(2);
    if (window.slots[1]?.name === target) break;
  }
  await bot.putAway(1);
  window.close();
}

/** Gives two stacks to a window with two inputs, and takes what it makes. */
async function unite(block, first, second) {
  await walk(inSight(block).position);
  const window = await bot.openBlock(inSight(block));
  const slot = (name) => window.items().find((item) => item.name === name).slot;
  await bot.moveSlotItem(slot(first), 0);
  await bot.moveSlotItem(slot(second), 1);
  await bot.waitForTicks(2);
  await bot.putAway(2);
  window.close();
}

const open = async (name, call) => {
  await walk(inSight(name).position);
  return call.call(bot, inSight(name));
};
const carried = (name) => bot.inventory.items().find((item) => item.name === name);
const creature = (name) => bot.nearestEntity((one) => one.name === name);
async function close(name) {
  const found = creature(name);
  if (!found) throw new ActionError(`no ${name} in sight`);
  await approach(() => found.position, 1.8, 200);
  return found;
}

const DO = {
  craft: async (name) => { await table(); await craftItem(name, 1); },
  smelt: (source, burns) => smeltItem(source, burns, 1),
  cut,
  upgrade: (name) => unite('smithing_table', name, 'netherite_ingot'),
  mine: dig,
  kill: (name) => killMob(name, 60),
  shoot: async (name) => { await shoot('bow', name); },
  go: async (name) => walk(inSight(name).position, 1.2),
  meet: async (name) => { await close(name); },
  take: async (name) => {
    const chest = inSight('chest');
    await getItemFromChest(chest.position, { [name]: 1 });
  },
  eat: async (name) => { await bot.equip(name, 'hand'); await bot.consume(); },
  wear: async (name, where) => { await bot.equip(name, where); },
  throw: async (name) => {
    await bot.equip(name, 'hand');
    await bot.look(bot.entity.yaw, 0.4);
    bot.activateItem();
    await bot.waitForTicks(5);
  },
  place: async (name, count) => {
    for (let k = 0; k < count; k++) {
      await put(name);
      if (k % 3 === 2) await approach(() => bot.entity.position.offset(4, 0, 4), 1, 60);
    }
  },
  plant: async (name, ground) => {
    const cell = bot.findBlocks({ matching: [ground], maxDistance: 16, count: 32 })
      .find((one) => bot.blockAt(one.offset(0, 1, 0))?.name === 'air');
    await walk(cell, 1.2);
    await bot.equip(name, 'hand');
    await bot.placeBlock(bot.blockAt(cell), new Vec3(0, 1, 0));
  },
  toss: async (name) => { await bot.toss(name, null, 1); },
  open: async (name) => { const window = await open(name, bot.openBlock); window.close(); },
  enchant: async (name) => {
    const window = await open('enchanting_table', bot.openEnchantmentTable);
    await window.putTargetItem(window.items().find((item) => item.name === name));
    await window.putLapis(window.items().find((item) => item.name === 'lapis_lazuli'));
    await bot.waitForTicks(5);
    await window.enchant(0);
    await window.takeTargetItem();
    window.close();
  },
  combine: async (name, other) => {
    const window = await open('anvil', bot.openAnvil);
    await window.combine(carried(name), carried(other));
    window.close();
  },
  rename: async (name) => {
    const window = await open('anvil', bot.openAnvil);
    await window.rename(carried(name), 'Fluffy');
    window.close();
  },
  trade: async () => {
    const window = await bot.openVillager(await close('villager'));
    await window.trade(0, 1);
    window.close();
  },
  feed: async (name, item) => {
    await bot.equip(item, 'hand');
    for (let k = 0; k < 24; k++) {
      const all = Object.values(bot.entities).filter((one) => one.name === name);
      const one = all[k % all.length];
      if (!one) break;
      await approach(() => one.position, 1.8, 100);
      await tried(() => bot.useOn(one));
      await bot.waitForTicks(10);
    }
    await bot.waitForTicks(100);
  },
  gentle: async (name) => {
    await tried(() => bot.unequip('hand'));
    for (let k = 0; k < 12; k++) {
      const one = await close(name);
      await tried(() => bot.mount(one));
      await bot.waitForTicks(60);
    }
  },
  shear: async (name) => {
    await bot.equip('shears', 'hand');
    const one = await close(name);
    await bot.useOn(one);
    await bot.waitForTicks(10);
    await gather(one.position, 6);
  },
  apply: async (name) => {
    await bot.equip(name, 'hand');
    const [x, z] = turns[0];
    await bot.lookAt(feet().offset(x + 0.5, 0, z + 0.5));
    if (name.endsWith('_bucket')) bot.activateItem();
    else await bot.activateBlock(bot.blockAt(feet().offset(x, -1, z)));
    await bot.waitForTicks(5);
  },
  press: async (keys, ticks) => {
    for (const key of keys) bot.setControlState(key, true);
    await bot.waitForTicks(ticks);
    bot.clearControlStates();
  },
  ride: async (name) => {
    const [x, z] = turns[0];
    if (carried(name)) {
      const rails = sees(['powered_rail'], 8);
      if (rails) await walk(rails.position, 2);
      await bot.equip(name, 'hand');
      await bot.placeEntity(rails ?? bot.blockAt(feet().offset(x * 2, -1, z * 2)), new Vec3(0, 1, 0));
    }
    await bot.waitForTicks(5);
    const found = await close(name.replace('oak_', ''));
    if (carried('carrot_on_a_stick')) await bot.equip('carrot_on_a_stick', 'hand');
    await bot.mount(found);
    for (let t = 0; t < 200; t++) { bot.moveVehicle(0, 1); await bot.waitForTicks(2); }
  },
  sleep: async (name) => { await bot.sleep(bot.blockAt(await put(name))); }
};

for (const [verb, ...rest] of STEPS) {
  for (let tries = 0; tries < 4; tries++) {
    if (await tried(() => DO[verb](...rest))) break;
    await bot.waitForTicks(10);
  }
}

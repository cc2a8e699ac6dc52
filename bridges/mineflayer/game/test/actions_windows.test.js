'use strict';
/** Programs that trade, enchant and forge with mineflayer's names. */
const test = require('node:test');
const assert = require('node:assert');
const { begin, play, playUntil, countOf, look } = require('./actions_help');

const RESUME = { kind: 0, code: '' };
const state = (world) => world.run(() => world.agents[0].codeState());

/** Runs a program to its end in a world; returns its lines. Throws its error. */
async function run(world, code, limit = 600) {
  await play(world, { kind: 1, code });
  await playUntil(world, RESUME, () => !state(world).running, limit);
  const { code_error: error } = look(world).details.code_info;
  if (Object.keys(error).length > 0) throw new Error(JSON.stringify(error));
  return state(world).info.logs;
}

async function withItems(items, blocks = []) {
  return begin({ actions: 'code' }, {
    items: items.map(([name, count]) => ({ name, count })), blocks: blocks.map(([x, name]) => ({ x, y: 0, z: 1, name })),
  });
}

async function addVillager(world, merchant) {
  await world.run(async () => {
    const mob = world.serv.survival.spawnMob('villager', world.origin.offset(2.5, 0, 0.5), { merchant });
    mob.ai = null;
    await world.settle();
  });
  await play(world, RESUME, 3);
}

test('a program trades with a villager', async () => {
  const world = await withItems([['rotten_flesh', 64], ['emerald', 1]]);
  await addVillager(world, { profession: 'cleric', level: 1 });
  const lines = await run(world, `
    const villager = bot.nearestEntity({ name: 'villager' });
    console.log(villager.villager.profession, villager.villager.level);
    const window = await bot.openVillager(villager);
    const sells = window.trades.findIndex(({ outputItem }) => outputItem.name === 'redstone');
    const buys = window.trades.findIndex(({ inputItem1 }) => inputItem1.name === 'rotten_flesh');
    console.log(window.trades[buys].realPrice, window.trades[buys].maximumNbTradeUses);
    await window.trade(buys, 2);
    await bot.trade(window, sells, 1);
    try { await window.trade(sells, 5); } catch (error) { console.log(error.name, error.message); }
    window.close();`);
  assert.deepStrictEqual(lines.slice(0, 2), ['cleric 1', '32 16']);
  assert.match(lines[2], /Not enough item 1/);
  assert.deepStrictEqual(['rotten_flesh', 'emerald', 'redstone'].map((name) => countOf(world, name)), [0, 2, 2]);
  world.close();
});

test('a program is told that a villager without a profession trades nothing', async () => {
  const world = await withItems([]);
  await addVillager(world, {});
  const lines = await run(world, `
    try { await bot.openVillager(bot.nearestEntity({ name: 'villager' })); } catch (error) { console.log(error.message); }
    try { await bot.openAnvil(bot.entity.position.offset(0, -1, 0)); } catch (error) { console.log(error.message); }`);
  assert.match(lines[0], /no profession/);
  assert.match(lines[1], /grass_block, which openAnvil does not open/);
  world.close();
});

test('a program enchants, renames and joins', async () => {
  const world = await withItems([['diamond_sword', 1], ['lapis_lazuli', 3], ['iron_axe', 1], ['iron_axe', 1]],
    [[1, 'enchanting_table'], [2, 'anvil']]);
  await world.run(async () => {
    world.agents[0].player.setXpLevel(20);
    await world.settle();
  });
  const lines = await run(world, `
    const find = (name) => bot.findBlock({ matching: mcData.blocksByName[name].id, maxDistance: 5 });
    const table = await bot.openEnchantmentTable(find('enchanting_table'));
    await table.putTargetItem(table.findInventoryItem('diamond_sword'));
    await table.putLapis(table.findInventoryItem('lapis_lazuli'));
    const [{ level, expected }] = table.enchantments;
    const sword = await table.enchant(0);
    console.log(level > 0, sword.enchants.some(({ lvl }) => lvl === expected.level));
    await table.takeTargetItem();
    await table.close();
    const anvil = await bot.openAnvil(find('anvil'));
    await anvil.rename(anvil.findInventoryItem('diamond_sword'), 'Tooth');
    console.log(JSON.parse(anvil.findInventoryItem('diamond_sword').customName).text, bot.experience.level);
    await anvil.close();`);
  assert.deepStrictEqual(lines, ['true true', 'Tooth 18']);
  world.close();
});

test('windows take the stacks of bot.inventory as well', async () => {
  const world = await withItems([['dirt', 3], ['lapis_lazuli', 3], ['iron_axe', 1], ['diamond_sword', 1], ['iron_sword', 1]],
    [[1, 'enchanting_table'], [2, 'anvil']]);
  await world.run(async () => {
    world.agents[0].player.setXpLevel(20);
    await world.settle();
  });
  const lines = await run(world, `
    const find = (name) => bot.findBlock({ matching: mcData.blocksByName[name].id, maxDistance: 5 });
    const [sword, axe, lapis, iron] = ['diamond_sword', 'iron_axe', 'lapis_lazuli', 'iron_sword'].map((name) =>
      bot.inventory.findInventoryItem(name));
    const table = await bot.openEnchantmentTable(find('enchanting_table'));
    await table.putTargetItem(axe);
    await table.putLapis(lapis);
    console.log(table.slots.slice(0, 2).map(({ name }) => name).join());
    await table.close();
    const anvil = await bot.openAnvil(find('anvil'));
    await anvil.rename(sword, 'Tooth');
    console.log(JSON.parse(anvil.findInventoryItem('diamond_sword').customName).text);
    await anvil.close();
    await bot.tossStack(bot.inventory.findInventoryItem('iron_sword'));
    const again = await bot.openAnvil(find('anvil'));
    try { await again.rename(iron, 'Gone'); } catch (error) { console.log(error.name, error.message); }
    await again.close();`);
  assert.deepStrictEqual(lines.slice(0, 2), ['iron_axe,lapis_lazuli', 'Tooth']);
  assert.match(lines[2], /^ActionError anvil.rename: iron_sword is not in slot \d+ of the window/);
  world.close();
});

test('a program works in any window by its slots', async () => {
  const world = await withItems([['diamond_axe', 1], ['netherite_ingot', 1], ['dirt', 3]], [[1, 'smithing_table'], [2, 'hopper']]);
  const lines = await run(world, `
    const find = (name) => bot.findBlock({ matching: mcData.blocksByName[name].id, maxDistance: 5 });
    const window = await bot.openBlock(find('smithing_table'));
    await bot.moveSlotItem(window.findInventoryItem('diamond_axe').slot, 0);
    await bot.moveSlotItem(window.findInventoryItem('netherite_ingot').slot, 1);
    console.log(window.type, window.slots[2].name);
    await bot.putAway(2);
    await window.close();
    const hopper = await bot.openContainer(find('hopper'));
    await hopper.deposit('dirt', null, 2);
    console.log(hopper.containerItems().map(({ name, count }) => name + count).join());
    await hopper.close();`);
  assert.deepStrictEqual(lines, ['minecraft:smithing netherite_axe', 'dirt2']);
  assert.strictEqual(countOf(world, 'netherite_axe'), 1);
  world.close();
});

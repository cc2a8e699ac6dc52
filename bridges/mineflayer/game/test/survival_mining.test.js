'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, agree, count, events, seen, at, Vec3 } = require('./survival_help');

/** Sets a block two steps away, digs it with `tool`, and returns ticks, drops and the events. */
async function mine(w, bot, player, block, tool) {
  const spot = [10, 4, 8];
  await w.console('/clear a0');
  if (tool) await w.console(`/give a0 ${tool}`);
  await w.console(`/setblock ${spot.join(' ')} ${block}`);
  await w.step(2);
  w.run(() =>
    w.serv.survival.drops.forEach((e) => {
      w.serv.survival.drops.delete(e.id);
      w.serv.survival.removeEntity(e);
    }),
  );
  const start = w.ticks;
  await w.until(() => bot.dig(seen(bot, ...spot), true), 2000);
  const ticks = w.ticks - start;
  await w.step(2);
  const lying = [...w.serv.survival.drops.values()].map((e) => `${e.stack.name} x${e.stack.count}`);
  return { ticks, lying, gone: at(w, ...spot).air && seen(bot, ...spot).name === 'air' };
}

test('time and drops by tool: the hand gets nothing from blocks it cannot harvest', () =>
  inWorld({}, async (w, bot, player) => {
    const mined = events(w, 'gamut:mined');
    const rows = [
      ['dirt', null, 15, ['dirt x1']],
      ['stone', null, 150, []],
      ['stone', 'wooden_pickaxe', 23, ['cobblestone x1']],
      ['diamond_ore', 'stone_pickaxe', 75, []],
      ['diamond_ore', 'iron_pickaxe', 15, ['diamond x1']],
      ['oak_log', 'iron_axe', 10, ['oak_log x1']],
      ['glass', null, 9, []],
      ['coal_ore', 'wooden_pickaxe', 45, ['coal x1']],
    ];
    for (const [block, tool, ticks, lying] of rows) {
      const got = await mine(w, bot, player, block, tool);
      assert.ok(got.gone, `${block} is gone`);
      assert.ok(
        Math.abs(got.ticks - ticks) <= 2,
        `${block} with ${tool} took ${got.ticks}, not ${ticks}`,
      );
      assert.deepEqual(got.lying, lying, `${block} with ${tool}`);
    }
    assert.deepEqual(
      mined.map((m) => m.block),
      rows.map((row) => row[0]),
    );
  }));

test('too early a finish is refused, the block comes back, and bedrock stays', () =>
  inWorld({}, async (w, bot) => {
    await w.console('/setblock 10 4 8 stone');
    const location = new Vec3(10, 4, 8);
    const send = (status) =>
      w.run(() => bot._client.write('block_dig', { status, location, face: 1 }));
    send(0);
    await w.step(20);
    w.run(() => bot._updateBlockState(location, 0));
    send(2);
    await w.step(1);
    assert.equal(at(w, 10, 4, 8).name, 'stone');
    assert.equal(seen(bot, 10, 4, 8).name, 'stone');
    send(2);
    await w.step(1);
    assert.equal(at(w, 10, 4, 8).name, 'stone', 'an end without a beginning');
    await w.console('/setblock 10 4 8 bedrock');
    send(0);
    await w.step(400);
    send(2);
    await w.step(1);
    assert.equal(at(w, 10, 4, 8).name, 'bedrock');
    await w.console('/setblock 20 4 8 dirt');
    const far = new Vec3(20, 4, 8);
    w.run(() => bot._client.write('block_dig', { status: 0, location: far, face: 1 }));
    await w.step(40);
    w.run(() => bot._client.write('block_dig', { status: 2, location: far, face: 1 }));
    await w.step(1);
    assert.equal(at(w, 20, 4, 8).name, 'dirt', 'out of reach');
  }));

test('tools wear by one and break, ores bring experience', () =>
  inWorld({}, async (w, bot, player) => {
    await mine(w, bot, player, 'diamond_ore', 'iron_pickaxe');
    assert.equal(player.heldStack().durabilityUsed, 1);
    assert.equal(bot.heldItem.durabilityUsed, 1);
    assert.ok(bot.experience.points >= 3 && bot.experience.points <= 7);
    const broke = events(w, 'gamut:broke');
    w.run(() => {
      const used = player.heldStack();
      used.durabilityUsed = used.maxDurability - 1;
    });
    await w.console('/setblock 10 4 8 stone');
    await w.step(1);
    await w.until(() => bot.dig(seen(bot, 10, 4, 8), true));
    await w.step(2);
    assert.equal(player.heldStack(), null);
    assert.deepEqual(
      broke.map((b) => b.item),
      ['iron_pickaxe'],
    );
    agree(bot, player);
  }));

test('shears wear on whatever they cut, other tools not on what breaks at once', () =>
  inWorld({}, async (w, bot, player) => {
    for (const [tool, used] of [
      ['shears', 1],
      ['iron_hoe', 0],
      ['iron_sword', 0],
    ]) {
      await mine(w, bot, player, 'fern', tool);
      assert.equal(player.heldStack().durabilityUsed || 0, used, tool);
    }
  }));

test('others see the cracks; a stopped dig breaks nothing', () =>
  inWorld({ agents: 2 }, async (w, bot) => {
    const cracks = [];
    w.bots[1].on('blockBreakProgressObserved', (block, stage) => cracks.push(stage));
    await w.console('/setblock 8 4 6 stone');
    await w.step(1);
    let ended = null;
    w.run(() => {
      bot.dig(seen(bot, 8, 4, 6), true).catch((error) => {
        ended = error.message;
      });
    });
    await w.step(80);
    w.run(() => bot.stopDigging());
    await w.step(1);
    assert.match(ended, /aborted/);
    await w.step(80);
    assert.ok(cracks.length >= 4, `cracks ${cracks}`);
    assert.equal(at(w, 8, 4, 6).name, 'stone');
  }));

test('loot by chance, age and tool', () =>
  inWorld({}, async (w) => {
    const { lootOf } = require('../survival/loot');
    const { survival } = w.serv;
    const { blocks, items, registry } = survival;
    const total = (block, props, tool, times = 400) =>
      w.run(() => {
        const sum = {};
        for (let i = 0; i < times; i++) {
          const drops = lootOf(
            items,
            registry,
            blocks.info(blocks.state(block, props)),
            tool ? items.make(tool) : null,
            true,
          );
          for (const [name, n] of drops) sum[name] = (sum[name] || 0) + n;
        }
        return sum;
      });
    const within = (value, low, high, what) =>
      assert.ok(value >= low && value <= high, `${what}: ${value}`);
    within(total('gravel').flint, 20, 65, 'flint in 400');
    within(total('oak_leaves').oak_sapling, 8, 36, 'saplings in 400');
    within(total('grass').wheat_seeds, 25, 80, 'seeds in 400');
    assert.deepEqual(total('grass', {}, 'shears'), { grass: 400 });
    assert.deepEqual(total('oak_leaves', {}, 'shears'), { oak_leaves: 400 });
    assert.deepEqual(total('tall_grass', { half: 'lower' }, 'shears'), { grass: 800 });
    assert.deepEqual(total('tall_seagrass', { half: 'lower' }, 'shears'), { seagrass: 800 });
    assert.deepEqual(total('tall_seagrass', { half: 'lower' }), {});
    assert.deepEqual(total('composter', { level: 0 }), { composter: 400 });
    assert.deepEqual(total('composter', { level: 8 }), { composter: 400, bone_meal: 400 });
    assert.deepEqual(total('wheat', { age: 3 }), { wheat_seeds: 400 });
    const ripe = total('wheat', { age: 7 });
    assert.equal(ripe.wheat, 400);
    within(ripe.wheat_seeds / 400, 2.5, 2.95, 'seeds of a ripe crop');
    within(total('beetroots', { age: 3 }).beetroot_seeds / 400, 2.5, 2.95, 'seeds of beetroots');
    within(total('carrots', { age: 7 }).carrot / 400, 3.5, 3.95, 'carrots of a ripe crop');
    within(total('potatoes', { age: 7 }).potato / 400, 3.5, 3.95, 'potatoes of a ripe crop');
    assert.deepEqual(total('potatoes', { age: 6 }), { potato: 400 });
    within(total('redstone_ore').redstone / 400, 4.3, 4.7, 'redstone');
    assert.deepEqual(total('glass'), {});
    assert.deepEqual(total('oak_slab', { type: 'double' }, null, 1), { oak_slab: 2 });
    assert.deepEqual(total('oak_door', { half: 'upper' }, null, 1), {});
    assert.deepEqual(total('wall_torch', {}, null, 1), { torch: 1 });
    for (const name of Object.keys(registry.blocksByName)) {
      for (const [item, n] of Object.entries(total(name, {}, null, 1))) {
        assert.ok(registry.itemsByName[item] && n > 0, `${name} drops ${n} ${item}`);
      }
    }
  }));

test('snow and sea pickles drop numbers of things, and their items join as such', () =>
  inWorld({}, async (w, bot, player) => {
    const { lootOf } = require('../survival/loot');
    const { blocks, items, registry } = w.serv.survival;
    for (const [block, props, expected] of [
      ['snow', { layers: 3 }, ['snowball', 3]],
      ['sea_pickle', { pickles: 4 }, ['sea_pickle', 4]],
    ]) {
      const info = blocks.info(blocks.state(block, props));
      assert.deepEqual(lootOf(items, registry, info, null, true), [expected]);
    }
    await w.console('/give a0 iron_shovel');
    const spots = [
      [9, 4, 9],
      [9, 4, 10],
      [10, 4, 9],
      [10, 4, 10],
    ];
    await w.console('/fill 9 4 9 10 4 10 snow');
    await w.step(2);
    for (const spot of spots) await w.until(() => bot.dig(seen(bot, ...spot), true));
    await w.step(40);
    const lying = [...w.serv.survival.drops.values()].reduce((sum, e) => sum + e.stack.count, 0);
    assert.equal(lying + count(player, 'snowball'), 4);
  }));

test('a broken door drops one door, by either half; a bed and a tall flower too', () =>
  inWorld({}, async (w, bot, player) => {
    for (const block of ['oak_door', 'red_bed', 'sunflower']) {
      await w.console(`/give a0 ${block}`);
      for (const half of [0, 1]) {
        await w.step(40);
        const held = player.inventory.slots.findIndex((s) => s && s.name === block);
        await w.until(() => bot.equip(bot.inventory.slots[held], 'hand'));
        await w.until(() => bot.placeBlock(seen(bot, 10, 3, 8), new Vec3(0, 1, 0)));
        await w.step(1);
        const other =
          block === 'red_bed'
            ? [
                [9, 4, 8],
                [11, 4, 8],
                [10, 4, 7],
                [10, 4, 9],
              ].find((p) => at(w, ...p).name === block)
            : [10, 5, 8];
        await w.until(() => bot.dig(seen(bot, ...(half ? other : [10, 4, 8])), true));
        await w.step(5);
        assert.ok(at(w, 10, 4, 8).air && at(w, ...other).air, `${block} is gone whole`);
        await w.console('/tp a0 10.5 4 8.5');
        await w.step(30);
        await w.console('/tp a0 8.5 4 8.5');
        await w.step(2);
        assert.equal(count(player, block), 1, `${block} ${half}`);
      }
      await w.console('/clear a0');
    }
  }));

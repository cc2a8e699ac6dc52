'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { makeWorld } = require('../harness');
const { makeGenerator } = require('../generator');
const { Game } = require('../game');
const { inWorld, agree, count, at, seen, until, Vec3 } = require('./survival_help');
const { TickQueue, keyOf, unpack } = require('../survival/fluids/queue');

/** A row of blocks along x: '.' air, a liquid's level, else the first letter. */
function row(w, y, z, x0, x1) {
  let text = '';
  for (let x = x0; x <= x1; x++) {
    const info = at(w, x, y, z);
    if (info.air) text += '.';
    else text += info.liquid ? info.props.level.toString(16) : info.name[0].toUpperCase();
  }
  return text;
}

/** All liquids in a box around the spawn, as text. */
function picture(w, size = 14) {
  const rows = [];
  for (let y = 1; y < 16; y++) {
    for (let z = -size; z <= size; z++) rows.push(row(w, y, z, -size, size));
  }
  return rows.join('\n');
}

const lying = (w) => [...w.serv.survival.drops.values()].map((e) => e.stack.name).sort();

test('water runs 7 blocks, a level and 5 ticks each, and goes when its source goes', () =>
  inWorld({}, async (w, bot) => {
    await w.console('/setblock 0 4 0 water');
    await w.step(5);
    assert.equal(row(w, 4, 0, -3, 3), '..101..');
    await w.step(5);
    assert.equal(row(w, 4, 0, -3, 3), '.21012.');
    await w.step(60);
    assert.equal(row(w, 4, 0, -8, 8), '.765432101234567.');
    assert.equal(row(w, 4, 3, -8, 8), '....765434567....');
    assert.equal(seen(bot, 5, 4, 1).getProperties().level, 6);
    assert.equal(w.serv.survival.fluids.queue.size, 0, 'at rest nothing is looked at');
    await w.console('/setblock 0 4 0 stone');
    await w.step(150);
    assert.equal(row(w, 4, 0, -8, 8), '........S........');
    assert.equal(seen(bot, 5, 4, 1).name, 'air');
    assert.ok(!/[0-8]/.test(picture(w)));
  }));

test('water falls first, and runs to the nearest way down within five steps only', () =>
  inWorld({}, async (w) => {
    await w.console('/setblock 5 3 0 air');
    await w.console('/setblock 0 4 0 water');
    await w.step(80);
    assert.equal(row(w, 4, 0, -3, 7), '...012345..');
    assert.equal(row(w, 4, 1, -3, 7), '...........');
    assert.equal(row(w, 3, 0, 4, 6), 'G8G');
    await w.console('/fill 0 3 0 5 4 0 air');
    await w.console('/fill 0 3 0 5 3 0 stone');
    await w.console('/setblock 6 3 0 air');
    await w.step(60);
    await w.console('/setblock 0 4 0 water');
    await w.step(10);
    assert.equal(row(w, 4, 0, -3, 3), '.21012.', 'six steps are too far to know');
    await w.console('/setblock 0 4 0 air');
    await w.step(150);
    await w.console('/setblock 0 9 0 water');
    await w.step(80);
    assert.equal(row(w, 9, 0, -2, 2), '.101.');
    for (let y = 5; y < 9; y++) assert.equal(row(w, y, 0, -2, 2), '.888.', 'it keeps its width');
    assert.equal(row(w, 4, 0, -3, 3), '2188812');
  }));

test('two sources make a third over ground, and a pool of four never ends', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/fill 10 3 8 11 3 9 air');
    await w.console('/setblock 10 3 8 water');
    await w.console('/setblock 11 3 9 water');
    await w.step(12);
    for (const [x, z] of [[10, 8], [11, 8], [10, 9], [11, 9]])
      assert.equal(at(w, x, 3, z).props.level, 0);
    await w.console('/give a0 bucket 3');
    await w.until(() => bot.lookAt(new Vec3(10.5, 3.9, 8.5), true));
    for (let i = 1; i <= 3; i++) {
      await w.step(12);
      assert.equal(at(w, 10, 3, 8).props.level, 0);
      w.run(() => bot.activateItem());
      await w.step(1);
      assert.equal(count(player, 'water_bucket'), i);
    }
    agree(bot, player);
    await w.console('/setblock 0 9 0 water');
    await w.console('/setblock 2 9 0 water');
    await w.step(6);
    assert.notEqual(at(w, 1, 9, 0).props.level, 0, 'none over air');
  }));

test('flowing water fills no bucket', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/fill 10 3 8 11 3 8 air');
    await w.console('/setblock 11 3 8 water');
    await w.console('/give a0 bucket');
    await w.step(12);
    assert.equal(at(w, 10, 3, 8).props.level, 1);
    await w.console('/setblock 11 3 8 stone');
    await w.until(() => bot.lookAt(new Vec3(10.5, 3.5, 8.5), true));
    w.run(() => bot.activateItem());
    await w.step(1);
    assert.equal(count(player, 'bucket'), 1);
  }));

test('lava runs 3 blocks in 30 ticks each; it meets water as stone of three kinds', () =>
  inWorld({}, async (w) => {
    await w.console('/setblock 0 4 0 lava');
    await w.step(29);
    assert.equal(row(w, 4, 0, -4, 4), '....0....');
    await w.step(1);
    assert.equal(row(w, 4, 0, -4, 4), '...202...');
    await w.step(90);
    assert.equal(row(w, 4, 0, -4, 4), '.6420246.');
    await w.console('/setblock 5 4 0 water');
    await w.step(6);
    assert.equal(at(w, 4, 4, 0).name, 'water');
    assert.equal(at(w, 3, 4, 0).name, 'cobblestone');
    await w.console('/setblock 0 5 0 water');
    await w.step(1);
    assert.equal(at(w, 0, 4, 0).name, 'obsidian');
    await w.console('/fill -14 4 -14 14 5 14 air');
    await w.step(40);
    await w.console('/fill -1 4 -1 1 4 1 glass');
    await w.console('/setblock 0 4 0 water');
    await w.console('/setblock 0 6 0 lava');
    await w.console('/fill -1 5 -1 1 6 1 glass');
    await w.console('/setblock 0 5 0 air');
    await w.console('/setblock 0 6 0 lava');
    await w.step(70);
    assert.equal(at(w, 0, 4, 0).name, 'stone');
    assert.equal(at(w, 0, 5, 0).name, 'lava');
  }));

test('water washes weak blocks away, which drop; lava leaves nothing of them', () =>
  inWorld({}, async (w) => {
    await w.console('/fill 1 3 0 2 3 0 farmland');
    await w.console('/setblock 1 4 0 wheat[age=3]');
    await w.console('/setblock -1 4 0 torch');
    await w.console('/setblock 0 4 1 red_carpet');
    await w.console('/setblock 0 4 -1 rail');
    await w.console('/setblock 0 4 2 cobweb');
    await w.console('/setblock 0 4 -2 snow');
    await w.console('/setblock 0 4 -3 oak_sign');
    await w.console('/setblock -2 4 0 oak_pressure_plate');
    await w.console('/setblock 0 4 0 water');
    await w.step(15);
    assert.deepEqual(lying(w), ['rail', 'red_carpet', 'string', 'torch', 'wheat_seeds']);
    assert.equal(row(w, 4, 0, -2, 1), 'O101');
    assert.equal(at(w, 0, 4, -3).name, 'oak_sign', 'signs and plates hold water up');
    await w.console('/gamerule doTileDrops false');
    await w.console('/setblock 9 4 0 torch');
    await w.console('/setblock 10 4 0 water');
    await w.step(6);
    assert.equal(at(w, 9, 4, 0).name, 'water');
    await w.console('/gamerule doTileDrops true');
    await w.console('/setblock -9 4 0 torch');
    await w.console('/setblock -10 4 0 lava');
    await w.step(32);
    assert.equal(at(w, -9, 4, 0).name, 'lava');
    assert.equal(lying(w).filter((item) => item === 'torch').length, 1);
  }));

test('waterlogged blocks are sources; flows stop at them, sources and buckets go into them', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/setblock 0 4 0 stone_slab[type=bottom,waterlogged=true]');
    await w.step(6);
    assert.equal(row(w, 4, 0, -1, 1), '1S1');
    await w.console('/setblock 0 4 0 air');
    await w.step(60);
    await w.console('/setblock 0 4 0 oak_stairs[facing=east,half=bottom,waterlogged=true]');
    await w.step(6);
    assert.equal(row(w, 4, 0, -1, 1), '1O.', 'not through the full side of stairs');
    await w.console('/setblock 0 4 0 air');
    await w.step(60);
    await w.console('/setblock 2 4 0 oak_fence');
    await w.console('/setblock 1 4 0 water');
    await w.step(8);
    assert.equal(at(w, 2, 4, 0).props.waterlogged, false);
    await w.console('/setblock 3 4 0 water');
    await w.step(8);
    assert.equal(at(w, 2, 4, 0).props.waterlogged, true, 'between two sources');
    await w.console('/fill -14 4 -14 14 4 14 air');
    await w.step(20);
    await w.console('/setblock 10 4 8 stone_slab[type=top]');
    await w.console('/give a0 water_bucket');
    await w.step(1);
    await w.until(() => bot.activateBlock(seen(bot, 10, 4, 8)));
    await w.step(1);
    assert.equal(at(w, 10, 4, 8).props.waterlogged, true);
    assert.equal(count(player, 'bucket'), 1);
    await w.until(() => bot.lookAt(new Vec3(10.5, 4.5, 8.5), true));
    w.run(() => bot.activateItem());
    await w.step(1);
    assert.equal(at(w, 10, 4, 8).props.waterlogged, false);
    assert.equal(count(player, 'water_bucket'), 1);
    agree(bot, player);
  }));

test('a poured bucket flows, wets farmland by its flow and turns powder to concrete', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/setblock 13 4 8 red_concrete_powder');
    await w.console('/give a0 water_bucket');
    await w.step(1);
    await w.until(() => bot.activateBlock(seen(bot, 10, 3, 8)));
    await w.step(30);
    assert.equal(at(w, 10, 4, 8).props.level, 0);
    assert.equal(at(w, 13, 4, 8).name, 'red_concrete');
    assert.equal(count(player, 'bucket'), 1);
    await w.console('/gamerule randomTickSpeed 4000');
    await w.console('/setblock 15 3 8 farmland[moisture=0]');
    await until(w, () => at(w, 15, 3, 8).props.moisture === 7, 200);
  }));

test('flowing water carries items, mobs and players along', () =>
  inWorld({ rules: { doMobSpawning: false } }, async (w, bot, player) => {
    await w.console('/fill 16 4 -1 26 6 1 glass');
    await w.console('/fill 17 4 0 26 6 0 air');
    await w.console('/setblock 17 4 0 water');
    await w.step(60);
    assert.equal(row(w, 4, 0, 17, 25), '01234567.');
    const { survival } = w.serv;
    const start = new Vec3(17.5, 4.2, 0.5);
    const item = w.run(() => survival.drop(start, survival.items.make('stick')));
    const sheep = w.run(() => survival.spawnMob('sheep', start.offset(1, 0, 0)));
    w.run(() => { sheep.mind.restUntil = 1e9; });
    await w.step(120);
    assert.ok(item.position.x > 22, `the item came to ${item.position}`);
    assert.ok(sheep.position.x > 19.5, `the sheep came to ${sheep.position}`);
    await w.console('/kill @e').catch(() => {});
    await w.step(30);
    await w.console('/tp a0 17.5 4 0.5');
    await w.step(100);
    assert.ok(player.position.x > 20, `the player came to ${player.position}`);
    assert.ok(bot.entity.position.distanceTo(player.position) < 0.2);
  }));

test('a sea of the generator rests until a block beside it goes', async () => {
  const generator = makeGenerator({ seed: 3, biome: 'any', site: 'wild' });
  await inWorld({ generator, viewDistance: 2, rules: { doMobSpawning: false } }, async (w) => {
    const { fluids, blocks } = w.serv.survival;
    const wet = await w.run(() => {
      for (let i = 0; i < 60; i++) {
        for (let cx = i - 1; cx <= i + 1; cx++)
          for (let cz = -1; cz <= 1; cz++) w.serv.columnAt(w.serv.overworld, cx, cz);
        if (blocks.at(i * 16 + 8, 62, 8).name === 'water') return [i * 16 + 8, 8];
      }
      return null;
    });
    assert.ok(wet, 'there is a sea');
    await w.step(100);
    assert.equal(fluids.queue.size, 0);
    let floor = 62;
    while (at(w, wet[0], floor, wet[1]).water) floor--;
    await w.run(() => {
      for (let y = floor; y > floor - 4; y--) blocks.setNamed(wet[0], y, wet[1], 'air');
    });
    assert.ok(fluids.queue.size > 0);
    await w.step(60);
    for (let y = floor; y > floor - 4; y--) assert.ok(at(w, wet[0], y, wet[1]).water);
    assert.equal(fluids.queue.size, 0);
  });
});

test('at the edge of the loaded chunks water stops', () =>
  inWorld({ viewDistance: 2 }, async (w) => {
    const keys = () => Object.keys(w.serv.overworld.columns).sort().join(' ');
    const before = keys();
    const edge = Math.max(...before.split(' ').map((key) => Number(key.split(',')[0]))) * 16 + 15;
    await w.console(`/setblock ${edge - 2} 4 8 water`);
    await w.step(60);
    assert.equal(row(w, 4, 8, edge - 4, edge), '21012');
    assert.equal(keys(), before);
    assert.equal(w.serv.survival.fluids.queue.size, 0);
  }));

test('updates beyond the limit of a tick follow in the next ticks, in the same order', () => {
  const play = (most) => {
    const queue = new TickQueue(most);
    const order = [];
    for (let i = 0; i < 50; i++) queue.add(3, keyOf(i - 25, i % 256, -i, i & 1));
    queue.add(9, keyOf(0, 0, 0));
    queue.add(4, keyOf(0, 0, 0));
    const kept = new TickQueue(most);
    for (let tick = 1; tick < 20; tick++) {
      if (tick === 5) kept.load(JSON.parse(JSON.stringify(queue.save())));
      const from = tick < 5 ? queue : kept;
      from.run(tick, (key) => order.push(unpack(key, (...spot) => spot).join()));
    }
    assert.equal(kept.size, 0);
    return order;
  };
  assert.equal(play(1000).length, 51);
  assert.deepEqual(play(7).slice(0, 49), play(1000).slice(0, 49));
  assert.equal(play(1000)[1], '-24,1,-1,1');
  assert.equal(keyOf(3e6, 4, 0), -1);
});

/** A world in which water falls from a height over lava and plants; `halfway` is called inside. */
async function cascade(halfway) {
  const w = await makeWorld({ seed: 4, generator: 'flat', rules: { doMobSpawning: false } });
  await w.console('/fill -4 4 -4 4 4 4 poppy');
  await w.console('/fill -2 10 -2 2 10 2 water');
  await w.console('/setblock 6 4 6 lava');
  await w.step(23);
  await w.run(() => halfway(w));
  const shown = [];
  for (let i = 0; i < 12; i++) {
    await w.step(10);
    const items = [...w.serv.survival.drops.values()].map((e) => e.position);
    shown.push(picture(w), JSON.stringify(items));
  }
  w.close();
  return shown;
}

test('what flows continues from its saved state, and is the same each time', async () => {
  const plain = await cascade(() => {});
  const saved = await cascade((w) => {
    for (const name of ['fluids', 'fire']) {
      const plugin = w.serv.gamut.mechanics.find((each) => each.name === name);
      const data = JSON.parse(JSON.stringify(plugin.save(w.serv)));
      plugin.load(w.serv, null);
      assert.equal(w.serv.survival[name].queue.size, 0);
      plugin.load(w.serv, data);
    }
  });
  assert.deepEqual(saved, plain);
  const lost = await cascade((w) =>
    w.serv.gamut.mechanics.find((each) => each.name === 'fluids').load(w.serv, null),
  );
  assert.notDeepEqual(lost, plain);
});

test('a world restored in mid-flow shows the frames it would have shown', async () => {
  const config = {
    mode: 'embedded', version: '1.16.5', width: 1, agents: 1, names: ['a0'], actions: 'low_level',
    ticks_per_step: 3, view_distance: 2, rgb: null,
    senses: { sight_distance: 48, line_of_sight: true, hearing_distance: 50, chat_distance: 50 },
    needs: true, code: { time_ms: 100, memory_mb: 32, calls: 100 },
    server: { respawn: false, doMobSpawning: false }
  };
  const start = {
    seed: 1, episode: 0, items: [], commands: [], targets: [],
    blocks: [{ x: 3, y: 6, z: 1, name: 'water' }, { x: -3, y: 5, z: 2, name: 'lava' }],
    state: { world: 2, biome: 'forest', site: 'wild', time: 'day', weather: 'clear' }
  };
  const play = async (game, steps) => {
    const shown = [];
    for (let i = 0; i < steps; i++) {
      const action = Buffer.alloc(64);
      [1, 0, 0, 12, 12, 0, 0, 0].forEach((v, k) => action.writeBigInt64LE(BigInt(v), k * 8));
      const { columns, details } = await game.step({ action });
      shown.push([columns.toString('hex'), JSON.stringify(details)]);
    }
    return shown;
  };
  const liquids = (game) => {
    const { serv } = game.worlds[0];
    const spawn = serv.spawnOf(0).floored();
    let text = '';
    for (let y = -3; y < 8; y++)
      for (let x = -9; x < 10; x++)
        for (let z = -9; z < 10; z++)
          text += serv.survival.blocks.stateAt(spawn.x + x, spawn.y + y, spawn.z + z) + ' ';
    return text;
  };
  const game = new Game(config);
  await game.reset([0], [start]);
  await play(game, 6);
  assert.ok(game.worlds[0].serv.survival.fluids.queue.size > 0, 'it flows');
  const saved = game.snapshot(0);
  const went = [await play(game, 30), liquids(game)];
  const other = new Game(config);
  await other.restore(0, saved);
  assert.deepEqual([await play(other, 30), liquids(other)], went);
  game.close();
  other.close();
});

'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { makeGenerator } = require('../generator');
const { NETHER_Z } = require('../generator/nether');
const { inWorld, at, count, events, seen, until, Vec3 } = require('./survival_help');
const { calm, mobs, summon } = require('./mobs_help');

const id = (w, name) => w.serv.registry.itemsByName[name].id;
const nether = () => makeGenerator({ seed: 3, biome: 'plains', site: 'flat' });

/** Builds a frame of obsidian south of the agent, without corners, and lights it with flint and steel. */
async function portal(w, bot, [x, y, z]) {
  await w.console(`/fill ${x} ${y - 1} ${z} ${x + 1} ${y - 1} ${z} obsidian`);
  await w.console(`/fill ${x} ${y + 3} ${z} ${x + 1} ${y + 3} ${z} obsidian`);
  for (const side of [x - 1, x + 2]) await w.console(`/fill ${side} ${y} ${z} ${side} ${y + 2} ${z} obsidian`);
  await w.console('/give a0 flint_and_steel');
  await w.until(() => bot.equip(id(w, 'flint_and_steel'), 'hand'));
  await w.until(() => bot.activateBlock(seen(bot, x, y - 1, z), new Vec3(0, 1, 0)));
  await w.step(1);
}

test('mineflayer: a portal is lit, leads to the Nether and back, and the dimension is told', () =>
  inWorld({ generator: nether() }, async (w, bot, player) => {
    await calm(w);
    const { x, y, z } = player.position.floored();
    const from = player.position.clone();
    await portal(w, bot, [x, y, z + 2]);
    assert.deepEqual(
      [0, 1, 2].flatMap((up) => [0, 1].map((dx) => at(w, x + dx, y + up, z + 2).name)),
      Array(6).fill('nether_portal'),
    );
    const worlds = [];
    w.run(() => bot.on('respawn', () => worlds.push(bot.game.dimension)));
    await w.console(`/tp a0 ${x + 0.5} ${y} ${z + 2.5}`);
    await w.step(60);
    assert.equal(bot.game.dimension, 'overworld', 'it takes four seconds');
    await until(w, () => bot.game.dimension === 'the_nether', 60);
    await w.step(5);
    assert.deepEqual(worlds, ['the_nether']);
    const to = player.position;
    assert.ok(Math.abs(to.z - (NETHER_Z + (z + 2) / 8)) < 20 && Math.abs(to.x - x / 8) < 20, `${to}`);
    assert.ok(bot.entity.position.distanceTo(to) < 0.1);
    assert.equal(bot.blockAt(to.floored()).name, 'nether_portal', 'the client has the chunks');
    assert.equal(bot.blockAt(to.offset(0, -1, 0).floored()).name, 'obsidian');
    const kinds = new Set();
    for (let dx = -24; dx < 24; dx += 2)
      for (let dy = -60; dy < 40; dy += 3) kinds.add(bot.blockAt(to.offset(dx, dy, 8))?.name);
    assert.ok(kinds.has('netherrack'), [...kinds].join());
    await w.step(100);
    assert.equal(bot.game.dimension, 'the_nether', 'who stays in it does not go back');
    const stand = to.clone();
    await w.console(`/tp a0 ${stand.x} ${stand.y} ${stand.z + 1.2}`);
    await w.step(3);
    await w.console(`/tp a0 ${stand.x} ${stand.y} ${stand.z}`);
    await until(w, () => bot.game.dimension === 'overworld', 120);
    await w.step(5);
    assert.ok(player.position.distanceTo(from) < 6, `back at the same portal: ${player.position}`);
    assert.equal(bot.blockAt(new Vec3(x - 1, y, z + 2)).name, 'obsidian');
    assert.equal(bot.health, player.health);
  }));

test('mineflayer: a dimension has a name and a height, and only a portal changes it', () =>
  inWorld({ generator: nether() }, async (w, bot, player) => {
    assert.deepEqual([bot.game.dimension, bot.game.minY, bot.game.height], ['overworld', 0, 256]);
    assert.equal(bot._getDimensionName(), 'minecraft:overworld');
    const names = [];
    w.run(() => bot.on('spawn', () => names.push(bot._getDimensionName())));
    await w.console('/kill a0');
    await w.step(40);
    assert.deepEqual([player.health, names], [20, ['minecraft:overworld']]);
    await w.console('/gamemode creative a0');
    const { x, y, z } = player.position.floored();
    await w.console(`/setblock ${x} ${y} ${z} nether_portal`);
    await w.step(10);
    assert.deepEqual([bot.game.dimension, names[1]], ['the_nether', 'minecraft:the_nether']);
  }));

test('a frame that is broken puts its portal out; one that is not whole is not lit', () =>
  inWorld({}, async (w, bot) => {
    await portal(w, bot, [8, 4, 10]);
    assert.equal(at(w, 8, 4, 10).name, 'nether_portal');
    await w.console('/setblock 7 5 10 air');
    assert.equal(at(w, 8, 4, 10).name, 'air');
    await w.until(() => bot.activateBlock(seen(bot, 8, 3, 10), new Vec3(0, 1, 0)));
    await w.step(1);
    assert.notEqual(at(w, 8, 4, 10).name, 'nether_portal');
  }));

test('who dies in the Nether comes back in the overworld, water dries up there and beds explode', () =>
  inWorld({ generator: nether() }, async (w, bot, player) => {
    await calm(w);
    const home = player.position.clone();
    await w.console(`/fill 0 70 ${NETHER_Z} 6 76 ${NETHER_Z + 6} air`);
    await w.console(`/fill 0 69 ${NETHER_Z} 6 69 ${NETHER_Z + 6} netherrack`);
    await w.console(`/tp a0 3.5 70 ${NETHER_Z + 3.5}`);
    await w.step(10);
    assert.equal(bot.game.dimension, 'the_nether');
    assert.ok(bot.entity.position.distanceTo(player.position) < 0.1);
    await w.console('/give a0 water_bucket');
    await w.until(() => bot.equip(id(w, 'water_bucket'), 'hand'));
    await w.until(() => bot.lookAt(new Vec3(3.5, 70, NETHER_Z + 5.5), true));
    await w.step(1);
    w.run(() => bot.activateItem());
    await w.step(2);
    assert.deepEqual([count(player, 'bucket'), at(w, 3, 70, NETHER_Z + 5).name], [1, 'air']);
    await w.console(`/setblock 3 70 ${NETHER_Z + 5} red_bed[part=foot,facing=south]`);
    await w.console(`/setblock 3 70 ${NETHER_Z + 6} red_bed[part=head,facing=south]`);
    await w.step(1);
    await w.until(() => bot.activateBlock(seen(bot, 3, 70, NETHER_Z + 5)));
    await until(w, () => bot.game.dimension === 'overworld', 60);
    await w.step(5);
    assert.equal(player.health, 20, 'it died of the bed, and lives');
    assert.ok(player.position.distanceTo(home) < 3);
    assert.equal(bot.blockAt(player.position.offset(0, -1, 0).floored()).name, 'grass_block');
  }));

test('fortresses have a spawner from which blazes come', () =>
  inWorld({ generator: nether() }, async (w, bot) => {
    await calm(w);
    const g = nether();
    let spawner = null;
    for (let x = -12; x < 12 && !spawner; x++)
      for (let z = 4096; z < 4120 && !spawner; z++) [spawner] = g.spawners(x, z);
    assert.equal(spawner.kind, 'blaze');
    await w.console('/gamemode creative a0');
    await w.console(`/tp a0 ${spawner.x + 4.5} ${spawner.y - 1} ${spawner.z + 0.5}`);
    await w.step(10);
    assert.equal(bot.blockAt(new Vec3(spawner.x, spawner.y, spawner.z)).name, 'spawner');
    assert.equal(bot.blockAt(new Vec3(spawner.x + 4, spawner.y - 2, spawner.z)).name, 'nether_bricks');
    await until(w, () => mobs(w, 'blaze').length > 0, 100);
    assert.ok(mobs(w, 'blaze').length <= 4);
  }));

test('a piglin admires gold and gives something for it', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    await w.console('/give a0 gold_ingot 2');
    await w.console('/replaceitem entity a0 armor.head golden_helmet');
    const piglin = summon(w, 'piglin', [8.5, 4, 10.5]);
    const paid = events(w, 'gamut:bartered');
    await w.until(() => bot.equip(id(w, 'gold_ingot'), 'hand'));
    await w.step(1);
    w.run(() => bot.useOn(bot.entities[piglin.id]));
    await w.step(2);
    assert.equal(count(player, 'gold_ingot'), 1);
    await w.step(100);
    assert.equal(paid.length, 0);
    await until(w, () => paid.length === 1, 40);
    const table = require('../survival/bartering.json').rows.map(([name]) => name);
    assert.ok(table.includes(paid[0].item));
    w.run(() => w.serv.survival.drop(piglin.position.offset(0.5, 0, 0), w.serv.survival.items.make('gold_ingot')));
    await until(w, () => paid.length === 2, 200);
    assert.equal(player.health, 20);
  }));

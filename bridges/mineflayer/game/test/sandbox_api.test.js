'use strict';
/** The calls of the API: their checks and their documentation. */
const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const registry = require('minecraft-data')('1.16.5');
const { makeApi } = require('../sandbox/api');
const { check, checkArguments, nearest } = require('../sandbox/check');
const { tableOf } = require('../sandbox/describe');
const { FakeBot, makeSandbox, play } = require('../sandbox/testing');

const refuses = (spec, value, message) =>
  assert.throws(() => check(spec, value, 'x', registry), { name: 'ArgumentError', message });

test('values are checked against their types', () => {
  assert.strictEqual(check({ type: 'integer', min: 1, max: 5 }, 3, 'x'), 3);
  for (const bad of [0, 6, 1.5, '3', null, NaN, Infinity, [3], { valueOf: 3 }]) {
    refuses({ type: 'integer', min: 1, max: 5 }, bad, /^x: expected a whole number from 1 to 5, got /);
  }
  refuses({ type: 'boolean' }, 'true', /true or false, got "true"/);
  refuses({ type: 'text', max: 3 }, 'long', /at most 3 characters/);
  for (const bad of [[1, 2], [1, 2, '3'], [1, 2, null], {}, 'here', [1, 2, 3, 4]]) refuses({ type: 'point' }, bad, /position/);
  refuses({ type: 'point' }, [3.1e7, 0, 0], /inside the world/);
  assert.deepStrictEqual(check({ type: 'cell' }, [1.5, 64.9, -0.5], 'x').toArray(), [1, 64, -1]);
  assert.strictEqual(check({ type: 'text', max: 9, default: 'y' }, undefined, 'x'), 'y');
  refuses({ type: 'list', max: 2, of: { type: 'boolean' } }, [true, true, true], /at most 2/);
  refuses({ type: 'list', max: 2, of: { type: 'boolean' } }, [true, 1], /^x\[1\]: /);
});

test('unknown names are answered with the nearest', () => {
  assert.deepStrictEqual(nearest('oak_lgo', ['oak_log', 'stone', 'oak_leaves'], 1), ['oak_log']);
  refuses({ type: 'block' }, 'oak_lo', /no block is called "oak_lo" in 1.16.5; nearest: oak_log, /);
  refuses({ type: 'item' }, 'raw_iron', /no item is called "raw_iron" in 1.16.5; nearest: .*iron/);
  refuses({ type: 'block' }, '__proto__', /no block is called/);
  refuses({ type: 'item' }, 123456, /name or number of a kind of item, got 123456/);
  assert.strictEqual(check({ type: 'block' }, 'minecraft:stone', 'x', registry).name, 'stone');
  refuses({ type: 'choice', of: ['forward', 'back', 'left', 'right', 'jump', 'sprint', 'sneak'] }, 'forwards',
    /^x: expected one of 7 names, got "forwards"; nearest: forward, /);
  refuses({ type: 'record', fields: { canDig: { type: 'boolean' } } }, { candig: true }, /no field is called "candig"; nearest: canDig/);
});

test('every entry of the API is complete', () => {
  for (const entry of makeApi().entries.values()) {
    assert.ok(entry.doc && entry.returns && entry.cost >= 1, entry.name);
    assert.strictEqual(typeof (entry.wait ?? entry.run), 'function', entry.name);
    if (entry.async && !entry.wait) assert.ok(entry.ticks, `${entry.name} may hang`);
    assert.throws(() => checkArguments(entry, new Array(20).fill(0), registry), /takes \d+ arguments|expected/);
  }
});

test('docs/mineflayer-api.md has the calls as they are', () => {
  const file = path.join(__dirname, '../../../../docs/mineflayer-api.md');
  const text = fs.readFileSync(file, 'utf8');
  assert.ok(text.includes(tableOf(makeApi())), 'run: node bridges/mineflayer/game/sandbox/describe.js docs/mineflayer-api.md');
});

test('what docs/mineflayer-api.md calls not available is not, and BigInts compute', async () => {
  const docs = fs.readFileSync(path.join(__dirname, '../../../../docs/mineflayer-api.md'), 'utf8');
  const listed = /Not available: ([^.]*)\./.exec(docs)[1].match(/`\w+`/g).map((name) => name.slice(1, -1));
  assert.ok(listed.includes('require'));
  const { logs, error } = await play(makeSandbox(), listed.filter((name) => name !== 'import')
    .map((name) => `console.log(typeof ${name}, ${JSON.stringify(name)});`).join('\n') + 'console.log(2n ** 70n);');
  assert.strictEqual(error, null);
  for (const line of logs.slice(0, -1)) assert.match(line, /^undefined /);
  assert.strictEqual(logs.at(-1), '1180591620717411303424');
});

test('blocks and entities that the senses do not allow are not found', async () => {
  const bot = new FakeBot();
  bot.addEntity(5, 'zombie', 3, 0);
  bot.addEntity(6, 'zombie', 20, 0);
  bot.addEntity(7, 'sheep', 4, 4);
  const senses = {
    canSeeBlock: (cell) => cell.x !== 1, canSeeEntity: (entity) => entity.position.x < 10, canHear: () => true
  };
  const { logs, error } = await play(makeSandbox({}, { bot, senses }), `
    console.log(bot.findBlocks({ matching: 'grass_block', count: 9 }).map(String).join(' '));
    console.log(bot.blockAt(new Vec3(1, 63, 0)), bot.blockAt(new Vec3(2, 63, 0)).name);
    console.log(Object.keys(bot.entities).join(), bot.nearestEntity({ name: 'zombie' }).id, bot.nearestEntity((e) => e.name === 'sheep').id);
    console.log(bot.nearestEntity({ name: 'zombie', maxDistance: 1 }));`);
  assert.strictEqual(error, null);
  assert.deepStrictEqual(logs, ['(0, 63, 0) (2, 63, 0)', 'null grass_block', '5,7 5 7', 'null']);
});

test('calls about a block reveal nothing that is out of sight', async () => {
  const senses = { canSeeBlock: () => false, canSeeEntity: () => true, canHear: () => true };
  const { logs, error } = await play(makeSandbox({}, { bot: new FakeBot(), senses }), `
    const hidden = new Vec3(20, 63, 0);
    const tries = {
      dig: () => bot.dig(hidden), digTime: () => bot.digTime(hidden), canDig: () => bot.canDigBlock(hidden),
      open: () => bot.openChest(hidden), place: () => bot.placeBlock(hidden, new Vec3(0, 1, 0)),
      recipes: () => bot.recipesFor('stick', null, 1, { position: hidden })
    };
    for (const name of Object.keys(tries)) {
      try { console.log(name, await tries[name]()); } catch (e) { console.log(name, /grass/.test(e.message)); }
    }`);
  assert.strictEqual(error, null);
  assert.deepStrictEqual(logs, ['dig', 'digTime', 'canDig', 'open', 'place', 'recipes'].map((name) => `${name} false`));
});

test('an entity follows that of the game', async () => {
  const bot = new FakeBot();
  const zombie = bot.addEntity(5, 'zombie', 2, 0);
  const sandbox = makeSandbox({}, { bot });
  await sandbox.start(`
    const zombie = bot.nearestEntity();
    while (zombie.isValid) { console.log(zombie.position.x); await bot.waitForTicks(1); }
    bot.attack(zombie);`);
  sandbox.tick();
  zombie.position.x = 3;
  sandbox.tick();
  delete bot.entities[5];
  sandbox.tick();
  const { logs, error } = sandbox.state();
  assert.deepStrictEqual(logs, ['2', '3']);
  assert.match(error.message, /entity 5 is gone or out of sight/);
});

test('a matching function is called for kinds first and then for blocks', async () => {
  const { logs, error } = await play(makeSandbox(), `
    const name = bot.findBlock({ matching: (block) => block.name.endsWith('_block') && block.name.startsWith('grass') });
    const place = bot.findBlocks({ matching: (block) => block.name === 'grass_block' && block.position.x > 0, count: 5 });
    console.log(name.name, place.map(String).join(' '));`);
  assert.strictEqual(error, null);
  assert.deepStrictEqual(logs, ['grass_block (1, 63, 0) (2, 63, 0)']);
});

test('mcData answers as minecraft-data does', async () => {
  const { logs, error } = await play(makeSandbox(), `
    console.log(mcData.blocksByName.oak_log.id, mcData.items[1].name, mcData.itemsByName.no_such_thing === undefined);
    console.log('diamond' in mcData.itemsByName, mcData.foodsByName.bread.foodPoints, bot.registry === mcData);
    console.log(mcData.blocksArray.length, Object.keys(mcData.entitiesByName).includes('zombie'));`);
  assert.strictEqual(error, null);
  assert.deepStrictEqual(logs, [
    `${registry.blocksByName.oak_log.id} stone true`, 'true 5 true', `${registry.blocksArray.length} true`
  ]);
});

test('Vec3 computes as the vec3 package does', async () => {
  const { Vec3 } = require('vec3');
  const program = (V) => [
    new V(1, 2, 3).plus(new V(0.5, -1, 2)).toString(), new V(-1.5, 2.5, -0.5).floored().toString(), new V(3, 4, 0).norm(),
    new V(1, 2, 3).distanceTo(new V(4, 6, 3)), new V(1, 0, 0).cross(new V(0, 1, 0)).toString(), new V(2, 4, 4).unit().toArray().join(),
    new V(1, 2, 3).offset(1, 1, 1).equals(new V(2, 3, 4)), new V(5, -3, 2).manhattanDistanceTo(new V(0, 0, 0)),
    new V(-5, 7, 9).modulus(new V(3, 3, 3)).toString(), new V(1, 5, 2).min(new V(2, 3, 4)).toString(), new V(1.5, 2.5, 3.5).rounded().toString()
  ].join('|');
  const { logs, error } = await play(makeSandbox(), `console.log((${program})(Vec3));`);
  assert.strictEqual(error, null);
  assert.strictEqual(logs[0], program(Vec3));
});

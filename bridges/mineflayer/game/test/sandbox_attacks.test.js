'use strict';
/** Attacks on the sandbox: each ends as a reported code error while a neighbour continues as if alone. */
const assert = require('node:assert');
const test = require('node:test');
const { FakeBot, drain, makeSandbox, play } = require('../sandbox/testing');

const NEIGHBOUR = `
for (let i = 0; i < 8; i++) {
  await bot.waitForTicks(1 + i % 2);
  console.log(i, Math.random(), Date.now(), bot.findBlocks({ matching: 'grass_block', count: 2 }).length);
}
bot.chat('done');`;

// [name, program, type of the error, its message, its line, options]
const ATTACKS = [
  ['infinite loop', '\nwhile (true) Math.sqrt(2);', 'FuelError', /computed too long/, 2],
  ['infinite loop after a wait', 'await bot.waitForTicks(2);\nfor (;;) Math.sqrt(2);', 'FuelError', /computed too long/, 2],
  // The limit strikes in the line or between two turns of it, by what was counted before.
  ['infinite promise loop', 'while (true)\n  await null;', 'FuelError', /computed too long/, [null, 2]],
  ['promises that make promises', 'const f = () => Promise.resolve().then(f);\nawait f();', /FuelError|MemoryError/, /too long|more than/, undefined],
  // Which allocation fails differs: it may be that of a promise that the program waits for.
  ...[1, 3, 10, 40, 100].map((kb) => [`promises that make promises beside ${kb} KB`,
    `const a = "x".repeat(${kb} * 1024).split("");\nconst f = () => Promise.resolve().then(f);\nawait f();`,
    /FuelError|MemoryError/, /too long|more than/, undefined]),
  ['loop that catches everything', 'for (;;) {\n  try { for (;;) Math.sqrt(2); } catch {}\n}', 'FuelError', /computed too long/, 2],
  ['async loop that catches everything', 'for (;;) {\n  try { await (async () => { for (;;); })(); } catch {}\n}', 'FuelError', /too long/, 2],
  ['native that never asks', '\nArray.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1);', 'FuelError', /in one native function/, null],
  ['backreferences', '\n/(.*)\\1(.*)\\2(.*)\\3(.*)\\4x/.test("ab".repeat(300));', 'FuelError', /too long/, undefined],
  ['filling memory', '\nconst a = new Uint8Array(8e6);\nfor (;;) a.fill(1);', 'FuelError', /in one native function/, null],
  ['searching a text', '\nconst s = "a".repeat(1e6);\nfor (;;) s.includes("a".repeat(1000) + "c");', 'FuelError', /in one native function/, null],
  ['powers of a BigInt', '\nlet n = 3n ** 400000n;\nfor (;;) n *= n;', 'FuelError', /in one native function/, null],
  ['a BigInt in arguments', '\nawait bot.waitForTicks(2n);', 'ArgumentError', /is a BigInt; pass Number/, 2],
  ['catastrophic expression', '\n/(a+)+$/.test("a".repeat(60) + "b");', 'FuelError', /too long/, 2],
  ['memory bomb of arrays', 'const a = [];\nfor (;;) a.push(new Array(1000).fill(1));', 'MemoryError', /more than 16 MB/, 2],
  ['memory bomb of strings', 'const a = [];\nfor (;;) a.push("abc".repeat(1000));', 'MemoryError', /more than 16 MB/, 2],
  ['memory bomb of objects', 'const a = [];\nfor (;;) a.push({ x: a });', 'MemoryError', /more than 16 MB/, undefined, { fuel: 5000 }],
  ['memory bomb of promises', 'const a = [];\nfor (;;) a.push(new Promise(() => {}));', 'MemoryError', /more than 16 MB/, undefined, { fuel: 5000 }],
  ['one huge buffer', '\nnew Uint8Array(1e9);', 'MemoryError', /more than 16 MB/, 2],
  ['string bomb', 'let s = "a";\nwhile (true) s += s;', 'InternalError', /string too long|out of memory/, 2],
  ['endless recursion', 'function f() { return f() + 1; }\nf();', 'StackError', /stack overflow/, 1],
  ['endless recursion in a getter', 'const o = { get x() { return this.x; } };\no.x;', 'StackError', /stack overflow/, 1],
  ['natives that recurse', 'let a = [];\nfor (let i = 0; i < 1e5; i++) a = [a];\nJSON.stringify(a);', /StackError|FuelError/, /stack|deep|too long/, undefined],
  ['a source nested too deeply', '('.repeat(20000), /StackError|SyntaxError/, /stack|deep/, undefined],
  ['prototype pollution', 'Object.prototype.polluted = "yes"; Array.prototype.push = () => 0;\nFunction.prototype.call = null; throw new Error("polluted");', 'Error', /polluted/, 2],
  ['toJSON for everything', 'Object.prototype.toJSON = () => "evil";\nbot.blockAt(new Vec3(0, 63, 0));', 'ArgumentError', /./, 2],
  ['constructor.constructor', '\nconst host = (function () {}).constructor("return process")();', 'ReferenceError', /process/, undefined],
  ['constructor of a host result', 'const f = bot.blockAt.constructor.constructor;\nf("return require")()("fs");', 'ReferenceError', /require/, undefined],
  ['constructor of a host error', 'try { bot.setControlState("x", true); } catch (e) {\n  e.constructor.constructor("return process.exit(1)")();\n}', 'ReferenceError', /process/, undefined],
  ['async function constructor', '\nawait (async () => {}).constructor("return await import(`fs`)")();', 'ReferenceError', /could not load module/, undefined],
  ['eval', '\neval("process.exit(1)");', 'ReferenceError', /process/, undefined],
  ['import()', '\nawait import("node:fs");', 'ReferenceError', /could not load module/, null],
  ['import statement', 'import fs from "fs";', 'SyntaxError', /./, 1],
  ['require', '\nrequire("child_process").exec("id");', 'ReferenceError', /require/, 2],
  ['process.binding', '\nprocess.binding("fs");', 'ReferenceError', /process/, 2],
  ['global objects of Node', '\n[typeof Buffer, typeof fetch, typeof WebAssembly, typeof globalThis.process].forEach((t) => {\n if (t !== "undefined") throw 1; }); module;', 'ReferenceError', /module/, 3],
  ['breaking out of the wrapper', '});\nthrow new Error("outside");\n(async function () {', 'Error', /outside/, 2],
  ['replacing the prelude', '"use strict";\nglobalThis.bot = null;', 'TypeError', /read-only|property/, 2],
  ['deleting the prelude', '"use strict";\ndelete globalThis.bot;', 'TypeError', /delete|property/, 2],
  ['changing bot', '"use strict";\nbot.chat = null;', 'TypeError', /read-only|extensible|property/, 2],
  ['breaking JSON and Promise', 'JSON.parse = JSON.stringify = () => { throw 1; }; Promise.prototype.then = null; Map.prototype.get = null;\nthrow new TypeError("still here");', 'TypeError', /still here/, 2],
  ['own stack formatter', 'try { Error.prepareStackTrace = () => { for (;;); }; } catch {}\nfor (;;) Math.sqrt(2);', 'FuelError', /too long/, 2],
  ['an error that cannot be read', '\nthrow { get message() { for (;;); } };', 'FuelError', /too long/, undefined],
  ['an error whose getters throw', '\nthrow { get name() { throw 1; } };', 'Error', /cannot be read/, null],
  ['throw null', 'throw null;', 'Error', /null was thrown/, null],
  ['a huge error', '\nthrow new Error("x".repeat(1e6));', 'Error', /^x{2000}$/, 2],
  ['calls in one tick', 'for (let i = 0; i < 1e5; i++)\n  bot.blockAt(new Vec3(0, 63, 0));', 'CallBudgetError', /more than 2000 calls/, 2],
  ['calls in one tick, caught', 'for (;;) {\n  try { bot.health; bot.chat("x"); } catch {} }', 'CallBudgetError', /more than 2000 calls/, 2],
  ['actions without await', 'for (let i = 0; i < 100; i++)\n  bot.lookAt(new Vec3(i, 64, 0));', 'ActionError', /more than 64 actions/, 2],
  ['getter in arguments', '\nbot.blockAt({ get x() { throw new RangeError("trap"); }, y: 0, z: 0 });', 'RangeError', /trap/, 2],
  ['proxy in arguments', '\nbot.blockAt(new Proxy({}, { get: () => ({}) }));', 'ArgumentError', /not a number/, 2],
  ['NaN in arguments', '\nawait bot.dig(new Vec3(NaN, 0, 0));', 'ArgumentError', /x of the position is NaN/, 2],
  ['infinite numbers', '\nbot.blockAt(new Vec3(Infinity, 0, 0));', 'ArgumentError', /finite|inside the world/, 2],
  ['cyclic value', 'const a = []; a.push(a);\nbot.findBlocks({ matching: a });', 'ArgumentError', /not a name|circular/, 2],
  ['huge string', '\nbot.chat("x".repeat(1e5));', 'ArgumentError', /60,000 characters/, 2],
  ['long chat', '\nbot.chat("x".repeat(300));', 'ArgumentError', /at most 256 characters/, 2],
  ['a command', '\nbot.chat("/op fake");', 'ArgumentError', /commands are not allowed/, 2],
  ['names of Object.prototype', '\nbot.findBlocks({ matching: "constructor" });', 'ArgumentError', /no block is called/, 2],
  ['a count out of range', '\nbot.findBlocks({ matching: "grass_block", count: 1e9 });', 'ArgumentError', /count: expected a whole number from 1 to 256/, 2],
  ['error in a host function', '\nbot.swingArm();', 'ActionError', /cannot read "arm"/, 2],
  ['never awaited and failing', '\nbot.dig(new Vec3(500, 64, 0));\nawait bot.waitForTicks(5);', 'ActionError', /too far away to dig/, 2],
  ['waiting forever', 'await new Promise(() => {});', 'NeverError', /never come/, null],
  ['a timer that throws', 'setTimeout(() => {\n  throw new Error("late");\n}, 100);', 'Error', /late/, 2]
];

async function neighbourAlone() {
  const bot = new FakeBot();
  const state = await play(makeSandbox({}, { bot }), NEIGHBOUR);
  return { state, recorded: bot.recorded };
}

test('attacks end as reported errors, without effect on a neighbour', async (t) => {
  const alone = await neighbourAlone();
  assert.strictEqual(alone.state.error, null);
  for (const [name, program, type, message, line, limits] of ATTACKS) {
    await t.test(name, async () => {
      const bot = new FakeBot();
      const neighbour = makeSandbox({}, { bot });
      const attacker = makeSandbox({ memoryMb: 16, ...limits });
      await neighbour.start(NEIGHBOUR);
      await attacker.start(program);
      for (let i = 0; i < 40; i++) {
        attacker.tick();
        neighbour.tick();
        await drain();
      }
      const { running, error } = attacker.state();
      assert.strictEqual(running, false);
      assert.ok(error, 'no error was reported');
      if (type instanceof RegExp) assert.match(error.type, type);
      else assert.strictEqual(error.type, type, JSON.stringify(error));
      assert.match(error.message, message);
      if (line !== undefined) assert.ok([line].flat().includes(error.line), `${error.line}: ${error.stack}`);
      assert.deepStrictEqual({ state: neighbour.state(), recorded: bot.recorded }, alone);
      assert.deepStrictEqual((await play(attacker, 'console.log("alive")')).logs, ['alive']);
    });
  }
});

test('what a program gets reveals nothing of the host', async () => {
  const sandbox = makeSandbox();
  const { logs, error } = await play(sandbox, `
    const seen = new Set();
    const look = (value, path) => {
      if (value === null || (typeof value !== 'object' && typeof value !== 'function') || seen.has(value)) return;
      seen.add(value);
      if (seen.size > 4000) return;
      for (const name of Reflect.ownKeys(value)) {
        let inner;
        try { inner = value[name]; } catch { continue; }
        if (['process', 'require', 'Buffer', 'module', '_client', 'world', 'hostCall'].includes(name)) console.log(path, String(name));
        look(inner, path + '.' + String(name));
      }
      look(Object.getPrototypeOf(value), path + '.__proto__');
    };
    look(globalThis, 'globalThis');
    console.log('seen', seen.size > 100);
  `);
  assert.strictEqual(error, null);
  assert.deepStrictEqual(logs, ['seen true']);
});

test('no prototype of the host has changed', async () => {
  const before = Object.getOwnPropertyNames(Object.prototype).concat(Object.getOwnPropertyNames(Array.prototype));
  await play(makeSandbox(), `
    Object.prototype.evil = 1; Array.prototype.evil = 2; String.prototype.evil = 3;
    bot.findBlocks(JSON.parse('{"matching": ["grass_block"], "__proto__": {"evil": 1}}'));
    bot.nearestEntity(JSON.parse('{"__proto__": {"evil": false}}'));`);
  const after = Object.getOwnPropertyNames(Object.prototype).concat(Object.getOwnPropertyNames(Array.prototype));
  assert.deepStrictEqual(after, before);
  assert.strictEqual({}.evil, undefined);
});

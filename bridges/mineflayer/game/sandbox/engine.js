'use strict';
/**
 * QuickJS, compiled to WebAssembly: the engine in which one generated program runs.
 *
 * Three limits surround a program. *Fuel* counts calls of QuickJS's interrupt handler (one in 10,000
 * branches and calls of the program). *Work* counts the turns of all loops of the module (meter.js):
 * it ends natives that never call the handler (`Array.prototype.indexOf.call({length: 2 ** 53 - 1},
 * 1)`). Neither depends on the machine, so a program that computes too long ends at the same point
 * everywhere. Should something escape both, a thread (watch.js) ends a turn that has used `holdMs` of
 * the processor's time.
 *
 * A QuickJS stack of 128 KB: with 256 KB natives that recurse (JSON.stringify,
 * Array.prototype.flat) overflow the host's stack first. If it overflows anyway (sources nested
 * thousands deep, unless Node runs with --stack-size=3900), that is a StackError, and the module is
 * discarded.
 */
const fs = require('node:fs');
const path = require('node:path');
const vm = require('node:vm');
const {
  DefaultIntrinsics, RELEASE_SYNC, newQuickJSWASMModuleFromVariant, newVariant
} = require('quickjs-emscripten');

const { Meter, metered } = require('./meter');
const { Watch } = require('./watch');

const STACK_BYTES = 128 * 1024;
/** Turns of loops that a program may take per unit of fuel: twice those of ordinary code. */
const WORK_PER_FUEL = 150000;
/** Work that the sandbox's own code may use. */
const OWN_WORK = 2 ** 31 - 1;
/** Jobs run between two checks whether the program must end. */
const JOB_BATCH = 64;
/** Fuel that the sandbox's own code may use: setting up the prelude, finding a line. */
const OWN_FUEL = 1000;
const GUEST_FILES = ['core', 'promises', 'vec3', 'things', 'data', 'bot', 'walking'];
/**
 * Compiled inside QuickJS when a program first uses a helper: compiling is most of the start-up
 * cost.
 */
const LATE_FILES = ['helpers', 'helpers_more', 'plugins'];

/** Exit status of a process that SIGINT ends. */
const INTERRUPTED = 130;
const ENTER = Symbol.for('gamut.sandbox.enter');
const ENTER_SCRIPT = new vm.Script('globalThis[Symbol.for("gamut.sandbox.enter")]()', {
  filename: 'sandbox-entry.js'
});

/** What QuickJS itself takes of its memory: the stack of WebAssembly, its data, an empty context. */
const BASE_MB = 6;
/** The module needs at least 16 MB. */
const FIRST_PAGES = 256;
const PAGES_PER_MB = 16;

let watch = null;
let compiled = null;
let preludeTexts = null;

/**
 * Returns a new WebAssembly instance of QuickJS whose memory cannot grow beyond what a program may
 * hold; the code is compiled once per process. The limit must be the memory's own: QuickJS built
 * by Emscripten does not know the sizes of its blocks and counts 8 bytes for each.
 */
async function newModule(memoryMb) {
  if (!compiled) {
    const file = require.resolve('@jitl/quickjs-wasmfile-release-sync/wasm');
    compiled = WebAssembly.compile(metered(fs.readFileSync(file)));
  }
  const maximum = Math.max(FIRST_PAGES, Math.ceil((memoryMb + BASE_MB) * PAGES_PER_MB));
  const wasmMemory = new WebAssembly.Memory({ initial: FIRST_PAGES, maximum });
  let isFull = false;
  wasmMemory.grow = (pages) => {
    try {
      return WebAssembly.Memory.prototype.grow.call(wasmMemory, pages);
    } catch (error) {
      isFull = true;
      throw error;
    }
  };
  const meter = new Meter(wasmMemory);
  meter.left = OWN_WORK;
  const variant = newVariant(RELEASE_SYNC, { wasmModule: compiled, wasmMemory });
  const quickjs = await newQuickJSWASMModuleFromVariant(variant);
  return { quickjs, meter, isFull: () => isFull };
}

/** Returns the text of guest/*.js files, each the body of a function that sees `guest`, run in turn. */
function guestText(names) {
  return names.map((name) => {
    const text = fs.readFileSync(path.join(__dirname, 'guest', `${name}.js`), 'utf8');
    return `(function () {\n${text}})();`;
  }).join('\n');
}

/** Returns {first, late}: the source texts of a program's environment. */
function prelude() {
  preludeTexts ??= {
    first: `(hostCall, settings) => { 'use strict'; const guest = { hostCall, settings };
${guestText(GUEST_FILES)}
return guest.hooks; }`,
    late: `(guest) => { 'use strict'; ${guestText(LATE_FILES)} }`
  };
  return preludeTexts;
}

/** A reason to end a program; `type` is what the user reads in `state().error.type`. */
class EndReason extends Error {
  constructor(type, message, stack = null) {
    super(message);
    this.type = type;
    this.guestStack = stack;
  }
}

/** One program in its own module: no program can read the memory of another one. */
class Engine {
  /**
   * @param {object} module of newModule(); used by this engine only
   * @param {{memoryMb: number, seed: number}} limits
   * @param {(op: string, text: string) => string} host answers the program's calls; may not enter the engine
   */
  constructor(module, limits, host) {
    this.limits = limits;
    this.host = host;
    /** Why the program must end, once it must. */
    this.endReason = null;
    this.module = module;
    this.fuel = OWN_FUEL;
    /** Turns of loops of the last entry. */
    this.worked = 0;
    this.searching = false;
    this.open = true;
    this.enter(() => this.build(module.quickjs));
  }

  build(quickjs) {
    this.runtime = quickjs.newRuntime({
      memoryLimitBytes: Math.round(this.limits.memoryMb * 1048576),
      maxStackSizeBytes: STACK_BYTES
    });
    this.runtime.setInterruptHandler(() => this.interrupt());
    this.context = this.runtime.newContext({ intrinsics: DefaultIntrinsics });
    const { context } = this;
    const make = this.value(context.evalCode(prelude().first, 'prelude.js'));
    const call = context.newFunction('host', (op, text) => {
      if (context.typeof(op) !== 'string' || context.typeof(text) !== 'string') {
        throw new TypeError('a host call takes two texts');
      }
      return context.newString(this.host(context.getString(op), context.getString(text)));
    });
    const settings = context.newObject();
    context.setProp(settings, 'seed', context.newNumber(this.limits.seed >>> 0));
    context.setProp(settings, 'late', context.newString(prelude().late));
    const hooks = this.value(context.callFunction(make, context.undefined, call, settings));
    this.hooks = {};
    for (const name of ['run', 'deliver', 'turn', 'site']) {
      this.hooks[name] = context.getProp(hooks, name);
    }
  }

  /** Returns the handle of a result, or throws what the program threw. */
  value(result) {
    if (!result.error) return result.value;
    const error = this.thrown(result.error);
    result.error.dispose();
    throw error;
  }

  /** Converts an error thrown outside the program's own promise (mostly a SyntaxError) to an EndReason. */
  thrown(handle) {
    if (this.endReason) return this.endReason;
    if (this.context.typeof(handle) !== 'object') return new EndReason('Error', 'the program threw no error');
    const text = (name) => {
      const part = this.context.getProp(handle, name);
      const plain = this.context.typeof(part) === 'string' ? this.context.getString(part) : '';
      part.dispose();
      return plain.slice(0, 2000);
    };
    return new EndReason(text('name') || 'Error', text('message'), text('stack'));
  }

  /** The interrupt handler of QuickJS: true ends the program. */
  interrupt() {
    if (this.fuel-- > 0 && !this.endReason) return false;
    if (this.endReason || this.searching) return true;
    const stack = this.site();
    this.endReason = new EndReason('FuelError',
      'the program computed too long within one tick (a loop without an end, or without an await?)',
      stack);
    return true;
  }

  /** Returns the stack of the program at this moment, or null. */
  site() {
    this.searching = true;
    this.fuel = 1;
    try {
      const result = this.context.callFunction(this.hooks.site, this.context.undefined);
      const handle = result.error ?? result.value;
      const ok = !result.error && this.context.typeof(handle) === 'string';
      const text = ok ? this.context.getString(handle) : null;
      handle.dispose();
      return text;
    } finally {
      this.searching = false;
    }
  }

  /**
   * Runs `fn`, which enters QuickJS; only in a turn of together().
   * @throws {EndReason} when the program must end
   */
  enter(fn) {
    if (!this.open) return undefined;
    let result;
    try {
      result = fn();
    } catch (error) {
      throw this.broken(error);
    }
    if (this.endReason) throw this.endReason;
    return result;
  }

  /** Returns the EndReason of an exception on the host's side. */
  broken(error) {
    if (error instanceof EndReason) return error;
    if (this.module.meter.left < 0) {
      return new EndReason('FuelError', 'the program computed too long within one tick, in one native function');
    }
    if (error instanceof RangeError) {
      return new EndReason('StackError', 'the program recursed or nested too deeply');
    }
    return new EndReason('SandboxError', `the sandbox broke: ${String(error?.message ?? error).slice(0, 300)}`);
  }

  /** Compiles a program and runs it up to its first waits. @throws {EndReason} */
  begin(source, fuel, work) {
    this.turn(fuel, work, () => {
      const { context } = this;
      // One line and no parameters, so that the program's own line numbers are correct.
      const main = this.value(context.evalCode(`(async function () {${source}\n})`, 'program.js'));
      this.call('run', main);
    });
  }

  /** Hands a batch of results over and runs the program up to its next waits. @throws {EndReason} */
  deliver(text, fuel, work) {
    this.turn(fuel, work, () => this.call('deliver', this.context.newString(text)));
  }

  turn(fuel, work, fn) {
    const { meter } = this.module;
    this.fuel = fuel;
    meter.left = work;
    try {
      this.enter(() => {
        fn();
        this.jobs();
        if (!this.endReason) this.call('turn');
      });
    } finally {
      this.worked = work - meter.left;
      meter.left = OWN_WORK;
    }
  }

  /** Calls a hook of the prelude; disposes of its arguments. */
  call(name, ...handles) {
    const done = this.context.callFunction(this.hooks[name], this.context.undefined, ...handles);
    for (const handle of handles) handle.dispose();
    this.value(done).dispose();
  }

  /** Runs promise jobs until none is left or the program must end. */
  jobs() {
    for (let batch = 1; !this.endReason && this.runtime.hasPendingJob(); batch++) {
      const result = this.runtime.executePendingJobs(JOB_BATCH);
      if (result.error) {
        const error = this.thrown(result.error);
        result.error.dispose();
        throw error;
      }
      // Jobs count as well, 1,024 of them as one unit of fuel: some contain no branch.
      if (batch % 16 === 0 && --this.fuel < -OWN_FUEL) this.interrupt();
    }
  }

  /**
   * Discards the program and its module; nothing of it runs afterwards. The garbage collector frees
   * it.
   */
  close() {
    this.open = false;
    this.runtime = this.context = this.module = null;
    this.hooks = {};
  }
}

/**
 * Runs turns one after the other, each within a limit of processor time. A turn beyond it is ended,
 * and the others continue.
 *
 * @param {Array<() => void>} turns what they throw is thrown
 * @param {number} holdMs milliseconds of the processor's time, for each
 * @param {(index: number, endReason: EndReason) => void} ended told of a turn that was ended
 * @returns {number} milliseconds of the processor's time that they took
 */
function together(turns, holdMs, ended) {
  watch ??= new Watch();
  const before = process.cpuUsage();
  let next = 0;
  const enter = () => {
    while (next < turns.length) watch.run(turns[next++], holdMs);
  };
  while (next < turns.length) {
    globalThis[ENTER] = enter;
    try {
      // Node's own way to interrupt a script; of no other use here.
      ENTER_SCRIPT.runInThisContext({ breakOnSigint: true });
    } catch (error) {
      if (error?.code !== 'ERR_SCRIPT_EXECUTION_INTERRUPTED') throw error;
      if (!watch.interrupted()) process.exit(INTERRUPTED); // as SIGINT does without us
      ended(next - 1, new EndReason('ProcessorTimeError', `the program held the process for ${holdMs} ms of ` +
        "the processor's time; this fence depends on the machine, unlike the others"));
    } finally {
      globalThis[ENTER] = undefined;
    }
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e3;
}

module.exports = { EndReason, Engine, OWN_WORK, WORK_PER_FUEL, newModule, prelude, together };

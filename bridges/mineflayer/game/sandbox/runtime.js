'use strict';
/**
 * The sandbox in which one agent's generated programs run.
 *
 *   const sandbox = new Sandbox({ agent, api, memoryMb: 32, fuel: 200, calls: 2000, holdMs: 5000, seed: 1 });
 *   let ready;                       // start and tick with the world's context current, which they touch
 *   world.run(() => { ready = sandbox.start(source); });  // NEW: the former program ends here, at once
 *   await ready;
 *   sandbox.tick();                  // once for every game tick; Sandbox.tickAll(list) for many at once
 *   sandbox.state();                 // {running, error, ticks, calls, logs, ...}
 *
 * A program is the body of an async function. It starts in the first tick after `start`. What it
 * awaits is settled by the game and passed to it at the beginning of a tick, in the order of the
 * calls. A program is over when its function has ended and none of its calls is in progress, or at
 * its first uncaught error. Effects of actions on mineflayer happen outside of turns, so that
 * ending a program never interrupts the host in the middle of one.
 *
 * Budgets: `fuel` per tick (see engine.js), `calls` per tick (each call of the API counts its cost),
 * `memoryMb` for everything a program holds, 64 actions in progress at once. A program may use a
 * tick's budget at once, but in the long run only one in 25 ticks, or in a step of the game that is
 * longer: what it uses is a debt, which falls with every tick, and while it is above a fifth of a
 * budget the program waits, and so does the next one of the agent. So one program costs the others
 * a bounded time per step, and all counts are of work, which is the same on every machine.
 */
const { EndReason, Engine, OWN_WORK, WORK_PER_FUEL, newModule, together } = require('./engine');
const { checkArguments } = require('./check');
const { linesOf } = require('./lines');
const { MAX_ANSWER, errorPair, plain, textsOf } = require('./answers');
const { patienceFor, spend } = require('./patience');

const DEFAULTS = { memoryMb: 32, fuel: 200, calls: 2000, holdMs: 5000, ticksPerStep: 5, seed: 0 };
const MAX_SOURCE = 20000; // spaces.py has it, too

/** Counts characters, not halves of surrogate pairs. */
const isLong = (source) => source.length > 2 * MAX_SOURCE
  || (source.length > MAX_SOURCE && [...source].length > MAX_SOURCE);
const MAX_IN_PROGRESS = 64;
const MAX_LOGS = 100;
/** Ticks that a tick's budget of work must last for, or a step of the game where that has more. */
const TICKS_PER_BUDGET = 25;
/** Part of a budget that a program may owe without waiting. */
const CREDIT = 0.2;
/** Work that a call counts as for each of its cost: some 20 microseconds. */
const WORK_PER_CALL = 6000;
/** Budgets that the searches of one tick may take; the program waits the longer afterwards. */
const TOIL_BUDGETS = 2;
/** Budgets that a program which held the process beyond all other limits owes. */
const STALL_BUDGETS = 10;
/** A refused call counts as this many calls. */
const REFUSAL_COST = 20;

/** One unit of fuel is about half a millisecond of ordinary code (0.03 to 3 ms measured). */
const FUEL_PER_MS = 2;

/**
 * Returns a Sandbox's limits for the wire's `code` {time_ms (per tick), memory_mb, calls (per tick)},
 * where the game plays so many ticks per step.
 */
function limitsOf(code = {}, ticksPerStep = DEFAULTS.ticksPerStep) {
  const limits = { ticksPerStep };
  if (code.time_ms !== undefined) {
    limits.fuel = Math.max(1, Math.ceil(code.time_ms * FUEL_PER_MS));
    limits.holdMs = Math.max(DEFAULTS.holdMs, Math.ceil(code.time_ms) * 20);
  }
  if (code.memory_mb !== undefined) limits.memoryMb = code.memory_mb;
  if (code.calls !== undefined) limits.calls = code.calls;
  return limits;
}

/** Whether a search asks for more than its limits; a count of 0 is merely wrong. */
function scansTooMuch(entry, text) {
  const given = JSON.parse(text)[0] ?? {};
  return Object.entries(entry.args[0].fields).some(([key, { max }]) => given[key] > max);
}

class Sandbox {
  /**
   * @param {{agent: object, api: object, memoryMb?: number, fuel?: number, calls?: number,
   *   holdMs?: number, ticksPerStep?: number, seed?: number, work?: number}} options `api` of makeApi() (api.js), `agent` what it acts on
   */
  constructor({ agent, api, ...limits }) {
    this.agent = agent;
    this.api = api;
    this.limits = { ...DEFAULTS, ...limits };
    this.module = null;
    this.engine = null;
    this.source = null;
    this.starts = 0;
    this.programs = 0;
    this.report = null;
    this.debt = 0;
    this.forget();
  }

  forget() {
    this.ops = new Map();
    this.events = [];
    this.nextOp = 1;
    this.ended = false;
    this.spent = 0;
    this.error = null;
    this.stopped = null;
    this.ticks = 0;
    this.calls = 0;
    this.refusedLines = 0;
    this.logs = [];
    this.logsLeftOut = 0;
  }

  /** Resets the state, as at the start of an episode: the random numbers begin again. */
  reset(seed = this.limits.seed) {
    this.stop('the episode ended');
    this.limits.seed = seed;
    this.programs = 0;
    this.debt = 0;
    this.forget();
  }

  /**
   * NEW: ends what runs, at once, lets go of what a former program left behind, and makes a program
   * ready; it begins in the next tick().
   * @returns {Promise<void>} settled when tick() may be called
   */
  async start(source) {
    if (this.running) this.stop('a new program came');
    else this.api.release(this.agent);
    const turn = ++this.starts;
    this.forget();
    this.programs += 1;
    if (typeof source !== 'string' || isLong(source)) {
      const message = `a program is a text of at most ${MAX_SOURCE} characters`;
      this.error = { type: 'SyntaxError', message, stack: '', line: null };
      return;
    }
    this.source = source;
    const module = await newModule(this.limits.memoryMb);
    if (turn === this.starts) this.module = module;
  }

  /** Whether a program is in progress (or will begin in the next tick). */
  get running() {
    return this.source !== null;
  }

  /** Ends the program, if one runs, and all its calls in progress. */
  stop(reason) {
    if (!this.running) return;
    this.stopped = String(reason);
    this.end();
    this.api.release(this.agent);
  }

  end() {
    this.source = null;
    for (const op of this.ops.values()) op.abort?.abort();
    this.ops.clear();
    this.events = [];
    this.api.quiet(this);
    this.engine?.close();
    this.engine = null;
    this.module = null;
  }

  /** Runs the program for one game tick. Call it with the world's context current. */
  tick() {
    Sandbox.tickAll([this]);
  }

  /** Runs the programs of several sandboxes for one game tick: equivalent to one by one, and cheaper. */
  static tickAll(sandboxes) {
    const running = sandboxes.filter((sandbox) => sandbox.running);
    for (const sandbox of running) {
      if (!sandbox.module) throw new Error('await start() before tick()');
    }
    const awake = running.filter((sandbox) => sandbox.prepare());
    const turns = awake.map((sandbox) => () => sandbox.turn());
    const holdMs = Math.max(1, ...awake.map((sandbox) => sandbox.limits.holdMs));
    const freeMs = awake.reduce((sum, sandbox) => sum + sandbox.limits.fuel / FUEL_PER_MS, 0);
    const ended = (index, endReason) => { awake[index].endReason = endReason; };
    spend(together(turns, patienceFor(holdMs, freeMs), ended), holdMs, freeMs);
    for (const sandbox of running) sandbox.finish();
  }

  /** Work that a program may do in a tick. */
  get budget() {
    return this.limits.work ?? Math.min(OWN_WORK, this.limits.fuel * WORK_PER_FUEL);
  }

  /** Begins a tick; returns whether the program has anything to do in it. */
  prepare() {
    this.ticks += 1;
    this.spent = 0;
    this.toil = 0;
    this.endReason = null;
    this.debt = Math.max(0, this.debt - this.budget / Math.max(TICKS_PER_BUDGET, this.limits.ticksPerStep));
    this.waits = this.debt > CREDIT * this.budget;
    if (this.waits) return false;
    this.batch = this.engine ? this.collect() : null;
    return !this.engine || this.batch !== null;
  }

  /** The program's own part of a tick, within its limits. */
  turn() {
    try {
      if (this.engine) this.engine.deliver(this.batch, this.limits.fuel, this.budget);
      else this.begin();
    } catch (error) {
      if (!(error instanceof EndReason)) throw error;
      this.endReason = error;
    }
    this.debt += (this.engine?.worked ?? 0) + this.spent * WORK_PER_CALL + this.toil;
  }

  /** The host's part: starts the requested actions, checks whether the program is over. */
  finish() {
    if (this.endReason) {
      const { type, message, guestStack } = this.endReason;
      if (type === 'ProcessorTimeError') this.debt += STALL_BUDGETS * this.budget;
      else if (type === 'FuelError' || type === 'CallBudgetError') this.debt += this.budget;
      this.fail({ type, message, stack: guestStack ?? '' });
      return;
    }
    this.launch();
    if (!this.waits) this.conclude();
  }

  begin() {
    const { memoryMb, seed, fuel } = this.limits;
    // Each program of an episode has its own random numbers, whatever sandbox runs it.
    const chance = Math.imul(seed | 0, 0x9e3779b1) + Math.imul(this.programs, 0x85ebca6b);
    this.engine = new Engine(this.module, { memoryMb, seed: chance }, this.answer.bind(this));
    this.engine.begin(this.source, fuel, this.budget);
  }

  /** Returns the results since the last tick as the text of a batch, or null. */
  collect() {
    const settled = [];
    for (const [id, op] of this.ops) {
      if (op.due !== undefined && this.ticks >= op.due) op.result = [true, null];
      if (!op.result && op.deadline !== undefined && this.ticks > op.deadline) {
        op.abort?.abort();
        op.result = [false, ['ActionError', `${op.entry.name} was not done after ${op.limit} ticks`]];
      }
      if (!op.result) continue;
      settled.push([id, ...op.result]);
      this.ops.delete(id);
    }
    if (settled.length === 0 && this.events.length === 0) return null;
    const { events } = this;
    this.events = [];
    return JSON.stringify({ tick: this.ticks - 1, settled, events });
  }

  /** Starts the requested actions, in the order of the calls. */
  launch() {
    // Only one window click at a time: the library loses track of the slots otherwise.
    let isBusy = false;
    for (const op of this.ops.values()) {
      const waits = op.entry.inTurn && isBusy;
      isBusy ||= Boolean(op.entry.inTurn && !op.result);
      if (op.state !== 'asked' || waits) continue;
      op.state = 'in progress';
      op.abort = new AbortController();
      const settle = (ok, value) => { op.result ??= [ok, value]; };
      const refuse = (error) => settle(false, errorPair(error));
      try {
        const promise = op.entry.run(this.agent, op.values, op.abort.signal);
        promise.then((value) => settle(true, plain(value)), refuse).catch(refuse);
      } catch (error) {
        refuse(error);
      }
    }
  }

  /** Ends the program if it has failed or is complete. */
  conclude() {
    if (this.report) {
      const report = this.report;
      this.report = null;
      this.fail(report);
    } else if (this.ops.size === 0 && this.ended) {
      this.end();
    } else if (this.ops.size === 0 && !this.api.isListening(this)) {
      // A job that finds no memory left disappears without an error, with what the program waits
      // for.
      const type = this.module.isFull() ? 'MemoryError' : 'NeverError';
      this.fail({ type, message: 'the program waits for what can never come', stack: '' });
    }
  }

  fail(report) {
    this.error = this.readable(report);
    // To fill a memory takes the host longer than the turns of loops tell.
    if (this.error.type === 'MemoryError') this.debt += 2 * this.budget;
    this.report = null;
    this.end();
    this.api.release(this.agent);
  }

  /** Returns an error as state() shows it: the stack has the program's own frames only. */
  readable(report) {
    const { message, stack } = textsOf(report);
    const { line, frames } = linesOf(stack);
    const type = this.typeOf(textsOf(report));
    if (type === 'null') return { type: 'Error', message: 'null was thrown', stack: frames, line };
    const isMemory = type === 'MemoryError';
    const text = isMemory ? `the program holds more than ${this.limits.memoryMb} MB` : message;
    return { type, message: text, stack: frames, line };
  }

  /** QuickJS has its own names for exhausted resources, or none when no memory is left for one. */
  typeOf({ type, message }) {
    const isNameless = type === 'null' || (type === 'Error' && message === '');
    if (isNameless && this.module.isFull()) return 'MemoryError';
    if (type !== 'InternalError') return type;
    if (message.startsWith('out of memory')) return 'MemoryError';
    return message === 'stack overflow' ? 'StackError' : type;
  }

  /** Answers a call of the program, within its limits: JSON of {value} or {error: [type, message]}. */
  answer(op, text) {
    if (op.startsWith('$')) return this.internal(op, text);
    try {
      const entry = this.charge(op);
      const values = checkArguments(entry, JSON.parse(text), this.agent.bot.registry);
      if (entry.work) this.work(entry, values);
      const value = entry.async ? this.ask(entry, values) : entry.run(this.agent, values, this);
      const answer = JSON.stringify({ value });
      if (answer.length > MAX_ANSWER) throw new Error(`${op}: the answer is too long`);
      return answer;
    } catch (error) {
      // Composing an error (nearest names) costs more than most replies.
      this.spent += REFUSAL_COST;
      if (this.api.entries.get(op)?.scans && scansTooMuch(this.api.entries.get(op), text)) {
        this.agent.trace?.add('violation', { rule: 'bulk_scan', evidence: error.message });
      }
      return JSON.stringify({ error: errorPair(error) });
    }
  }

  charge(op) {
    const entry = this.api.entries.get(op);
    if (!entry) throw new Error(`no host call ${op}`);
    this.spent += entry.cost;
    if (this.engine?.endReason) throw this.engine.endReason;
    if (this.spent > this.limits.calls) {
      this.exceed(`more than ${this.limits.calls} calls within one tick; wait in between (await bot.waitForTicks(1))`);
    }
    this.calls += 1;
    return entry;
  }

  /** Adds what a call makes the game do, known from its arguments alone: hidden blocks must not count. */
  work(entry, values) {
    this.toil += entry.work(values);
    if (this.toil > TOIL_BUDGETS * this.budget) this.exceed(`${entry.name} searched too much within one tick; wait in between, search nearer`);
  }

  /** Ends the program, which is in the middle of a call. @throws {EndReason} */
  exceed(message) {
    this.engine.endReason = new EndReason('CallBudgetError', message, this.engine.site());
    throw this.engine.endReason;
  }

  ask(entry, values) {
    if (this.ops.size >= MAX_IN_PROGRESS) {
      throw new RangeError(`more than ${MAX_IN_PROGRESS} actions in progress at once; await them`);
    }
    const id = this.nextOp++;
    const op = { entry, values, state: 'asked' };
    if (entry.wait) {
      op.state = 'in progress';
      op.due = this.ticks + entry.wait(values);
    } else {
      op.limit = entry.ticks instanceof Function ? entry.ticks(values) : entry.ticks;
      op.deadline = this.ticks + op.limit;
    }
    this.ops.set(id, op);
    return id;
  }

  internal(op, text) {
    if (op === '$log') {
      if (this.logs.length < MAX_LOGS) this.logs.push(String(JSON.parse(text)).slice(0, 300));
      else this.logsLeftOut += 1;
    } else if (op === '$cancel') {
      const id = JSON.parse(text);
      if (this.ops.get(id)?.due !== undefined) this.ops.delete(id);
    } else if (op === '$end') {
      this.ended = true;
      this.report ??= JSON.parse(text);
    } else if (op === '$unhandled') {
      this.report ??= JSON.parse(text);
    }
    return '';
  }

  /**
   * Returns {running, error: null | {type, message, stack, line}, stopped: null | text, ticks (since
   * NEW), calls (since NEW), logs [text], logsLeftOut}. `line` counts from 1 in the program's text.
   */
  state() {
    const { running, error, stopped, ticks, calls, logsLeftOut } = this;
    return { running, error, stopped, ticks, calls, logs: [...this.logs], logsLeftOut };
  }

  /** Frees everything; the sandbox must not be used again. */
  close() {
    this.stop('closed');
  }
}

module.exports = { DEFAULTS, FUEL_PER_MS, Sandbox, limitsOf };

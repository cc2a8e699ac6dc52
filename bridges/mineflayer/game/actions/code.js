'use strict';
/**
 * Programs in JavaScript, sandboxed (sandbox/): with `kind` 0 RESUME the program continues, with 1
 * NEW the text in `code` replaces it. A program is the body of an async function.
 *
 * A program is stopped at once, and its walk, keys, digging, item in use and window are released,
 * by a NEW program; by the agent's death; and, with `on_event: stop` in the instance's `code`, by
 * damage to the agent or a chat message that names it. Other events do not stop programs. A program
 * that was stopped has no error; `code_info.stopped` says why.
 *
 * A program runs before every game tick. The number of an error in `code_state` stays until the
 * next NEW; `code_info.code_error` contains it once, in the frame of the step in which it happened,
 * as in MineLand.
 */
const { Actor } = require('./actor');
const { Sandbox, limitsOf } = require('../sandbox/runtime');
const { hearsChat, makeApi } = require('../sandbox/api');

const NEW = 1;
const SEARCH_MS = 1000;
const ON_EVENT = ['go_on', 'stop'];

/** Error types by number, from 1; errors that a program throws itself are `Error`. */
const ERRORS = ['Error', 'SyntaxError', 'ArgumentError', 'ActionError', 'MemoryError', 'StackError',
  'CallBudgetError', 'FuelError', 'ProcessorTimeError', 'NeverError', 'SandboxError'];

class Code extends Actor {
  /** @param {object} agent see agent.js: bot, senses, config.code, counts, listen, now() */
  constructor(agent) {
    super(agent);
    const code = agent.config.code ?? {};
    this.onEvent = code.on_event ?? 'go_on';
    if (!ON_EVENT.includes(this.onEvent)) {
      throw new Error(`code.on_event: expected one of ${ON_EVENT.join(', ')}, got ${code.on_event}`);
    }
    const seed = Math.floor(Math.random() * 2 ** 31);
    this.sandbox = new Sandbox({ agent, api: makeApi(), seed, ...limitsOf(code, agent.config.ticks_per_step) });
    // A search without result takes this long, 250 nodes in each of 20 ticks (api_walk.js);
    // mineflayer's five seconds, which suit real time, would be 25,000.
    if (agent.embedded && this.bot.pathfinder) this.bot.pathfinder.thinkTimeout = SEARCH_MS;
    this.source = '';
    this.since = 0;
    this.error = null;
    this.told = true;
    agent.listen(this.bot, 'death', () => this.interrupt('the agent died'));
    agent.listen(this.bot, 'entityHurt', (entity) => {
      if (entity === this.bot.entity) this.happened('the agent was hurt');
    });
    agent.listen(this.bot, 'chat', (username, text) => {
      const isMeant = username !== agent.name && text.includes(agent.name) && hearsChat(agent, username);
      if (isMeant) this.happened(`${username} spoke to it`);
    });
  }

  /** Takes the action of a step; settles when the first tick may come. */
  async apply(row) {
    this.told = true;
    this.left = this.agent.config.ticks_per_step ?? 1;
    if (row.kind === NEW) {
      this.source = row.code;
      this.since = 0;
      this.error = null;
      await this.sandbox.start(row.code);
      this.note();
    }
    this.pulse();
  }

  pulse() {
    this.since++;
    if (!this.sandbox.running) return;
    this.sandbox.tick();
    this.note();
  }

  /** Records a new error. */
  note() {
    const { error } = this.sandbox;
    if (error === null || error === this.error) return;
    this.error = error;
    this.told = false;
    this.agent.counts.code_errors++;
  }

  happened(what) {
    if (this.onEvent === 'stop') this.interrupt(what);
  }

  interrupt(reason) {
    this.sandbox.stop(reason);
    this.bot.clearControlStates();
  }

  /** Returns `{running, ticks, error, info}`: the program's state, and MineLand's code_info. */
  codeState() {
    const state = this.sandbox.state();
    const number = this.error === null ? 0 : Math.max(0, ERRORS.indexOf(this.error.type)) + 1;
    return { running: state.running, ticks: this.since, error: number, info: this.info(state) };
  }

  info({ running, stopped, calls, logs, logsLeftOut }) {
    const { error } = this;
    const shown = this.told || error === null ? {} : { error_type: error.type,
      error_message: error.message, error_stack: error.stack, error_line: error.line };
    return { name: this.agent.name, is_running: running, is_ready: !running, code_error: shown,
      last_code: this.source, code_tick: this.since, stopped, calls, logs, logs_left_out: logsLeftOut };
  }

  close() {
    this.sandbox.close();
  }
}

module.exports = { Code, ERRORS, NEW };

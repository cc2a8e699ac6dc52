'use strict';
/** Shared by all layouts: an action is held for the ticks of a step. */

class Actor {
  /** @param {object} agent see agent.js: bot, config, events, listen */
  constructor(agent) {
    this.agent = agent;
    this.bot = agent.bot;
    this.left = 0;
  }

  /** Sets the action of the step that begins, and does its first tick. */
  apply(row) {
    this.left = this.agent.config.ticks_per_step ?? 1;
    this.begin(row);
    this.pulse();
  }

  /** Called after every game tick: does the next one, unless the step has ended. */
  tick() {
    this.left--;
    if (this.left > 0) this.pulse();
  }
}

module.exports = { Actor };

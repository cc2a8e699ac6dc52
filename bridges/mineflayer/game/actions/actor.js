'use strict';
/** What all layouts share: an action holds for the ticks of a step. */

class Actor {
  /** @param {object} agent see agent.js: bot, config, events, listen */
  constructor(agent) {
    this.agent = agent;
    this.bot = agent.bot;
    this.left = 0;
  }

  /** Takes the action of a step, which is about to be played, and does its first tick. */
  apply(row) {
    this.left = this.agent.config.ticks_per_step ?? 1;
    this.begin(row);
    this.pulse();
  }

  /** Called after every game tick: does the next one, unless the step is over. */
  tick() {
    this.left--;
    if (this.left > 0) this.pulse();
  }
}

module.exports = { Actor };

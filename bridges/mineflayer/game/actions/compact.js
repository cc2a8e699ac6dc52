'use strict';
/**
 * Useful actions by one number each: named rows of `low_level`, for learners for which eight
 * simultaneous choices make exploration too hard. compact.json lists them for both sides: Python
 * reads names and sizes, this file their definitions.
 *
 * Turns and looks are 15 degrees, far turns 60. Everything lasts for the step, as in `low_level`.
 * next_item and previous_item select the next of the nine hot-bar slots, cyclically, and do nothing
 * else.
 */
const { ActionError } = require('../decode');
const { LowLevel } = require('./low_level');
const ROWS = require('./compact.json');

const NAMES = Object.keys(ROWS);
const HOTBAR = 9;
const STEPS = { next_item: 1, previous_item: -1 };

class Compact extends LowLevel {
  /** `agent.config.compact_actions` lists the offered names, in order; empty for all. */
  constructor(agent) {
    super(agent);
    const chosen = agent.config.compact_actions ?? [];
    const unknown = chosen.find((name) => !(name in ROWS));
    if (unknown !== undefined) {
      throw new Error(`compact_actions: expected names among ${NAMES.join(', ')}, got ${unknown}`);
    }
    this.names = chosen.length > 0 ? chosen : NAMES;
  }

  begin({ action }) {
    const name = this.names[action];
    if (name === undefined) {
      throw new ActionError(`action: expected one of ${this.names.length} compact actions, got ${action}`);
    }
    super.begin({ action: ROWS[name] });
    if (name in STEPS) this.select(STEPS[name]);
  }

  select(step) {
    const { bot, hands } = this;
    hands.letGo();
    bot.setQuickBarSlot((bot.quickBarSlot + step + HOTBAR) % HOTBAR);
  }
}

module.exports = { Compact, NAMES };

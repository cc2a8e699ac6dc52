'use strict';
/**
 * Useful actions by one number each: rows of `low_level` that have a name, for learners whom eight
 * choices at once would keep from ever meeting anything. compact.json lists them, and both sides
 * read it: Python for names and sizes, this file for what they do.
 *
 * Turns and looks are 15 degrees, far turns 60. Everything lasts for the step, as in `low_level`.
 * next_item and previous_item step through the nine places of the hot-bar, round its ends, and do
 * nothing else.
 */
const { ActionError } = require('../decode');
const { LowLevel } = require('./low_level');
const ROWS = require('./compact.json');

const NAMES = Object.keys(ROWS);
const HOTBAR = 9;
const STEPS = { next_item: 1, previous_item: -1 };

class Compact extends LowLevel {
  /** `agent.config.compact_actions` lists the names there are, in their order; none for all. */
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

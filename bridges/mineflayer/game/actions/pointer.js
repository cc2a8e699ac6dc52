'use strict';
/**
 * The cursor in windows, moved and pressed by an agent's mouse and keys as in the game.
 *
 * The camera moves it, 2400/360 pixels of the interface for each degree, from the middle of the
 * picture. A button that is pressed takes what lies in a slot; what the cursor carries is put down
 * where the button is released, or, if it was dragged over several slots, shared among them: left in
 * equal parts, right one each. With sneak a press is a shift-click. A hotbar key swaps with the slot
 * under the cursor, drop throws one of it away. A press outside of the window throws what is carried.
 */
const { layoutOf, screenOf, slotAt, buttonAt, scrollAt } = require('./window_layout');
const { cutsOf } = require('../survival/cutting');
const { banners: BANNERS } = require('../survival/cuts.json');

/** Pixels of the interface for each degree of the camera, as MineRL's engine moves the mouse. */
const PIXELS = 2400 / 360;
const OUTSIDE = -999;
const [LEFT, RIGHT] = [0, 1];
const [CLICK, SHIFT, SWAP, THROW] = [0, 1, 2, 4];
const OFFERS = 3;
const STEP = 4; // pixels between the places that a dragged cursor is over

const same = (one, other) => one.type === other.type && one.metadata === other.metadata
  && JSON.stringify(one.nbt ?? null) === JSON.stringify(other.nbt ?? null);

class Pointer {
  /** @param {object} agent see agent.js: bot, config.rgb, embedded, listen */
  constructor(agent) {
    this.agent = agent;
    this.bot = agent.bot;
    this.ownOpen = false;
    this.clicks = Promise.resolve();
    this.reset();
    const { bot } = agent;
    agent.listen(bot, 'windowOpen', () => this.reset());
    agent.listen(bot, 'windowClose', () => this.reset());
    agent.listen(bot, 'death', () => this.closeOwn());
    // What comes before `windowOpen` belongs to the window that opens.
    agent.listen(bot._client, 'open_window', () => { this.properties = {}; this.trades = []; });
    agent.listen(bot._client, 'craft_progress_bar', ({ property, value }) => { this.properties[property] = value; });
    agent.listen(bot._client, 'trade_list', ({ trades }) => { this.trades = trades; });
    this.properties = {};
    this.trades = [];
  }

  reset() {
    this.at = null;
    this.drag = null;
    this.first = 0; // row of buttons at the top
    this.chosen = -1;
  }

  /** The window that is open, or null. */
  get window() {
    return this.bot.currentWindow ?? (this.ownOpen ? this.bot.inventory : null);
  }

  /** Opens the inventory, or closes what is open. */
  toggle() {
    const { bot } = this;
    if (bot.currentWindow) {
      this.queue(() => bot.currentWindow && bot.closeWindow(bot.currentWindow));
    } else if (this.ownOpen) this.queue(() => this.closeOwn());
    else {
      this.reset();
      this.properties = {};
      this.ownOpen = true;
    }
  }

  closeOwn() {
    if (!this.ownOpen) return;
    this.ownOpen = false;
    this.reset();
    // What the cursor carries and what lies in the grid comes back.
    this.bot.inventory.selectedItem = null;
    this.bot._client.write('close_window', { windowId: 0 });
  }

  /** Runs clicks one after the other; the server refuses those whose window has changed. */
  queue(work) {
    this.clicks = this.clicks.then(() => (this.agent.stopped ? undefined : work())).catch(() => {});
  }

  click(slot, button, mode) {
    const { id } = this.window;
    this.queue(() => {
      if (this.window?.id !== id) return undefined;
      const done = this.bot.clickWindow(slot, button, mode);
      if (this.bot.supportFeature('transactionPacketExists')) return done;
      // Later versions do not answer; mineflayer would wait for changes that need not come.
      done.catch(() => {});
      return undefined;
    });
  }

  layout() {
    const { window } = this;
    if (this.shown !== window) {
      this.shown = window;
      this.places = layoutOf(window);
    }
    return this.places;
  }

  /** Returns the place of the cursor from the window's upper left corner. */
  place(at = this.at) {
    const { size } = this.layout();
    return (at ?? [0, 0]).map((shift, n) => shift + size[n] / 2);
  }

  /**
   * Plays one step of keys in the open window.
   *
   * @param {Set} held keys that are down
   * @param {Set} pressed those that were not before
   * @param {number[]} turn of the camera in degrees: down, right
   */
  step(held, pressed, [down, right]) {
    const from = this.at ?? [0, 0];
    const screen = screenOf(this.agent.config.rgb, this.layout().size);
    const to = [right, down].map((degrees, n) =>
      Math.min(screen[n] / 2 - 1, Math.max(-screen[n] / 2, from[n] + degrees * PIXELS)));
    this.at = to;
    const buttons = [['attack', LEFT], ['use', RIGHT]];
    if (this.drag !== null) {
      this.dragOver(from, to);
      if (!held.has(this.drag.key)) this.release();
    }
    for (const [key, button] of buttons) {
      if (pressed.has(key) && this.drag === null) this.press(key, button, held.has('sneak'));
    }
    const slot = this.slot();
    if (slot < 0) return;
    for (let n = 1; n <= 9; n++) if (pressed.has(`hotbar.${n}`)) this.click(slot, n - 1, SWAP);
    if (pressed.has('drop') && !this.window.selectedItem) this.click(slot, 0, THROW);
  }

  slot(at = this.at) {
    return slotAt(this.layout(), ...this.place(at));
  }

  press(key, button, shift) {
    const layout = this.layout();
    const [x, y] = this.place();
    const number = buttonAt(layout, x, y);
    const scrolled = scrollAt(layout, x, y);
    if (number >= 0) this.choose(number);
    else if (scrolled !== null) this.scrollTo(scrolled);
    else if (this.window.selectedItem) {
      this.drag = { key, button, slots: [] };
      this.dragOver(this.at, this.at);
    } else if (this.slot() >= 0) this.click(this.slot(), button, shift ? SHIFT : CLICK);
  }

  /** Notes the slots that a dragged cursor passes and that take what it carries. */
  dragOver(from, to) {
    const { slots } = this.drag;
    const carried = this.window.selectedItem;
    const steps = Math.ceil(Math.max(Math.abs(to[0] - from[0]), Math.abs(to[1] - from[1])) / STEP);
    for (let n = 0; n <= steps; n++) {
      const share = steps === 0 ? 1 : n / steps;
      const slot = this.slot([0, 1].map((axis) => from[axis] + (to[axis] - from[axis]) * share));
      const there = slot < 0 ? null : this.window.slots[slot];
      const fits = slot >= 0 && slot !== this.window.craftingResultSlot && (!there || same(there, carried));
      if (carried && fits && !slots.includes(slot) && slots.length < carried.count) slots.push(slot);
    }
  }

  release() {
    const { button, slots } = this.drag;
    this.drag = null;
    const carried = this.window.selectedItem;
    if (!carried) return;
    if (slots.length < 2) {
      const [x, y] = this.place();
      const { size } = this.layout();
      const outside = x < 0 || y < 0 || x >= size[0] || y >= size[1];
      if (this.slot() >= 0) this.click(this.slot(), button, CLICK);
      else if (outside) this.click(OUTSIDE, button, CLICK);
      return;
    }
    const each = button === RIGHT ? 1 : Math.floor(carried.count / slots.length);
    for (const slot of slots) {
      const room = carried.stackSize - (this.window.slots[slot]?.count ?? 0);
      for (let n = 0; n < Math.min(each, room); n++) this.click(slot, RIGHT, CLICK);
    }
  }

  /** Presses a visible button: an enchantment, an offer, a cut, a pattern. */
  choose(visible) {
    const { kind, buttons } = this.layout();
    const number = visible + this.first * buttons[2];
    const known = this.options();
    if (number >= known.length) return;
    this.chosen = number;
    const { id } = this.window;
    if (kind === 'merchant') this.bot._client.write('select_trade', { slot: number });
    else this.bot._client.write('enchant_item', { windowId: id, enchantment: known[number].number });
  }

  scrollTo(share) {
    const [, , columns, rows] = this.layout().buttons;
    const more = Math.ceil(this.options().length / columns) - rows;
    if (more > 0) this.first = Math.min(more, Math.floor(share * (more + 1)));
  }

  /**
   * Returns what the buttons of the open window offer, in order:
   * `{number, items: [[id, count]], text, able, chosen}`.
   */
  options() {
    const { window, properties } = this;
    const { kind } = this.layout();
    if (kind === 'enchantment') return this.enchantments();
    if (kind === 'merchant') return this.offers();
    // A real server has its own lists of cuts and patterns.
    if (!this.agent.embedded) return [];
    const [item, dye, pattern] = window.slots;
    const chosen = (number) => properties[0] === number && this.chosen >= 0;
    if (kind === 'stonecutter' && item) {
      return cutsOf(item.name).map(({ item: name, count }, number) => ({ number,
        items: [[this.bot.registry.itemsByName[name].id, count]], text: '', able: true, chosen: chosen(number) }));
    }
    if (kind !== 'loom' || !item || !dye || pattern) return [];
    return BANNERS.buttons.map((text, n) => ({ number: n + 1, items: [], text, able: true, chosen: chosen(n + 1) }));
  }

  enchantments() {
    const { properties, bot } = this;
    const { level } = bot.experience;
    const lapis = this.window.slots[1]?.count ?? 0;
    return Array.from({ length: OFFERS }, (_, number) => {
      const price = properties[number] ?? 0;
      const clue = bot.registry.enchantments[properties[4 + number]];
      const text = price > 0 ? `${price} ${clue ? `${clue.displayName} ${properties[7 + number]}` : ''}` : '';
      return { number, items: [], text, able: price > 0 && level >= price && lapis > number, chosen: false };
    });
  }

  offers() {
    const stack = (item) => [item.itemId, item.itemCount];
    return this.trades.map((trade, number) => ({
      number,
      items: [trade.inputItem1, trade.inputItem2, trade.outputItem].map((item) => (item?.present ? stack(item) : [0, 0])),
      text: '',
      able: !trade.tradeDisabled && trade.nbTradeUses < trade.maximumNbTradeUses,
      chosen: this.chosen === number,
    }));
  }

  /** Takes the item of a name into the hand, if the agent carries one. */
  pick(name) {
    const { bot } = this;
    const slot = bot.inventory.slots.findIndex((item, n) => n >= 9 && n <= 44 && item?.name === name);
    if (slot >= 36) bot.setQuickBarSlot(slot - 36);
    if (slot < 0 || slot >= 36) return;
    const free = [...Array(9).keys()].map((n) => (bot.quickBarSlot + n) % 9)
      .find((n) => !bot.inventory.slots[36 + n]) ?? bot.quickBarSlot;
    this.queue(async () => {
      await bot.clickWindow(slot, free, SWAP);
      bot.setQuickBarSlot(free);
    });
  }
}

module.exports = { Pointer, PIXELS };

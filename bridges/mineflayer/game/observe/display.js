'use strict';
/**
 * What a player's client shows over the picture: hotbar, health, hands, and the open window with its
 * cursor. Only data; Python draws it. Stacks are int32 [id, count, durability left, whole], zeros for none.
 */
const { scaleOf, slotAt } = require('../actions/window_layout');

const HOTBAR = 36;
const OFF_HAND = 45;
const FULL = 20;
/** Ticks of a swing of the arm. */
const SWING = 6;
const STACK = 4;

const bytes = (array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength);

/** Returns rows of stacks, as bytes. */
function stacks(items) {
  const rows = new Int32Array(items.length * STACK);
  items.forEach((item, n) => {
    if (!item) return;
    const whole = item.maxDurability ?? 0;
    rows.set([item.type, item.count, whole - (whole ? item.durabilityUsed ?? 0 : 0), whole], n * STACK);
  });
  return bytes(rows);
}

/** Returns the words of a window's title: a JSON text of the protocol, or its kind. */
function titleOf({ title, type }) {
  const kind = String(type).replace('minecraft:', '').replaceAll('_', ' ');
  try {
    const told = typeof title === 'string' ? JSON.parse(title) : title;
    return String(told?.text || told?.value?.text?.value || kind);
  } catch {
    return kind;
  }
}

class Display {
  /** @param {object} agent see agent.js: bot, actor, config, observer, tick() */
  constructor(agent) {
    this.agent = agent;
    this.bot = agent.bot;
    this.swung = -SWING;
    this.usedSince = null;
    const { swingArm } = this.bot;
    this.bot.swingArm = (...args) => {
      this.swung = agent.tick();
      return swingArm(...args);
    };
    this.close = () => { this.bot.swingArm = swingArm; };
  }

  /** Called after every game tick: notes since when an item is eaten or drunk. */
  tick() {
    const { bot, agent } = this;
    const item = bot.heldItem;
    const eats = bot.usingHeldItem && item && (item.name in bot.registry.foodsByName || item.name.endsWith('potion'));
    this.usedSince = eats ? this.usedSince ?? agent.tick() : null;
  }

  /** Returns the display now, as a plain map of numbers, texts and Buffers. */
  look() {
    const { bot, agent } = this;
    const { slots } = bot.inventory;
    const held = bot.quickBarSlot ?? 0;
    const { level, progress } = bot.experience;
    const item = slots[HOTBAR + held];
    const shield = [item, slots[OFF_HAND]].some((each) => each?.name === 'shield');
    return {
      bar: stacks([...slots.slice(HOTBAR, HOTBAR + 9), slots[OFF_HAND]]),
      selected: held,
      life: [bot.health ?? FULL, bot.food ?? FULL, agent.observer.inventory.look().armour,
        bot.oxygenLevel ?? FULL, level ?? 0, progress ?? 0],
      swing: Math.min(SWING, agent.tick() - this.swung) / SWING,
      eating: this.usedSince === null ? 0 : agent.tick() - this.usedSince + 1,
      raised: Boolean(bot.usingHeldItem && shield),
      window: this.window(),
    };
  }

  window() {
    const { pointer } = this.agent.actor;
    const window = pointer?.window ?? null;
    if (window === null) return null;
    const layout = pointer.layout();
    const [x, y] = pointer.place();
    const shift = layout.buttons === null ? 0 : pointer.first * layout.buttons[2];
    const anvil = layout.kind === 'anvil' && pointer.properties[0] > 0;
    return {
      scale: scaleOf(this.agent.config.rgb, layout.size),
      size: layout.size,
      title: layout.kind === 'inventory' ? 'Crafting' : titleOf(window),
      title_x: layout.titleX,
      places: layout.slots.flat(),
      stacks: stacks(layout.slots.map((_, n) => window.slots[n])),
      bars: layout.bars.map(([left, top, wide, tall, part, whole]) =>
        [left, top, wide, tall, share(pointer.properties, part, whole)]),
      buttons: this.buttons(layout, pointer.options(), shift),
      scroll: layout.scroll === null ? null : scrolled(layout, pointer),
      note: anvil ? `cost ${pointer.properties[0]}` : '',
      cursor: [x, y],
      over: slotAt(layout, x, y),
      carried: stacks([window.selectedItem]),
    };
  }

  buttons({ buttons }, options, shift) {
    if (buttons === null) return [];
    const [left, top, columns, rows, wide, tall] = buttons;
    return options.slice(shift, shift + columns * rows).map(({ items, text, able, chosen }, n) => ({
      box: [left + wide * (n % columns), top + tall * Math.floor(n / columns), wide, tall],
      items: items.flat(),
      text,
      able,
      chosen,
    }));
  }
}

/** Returns the share of progress that two properties of a window show, 0 to 1. */
function share(properties, part, whole) {
  const all = whole < 0 ? -whole : properties[whole] ?? 0;
  return all > 0 ? Math.min(1, Math.max(0, (properties[part] ?? 0) / all)) : 0;
}

/** Returns the box of a scroll bar, and the box of what is visible in it. */
function scrolled({ scroll, buttons }, pointer) {
  const [, , columns, rows] = buttons;
  const [x, y, wide, tall] = scroll;
  const all = Math.max(rows, Math.ceil(pointer.options().length / columns));
  return [...scroll, x, y + (tall * pointer.first) / all, wide, (tall * rows) / all];
}

module.exports = { Display };

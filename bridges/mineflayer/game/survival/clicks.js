'use strict';

/**
 * The effect of a click in a window on its slots and on the stack at the cursor (wiki.vg, "Click
 * Container", protocol 754). A window is `{slots, player, quick(index)}`; a slot is `{get(),
 * set(item), accepts(item), limit, result, mayTake(), taken(item)}`. `click` returns whether it was accepted:
 * the client applies an accepted click itself, so a click whose result would differ at the cursor,
 * which this protocol cannot correct, is refused. Dragging and double clicks, which mineflayer
 * cannot do, are refused too.
 */

const OUTSIDE = -999;
const OFF_HAND_KEY = 40;

function room(slot, item) {
  return Math.min(item.stackSize, slot.limit || 64);
}

function fits(slot, item) {
  return !slot.result && (!slot.accepts || slot.accepts(item));
}

class Clicks {
  constructor(survival) {
    this.survival = survival;
    this.items = survival.items;
  }

  click(window, { slot: index, mouseButton, mode }) {
    if (mode === 5 || mode === 6) return false;
    if (mode === 3) return true;
    if (index === OUTSIDE) return mode === 0 ? this.outside(window, mouseButton) : true;
    const slot = window.slots[index];
    if (!slot || (slot.mayTake && slot.get() && !slot.mayTake())) return false;
    if (mode === 1) return this.quickMove(window, index);
    if (mode === 2) return this.swap(window, index, mouseButton);
    if (mode === 4) return this.dropFrom(window, slot, mouseButton === 1);
    if (slot.result) return mouseButton === 0 && this.takeResult(window, slot);
    return mouseButton === 0 ? this.left(window, slot) : this.right(window, slot);
  }

  outside({ player }, button) {
    const { cursor } = player;
    if (!cursor) return true;
    const count = button === 0 ? cursor.count : 1;
    this.survival.toss(player, this.items.copy(cursor, count));
    player.cursor = cursor.count > count ? this.items.copy(cursor, cursor.count - count) : null;
    return true;
  }

  takeResult({ player }, slot) {
    const item = slot.get();
    const { cursor } = player;
    if (!item) return !cursor;
    if (cursor && (!this.items.same(cursor, item) || cursor.count + item.count > item.stackSize))
      return false;
    player.cursor = this.items.copy(item, item.count + (cursor ? cursor.count : 0));
    slot.taken(item);
    return true;
  }

  left({ player }, slot) {
    const item = slot.get();
    const { cursor } = player;
    if (!cursor) {
      if (item) slot.set(null);
      player.cursor = item;
      return true;
    }
    if (!fits(slot, cursor)) return false;
    if (this.items.same(item, cursor)) {
      const moved = Math.max(0, Math.min(cursor.count, room(slot, item) - item.count));
      if (moved) slot.set(this.items.copy(item, item.count + moved));
      player.cursor = cursor.count > moved ? this.items.copy(cursor, cursor.count - moved) : null;
      return true;
    }
    if (cursor.count > room(slot, cursor)) return false;
    slot.set(cursor);
    player.cursor = item;
    return true;
  }

  right(window, slot) {
    const { player } = window;
    const item = slot.get();
    const { cursor } = player;
    if (!cursor) {
      if (!item) return true;
      const half = Math.ceil(item.count / 2);
      player.cursor = this.items.copy(item, half);
      slot.set(item.count > half ? this.items.copy(item, item.count - half) : null);
      return true;
    }
    if (!fits(slot, cursor)) return false;
    if (item && !this.items.same(item, cursor)) return this.left(window, slot);
    const there = item ? item.count : 0;
    if (there >= room(slot, cursor)) return true;
    slot.set(this.items.copy(cursor, there + 1));
    player.cursor = cursor.count > 1 ? this.items.copy(cursor, cursor.count - 1) : null;
    return true;
  }

  /**
   * Puts as much of `item` as fits into the given slots, equal stacks first; returns how many are
   * left.
   */
  store(window, item, indexes) {
    let left = item.count;
    for (const joining of [true, false]) {
      for (const index of indexes) {
        if (left === 0) return 0;
        const slot = window.slots[index];
        const there = slot.get();
        if (joining !== Boolean(there) || !fits(slot, item)) continue;
        if (there && !this.items.same(there, item)) continue;
        const count = there ? there.count : 0;
        const moved = Math.min(left, room(slot, item) - count);
        if (moved <= 0) continue;
        slot.set(this.items.copy(item, count + moved));
        left -= moved;
      }
    }
    return left;
  }

  hasRoom(window, item, indexes) {
    let left = item.count;
    for (const index of indexes) {
      const slot = window.slots[index];
      const there = slot.get();
      if (there && !this.items.same(there, item)) continue;
      left -= room(slot, item) - (there ? there.count : 0);
    }
    return left <= 0;
  }

  quickMove(window, index) {
    const slot = window.slots[index];
    const first = slot.get();
    if (!first) return true;
    const to = window.quick(index, first);
    if (!slot.result) {
      const left = this.store(window, first, to);
      if (left < first.count) slot.set(left ? this.items.copy(first, left) : null);
      return true;
    }
    // A shift-click on a result crafts as many as the ingredients allow.
    for (let made = 0; made < 64; made++) {
      const item = slot.get();
      if (!item || !this.items.same(item, first) || !this.hasRoom(window, item, to)) return true;
      this.store(window, item, to);
      slot.taken(item);
    }
    return true;
  }

  swap(window, index, button) {
    const slot = window.slots[index];
    const { player } = window;
    const key = button === OFF_HAND_KEY ? 45 : button >= 0 && button <= 8 ? 36 + button : -1;
    if (key < 0) return false;
    const held = player.inventory.slots[key];
    const item = slot.get();
    if (slot.result) {
      if (!item || held) return !item;
      player.setSlot(key, item);
      slot.taken(item);
      return true;
    }
    if (held && (!fits(slot, held) || held.count > room(slot, held))) return false;
    slot.set(held || null);
    player.setSlot(key, item);
    return true;
  }

  dropFrom({ player }, slot, all) {
    const item = slot.get();
    if (!item || player.cursor) return true;
    if (slot.result) {
      this.survival.toss(player, item);
      slot.taken(item);
      return true;
    }
    const count = all ? item.count : 1;
    this.survival.toss(player, this.items.copy(item, count));
    slot.set(item.count > count ? this.items.copy(item, item.count - count) : null);
    return true;
  }
}

module.exports = { Clicks };

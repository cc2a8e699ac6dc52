'use strict';

/**
 * Windows that keep nothing: over an anvil, an enchanting table, a villager ... What lies in their
 * inputs returns to the player when they close.
 *
 * `serv.survival.openStation(player, spec)` opens one and returns its Station. `spec`: `kind`,
 * `title`, `place` or `near` (windows.js); `inputs`, how many slots; `out`, the slot of the result
 * after them, if there is one; `accepts(index, item)`; `quick(item)`, the slots a shift-click fills;
 * `limit(index)`, how many an input holds; `made(station)`, the result of what lies there,
 * `{item, use: [how many of each input], cost: levels, taken()}` or null; `changed(station)`, called
 * when an input has changed; `pressed(station, number)`, when a button was; `closed()`.
 */

const { Vec3 } = require('vec3');

const name = 'stations';

class Station {
  constructor(serv, player, spec) {
    Object.assign(this, { serv, player, spec, chosen: -1, text: '', made: null });
    this.items = new Array(spec.inputs).fill(null);
  }

  slots() {
    const { spec, items } = this;
    const slots = items.map((_, index) => ({
      get: () => items[index],
      set: (item) => {
        items[index] = item && item.count > 0 ? item : null;
        this.refresh();
      },
      accepts: (item) => !spec.accepts || spec.accepts(index, item),
      limit: spec.limit ? spec.limit(index) : 64,
    }));
    if (spec.made) slots.push(this.outSlot());
    return slots;
  }

  outSlot() {
    return {
      result: true,
      get: () => this.made && this.made.item,
      set: () => {},
      mayTake: () => this.affordable(),
      taken: () => this.take(),
    };
  }

  affordable() {
    const { player, made } = this;
    return !made?.cost || player.gameMode === 1 || player.experience.level >= made.cost;
  }

  take() {
    const { items, made, player, serv } = this;
    const { use, cost = 0, taken } = made;
    use.forEach((count, index) => {
      const item = items[index];
      if (count > 0 && item)
        items[index] = item.count > count ? serv.survival.items.copy(item, item.count - count) : null;
    });
    if (cost && player.gameMode !== 1) player.setXpLevel(player.experience.level - cost);
    if (taken) taken();
    this.refresh();
  }

  /** Computes the result again. */
  refresh() {
    const { spec } = this;
    if (spec.made) this.made = spec.made(this);
    if (spec.changed) spec.changed(this);
  }

  /** Computes the result again and sends all slots: what changed was not a click. */
  update() {
    this.refresh();
    const { openWindow } = this.player;
    const count = this.items.length + (this.spec.made ? 1 : 0);
    for (let slot = 0; slot < count; slot++) this.serv.survival.sendWindowSlot(openWindow, slot);
  }

  /** Sends the values of a window's properties, by their numbers. */
  show(values) {
    for (const [property, value] of Object.entries(values)) {
      this.player._client.write('craft_progress_bar', {
        windowId: this.player.openWindow.id,
        property: Number(property),
        value,
      });
    }
  }

  close() {
    const { items, player, serv, spec } = this;
    items.forEach((item, index) => {
      items[index] = null;
      if (item) serv.survival.giveOrToss(player, item);
    });
    if (spec.closed) spec.closed();
  }
}

function open(serv, player, spec) {
  const station = new Station(serv, player, spec);
  serv.survival.openWindow(player, {
    kind: spec.kind,
    title: spec.title,
    place: spec.place && new Vec3(...spec.place),
    near: spec.near,
    station,
    slots: station.slots(),
    quick: spec.quick || (() => station.items.map((_, index) => index)),
    closed: () => station.close(),
  });
  station.refresh();
  return station;
}

function server(serv) {
  serv.survival.openStation = (player, spec) => open(serv, player, spec);
}

/** The window a player has open that keeps nothing, or null. */
const stationOf = (player) => player.openWindow?.station ?? null;

function press(player, number) {
  const station = stationOf(player);
  if (!station || !station.spec.pressed || !Number.isInteger(number)) return;
  station.spec.pressed(station, number);
}

function player(player) {
  const client = player._client;
  client.on('enchant_item', ({ windowId, enchantment } = {}) => {
    if (player.openWindow?.id === windowId) press(player, enchantment);
  });
  client.on('select_trade', ({ slot } = {}) => {
    if (stationOf(player)?.spec.kind === 'merchant') press(player, slot);
  });
  client.on('name_item', ({ name: text } = {}) => {
    const station = stationOf(player);
    if (station?.spec.kind !== 'anvil' || typeof text !== 'string' || text.length > 35) return;
    station.text = text;
    station.update();
  });
}

module.exports = { name, server, player };

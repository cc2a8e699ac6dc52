'use strict';

/**
 * The basis of the other mechanics, as `serv.survival`:
 *
 * - `blocks` (blocks.js), `items` (items.js), `rules` (game rules), `tick` (ticks since the start)
 * - `onTick(fn)`: called every tick with the tick number, in the order of registration
 * - `schedule(delay, kind, data)` with `onScheduled(kind, fn)`: events by name and plain data, so
 *   that a snapshot can hold them
 * - `broadcast(entity, packet, fields, self)`: to the players that can see an entity
 *
 * Random numbers are `Math.random` and time the tick counter: both belong to the world's own
 * context.
 */

const { Blocks } = require('./blocks');
const { makeItems } = require('./items');

/** The game rules and their values at the start (Minecraft Wiki, "Game rule"). */
const RULES = {
  keepInventory: false,
  naturalRegeneration: true,
  fallDamage: true,
  fireDamage: true,
  drowningDamage: true,
  doDaylightCycle: true,
  doWeatherCycle: false,
  doTileDrops: true,
  doMobSpawning: true,
  doMobLoot: true,
  mobGriefing: true,
  randomTickSpeed: 3,
};

const name = 'core';

class Survival {
  constructor(serv, options) {
    this.serv = serv;
    this.registry = serv.registry;
    this.blocks = new Blocks(serv);
    this.items = makeItems(serv.registry);
    /** Initial rules of a new world: the defaults and what its caller sets. */
    this.atStart = { rules: { ...RULES, ...options.rules }, needs: options.needs !== false };
    this.rules = { ...this.atStart.rules };
    /** Whether hunger, drowning and starvation count. */
    this.needs = this.atStart.needs;
    this.tick = 0;
    this.tickers = [];
    this.timetable = new Map();
    this.handlers = new Map();
  }

  onTick(fn) {
    this.tickers.push(fn);
  }

  onScheduled(kind, fn) {
    this.handlers.set(kind, fn);
  }

  /** Calls the handler of `kind` with `data` (plain JSON) `delay` ticks from now, at least one. */
  schedule(delay, kind, data) {
    const due = this.tick + Math.max(1, Math.ceil(delay));
    const list = this.timetable.get(due);
    if (list) list.push([kind, data]);
    else this.timetable.set(due, [[kind, data]]);
  }

  step() {
    this.tick++;
    const due = this.timetable.get(this.tick);
    if (due) {
      this.timetable.delete(this.tick);
      for (const [kind, data] of due) this.handlers.get(kind)(data);
    }
    for (const fn of this.tickers) fn(this.tick);
  }

  /** Writes to the players that see an entity now, including itself unless `self` is false. */
  broadcast(entity, packet, fields, self = true) {
    const to = this.serv.tracker.watchers(entity);
    if (self && entity.type === 'player') to.push(entity);
    if (to.length) this.serv._writeArray(packet, fields, to);
  }

  /**
   * Returns whether a player can take damage, get hungry and so on (survival or adventure mode,
   * alive).
   */
  mortal(player) {
    return player.health > 0 && (player.gameMode === 0 || player.gameMode === 2);
  }

  /** Returns the entities within `radius` blocks of a position, lowest id first. */
  entitiesNear(position, radius, accept) {
    const found = [];
    for (const id in this.serv.entities) {
      const entity = this.serv.entities[id];
      if (entity.position.distanceTo(position) <= radius && (!accept || accept(entity)))
        found.push(entity);
    }
    return found;
  }
}

function server(serv, options) {
  serv.survival = new Survival(serv, (options && options.gamut) || {});
  const { survival } = serv;
  serv.on('tick', () => survival.step());
  // flying-squid's queue of block updates is for redstone, which is not loaded, and sorts itself at
  // every write: our listeners (blocks.js) replace it.
  serv.updateBlock = () => {};
  serv.notifyNeighborsOfStateChange = () => {};
  survival.blocks.listen();
}

/** Returns `{tick, rules, needs, timetable}`. */
function save(serv) {
  const { tick, rules, needs, timetable } = serv.survival;
  return { tick, rules: { ...rules }, needs, timetable: [...timetable.entries()] };
}

/** Restores what `save` returned; without data, the state of a new world. */
function load(serv, data) {
  const { survival } = serv;
  survival.tick = data ? data.tick : 0;
  survival.rules = { ...survival.atStart.rules, ...(data ? data.rules : {}) };
  survival.needs = data ? data.needs : survival.atStart.needs;
  survival.timetable = new Map(data ? data.timetable : []);
}

module.exports = { name, server, save, load };

'use strict';
/**
 * The slots of one instance: worlds of `agents` agents each, which are reset, stepped and returned
 * as frames.
 */
const { makeGameWorld } = require('./gameworld');
const { Columns } = require('./observe/columns');
const { columnsOf } = require('./actions');
const { decodeActions } = require('./decode');
const { replay } = require('./snapshot');
const { beginStep } = require('./sandbox/patience');
const { StateError } = require('./start');
const { stateOf } = require('./observe/state');

class Game {
  /** @param {object} config as in the protocol's hello */
  constructor(config) {
    this.config = config;
    this.agents = config.agents;
    this.worlds = new Array(config.width / config.agents).fill(null);
    this.layout = { ...columnsOf(config.actions), ...(config.person && columnsOf('person')) };
    /** The last row of each slot, for slots that are over or were never reset. */
    this.last = new Columns(config.width);
    this.details = Array.from({ length: config.width }, () => ({}));
    this.idle = new Array(config.width).fill(true);
  }

  /**
   * Plays a moment in a temporary world: libraries then make what they make once per process, and
   * the first episode begins as fast as the others.
   */
  async warm() {
    const start = { seed: 0, state: { site: 'flat' } };
    const begins = this.config.names.slice(0, 1).map((_, index) => ({ index, start }));
    const world = await makeGameWorld(this.config, begins);
    await world.play([]);
    world.run(() => world.agents[0].look());
    world.close();
  }

  /** Begins episodes; returns the frame of the slots, in their order. */
  async reset(slots, starts) {
    const byWorld = new Map();
    slots.forEach((slot, i) => {
      const number = Math.floor(slot / this.agents);
      if (!byWorld.has(number)) byWorld.set(number, []);
      byWorld.get(number).push({ index: slot % this.agents, start: starts[i], slot });
    });
    for (const [number, begins] of byWorld) await this.resetWorld(number, begins);
    return this.frame(slots);
  }

  async resetWorld(number, begins) {
    const first = number * this.agents;
    const begun = new Set(begins.map(({ slot }) => slot));
    // Until it has begun again: after a refused start nothing plays.
    for (const slot of begun) this.idle[slot] = true;
    const others = Array.from({ length: this.agents }, (_, i) => first + i)
      .filter((slot) => !begun.has(slot) && !this.idle[slot]);
    const old = this.worlds[number];
    if (old === null || others.length === 0) {
      old?.close();
      this.worlds[number] = null;
      this.worlds[number] = await makeGameWorld(this.config, begins);
    } else {
      await old.rejoin(begins);
    }
    for (const { slot } of begins) this.show(slot);
  }

  /** Plays one action in every slot that is not over; returns the frame of all. */
  async step(columns) {
    const rows = decodeActions(this.layout, columns, this.config.width);
    beginStep();
    for (const [number, world] of this.worlds.entries()) {
      if (world === null) continue;
      const slots = Array.from({ length: this.agents }, (_, i) => number * this.agents + i)
        .filter((slot) => !this.idle[slot]);
      if (slots.length === 0) continue;
      await world.play(slots.map((slot) => [slot % this.agents, rows[slot]]));
      for (const slot of slots) this.show(slot);
    }
    return this.frame(Array.from({ length: this.config.width }, (_, i) => i));
  }

  /** Stores the current observation of a slot in its row. */
  show(slot) {
    const world = this.worlds[Math.floor(slot / this.agents)];
    const agent = world.agents[slot % this.agents];
    const { values, details } = world.run(() => agent.look());
    this.last.write(slot, values);
    this.details[slot] = world.withScene(agent, details);
    this.idle[slot] = values.game_over || values.game_truncated;
  }

  frame(slots) {
    if (slots.length === this.config.width && slots.every((slot, i) => slot === i)) {
      return { columns: this.last.buffer, details: this.details };
    }
    const columns = new Columns(slots.length);
    slots.forEach((slot, row) => columns.copy(row, this.last, slot));
    return { columns: columns.buffer, details: slots.map((slot) => this.details[slot]) };
  }

  /** Runs a command as a slot's agent, without a tick; returns its answer (gameworld.js). */
  async command(slot, command) {
    const [world, index] = this.playing(slot);
    return world.command(index, command);
  }

  /** Returns the state of a slot's agent by MineStudio's names (observe/state.js). */
  state(slot, boxes) {
    const [world, index] = this.playing(slot);
    return world.run(() => stateOf(world.agents[index], boxes));
  }

  /** Returns the world of a slot and the number of its agent there. */
  playing(slot) {
    const world = this.worlds[Math.floor(slot / this.agents)];
    const index = slot % this.agents;
    if (!world?.agents[index]) throw new StateError(`slot ${slot} was never reset`);
    return [world, index];
  }

  /** Takes an agent out of its world; its slot is idle until it is reset. */
  async leave(slot) {
    await this.worlds[Math.floor(slot / this.agents)]?.remove([slot % this.agents]);
    this.idle[slot] = true;
  }

  /** Returns the snapshot of a slot's world, from which it can be restored. */
  snapshot(slot) {
    const world = this.worlds[Math.floor(slot / this.agents)];
    if (world === null) throw new StateError(`slot ${slot} was never reset`);
    return world.snapshot();
  }

  /** Restores a slot's world from a snapshot; returns the slot's frame. */
  async restore(slot, bytes) {
    const number = Math.floor(slot / this.agents);
    const world = await replay(makeGameWorld, this.config, bytes);
    this.worlds[number]?.close();
    this.worlds[number] = world;
    this.show(slot);
    return this.frame([slot]);
  }

  close() {
    for (const world of this.worlds) world?.close();
  }
}

module.exports = { Game };

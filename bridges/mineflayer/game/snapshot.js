'use strict';
/**
 * Snapshots of a world: its start and every action and command since, which are replayed.
 *
 * A world is a function of its start and its actions, bit for bit, so replaying them leads to the
 * same world with all its hidden state: running timers, paths in progress, half-eaten food.
 * Restoring costs as much as playing the steps; no state can be forgotten. A world that is played for
 * very long, by commands instead of new episodes, forgets how it came about and has no snapshots any
 * more: its steps would fill the memory (about 300 bytes each), and nobody could wait for their replay.
 */
const { encode, decode } = require('@msgpack/msgpack');
const { beginStep } = require('./sandbox/patience');
const { StateError } = require('./start');

const FORMAT = 1;
const MOST = 100000; // steps, commands and beginnings that are kept

class Journal {
  constructor(most = MOST) {
    this.most = most;
    this.entries = [];
  }

  add(entry) {
    if (this.entries?.length >= this.most) this.entries = null;
    this.entries?.push(entry);
  }

  reset(begins) {
    this.add({ begins: begins.map(({ index, start }) => ({ index, start })) });
  }

  step(actions) {
    this.add({ actions });
  }

  command(index, command) {
    this.add({ index, command });
  }

  bytes() {
    if (this.entries === null) {
      throw new StateError(`the world has been played for more than ${this.most} steps since it began, `
        + 'too many for a snapshot; begin a new episode');
    }
    return Buffer.from(encode({ format: FORMAT, entries: this.entries }));
  }
}

/** Data that is not a snapshot. */
class SnapshotError extends Error {}

/** Returns a new world, of that constructor, in the state of a snapshot. */
async function replay(makeGameWorld, config, bytes) {
  let saved;
  try {
    saved = decode(bytes);
  } catch (error) {
    throw new SnapshotError(`this is no snapshot of a world: ${error.message}`);
  }
  if (saved?.format !== FORMAT || !Array.isArray(saved.entries) || !saved.entries[0]?.begins) {
    throw new SnapshotError('this is no snapshot of a world of this version');
  }
  const [first, ...rest] = saved.entries;
  const world = await makeGameWorld(config, first.begins);
  for (const entry of rest) {
    // Reading the previous frame empties the event queue; the result is discarded. The last frame
    // is left to the caller, who returns it.
    if (!entry.command) for (const agent of world.agents) if (agent !== null) world.run(() => agent.look());
    beginStep();
    if (entry.begins) await world.rejoin(entry.begins);
    else if (entry.command) await world.command(entry.index, entry.command);
    else await world.play(entry.actions);
  }
  return world;
}

module.exports = { Journal, replay, SnapshotError };

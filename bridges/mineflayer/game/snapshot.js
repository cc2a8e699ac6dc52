'use strict';
/**
 * Snapshots of a world: its start and every action since, to be played again.
 *
 * A world is a function of its start and the actions in it, bit for bit, so playing them again leads
 * to the same world with all that is hidden in it: timers that run, paths that are walked, bites
 * that are half eaten. Restoring costs as much as the steps took to play; nothing a world holds can
 * be forgotten.
 */
const { encode, decode } = require('@msgpack/msgpack');
const { beginStep } = require('./sandbox/patience');

const FORMAT = 1;

class Journal {
  constructor() {
    this.entries = [];
  }

  reset(begins) {
    this.entries.push({ begins: begins.map(({ index, start }) => ({ index, start })) });
  }

  step(actions) {
    this.entries.push({ actions });
  }

  bytes() {
    return Buffer.from(encode({ format: FORMAT, entries: this.entries }));
  }
}

/** What is no snapshot. */
class SnapshotError extends Error {}

/** Returns a new world that was led to where a snapshot was taken. */
async function replay(config, bytes) {
  const { makeGameWorld } = require('./gameworld');
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
    // What the frame before would have shown is looked at and thrown away: looking empties the
    // events. The last frame is left to the caller, who shows it.
    for (const agent of world.agents) if (agent !== null) world.run(() => agent.look());
    beginStep();
    if (entry.begins) await world.rejoin(entry.begins);
    else await world.play(entry.actions);
  }
  return world;
}

module.exports = { Journal, replay, SnapshotError };

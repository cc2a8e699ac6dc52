'use strict';

/** What the tests of the mobs share. */

const { inWorld, events, until, at, count, Vec3 } = require('./survival_help');

/** All mobs of a kind, or all, in the order they came. */
const mobs = (w, kind) =>
  [...w.serv.survival.mobs.list.values()].filter((mob) => !kind || mob.name === kind);

/** Makes a mob beside the console, with options of its own. */
const spawn = (w, kind, x, y, z, options) =>
  w.run(() => w.serv.survival.spawnMob(kind, new Vec3(x, y, z), options));

/** Makes a mob without a will, as `/summon` does with the tag NoAI. */
function spawnStill(w, kind, x, y, z) {
  const at = [x, y, z].map((value) => ['', value]);
  const nbt = { value: { NoAI: { value: 1 } } };
  w.run(() => w.serv.survival.command({ name: 'summon', args: { kind, at, nbt } }));
  return mobs(w, kind).pop();
}

/** Removes random effects from a test: nothing spawns, no one heals. */
async function calm(w) {
  await w.console('/gamerule doMobSpawning false');
  await w.console('/gamerule naturalRegeneration false');
  await w.console('/gamerule doDaylightCycle false');
}

module.exports = { inWorld, events, until, at, count, mobs, spawn, spawnStill, calm, Vec3 };

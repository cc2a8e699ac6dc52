'use strict';

/** What the tests of the mobs share. */

const { inWorld, events, until, at, count, Vec3 } = require('./survival_help');

/** All mobs of a kind, or all, in the order they came. */
const mobs = (w, kind) =>
  [...w.serv.survival.mobs.list.values()].filter((mob) => !kind || mob.name === kind);

/** Makes a mob beside the console, with options of its own. */
const spawn = (w, kind, x, y, z, options) =>
  w.run(() => w.serv.survival.spawnMob(kind, new Vec3(x, y, z), options));

/** Runs /summon with tags, and returns what came last of that kind. */
function summon(w, kind, [x, y, z], tags = {}) {
  const at = [x, y, z].map((value) => ['', value]);
  const rows = Object.entries(tags).map(([key, value]) => [key, { value }]);
  const nbt = { value: Object.fromEntries(rows) };
  w.run(() => w.serv.survival.command({ name: 'summon', args: { kind, at, nbt } }));
  return Object.values(w.serv.entities).filter((entity) => entity.name === kind).pop();
}

/** Makes a mob without a will, as `/summon` does with the tag NoAI. */
const spawnStill = (w, kind, x, y, z) => summon(w, kind, [x, y, z], { NoAI: 1 });

/** Removes random effects from a test: nothing spawns, no one heals. */
async function calm(w) {
  await w.console('/gamerule doMobSpawning false');
  await w.console('/gamerule naturalRegeneration false');
  await w.console('/gamerule doDaylightCycle false');
}

module.exports = { inWorld, events, until, at, count, mobs, spawn, spawnStill, summon, calm, Vec3 };

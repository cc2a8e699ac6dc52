'use strict';

/** What the tests of the survival mechanics share. */

const { Vec3 } = require('vec3');
const { makeWorld } = require('../harness');

/** Runs `play(w, bot, player)` in a flat world and closes it. */
async function inWorld(options, play) {
  const w = await makeWorld({ agents: 1, seed: 7, generator: 'flat', ...options });
  try {
    await w.step(5);
    await play(w, w.bots[0], w.players[0]);
    const said = w.lines.filter((line) => line.startsWith('error'));
    if (said.length && !options.complains) throw new Error(said.join('\n'));
  } finally {
    w.close();
  }
}

/** A stack's words for comparing: "stone x3", or "-". */
const words = (item) => (item ? `${item.name} x${item.count}` : '-');

/** Client's and server's contents of one slot; they must agree. */
function slot(bot, player, index) {
  const [mine, theirs] = [words(bot.inventory.slots[index]), words(player.inventory.slots[index])];
  if (mine !== theirs)
    throw new Error(`slot ${index}: the client has ${mine}, the server ${theirs}`);
  return mine;
}

/** Throws unless all slots of client and server agree. */
function agree(bot, player) {
  for (let index = 1; index < 46; index++) slot(bot, player, index);
}

/** How many of an item the server's side of a player has. */
function count(player, name) {
  return player.inventory.slots.reduce(
    (sum, item, i) => sum + (i && item && item.name === name ? item.count : 0),
    0,
  );
}

const at = (w, x, y, z) => w.serv.survival.blocks.at(x, y, z);
const seen = (bot, x, y, z) => bot.blockAt(new Vec3(x, y, z));

/** Events of a name on the server, gathered. */
function events(w, name) {
  const list = [];
  w.serv.on(name, (event) => list.push(event));
  return list;
}

/** Waits (in game time) until `test()` holds; throws after `limit` ticks. */
async function until(w, test, limit = 400) {
  for (let i = 0; i < limit; i++) {
    if (test()) return i;
    await w.step(1);
  }
  throw new Error(`it did not come to ${test} within ${limit} ticks`);
}

module.exports = { inWorld, slot, agree, count, at, seen, events, until, words, Vec3 };

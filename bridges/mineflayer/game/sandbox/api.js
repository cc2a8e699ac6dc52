'use strict';
/**
 * All that generated programs can access of the game: a table of calls and nothing else.
 *
 * An entry is {name, doc, args: [{name, type, range.., optional | default}], returns, cost (calls it
 * counts as), work(args) (what it makes the game do beyond that, as runtime.js counts work),
 * run(agent, args)}; entries that take ticks have `async: true`, `ticks` (after which
 * they fail) and run(agent, args, signal) returning a promise; of those with `inTurn: true` one is
 * in progress at a time. Arguments arrive checked (check.js),
 * results leave as JSON. A search beyond the limits of an entry with `scans: true` is a violation in the trace. What programs see as `bot`, `mcData`, ... is built on it in guest/*.js.
 */
const { coordinates, hears } = require('./api_shared');
const walk = require('./api_walk');
const { entries: data } = require('./api_data');

const FAMILIES = [
  require('./api_look'), data, require('./api_body'), require('./api_items'),
  require('./api_windows'), walk.entries
];

/** Whether a chat line reaches an agent, as in observe/events.js: only agents can be too far away. */
function hearsChat(agent, username) {
  const limit = agent.senses?.limits?.chat_distance ?? 0;
  const isAgent = agent.world?.names?.includes(username) ?? true;
  const speaker = agent.bot.players[username]?.entity;
  if (!(limit > 0) || !isAgent || username === agent.bot.username) return true;
  return Boolean(speaker) && speaker.position.distanceTo(agent.bot.entity.position) <= limit;
}

/**
 * Events that programs may listen to: the arguments of mineflayer they get, or null to hide the
 * event.
 */
const EVENTS = {
  chat: (agent, username, message) => (hearsChat(agent, username) ? [username, String(message)] : null),
  health: () => [],
  death: () => [],
  respawn: () => [],
  entityHurt: entityEvent,
  entityDead: entityEvent,
  entitySpawn: entityEvent,
  entityGone: entityEvent,
  playerCollect: (agent, collector, collected) =>
    (entityEvent(agent, collector) ? [collector.id, collected.id] : null),
  goal_reached: () => [],
  rain: () => [],
  sleep: () => [],
  wake: () => [],
  mount: () => [],
  dismount: (agent, vehicle) => (vehicle ? entityEvent(agent, vehicle) : null)
};
/** Events of a tick; chat is counted on its own, since others decide how much of it there is. */
const MAX_EVENTS = 64;
const MAX_CHAT = 32;

function entityEvent(agent, entity) {
  if (!entity?.position || (entity !== agent.bot.entity && !hears(agent, entity.position))) return null;
  return [entity.id, entity.name ?? null, coordinates(entity.position)];
}

const listeners = new WeakMap();

/** Begins to collect an event for the program that runs. */
function listen(agent, [name], sandbox) {
  const own = listeners.get(sandbox) ?? new Map();
  listeners.set(sandbox, own);
  if (own.has(name)) return;
  const handler = (...args) => {
    const isChat = name === 'chat';
    const fellows = sandbox.events.filter(([other]) => (other === 'chat') === isChat).length;
    if (fellows >= (isChat ? MAX_CHAT : MAX_EVENTS)) return;
    const plain = EVENTS[name](agent, ...args);
    if (plain) sandbox.events.push([name, plain]);
  };
  own.set(name, handler);
  agent.bot.on(name, handler);
}

const LISTEN = {
  name: 'listen', doc: 'begins to collect an event', returns: 'nothing', cost: 1,
  args: [{ name: 'event', type: 'choice', of: Object.keys(EVENTS) }], run: listen
};

/** Stops collecting events. */
function quiet(sandbox) {
  const own = listeners.get(sandbox);
  if (!own) return;
  for (const [name, handler] of own) sandbox.agent.bot.removeListener(name, handler);
  listeners.delete(sandbox);
}

/** Releases all that a program may have set: walk and its settings, dig, keys, item in use, window. */
function release({ bot }) {
  walk.letGo(bot);
  if (bot.targetDigBlock) bot.stopDigging();
  bot.clearControlStates();
  if (bot.usingHeldItem) bot.deactivateItem();
  if (bot.currentWindow) bot.closeWindow(bot.currentWindow);
}

/** Returns {entries: Map, release(agent), quiet(sandbox), isListening(sandbox)}. */
function makeApi() {
  const entries = new Map();
  for (const entry of [...FAMILIES.flat(), LISTEN]) {
    if (entries.has(entry.name)) throw new Error(`two API entries are called ${entry.name}`);
    entries.set(entry.name, entry);
  }
  return { entries, release, quiet, isListening: (sandbox) => Boolean(listeners.get(sandbox)?.size) };
}

module.exports = { EVENTS, hearsChat, makeApi };

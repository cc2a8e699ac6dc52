'use strict';
/**
 * The plugins of our flying-squid server, in order.
 *
 * flying-squid loads every file of its plugin folder into every server. We list the ones we want,
 * replace those that leak, read files, write to the terminal or are too slow, and append each
 * server's own mechanics (survival, or none).
 */
require('../libraries');
const squid = require('flying-squid/src/lib/plugins');

const FROM_FLYING_SQUID = ['animations', 'behavior', 'blockUpdates', 'blocks', 'channels', 'chat',
  'chest', 'commands', 'communication', 'daycycle', 'digging', 'effects', 'entities', 'experience',
  'external', 'health', 'inventory', 'particle', 'physics', 'placeBlock', 'players', 'portal',
  'pvp', 'respawn', 'settings', 'signs', 'sound', 'spawn', 'tick', 'tp', 'useItem', 'weather',
  'world'];

/** A plugin of flying-squid that a server's mechanics may replace. */
function optional(name) {
  const plugin = require(`flying-squid/src/lib/plugins/${name}`);
  const unless = (options, run) => (options.gamut.replaces.has(name) ? undefined : run());
  return {
    server: (serv, options) => unless(options, () => plugin.server?.(serv, options)),
    player: (player, serv, options) => unless(options, () => plugin.player?.(player, serv, options)),
    entity: (entity, serv, options) => unless(options, () => plugin.entity?.(entity, serv, options))
  };
}

/** Calls the hooks of the mechanics that this server was given, after all others. */
const mechanics = {
  server: (serv, options) => {
    for (const each of options.gamut.mechanics) each.server?.(serv, options);
  },
  player: (player, serv, options) => {
    for (const each of options.gamut.mechanics) each.player?.(player, serv, options);
  },
  entity: (entity, serv, options) => {
    for (const each of options.gamut.mechanics) each.entity?.(entity, serv, options);
  }
};

squid.initPlugins = () => {
  if (squid.builtinPlugins !== null) return;
  squid.builtinPlugins = [require('./log'), ...FROM_FLYING_SQUID.map(optional),
    require('./movement'), require('./join'), mechanics];
};
squid.initPlugins();

module.exports = { FROM_FLYING_SQUID };

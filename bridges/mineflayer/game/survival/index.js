'use strict';

/**
 * The mechanics of survival, in the order they are loaded (later ones use what earlier ones put on
 * `serv.survival`), and the plugins of flying-squid they replace.
 *
 * Each is `{name, server(serv, options), entity(entity, serv), player(player, serv), save(serv),
 * load(serv, data), loadPlayer(player, serv, data)}`. `save` returns plain JSON, including players
 * by their names; `load` restores it, and without data makes the state of a new world; `loadPlayer`
 * without data makes the state of a player that joins for the first time.
 */

const fs = require('node:fs');
const path = require('node:path');

const ORDER = [
  'core',
  'entities',
  'players',
  'xp',
  'inventory',
  'enchants',
  'health',
  'effects',
  'hunger',
  'use',
  'drops',
  'eating',
  'environment',
  'combat',
  'projectiles',
  'containers',
  'windows',
  'crafting',
  'stations',
  'enchanting',
  'anvils',
  'chest_loot',
  'cutting',
  'hoppers',
  'furnace',
  'brewing',
  'mining',
  'placing',
  'interact',
  'clock',
  'weather',
  'beds',
  'growth',
  'farming',
  'falling',
  'fluids',
  'fire',
  'tools',
  'shearing',
  'hanging',
  'golems',
  'maps',
  'fixtures',
  'husbandry',
  'riding',
  'rails',
  'vehicles',
  'tnt',
  'pistons',
  'plates',
  'redstone',
  'fishing',
  'throwing',
  'dimensions',
  'portals',
  'theend',
  'spawners',
  'bartering',
  'commands',
  // Written by others, once they are there:
  'mobs',
  'trading',
  'spawning',
];

const REPLACES = [
  'animations',
  'blockUpdates',
  'chest',
  'daycycle',
  'digging',
  'effects',
  'entities',
  'experience',
  'health',
  'inventory',
  'physics',
  'placeBlock',
  'portal',
  'pvp',
  'respawn',
  'signs',
  'tp',
  'useItem',
  'weather',
];

function whole(mechanic) {
  const { savePlayer, loadPlayer } = mechanic;
  const save = (serv) => ({
    world: mechanic.save ? mechanic.save(serv) : null,
    players: savePlayer
      ? Object.fromEntries(serv.players.map((p) => [p.username, savePlayer(p, serv)]))
      : null,
  });
  const load = (serv, data) => {
    if (mechanic.load) mechanic.load(serv, data ? data.world : null);
    if (!loadPlayer) return;
    for (const player of serv.players) {
      loadPlayer(player, serv, data && data.players ? data.players[player.username] : null);
    }
  };
  return { ...mechanic, save, load };
}

const plugins = ORDER.filter((name) => fs.existsSync(path.join(__dirname, `${name}.js`))).map(
  (name) => whole(require(`./${name}`)),
);

module.exports = { plugins, replaces: REPLACES };

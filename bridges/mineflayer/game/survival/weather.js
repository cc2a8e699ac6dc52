'use strict';

/**
 * Rain and thunder with the correct codes: reason 1 starts rain, 2 ends it (the names in minecraft-
 * data; flying-squid swaps them). Weather changes by itself only with the rule doWeatherCycle (off
 * at the start: an episode's weather is that of its start). At full strength at once, no fading.
 *
 * `serv.weather` is {rain, thunder}, 0 or 1; `serv.survival.setWeather('clear' | 'rain' |
 * 'thunder', ticks)`; `rainsOn(position)`: whether rain falls on somebody there. Lightning does not
 * strike.
 */

const name = 'weather';
const KINDS = { clear: [0, 0], rain: [1, 0], thunder: [1, 1] };
/** Minimum and maximum ticks of each weather (Minecraft Wiki, "Daylight cycle" and "Rain"). */
const LASTS = { clear: [12000, 180000], rain: [12000, 24000], thunder: [3600, 15600] };

function tell(serv, players) {
  const { rain, thunder } = serv.weather;
  const say = (reason, value) =>
    serv._writeArray('game_state_change', { reason, gameMode: value }, players);
  say(rain ? 1 : 2, 0);
  say(7, rain);
  say(8, thunder);
}

function setWeather(serv, kind, ticks) {
  const [rain, thunder] = KINDS[kind];
  const [least, most] = LASTS[kind];
  serv.weather = {
    rain,
    thunder,
    kind,
    left: ticks ?? least + Math.floor(Math.random() * (most - least)),
  };
  tell(serv, serv.players);
}

function next(kind) {
  if (kind !== 'clear') return 'clear';
  return Math.random() < 0.3 ? 'thunder' : 'rain';
}

function rainsOn(serv, { x, y, z }) {
  if (!serv.weather.rain) return false;
  const { blocks } = serv.survival;
  const column = serv.overworld.getLoadedColumn(Math.floor(x) >> 4, Math.floor(z) >> 4);
  if (!column) return false;
  const biome =
    serv.registry.biomes[column.getBiome({ x: Math.floor(x) & 15, y: 0, z: Math.floor(z) & 15 })];
  if (biome && (biome.precipitation === 'none' || biome.temperature < 0.15)) return false;
  for (let above = Math.floor(y) + 1; above < 256; above++) {
    const info = blocks.at(x, above, z);
    if (info.boxes.length || info.liquid) return false;
  }
  return true;
}

const CLEAR = { rain: 0, thunder: 0, kind: 'clear', left: LASTS.clear[0] };

function server(serv) {
  serv.weather = { ...CLEAR };
  serv.survival.setWeather = (kind, ticks) => setWeather(serv, kind, ticks);
  serv.survival.rainsOn = (position) => rainsOn(serv, position);
  serv.survival.onTick(() => {
    if (!serv.survival.rules.doWeatherCycle || --serv.weather.left > 0) return;
    setWeather(serv, next(serv.weather.kind));
  });
}

function player(player, serv) {
  player.on('connected', () => {
    if (serv.weather.rain) tell(serv, [player]);
  });
}

function save(serv) {
  return { ...serv.weather };
}

function load(serv, data) {
  serv.weather = { ...(data || CLEAR) };
  tell(serv, serv.players);
}

module.exports = { name, server, player, save, load };

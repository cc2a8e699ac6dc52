'use strict';

/**
 * The brightness of a position. Chunks keep the light they were generated with, so later changes
 * are searched for here: whether the sky is open above, and whether a lamp is near. Shadows of
 * roofs by day are not: a built room counts as lit by the sky until its chunk's own light is low.
 */

const { FACES } = require('../blocks');

const TICKS_PER_DAY = 24000;
const GLIMMER = 7; // the brightest block light in which monsters appear
const REACH = 7; // steps from the strongest lamp (15) to where it falls to that light, less one

/** Returns the reduction of sky light by night and weather, 0 to 11 (Minecraft Wiki, "Light"). */
function skyDarkness(serv) {
  const angle = (serv.time / TICKS_PER_DAY - 0.25 + 1) % 1;
  const curve = (angle + (0.5 - Math.cos(angle * Math.PI) / 2 - angle) / 3) * 2 * Math.PI;
  const clear = Math.min(1, Math.max(0, Math.cos(curve) * 2 + 0.5));
  const { rain, thunder } = serv.weather;
  return Math.trunc((1 - clear * (1 - (rain * 5) / 16) * (1 - (thunder * 5) / 16)) * 11);
}

/** Returns whether it is day for mobs: the sky is bright enough for undead to burn. */
const isDay = (serv) => skyDarkness(serv) < 4;

/** Returns whether no block that stops light is above a position. */
function seesSky(survival, x, y, z) {
  const { blocks, serv } = survival;
  const column = serv.overworld.getLoadedColumn(Math.floor(x) >> 4, Math.floor(z) >> 4);
  if (!column) return false;
  const at = { x: Math.floor(x) & 15, y: Math.floor(y) + 1, z: Math.floor(z) & 15 };
  for (; at.y < 256; at.y++) {
    if (at.y < 0) continue;
    if (!column.sections[at.y >> 4]) {
      at.y |= 15;
      continue;
    }
    const stateId = column.getBlockStateId(at);
    if (stateId !== 0 && blocks.info(stateId).def.filterLight > 0) return false;
  }
  return true;
}

/** Returns sky light as stored, 15 under open sky; 0 to 15. */
function skyLight(survival, x, y, z) {
  const column = survival.serv.overworld.getLoadedColumn(Math.floor(x) >> 4, Math.floor(z) >> 4);
  const by = Math.floor(y);
  if (!column || by < 0 || by > 255) return 15;
  const stored = column.getSkyLight({ x: Math.floor(x) & 15, y: by, z: Math.floor(z) & 15 });
  return stored < 15 && seesSky(survival, x, y, z) ? 15 : stored;
}

/** Returns whether a lamp lights a position too brightly for monsters. */
function lampNear(survival, x, y, z) {
  const { blocks } = survival;
  let edge = [[Math.floor(x), Math.floor(y), Math.floor(z)]];
  const seen = new Set([edge[0].join()]);
  for (let away = 0; away <= REACH && edge.length > 0; away++) {
    const next = [];
    for (const [ex, ey, ez] of edge) {
      const { def } = blocks.at(ex, ey, ez);
      if (def.emitLight - away > GLIMMER) return true;
      if (away > 0 && def.filterLight >= 15) continue;
      for (const [dx, dy, dz] of FACES) {
        const key = `${ex + dx},${ey + dy},${ez + dz}`;
        if (seen.has(key)) continue;
        seen.add(key);
        next.push([ex + dx, ey + dy, ez + dz]);
      }
    }
    edge = next;
  }
  return false;
}

/**
 * Returns whether monsters may appear: dark by sky and stored light, by the game's random draw.
 */
function darkEnough(survival, x, y, z) {
  const { serv } = survival;
  const sky = skyLight(survival, x, y, z);
  if (sky > Math.floor(Math.random() * 32)) return false;
  const darkness = serv.weather.thunder ? 10 : skyDarkness(serv);
  if (Math.max(0, sky - darkness) > Math.floor(Math.random() * 8)) return false;
  return !lampNear(survival, x, y, z);
}

/** Returns the light at a position, sky light by the time of day; lamps only as generated. */
function lightAt(survival, x, y, z) {
  const column = survival.serv.overworld.getLoadedColumn(Math.floor(x) >> 4, Math.floor(z) >> 4);
  const by = Math.floor(y);
  if (!column || by < 0 || by > 255) return 15;
  const lamp = column.getBlockLight({ x: Math.floor(x) & 15, y: by, z: Math.floor(z) & 15 });
  return Math.max(lamp, skyLight(survival, x, y, z) - skyDarkness(survival.serv));
}

module.exports = { isDay, seesSky, darkEnough, lightAt, skyDarkness };

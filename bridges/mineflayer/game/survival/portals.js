'use strict';

/**
 * Portals to the Nether (Minecraft Wiki, "Nether portal", Java Edition 1.16): frames of obsidian from
 * 4 x 5 to 23 x 23, lit by fire; who stands in one for 4 seconds (a tick in creative mode) travels to
 * the nearest portal of the other dimension, within 128 blocks of the overworld, or to a new one.
 *
 * Simplified: only players travel, and a portal that no player lit or built is not known.
 */

const { Vec3 } = require('vec3');

const name = 'portals';
const [LEAST, MOST] = [[2, 3], 21]; // width and height of the opening
const STANDS = 80; // ticks
const NEAR = { overworld: 128, the_nether: 16 };
const SEARCH = 16; // blocks around the place where a portal is built
const HEIGHTS = { overworld: [60, 120], the_nether: [34, 110] };
const ALONG = { x: [1, 0], z: [0, 1] };

const isEmpty = (info) => info.air || info.name === 'fire' || info.name === 'nether_portal';

/** Returns the cells of the opening of a frame around a cell, or null. */
function openingOf(blocks, x, y, z, axis) {
  const [ax, az] = ALONG[axis];
  const at = (u, v) => blocks.at(x + ax * u, v, z + az * u);
  let low = y;
  while (isEmpty(at(0, low - 1)) && y - low < MOST) low--;
  if (at(0, low - 1).name !== 'obsidian') return null;
  let left = 0;
  while (isEmpty(at(left - 1, low)) && -left < MOST) left--;
  let right = 0;
  while (isEmpty(at(right + 1, low)) && right < MOST) right++;
  const width = right - left + 1;
  if (width < LEAST[0] || width > MOST) return null;
  const columns = Array.from({ length: width }, (_, i) => left + i);
  const isObsidian = (u, v) => at(u, v).name === 'obsidian';
  if (!columns.every((u) => isObsidian(u, low - 1))) return null;
  for (let v = low; v - low <= MOST; v++) {
    if (columns.every((u) => isObsidian(u, v))) {
      if (v - low < LEAST[1]) return null;
      const rows = Array.from({ length: v - low }, (_, i) => low + i);
      return rows.flatMap((row) => columns.map((u) => [x + ax * u, row, z + az * u]));
    }
    if (!columns.every((u) => isEmpty(at(u, v))) || !isObsidian(left - 1, v) || !isObsidian(right + 1, v)) return null;
  }
  return null;
}

/** Lights the frame around a cell; returns whether there is one. */
function light(survival, x, y, z) {
  const { blocks } = survival;
  if (!isEmpty(blocks.at(x, y, z))) return false;
  for (const axis of ['x', 'z']) {
    const cells = openingOf(blocks, x, y, z, axis);
    if (!cells) continue;
    for (const cell of cells) blocks.setNamed(...cell, 'nether_portal', { axis });
    const [px, py, pz] = cells[0];
    survival.portals.push({ x: px, y: py, z: pz, axis });
    return true;
  }
  return false;
}

/** A portal whose frame is broken goes out, cell by cell. */
function check(blocks, x, y, z) {
  const info = blocks.at(x, y, z);
  if (info.name !== 'nether_portal') return;
  const [ax, az] = ALONG[info.props.axis];
  const around = [[ax, 0, az], [-ax, 0, -az], [0, 1, 0], [0, -1, 0]];
  const holds = around.every(([dx, dy, dz]) => {
    const { name: block } = blocks.at(x + dx, y + dy, z + dz);
    return block === 'nether_portal' || block === 'obsidian';
  });
  if (!holds) blocks.setNamed(x, y, z, 'air');
}

/** Returns the nearest portal that still stands around a place of its dimension, or null. */
function nearest(survival, x, z, dimension) {
  survival.portals = survival.portals.filter((portal) =>
    !survival.blocks.loaded(portal.x, portal.z)
      || survival.blocks.at(portal.x, portal.y, portal.z).name === 'nether_portal');
  const far = (portal) => Math.max(Math.abs(portal.x - x), Math.abs(portal.z - z));
  return survival.portals
    .filter((portal) => survival.dimensionOf(portal) === dimension && far(portal) <= NEAR[dimension])
    .sort((a, b) => far(a) - far(b))[0] ?? null;
}

/** Whether a frame has ground under it and room: its corner at a cell, along x. */
function fits({ blocks }, x, y, z) {
  for (let u = -1; u <= 2; u++) {
    for (let w = -1; w <= 1; w++) {
      const ground = blocks.at(x + u, y - 1, z + w);
      if (!ground.full || ground.name === 'bedrock') return false;
      for (let v = 0; v < 4; v++) {
        const info = blocks.at(x + u, y + v, z + w);
        if (info.boxes.length || info.liquid) return false;
      }
    }
  }
  return true;
}

/** Finds a place for a portal near one, or makes room; builds it there and returns it. */
function build(serv, tx, tz, dimension) {
  const { survival } = serv;
  const { blocks } = survival;
  for (let cx = (tx - SEARCH) >> 4; cx <= (tx + SEARCH) >> 4; cx++)
    for (let cz = (tz - SEARCH) >> 4; cz <= (tz + SEARCH) >> 4; cz++) serv.columnAt(serv.overworld, cx, cz);
  const [low, high] = HEIGHTS[dimension];
  let best = null;
  for (let dx = -SEARCH; dx <= SEARCH; dx += 2) {
    for (let dz = -SEARCH; dz <= SEARCH; dz += 2) {
      const far = Math.abs(dx) + Math.abs(dz);
      if (best && far >= best.far) continue;
      for (let y = low; y <= high; y++) {
        if (!fits(survival, tx + dx, y, tz + dz)) continue;
        best = { x: tx + dx, y, z: tz + dz, far };
        break;
      }
    }
  }
  const { x, y, z } = best ?? { x: tx, y: 70, z: tz };
  for (let u = -1; u <= 2; u++) {
    for (let w = -1; w <= 1; w++) {
      if (!best) blocks.setNamed(x + u, y - 1, z + w, 'obsidian');
      for (let v = 0; v < 4 && !best; v++) blocks.setNamed(x + u, y + v, z + w, 'air');
    }
    for (let v = -1; v <= 3; v++)
      if (u === -1 || u === 2 || v === -1 || v === 3) blocks.setNamed(x + u, y + v, z, 'obsidian');
  }
  light(survival, x, y, z);
  return survival.portals[survival.portals.length - 1];
}

function travel(serv, player) {
  const { survival } = serv;
  const to = survival.dimensionOf(player.position) === 'overworld' ? 'the_nether' : 'overworld';
  const [x, z] = survival.across(player.position).map(Math.floor);
  survival.dismount(player, true);
  const portal = nearest(survival, x, z, to) ?? build(serv, x, z, to);
  player.portalRest = true;
  player.sendPosition(new Vec3(portal.x + 0.5, portal.y, portal.z + 0.5), false, true);
  player.sendSelfPosition();
}

function tick(serv) {
  const { survival } = serv;
  for (const player of serv.players) {
    const { x, y, z } = player.position;
    if (survival.blocks.at(x, y + 0.1, z).name !== 'nether_portal') {
      player.portalTicks = 0;
      player.portalRest = false;
      continue;
    }
    if (player.portalRest || player.health <= 0 || player.dimension === 'the_end') continue;
    player.portalTicks++;
    if (player.portalTicks < (player.gameMode === 1 ? 1 : STANDS)) continue;
    player.portalTicks = 0;
    travel(serv, player);
  }
}

function server(serv) {
  const { survival } = serv;
  const { blocks } = survival;
  survival.portals = [];
  const { ignite } = survival;
  survival.ignite = (x, y, z) => light(survival, x, y, z) || ignite(x, y, z);
  blocks.onChange((x, y, z, old, now) => {
    if (now.name === 'nether_portal' || (old.name !== 'obsidian' && old.name !== 'nether_portal')) return;
    for (const [dx, dy, dz] of [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]])
      check(blocks, x + dx, y + dy, z + dz);
  });
  survival.onTick(() => tick(serv));
}

function player(player) {
  player.portalTicks = 0;
  player.portalRest = false;
}

const save = ({ survival }) => survival.portals.map((portal) => ({ ...portal }));

function load({ survival }, data) {
  survival.portals = (data ?? []).map((portal) => ({ ...portal }));
}

module.exports = { name, server, player, save, load };

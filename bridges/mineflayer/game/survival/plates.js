'use strict';

/**
 * Pressure plates and detector rails (Minecraft Wiki, "Pressure Plate" and "Detector Rail", 1.16):
 * they are pressed by who steps or rolls on them, and look now and then whether anybody is still
 * there. `serv.survival.tread(x, y, z, info)` is called by those that move.
 */

const name = 'plates';
const KINDS = [
  { blocks: /^(light|heavy)_weighted_pressure_plate$/, who: () => true, ticks: 10, counts: { light: 1, heavy: 10 } },
  { blocks: /^(stone|polished_blackstone)_pressure_plate$/, who: ({ health }) => health > 0, ticks: 20 },
  { blocks: /_pressure_plate$/, who: () => true, ticks: 20 },
  { blocks: /^detector_rail$/, who: ({ name: kind }) => kind === 'minecart', ticks: 20 },
];
const EDGE = 0.0625; // of the plate's cell that does not count
const HIGH = 0.25;

const kindOf = (info) => KINDS.find(({ blocks }) => blocks.test(info.name));

/** The entities on a plate. */
function on(serv, x, y, z, who) {
  const [low, high] = [EDGE, 1 - EDGE];
  return Object.values(serv.entities).filter((entity) => {
    if (entity.gameMode === 3 || !who(entity)) return false;
    const half = (serv.registry.entitiesByName[entity.name]?.width ?? 0.6) / 2;
    const at = entity.position;
    return at.x + half > x + low && at.x - half < x + high && at.z + half > z + low
      && at.z - half < z + high && at.y < y + HIGH && at.y > y - 0.5;
  });
}

/** Sets a plate by who is on it; returns whether anybody is. */
function look(serv, x, y, z, info) {
  const { blocks } = serv.survival;
  const kind = kindOf(info);
  const count = on(serv, x, y, z, kind.who).length;
  if (kind.counts) {
    const power = Math.min(15, Math.ceil(count / kind.counts[info.name.split('_')[0]]));
    if (power !== info.props.power) blocks.set(x, y, z, blocks.changed(info, { power }));
  } else if (info.props.powered !== count > 0) {
    blocks.set(x, y, z, blocks.changed(info, { powered: count > 0 }));
  }
  return count > 0;
}

function tread(serv, x, y, z, info) {
  const kind = kindOf(info);
  if (!kind || info.props.powered || (info.props.power > 0 && !kind.counts)) return;
  const pressed = info.props.power > 0;
  if (!look(serv, x, y, z, info) || pressed) return;
  serv.survival.schedule(kind.ticks, 'plate', [x, y, z]);
  serv.emit('gamut:trodden', { block: info.name, x, y, z });
}

function again(serv, [x, y, z]) {
  const info = serv.survival.blocks.at(x, y, z);
  const kind = kindOf(info);
  if (!kind || !(info.props.powered || info.props.power > 0)) return;
  if (look(serv, x, y, z, info)) serv.survival.schedule(kind.ticks, 'plate', [x, y, z]);
}

function server(serv) {
  const { survival } = serv;
  const { blocks } = survival;
  survival.tread = (x, y, z, info) => tread(serv, x, y, z, info);
  survival.onScheduled('plate', (cell) => again(serv, cell));
  const cornersOf = ({ x, z }) => [-0.23, 0.23].flatMap((dx) => [-0.23, 0.23].map((dz) => [x + dx, z + dz]));
  survival.onMove((player) => {
    const at = player.feet ?? player.position;
    for (const [x, z] of cornersOf(at)) {
      const info = blocks.at(x, at.y + 0.01, z);
      if (info.plate) player.onPlate = [Math.floor(x), Math.floor(at.y + 0.01), Math.floor(z)];
    }
  });
  survival.onTick(() => {
    for (const player of serv.players) {
      if (!player.onPlate) continue;
      const [x, y, z] = player.onPlate;
      player.onPlate = null;
      tread(serv, x, y, z, blocks.at(x, y, z));
    }
  });
}

module.exports = { name, server };

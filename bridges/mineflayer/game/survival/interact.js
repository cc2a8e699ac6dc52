'use strict';

/**
 * Doors, trapdoors, gates, buttons and levers. There is no redstone: a switch only opens and closes
 * the doors, trapdoors and gates that touch it or the block it is attached to, iron ones too, and
 * drives dispensers and droppers there.
 */

const { FACES } = require('./blocks');
const { looksTo } = require('./placing');

const name = 'interact';
const HANGS_ON = { north: [0, 0, 1], south: [0, 0, -1], west: [1, 0, 0], east: [-1, 0, 0] };
const GIVES = /^(dispenser|dropper)$/;
const MOVED = /_door$|_trapdoor$|_fence_gate$/;
/** Ticks a button stays down. */
const PRESS = { stone: 20, wooden: 30 };

function setOpen(blocks, x, y, z, props) {
  const info = blocks.at(x, y, z);
  blocks.set(x, y, z, blocks.changed(info, props));
  if (!info.name.endsWith('_door')) return;
  const other = info.props.half === 'lower' ? y + 1 : y - 1;
  const twin = blocks.at(x, other, z);
  if (twin.id === info.id) blocks.set(x, other, z, blocks.changed(twin, props));
}

function toggle(serv, { player, x, y, z, info }) {
  if (info.name.startsWith('iron_')) return false;
  const props = { open: !info.props.open };
  if (info.name.endsWith('_fence_gate') && props.open) {
    // A gate opens away from the player.
    const look = looksTo(player);
    const back = { north: 'south', south: 'north', east: 'west', west: 'east' }[look];
    if (info.props.facing === back) props.facing = look;
  }
  setOpen(serv.survival.blocks, x, y, z, props);
  serv.emit('gamut:used', { player, block: info.name, x, y, z });
  return true;
}

/** Opens or closes what a switch at a position controls. */
function drive(blocks, x, y, z, info, powered) {
  const on =
    info.props.face === 'floor'
      ? [0, -1, 0]
      : info.props.face === 'ceiling'
        ? [0, 1, 0]
        : HANGS_ON[info.props.facing];
  const centres = [
    [x, y, z],
    [x + on[0], y + on[1], z + on[2]],
  ];
  const done = new Set();
  for (const [cx, cy, cz] of centres) {
    for (const [dx, dy, dz] of FACES) {
      const spot = [cx + dx, cy + dy, cz + dz];
      const there = blocks.at(...spot);
      const key =
        there.name.endsWith('_door') && there.props.half === 'upper'
          ? [spot[0], spot[1] - 1, spot[2]]
          : spot;
      if (GIVES.test(there.name) && there.props.triggered !== powered) {
        blocks.set(...spot, blocks.changed(there, { triggered: powered }));
        if (powered) blocks.serv.survival.dispense(...spot);
        continue;
      }
      if (!MOVED.test(there.name) || done.has(String(key)) || there.props.powered === powered)
        continue;
      done.add(String(key));
      setOpen(blocks, ...spot, { open: powered, powered });
    }
  }
}

function press(serv, { player, x, y, z, info }) {
  const { survival } = serv;
  const { blocks } = survival;
  const lever = info.name === 'lever';
  if (!lever && info.props.powered) return true;
  const powered = !info.props.powered;
  blocks.set(x, y, z, blocks.changed(info, { powered }));
  drive(blocks, x, y, z, info, powered);
  if (!lever)
    survival.schedule(/stone/.test(info.name) ? PRESS.stone : PRESS.wooden, 'button', [x, y, z]);
  serv.emit('gamut:used', { player, block: info.name, x, y, z });
  return true;
}

function release(blocks, x, y, z) {
  const info = blocks.at(x, y, z);
  if (!info.name.endsWith('_button') || !info.props.powered) return;
  blocks.set(x, y, z, blocks.changed(info, { powered: false }));
  drive(blocks, x, y, z, info, false);
}

function server(serv) {
  const { survival } = serv;
  const names = Object.keys(serv.registry.blocksByName);
  survival.onUseBlock(
    names.filter((n) => MOVED.test(n)),
    (call) => toggle(serv, call),
  );
  survival.onUseBlock(
    names.filter((n) => n === 'lever' || n.endsWith('_button')),
    (call) => press(serv, call),
  );
  survival.onScheduled('button', ([x, y, z]) => release(survival.blocks, x, y, z));
  survival.setOpen = (x, y, z, open) => setOpen(survival.blocks, x, y, z, { open });
}

module.exports = { name, server };

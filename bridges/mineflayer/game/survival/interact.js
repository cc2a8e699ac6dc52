'use strict';

/**
 * Doors, trapdoors, gates, buttons and levers in the hands of players. What switches drive is
 * redstone.js.
 */

const { looksTo } = require('./placing');

const name = 'interact';
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

function press(serv, { player, x, y, z, info }) {
  const { survival } = serv;
  const { blocks } = survival;
  const lever = info.name === 'lever';
  if (!lever && info.props.powered) return true;
  const powered = !info.props.powered;
  blocks.set(x, y, z, blocks.changed(info, { powered }));
  if (!lever)
    survival.schedule(/stone/.test(info.name) ? PRESS.stone : PRESS.wooden, 'button', [x, y, z]);
  serv.emit('gamut:used', { player, block: info.name, x, y, z });
  return true;
}

function release(blocks, x, y, z) {
  const info = blocks.at(x, y, z);
  if (!info.name.endsWith('_button') || !info.props.powered) return;
  blocks.set(x, y, z, blocks.changed(info, { powered: false }));
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
  survival.setOpen = (x, y, z, open, more) => setOpen(survival.blocks, x, y, z, { open, ...more });
}

module.exports = { name, server };

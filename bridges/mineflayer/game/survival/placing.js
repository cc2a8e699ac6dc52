'use strict';

/**
 * Placing blocks: where, in which state, and whether at all (space, support, entities in the way).
 * 'gamut:placed' {player, block, properties, x, y, z}.
 */

const { FACES, FACE_NAMES } = require('./blocks');
const { isChest, placedAs } = require('./chests');
const { cellOfOther } = require('./halves');
const { supported } = require('./support');

const name = 'placing';
const BLOCK_OF = {
  redstone: 'redstone_wire',
  string: 'tripwire',
  wheat_seeds: 'wheat',
  beetroot_seeds: 'beetroots',
  carrot: 'carrots',
  potato: 'potatoes',
  melon_seeds: 'melon_stem',
  pumpkin_seeds: 'pumpkin_stem',
  sweet_berries: 'sweet_berry_bush',
  cocoa_beans: 'cocoa',
};
const OPPOSITE = {
  north: 'south',
  south: 'north',
  east: 'west',
  west: 'east',
  up: 'down',
  down: 'up',
};
const TOWARD_PLAYER =
  /^(furnace|blast_furnace|smoker|chest|trapped_chest|ender_chest|carved_pumpkin|jack_o_lantern|lectern|loom|stonecutter|bee_nest|beehive|.*_glazed_terracotta|repeater|comparator|wall_.*)$/;
const ON_WALLS = {
  torch: 'wall_torch',
  soul_torch: 'soul_wall_torch',
  redstone_torch: 'redstone_wall_torch',
};
const BY_FACE = /^(ladder|wall_torch|.*_wall_.*|tripwire_hook|.*_wall_fan)$/;
/** How far an entity may be inside of a block that it stands on or leans against. */
const SLACK = 1e-3;
const TURN = { north: 'east', east: 'south', south: 'west', west: 'north' };

/** The quarter a player looks to. */
function looksTo(player) {
  const turns = Math.floor((player.facing.yaw / (2 * Math.PI)) * 4 + 0.5);
  return ['south', 'west', 'north', 'east'][((turns % 4) + 4) % 4];
}

function six(player) {
  if (player.facing.pitch > Math.PI / 4) return 'down';
  return player.facing.pitch < -Math.PI / 4 ? 'up' : looksTo(player);
}

/** The block that an item becomes on a face, or null. */
function blockFor(registry, itemName, face) {
  let block = BLOCK_OF[itemName] || itemName;
  const onSide = face > 1;
  if (onSide) {
    const wall = ON_WALLS[block] || block.replace(/_(sign|banner|head|skull|fan)$/, '_wall_$1');
    if (registry.blocksByName[wall]) block = wall;
  }
  return registry.blocksByName[block] || null;
}

function facingFor(def, values, { player, face }) {
  const side = FACE_NAMES[face];
  const look = looksTo(player);
  if (BY_FACE.test(def.name) || def.name === 'cocoa') {
    const wanted = def.name === 'cocoa' ? OPPOSITE[side] : side;
    return values.includes(wanted) ? wanted : null;
  }
  if (/_button$|^lever$|^grindstone$/.test(def.name)) return face > 1 ? side : look;
  if (/^(end_rod|.*shulker_box|hopper)$/.test(def.name)) {
    if (def.name === 'hopper') return OPPOSITE[side] === 'up' ? 'down' : OPPOSITE[side];
    return side;
  }
  if (/^(dispenser|dropper|piston|sticky_piston|barrel|command_block)$/.test(def.name))
    return OPPOSITE[six(player)];
  if (def.name === 'observer') return six(player);
  if (/trapdoor/.test(def.name)) return face > 1 ? side : OPPOSITE[look];
  if (/anvil$/.test(def.name)) return TURN[look];
  return TOWARD_PLAYER.test(def.name) ? OPPOSITE[look] : look;
}

/** Returns the properties of a block placed in this way, or null if it cannot be. */
function propsFor(blocks, def, call) {
  const props = {};
  const { face, cursor, player } = call;
  const states = Object.fromEntries((def.states || []).map((s) => [s.name, s]));
  if (states.facing) {
    props.facing = facingFor(def, states.facing.values, call);
    if (props.facing === null) return null;
  }
  if (isChest(def.name)) {
    const how = { ...call, side: FACE_NAMES[face], sneaks: player.crouching };
    Object.assign(props, placedAs(blocks, def.id, props.facing, how));
  }
  if (states.axis) props.axis = ['y', 'y', 'z', 'z', 'x', 'x'][face];
  const top = face === 0 || (face > 1 && cursor.y > 0.5);
  if (states.half && states.half.values.includes('top')) props.half = top ? 'top' : 'bottom';
  if (def.name.endsWith('_slab')) props.type = top ? 'top' : 'bottom';
  if (states.face) props.face = face === 0 ? 'ceiling' : face === 1 ? 'floor' : 'wall';
  if (states.rotation)
    props.rotation = Math.floor((player.facing.yaw / (2 * Math.PI)) * 16 + 8.5) & 15;
  if (states.hanging) props.hanging = face === 0;
  if (states.waterlogged) {
    // Only by a source: flowing water is replaced.
    const there = blocks.at(call.px, call.py, call.pz);
    props.waterlogged = there.water && there.level === 0;
  }
  if (states.persistent) props.persistent = true;
  return props;
}

/** Whether an entity is in the boxes of a block that is placed; what touches it is not. */
function inTheWay(serv, info, x, y, z) {
  for (const id in serv.entities) {
    const entity = serv.entities[id];
    if (entity.type === 'object' || entity.health <= 0) continue;
    const def =
      entity.type === 'player'
        ? { width: 0.6, height: 1.8 }
        : serv.registry.entitiesByName[entity.name];
    const { position: at } = entity;
    const half = def.width / 2 - SLACK;
    const within = ([x0, y0, z0, x1, y1, z1]) =>
      at.x + half > x + x0 &&
      at.x - half < x + x1 &&
      at.z + half > z + z0 &&
      at.z - half < z + z1 &&
      at.y + def.height > y + y0 &&
      at.y + SLACK < y + y1;
    if (info.boxes.some(within)) return true;
  }
  return false;
}

/** A slab on an equal one makes a double one. Returns null for all else, else whether it did. */
function doubleSlab(serv, call, def) {
  const { blocks } = serv.survival;
  const { info, face, cursor, px, py, pz } = call;
  if (!def.name.endsWith('_slab')) return null;
  const joins =
    info.id === def.id &&
    ((info.props.type === 'bottom' && face === 1) || (info.props.type === 'top' && face === 0));
  const to = joins ? [call.x, call.y, call.z] : [px, py, pz];
  const there = joins ? info : blocks.at(px, py, pz);
  const upper = face === 0 || (face > 1 && cursor.y > 0.5);
  if (!joins && (there.id !== def.id || there.props.type !== (upper ? 'bottom' : 'top')))
    return null;
  const whole = blocks.info(blocks.changed(there, { type: 'double', waterlogged: false }));
  if (inTheWay(serv, whole, ...to)) return false;
  place(serv, call, ...to, whole.stateId);
  return true;
}

function place(serv, { player, slot }, x, y, z, stateId) {
  const { blocks } = serv.survival;
  blocks.set(x, y, z, stateId);
  if (player.gameMode !== 1) player.useUp(slot);
  const { name: block, props: properties } = blocks.info(stateId);
  serv.emit('gamut:placed', { player, block, properties, x, y, z });
}

/** The hinge side of a door: away from an equal one, then towards the walls. */
function hinge(blocks, facing, x, y, z, id) {
  const step = { north: [1, 0], south: [-1, 0], east: [0, 1], west: [0, -1] }[facing];
  const right = blocks.at(x + step[0], y, z + step[1]);
  const left = blocks.at(x - step[0], y, z - step[1]);
  if (left.id === id) return 'right';
  if (right.id === id) return 'left';
  return right.full && !left.full ? 'right' : 'left';
}

/**
 * Doors, beds and tall plants: two blocks at once. Returns null for others, else whether they fit.
 */
function placeDouble(serv, call, def, props) {
  const { blocks } = serv.survival;
  const { px, py, pz } = call;
  const states = (def.states || []).map((s) => s.name);
  const bed = states.includes('part');
  const tall =
    def.states && def.states.some((s) => s.name === 'half' && s.values.includes('upper'));
  if (!bed && !tall) return null;
  const first = { ...props, ...(bed ? { part: 'foot' } : { half: 'lower' }) };
  if (states.includes('hinge')) first.hinge = hinge(blocks, props.facing, px, py, pz, def.id);
  const info = blocks.info(blocks.state(def.name, first));
  const second = cellOfOther(info, px, py, pz);
  if (!blocks.at(...second).replaceable || second[1] > 255) return false;
  // As in the game, only the first half needs support, and only there may no one be.
  if (!supported(blocks, px, py, pz, info) || inTheWay(serv, info, px, py, pz)) return false;
  place(serv, call, px, py, pz, info.stateId);
  blocks.set(...second, blocks.changed(info, bed ? { part: 'head' } : { half: 'upper' }));
  return true;
}

function onSnow({ info, face }) {
  return info.replaceable || (info.name === 'snow' && face === 1 && info.props.layers === 1);
}

/** Places the item of a call (see use.js). Returns whether it did. */
function placeBlock(serv, call) {
  const { blocks } = serv.survival;
  const { item, face, player } = call;
  const def = FACES[face] && blockFor(serv.registry, item.name, face);
  if (!def) return false;
  const inside = onSnow(call);
  const [dx, dy, dz] = inside ? [0, 0, 0] : FACES[face];
  Object.assign(call, { px: call.x + dx, py: call.y + dy, pz: call.z + dz });
  const { px, py, pz } = call;
  if (py < 0 || py > 255 || !serv.survival.withinReach(player, px, py, pz)) return false;
  const slab = doubleSlab(serv, call, def);
  if (slab !== null) return slab;
  if (!blocks.at(px, py, pz).replaceable) return false;
  const props = propsFor(blocks, def, call);
  if (props === null) return false;
  const double = placeDouble(serv, call, def, props);
  if (double !== null) return double;
  const info = blocks.info(blocks.state(def.name, props));
  if (!supported(blocks, px, py, pz, info) || inTheWay(serv, info, px, py, pz)) return false;
  place(serv, call, px, py, pz, info.stateId);
  return true;
}

function server(serv) {
  serv.survival.placeBlock = (call) => placeBlock(serv, call);
}

module.exports = { name, server, looksTo };

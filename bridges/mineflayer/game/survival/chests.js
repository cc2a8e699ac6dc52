'use strict';

/**
 * Two chests of one kind side by side that face the same way are one large chest (Minecraft Wiki,
 * "Chest", 1.16): the state `type` is then `right` for the half that has the first 27 slots, and
 * `left` for the other one.
 */

const { STEPS } = require('./halves');

const CLOCKWISE = { north: 'east', east: 'south', south: 'west', west: 'north' };
const OPPOSITE = { north: 'south', south: 'north', east: 'west', west: 'east' };
const SIDES = Object.keys(STEPS);
const OTHER = { left: 'right', right: 'left' };

const isChest = (name) => name === 'chest' || name === 'trapped_chest';

function beside(blocks, x, y, z, side) {
  const [dx, dz] = STEPS[side];
  return blocks.at(x + dx, y, z + dz);
}

/** The side on which the other half of a chest is that has this state; null of a single one. */
function sideOfOther({ facing, type }) {
  if (type === 'single') return null;
  const right = OPPOSITE[CLOCKWISE[facing]];
  return type === 'left' ? CLOCKWISE[facing] : right;
}

/** Returns the coordinates of the chest at these ones and of its other half, `right` first. */
function halves(blocks, x, y, z) {
  const info = blocks.at(x, y, z);
  const side = isChest(info.name) ? sideOfOther(info.props) : null;
  if (side === null) return [[x, y, z]];
  const other = beside(blocks, x, y, z, side);
  const fits = other.id === info.id && other.props.type === OTHER[info.props.type];
  if (!fits || other.props.facing !== info.props.facing) return [[x, y, z]];
  const both = [
    [x, y, z],
    [x + STEPS[side][0], y, z + STEPS[side][1]],
  ];
  return info.props.type === 'right' ? both : both.reverse();
}

/** How the single chest of this kind faces that is on a side of a place; null where none is. */
function facingOfSingle(blocks, id, [x, y, z], side) {
  const there = beside(blocks, x, y, z, side);
  return there.id === id && there.props.type === 'single' ? there.props.facing : null;
}

/**
 * Returns the `facing` and `type` of a chest that is placed: it joins a single one beside it that
 * faces as it would. A player who sneaks joins the chest that is clicked, and no other one.
 */
function placedAs(blocks, id, facing, { px, py, pz, side, sneaks }) {
  const at = [px, py, pz];
  if (sneaks) {
    const clicked = OPPOSITE[side];
    const theirs = clicked ? facingOfSingle(blocks, id, at, clicked) : null;
    if (theirs === null || theirs === side || theirs === clicked)
      return { facing, type: 'single' };
    return { facing: theirs, type: CLOCKWISE[theirs] === clicked ? 'left' : 'right' };
  }
  const left = CLOCKWISE[facing];
  if (facingOfSingle(blocks, id, at, left) === facing) return { facing, type: 'left' };
  const joins = facingOfSingle(blocks, id, at, OPPOSITE[left]) === facing;
  return { facing, type: joins ? 'right' : 'single' };
}

/** The `type` that a chest takes beside its neighbours. */
function typeBeside(blocks, x, y, z, { id, props }) {
  const side = sideOfOther(props);
  if (side !== null) return beside(blocks, x, y, z, side).id === id ? props.type : 'single';
  for (const each of SIDES) {
    const there = beside(blocks, x, y, z, each);
    const joins = there.id === id && there.props.facing === props.facing;
    if (joins && sideOfOther(there.props) === OPPOSITE[each]) return OTHER[there.props.type];
  }
  return 'single';
}

function settle(blocks, x, y, z) {
  const info = blocks.at(x, y, z);
  if (!isChest(info.name)) return;
  const type = typeBeside(blocks, x, y, z, info);
  if (type !== info.props.type) blocks.set(x, y, z, blocks.changed(info, { type }));
}

/** Joins and parts chests when one of them appears, changes or goes. */
function settleChests(blocks) {
  blocks.onChange((x, y, z, old, now) => {
    if (!isChest(old.name) && !isChest(now.name)) return;
    settle(blocks, x, y, z);
    for (const [dx, dz] of Object.values(STEPS)) settle(blocks, x + dx, y, z + dz);
  });
}

module.exports = { halves, isChest, placedAs, settleChests };

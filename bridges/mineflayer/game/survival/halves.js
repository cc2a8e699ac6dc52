'use strict';

/** Blocks that are two: beds, doors and tall plants. */

const STEPS = { north: [0, -1], south: [0, 1], west: [-1, 0], east: [1, 0] };

/** Returns where the other half of a block is, `[x, y, z]`, or null of a block without halves. */
function cellOfOther({ props: { part, half, facing } }, x, y, z) {
  if (part) {
    const sign = part === 'foot' ? 1 : -1;
    const [dx, dz] = STEPS[facing];
    return [x + dx * sign, y, z + dz * sign];
  }
  if (half === 'upper') return [x, y - 1, z];
  return half === 'lower' ? [x, y + 1, z] : null;
}

/** Whether two neighbours are the halves of one: of two beds in a row each has its own. */
function areOne(info, other) {
  if (info.id !== other.id) return false;
  const { part, half, facing } = info.props;
  if (part) return other.props.part !== part && other.props.facing === facing;
  return other.props.half !== half;
}

module.exports = { STEPS, areOne, cellOfOther };

'use strict';
/**
 * What an agent looks at. Mineflayer's own cursors find nothing at a pitch or yaw of exactly 0 and
 * start at the top of the head; these start at the eyes.
 */
const { Vec3 } = require('vec3');

/** Reach of the hand for blocks and of blows for bodies (Minecraft Wiki, "Player", survival). */
const REACH = 4.5;
const BLOW_REACH = 3;
const EYES = 1.62;
const SNEAKING_EYES = 1.27;
const RIGHT_ANGLE = Math.PI / 2;
/** Projectiles, items and other entities without a body: they cannot be struck. */
const LIFELESS = new Set(['item', 'experience_orb', 'arrow', 'spectral_arrow', 'trident', 'snowball',
  'egg', 'ender_pearl', 'experience_bottle', 'potion', 'falling_block', 'firework_rocket',
  'fishing_bobber', 'area_effect_cloud', 'eye_of_ender', 'lightning_bolt', 'llama_spit',
  'evoker_fangs', 'tnt']);

/** Unit vectors out of the faces of a block, by their numbers in the protocol. */
const FACES = [[0, -1, 0], [0, 1, 0], [0, 0, -1], [0, 0, 1], [-1, 0, 0], [1, 0, 0]]
  .map((face) => new Vec3(...face));

/** Returns `{eye, way}`: the position of an agent's eyes, and the unit vector of its look. */
function gaze(bot) {
  const { position, yaw, pitch } = bot.entity;
  const eye = position.offset(0, bot.getControlState('sneak') ? SNEAKING_EYES : EYES, 0);
  const level = Math.cos(pitch);
  return { eye, way: new Vec3(-Math.sin(yaw) * level, Math.sin(pitch), -Math.cos(yaw) * level) };
}

/**
 * Turns the head, at once, to angles in radians: yaw is wrapped to half a circle around 0, pitch is
 * limited to straight up and down. Mineflayer would round them to what a mouse can do.
 */
function face(bot, yaw, pitch) {
  const round = Math.atan2(Math.sin(yaw), Math.cos(yaw));
  const up = Math.min(RIGHT_ANGLE, Math.max(-RIGHT_ANGLE, pitch));
  bot.look(round, up, true);
  bot.entity.yaw = round;
  bot.entity.pitch = up;
}

/**
 * Returns the block that an agent looks at within its reach, null for none:
 * `{block, face (unit vector), at (point of the block hit, 0..1), distance}`.
 */
function blockAtCursor(bot, reach = REACH) {
  const { eye, way } = gaze(bot);
  const block = bot.world.raycast(eye, way, reach);
  if (!block) return null;
  const point = block.intersect ?? block.position.offset(0.5, 0.5, 0.5);
  return { block, face: FACES[block.face] ?? FACES[1], at: point.minus(block.position),
    distance: point.distanceTo(eye) };
}

/**
 * Returns the distance along a ray to a box, 0 from inside, Infinity if the ray misses it. `low`
 * and `high` are its corners.
 */
function boxDistance(eye, way, low, high) {
  let near = 0;
  let far = Infinity;
  for (const axis of ['x', 'y', 'z']) {
    if (way[axis] === 0) {
      if (eye[axis] < low[axis] || eye[axis] > high[axis]) return Infinity;
      continue;
    }
    const a = (low[axis] - eye[axis]) / way[axis];
    const b = (high[axis] - eye[axis]) / way[axis];
    near = Math.max(near, Math.min(a, b));
    far = Math.min(far, Math.max(a, b));
  }
  return near <= far ? near : Infinity;
}

/**
 * Returns the creature or player an agent looks at within `reach` and in front of any block, or
 * null.
 */
function bodyAtCursor(bot, reach = BLOW_REACH) {
  const { eye, way } = gaze(bot);
  let nearest = blockAtCursor(bot, reach)?.distance ?? reach;
  let found = null;
  for (const entity of Object.values(bot.entities)) {
    if (entity === bot.entity || LIFELESS.has(entity.name) || !entity.position) continue;
    const { position, height, width } = entity;
    if (position.distanceTo(eye) > reach + height + width) continue;
    const low = position.offset(-width / 2, 0, -width / 2);
    const distance = boxDistance(eye, way, low, low.offset(width, height, width));
    if (distance > nearest) continue;
    nearest = distance;
    found = entity;
  }
  return found;
}

module.exports = { face, blockAtCursor, bodyAtCursor, gaze, FACES, REACH, BLOW_REACH };

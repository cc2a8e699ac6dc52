'use strict';

/**
 * Where a command is executed from, `{entity, position, yaw, pitch, eyes}` (entity null for the
 * console, angles in degrees as the game counts them: yaw 0 is south), and what its coordinates and
 * selectors mean from there (Minecraft Wiki, "Target selectors" and "Coordinates").
 */

const { Vec3 } = require('vec3');
const { UserError } = require('flying-squid');

const TURN = 256; // units of a mob's yaw and pitch per turn
const EYES = 1.62; // height of a player's
const NORTH = 180; // where a player looks that has not yet turned
const MODES = ['survival', 'creative', 'adventure', 'spectator'];

/** Returns the source of an entity that executes a command where it is. */
function sourceOf(entity) {
  const degrees = (units) => ((units ?? 0) * 360) / TURN;
  const isPlayer = entity.type === 'player';
  return {
    entity,
    position: entity.position.clone(),
    yaw: isPlayer ? (entity.yawDegrees ?? NORTH) : degrees(entity.yaw),
    pitch: isPlayer ? (entity.pitchDegrees ?? 0) : degrees(entity.pitch),
    eyes: false,
  };
}

/** Returns the source of the console: the spawn. */
function consoleOf(serv) {
  return { entity: null, position: serv.spawnOf(0).clone(), yaw: 0, pitch: 0, eyes: false };
}

function eyeHeight(entity) {
  return entity.type === 'player' ? EYES : (entity.eyes ?? 0);
}

/** Where a source's local coordinates begin. */
function origin({ entity, position, eyes }) {
  return eyes && entity ? position.offset(0, eyeHeight(entity), 0) : position;
}

/** Returns the position of three coordinates, `[[sign, number], ...]`. */
function positionOf(source, coordinates) {
  const [x, y, z] = coordinates;
  if (x[0] === '^') return localPosition(source, [x[1], y[1], z[1]]);
  const own = [source.position.x, source.position.y, source.position.z];
  const parts = coordinates.map(([sign, number], i) => (sign === '~' ? own[i] + number : number));
  return new Vec3(...parts);
}

/** Left, up and forward of where a source looks. */
function localPosition(source, [left, up, ahead]) {
  const rad = Math.PI / 180;
  const [yaw, pitch] = [(source.yaw + 90) * rad, -source.pitch * rad];
  const forward = new Vec3(
    Math.cos(yaw) * Math.cos(pitch),
    Math.sin(pitch),
    Math.sin(yaw) * Math.cos(pitch),
  );
  const upward = new Vec3(
    Math.cos(yaw) * Math.cos(pitch + Math.PI / 2),
    Math.sin(pitch + Math.PI / 2),
    Math.sin(yaw) * Math.cos(pitch + Math.PI / 2),
  );
  const leftward = forward.cross(upward).scaled(-1);
  return origin(source)
    .plus(leftward.scaled(left))
    .plus(upward.scaled(up))
    .plus(forward.scaled(ahead));
}

/** Returns the block of three coordinates; refuses what is above and below the world. */
function blockOf(source, coordinates) {
  const at = positionOf(source, coordinates).floored();
  if (at.y < 0 || at.y > 255) throw new UserError('That position is out of this world!');
  return at;
}

/** Returns `[yaw, pitch]` of two coordinates. */
function turnOf(source, coordinates) {
  return coordinates.map(([sign, number], i) =>
    sign === '~' ? [source.yaw, source.pitch][i] + number : number,
  );
}

/** Returns the `[yaw, pitch]` of looking from one position to another. */
function towards(from, to) {
  const d = to.minus(from);
  const deg = 180 / Math.PI;
  return [Math.atan2(-d.x, d.z) * deg, -Math.atan2(d.y, Math.hypot(d.x, d.z)) * deg];
}

/** Returns a source after a step of /execute that leaves one. */
function advance(source, step, args) {
  const { entity } = args;
  if (step === 'positioned') {
    const position = entity ? entity.position.clone() : positionOf(source, args.at);
    return { ...source, position, eyes: false };
  }
  if (step === 'rotated') {
    const from = entity && sourceOf(entity);
    const [yaw, pitch] = entity ? [from.yaw, from.pitch] : turnOf(source, args.turn);
    return { ...source, yaw, pitch };
  }
  if (step === 'facing') {
    const height = entity && args.anchor === 'eyes' ? eyeHeight(entity) : 0;
    const to = entity ? entity.position.offset(0, height, 0) : positionOf(source, args.at);
    const [yaw, pitch] = towards(origin(source), to);
    return { ...source, yaw, pitch };
  }
  if (step === 'anchored') return { ...source, eyes: args.anchor === 'eyes' };
  if (step === 'align') {
    const position = source.position.clone();
    for (const axis of args.axes) position[axis] = Math.floor(position[axis]);
    return { ...source, position };
  }
  return source; // in overworld
}

const kindOf = (entity) => (entity.type === 'player' ? 'player' : entity.name);

/** Whether a position lies in the box of dx, dy and dz from one. */
function inBox({ position }, from, size) {
  return ['x', 'y', 'z'].every((axis) => {
    const d = size[axis] ?? 0;
    const [low, high] = d < 0 ? [from[axis] + d, from[axis]] : [from[axis], from[axis] + d];
    return position[axis] >= low && position[axis] <= high + 1;
  });
}

const within = (value, [low, high]) =>
  value >= (low ?? -Infinity) && value <= (high ?? Infinity);

/** The conditions of a selector: whether an entity meets one. */
const CONDITIONS = {
  type: (entity, kind) => kindOf(entity) === kind,
  name: (entity, given) => (entity.username ?? entity.gamutName ?? entity.name) === given,
  tag: (entity, tag) => Boolean(entity.tags?.has(tag)),
  gamemode: (entity, mode) => entity.type === 'player' && MODES[entity.gameMode] === mode,
  level: (entity, range) =>
    entity.type === 'player' && within(entity.experience.level, range),
  x_rotation: (entity, range) => within(sourceOf(entity).pitch, range),
  y_rotation: (entity, range) => within(sourceOf(entity).yaw, range),
  distance: (entity, range, from) => within(entity.position.distanceTo(from), range),
};

function selected(serv, source, { select, where = [] }) {
  const from = source.position.clone();
  const size = {};
  for (const [key, value] of where) {
    if (['x', 'y', 'z'].includes(key)) from[key] = value;
    else if (['dx', 'dy', 'dz'].includes(key)) size[key[1]] = value;
  }
  const last = (key, otherwise) => where.filter((row) => row[0] === key).at(-1)?.[1] ?? otherwise;
  const all =
    select === 's'
      ? [source.entity].filter(Boolean)
      : Object.values(select === 'e' ? serv.entities : serv.players);
  let found = all.filter(
    (entity) =>
      (entity.type !== 'player' || entity.joined) &&
      (select !== 'e' || entity.type !== 'mob' || entity.health > 0) &&
      where.every(
        ([key, value, not]) =>
          !CONDITIONS[key] || CONDITIONS[key](entity, value, from) === !not,
      ) &&
      (Object.keys(size).length === 0 || inBox(entity, from, size)),
  );
  const order = last('sort', { p: 'nearest', r: 'random' }[select] ?? 'arbitrary');
  const far = (entity) => entity.position.distanceTo(from);
  if (order === 'random') found = shuffled(found);
  else if (order !== 'arbitrary') {
    found.sort((a, b) => (far(a) - far(b)) * (order === 'nearest' ? 1 : -1));
  }
  return found.slice(0, last('limit', 'pr'.includes(select) ? 1 : Infinity));
}

function shuffled(list) {
  const rest = [...list];
  return list.map(() => rest.splice(Math.floor(Math.random() * rest.length), 1)[0]);
}

/** Returns the entities of a selector or of a player's name; maybe none. */
function entitiesOf(serv, source, target) {
  if (target.player === undefined) return selected(serv, source, target);
  return serv.players.filter((player) => player.username === target.player);
}

/** Returns the entities a command is for: those of its targets, or who executes it. */
function someOf(serv, source, target, what = 'entity') {
  const found = target
    ? entitiesOf(serv, source, target)
    : [source.entity].filter(Boolean);
  if (found.length === 0) throw new UserError(`No ${what} was found`);
  return found;
}

const playersOf = (serv, source, target) =>
  someOf(serv, source, target, 'player').filter((entity) => entity.type === 'player');

/** Returns how a command's answer calls its entities. */
const called = (entities) =>
  entities.map((entity) => entity.username ?? entity.gamutName ?? entity.name).join(', ');

module.exports = {
  sourceOf, consoleOf, positionOf, blockOf, turnOf, towards, advance, origin,
  entitiesOf, someOf, playersOf, called, eyeHeight, MODES,
};

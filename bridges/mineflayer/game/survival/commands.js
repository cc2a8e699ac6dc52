'use strict';

/**
 * Commands of the console only: /give /clear /fill /setblock /summon /time /weather /tp /effect
 * /gamerule /difficulty /gamemode /kill /xp. Unknown names are answered with the nearest.
 * `serv.survival.command(line)` runs one and returns its output; it throws a UserError.
 */

const { Vec3 } = require('vec3');
const { UserError } = require('flying-squid');
const { nearest } = require('./items');

const name = 'commands';
const MODES = ['survival', 'creative', 'adventure', 'spectator'];
const DIFFICULTIES = ['peaceful', 'easy', 'normal', 'hard'];
const TIMES = {
  day: 1000,
  noon: 6000,
  night: 13000,
  midnight: 18000,
  sunrise: 23000,
  sunset: 12000,
};
/** As on Mojang's server: the maximum number of blocks that one /fill may change. */
const FILL_MOST = 32768;

function unknown(what, given, names) {
  return new UserError(
    `no ${what} is called "${given}"; the nearest are ${nearest(String(given), names).join(', ')}`,
  );
}

function look(what, table, given) {
  const plain = String(given ?? '').replace(/^minecraft:/, '');
  if (!Object.hasOwn(table, plain)) throw unknown(what, plain, Object.keys(table));
  return table[plain];
}

function whole(text, what, low = -Infinity, high = Infinity) {
  const value = Number(text);
  if (
    text === undefined ||
    text === '' ||
    !Number.isInteger(value) ||
    value < low ||
    value > high
  ) {
    throw new UserError(
      `${what} must be a whole number${low > -Infinity ? ` from ${low} to ${high}` : ''}, got "${text}"`,
    );
  }
  return value;
}

function number(text, what) {
  const value = Number(text);
  if (text === undefined || text === '' || !Number.isFinite(value))
    throw new UserError(`${what} must be a number, got "${text}"`);
  return value;
}

function playersOf(serv, given) {
  if (given === '@a' || given === '@e') return serv.players.slice();
  const found = serv.players.find((p) => p.username === given);
  if (!found)
    throw unknown(
      'player',
      given,
      serv.players.map((p) => p.username),
    );
  return [found];
}

/** Returns the state id of `name` or `name[property=value,...]`. */
function parseBlock(serv, text) {
  const [, given, inside] = /^([^[]*)(?:\[(.*)\])?$/.exec(String(text ?? '')) || [];
  const def = look('block', serv.registry.blocksByName, given);
  const props = {};
  for (const part of inside ? inside.split(',') : []) {
    const [key, value] = part.split('=').map((s) => s.trim());
    const state = (def.states || []).find((s) => s.name === key);
    if (!state)
      throw unknown(
        `property of ${def.name}`,
        key,
        (def.states || []).map((s) => s.name),
      );
    props[key] = state.type === 'bool' ? value === 'true' : state.values ? value : Number(value);
  }
  try {
    return serv.survival.blocks.state(def.name, props);
  } catch (error) {
    throw new UserError(error.message);
  }
}

function coordinates(parts, what) {
  return parts.map((part, i) => whole(part, `${what} ${'xyz'[i % 3]}`));
}

function give(serv, [who, item, count = '1']) {
  const players = playersOf(serv, who);
  const def = look('item', serv.registry.itemsByName, item);
  const amount = whole(count, 'the count', 1, 6400);
  for (const player of players)
    serv.survival.giveOrToss(player, serv.survival.items.make(def.id, amount));
  return `gave ${amount} ${def.name} to ${players.map((p) => p.username).join(', ')}`;
}

function clear(serv, [who, item, most]) {
  const players = playersOf(serv, who);
  const itemName = item === undefined ? null : look('item', serv.registry.itemsByName, item).name;
  const limit = most === undefined ? Infinity : whole(most, 'the count', 0, 6400);
  const taken = players.reduce((sum, player) => sum + player.take(itemName, limit), 0);
  return `cleared ${taken} items`;
}

function setblock(serv, [x, y, z, block]) {
  const [bx, by, bz] = coordinates([x, y, z], 'the position');
  serv.survival.blocks.set(bx, by, bz, parseBlock(serv, block));
  return `set ${block} at ${bx} ${by} ${bz}`;
}

function fill(serv, parts) {
  const [x0, y0, z0, x1, y1, z1] = coordinates(parts.slice(0, 6), 'the corner');
  const stateId = parseBlock(serv, parts[6]);
  const range = (a, b) => [Math.min(a, b), Math.max(a, b)];
  const [[ax, bx], [ay, by], [az, bz]] = [range(x0, x1), range(y0, y1), range(z0, z1)];
  const count = (bx - ax + 1) * (by - ay + 1) * (bz - az + 1);
  if (count > FILL_MOST)
    throw new UserError(`/fill changes at most ${FILL_MOST} blocks, asked for ${count}`);
  for (let y = ay; y <= by; y++) {
    for (let x = ax; x <= bx; x++) {
      for (let z = az; z <= bz; z++) serv.survival.blocks.set(x, y, z, stateId);
    }
  }
  return `filled ${count} blocks`;
}

function summon(serv, [kind, x, y, z, count = '1']) {
  const def = look('entity', serv.registry.entitiesByName, kind);
  const position = new Vec3(number(x, 'x'), number(y, 'y'), number(z, 'z'));
  const amount = whole(count, 'the count', 1, 256);
  for (let i = 0; i < amount; i++) serv.spawnMob(def.id, serv.overworld, position.clone());
  return `summoned ${amount} ${def.name}`;
}

function time(serv, [action, value]) {
  if (action === 'query') return `the time is ${serv.time}, day ${serv.day}`;
  const ticks = Object.hasOwn(TIMES, value) ? TIMES[value] : whole(value, 'the time', 0, 1e9);
  if (action === 'set') serv.setTime(ticks);
  else if (action === 'add') {
    const total = serv.time + ticks;
    serv.day += Math.floor(total / 24000);
    serv.setTime(total);
  } else throw unknown('action of /time', action, ['set', 'add', 'query']);
  return `the time is ${serv.time}`;
}

function weather(serv, [kind, seconds]) {
  look('weather', { clear: 1, rain: 1, thunder: 1 }, kind);
  serv.survival.setWeather(
    kind,
    seconds === undefined ? undefined : whole(seconds, 'the seconds', 1, 1e6) * 20,
  );
  return `the weather is ${kind}`;
}

function tp(serv, [who, ...to]) {
  const players = playersOf(serv, who);
  const target =
    to.length === 1
      ? playersOf(serv, to[0])[0].position.clone()
      : new Vec3(number(to[0], 'x'), number(to[1], 'y'), number(to[2], 'z'));
  for (const player of players) player.teleport(target.clone());
  return `teleported ${players.length}`;
}

function effect(serv, [action, who, kind, seconds = '30', level = '0']) {
  const players = playersOf(serv, who);
  if (action === 'clear') {
    players.forEach((p) => p.clearEffects());
    return 'cleared effects';
  }
  if (action !== 'give') throw unknown('action of /effect', action, ['give', 'clear']);
  const names = Object.fromEntries(
    serv.registry.effectsArray.map((e) => [
      e.name.replace(/(?<!^)([A-Z])/g, '_$1').toLowerCase(),
      e,
    ]),
  );
  const def = look('effect', names, kind);
  const duration = whole(seconds, 'the seconds', 1, 1e6) * 20;
  players.forEach((p) =>
    p.addEffect(def.id, { duration, amplifier: whole(level, 'the level', 0, 255) }),
  );
  return `gave ${kind}`;
}

function gamerule(serv, [rule, value]) {
  const { rules } = serv.survival;
  const now = look('game rule', rules, rule);
  if (value === undefined) return `${rule} is ${now}`;
  if (typeof now === 'number') rules[rule] = whole(value, rule, 0, 4096);
  else if (value === 'true' || value === 'false') rules[rule] = value === 'true';
  else throw new UserError(`${rule} must be true or false, got "${value}"`);
  return `${rule} is ${rules[rule]}`;
}

function difficulty(serv, [given]) {
  const level = DIFFICULTIES.indexOf(given) >= 0 ? DIFFICULTIES.indexOf(given) : Number(given);
  if (!DIFFICULTIES[level]) throw unknown('difficulty', given, DIFFICULTIES);
  serv.difficulty = level;
  serv._writeAll('difficulty', { difficulty: level, difficultyLocked: false });
  return `the difficulty is ${DIFFICULTIES[level]}`;
}

function gamemode(serv, [mode, who]) {
  const level = MODES.indexOf(mode) >= 0 ? MODES.indexOf(mode) : Number(mode);
  if (!MODES[level]) throw unknown('game mode', mode, MODES);
  for (const player of playersOf(serv, who)) player.setGameMode(level);
  return `the game mode is ${MODES[level]}`;
}

function kill(serv, [who]) {
  const victims =
    who === '@e' ? Object.values(serv.entities).filter((e) => e.health > 0) : playersOf(serv, who);
  for (const victim of victims) serv.survival.hurt(victim, { amount: 1e6, cause: 'command' });
  return `killed ${victims.length}`;
}

function xp(serv, [action, who, amount, unit = 'points']) {
  if (action !== 'add' || unit !== 'points')
    throw new UserError('only /xp add PLAYER POINTS is known');
  for (const player of playersOf(serv, who)) player.addXp(whole(amount, 'the points', 1, 1e6));
  return `gave ${amount} points`;
}

const COMMANDS = {
  give,
  clear,
  setblock,
  fill,
  summon,
  time,
  weather,
  tp,
  teleport: tp,
  effect,
  gamerule,
  difficulty,
  gamemode,
  kill,
  xp,
};

function run(serv, line) {
  const [base, ...parts] = line.trim().replace(/^\//, '').split(/\s+/);
  return look('command', COMMANDS, base)(serv, parts);
}

function server(serv) {
  serv.survival.command = (line) => run(serv, line);
  // After all of flying-squid's commands are registered: none of them is for players.
  for (const [base, action] of Object.entries(COMMANDS)) {
    serv.commands.add({
      base,
      op: true,
      onlyConsole: true,
      info: `${base}, for the console`,
      usage: `/${base}`,
      action: (text) =>
        action(
          serv,
          String(text || '')
            .trim()
            .split(/\s+/)
            .filter(Boolean),
        ),
    });
  }
  for (const command of Object.values(serv.commands.uniqueHash)) {
    if (command.params && command.base !== 'help') command.params.op = true;
  }
}

module.exports = { name, server };

'use strict';

/** Commands about the world: /time /weather /difficulty /gamerule /say. */

const TIMES = { day: 1000, noon: 6000, night: 13000, midnight: 18000 };
const DIFFICULTIES = ['peaceful', 'easy', 'normal', 'hard'];
const DAY = 24000;

function time(serv, source, { action, to, ticks = TIMES[to] }) {
  const total = action === 'add' ? serv.time + ticks : ticks;
  if (action === 'add') serv.day += Math.floor(total / DAY);
  serv.setTime(total);
  return `Set the time to ${serv.time}`;
}

function weather(serv, source, { weather: kind, seconds }) {
  serv.survival.setWeather(kind, seconds ? seconds * 20 : undefined);
  return `Set the weather to ${kind}`;
}

function difficulty(serv, source, { level }) {
  serv.difficulty = DIFFICULTIES.indexOf(level);
  serv._writeAll('difficulty', { difficulty: serv.difficulty, difficultyLocked: false });
  return `The difficulty has been set to ${level}`;
}

function gamerule(serv, source, { rule, value }) {
  const { rules } = serv.survival;
  if (value !== undefined) rules[rule] = value;
  return `Gamerule ${rule} is now set to: ${rules[rule]}`;
}

function say(serv, source, { message }) {
  serv.broadcast(`[${source.entity?.username ?? 'Server'}] ${message}`);
  return message;
}

module.exports = { time, weather, difficulty, gamerule, say };

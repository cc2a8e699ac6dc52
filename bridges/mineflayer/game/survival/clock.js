'use strict';

/**
 * Time of day, day number and age of the world; sent to the clients every second, as in the game.
 * `serv.time` is 0 to 23999, `serv.day` counts from 0, `serv.age` is in ticks.
 */

const name = 'clock';
const DAY = 24000;

/** As in the game, a time that stands still is sent as its negative, and 0 as -1. */
function packet(serv) {
  const time = serv.day * DAY + serv.time;
  const moves = serv.survival.rules.doDaylightCycle;
  return { age: [0, serv.age], time: moves ? [0, time] : [-1, -(time || 1)] };
}

function setTime(serv, time) {
  serv.time = ((Math.floor(time) % DAY) + DAY) % DAY;
  serv._writeAll('update_time', packet(serv));
}

function server(serv) {
  serv.time = 0;
  serv.day = 0;
  serv.age = 0;
  serv.setTime = (time) => setTime(serv, time);
  /** Advances to the next time of day `time`: today if it is still to come, else tomorrow. */
  serv.passTo = (time) => {
    if (time <= serv.time) serv.day++;
    setTime(serv, time);
  };
  serv.survival.onTick((tick) => {
    serv.age++;
    if (serv.survival.rules.doDaylightCycle && ++serv.time >= DAY) {
      serv.time = 0;
      serv.day++;
    }
    if (tick % 20 === 0) serv._writeAll('update_time', packet(serv));
  });
}

function player(player, serv) {
  player.on('connected', () => player._client.write('update_time', packet(serv)));
}

function save(serv) {
  return { time: serv.time, day: serv.day, age: serv.age };
}

function load(serv, data) {
  Object.assign(serv, data || { time: 0, day: 0, age: 0 });
  serv._writeAll('update_time', packet(serv));
}

module.exports = { name, server, player, save, load };

'use strict';

/** The sixteen colours, by their numbers in the game. */
const COLOURS = [
  'white',
  'orange',
  'magenta',
  'light_blue',
  'yellow',
  'lime',
  'pink',
  'gray',
  'light_gray',
  'cyan',
  'purple',
  'blue',
  'brown',
  'green',
  'red',
  'black',
];
/** Flag beside the number of its colour in a sheep's metadata: it is shorn. */
const SHORN = 16;

module.exports = { COLOURS, SHORN };

'use strict';
/**
 * Where slots, buttons and texts of a window are, and what a place in it hits.
 *
 * The interface has pixels of its own. In a picture of 640x360, as MineStudio has them, each is one
 * pixel; in larger ones several, by the game's rule; in smaller ones less than one, so that the
 * window fits.
 */
const TABLE = require('./window_layouts.json');

const CELL = 18;
const ROWS = [[0, 9, 3], [58, 9, 1]];
const DEFAULT = { width: 640, height: 360 };

/** Returns the cells of groups `[x, y, columns, rows]` as [x, y], row by row. */
function cells(groups) {
  return groups.flatMap(([x, y, columns, rows]) =>
    Array.from({ length: columns * rows }, (_, n) => [x + CELL * (n % columns), y + CELL * Math.floor(n / columns)]));
}

/** Returns the layout of a window with so many slots of its own that has no drawing: rows of nine. */
function rowsOfNine(count) {
  const rows = Math.ceil(count / 9);
  return { size: [176, 114 + CELL * rows], slots: [[8, 18, 9, rows]], own: [8, 31 + CELL * rows] };
}

/**
 * Returns `{kind, size, slots [[x, y]], bars, buttons, scroll, titleX}` of a window of
 * prismarine-windows.
 */
function layoutOf(window) {
  const name = String(window.type).replace('minecraft:', '');
  const kind = TABLE.names[name] ?? name;
  const found = TABLE[kind]?.size ? TABLE[kind] : rowsOfNine(window.inventoryStart);
  const first = cells(found.slots).slice(0, window.inventoryStart);
  const [x, y] = found.own;
  const own = cells(ROWS.map(([below, columns, rows]) => [x, y + below, columns, rows]));
  return { kind, size: found.size, slots: [...first, ...own, ...cells(found.after ?? [])], bars: found.bars ?? [],
    buttons: found.buttons ?? null, scroll: found.scroll ?? null, titleX: found.title_x ?? 8 };
}

/** Returns how many pixels of a picture each of the interface takes, for a window or none. */
function scaleOf(picture, size = [0, 0]) {
  const { width, height } = picture ?? DEFAULT;
  const whole = Math.floor(Math.min(width / 320, height / 240));
  return whole >= 1 ? whole : Math.min(1, width / (size[0] + 4), height / (size[1] + 4));
}

/** Returns width and height of a picture in pixels of the interface. */
function screenOf(picture, size) {
  const { width, height } = picture ?? DEFAULT;
  const scale = scaleOf(picture, size);
  return [width / scale, height / scale];
}

const within = (x, y, [left, top, wide, tall]) => x >= left && x < left + wide && y >= top && y < top + tall;

/** Returns the slot at a place, or -1; a slot has 16 pixels and a border of one. */
function slotAt(layout, x, y) {
  return layout.slots.findIndex(([left, top]) => within(x, y, [left - 1, top - 1, CELL, CELL]));
}

/** Returns the number of the visible button at a place, or -1. */
function buttonAt({ buttons }, x, y) {
  if (buttons === null) return -1;
  const [left, top, columns, rows, wide, tall] = buttons;
  if (!within(x, y, [left, top, columns * wide, rows * tall])) return -1;
  return Math.floor((y - top) / tall) * columns + Math.floor((x - left) / wide);
}

/** Returns how far down a scroll bar a place is, 0 to 1, or null beside it. */
function scrollAt({ scroll }, x, y) {
  return scroll !== null && within(x, y, scroll) ? (y - scroll[1]) / scroll[3] : null;
}

module.exports = { layoutOf, scaleOf, screenOf, slotAt, buttonAt, scrollAt };

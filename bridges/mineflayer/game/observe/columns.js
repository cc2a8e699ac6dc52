'use strict';
/**
 * Writes rows of numbers into the columns of layout.json: one Buffer per frame, the columns one
 * after the other, each with all rows in C order, little-endian, without padding.
 */
const LAYOUT = require('./layout.json');

const SIZES = { float32: 4, int64: 8, int32: 4, int16: 2, uint8: 1, bool: 1 };
const ARRAYS = { float32: Float32Array, int64: BigInt64Array, int32: Int32Array,
  int16: Int16Array, uint8: Uint8Array, bool: Uint8Array };

/** A buffer of some rows; `columns[key]` is a typed array over it. */
class Columns {
  constructor(rows) {
    this.rows = rows;
    let offset = 0;
    this.places = LAYOUT.map(({ key, dtype, shape }) => {
      const count = shape.reduce((product, n) => product * n, 1);
      const place = { key, dtype, count, offset };
      offset += SIZES[dtype] * count * rows;
      return place;
    });
    this.buffer = Buffer.alloc(offset);
    this.columns = {};
    for (const { key, dtype, count, offset: start } of this.places) {
      // A column after one of odd size would not be aligned: the layout is sorted by item size.
      const at = this.buffer.byteOffset + start;
      this.columns[key] = new ARRAYS[dtype](this.buffer.buffer, at, count * rows);
    }
  }

  /** Writes one row: a number, boolean or array of them for every key of the layout. */
  write(row, values) {
    for (const { key, dtype, count } of this.places) {
      const value = values[key];
      const column = this.columns[key];
      const at = row * count;
      if (value === undefined) throw new Error(`the row has no value for the column ${key}`);
      if (count === 1 && !Array.isArray(value)) {
        column[at] = dtype === 'int64' ? BigInt(Math.trunc(value)) : Number(value);
      } else {
        for (let i = 0; i < count; i++) column[at + i] = Number(value[i]);
      }
    }
  }

  /** Copies a row of another frame. */
  copy(row, source, sourceRow) {
    for (const { key, count } of this.places) {
      const from = source.columns[key].subarray(sourceRow * count, (sourceRow + 1) * count);
      this.columns[key].set(from, row * count);
    }
  }
}

module.exports = { LAYOUT, Columns };

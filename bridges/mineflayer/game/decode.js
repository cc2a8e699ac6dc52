'use strict';
/** Reads the columns of actions in their wire format. */

/** An invalid action. */
class ActionError extends Error {}

const READERS = {
  int64: (b, i) => Number(b.readBigInt64LE(i * 8)), int32: (b, i) => b.readInt32LE(i * 4),
  int8: (b, i) => b.readInt8(i), uint8: (b, i) => b.readUInt8(i), float32: (b, i) => b.readFloatLE(i * 4)
};
const SIZES = { int64: 8, int32: 4, int8: 1, uint8: 1, float32: 4 };

/** Returns the rows of action columns: `[{column: numbers or text}]`, one per slot. */
function decodeActions(layout, columns, width) {
  const rows = Array.from({ length: width }, () => ({}));
  for (const [name, { dtype, count }] of Object.entries(layout)) {
    const column = columns[name];
    if (dtype === 'text') {
      if (!Array.isArray(column) || column.length !== width) {
        throw new ActionError(`${name}: expected ${width} texts`);
      }
      rows.forEach((row, i) => { row[name] = String(column[i]); });
      continue;
    }
    const size = SIZES[dtype] * count * width;
    if (!(column instanceof Uint8Array) || column.length !== size) {
      throw new ActionError(`${name}: expected ${size} bytes of ${dtype}, got ${column?.length}`);
    }
    const bytes = Buffer.from(column.buffer, column.byteOffset, column.length);
    rows.forEach((row, i) => {
      const values = Array.from({ length: count }, (_, k) => READERS[dtype](bytes, i * count + k));
      row[name] = count === 1 ? values[0] : values;
    });
  }
  return rows;
}

module.exports = { decodeActions, ActionError };

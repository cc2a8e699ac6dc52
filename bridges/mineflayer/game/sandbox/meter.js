'use strict';
/**
 * Counts the work of a WebAssembly module: rewrites its code so that every turn of every loop, in
 * natives as in the interpreter, takes one from a counter in its memory, and traps when none is
 * left; filling or copying memory takes one for every 64 bytes. So a native that never asks whether
 * it may go on ends too, at the same turn on every machine.
 *
 * The format is that of the WebAssembly specification 2.0, section 5 (Binary format).
 */

/** Address of the counter, an int32: below 1,024, where Emscripten puts no data. */
const ADDRESS = 16;
const [TYPE_SECTION, FUNCTION_SECTION, CODE_SECTION] = [1, 3, 10];
const [BLOCK, LOOP, IF, BR_TABLE, SELECT_T, PREFIX] = [0x02, 0x03, 0x04, 0x0e, 0x1c, 0xfc];

/** Number of LEB128 immediates after an instruction, by its opcode; all others have none. */
const IMMEDIATES = new Map([
  ...[0x0c, 0x0d, 0x10, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x3f, 0x40, 0x41, 0x42, 0xd0, 0xd2].map((op) => [op, 1]),
  [0x11, 2], ...Array.from({ length: 15 }, (_, i) => [0x28 + i, 2]), ...Array.from({ length: 8 }, (_, i) => [0x37 + i, 2])
]);
/** The same after the prefix 0xfc: truncations, then operations on memory and tables. */
const PREFIXED = [0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 2, 1, 2, 1, 2, 1, 1, 1];
/** Bytes of the immediates of f32.const and f64.const. */
const CONSTANTS = new Map([[0x43, 4], [0x44, 8]]);

const I32 = 0x7f;
const [MEMORY_COPY, MEMORY_FILL] = [10, 11];

/** Instructions: counter at ADDRESS -= what `amount` puts on the stack; if it is negative, trap. */
const take = (...amount) => Buffer.from([
  0x41, 0, 0x41, 0, 0x28, 2, ADDRESS, ...amount, 0x6b, 0x36, 2, ADDRESS, // i32.store(load - amount)
  0x41, 0, 0x28, 2, ADDRESS, 0x41, 0, 0x48, 0x04, 0x40, 0x00, 0x0b // if (load < 0) unreachable
]);
const TICK = take(0x41, 1);

/** Instructions that take 1 for every 64 of the number on top of the stack, kept in a local meanwhile. */
function takeSize(local) {
  return Buffer.concat([Buffer.from([0x21]), leb(local), take(0x20, ...leb(local), 0x41, 6, 0x76), Buffer.from([0x20]), leb(local)]);
}

/** Reads a module's bytes. */
class Reader {
  constructor(bytes, at = 0) {
    Object.assign(this, { bytes, at });
  }

  byte() {
    return this.bytes[this.at++];
  }

  /** Returns an unsigned LEB128 number. */
  number() {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.byte();
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
  }

  skip(count) {
    for (let i = 0; i < count; i++) while (this.byte() >= 128);
  }
}

function leb(value) {
  const out = [];
  for (; value >= 128; value = Math.floor(value / 128)) out.push((value % 128) | 128);
  return Buffer.from([...out, value]);
}

/** Skips the immediates of an instruction; returns its number after the prefix, if it has one. */
function skipImmediates(reader, op) {
  if (op === BLOCK || op === LOOP || op === IF) reader.skip(1);
  else if (op === BR_TABLE || op === SELECT_T) reader.skip(reader.number() + (op === BR_TABLE ? 1 : 0));
  else if (op === PREFIX) {
    const code = reader.number();
    if (PREFIXED[code] === undefined) throw new Error(`unknown WebAssembly instruction 0xfc ${code}`);
    reader.skip(PREFIXED[code]);
    return code;
  } else if (CONSTANTS.has(op)) reader.at += CONSTANTS.get(op);
  else if (op > 0xc4 && !IMMEDIATES.has(op)) throw new Error(`unknown WebAssembly instruction ${op}`);
  else reader.skip(IMMEDIATES.get(op) ?? 0);
  return null;
}

/** Returns the body of a function that has so many parameters, counting its loops and copies. */
function meteredBody(bytes, params) {
  const reader = new Reader(bytes);
  const groups = reader.number();
  const first = reader.at;
  let locals = params;
  for (let i = 0; i < groups; i++) {
    locals += reader.number();
    reader.byte(); // their type
  }
  // One more local, for sizes.
  const parts = [leb(groups + 1), bytes.subarray(first, reader.at), Buffer.from([1, I32])];
  let from = reader.at;
  const insert = (at, code) => {
    parts.push(bytes.subarray(from, at), code);
    from = at;
  };
  while (reader.at < bytes.length) {
    const { at } = reader;
    const op = reader.byte();
    const code = skipImmediates(reader, op);
    if (op === LOOP) insert(reader.at, TICK);
    else if (op === PREFIX && (code === MEMORY_COPY || code === MEMORY_FILL)) insert(at, takeSize(locals));
  }
  return Buffer.concat([...parts, bytes.subarray(from)]);
}

/** Returns the number of parameters of each function type of a module. */
function parametersOf(bytes) {
  const reader = new Reader(bytes);
  return Array.from({ length: reader.number() }, () => {
    reader.byte(); // the mark of a function type
    const count = reader.number();
    reader.at += count;
    const results = reader.number();
    reader.at += results;
    return count;
  });
}

function numbersOf(bytes) {
  const reader = new Reader(bytes);
  return Array.from({ length: reader.number() }, () => reader.number());
}

function meteredCode(bytes, params) {
  const reader = new Reader(bytes);
  const count = reader.number();
  const parts = [leb(count)];
  for (let i = 0; i < count; i++) {
    const size = reader.number();
    const body = meteredBody(bytes.subarray(reader.at, reader.at + size), params[i]);
    parts.push(leb(body.length), body);
    reader.at += size;
  }
  return Buffer.concat(parts);
}

/** Returns the bytes of a WebAssembly module that counts the turns of its loops. */
function metered(bytes) {
  const reader = new Reader(bytes, 8);
  const parts = [bytes.subarray(0, 8)];
  let types = [];
  let params = [];
  while (reader.at < bytes.length) {
    const id = reader.byte();
    const size = reader.number();
    const section = bytes.subarray(reader.at, reader.at + size);
    if (id === TYPE_SECTION) types = parametersOf(section);
    else if (id === FUNCTION_SECTION) params = numbersOf(section).map((type) => types[type]);
    const own = id === CODE_SECTION ? meteredCode(section, params) : section;
    parts.push(Buffer.from([id]), leb(own.length), own);
    reader.at += size;
  }
  return Buffer.concat(parts);
}

/** The counter of one module, in its memory. */
class Meter {
  /** @param {WebAssembly.Memory} memory */
  constructor(memory) {
    this.memory = memory;
  }

  /** Turns that are left; negative once the module has trapped. */
  get left() {
    return new Int32Array(this.memory.buffer, ADDRESS, 1)[0];
  }

  set left(turns) {
    new Int32Array(this.memory.buffer, ADDRESS, 1)[0] = turns;
  }
}

module.exports = { Meter, metered };

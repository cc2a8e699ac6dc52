'use strict';
/**
 * Messages over a stream: a length, a little-endian uint32, and that many bytes of msgpack, a map.
 */
const { Encoder, decode } = require('@msgpack/msgpack');

const HEAD = 4;
const MOST = 1 << 30; // bytes of a message; a larger length is invalid

/** Splits a stream of bytes into messages. */
class Reader {
  constructor() {
    this.chunks = [];
    this.size = 0;
  }

  /** Takes bytes; returns the messages that they complete. Throws on invalid data. */
  push(chunk) {
    this.chunks.push(chunk);
    this.size += chunk.length;
    const messages = [];
    for (;;) {
      const length = this.peek();
      if (length === null || this.size < HEAD + length) return messages;
      const bytes = this.chunks.length === 1 ? this.chunks[0] : Buffer.concat(this.chunks);
      messages.push(decode(bytes.subarray(HEAD, HEAD + length)));
      this.chunks = bytes.length > HEAD + length ? [bytes.subarray(HEAD + length)] : [];
      this.size = bytes.length - HEAD - length;
    }
  }

  /** Returns the length of the next message; null until its head is complete. */
  peek() {
    if (this.size < HEAD) return null;
    if (this.chunks[0].length < HEAD) this.chunks = [Buffer.concat(this.chunks)];
    const length = this.chunks[0].readUInt32LE(0);
    if (length === 0 || length > MOST) throw new Error(`a message of ${length} bytes was announced`);
    return length;
  }
}

/**
 * Writes every text as valid UTF-8. A program can make half of a surrogate pair, and so does a host
 * that shortens a text; the reader would have to refuse the whole message.
 */
class WellFormed extends Encoder {
  encodeString(text) {
    super.encodeString(text.toWellFormed());
  }
}

/** Returns the bytes of a message. */
function pack(message) {
  const body = new WellFormed({ ignoreUndefined: true }).encodeSharedRef(message);
  const bytes = Buffer.allocUnsafe(HEAD + body.length);
  bytes.writeUInt32LE(body.length, 0);
  bytes.set(body, HEAD);
  return bytes;
}

module.exports = { Reader, pack };

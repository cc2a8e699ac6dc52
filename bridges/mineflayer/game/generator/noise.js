'use strict';

/**
 * Random numbers and noise that depend only on a seed and a position, never on earlier calls.
 *
 * All of it is integer hashing: the same on every machine and in any order. The noise is gradient
 * noise (Perlin, "Improving Noise", 2002) with gradients from the hash.
 */

/** Returns a well mixed unsigned 32-bit number of a 32-bit one. */
function mix(value) {
  let h = value | 0;
  h = Math.imul(h ^ (h >>> 16), 0x7feb352d);
  h = Math.imul(h ^ (h >>> 15), 0x846ca68b);
  return (h ^ (h >>> 16)) >>> 0;
}

/** Returns an unsigned 32-bit hash of a seed and up to three whole numbers. */
function hash(seed, x, y = 0, z = 0) {
  let h = Math.imul(x | 0, 0x9e3779b1) ^ seed;
  h = Math.imul(h ^ (h >>> 15), 0x85ebca6b) + Math.imul(y | 0, 0xc2b2ae35);
  h = Math.imul(h ^ (h >>> 13), 0x27d4eb2f) + Math.imul(z | 0, 0x165667b1);
  return mix(h);
}

/**
 * Returns a 32-bit seed from any integer and a word, so that parts of a world do not repeat one
 * another. Every bit of a number up to 2^53 counts.
 */
function seedOf(seed, word) {
  let h = hash(seed >>> 0, Math.floor(seed / 4294967296) | 0, word.length);
  for (let i = 0; i < word.length; i++) h = hash(h, word.charCodeAt(i), i);
  return h;
}

/** A stream of numbers from one 32-bit start. */
class Chance {
  constructor(start) {
    this.state = start >>> 0;
  }

  /** Returns the next number in [0, 1). */
  next() {
    this.state = (this.state + 0x9e3779b9) >>> 0;
    return mix(this.state) / 4294967296;
  }

  /** Returns an integer from 0 to count - 1. */
  below(count) {
    return Math.floor(this.next() * count);
  }

  /** Returns an integer from low to high, both included. */
  between(low, high) {
    return low + this.below(high - low + 1);
  }

  /** Returns one of a list. */
  pick(list) {
    return list[this.below(list.length)];
  }

  /** Returns one of a list of {weight}, in proportion to the weights. */
  weighted(list) {
    let total = 0;
    for (const each of list) total += each.weight;
    let at = this.next() * total;
    for (const each of list) {
      at -= each.weight;
      if (at < 0) return each;
    }
    return list[list.length - 1];
  }
}

const fade = (t) => t * t * t * (t * (t * 6 - 15) + 10);

function slope2(h, x, z) {
  switch (h & 7) {
    case 0: return x + z;
    case 1: return x - z;
    case 2: return z - x;
    case 3: return -x - z;
    case 4: return 1.4142 * x;
    case 5: return -1.4142 * x;
    case 6: return 1.4142 * z;
    default: return -1.4142 * z;
  }
}

/** Returns smooth noise at a point in the plane, about -1 to 1, 0 at integers. */
function noise2(seed, x, z) {
  const x0 = Math.floor(x);
  const z0 = Math.floor(z);
  const fx = x - x0;
  const fz = z - z0;
  const u = fade(fx);
  const v = fade(fz);
  const a = slope2(hash(seed, x0, z0), fx, fz);
  const b = slope2(hash(seed, x0 + 1, z0), fx - 1, fz);
  const c = slope2(hash(seed, x0, z0 + 1), fx, fz - 1);
  const d = slope2(hash(seed, x0 + 1, z0 + 1), fx - 1, fz - 1);
  const near = a + u * (b - a);
  return near + v * (c + u * (d - c) - near);
}

/**
 * Returns the sum of `octaves` noises, each with twice the frequency and half the amplitude; about
 * -1 to 1.
 */
function fractal2(seed, x, z, octaves) {
  let sum = 0;
  let share = 1;
  let scale = 1;
  for (let n = 0; n < octaves; n++) {
    sum += share * noise2((seed + n * 0x3c6ef35f) | 0, x * scale, z * scale);
    share *= 0.5;
    scale *= 2;
  }
  return sum;
}

function slope3(h, x, y, z) {
  const u = (h & 8) === 0 ? x : y;
  const v = (h & 4) === 0 ? (h & 8) === 0 ? y : z : (h & 8) === 0 ? z : x;
  return ((h & 1) === 0 ? u : -u) + ((h & 2) === 0 ? v : -v);
}

/** Returns smooth noise of a point in space, about -1 to 1. */
function noise3(seed, x, y, z) {
  const x0 = Math.floor(x);
  const y0 = Math.floor(y);
  const z0 = Math.floor(z);
  const fx = x - x0;
  const fy = y - y0;
  const fz = z - z0;
  const u = fade(fx);
  const v = fade(fy);
  const w = fade(fz);
  let low = 0;
  for (let k = 0; k < 2; k++) {
    const gz = fz - k;
    const a = slope3(hash(seed, x0, y0, z0 + k), fx, fy, gz);
    const b = slope3(hash(seed, x0 + 1, y0, z0 + k), fx - 1, fy, gz);
    const c = slope3(hash(seed, x0, y0 + 1, z0 + k), fx, fy - 1, gz);
    const d = slope3(hash(seed, x0 + 1, y0 + 1, z0 + k), fx - 1, fy - 1, gz);
    const below = a + u * (b - a);
    const plane = below + v * (c + u * (d - c) - below);
    if (k === 0) low = plane;
    else return low + w * (plane - low);
  }
  return low;
}

module.exports = { Chance, fractal2, hash, noise2, noise3, seedOf };

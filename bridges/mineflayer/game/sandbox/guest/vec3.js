// Vec3, with the methods of the vec3 package.
/** Positions and directions, with the methods of the vec3 package. */
class Point {
  constructor(x, y, z) {
    this.x = Number(x) || 0;
    this.y = Number(y) || 0;
    this.z = Number(z) || 0;
    // NaN must not become 0 unnoticed; the host checks what it gets.
    if (x !== undefined && Number(x) !== Number(x)) this.x = NaN;
    if (y !== undefined && Number(y) !== Number(y)) this.y = NaN;
    if (z !== undefined && Number(z) !== Number(z)) this.z = NaN;
  }

  set(x, y, z) { this.x = x; this.y = y; this.z = z; return this; }
  update(o) { return this.set(o.x, o.y, o.z); }
  clone() { return new Vec3(this.x, this.y, this.z); }
  rounded() { return new Vec3(Math.round(this.x), Math.round(this.y), Math.round(this.z)); }
  round() { return this.update(this.rounded()); }
  floored() { return new Vec3(Math.floor(this.x), Math.floor(this.y), Math.floor(this.z)); }
  floor() { return this.update(this.floored()); }
  offset(x, y, z) { return new Vec3(this.x + x, this.y + y, this.z + z); }
  translate(x, y, z) { return this.set(this.x + x, this.y + y, this.z + z); }
  plus(o) { return this.offset(o.x, o.y, o.z); }
  add(o) { return this.update(this.plus(o)); }
  minus(o) { return this.offset(-o.x, -o.y, -o.z); }
  subtract(o) { return this.update(this.minus(o)); }
  scaled(k) { return new Vec3(this.x * k, this.y * k, this.z * k); }
  scale(k) { return this.update(this.scaled(k)); }
  multiply(o) { return this.set(this.x * o.x, this.y * o.y, this.z * o.z); }
  divide(o) { return this.set(this.x / o.x, this.y / o.y, this.z / o.z); }
  modulus(o) { return new Vec3(mod(this.x, o.x), mod(this.y, o.y), mod(this.z, o.z)); }
  abs() { return new Vec3(Math.abs(this.x), Math.abs(this.y), Math.abs(this.z)); }
  volume() { return this.x * this.y * this.z; }
  dot(o) { return this.x * o.x + this.y * o.y + this.z * o.z; }
  innerProduct(o) { return this.dot(o); }
  cross(o) {
    return new Vec3(this.y * o.z - this.z * o.y, this.z * o.x - this.x * o.z, this.x * o.y - this.y * o.x);
  }
  norm() { return Math.sqrt(this.dot(this)); }
  unit() { const n = this.norm(); return n === 0 ? this.clone() : this.scaled(1 / n); }
  normalize() { return this.update(this.unit()); }
  distanceSquared(o) { const d = this.minus(o); return d.dot(d); }
  distanceTo(o) { return Math.sqrt(this.distanceSquared(o)); }
  xzDistanceTo(o) { return Math.hypot(this.x - o.x, this.z - o.z); }
  xyDistanceTo(o) { return Math.hypot(this.x - o.x, this.y - o.y); }
  yzDistanceTo(o) { return Math.hypot(this.y - o.y, this.z - o.z); }
  manhattanDistanceTo(o) {
    return Math.abs(o.x - this.x) + Math.abs(o.y - this.y) + Math.abs(o.z - this.z);
  }
  equals(o, error = 0) {
    return Math.abs(this.x - o.x) <= error && Math.abs(this.y - o.y) <= error && Math.abs(this.z - o.z) <= error;
  }
  isZero() { return this.x === 0 && this.y === 0 && this.z === 0; }
  at(i) { return this.toArray()[i]; }
  min(o) { return new Vec3(Math.min(this.x, o.x), Math.min(this.y, o.y), Math.min(this.z, o.z)); }
  max(o) { return new Vec3(Math.max(this.x, o.x), Math.max(this.y, o.y), Math.max(this.z, o.z)); }
  toArray() { return [this.x, this.y, this.z]; }
  toString() { return `(${this.x}, ${this.y}, ${this.z})`; }
}
const mod = (a, n) => ((a % n) + n) % n;

/** `new Vec3(x, y, z)`, `Vec3(x, y, z)`, `Vec3([x, y, z])`, `Vec3({x, y, z})`. */
function Vec3(x, y, z) {
  if (Array.isArray(x)) return new Vec3(...x);
  if (x !== null && typeof x === 'object') return new Vec3(x.x, x.y, x.z);
  return Reflect.construct(Point, [x, y, z], new.target ?? Vec3);
}
Vec3.prototype = Point.prototype;
Object.defineProperty(Point.prototype, 'constructor', { value: Vec3 });

/** Returns [x, y, z] of anything with a position, for a host call. */
guest.xyz = (thing, what) => {
  const point = thing?.position ?? thing;
  if (point === null || typeof point !== 'object') {
    throw new guest.ArgumentError(`${what}: expected a position, a block or an entity, got ${guest.shown(point)}`);
  }
  const numbers = Array.isArray(point) ? point.slice(0, 3) : [point.x, point.y, point.z];
  for (const [i, value] of numbers.entries()) {
    if (typeof value !== 'number' || value !== value) {
      throw new guest.ArgumentError(`${what}: ${'xyz'[i]} of the position is ${guest.shown(value)}, not a number`);
    }
  }
  return numbers;
};
guest.shown = (value) => {
  if (typeof value === 'string') return `"${value.slice(0, 40)}"`;
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'a list' : 'an object';
  return String(value);
};
guest.Vec3 = Vec3;
guest.expose({ Vec3, vec3: Vec3 });

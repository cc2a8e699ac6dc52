'use strict';

/**
 * Item frames and paintings: hung up, filled, turned, struck, and falling when their wall is gone
 * (Minecraft Wiki, "Item Frame" and "Painting", Java Edition 1.16). The paintings are a table,
 * paintings.json: in the order of their numbers, `[motive, width, height]` in blocks.
 *
 * `serv.survival.hang(kind, cell, face, {item, rotation, motive, fixed})` makes one in a cell, on the
 * block behind it; `face` is the number of the side that it looks to. Event: 'gamut:framed'
 * {player, item}.
 *
 * Simplified: arrows leave them alone.
 */

const { Vec3 } = require('vec3');
const { FACES } = require('./blocks');
const { makeStates } = require('./fluids/states');
const PAINTINGS = require('./paintings.json');

const name = 'hanging';
const KINDS = ['item_frame', 'painting'];
const CHECKED = 101; // ticks between two looks at the wall
const DEEP = 1 / 16;
const FRAME = 12 / 16;
const ITEM_KEY = 7;
const TURN_KEY = 8;
const UPWARD = 0.25; // from the lower side of the box that clients strike to its middle
/** The numbers of the directions of paintings in the protocol, by face. */
const LEVEL = { 2: 2, 3: 0, 4: 1, 5: 3 };
/** The side to the left of who looks along a face. */
const LEFT = { 2: FACES[4], 4: FACES[3], 3: FACES[5], 5: FACES[2] };

const numberOf = (motive) => PAINTINGS.findIndex(([known]) => known === motive);

/** Returns width and height of a hanging thing, in blocks. */
function sizeOf(kind, motive) {
  return kind === 'painting' ? PAINTINGS[motive].slice(1) : [FRAME, FRAME];
}

/** Returns the lower and the upper corner of a hanging thing, as `[x, y, z, x, y, z]`. */
function boxOf(kind, cell, face, motive) {
  const [width, height] = sizeOf(kind, motive);
  const way = FACES[face];
  const left = LEFT[face] ?? [1, 0, 0];
  const shift = (size) => (size % 2 === 0 ? 0.5 : 0);
  const middle = cell.map((v, i) => v + 0.5 - way[i] * (0.5 - DEEP / 2)
    + left[i] * shift(width) + (i === 1 ? shift(height) : 0));
  const half = way.map((v, i) => {
    if (v !== 0) return DEEP / 2;
    if (way[1] !== 0) return width / 2;
    return (i === 1 ? height : width) / 2;
  });
  return [...middle.map((v, i) => v - half[i]), ...middle.map((v, i) => v + half[i])];
}

const overlap = (a, b) => [0, 1, 2].every((i) => a[i] < b[i + 3] - 1e-6 && a[i + 3] > b[i] + 1e-6);

/** Returns the cells of the wall behind a hanging thing. */
function wallOf(kind, cell, face, motive) {
  const way = FACES[face];
  const behind = cell.map((v, i) => v - way[i]);
  if (kind !== 'painting') return [behind];
  const [width, height] = sizeOf(kind, motive);
  const first = (size) => -Math.floor((size - 1) / 2);
  const cells = [];
  for (let k = first(width); k < first(width) + width; k++) {
    for (let l = first(height); l < first(height) + height; l++) {
      const [dx, , dz] = LEFT[face];
      cells.push([behind[0] + dx * k, behind[1] + l, behind[2] + dz * k]);
    }
  }
  return cells;
}

/** Whether a hanging thing holds where it is: free, on a solid wall, beside no other. */
function holds(serv, kind, cell, face, { motive = 0, fixed = false, self = null }) {
  if (fixed) return true;
  const { survival } = serv;
  const { blocks, hanging } = survival;
  const box = boxOf(kind, cell, face, motive);
  for (let x = Math.floor(box[0]); x < box[3]; x++) {
    for (let y = Math.floor(box[1]); y < box[4]; y++) {
      for (let z = Math.floor(box[2]); z < box[5]; z++) {
        const place = [x, y, z, x, y, z];
        const inside = ({ boxes }) => boxes.some((each) => overlap(box, each.map((v, i) => v + place[i])));
        if (inside(blocks.at(x, y, z))) return false;
      }
    }
  }
  const solid = (info) => hanging.stateOf(info.stateId).solid || /^(repeater|comparator)$/.test(info.name);
  if (!wallOf(kind, cell, face, motive).every((at) => solid(blocks.at(...at)))) return false;
  return [...hanging.all.values()].every((other) => other === self || !overlap(box, other.box));
}

function metadataOf(survival, { stack, rotation }) {
  return [
    { key: ITEM_KEY, type: 6, value: survival.items.Item.toNotch(stack) },
    { key: TURN_KEY, type: 1, value: rotation },
  ];
}

function hang(serv, kind, cell, face, { item = null, rotation = 0, motive = 0, fixed = false } = {}) {
  const { survival } = serv;
  const box = boxOf(kind, cell, face, motive);
  const middle = [0, 1, 2].map((i) => (box[i] + box[i + 3]) / 2);
  const position = new Vec3(middle[0], Math.max(cell[1], middle[1] - UPWARD), middle[2]);
  const own = { cell, face, motive, fixed, box, rotation, stack: item, hungAt: survival.tick };
  const painting = kind === 'painting' && {
    spawnPacketName: 'spawn_entity_painting',
    getSpawnPacket() {
      const [x, y, z] = cell;
      return { entityId: this.id, entityUUID: this.uuid, title: motive, location: { x, y, z }, direction: LEVEL[face] };
    },
  };
  const metadata = painting ? [] : metadataOf(survival, own);
  const entity = survival.spawnObject(kind, position, new Vec3(0, 0, 0), metadata, face, { ...own, ...painting });
  survival.hanging.all.set(entity.id, entity);
  return entity;
}

/** Hangs up what a player holds; a painting is one of the largest that fit. */
function put(serv, { player, slot, item, face, x, y, z }) {
  const { survival } = serv;
  const kind = item.name;
  const way = FACES[face];
  if (!way || (kind === 'painting' && way[1] !== 0)) return false;
  const cell = [x + way[0], y + way[1], z + way[2]];
  if (cell[1] < 0 || cell[1] > 255) return false;
  const fits = (motive) => holds(serv, kind, cell, face, { motive });
  let motive = 0;
  if (kind === 'painting') {
    const fitting = PAINTINGS.map((_, number) => number).filter(fits);
    const area = (number) => PAINTINGS[number][1] * PAINTINGS[number][2];
    const most = Math.max(...fitting.map(area));
    const best = fitting.filter((number) => area(number) === most);
    if (best.length === 0) return false;
    motive = best[Math.floor(Math.random() * best.length)];
  } else if (!fits(0)) return false;
  hang(serv, kind, cell, face, { motive });
  if (player.gameMode !== 1) player.useUp(slot);
  serv.emit('gamut:placed', { player, block: kind, x: cell[0], y: cell[1], z: cell[2] });
  return true;
}

function show(survival, frame) {
  frame.metadata = metadataOf(survival, frame);
  survival.broadcast(frame, 'entity_metadata', { entityId: frame.id, metadata: frame.metadata });
}

/** Puts an item into an empty frame, or turns that in it. */
function useFrame(serv, { player, entity, slot, item }) {
  const { survival } = serv;
  if (entity.name !== 'item_frame' || !survival.hanging.all.has(entity.id) || entity.fixed) return false;
  if (entity.stack) entity.rotation = (entity.rotation + 1) % 8;
  else if (!item) return false;
  else {
    entity.stack = survival.items.copy(item, 1);
    if (player.gameMode !== 1) player.useUp(slot);
    serv.emit('gamut:framed', { player, item: item.name });
  }
  show(survival, entity);
  return true;
}

function drop(survival, entity, item) {
  const [dx, dy, dz] = FACES[entity.face];
  survival.drop(entity.position.offset(dx * 0.15, dy * 0.15, dz * 0.15), item);
}

function takeDown(serv, entity, drops) {
  const { survival } = serv;
  survival.hanging.all.delete(entity.id);
  survival.removeEntity(entity);
  if (!drops) return;
  drop(survival, entity, survival.items.make(entity.name));
  if (entity.stack) drop(survival, entity, entity.stack);
}

/** A blow takes the item out of a frame first, and then the frame off the wall. */
function struck(serv, player, entity) {
  const { survival } = serv;
  if (!survival.hanging.all.has(entity.id)) return;
  const creative = player.gameMode === 1;
  if (entity.fixed && !creative) return;
  if (entity.stack) {
    if (!creative) drop(survival, entity, entity.stack);
    Object.assign(entity, { stack: null, rotation: 0 });
    show(survival, entity);
  } else takeDown(serv, entity, !creative);
}

/** An explosion takes down what hangs around it. */
function blown(serv, { position, power }) {
  for (const entity of [...serv.survival.hanging.all.values()])
    if (!entity.fixed && entity.position.distanceTo(position) <= 2 * power) takeDown(serv, entity, true);
}

function tick(serv) {
  const { all } = serv.survival.hanging;
  for (const entity of [...all.values()]) {
    if (serv.entities[entity.id] !== entity) all.delete(entity.id);
    else if ((serv.survival.tick - entity.hungAt) % CHECKED === CHECKED - 1) {
      const { cell, face, motive, fixed } = entity;
      if (!holds(serv, entity.name, cell, face, { motive, fixed, self: entity })) takeDown(serv, entity, true);
    }
  }
}

function server(serv) {
  const { survival } = serv;
  survival.hanging = { all: new Map(), stateOf: makeStates(survival.blocks) };
  survival.hang = (...args) => hang(serv, ...args);
  survival.onUseItemOn(KINDS, (call) => put(serv, call));
  survival.onUseEntity((call) => useFrame(serv, call));
  serv.on('gamut:explosion', (event) => blown(serv, event));
  survival.onTick(() => tick(serv));
}

function player(player, serv) {
  player.on('attacks', (entity) => struck(serv, player, entity));
}

function save(serv) {
  const { hanging, items } = serv.survival;
  return [...hanging.all.values()].map(({ name: kind, cell, face, motive, fixed, rotation, stack, hungAt }) => ({
    kind, cell, face, hungAt, options: { motive, fixed, rotation, item: items.toJson(stack) },
  }));
}

function load(serv, data) {
  const { survival } = serv;
  for (const entity of [...survival.hanging.all.values()]) takeDown(serv, entity, false);
  for (const { kind, cell, face, hungAt, options } of data ?? []) {
    const item = survival.items.fromJson(options.item);
    hang(serv, kind, cell, face, { ...options, item }).hungAt = hungAt;
  }
}

module.exports = { name, server, player, save, load, numberOf };

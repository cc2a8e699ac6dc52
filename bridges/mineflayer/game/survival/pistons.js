'use strict';

/**
 * Pistons (Minecraft Wiki, "Piston", 1.16): up to 12 blocks are moved at once, without the two ticks
 * of the game's animation; slime and honey do not stick. redstone.js decides when.
 *
 * `serv.survival.movePiston(x, y, z, out)` lets one push or draw back; returns whether it could.
 */

const { lootOf } = require('./loot');
const { FACE_NAMES, FACES } = require('./blocks');
const { pushed } = require('./redstone.json');

const name = 'pistons';
const FIRM = new RegExp(pushed.firm);
const WEAK = new RegExp(pushed.weak);
const STEP = Object.fromEntries(FACE_NAMES.map((side, i) => [side, FACES[i]]));

/** What a piston does with a block: move it, break it, pass through it (air), or fail (firm). */
function kindOf(info) {
  if (info.air || info.liquid) return 'free';
  if (FIRM.test(info.name) || info.def.diggable === false || info.props.extended) return 'firm';
  if (/(^|_)rail$/.test(info.name)) return 'moved';
  return info.boxes.length === 0 || WEAK.test(info.name) ? 'broken' : 'moved';
}

/** Returns the cells in front of a piston that move, and the one behind them; null if they do not. */
function lineOf(blocks, x, y, z, [dx, dy, dz]) {
  const moved = [];
  for (let i = 1; i <= pushed.most + 1; i++) {
    const cell = [x + dx * i, y + dy * i, z + dz * i];
    if (cell[1] < 0 || cell[1] > 255) return null;
    const kind = kindOf(blocks.at(...cell));
    if (kind === 'free' || kind === 'broken') return { moved, end: cell };
    if (kind === 'firm') return null;
    moved.push(cell);
  }
  return null;
}

function breakAt(survival, x, y, z) {
  const { blocks, items, registry } = survival;
  const info = blocks.at(x, y, z);
  if (kindOf(info) !== 'broken') return;
  const loot = survival.rules.doTileDrops ? lootOf(items, registry, info, null, true) : [];
  blocks.setNamed(x, y, z, 'air');
  for (const [item, count] of loot)
    if (registry.itemsByName[item]) survival.popItem(x, y, z, items.make(item, count));
}

/** Moves the entities that are in a cell by one block. */
function shove(serv, [x, y, z], [dx, dy, dz]) {
  for (const entity of Object.values(serv.entities)) {
    const { width = 0.6, height = 1.8 } = serv.registry.entitiesByName[entity.name] ?? {};
    const at = entity.position;
    const half = width / 2;
    const inside = at.x + half > x && at.x - half < x + 1 && at.z + half > z && at.z - half < z + 1
      && at.y + height > y && at.y < y + 1;
    if (!inside || entity.vehicle) continue;
    const to = at.offset(dx, dy, dz);
    if (entity.type === 'player') {
      entity.sendPosition(to, false, true);
      entity.sendSelfPosition();
    } else {
      serv.survival.moveEntity(entity, to.x, to.y, to.z, entity.onGround);
      entity.resting = false;
    }
  }
}

function push(serv, x, y, z, info) {
  const { survival } = serv;
  const { blocks } = survival;
  const { facing } = info.props;
  const step = STEP[facing];
  const line = lineOf(blocks, x, y, z, step);
  if (!line) return false;
  breakAt(survival, ...line.end);
  const [dx, dy, dz] = step;
  for (const [cx, cy, cz] of [...line.moved].reverse()) {
    blocks.set(cx + dx, cy + dy, cz + dz, blocks.stateAt(cx, cy, cz));
    shove(serv, [cx + dx, cy + dy, cz + dz], step);
  }
  const type = info.name === 'sticky_piston' ? 'sticky' : 'normal';
  blocks.setNamed(x + dx, y + dy, z + dz, 'piston_head', { facing, type, short: false });
  blocks.set(x, y, z, blocks.changed(info, { extended: true }));
  shove(serv, [x + dx, y + dy, z + dz], step);
  return true;
}

function pull(survival, x, y, z, info) {
  const { blocks } = survival;
  const [dx, dy, dz] = STEP[info.props.facing];
  const head = [x + dx, y + dy, z + dz];
  const far = [x + 2 * dx, y + 2 * dy, z + 2 * dz];
  blocks.set(x, y, z, blocks.changed(info, { extended: false }));
  if (blocks.at(...head).name === 'piston_head') blocks.setNamed(...head, 'air');
  if (info.name !== 'sticky_piston' || kindOf(blocks.at(...far)) !== 'moved') return true;
  if (!blocks.at(...head).air) return true;
  const stateId = blocks.stateAt(...far);
  blocks.setNamed(...far, 'air');
  blocks.set(...head, stateId);
  return true;
}

/** The head of a piston goes with it, and it with its head. */
function severed(survival, x, y, z, old, now) {
  const { blocks } = survival;
  if (/^(sticky_)?piston$/.test(old.name) && old.props.extended && now.name !== old.name) {
    const [dx, dy, dz] = STEP[old.props.facing];
    const head = blocks.at(x + dx, y + dy, z + dz);
    if (head.name === 'piston_head') blocks.setNamed(x + dx, y + dy, z + dz, 'air');
  }
  if (old.name === 'piston_head' && now.name !== 'piston_head') {
    const [dx, dy, dz] = STEP[old.props.facing];
    const base = blocks.at(x - dx, y - dy, z - dz);
    if (!base.props.extended || base.props.facing !== old.props.facing) return;
    blocks.setNamed(x - dx, y - dy, z - dz, 'air');
    if (survival.rules.doTileDrops) survival.popItem(x, y, z, survival.items.make(base.name));
  }
}

function server(serv) {
  const { survival } = serv;
  const { blocks } = survival;
  let moving = false;
  survival.movePiston = (x, y, z, out) => {
    const info = blocks.at(x, y, z);
    if (info.props.extended === undefined || info.props.extended === out) return false;
    moving = true;
    const done = out ? push(serv, x, y, z, info) : pull(survival, x, y, z, info);
    moving = false;
    return done;
  };
  blocks.onChange((x, y, z, old, now) => {
    if (!moving && old.name !== now.name) severed(survival, x, y, z, old, now);
  });
}

module.exports = { name, server };

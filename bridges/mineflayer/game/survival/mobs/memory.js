'use strict';

/**
 * Mobs as plain JSON, with all their memory, and back. Entities are referred to by their ids,
 * players by their names, so that the data does not depend on its server.
 */

const { Vec3 } = require('vec3');
const { KINDS } = require('./kinds');

/** The properties of a mob that are saved as they are; the others are computed. */
const PLAIN = [
  'uuid',
  'name',
  'yaw',
  'pitch',
  'headYaw',
  'onGround',
  'resting',
  'bumped',
  'wet',
  'fallDistance',
  'fireTicks',
  'burning',
  'health',
  'maxHealth',
  'hurtTick',
  'lastBlow',
  'deathTick',
  'effects',
  'colour',
  'shorn',
  'baby',
  'age',
  'size',
  'helmet',
  'gamutName',
  'gamutTarget',
  'gamutDead',
  'natural',
  'slainAt',
  'eggAt',
  'idleSince',
  'ai',
  'turn',
  'armourPoints',
  'tame',
  'owner',
  'sitting',
  'temper',
  'saddled',
  'loveUntil',
  'fedBy',
  'leash',
  'admires',
  'paidBy',
  'merchant',
  'built',
  'bare',
];
const REFERENCES = ['target', 'foe', 'lure'];

/** Returns an id in a form that does not depend on this server. */
function refer(serv, id) {
  const entity = id === null ? null : serv.entities[id];
  return entity && entity.type === 'player' ? { player: entity.username } : id;
}

/** Returns all mobs and missiles as plain JSON. */
function saveMobs(mobs) {
  const { serv, turns } = mobs;
  const alive = [...mobs.list.values()].filter((mob) => serv.entities[mob.id] === mob);
  const rows = alive.map((mob) => {
    const mind = { ...mob.mind };
    for (const key of REFERENCES) mind[key] = refer(serv, mind[key]);
    const plain = Object.fromEntries(PLAIN.map((key) => [key, mob[key] ?? null]));
    const position = mob.position.toArray();
    return { id: mob.id, ...plain, position, motion: mob.motion.toArray(), mind };
  });
  const missiles = mobs.missiles.save((id) => refer(serv, id));
  return JSON.parse(JSON.stringify({ turns, rows, missiles }));
}

/** Makes a mob from saved data. */
function revive(mobs, row) {
  const { serv, survival } = mobs;
  const def = serv.registry.entitiesByName[row.name];
  const mob = serv.initEntity('mob', def.id, serv.overworld, new Vec3(...row.position));
  for (const key of PLAIN) if (row[key] !== null) mob[key] = row[key];
  Object.assign(mob, {
    kind: KINDS[row.name],
    ai: row.ai,
    mind: { ...row.mind },
    headPitch: row.headYaw,
    velocity: new Vec3(0, 0, 0),
    motion: new Vec3(...row.motion),
    ownPhysics: true,
    effects: { ...row.effects },
    goX: 0,
    goZ: 0,
    goSpeed: 0,
    jumps: false,
  });
  mobs.finish(mob, def);
  mob.maxHealth = row.maxHealth;
  mob.armourPoints = row.armourPoints;
  mob.motionSeen = mob.motion;
  mob.placeSeen = mob.position;
  survival.affected.add(mob.id);
  mobs.show(mob);
  survival.showMerchant(mob);
  mob.updateAndSpawn();
  return mob;
}

/** Restores what `saveMobs` returned, under the same ids where these are free; none without it. */
function loadMobs(mobs, data) {
  const { serv } = mobs;
  for (const mob of [...mobs.list.values()]) mobs.remove(mob);
  const moved = new Map();
  const as = (id, make) => {
    const last = serv.entityMaxId;
    if (!serv.entities[id]) serv.entityMaxId = id - 1;
    const entity = make();
    moved.set(id, entity.id);
    serv.entityMaxId = Math.max(last, entity.id);
    return entity;
  };
  for (const row of data ? data.rows : []) as(row.id, () => revive(mobs, row));
  const resolve = (ref) => {
    if (ref === null || typeof ref !== 'object') return moved.get(ref) ?? ref;
    const player = serv.players.find((each) => each.username === ref.player);
    return player ? player.id : null;
  };
  mobs.missiles.load(data ? data.missiles : [], resolve, as);
  for (const mob of mobs.list.values()) {
    for (const key of REFERENCES) mob.mind[key] = resolve(mob.mind[key]);
  }
  mobs.turns = data ? data.turns : 0;
}

module.exports = { saveMobs, loadMobs };

'use strict';

/**
 * What players do with animals: feeding, breeding, taming, letting sit, naming, dyeing fleeces
 * (Minecraft Wiki, "Breeding" and "Taming", 1.16). The table is animals.json. A tame animal has
 * `owner`, the name of a player, and may have `sitting`; one in love has `loveUntil`; one on a lead
 * has `leash`, the name of who holds it.
 *
 * Simplified: pandas need no bamboo around them, babies do not follow their parents, parrots sit on
 * no shoulder, foxes trust nobody, cats bring no gifts, leads are not tied to fences.
 *
 * Events: 'gamut:tamed' {player, entity}, 'gamut:bred' {player, entity (the baby), parents}.
 */

const { COLOURS } = require('./colours');
const ways = require('./mobs/ways');
const { lookAt } = require('./mobs/body');

const name = 'husbandry';
const TABLE = require('./animals.json');

const IN_LOVE = 600; // ticks
const REST = 6000; // ticks until a parent can be bred again
const COURTS = 60; // ticks that two spend together
const NEAR = 8; // blocks within which one looks for the other
const FOLLOWS = 10; // blocks from which a pet walks to its owner
const LEASH = { pulls: 4, tears: 10, force: 0.04 }; // blocks, blocks, blocks a tick per block
const LOST = 12; // blocks from which it is put beside its owner
const STATUS = { smoke: 6, hearts: 7, love: 18 };

const rowOf = (mob) => TABLE[mob.name] ?? {};

function status(survival, mob, what) {
  survival.broadcast(mob, 'entity_status', { entityId: mob.id, entityStatus: STATUS[what] });
}

function spend(player, slot) {
  if (player.gameMode !== 1) player.useUp(slot);
}

/** Makes an animal tame, of a player by name; null of nobody. */
function tame(serv, mob, owner) {
  const { survival } = serv;
  const { health } = rowOf(mob);
  mob.tame = true;
  mob.owner = owner;
  mob.natural = false;
  Object.assign(mob.mind, { target: null, foe: null, path: null, fearUntil: 0 });
  if (health) {
    mob.maxHealth = health;
    mob.updateHealth(health);
  }
  survival.mobs.refresh(mob);
}

function tries(serv, { player, entity, slot, item }) {
  const chance = rowOf(entity).tames?.[item?.name];
  if (chance === undefined || entity.tame) return false;
  spend(player, slot);
  const won = Math.random() < chance;
  if (won) {
    tame(serv, entity, player.username);
    entity.sitting = rowOf(entity).sits === true;
    serv.survival.mobs.refresh(entity);
    serv.emit('gamut:tamed', { player, entity });
  }
  status(serv.survival, entity, won ? 'hearts' : 'smoke');
  return true;
}

function heals(serv, { player, entity, slot, item }) {
  const points = rowOf(entity).heals?.[item?.name];
  if (points === undefined || !(entity.health < entity.maxHealth)) return false;
  if (rowOf(entity).tames && !entity.tame) return false;
  spend(player, slot);
  entity.updateHealth(Math.min(entity.maxHealth, entity.health + points));
  return true;
}

/** Food makes a baby older by a tenth of what is left, and puts an adult in love. */
function feeds(serv, { player, entity, slot, item }) {
  const { survival } = serv;
  const row = rowOf(entity);
  if (!row.breeds?.includes(item?.name)) return false;
  if (entity.baby) entity.age = Math.min(-1, Math.floor(entity.age * 0.9));
  else {
    const ready = !row.tamed || entity.tame;
    if (!ready || entity.age > 0 || entity.loveUntil > survival.tick || entity.sitting) return false;
    entity.loveUntil = survival.tick + IN_LOVE;
    entity.fedBy = player.username;
    entity.resting = false;
    status(survival, entity, 'love');
  }
  spend(player, slot);
  return true;
}

function calms(serv, { player, entity, slot, item }) {
  const more = rowOf(entity).temper?.[item?.name];
  if (more === undefined || entity.tame || entity.baby) return false;
  spend(player, slot);
  entity.temper = Math.min(100, (entity.temper ?? 0) + more);
  return true;
}

function names(serv, { player, entity, slot, item }) {
  if (item?.name !== 'name_tag' || entity.type !== 'mob') return false;
  const text = item.customName;
  if (!text) return false;
  entity.gamutName = plainOf(text);
  entity.natural = false;
  spend(player, slot);
  serv.survival.mobs.refresh(entity);
  return true;
}

/** Puts an animal on a lead, or takes it off. */
function leads(serv, { player, entity, slot, item }) {
  if (entity.kind?.hostile || entity.kind?.moves === 'swim' || entity.name === 'villager') return false;
  if (entity.leash) {
    if (entity.leash !== player.username) return false;
    release(serv, entity);
    return true;
  }
  if (item?.name !== 'lead') return false;
  spend(player, slot);
  entity.leash = player.username;
  entity.natural = false;
  entity.resting = false;
  serv.survival.broadcast(entity, 'attach_entity', { entityId: entity.id, vehicleId: player.id });
  return true;
}

/** Lets an animal off; the lead falls to the ground. */
function release(serv, mob) {
  mob.leash = null;
  serv.survival.broadcast(mob, 'attach_entity', { entityId: mob.id, vehicleId: -1 });
  serv.survival.drop(mob.position.offset(0, 0.5, 0), serv.survival.items.make('lead'));
}

/** Pulls an animal on a lead towards who holds it. */
function pull(mobs, mob) {
  const { serv } = mobs;
  const holder = serv.players.find(({ username, health }) => username === mob.leash && health > 0);
  const far = holder ? holder.position.distanceTo(mob.position) : Infinity;
  if (far > LEASH.tears) release(serv, mob);
  else if (far > LEASH.pulls) {
    const way = holder.position.minus(mob.position).scaled((LEASH.force * (far - LEASH.pulls)) / far);
    mob.motion.x += way.x;
    mob.motion.y += Math.max(0, way.y);
    mob.motion.z += way.z;
    mob.resting = false;
  }
}

/** The text of an item's name, which is JSON or plain. */
function plainOf(text) {
  try {
    const data = JSON.parse(text);
    return typeof data === 'object' ? String(data?.text ?? '') : String(data);
  } catch {
    return String(text);
  }
}

function dyes(serv, { player, entity, slot, item }) {
  const [, colour] = /^(.+)_dye$/.exec(item?.name ?? '') ?? [];
  if (entity.name !== 'sheep' || !COLOURS.includes(colour)) return false;
  if (entity.colour === colour || entity.shorn) return false;
  entity.colour = colour;
  spend(player, slot);
  serv.survival.setShorn(entity, false);
  return true;
}

function sits(serv, { player, entity }) {
  if (!rowOf(entity).sits || entity.owner !== player.username) return false;
  entity.sitting = !entity.sitting;
  Object.assign(entity.mind, { path: null, target: null, foe: null });
  entity.resting = false;
  serv.survival.mobs.refresh(entity);
  return true;
}

/** The colour of a lamb: that of both fleeces mixed as dyes, or of one parent. */
function mixed(registry, a, b) {
  const id = (colour) => registry.itemsByName[`${colour}_dye`].id;
  const pair = [id(a), id(b)].sort().join();
  for (const colour of COLOURS) {
    for (const { ingredients, inShape } of registry.recipes[id(colour)] ?? []) {
      const parts = (ingredients ?? inShape.flat()).map((part) => part?.id ?? part);
      if (parts.length === 2 && [...parts].sort().join() === pair) return colour;
    }
  }
  return Math.random() < 0.5 ? a : b;
}

const kindOfBaby = (a, b) =>
  rowOf(a).mates ? rowOf(a).mates[b.name] : a.name === b.name ? a.name : undefined;

function birth(serv, mob, mate) {
  const { survival } = serv;
  const options = { baby: true };
  if (mob.name === 'sheep') options.colour = mixed(serv.registry, mob.colour, mate.colour);
  const baby = survival.spawnMob(kindOfBaby(mob, mate), mob.position, options);
  if (mob.owner && rowOf(mob).tames) tame(serv, baby, mob.owner);
  for (const parent of [mob, mate]) Object.assign(parent, { age: REST, loveUntil: 0 });
  const player = serv.players.find(({ username }) => username === mob.fedBy);
  if (player) player.addXp(1 + Math.floor(Math.random() * 7));
  serv.emit('gamut:bred', { player: player ?? null, entity: baby, parents: [mob, mate] });
}

/** An animal in love looks for another one; returns whether there is one. */
function courts(mobs, mob, tick) {
  if (!(mob.loveUntil > tick) || mob.baby) return false;
  const { mind } = mob;
  if ((tick + mob.turn) % ways.THINKS === 0) {
    let mate = null;
    for (const other of mobs.list.values()) {
      if (other === mob || !(other.loveUntil > tick) || !(other.health > 0)) continue;
      if (kindOfBaby(mob, other) === undefined) continue;
      const far = other.position.distanceTo(mob.position);
      if (far <= NEAR && (!mate || far < mate.position.distanceTo(mob.position))) mate = other;
    }
    if (!mate) {
      mind.courtedAt = null;
      return false;
    }
    mind.courtedAt ??= tick;
    const far = mate.position.distanceTo(mob.position);
    if (far > 2) ways.setPath(mobs, mob, mate.position, 1, { budget: 120, reach: 1 });
    else mind.path = null;
    lookAt(mob, mate.position.x, mate.position.y + mate.eyes, mate.position.z);
    if (far < 3 && tick - mind.courtedAt >= COURTS) {
      mind.courtedAt = null;
      mate.mind.courtedAt = null;
      birth(mobs.serv, mob, mate);
      return false;
    }
  }
  if (mind.courtedAt === null || mind.courtedAt === undefined) return false;
  ways.follow(mobs, mob);
  return true;
}

/** A pet sits, or follows its owner; returns whether it does. */
function attends(mobs, mob, tick) {
  if (mob.sitting) return true;
  const { mind } = mob;
  const owner = mobs.players.find(({ username }) => username === mob.owner);
  if (!owner || !rowOf(mob).sits) return false;
  const far = owner.position.distanceTo(mob.position);
  if (far > LOST && (tick + mob.turn) % ways.THINKS === 0 && besides(mobs, mob, owner)) return true;
  if (far > FOLLOWS || (mind.path !== null && far > 3)) {
    if ((tick + mob.turn) % ways.THINKS === 0)
      ways.setPath(mobs, mob, owner.position, 1.2, { budget: 200, reach: 2 });
    ways.follow(mobs, mob);
    lookAt(mob, owner.position.x, owner.position.y + 1.62, owner.position.z);
    return true;
  }
  return false;
}

/** Puts a pet onto free ground beside its owner; returns whether there is any. */
function besides(mobs, mob, owner) {
  const { blocks } = mobs.survival;
  const [x, y, z] = owner.position.floored().toArray();
  for (let i = 0; i < 10; i++) {
    const dx = Math.floor(ways.random(-3, 4));
    const dz = Math.floor(ways.random(-3, 4));
    if (Math.abs(dx) < 2 && Math.abs(dz) < 2) continue;
    const free = [0, 1].every((up) => {
      const info = blocks.at(x + dx, y + up, z + dz);
      return info.boxes.length === 0 && !info.liquid;
    });
    if (!free || !blocks.at(x + dx, y - 1, z + dz).full) continue;
    mob.position = mob.position.offset(0, 0, 0).set(x + dx + 0.5, y, z + dz + 0.5);
    mob.mind.path = null;
    mob.resting = false;
    return true;
  }
  return false;
}

/** Pets that guard fight whom their owner fights. */
function guard(serv, { victim, by }) {
  if (!by || by === victim || !(by.health > 0)) return;
  const side = (owner, foe) => {
    if (foe.owner === owner.username || foe.name === 'creeper' || foe.name === 'ghast') return;
    if (foe === owner || !(foe.health > 0)) return;
    for (const mob of serv.survival.mobs.list.values()) {
      if (mob.owner === owner.username && !mob.sitting && rowOf(mob).guards && mob !== foe)
        mob.mind.foe = foe.id;
    }
  };
  if (victim.type === 'player') side(victim, by);
  if (by.type === 'player') side(by, victim);
}

function server(serv) {
  const { survival } = serv;
  survival.tameMob = (mob, owner) => tame(serv, mob, owner);
  survival.husbandry = { courts, attends, pull };
  survival.onUseEntity((call) => {
    if (call.entity.type !== 'mob' || !(call.entity.health > 0)) return false;
    return [leads, names, dyes, tries, heals, feeds, calms, sits].some((use) => use(serv, call));
  });
  serv.on('gamut:hurt', (event) => guard(serv, event));
}

module.exports = { name, server, TABLE };

'use strict';

/**
 * Mobs: bodies, behaviour, deaths. Their numbers are in mobs/kinds.js, their loot in mobs/loot.js,
 * their motion in mobs/body.js, their behaviour in mobs/walkers.js and mobs/floaters.js, their
 * missiles in mobs/missiles.js; the head of each file lists its simplifications.
 *
 * `serv.survival.spawnMob(kind, position, {name, target, natural, baby, colour, size})` makes one
 * (so does `serv.spawnMob`, by the number of its kind): `name` is shown above it, `target` marks
 * the targets of an episode, `natural` ones despawn when no player is near.
 * `serv.survival.mobs.list` contains all by their ids. A mob with `ai` null is not updated: it
 * neither moves, whatever strikes it, nor burns. `mob.xpReward` is the experience of its kill, [least, most].
 *
 * Mobs farther than 48 blocks from all players make no decisions; mobs in chunks that are not
 * loaded do not move. Undead burn by day unless they wear a helmet, in water or rain.
 */

const { Vec3 } = require('vec3');
const UUID = require('uuid-1345');
const { nearest } = require('./items');
const { KINDS } = require('./mobs/kinds');
const { born, build, metadataOf, equipmentOf, KEYS } = require('./mobs/looks');
const { step, pushApart } = require('./mobs/body');
const { freshMind, frighten } = require('./mobs/ways');
const { Ground } = require('./mobs/path');
const { Missiles, afflict } = require('./mobs/missiles');
const { isDay, seesSky } = require('./mobs/light');
const { lootOfMob } = require('./mobs/loot');
const { saveMobs, loadMobs } = require('./mobs/memory');
const BRAINS = {
  ...require('./mobs/walkers'), ...require('./mobs/floaters'), ...require('./mobs/dragon'),
};

const name = 'mobs';
const AWAKE = 48;
const LOOKS = 16; // ticks between checks of the nearest player's distance
const ALARM = 35; // blocks within which a pack helps
const PANIC = 100; // ticks
const SLAIN = 100; // ticks for which a death counts as the kill of a player
const LAYS = [6000, 12000]; // ticks between a chicken's eggs
const BURNS = 160;

class Mobs {
  constructor(survival) {
    this.survival = survival;
    this.serv = survival.serv;
    this.list = new Map();
    this.ground = new Ground(survival.blocks);
    this.missiles = new Missiles(survival);
    this.players = [];
    this.awake = [];
    this.tick = 0;
    this.turns = 0;
  }

  /** Makes a mob of a kind of KINDS; see the head of this file for the options. */
  spawn(kindName, position, options = {}) {
    const { serv } = this;
    const def = serv.registry.entitiesByName[kindName];
    const mob = serv.initEntity('mob', def.id, serv.overworld, position.clone());
    Object.assign(mob, {
      uuid: UUID.v4(),
      name: kindName,
      kind: KINDS[kindName],
      pitch: 0,
      velocity: new Vec3(0, 0, 0),
      motion: new Vec3(0, 0, 0),
      ownPhysics: true,
      ai: KINDS[kindName].brain,
      mind: freshMind(),
      turn: this.turns++,
      onGround: false,
      resting: false,
      bumped: false,
      wet: false,
      fallDistance: 0,
      fireTicks: 0,
      burning: false,
      natural: Boolean(options.natural),
      slainAt: -SLAIN,
      idleSince: this.survival.tick,
      goX: 0,
      goZ: 0,
      goSpeed: 0,
      jumps: false,
    });
    mob.yaw = Math.floor(Math.random() * 256) - 128;
    mob.headYaw = mob.yaw;
    mob.headPitch = mob.yaw;
    if (options.name) mob.gamutName = options.name;
    if (options.target) mob.gamutTarget = true;
    born(mob, options);
    if (mob.kind.lays) mob.eggAt = this.eggTime();
    this.finish(mob, def);
    mob.health = mob.maxHealth;
    this.show(mob);
    this.survival.bornMerchant(mob, options.merchant);
    mob.updateAndSpawn();
    return mob;
  }

  /** Computes the values that follow from a mob's kind and state, and adds it to the list. */
  finish(mob, def) {
    build(mob, def);
    const plain = mob.updateHealth;
    mob.updateHealth = (health) => {
      plain(health);
      if (mob.health > 0) this.survival.setMetadata(mob, KEYS.health, 2, mob.health);
    };
    mob.showState = () => this.survival.setMetadata(mob, KEYS.flags, 0, mob.burning ? 1 : 0);
    this.list.set(mob.id, mob);
  }

  show(mob) {
    mob.metadata = metadataOf(mob);
    mob.equipment = equipmentOf(mob, this.survival.items);
  }

  /** Shows what has changed about a mob to all who see it. */
  refresh(mob) {
    mob.metadata = metadataOf(mob);
    this.survival.broadcast(mob, 'entity_metadata', { entityId: mob.id, metadata: mob.metadata });
  }

  eggTime() {
    return this.survival.tick + LAYS[0] + Math.floor(Math.random() * (LAYS[1] - LAYS[0]));
  }

  remove(mob) {
    this.list.delete(mob.id);
    this.survival.removeEntity(mob);
  }

  /** Returns how far the nearest player is from a mob, in blocks. */
  nearest(mob) {
    let best = Infinity;
    for (const player of this.serv.players) {
      if (!player.joined) continue;
      const dx = player.position.x - mob.position.x;
      const dy = player.position.y - mob.position.y;
      const dz = player.position.z - mob.position.z;
      best = Math.min(best, dx * dx + dy * dy + dz * dz);
    }
    return Math.sqrt(best);
  }

  tickAll(tick) {
    const { serv, survival } = this;
    this.tick = tick;
    this.day = isDay(serv);
    this.players = serv.players.filter((player) => player.joined && survival.mortal(player));
    this.awake.length = 0;
    for (const mob of this.list.values()) {
      if (serv.entities[mob.id] !== mob) this.list.delete(mob.id);
      else if (mob.ai !== null) this.tickOne(mob, tick);
    }
    const { awake } = this;
    for (let i = 0; i < awake.length; i++) {
      for (let j = i + 1; j < awake.length; j++) {
        if (!awake[i].resting || !awake[j].resting) pushApart(awake[i], awake[j]);
      }
    }
    this.missiles.tick();
  }

  tickOne(mob, tick) {
    const { mind } = mob;
    mob.goSpeed = 0;
    mob.jumps = false;
    mob.sinks = false;
    mob.climbs = false;
    if ((tick + mob.turn) % LOOKS === 0 || mind.near === 0) mind.near = this.nearest(mob) + 1e-9;
    const near = mind.near <= (mob.kind.awake ?? AWAKE);
    if (mob.health > 0) {
      this.age(mob, tick);
      if (near && mob.health > 0) {
        this.awake.push(mob);
        if (!mob.riders || !this.survival.steerMob(mob)) BRAINS[mob.kind.brain](this, mob, tick);
      }
    }
    if (this.serv.entities[mob.id] !== mob) return;
    if (mob.leash && mob.health > 0) this.survival.husbandry.pull(this, mob);
    if (mob.vehicle && this.survival.carry(mob)) return;
    if (!near && mob.kind.moves !== 'walk') return;
    if (mob.resting || this.survival.blocks.loaded(mob.position.x, mob.position.z)) {
      step(this.survival, mob, tick);
    }
  }

  /** Effects of time on a mob: the sun, water, growing up, eggs. */
  age(mob, tick) {
    const { kind } = mob;
    const { survival } = this;
    if (kind.undead && this.day && !kind.sunproof && !mob.helmet && Math.random() < 0.04)
      this.sun(mob);
    if (
      kind.hurtByWater &&
      (tick + mob.turn) % 10 === 0 &&
      (mob.wet || survival.rainsOn(mob.position))
    ) {
      survival.hurt(mob, { amount: 1, cause: 'drown' });
    }
    if (mob.age > 0) mob.age--;
    if (mob.baby && kind.hostile === false && ++mob.age >= 0) {
      mob.baby = false;
      const { health } = mob;
      build(mob, this.serv.registry.entitiesByName[mob.name]);
      mob.health = health;
      survival.setMetadata(mob, 15, 7, false);
    }
    if (mob.eggAt !== undefined && tick >= mob.eggAt) {
      mob.eggAt = this.eggTime();
      if (!mob.baby) survival.drop(mob.position.offset(0, 0.2, 0), survival.items.make('egg'));
    }
  }

  /** Ignites an undead mob in sunlight. */
  sun(mob) {
    const { x, y, z } = mob.position;
    if (mob.wet || mob.fireProof || this.survival.rainsOn(mob.position)) return;
    if (seesSky(this.survival, x, y + mob.eyes, z)) this.survival.setBurning(mob, BURNS);
  }

  /** Reaction of a mob to a blow: fight back, call its pack, or run. */
  hurt({ victim, cause, by }) {
    if (cause === 'arrow' && by && by.kind && by.kind.arrow === 'slowness' && victim.health > 0) {
      afflict(this.survival, victim, 'Slowness', 600);
    }
    if (this.list.get(victim.id) !== victim) return;
    const { kind, mind } = victim;
    victim.resting = false;
    if (by && by.type === 'player') victim.slainAt = this.survival.tick;
    if (!(victim.health > 0)) return;
    const { x, z } = by ? by.position : victim.position;
    const until = this.survival.tick + PANIC;
    if (kind.brain === 'enderman' && (cause === 'arrow' || !by)) mind.fearUntil = until;
    else if (kind.panic > 0 || kind.brain === 'fish' || kind.brain === 'squid')
      frighten(victim, x, z, until);
    else if (by && by !== victim && !(victim.owner && victim.owner === by.username)
      && !(victim.built && by.type === 'player') && (kind.hostile || kind.fights)) this.provoke(victim, by);
  }

  provoke(victim, by) {
    victim.mind.foe = by.id;
    if (!victim.kind.pack) return;
    for (const other of this.list.values()) {
      if (other.name !== victim.name || other === victim || other.mind.target !== null) continue;
      if (other.position.distanceTo(victim.position) <= ALARM) other.mind.foe = by.id;
    }
  }

  died({ victim, by }) {
    if (this.list.get(victim.id) !== victim) return;
    const { survival, serv } = this;
    Object.assign(victim.mind, { target: null, foe: null, path: null });
    const slain = survival.tick - victim.slainAt < SLAIN;
    const looting = by?.type === 'player' ? survival.items.level(by.heldStack(), 'looting') : 0;
    if (survival.rules.doMobLoot) {
      for (const [item, count, nbt] of lootOfMob(serv.registry, victim, slain, looting)) {
        const push = () => Math.random() * 0.2 - 0.1;
        survival.drop(
          victim.position.offset(0, victim.height / 2, 0),
          survival.items.make(item, count, nbt),
          { velocity: new Vec3(push(), 0.2, push()) },
        );
      }
    }
    if (!victim.size || victim.size < 2) return;
    const { x, y, z } = victim.position;
    const count = 2 + Math.floor(Math.random() * 3);
    for (let i = 0; i < count; i++) {
      const spread = victim.size / 8;
      const at = new Vec3(x + ((i % 2) - 0.5) * spread, y + 0.5, z + ((i >> 1) - 0.5) * spread);
      this.spawn(victim.name, at, { size: victim.size / 2, natural: victim.natural });
    }
  }

  /** Wakes the mobs whose ground may have changed. */
  disturb(x, y, z) {
    for (const mob of this.list.values()) {
      if (!mob.resting) continue;
      const { position } = mob;
      if (
        Math.abs(position.x - x) < 4 &&
        Math.abs(position.z - z) < 4 &&
        Math.abs(position.y - y) < 5
      ) {
        mob.resting = false;
      }
    }
  }
}

function server(serv) {
  const { survival } = serv;
  const mobs = new Mobs(survival);
  survival.mobs = mobs;
  const plainSpawn = serv.spawnMob;
  serv.spawnMob = (type, world, position, options) => {
    const kindName = serv.registry.entities[type].name;
    return KINDS[kindName]
      ? mobs.spawn(kindName, position, options)
      : plainSpawn(type, world, position, options);
  };
  survival.spawnMob = (kindName, position, options) => {
    const def = serv.registry.entitiesByName[kindName];
    if (def === undefined) {
      const near = nearest(String(kindName), Object.keys(KINDS)).join(', ');
      throw new Error(`no mob is called "${kindName}"; the nearest are ${near}`);
    }
    return serv.spawnMob(def.id, serv.overworld, position, options);
  };
  survival.onTick((tick) => mobs.tickAll(tick));
  survival.blocks.onChange((x, y, z) => mobs.disturb(x, y, z));
  serv.on('gamut:hurt', (event) => mobs.hurt(event));
  serv.on('gamut:death', (event) => mobs.died(event));
}

function player(player, serv) {
  player.on('attacks', (target) => serv.survival.mobs.missiles.deflect(player, target));
}

/** Returns all mobs and missiles with their memories; random numbers are the world's. */
const save = (serv) => saveMobs(serv.survival.mobs);

/** Restores what `save` returned, under the same ids where these are free; without data, none. */
const load = (serv, data) => loadMobs(serv.survival.mobs, data);

module.exports = { name, server, player, save, load };

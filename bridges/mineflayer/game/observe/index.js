'use strict';
/**
 * One agent's row of a frame: the values of layout.json's columns, and its details.
 *
 * Everything is what the agent's own client knows about its world, except the health of others and
 * the counters, which only the server knows; in remote mode these are what the server has sent.
 */
const { tablesOf } = require('./tables');
const { Inventory } = require('./inventory');
const { voxels, climate, Neighbours, customName } = require('./surroundings');
const { blocksInSight } = require('./view');

const KEYS = ['forward', 'back', 'left', 'right', 'jump', 'sprint', 'sneak'];
const LISTED = 16; // entities listed with numbers
const DIFFICULTIES = ['peaceful', 'easy', 'normal', 'hard'];
const FULL_OXYGEN = 20;
const EFFECTS = 32; // kinds of status effects

const round = (v) => Math.round(v * 100) / 100;
const rounded = (v) => [round(v.x), round(v.y), round(v.z)];

class Observer {
  /** @param {object} agent see agent.js */
  constructor(agent) {
    this.agent = agent;
    this.tables = tablesOf(agent.bot.registry);
    this.inventory = new Inventory(agent, this.tables);
    this.neighbours = new Neighbours(agent);
  }

  /** Returns `{values, details}` of the agent now; removes its events from the queue. */
  look() {
    const { agent } = this;
    const { bot } = agent;
    const around = voxels(agent, this.tables);
    const air = climate(agent, this.tables);
    const seen = this.neighbours.look();
    const carried = this.inventory.look();
    const code = agent.codeState();
    const values = {
      ...this.body(carried.armour),
      ...carried.numbers,
      ...this.world(air),
      voxels_id: around.ids,
      voxels_flags: around.flags,
      entities: this.entityRows(seen),
      entities_count: seen.length,
      code_state: [Number(code.running), code.ticks, code.error],
      ...this.signals(),
      ...agent.ends(),
      tick: agent.tick()
    };
    return { values, details: this.details(values, around, air, seen, carried, code) };
  }

  body(armour) {
    const { bot } = this.agent;
    const { entity, experience } = bot;
    const { yaw, pitch } = entity;
    return {
      life: [bot.health ?? 0, oxygen(bot), bot.food ?? 0, bot.foodSaturation ?? 0, armour,
        experience.points ?? 0, experience.level ?? 0, experience.progress ?? 0],
      is_sleeping: Boolean(bot.isSleeping),
      effects: levels(entity.effects ?? {}),
      position: [entity.position.x, entity.position.y, entity.position.z],
      velocity: [entity.velocity.x, entity.velocity.y, entity.velocity.z],
      look: [yaw, pitch],
      face_vector: [-Math.sin(yaw), Math.sin(pitch), -Math.cos(yaw)],
      on_ground: Boolean(entity.onGround),
      control_state: KEYS.map((key) => bot.getControlState(key))
    };
  }

  world(air) {
    const { agent } = this;
    return {
      weather: [air.rain, air.thunder],
      time: air.time,
      day: agent.day(),
      age: agent.tick(),
      biome: air.biome,
      temperature: air.temperature,
      light: air.light,
      can_see_sky: air.sky,
      sea_level: air.sea,
      difficulty: Math.max(0, DIFFICULTIES.indexOf(agent.bot.game.difficulty))
    };
  }

  entityRows(seen) {
    const rows = new Array(LISTED * 9).fill(0);
    seen.slice(0, LISTED).forEach(({ entity, offset, speed, health, target }, i) => {
      const kind = this.tables.entity.get(entity.name) ?? 0;
      [kind, Number(target), health, offset.x, offset.y, offset.z, speed.x, speed.y, speed.z]
        .forEach((value, k) => { rows[i * 9 + k] = value; });
    });
    return rows;
  }

  signals() {
    const { agent } = this;
    return {
      ...agent.counts,
      reward: 0,
      health: agent.bot.health ?? 0,
      food: agent.bot.food ?? 0,
      targets_left: agent.targetsLeft(),
      world_day: agent.day(),
      survived_ticks: agent.tick() - agent.bornAt
    };
  }

  details(values, around, air, seen, carried, code) {
    const { agent } = this;
    const { bot } = agent;
    const named = seen.filter(({ entity, target }) => target || customName(entity) !== null);
    return {
      name: agent.name,
      ...carried.details,
      face_vector: values.face_vector.map(round),
      life_stats: lifeStats(values),
      location_stats: locationStats(bot, values, air),
      voxels: voxelDetails(around),
      ...(agent.actor.codeState ? { blocks_in_sight: blocksInSight(agent, this.tables) } : {}),
      target_entities: named.map((each) => ({
        name: customName(each.entity) ?? each.entity.name, kind: each.entity.name,
        health: each.health, position: positionOf(each.entity)
      })),
      entities: seen.map(({ entity, distance, health }) => ({
        name: entity.username ?? customName(entity) ?? entity.name, kind: entity.name,
        distance: round(distance),
        position: rounded(entity.position), health: round(health)
      })),
      ...agent.events.take(),
      trace: agent.trace.take(),
      ...(agent.world.privileged && { privileged: agent.world.privileged.look(agent) }),
      built: agent.built(),
      statistics: agent.statistics(),
      code_info: code.info,
      control_state: Object.fromEntries(KEYS.map((key, i) => [key, values.control_state[i]])),
      tick: values.tick,
      time: values.time,
      day: values.day,
      age: values.age,
      difficulty: DIFFICULTIES[values.difficulty]
    };
  }
}

/** Returns a bot's breath, 20 is full: what the server sent, or full if it never sent any. */
const oxygen = (bot) => bot.oxygenLevel ?? FULL_OXYGEN;

const positionOf = ({ position }) =>
  ({ x: round(position.x), y: round(position.y), z: round(position.z) });

/** Returns the level of each effect by its number, 1 first; amplifiers are signed bytes. */
function levels(effects) {
  return Array.from({ length: EFFECTS }, (_, i) => {
    const found = effects[i + 1];
    return found ? (found.amplifier & 255) + 1 : 0;
  });
}

function lifeStats({ life, is_sleeping }) {
  return { life: life[0], oxygen: life[1], food: life[2], saturation: life[3], armor: life[4],
    xp: life[5], xp_level: life[6], xp_progress: life[7], is_sleeping };
}

function locationStats(bot, values, air) {
  return {
    pos: rounded(bot.entity.position), vel: rounded(bot.entity.velocity),
    yaw: round(values.look[0]), pitch: round(values.look[1]), rainfall: air.rain,
    is_raining: air.rain > 0, is_on_ground: values.on_ground, biome_id: air.biome,
    biome: bot.registry.biomes[air.biome]?.name ?? '', temperature: air.temperature,
    can_see_sky: air.sky, light_level: air.light[0], sky_light_level: air.light[1],
    sun_brightness: air.light[2], sea_level: air.sea
  };
}

/** Returns a list of 27 as [dx][dy][dz]. */
const cube = (list) => [0, 1, 2].map((x) => [0, 1, 2].map((y) => list.slice(x * 9 + y * 3,
  x * 9 + y * 3 + 3)));

function voxelDetails({ entries }) {
  const pick = (read) => cube(entries.map(read));
  return {
    block_name: pick((entry) => entry.name),
    is_collidable: pick(({ flags }) => flags.collidable),
    is_tool_not_required: pick(({ flags }) => flags.toolNotRequired),
    is_liquid: pick(({ flags }) => flags.liquid),
    is_solid: pick(({ flags }) => flags.solid),
    blocks_light: pick(({ flags }) => flags.blocksLight),
    can_burn: pick(({ flags }) => flags.burns)
  };
}

module.exports = { Observer };

'use strict';
/**
 * The state of an agent by the names of MineRL's engine, as MineStudio reads them: what its window
 * shows, where it is, its statistics, and on request the blocks and the mobs of a box around it.
 */
const { climate } = require('./surroundings');
const { tablesOf } = require('./tables');

const HOTBAR = 36; // window slots; slots 0 to 8 of the state
const FIRST = 9;
const SLOTS = 36;
/** Window slots of the worn items. */
const WORN = { head: 5, chest: 6, legs: 7, feet: 8, offhand: 45 };
const SUN = 15; // the brightest sun
const NOTHING = { type: 'none', quantity: 0 };
/** Most blocks of a box: MineStudio's own is 15 x 15 x 15. */
const MOST_VOXELS = 64 ** 3;

const degrees = (radians) => (radians * 180) / Math.PI;

/** Returns a yaw of the game, -180 to 180 degrees, 0 south and growing to the right. */
function yawOf(entity) {
  const yaw = 180 - degrees(entity.yaw);
  return yaw - 360 * Math.floor((yaw + 180) / 360);
}

function slotsOf(bot) {
  return Array.from({ length: SLOTS }, (_, slot) => {
    const item = bot.inventory.slots[slot < FIRST ? HOTBAR + slot : slot];
    return { slot_id: slot, ...(item ? { type: item.name, quantity: item.count } : NOTHING) };
  });
}

/** Returns the worn and held items; each is a text in JSON, as in MineRL. */
function equipment(bot) {
  const places = { mainhand: HOTBAR + (bot.quickBarSlot ?? 0), ...WORN };
  return Object.fromEntries(Object.entries(places).map(([place, slot]) => {
    const item = bot.inventory.slots[slot];
    return [place, JSON.stringify({ type: item?.name ?? 'air', maxDamage: item?.maxDurability ?? 0,
      damage: item?.durabilityUsed ?? 0 })];
  }));
}

/** Returns the lowest and the highest corner of a box around a place, `[x0, x1, y0, y1, z0, z1]`. */
function corners(feet, [x0, x1, y0, y1, z0, z1]) {
  return [feet.offset(x0, y0, z0), feet.offset(x1, y1, z1)];
}

/** Returns the blocks of a box, `{type, x, y, z}` with places from the feet; air is among them. */
function voxels({ bot }, box) {
  const feet = bot.entity.position.floored();
  const [low, high] = corners(feet, box);
  const { states } = tablesOf(bot.registry);
  const size = (high.x - low.x + 1) * (high.y - low.y + 1) * (high.z - low.z + 1);
  if (!(size > 0) || size > MOST_VOXELS) return [];
  const found = [];
  for (let x = low.x; x <= high.x; x++) {
    for (let y = low.y; y <= high.y; y++) {
      for (let z = low.z; z <= high.z; z++) {
        const column = bot.world.async.columns[`${x >> 4},${z >> 4}`];
        const inside = column !== undefined && y >= 0 && y < 256;
        const state = inside ? column.getBlockStateId({ x: x & 15, y, z: z & 15 }) : 0;
        found.push({ type: states[state]?.name ?? 'air', x: x - feet.x, y: y - feet.y, z: z - feet.z });
      }
    }
  }
  return found;
}

/** Returns the creatures in a box, the nearest first, with places from the agent. */
function mobs({ bot }, box) {
  const here = bot.entity.position;
  const [x0, x1, y0, y1, z0, z1] = box;
  const inside = (at) => at.x >= x0 && at.x <= x1 && at.y >= y0 && at.y <= y1 && at.z >= z0 && at.z <= z1;
  return Object.values(bot.entities)
    .filter((entity) => entity !== bot.entity && entity.isValid && entity.type === 'mob')
    .map((entity) => ({ entity, at: entity.position.minus(here) }))
    .filter(({ at }) => inside(at))
    .sort((a, b) => a.at.norm() - b.at.norm() || a.entity.id - b.entity.id)
    .map(({ entity, at }) => ({ type: entity.name, name: entity.name, x: at.x, y: at.y, z: at.z }));
}

/**
 * Returns the state of an agent.
 *
 * @param {object} boxes `{voxels, mobs}`: each `[x0, x1, y0, y1, z0, z1]` in blocks from the agent,
 *   or undefined for none of them
 */
function stateOf(agent, boxes) {
  const { bot, player, world } = agent;
  const { entity } = bot;
  const air = climate(agent, tablesOf(bot.registry));
  const biome = bot.registry.biomes[air.biome];
  const [lamp, sky, sun] = air.light;
  return {
    inventory: slotsOf(bot),
    equipped_items: equipment(bot),
    isGuiOpen: Boolean(agent.actor.pointer?.window ?? bot.currentWindow),
    xpos: entity.position.x, ypos: entity.position.y, zpos: entity.position.z,
    pitch: -degrees(entity.pitch), yaw: yawOf(entity),
    health: bot.health ?? 0, food_level: bot.food ?? 0,
    biome_id: air.biome, biome_rainfall: biome?.rainfall ?? 0, biome_temperature: air.temperature,
    sea_level: air.sea, light_level: Math.max(lamp, sky - (SUN - sun)), sky_light_level: sky / SUN,
    sun_brightness: sun / SUN, is_raining: Number(air.rain > 0), can_see_sky: Number(air.sky),
    ...world.statistics.of(player),
    ...(boxes.voxels ? { voxels: voxels(agent, boxes.voxels) } : {}),
    ...(boxes.mobs ? { mobs: mobs(agent, boxes.mobs) } : {})
  };
}

module.exports = { stateOf };

'use strict';

/**
 * The mobs of 1.16.5 and their numbers (Minecraft Wiki, page of each mob, Java Edition 1.16):
 * health points, `speed` (the attribute movement_speed), `damage` on normal difficulty with what
 * the kind holds, `follow` (blocks it sees its prey from), natural `armour` points, `xp` of a kill
 * by a player [least, most].
 *
 * `brain` names its ways (walkers.js, floaters.js). `hostile`: gone on peaceful, spawns in the
 * dark, keeps players from sleeping. `undead`: burns by day (`sunproof`: does not). `prey`: whom it
 * attacks unprovoked. `moves`: walk, swim, fly or still. `peaceful`: stays on peaceful all the
 * same. `food`: items in a player's hand that it follows. `panic`: how much faster it flees.
 * `eyes`: height of the eyes in shares of the body.
 */

const PLAYER = ['player'];
const FOLK = ['player', 'villager', 'wandering_trader', 'iron_golem'];

const animal = (health, speed, panic, food, more = {}) => ({
  health, speed, panic, food, brain: 'animal', xp: [1, 3], baby: true, ...more,
});
const monster = (health, speed, damage, more = {}) => ({
  health, speed, damage, brain: 'melee', hostile: true, prey: PLAYER, follow: 16, xp: [5, 5],
  ...more,
});
const dead = (more = {}) => monster(20, 0.23, 3, {
  follow: 35, armour: 2, undead: true, prey: FOLK, eyes: 0.89, baby: true, ...more,
});
const bones = (more = {}) => monster(20, 0.25, 2, {
  brain: 'archer', undead: true, holds: 'bow', prey: ['player', 'iron_golem'], eyes: 0.87, ...more,
});
const fish = (more = {}) => ({
  health: 3, speed: 0.7, brain: 'fish', moves: 'swim', xp: [1, 3], ...more,
});

const ANIMALS = {
  cow: animal(10, 0.2, 2, ['wheat']),
  mooshroom: animal(10, 0.2, 2, ['wheat']),
  pig: animal(10, 0.25, 1.25, ['carrot', 'potato', 'beetroot', 'carrot_on_a_stick']),
  sheep: animal(8, 0.23, 1.25, ['wheat'], { grazes: true }),
  chicken: animal(4, 0.25, 1.4,
    ['wheat_seeds', 'beetroot_seeds', 'melon_seeds', 'pumpkin_seeds'],
    { lays: true, glides: true }),
  rabbit: animal(3, 0.3, 2.2, ['carrot', 'golden_carrot', 'dandelion'], {
    hops: true, stroll: 0.6,
  }),
  horse: animal(22, 0.225, 1.2, ['golden_apple', 'golden_carrot'], { step: 1 }),
  donkey: animal(22, 0.175, 1.2, ['golden_apple', 'golden_carrot'], { step: 1 }),
  mule: animal(22, 0.175, 1.2, ['golden_apple', 'golden_carrot'], { step: 1 }),
  skeleton_horse: animal(15, 0.2, 1.2, [], { step: 1 }),
  zombie_horse: animal(15, 0.2, 1.2, [], { step: 1 }),
  llama: animal(22, 0.175, 1.2, ['hay_block'], { step: 1 }),
  trader_llama: animal(22, 0.175, 1.2, ['hay_block'], { step: 1 }),
  cat: animal(10, 0.3, 1.3, ['cod', 'salmon'], { prey: ['rabbit'], damage: 3 }),
  ocelot: animal(10, 0.3, 1.3, ['cod', 'salmon'], { prey: ['chicken'], damage: 3 }),
  fox: animal(10, 0.3, 1.3, ['sweet_berries'], {
    prey: ['chicken', 'rabbit'], damage: 2, follow: 32, leaps: true,
  }),
  wolf: animal(8, 0.3, 0, [], {
    prey: ['sheep', 'rabbit', 'fox', 'skeleton'], damage: 4, follow: 16, fights: true, pack: true,
    leaps: true,
  }),
  polar_bear: animal(30, 0.25, 0, [], { damage: 6, follow: 20, fights: true }),
  panda: animal(20, 0.15, 0, ['bamboo'], { damage: 6, fights: true }),
  turtle: animal(30, 0.25, 1.2, ['seagrass']),
  parrot: animal(6, 0.2, 1.25, [], { glides: true, baby: false }),
  bee: animal(10, 0.3, 0, ['dandelion', 'poppy'], {
    damage: 2, fights: true, pack: true, glides: true,
  }),
  strider: animal(20, 0.175, 1.65, ['warped_fungus'], { fireproof: true }),
  bat: { health: 6, speed: 0.1, brain: 'bat', moves: 'fly', xp: [0, 0] },
  squid: fish({ health: 10, brain: 'squid' }),
  cod: fish(),
  salmon: fish(),
  tropical_fish: fish(),
  pufferfish: fish(),
  dolphin: fish({ health: 10, xp: [0, 0], breathes: true }),
  villager: {
    health: 20, speed: 0.5, stroll: 0.6, panic: 1, brain: 'villager', xp: [0, 0], food: [],
    eyes: 0.83, baby: true,
  },
  wandering_trader: {
    health: 20, speed: 0.5, stroll: 0.6, panic: 1, brain: 'villager', xp: [0, 0], food: [],
    eyes: 0.83,
  },
  iron_golem: {
    health: 100, speed: 0.25, damage: 15, follow: 16, resistance: 1, step: 1, brain: 'melee',
    xp: [0, 0], prey: ['hostile'], spares: ['creeper'], fights: true, stroll: 0.6,
    unhurtByFall: true, throws: 0.4, scatter: true,
  },
  snow_golem: {
    health: 4, speed: 0.2, follow: 10, brain: 'snow_golem', xp: [0, 0], prey: ['hostile'],
    hurtByWater: true, eyes: 0.89,
  },
};

const MONSTERS = {
  zombie: dead(),
  husk: dead({ sunproof: true, bite: 'hunger' }),
  drowned: dead({ swims: true }),
  zombie_villager: dead(),
  giant: dead({ health: 100, speed: 0.5, damage: 50, armour: 0, sunproof: true, baby: false }),
  zombified_piglin: dead({
    damage: 8, holds: 'golden_sword', neutral: true, pack: true, fireproof: true, sunproof: true,
  }),
  skeleton: bones(),
  stray: bones({ arrow: 'slowness' }),
  illusioner: bones({ health: 32, speed: 0.5, undead: false, follow: 18 }),
  wither_skeleton: monster(20, 0.25, 8, {
    holds: 'stone_sword', undead: true, sunproof: true, fireproof: true, bite: 'wither',
    eyes: 0.875, prey: ['player', 'iron_golem'],
  }),
  spider: monster(16, 0.3, 2, {
    dayNeutral: true, climbs: true, leaps: true, eyes: 0.72, prey: ['player', 'iron_golem'],
  }),
  cave_spider: monster(12, 0.3, 2, {
    dayNeutral: true, climbs: true, leaps: true, bite: 'poison', eyes: 0.9,
    prey: ['player', 'iron_golem'],
  }),
  creeper: monster(20, 0.25, 0, { brain: 'creeper', stroll: 0.8 }),
  enderman: monster(40, 0.3, 7, {
    brain: 'enderman', neutral: true, follow: 64, step: 1, hurtByWater: true, eyes: 0.88,
  }),
  silverfish: monster(8, 0.25, 1, { prey: FOLK }),
  endermite: monster(8, 0.25, 2, { xp: [3, 3] }),
  vindicator: monster(24, 0.35, 13, { follow: 12, holds: 'iron_axe', prey: FOLK, illager: true }),
  pillager: monster(24, 0.35, 4, {
    brain: 'archer', follow: 32, holds: 'crossbow', prey: FOLK, illager: true, standing: true,
  }),
  evoker: monster(24, 0.5, 6, {
    brain: 'evoker', follow: 12, prey: FOLK, illager: true, xp: [10, 10],
  }),
  witch: monster(26, 0.25, 6, { brain: 'witch', illager: true }),
  ravager: monster(100, 0.3, 12, {
    follow: 32, resistance: 0.75, knock: 1.5, step: 1, prey: FOLK, illager: true, xp: [20, 20],
  }),
  vex: monster(14, 0.35, 9, { brain: 'vex', moves: 'fly', holds: 'iron_sword', xp: [3, 3] }),
  piglin: monster(16, 0.35, 8, {
    holds: 'golden_sword', sparesGold: true, pack: true, prey: ['player', 'wither_skeleton'],
    baby: true, peaceful: true,
  }),
  piglin_brute: monster(50, 0.35, 13, {
    holds: 'golden_axe', pack: true, xp: [20, 20], prey: ['player', 'wither_skeleton'],
    peaceful: true,
  }),
  hoglin: monster(40, 0.3, 6, {
    resistance: 0.6, throws: 0.5, scatter: true, baby: true, peaceful: true,
  }),
  zoglin: monster(40, 0.3, 6, {
    resistance: 0.6, throws: 0.5, scatter: true, undead: true, sunproof: true, fireproof: true,
    prey: FOLK,
  }),
  blaze: monster(20, 0.23, 6, {
    brain: 'blaze', moves: 'fly', follow: 48, fireproof: true, hurtByWater: true, xp: [10, 10],
  }),
  ghast: monster(10, 0.3, 6, { brain: 'ghast', moves: 'fly', follow: 64, fireproof: true }),
  phantom: monster(20, 0.5, 6, { brain: 'phantom', moves: 'fly', follow: 64, undead: true }),
  slime: monster(1, 0.2, 0, { brain: 'slime', prey: ['player', 'iron_golem'], eyes: 0.625 }),
  magma_cube: monster(1, 0.2, 0, {
    brain: 'slime', prey: ['player', 'iron_golem'], fireproof: true, unhurtByFall: true,
    eyes: 0.625,
  }),
  guardian: monster(30, 0.5, 6, { brain: 'guardian', moves: 'swim', breathes: true, xp: [10, 10],
    charge: 80, prey: ['player', 'squid'], eyes: 0.5 }),
  elder_guardian: monster(80, 0.3, 8, { brain: 'guardian', moves: 'swim', breathes: true,
    xp: [10, 10], charge: 60, prey: ['player', 'squid'], eyes: 0.5 }),
  shulker: monster(30, 0, 4, { brain: 'shulker', moves: 'still', peaceful: true, resistance: 1,
    armour: 20, eyes: 0.5 }),
  wither: monster(300, 0.6, 8, {
    brain: 'wither', moves: 'fly', follow: 40, armour: 4, fireproof: true, undead: true,
    sunproof: true, xp: [50, 50], prey: ['player', 'living'], unhurtByFall: true,
  }),
  ender_dragon: monster(200, 0, 10, { brain: 'dragon', moves: 'still', awake: 200, xp: [12000, 12000], prey: [],
    peaceful: true }),
};

const DEFAULTS = {
  follow: 16, damage: 0, armour: 0, resistance: 0, panic: 0, stroll: 1, food: [], prey: [],
  step: 0.6, moves: 'walk', eyes: 0.85, hostile: false,
};

const KINDS = Object.fromEntries(Object.entries({ ...ANIMALS, ...MONSTERS }).map(([name, row]) => [
  name, Object.freeze({ name, ...DEFAULTS, ...row }),
]));

/** Health, damage and natural armour of slimes and magma cubes by their size (1, 2 or 4). */
function sized(name, size) {
  if (name === 'slime') return { health: size * size, damage: size > 1 ? size : 0, armour: 0 };
  return { health: size * size, damage: size + 2, armour: size * 3 };
}

module.exports = { KINDS, sized };

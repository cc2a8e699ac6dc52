'use strict';

/**
 * The visible properties of a mob: the metadata of protocol 754 (wiki.vg, "Entity metadata",
 * 1.16.5), and those it spawns with: its colour, size, age and held items.
 */

const { COLOURS, SHORN } = require('../colours');
const { sized } = require('./kinds');

const KEYS = { flags: 0, name: 2, nameShown: 3, health: 8, wool: 16, creeper: 15, size: 15 };
/** Metadata index of the child flag by kind; 15 for all others. */
const BABY = { piglin: 16 };
/**
 * Colours of sheep in the shares of the game: 81.8 % white, 5 % each of three, 3 % brown, the rest
 * pink.
 */
const FLEECES = [
  ['black', 0.05],
  ['gray', 0.05],
  ['light_gray', 0.05],
  ['brown', 0.03],
  ['pink', 0.00164],
];

function fleece() {
  let draw = Math.random();
  const found = FLEECES.find(([, share]) => (draw -= share) < 0);
  return found ? found[0] : 'white';
}

/** Draws the properties that differ between mobs of a kind; options set some of them. */
function born(mob, options) {
  const { name, kind } = mob;
  if (name === 'sheep') mob.colour = options.colour ?? fleece();
  if (kind.brain === 'slime') mob.size = options.size ?? [1, 2, 4][Math.floor(Math.random() * 3)];
  mob.baby = Boolean(options.baby) && kind.baby === true;
  mob.age = mob.baby ? -24000 : 0;
}

/** Computes a mob's body and strength from its kind, size and age. */
function build(mob, def) {
  const { kind, size } = mob;
  const scale = size ? size / 4 : mob.baby ? 0.5 : 1;
  mob.width = def.width * scale;
  mob.height = def.height * scale;
  mob.eyes = mob.height * kind.eyes;
  const numbers = size ? sized(mob.name, size) : kind;
  mob.maxHealth = numbers.health;
  mob.damage = numbers.damage;
  mob.armourPoints = numbers.armour;
  mob.knockbackResistance = kind.resistance;
  // Young undead are 1.5 times as fast.
  mob.pace = size ? 0.2 + 0.1 * size : kind.speed * (mob.baby && kind.undead ? 1.5 : 1);
  mob.fireProof = kind.fireproof === true;
  mob.xpReward = mob.baby && !kind.hostile ? [0, 0] : size ? [size, size] : kind.xp;
}

/** Returns the metadata of a mob as it is now. */
function metadataOf(mob) {
  const rows = [
    { key: KEYS.flags, type: 0, value: mob.burning ? 1 : 0 },
    { key: KEYS.health, type: 2, value: mob.health },
  ];
  if (mob.gamutName) {
    rows.push(
      { key: KEYS.name, type: 5, value: JSON.stringify({ text: mob.gamutName }) },
      { key: KEYS.nameShown, type: 7, value: true },
    );
  }
  if (mob.baby) rows.push({ key: BABY[mob.name] ?? 15, type: 7, value: true });
  if (mob.name === 'sheep') {
    rows.push({
      key: KEYS.wool,
      type: 0,
      value: COLOURS.indexOf(mob.colour) | (mob.shorn ? SHORN : 0),
    });
  }
  if (mob.size) rows.push({ key: KEYS.size, type: 1, value: mob.size });
  if (mob.name === 'creeper')
    rows.push({ key: KEYS.creeper, type: 1, value: mob.mind.lit ? 1 : -1 });
  rows.push(...madeOf(mob));
  return rows;
}

/** Flags of what can be tamed, under key 16: of pets and of horses; pigs and striders have a saddle. */
const PETS = new Set(['wolf', 'cat', 'parrot']);
const HORSES = new Set(['horse', 'donkey', 'mule', 'skeleton_horse', 'zombie_horse', 'llama', 'trader_llama']);
const SADDLES = { pig: 16, strider: 18 };
/** The pumpkin on a snow golem's head, under key 15. */
const PUMPKIN = 16;

/** Returns the rows of what players made of a mob: tame, sitting, saddled, without its pumpkin. */
function madeOf(mob) {
  const { name } = mob;
  if (PETS.has(name))
    return [{ key: 16, type: 0, value: (mob.sitting ? 1 : 0) | (mob.tame ? 4 : 0) }];
  if (HORSES.has(name))
    return [{ key: 16, type: 0, value: (mob.tame ? 2 : 0) | (mob.saddled ? 4 : 0) }];
  if (name === 'snow_golem') return [{ key: 15, type: 0, value: mob.bare ? 0 : PUMPKIN }];
  return SADDLES[name] ? [{ key: SADDLES[name], type: 7, value: Boolean(mob.saddled) }] : [];
}

/**
 * Returns the held and worn items of a mob, by the protocol's numbers: hand, other hand, feet ...
 * head.
 */
function equipmentOf(mob, items) {
  const worn = [];
  if (mob.kind.holds) worn[0] = items.make(mob.kind.holds);
  if (mob.helmet) worn[5] = items.make(mob.helmet);
  return worn;
}

module.exports = { KEYS, born, build, metadataOf, equipmentOf };

'use strict';

/** Commands about players and creatures: /summon /kill /tp /effect /xp /gamemode /tag ... */

const { Vec3 } = require('vec3');
const { UserError } = require('flying-squid');
const { surface } = require('../../world');
const { COLOURS, SHORN } = require('../colours');
const { effectsOf } = require('../effects');
const {
  positionOf, blockOf, turnOf, towards, origin, entitiesOf, someOf, playersOf, called, MODES,
} = require('./source');
const { KINDS } = require('../mobs/kinds');
const { NUMBERS } = require('../trading');
const { stackOfTag, putMob } = require('./items');
const { numberOf } = require('../hanging');

const HANDS = ['weapon.mainhand', 'weapon.offhand'];
const VEHICLES = new Set(['boat', 'minecart']);
const ARMOUR = ['armor.feet', 'armor.legs', 'armor.chest', 'armor.head'];
const WOOL = 16; // metadata index of a sheep's colour
const TRIES = 1000; // places that /spreadplayers tries for one entity

/** Returns the text of a name in JSON; a text that is not JSON is the name itself. */
function textOf(json) {
  try {
    const data = JSON.parse(json);
    return typeof data === 'object' ? String(data?.text ?? '') : String(data);
  } catch {
    return json;
  }
}

/** Returns the name of the player that the tag Owner names, by name or UUID; null for nobody. */
function ownerOf(serv, { Owner }) {
  const given = Owner?.value;
  const words = Array.isArray(given) ? uuidOf(given) : String(given);
  const found = serv.players.find(({ username, uuid }) => [username, uuid].includes(words));
  return found?.username ?? null;
}

/** Returns a UUID of four whole numbers as a text. */
function uuidOf(numbers) {
  const hex = numbers.map((n) => (n >>> 0).toString(16).padStart(8, '0')).join('');
  return hex.replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, '$1-$2-$3-$4-$5');
}

function dress(serv, mob, tags) {
  const equip = (slots, tag) =>
    (tag?.value.value ?? []).forEach((value, i) => {
      const stack = stackOfTag(serv, { value });
      if (stack) putMob(serv, mob, slots[i], stack);
    });
  equip(HANDS, tags.HandItems);
  equip(ARMOUR, tags.ArmorItems);
  if (mob.name === 'sheep' && tags.Sheared?.value) {
    mob.shorn = true;
    serv.survival.setMetadata(mob, WOOL, 0, COLOURS.indexOf(mob.colour) | SHORN);
  }
  if (tags.Tame?.value || tags.Owner) serv.survival.tameMob(mob, ownerOf(serv, tags));
  if (tags.Sitting?.value) mob.sitting = true;
  if (tags.Saddle?.value || tags.SaddleItem) mob.saddled = true;
  if (tags.PlayerCreated?.value) mob.built = true;
  if (tags.Pumpkin?.value === 0) mob.bare = true;
  if (tags.Age && mob.baby) mob.age = tags.Age.value;
  if (tags.Temper) mob.temper = tags.Temper.value;
  if (tags.InLove) mob.loveUntil = serv.survival.tick + tags.InLove.value;
  serv.survival.mobs.refresh(mob);
  if (tags.NoAI?.value) mob.ai = null;
  if (tags.Health) mob.updateHealth(tags.Health.value);
  if (tags.Fire) mob.fireTicks = tags.Fire.value;
  for (const { Id, Amplifier, Duration } of tags.ActiveEffects?.value.value ?? []) {
    if (!serv.registry.effects[Id.value]) throw new UserError(`Unknown effect: ${Id.value}`);
    mob.addEffect(Id.value, {
      amplifier: Amplifier?.value ?? 0,
      duration: Duration?.value ?? 600,
    });
  }
}

/** Returns what a villager's tags say about its trade, or nothing. */
function merchantOf({ VillagerData, Profession }) {
  const word = (tag) => tag && String(tag.value).replace(/^minecraft:/, '');
  const { type, profession, level } = VillagerData?.value ?? {};
  const job = word(profession) ?? word(Profession);
  if (!VillagerData && !job) return undefined;
  if (job !== undefined && !NUMBERS.includes(job)) throw new UserError(`Unknown profession: ${job}`);
  return { profession: job, level: Math.max(1, Math.min(5, level?.value ?? 1)), type: word(type) };
}

/** Returns the offers of a tag. */
function offersOf(serv, { value }) {
  const stack = (tag) => tag && stackOfTag(serv, tag);
  return (value.Recipes?.value.value ?? []).map((row) => {
    const wants = [row.buy, row.buyB].map((tag) => tag && stack({ value: tag.value })).filter(Boolean);
    const gives = row.sell && stack(row.sell);
    if (!gives || wants.length === 0) throw new UserError('An offer needs the tags buy and sell');
    return {
      wants: wants.map((item) => ({ name: item.name, count: item.count })),
      gives: serv.survival.items.toJson(gives), uses: row.uses?.value ?? 0, most: row.maxUses?.value ?? 4,
      xp: row.xp?.value ?? 1, share: row.priceMultiplier?.value ?? 0, demand: row.demand?.value ?? 0,
      pays: row.rewardExp?.value !== 0,
    };
  });
}

function summon(serv, source, { kind, at, nbt }) {
  const { survival } = serv;
  const position = at ? positionOf(source, at) : source.position.clone();
  if (position.y < -64 || position.y > 320) throw new UserError('Invalid position for summon');
  const tags = nbt?.value ?? {};
  serv.columnAt(serv.overworld, Math.floor(position.x) >> 4, Math.floor(position.z) >> 4);
  if (kind === 'item') {
    const stack = tags.Item && stackOfTag(serv, tags.Item);
    if (!stack) throw new UserError('Unable to summon entity: an item needs the tag Item');
    survival.drop(position, stack);
    return `Summoned new ${stack.name}`;
  }
  if (kind === 'tnt') {
    survival.spawnTnt(position, tags.Fuse?.value ?? 0);
    return 'Summoned new tnt';
  }
  if (VEHICLES.has(kind)) {
    const item = kind === 'boat' ? `${tags.Type?.value ?? 'oak'}_boat` : kind;
    const vehicle = survival.spawnVehicle(kind, position, { item });
    vehicle.tags = new Set(tags.Tags?.value.value ?? []);
    return `Summoned new ${kind}`;
  }
  if (kind === 'item_frame' || kind === 'painting') {
    const item = tags.Item && stackOfTag(serv, tags.Item);
    // Paintings count the four sides from the south, frames all six as blocks do.
    const number = tags.Facing?.value ?? 0;
    const face = kind === 'painting' ? [3, 4, 2, 5][number & 3] : Math.abs(number % 6);
    const frame = survival.hang(kind, position.floored().toArray(), face, {
      item, rotation: (tags.ItemRotation?.value ?? 0) & 7, fixed: Boolean(tags.Fixed?.value),
      motive: Math.max(0, numberOf(String(tags.Motive?.value).replace(/^minecraft:/, ''))),
    });
    frame.tags = new Set(tags.Tags?.value.value ?? []);
    return `Summoned new ${kind}`;
  }
  if (serv.difficulty === 0 && isHostile(kind))
    throw new UserError(`Unable to summon entity: ${kind} does not live in peaceful difficulty`);
  const mob = survival.spawnMob(kind, position, {
    baby: Boolean(tags.IsBaby?.value) || tags.Age?.value < 0,
    colour: tags.Color && COLOURS[tags.Color.value & 15],
    size: tags.Size && Math.max(1, tags.Size.value + 1),
    name: tags.CustomName && textOf(tags.CustomName.value),
    merchant: merchantOf(tags),
  });
  if (tags.Offers && mob.merchant) mob.merchant.offers = offersOf(serv, tags.Offers);
  mob.tags = new Set(tags.Tags?.value.value ?? []);
  dress(serv, mob, tags);
  return `Summoned new ${kind}`;
}

function isHostile(kind) {
  return Boolean(KINDS[kind]?.hostile) && !KINDS[kind].peaceful;
}

function kill(serv, source, { targets }) {
  // There may be none: then nobody is left to kill.
  const found = targets ? entitiesOf(serv, source, targets) : someOf(serv, source);
  for (const entity of found) {
    if (entity.type === 'player' || entity.type === 'mob')
      serv.survival.hurt(entity, { amount: 1e6, cause: 'command' });
    else serv.survival.removeEntity(entity);
  }
  return `Killed ${found.length} entities`;
}

/** Moves an entity, with its view if `turn` is given. */
function move(serv, entity, position, turn) {
  if (entity.type !== 'player') {
    serv.survival.dismount(entity, true);
    entity.position = position.clone();
    if (turn) entity.yaw = Math.round((turn[0] * 256) / 360);
    if (entity.resting !== undefined) entity.resting = false;
    return;
  }
  serv.survival.dismount(entity, true);
  entity.sendPosition(position.clone(), false, true);
  entity.sendSelfPosition(undefined, turn);
}

function tp(serv, source, { targets, at, to, turn, facing }) {
  const found = someOf(serv, source, targets);
  const [target] = to ? someOf(serv, source, to) : [];
  const position = target ? target.position : positionOf(source, at);
  for (const entity of found) {
    const look = facing ? towards(origin(source), positionOf(source, facing)) : undefined;
    move(serv, entity, position, turn ? turnOf(source, turn) : look);
  }
  return `Teleported ${called(found)}`;
}

function effect(serv, source, { action, targets, effect: name, seconds = 30, level = 0 }) {
  const found = someOf(serv, source, targets).filter((entity) => entity.addEffect);
  const def = name && effectsOf(serv.registry)[name];
  for (const entity of found) {
    if (action === 'give') entity.addEffect(def.id, { duration: seconds * 20, amplifier: level });
    else if (def) entity.removeEffect(def.id);
    else entity.clearEffects();
  }
  return `${action === 'give' ? 'Applied' : 'Removed'} ${name ?? 'every effect'}: ${called(found)}`;
}

function xp(serv, source, { action, targets, amount, unit = 'points' }) {
  const players = playersOf(serv, source, targets);
  for (const player of players) {
    const { points, level } = player.experience;
    if (unit === 'levels') player.setXpLevel(action === 'add' ? level + amount : amount);
    else player.setXpPoints(action === 'add' ? points + amount : amount);
  }
  return `Gave ${amount} experience ${unit} to ${called(players)}`;
}

function gamemode(serv, source, { mode, targets }) {
  const players = playersOf(serv, source, targets);
  for (const player of players) player.setGameMode(MODES.indexOf(mode));
  return `Set the game mode of ${called(players)} to ${mode}`;
}

function tag(serv, source, { targets, action, tag: word }) {
  const found = someOf(serv, source, targets);
  for (const entity of found) {
    entity.tags ??= new Set();
    if (action === 'add') entity.tags.add(word);
    else entity.tags.delete(word);
  }
  return `${action === 'add' ? 'Added' : 'Removed'} tag ${word}: ${called(found)}`;
}

function spreadplayers(serv, source, { center, apart, range, targets }) {
  const found = someOf(serv, source, targets);
  const middle = positionOf(source, [center[0], ['', 0], center[1]]);
  const places = [];
  for (const entity of found) {
    const place = aPlace(serv, middle, range, (at) =>
      places.every((other) => Math.hypot(other.x - at.x, other.z - at.z) >= apart),
    );
    if (!place) {
      throw new UserError(
        `Could not spread ${found.length} entities around ${middle.x}, ${middle.z} (too many `
          + 'entities for space, or no ground)',
      );
    }
    places.push(place);
    move(serv, entity, place);
  }
  return `Spread ${found.length} entities around ${middle.x}, ${middle.z}`;
}

function aPlace(serv, middle, range, accepts) {
  const { blocks } = serv.survival;
  for (let i = 0; i < TRIES; i++) {
    const x = Math.floor(middle.x + (Math.random() * 2 - 1) * range);
    const z = Math.floor(middle.z + (Math.random() * 2 - 1) * range);
    const column = serv.columnAt(serv.overworld, x >> 4, z >> 4);
    const y = surface(column, x & 15, z & 15);
    const at = new Vec3(x + 0.5, y, z + 0.5);
    if (accepts(at) && !blocks.at(x, y - 1, z).liquid) return at;
  }
  return null;
}

/** Teleports entities to the ground of the nearest place of a biome; MineStudio's engine has it. */
function teleportbiome(serv, source, { targets, biome, at }) {
  const found = someOf(serv, source, targets);
  const from = at ? positionOf(source, at) : source.position;
  const place = serv.gamut.generator.nearestBiome?.(biome, from.x, from.z) ?? null;
  if (place === null) throw new UserError(`Could not find a biome of type ${biome} within reasonable distance`);
  const { x, z } = place;
  const y = surface(serv.columnAt(serv.overworld, x >> 4, z >> 4), x & 15, z & 15);
  for (const entity of found) move(serv, entity, new Vec3(x + 0.5, y, z + 0.5));
  return `Teleported ${called(found)}`;
}

function spawnpoint(serv, source, { targets, at }) {
  const players = playersOf(serv, source, targets);
  const place = (at ? blockOf(source, at) : source.position.floored()).offset(0.5, 0, 0.5);
  for (const player of players) player.spawnPoint = place.clone();
  return `Set spawn point to ${place.x}, ${place.y}, ${place.z} for ${called(players)}`;
}

function setworldspawn(serv, source, { at }) {
  const everyone = { select: 'a' };
  return spawnpoint(serv, source, { targets: everyone, at });
}

module.exports = {
  summon, kill, tp, teleportbiome, effect, xp, gamemode, tag, spreadplayers, spawnpoint, setworldspawn,
};

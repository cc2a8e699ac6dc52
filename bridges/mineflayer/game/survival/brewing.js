'use strict';

/**
 * Brewing stands, bottles of water, and potions drunk and thrown (Minecraft Wiki, "Brewing Stand"
 * and "Potion", 1.16). Potions and recipes are potions.json. Slots of a stand: 0 to 2 bottles, 3
 * ingredient, 4 blaze powder, which brews 20 times; 400 ticks. A lingering potion acts once, as a
 * splash potion does. Event: 'gamut:brewed' {potions, x, y, z}.
 */

const { Vec3 } = require('vec3');
const { effects: EFFECTS, recipes: RECIPES, bottles: BOTTLES } = require('./potions.json');

const name = 'brewing';
const [INGREDIENT, FUEL] = [3, 4];
const TIME = 400;
const CHARGES = 20;
const STAND = 'brewing_stand';
const THROWN = ['splash_potion', 'lingering_potion'];
/** Of a thrown bottle, in blocks per tick. */
const SPEED = 0.5;

const potionOf = (item) => (item?.nbt?.value?.Potion?.value ?? '').replace(/^minecraft:/, '');

function tagOf(potion) {
  return { type: 'compound', name: '', value: { Potion: { type: 'string', value: `minecraft:${potion}` } } };
}

const made = new Map(RECIPES.map(([from, by, to]) => [`${from} ${by}`, to]));
for (const from of Object.keys(EFFECTS)) {
  for (const [by, prefix] of [['redstone', 'long'], ['glowstone_dust', 'strong']]) {
    const to = `${prefix}_${from}`;
    if (EFFECTS[to]) made.set(`${from} ${by}`, to);
  }
}
const INGREDIENTS = new Set([...made.keys()].map((key) => key.split(' ')[1]).concat(BOTTLES.map(([, by]) => by)));

/** Returns `[item name, potion]` of what an ingredient makes of a bottle, or null. */
function brewed(item, ingredient) {
  const potion = potionOf(item);
  if (!potion) return null;
  const bottle = BOTTLES.find(([from, by]) => from === item.name && by === ingredient);
  if (bottle) return [bottle[2], potion];
  const to = made.get(`${potion} ${ingredient}`);
  return to ? [item.name, to] : null;
}

const isBottle = ({ name: kind }) => kind === 'potion' || kind === 'glass_bottle' || THROWN.includes(kind);

/** Whether a slot of a stand takes an item. */
function accepts(index, item) {
  if (index < INGREDIENT) return isBottle(item);
  return index === FUEL ? item.name === 'blaze_powder' : INGREDIENTS.has(item.name);
}

/** Returns what each bottle of a stand becomes; empty if nothing does. */
function work({ slots }) {
  const ingredient = slots[INGREDIENT];
  if (!ingredient) return [];
  return [0, 1, 2].map((index) => slots[index] && brewed(slots[index], ingredient.name)).filter(Boolean);
}

function less(survival, stand, index) {
  const item = stand.slots[index];
  survival.setContainerSlot(stand, index, item.count > 1 ? survival.items.copy(item, item.count - 1) : null);
}

function finish(serv, stand) {
  const { survival } = serv;
  const ingredient = stand.slots[INGREDIENT].name;
  const potions = [];
  for (let index = 0; index < INGREDIENT; index++) {
    const item = stand.slots[index];
    const result = item && brewed(item, ingredient);
    if (!result) continue;
    survival.setContainerSlot(stand, index, survival.items.make(result[0], 1, tagOf(result[1])));
    potions.push(result[1]);
  }
  less(survival, stand, INGREDIENT);
  const { x, y, z } = stand;
  serv.emit('gamut:brewed', { potions, x, y, z });
}

function show(stand) {
  for (const player of stand.viewers.keys()) {
    for (const [property, value] of [[0, stand.time], [1, stand.charges]]) {
      player._client.write('craft_progress_bar', { windowId: player.openWindow.id, property, value });
    }
  }
}

/** Shows which places of a stand hold bottles. */
function showBottles(survival, stand) {
  const { x, y, z, slots } = stand;
  const info = survival.blocks.at(x, y, z);
  if (info.name !== STAND) return;
  const props = Object.fromEntries([0, 1, 2].map((index) => [`has_bottle_${index}`, slots[index] !== null]));
  if (Object.entries(props).some(([key, value]) => info.props[key] !== value))
    survival.blocks.set(x, y, z, survival.blocks.changed(info, props));
}

/** Runs one tick; returns whether anything is left to do. */
function tickStand(serv, stand) {
  const { survival } = serv;
  if (stand.charges === 0 && stand.slots[FUEL]) {
    stand.charges = CHARGES;
    less(survival, stand, FUEL);
  }
  const possible = work(stand).length > 0;
  const ingredient = stand.slots[INGREDIENT]?.name ?? null;
  if (stand.time > 0 && (!possible || ingredient !== stand.ingredient)) stand.time = 0;
  else if (stand.time > 0) {
    if (--stand.time === 0) finish(serv, stand);
  } else if (possible && stand.charges > 0) {
    stand.charges--;
    stand.time = TIME;
    stand.ingredient = ingredient;
  }
  showBottles(survival, stand);
  show(stand);
  return stand.time > 0 || work(stand).length > 0;
}

function prepare(stand) {
  stand.time ??= 0;
  stand.charges ??= 0;
  return stand;
}

function open(serv, { player, x, y, z, info }) {
  const { survival } = serv;
  const stand = prepare(survival.container(x, y, z));
  survival.openWindow(player, {
    kind: STAND,
    title: info.def.displayName,
    place: new Vec3(x, y, z),
    cells: [[x, y, z]],
    slots: survival.containerSlots(stand).map((slot, index) => ({
      ...slot,
      limit: index < INGREDIENT ? 1 : 64,
      set: (item) => {
        slot.set(item);
        survival.stands.add(stand);
      },
    })),
    quick: (item) => {
      if (isBottle(item)) return [0, 1, 2];
      if (item.name === 'blaze_powder' && !stand.slots[FUEL]) return [FUEL];
      return INGREDIENTS.has(item.name) ? [INGREDIENT] : [];
    },
    viewed: (viewer, opens) => {
      if (opens) stand.viewers.set(viewer, 0);
      else stand.viewers.delete(viewer);
    },
  });
  show(stand);
  return true;
}

/** Gives an entity the effects of a potion; `share` of them, by how near a splash is. */
function affect(survival, entity, potion, share = 1, by = null) {
  for (const [effect, amplifier, ticks] of EFFECTS[potion] ?? []) {
    const { id } = survival.registry.effectsByName[effect];
    if (ticks === 0) instant(survival, entity, effect, amplifier, share, by);
    else if (share * ticks > 20) entity.addEffect(id, { amplifier, duration: Math.floor(share * ticks) });
  }
}

/** Heals the living and harms the undead, or the other way round. */
function instant(survival, entity, effect, amplifier, share, by) {
  const heals = (effect === 'InstantHealth') !== Boolean(entity.kind?.undead);
  if (!heals) {
    survival.hurt(entity, { amount: 6 * 2 ** amplifier * share, cause: 'magic', by });
    return;
  }
  const most = entity.type === 'player' ? 20 : entity.maxHealth || 20;
  if (entity.health > 0) entity.updateHealth(Math.min(most, entity.health + 4 * 2 ** amplifier * share));
}

function throwBottle(serv, { player, slot, item }) {
  const { yaw, pitch } = player.facing;
  // A bottle is thrown 20 degrees above where its thrower looks.
  const up = pitch - (20 * Math.PI) / 180;
  const direction = new Vec3(-Math.sin(yaw) * Math.cos(pitch), -Math.sin(up), Math.cos(yaw) * Math.cos(pitch));
  const velocity = direction.scaled(SPEED / (direction.norm() || 1));
  const from = player.position.offset(0, player.crouching ? 1.17 : 1.52, 0);
  serv.survival.mobs.missiles.shoot('potion', player, from, velocity, { potion: potionOf(item) || 'water' });
  if (player.gameMode !== 1) player.useUp(slot);
  serv.emit('gamut:thrown', { player, item: item.name });
  return true;
}

/** Fills a bottle from the water that a player looks at. */
function fillBottle(serv, { player, slot }) {
  const { survival } = serv;
  const found = survival.inSight(player, (info) => info.name === 'water' || Boolean(info.props.waterlogged));
  if (!found || found.solid) return false;
  const bottle = survival.items.make('potion', 1, tagOf('water'));
  player.useUp(slot);
  if (!player.inventory.slots[slot]) player.setSlot(slot, bottle);
  else survival.giveOrToss(player, bottle);
  serv.emit('gamut:filled', { player, item: 'potion' });
  return true;
}

function server(serv) {
  const { survival } = serv;
  survival.stands = new Set();
  survival.drinkPotion = (player, item) => affect(survival, player, potionOf(item));
  survival.splash = (entity, potion, share, by) => affect(survival, entity, potion, share, by);
  survival.onUseBlock(STAND, (call) => open(serv, call));
  survival.onUseItem(THROWN, (call) => throwBottle(serv, call));
  survival.onUseItem('glass_bottle', (call) => fillBottle(serv, call));
  survival.onUseItemOn('glass_bottle', (call) => fillBottle(serv, call));
  survival.onUseItemOn(['potion', ...THROWN], () => false);
  survival.onTick(() => {
    for (const stand of survival.stands) {
      const alive = survival.container(stand.x, stand.y, stand.z) === stand;
      if (!alive || !tickStand(serv, prepare(stand))) survival.stands.delete(stand);
    }
  });
}

/** Contents of stands are saved by containers.js; here only those at work are found again. */
function load(serv) {
  const { survival } = serv;
  survival.stands.clear();
  for (const container of survival.containers.values()) {
    if (container.kind === STAND) survival.stands.add(prepare(container));
  }
}

module.exports = { name, server, load, accepts, brewed, EFFECTS };

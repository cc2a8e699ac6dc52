'use strict';

/**
 * Blocks that react to a click with or without an item, and have no window: composters (their chances
 * are a table, compost.json), cauldrons, flower pots, campfires, jukeboxes, bells and note blocks
 * (Minecraft Wiki, pages of the blocks, Java Edition 1.16). `survival.fixtures` has the items in
 * campfires and jukeboxes by place: `"x,y,z": {kind, items, ready}`.
 *
 * Events: 'gamut:counted' {player, statistic}, a statistic of the game by its name.
 *
 * Simplified: note blocks and bells make no sound, hoppers do not reach composters, and cauldrons clean nothing.
 */

const { Vec3 } = require('vec3');
const { smelted } = require('./smelting');
const { rows: COMPOST } = require('./compost.json');

const name = 'fixtures';
const FULL = 7; // layers of compost of which one turns into bone meal
const READY = 8;
const RIPENS = 20; // ticks
const COOKS = 600; // ticks on a campfire
const PLACES = 4; // for food on a campfire
const NOTES = 25;
const RINGS = 50; // ticks
const CAULDRON = 3; // bottles of water

const CHANCES = COMPOST.map(([chance, pattern]) => [chance, new RegExp(`^(${pattern})$`)]);
const WATER = () => ({ type: 'compound', name: '', value: { Potion: { type: 'string', value: 'minecraft:water' } } });

const keyOf = ({ x, y, z }) => `${x},${y},${z}`;

/** Returns the items of a fixture, which is made if it is not there yet. */
function contents(survival, kind, call) {
  const key = keyOf(call);
  if (!survival.fixtures.has(key)) survival.fixtures.set(key, { kind, items: [], ready: [] });
  return survival.fixtures.get(key);
}

function pay({ player, slot }) {
  if (player.gameMode !== 1) player.useUp(slot);
}

const change = ({ blocks }, { x, y, z, info }, props) => blocks.set(x, y, z, blocks.changed(info, props));

/** What a click does, by the name of a block: whether it did something. */
const USES = {
  composter(serv, call) {
    const { survival } = serv;
    const { x, y, z, info: { props: { level } }, item } = call;
    if (level === READY) {
      survival.popItem(x, y + 0.6, z, survival.items.make('bone_meal'));
      change(survival, call, { level: 0 });
      return true;
    }
    const chance = item && CHANCES.find(([, pattern]) => pattern.test(item.name))?.[0];
    if (!chance || level === FULL) return Boolean(chance);
    pay(call);
    if (level > 0 && Math.random() >= chance) return true;
    change(survival, call, { level: level + 1 });
    if (level + 1 === FULL) survival.schedule(RIPENS, 'compost', [x, y, z]);
    return true;
  },

  cauldron(serv, call) {
    const { survival } = serv;
    const { player, slot, item, info: { props: { level } } } = call;
    const water = item?.name === 'potion' && /(^|:)water$/.test(item.nbt?.value.Potion?.value ?? '');
    const [now, gives, statistic] = {
      water_bucket: [level < CAULDRON && CAULDRON, 'bucket', 'fill_cauldron'],
      bucket: [level === CAULDRON && 0, 'water_bucket', 'use_cauldron'],
      glass_bottle: [level > 0 && level - 1, survival.items.make('potion', 1, WATER()), 'use_cauldron'],
      potion: [water && level < CAULDRON && level + 1, 'glass_bottle', 'fill_cauldron'],
    }[item?.name] ?? [];
    if (now === undefined || (item.name === 'potion' && !water)) return false;
    if (now === false) return true;
    survival.exchange(player, slot, gives);
    change(survival, call, { level: now });
    serv.emit('gamut:counted', { player, statistic });
    return true;
  },

  flower_pot(serv, call) {
    const { x, y, z, item, player } = call;
    const potted = item && `potted_${item.name}`;
    if (!potted || !serv.registry.blocksByName[potted]) return false;
    serv.survival.blocks.setNamed(x, y, z, potted);
    serv.emit('gamut:counted', { player, statistic: 'pot_flower' });
    pay(call);
    return true;
  },

  campfire(serv, call) {
    const { survival } = serv;
    const { player, item, info } = call;
    if (!info.props.lit) return false;
    const fire = contents(survival, 'campfire', call);
    const free = Array.from({ length: PLACES }, (_, i) => i).find((i) => !fire.items[i]);
    if (free === undefined || !item || !smelted('smoker', item.name)) return false;
    fire.items[free] = survival.items.copy(item, 1);
    fire.ready[free] = survival.tick + COOKS;
    pay(call);
    serv.emit('gamut:counted', { player, statistic: 'interact_with_campfire' });
    return true;
  },

  jukebox(serv, call) {
    const { survival } = serv;
    const { x, y, z, item, info, player } = call;
    if (info.props.has_record) {
      change(survival, call, { has_record: false });
      spill(serv, { x, y: y + 1, z }, keyOf(call));
      return true;
    }
    if (!item?.name.startsWith('music_disc_')) return false;
    contents(survival, 'jukebox', call).items[0] = survival.items.copy(item, 1);
    change(survival, call, { has_record: true });
    pay(call);
    serv.emit('gamut:counted', { player, statistic: 'play_record' });
    return true;
  },

  bell(serv, call) {
    const { x, y, z, info, player } = call;
    change(serv.survival, call, { powered: true });
    if (!info.props.powered) serv.survival.schedule(RINGS, 'bell', [x, y, z]);
    serv.emit('gamut:counted', { player, statistic: 'bell_ring' });
    return true;
  },

  note_block(serv, call) {
    change(serv.survival, call, { note: (call.info.props.note + 1) % NOTES });
    serv.emit('gamut:counted', { player: call.player, statistic: 'tune_noteblock' });
    return true;
  },
};

/** Takes a plant out of its pot, unless another plant is in hand. */
function unpot(serv, { x, y, z, info, item, player }) {
  if (item && serv.registry.blocksByName[`potted_${item.name}`]) return true;
  serv.survival.giveOrToss(player, serv.survival.items.make(info.name.replace('potted_', '')));
  serv.survival.blocks.setNamed(x, y, z, 'flower_pot');
  return true;
}

/** Drops what is in a fixture. */
function spill(serv, { x, y, z }, key) {
  const { survival } = serv;
  const fixture = survival.fixtures.get(key);
  survival.fixtures.delete(key);
  for (const item of fixture?.items ?? []) if (item) survival.popItem(x, y, z, item);
}

function cook(serv) {
  const { survival } = serv;
  for (const [key, { kind, items, ready }] of survival.fixtures) {
    if (kind !== 'campfire') continue;
    const [x, y, z] = key.split(',').map(Number);
    const { props } = survival.blocks.at(x, y, z);
    items.forEach((item, i) => {
      if (item && !props.lit) ready[i]++;
      if (!item || ready[i] > survival.tick) return;
      items[i] = null;
      survival.drop(new Vec3(x + 0.5, y + 0.5, z + 0.5), survival.items.make(smelted('smoker', item.name).item));
    });
    if (items.every((item) => !item)) survival.fixtures.delete(key);
  }
}

function server(serv) {
  const { survival } = serv;
  const { blocks } = survival;
  survival.fixtures = new Map();
  for (const [block, use] of Object.entries({ ...USES, soul_campfire: USES.campfire }))
    survival.onUseBlock(block, (call) => use(serv, call));
  const pots = Object.keys(serv.registry.blocksByName).filter((block) => block.startsWith('potted_'));
  survival.onUseBlock(pots, (call) => unpot(serv, call));
  survival.onScheduled('compost', ([x, y, z]) => {
    const info = blocks.at(x, y, z);
    if (info.name === 'composter' && info.props.level === FULL) blocks.set(x, y, z, blocks.changed(info, { level: READY }));
  });
  survival.onScheduled('bell', ([x, y, z]) => {
    const info = blocks.at(x, y, z);
    if (info.name === 'bell') blocks.set(x, y, z, blocks.changed(info, { powered: false }));
  });
  blocks.onChange((x, y, z, old, now) => {
    if (survival.fixtures.has(keyOf({ x, y, z })) && old.id !== now.id) spill(serv, { x, y, z }, keyOf({ x, y, z }));
  });
  survival.onTick(() => cook(serv));
}

function save(serv) {
  const { fixtures, items } = serv.survival;
  return [...fixtures].map(([key, fixture]) => [key, { ...fixture, items: fixture.items.map(items.toJson) }]);
}

function load(serv, data) {
  const { survival } = serv;
  survival.fixtures = new Map((data ?? []).map(([key, fixture]) =>
    [key, { ...fixture, items: fixture.items.map(survival.items.fromJson) }]));
}

module.exports = { name, server, save, load };

'use strict';

/**
 * Villagers and wandering traders: professions, levels, offers, and the window they trade in
 * (Minecraft Wiki, "Trading" and "Villager", 1.16). What they offer is trades.json.
 *
 * Simplified: a villager without a profession takes up that of a job site within 48 blocks when
 * either is new to the world; it restocks at most twice a day wherever it is, when somebody trades
 * with it; there is no reputation. Its level rises when the window is closed.
 *
 * `mob.merchant` is {type, profession, level, xp, offers, stocked}, plain data; an offer is {wants:
 * [stacks], gives: stack, uses, most, xp, share, demand, pays}. Event: 'gamut:traded' {player,
 * villager, item, count}.
 */

const { Chance } = require('../generator/noise');
const { COLOURS } = require('./colours');
const { withEnchants } = require('./enchanting');
const { professions: PROFESSIONS, traders: TRADERS, experience: EXPERIENCE } = require('./trades.json');

const name = 'trading';
/** Professions and types by their numbers in the protocol. */
const NUMBERS = ['none', 'armorer', 'butcher', 'cartographer', 'cleric', 'farmer', 'fisherman', 'fletcher',
  'leatherworker', 'librarian', 'mason', 'nitwit', 'shepherd', 'toolsmith', 'weaponsmith'];
const TYPES = ['desert', 'jungle', 'plains', 'savanna', 'snow', 'swamp', 'taiga'];
const WOODS = { jungle: 'jungle', savanna: 'acacia', taiga: 'spruce', snow: 'spruce', swamp: 'dark_oak' };
const SITES = new Map(Object.entries(PROFESSIONS).map(([job, { site }]) => [site, job]));
/** Where villagers keep their type, profession and level, protocol 754. */
const [DATA_KEY, DATA_TYPE] = [17, 16];
const REACH = 48;
const EACH_LEVEL = 2;
const RESTOCK = 12000;
const OFFER = /^(\d+) (\S+)$/;
const COLOUR = /\{colour(?:\|([^}]+))?\}/;

const biomeType = (biome) => {
  if (/desert|badlands/.test(biome)) return 'desert';
  if (/snow|ice|frozen/.test(biome)) return 'snow';
  return TYPES.find((type) => biome.includes(type)) ?? 'plains';
};

/** Reads '3 emerald + 1 book' as stacks [{name, count}], with colours and woods filled in. */
function stacksOf(text, fill) {
  return fill(text).split(' + ').map((part) => {
    const [, count, item] = OFFER.exec(part);
    return { name: item, count: Number(count) };
  });
}

/** A book with one random enchantment, and its price in emeralds. */
function bookFor(serv, chance) {
  const defs = serv.registry.enchantmentsArray.filter(({ tradeable }) => tradeable);
  const def = chance.pick(defs);
  const lvl = chance.between(1, def.maxLevel);
  const price = (2 + chance.below(5 + lvl * 10) + 3 * lvl) * (def.treasureOnly ? 2 : 1);
  const { items } = serv.survival;
  return [withEnchants(items, items.make('book'), [{ name: def.name, lvl }]), Math.min(64, price)];
}

/** Makes an offer of a row of trades.json. */
function offerOf(serv, [wants, gives, most, xp, share = 0.05], chance, type) {
  const { items } = serv.survival;
  const colour = chance.next();
  const fill = (text) =>
    text
      .replace(COLOUR, (_, some) => {
        const list = some ? some.split(',') : COLOURS;
        return list[Math.floor(colour * list.length)];
      })
      .replace('{wood}', WOODS[type] ?? 'oak');
  const cost = stacksOf(wants, fill);
  const [{ name: kind, count }] = stacksOf(gives, fill);
  let stack;
  if (kind === 'enchanted_book*') {
    const [book, price] = bookFor(serv, chance);
    cost[0].count = price;
    stack = book;
  } else if (kind.endsWith('*')) {
    const power = chance.between(5, 19);
    cost[0].count = Math.min(64, cost[0].count + power);
    stack = serv.survival.enchanted(items.make(kind.slice(0, -1)), power);
  } else stack = items.make(kind, count);
  return {
    wants: cost, gives: items.toJson(stack), uses: 0, most, xp, share, demand: 0, pays: true,
  };
}

/** Draws `count` different offers of a list. */
function drawn(serv, rows, count, type) {
  const chance = new Chance(Math.floor(Math.random() * 2 ** 31));
  const left = [...rows];
  const offers = [];
  while (left.length > 0 && offers.length < count) {
    const [row] = left.splice(chance.below(left.length), 1);
    offers.push(offerOf(serv, row, chance, type));
  }
  return offers;
}

/** Gives a villager the offers of its levels that it does not have yet. */
function stock(serv, merchant) {
  const levels = PROFESSIONS[merchant.profession]?.levels ?? [];
  while (merchant.drawn < merchant.level && merchant.drawn < levels.length) {
    merchant.offers.push(...drawn(serv, levels[merchant.drawn], EACH_LEVEL, merchant.type));
    merchant.drawn++;
  }
}

/** Fills the offers up again, at a price by how much they were asked for. */
function restock(survival, merchant) {
  if (survival.tick - merchant.stocked < RESTOCK) return;
  merchant.stocked = survival.tick;
  for (const offer of merchant.offers) {
    offer.demand = Math.max(0, offer.demand + offer.uses - (offer.most - offer.uses));
    offer.uses = 0;
  }
}

/** What an offer costs now, of its first item. */
function priceOf(registry, { wants: [first], demand, share }) {
  const more = Math.max(0, Math.floor(first.count * demand * share));
  const { stackSize } = registry.itemsByName[first.name];
  return Math.min(stackSize, Math.max(1, first.count + more));
}

function showData(survival, mob) {
  if (mob.name !== 'villager') return;
  const { type, profession, level } = mob.merchant;
  survival.setMetadata(mob, DATA_KEY, DATA_TYPE, {
    villagerType: TYPES.indexOf(type), villagerProfession: NUMBERS.indexOf(profession), level,
  });
}

/** Gives a villager a profession, with the offers of a level. */
function employ(serv, mob, profession, level = 1) {
  const { merchant } = mob;
  Object.assign(merchant, { profession, level, drawn: 0, offers: [], xp: EXPERIENCE[level - 1] });
  stock(serv, merchant);
  showData(serv.survival, mob);
}

/** Whether a creature is one that may trade. */
const trades = (mob) => mob.name === 'villager' || TRADERS[mob.name] !== undefined;

/** Makes the merchant of a new creature; options: `profession`, `level`, `type`. */
function bornMerchant(serv, mob, { profession = 'none', level = 1, type } = {}) {
  const { x, z } = mob.position;
  const biome = serv.gamut?.generator?.biomeAt?.(Math.floor(x), Math.floor(z)) ?? 'plains';
  mob.merchant = {
    type: type ?? biomeType(biome), profession: 'none', level: 1, xp: 0, drawn: 0, offers: [],
    stocked: serv.survival.tick,
  };
  if (mob.name !== 'villager') return;
  if (profession !== 'none') employ(serv, mob, profession, level);
  else showData(serv.survival, mob);
}

const jobless = (mob) =>
  mob.name === 'villager' && !mob.baby && mob.health > 0 && mob.merchant?.profession === 'none';

/** The nearest villager without a profession takes up that of a job site. */
function hire(serv, [x, y, z], job) {
  let [best, least] = [null, REACH];
  for (const mob of serv.survival.mobs.list.values()) {
    if (!jobless(mob)) continue;
    const far = Math.hypot(mob.position.x - x, mob.position.y - y, mob.position.z - z);
    if (far <= least) [best, least] = [mob, far];
  }
  if (best) {
    employ(serv, best, job);
    best.merchant.site = [x, y, z];
  }
  return best !== null;
}

/** Takes up the profession of a free job site that was placed, when a villager is new. */
function seek(serv, mob) {
  for (const [key, job] of serv.survival.jobSites) {
    const [x, y, z] = key.split(',').map(Number);
    if (Math.hypot(mob.position.x - x, mob.position.y - y, mob.position.z - z) > REACH) continue;
    serv.survival.jobSites.delete(key);
    employ(serv, mob, job);
    mob.merchant.site = [x, y, z];
    return;
  }
}

/** A job site that appears is taken or remembered; one that goes leaves its villager without a job. */
function siteChanged(serv, x, y, z, old, now) {
  if (old.name === now.name) return;
  const { survival } = serv;
  const key = `${x},${y},${z}`;
  if (SITES.has(old.name)) {
    survival.jobSites.delete(key);
    for (const mob of survival.mobs.list.values()) {
      const { merchant } = mob;
      if (String(merchant?.site) !== key) continue;
      merchant.site = null;
      // Who has traded keeps the profession.
      if (merchant.xp === 0 && merchant.level === 1) employ(serv, mob, 'none');
    }
  }
  const job = SITES.get(now.name);
  if (job && !hire(serv, [x, y, z], job)) survival.jobSites.set(key, job);
}

/** The items of an offer as the protocol has them. */
function sent(serv, offer) {
  const { items } = serv.survival;
  const { Item } = items;
  const [first, second] = offer.wants.map((want) => items.make(want.name, Math.max(1, want.count)));
  return {
    inputItem1: Item.toNotch(first),
    outputItem: Item.toNotch(items.fromJson(offer.gives)),
    inputItem2: second ? Item.toNotch(second) : undefined,
    tradeDisabled: offer.uses >= offer.most,
    nbTradeUses: offer.uses,
    maximumNbTradeUses: offer.most,
    xp: offer.xp,
    specialPrice: 0,
    priceMultiplier: offer.share,
    demand: offer.demand,
  };
}

function showOffers(serv, station, { merchant, name: kind }) {
  station.player._client.write('trade_list', {
    windowId: station.player.openWindow.id,
    trades: merchant.offers.map((offer) => sent(serv, offer)),
    villagerLevel: merchant.level,
    experience: merchant.xp,
    isRegularVillager: kind === 'villager',
    canRestock: kind === 'villager',
  });
}

/** Whether what lies in the inputs pays for an offer. */
function pays(registry, offer, [a, b]) {
  const [, second] = offer.wants;
  const first = { name: offer.wants[0].name, count: priceOf(registry, offer) };
  const enough = (item, want) => Boolean(item) && item.name === want.name && item.count >= want.count;
  return enough(a, first) && (second ? enough(b, second) : !b);
}

/** Returns the offer that is chosen, or the one that fits, if it can be had. */
function fitting(registry, station, { offers }) {
  const { chosen, items } = station;
  if (chosen > 0 && chosen < offers.length)
    return pays(registry, offers[chosen], items) ? offers[chosen] : null;
  return offers.find((offer) => pays(registry, offer, items)) ?? null;
}

function made(serv, station, mob) {
  const offer = fitting(serv.registry, station, mob.merchant);
  if (!offer || offer.uses >= offer.most) return null;
  const [, second] = offer.wants;
  const item = serv.survival.items.fromJson(offer.gives);
  return {
    item,
    use: [priceOf(serv.registry, offer), second ? second.count : 0],
    taken: () => {
      offer.uses++;
      mob.merchant.xp += offer.xp;
      if (offer.pays) station.player.addXp(3 + Math.floor(Math.random() * 4));
      serv.emit('gamut:traded', { player: station.player, villager: mob, item: item.name, count: item.count });
    },
  };
}

/** Chooses an offer: what is in the inputs goes back, and what it costs is put there. */
function choose(serv, station, mob, number) {
  const offer = mob.merchant.offers[number];
  if (!offer) return;
  const { player, items: inputs } = station;
  const { items } = serv.survival;
  station.chosen = number;
  inputs.forEach((item, index) => {
    inputs[index] = null;
    if (item) serv.survival.giveOrToss(player, item);
  });
  offer.wants.forEach((want, index) => {
    for (let slot = 9; slot < 45; slot++) {
      const item = player.inventory.slots[slot];
      const there = inputs[index];
      if (!item || item.name !== want.name || (there && !items.same(there, item))) continue;
      const moved = Math.min(item.count, item.stackSize - (there ? there.count : 0));
      if (moved <= 0) break;
      inputs[index] = items.copy(item, moved + (there ? there.count : 0));
      player.useUp(slot, moved);
    }
  });
  station.update();
}

/** Raises a villager's level as far as its experience goes. */
function rise(serv, mob) {
  const { merchant } = mob;
  if (mob.name !== 'villager') return;
  const before = merchant.level;
  while (merchant.level < EXPERIENCE.length && merchant.xp >= EXPERIENCE[merchant.level]) merchant.level++;
  if (merchant.level === before) return;
  stock(serv, merchant);
  showData(serv.survival, mob);
}

function talk(serv, { player, entity: mob }) {
  if (!trades(mob) || mob.baby || !(mob.health > 0)) return false;
  mob.merchant ?? bornMerchant(serv, mob);
  const { merchant } = mob;
  if (mob.name !== 'villager' && merchant.offers.length === 0) {
    for (const [count, rows] of TRADERS[mob.name]) merchant.offers.push(...drawn(serv, rows, count));
  }
  // It shakes its head: nothing to trade, or somebody is trading with it.
  if (merchant.offers.length === 0 || (mob.customer && mob.customer.openWindow?.merchant === mob)) return true;
  if (mob.name === 'villager') restock(serv.survival, merchant);
  const station = serv.survival.openStation(player, {
    kind: 'merchant',
    title: mob.gamutName ?? (merchant.profession === 'none' ? 'Wandering Trader' : merchant.profession),
    near: () => (serv.entities[mob.id] === mob && mob.health > 0 ? mob.position : null),
    inputs: 2,
    made: (each) => made(serv, each, mob),
    pressed: (each, number) => choose(serv, each, mob, number),
    closed: () => {
      mob.customer = null;
      rise(serv, mob);
    },
  });
  mob.customer = player;
  player.openWindow.merchant = mob;
  showOffers(serv, station, mob);
  return true;
}

function server(serv) {
  const { survival } = serv;
  survival.jobSites = new Map();
  survival.bornMerchant = (mob, options) => {
    if (!trades(mob)) return;
    bornMerchant(serv, mob, options);
    if (jobless(mob)) seek(serv, mob);
  };
  survival.showMerchant = (mob) => mob.merchant && showData(survival, mob);
  survival.onUseEntity((call) => talk(serv, call));
  survival.blocks.onChange((x, y, z, old, now) => siteChanged(serv, x, y, z, old, now));
}

const save = ({ survival }) => [...survival.jobSites];

function load({ survival }, data) {
  survival.jobSites = new Map(data || []);
}

module.exports = { name, server, save, load, NUMBERS, OFFER };

'use strict';

/**
 * Bartering with piglins (Minecraft Wiki, "Bartering", 1.16): an ingot of gold, handed over or thrown
 * near one, is admired for 6 seconds and paid for. What they give is bartering.json.
 * Event: 'gamut:bartered' {player, entity, item, count}.
 */

const { Vec3 } = require('vec3');
const { rows } = require('./bartering.json');
const { between } = require('./loot');

const name = 'bartering';
const PRICE = 'gold_ingot';
const ADMIRES = 120; // ticks
const LOOKS = 10; // ticks between looks at what lies on the ground
const REACH = 2;

function admire(serv, mob, player) {
  const { survival } = serv;
  mob.paidBy = player ? player.username : null;
  mob.admires = true;
  Object.assign(mob.mind, { target: null, foe: null, path: null });
  survival.schedule(ADMIRES, 'barter', mob.id);
}

/** Returns what a piglin gives, as a stack. */
function draw({ items }) {
  let left = Math.random() * rows.reduce((sum, [, weight]) => sum + weight, 0);
  const [item, , low, high, more = {}] = rows.find(([, weight]) => (left -= weight) < 0) ?? rows[0];
  const tag = more.potion
    && { type: 'compound', name: '', value: { Potion: { type: 'string', value: more.potion } } };
  const stack = items.make(item, between(low, high), tag ?? null);
  if (more.soul_speed) stack.enchants = [{ name: 'soul_speed', lvl: between(1, more.soul_speed) }];
  return stack;
}

function pay(serv, id) {
  const { survival } = serv;
  const mob = serv.entities[id];
  if (!mob?.admires) return;
  mob.admires = false;
  if (!(mob.health > 0)) return;
  const stack = draw(survival);
  const player = serv.players.find(({ username }) => username === mob.paidBy) ?? null;
  const from = mob.position.offset(0, mob.eyes - 0.3, 0);
  const way = player ? player.position.minus(mob.position) : new Vec3(1, 0, 0);
  survival.drop(from, stack, { velocity: way.scaled(0.3 / (way.norm() || 1)) });
  serv.emit('gamut:bartered', { player, entity: mob, item: stack.name, count: stack.count });
}

const isTrader = (mob) => mob.name === 'piglin' && !mob.baby && !mob.admires && mob.health > 0;

/** Piglins take gold that lies near them. */
function gather(serv) {
  const { survival } = serv;
  const gold = [...survival.drops.values()].filter(({ stack }) => stack.name === PRICE);
  for (const entity of gold) {
    for (const mob of survival.mobs.list.values()) {
      if (!isTrader(mob) || mob.position.distanceTo(entity.position) > REACH) continue;
      const { position, stack } = entity;
      survival.drops.delete(entity.id);
      survival.removeEntity(entity);
      if (stack.count > 1) survival.drop(position, survival.items.copy(stack, stack.count - 1));
      const near = serv.players.filter(({ health }) => health > 0)
        .sort((a, b) => a.position.distanceTo(mob.position) - b.position.distanceTo(mob.position));
      admire(serv, mob, near[0] ?? null);
      break;
    }
  }
}

function server(serv) {
  const { survival } = serv;
  survival.onUseEntity(({ player, entity, slot, item }) => {
    if (item?.name !== PRICE || entity.type !== 'mob' || !isTrader(entity)) return false;
    if (player.gameMode !== 1) player.useUp(slot);
    admire(serv, entity, player);
    return true;
  });
  survival.onScheduled('barter', (id) => pay(serv, id));
  survival.onTick((tick) => {
    if (tick % LOOKS === 0 && survival.drops.size > 0) gather(serv);
  });
}

module.exports = { name, server };

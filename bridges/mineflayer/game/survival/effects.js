'use strict';

/**
 * Status effects with their time in ticks (flying-squid's use timers that no snapshot can contain),
 * and the effects that act periodically (Minecraft Wiki, "Effect"). Absorption, luck and similar
 * effects are shown but do nothing.
 *
 * On entities: `addEffect(id, {amplifier, duration})`, `removeEffect(id)`; `effects[id]` is null or
 * {amplifier, duration}.
 */

const name = 'effects';

/** Returns the effects by their names in commands. */
function effectsOf(registry) {
  return Object.fromEntries(
    registry.effectsArray.map((effect) => [
      effect.name === 'BadLuck'
        ? 'unluck'
        : effect.name.replace(/(?<!^)([A-Z])/g, '_$1').toLowerCase(),
      effect,
    ]),
  );
}

function show(serv, entity, id) {
  const { amplifier, duration } = entity.effects[id];
  serv.survival.broadcast(entity, 'entity_effect', {
    entityId: entity.id,
    effectId: id,
    amplifier: (amplifier << 24) >> 24, // a signed byte
    duration: Math.min(duration, 0x7fffffff),
    hideParticles: false,
  });
}

function add(serv, entity, id, { amplifier = 0, duration = 600 } = {}) {
  const now = entity.effects[id];
  if (
    now &&
    (now.amplifier > amplifier || (now.amplifier === amplifier && now.duration > duration))
  )
    return false;
  entity.effects[id] = { amplifier, duration };
  serv.survival.affected.add(entity.id);
  show(serv, entity, id);
  return true;
}

function remove(serv, entity, id) {
  if (!entity.effects[id]) return;
  entity.effects[id] = null;
  serv.survival.broadcast(entity, 'remove_entity_effect', { entityId: entity.id, effectId: id });
}

function heal(entity, points) {
  const most = entity.type === 'player' ? 20 : entity.maxHealth || 20;
  if (entity.health > 0 && entity.health < most)
    entity.updateHealth(Math.min(most, entity.health + points));
}

/** Periodic effects act every `period / 2 ** amplifier` ticks. */
const ACTS = {
  Regeneration: [50, (serv, entity) => heal(entity, 1)],
  Poison: [
    25,
    (serv, entity) => {
      if (entity.health > 1)
        serv.survival.hurt(entity, { amount: Math.min(1, entity.health - 1), cause: 'magic' });
    },
  ],
  Wither: [40, (serv, entity) => serv.survival.hurt(entity, { amount: 1, cause: 'wither' })],
};

function tickEntity(serv, entity) {
  let any = false;
  for (const id in entity.effects) {
    const effect = entity.effects[id];
    if (!effect) continue;
    any = true;
    const def = serv.registry.effects[id];
    const act = ACTS[def.name];
    if (act && effect.duration % Math.max(1, Math.floor(act[0] / 2 ** effect.amplifier)) === 0)
      act[1](serv, entity);
    if (def.name === 'Hunger' && entity.exhaust) entity.exhaust(0.005 * (effect.amplifier + 1));
    effect.duration--;
    if (effect.duration <= 0) remove(serv, entity, id);
  }
  return any;
}

/** Instant effects act at once and do not last. */
function instant(serv, entity, def, amplifier) {
  const points = 4 * 2 ** amplifier;
  if (def.name === 'InstantHealth') heal(entity, points);
  else if (def.name === 'InstantDamage')
    serv.survival.hurt(entity, { amount: 6 * 2 ** amplifier, cause: 'magic' });
  else if (def.name === 'Saturation' && entity.feed)
    entity.feed(amplifier + 1, 2 * (amplifier + 1));
  else return false;
  return true;
}

function server(serv) {
  const { survival } = serv;
  survival.affected = new Set();
  survival.onTick(() => {
    for (const id of survival.affected) {
      const entity = serv.entities[id];
      if (!entity || !tickEntity(serv, entity)) survival.affected.delete(id);
    }
  });
}

function entity(entity, serv) {
  entity.effects = {};
  entity.addEffect = (id, options = {}) => {
    const def = serv.registry.effects[id];
    if (instant(serv, entity, def, options.amplifier || 0)) return true;
    return add(serv, entity, id, options);
  };
  entity.removeEffect = (id) => remove(serv, entity, id);
  entity.clearEffects = () => {
    for (const id in entity.effects) remove(serv, entity, id);
  };
}

function player(player) {
  player.on('fresh', () => player.clearEffects());
}

function savePlayer(player) {
  return JSON.parse(JSON.stringify(player.effects));
}

function loadPlayer(player, serv, data) {
  player.clearEffects();
  for (const id in data || {}) if (data[id]) add(serv, player, Number(id), data[id]);
}

module.exports = { name, server, entity, player, savePlayer, loadPlayer, effectsOf };

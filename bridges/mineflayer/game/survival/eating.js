'use strict';

/**
 * Eating and drinking: 32 ticks (16 for dried kelp), foods from minecraft-data, effects of some of
 * them (Minecraft Wiki, "Food", 1.16), the empty bowl, bottle or bucket returned; cake by the
 * slice. 'gamut:eat' {player, item}.
 */

const name = 'eating';
const TIME = 32;
const ALWAYS = new Set([
  'golden_apple',
  'enchanted_golden_apple',
  'chorus_fruit',
  'honey_bottle',
  'suspicious_stew',
  'milk_bucket',
  'potion',
]);
const LEAVES = {
  mushroom_stew: 'bowl',
  rabbit_stew: 'bowl',
  beetroot_soup: 'bowl',
  suspicious_stew: 'bowl',
  honey_bottle: 'glass_bottle',
  milk_bucket: 'bucket',
  potion: 'glass_bottle',
};
/** [effect, amplifier, ticks, chance] */
const DOES = {
  golden_apple: [
    ['Regeneration', 1, 100, 1],
    ['Absorption', 0, 2400, 1],
  ],
  enchanted_golden_apple: [
    ['Regeneration', 1, 400, 1],
    ['Resistance', 0, 6000, 1],
    ['FireResistance', 0, 6000, 1],
    ['Absorption', 3, 2400, 1],
  ],
  rotten_flesh: [['Hunger', 0, 600, 0.8]],
  chicken: [['Hunger', 0, 600, 0.3]],
  spider_eye: [['Poison', 0, 100, 1]],
  poisonous_potato: [['Poison', 0, 100, 0.6]],
  pufferfish: [
    ['Poison', 3, 1200, 1],
    ['Hunger', 2, 300, 1],
    ['Nausea', 0, 300, 1],
  ],
};

function begin(serv, { player, slot, item }) {
  if (player.using) return true;
  if (player.food >= 20 && !ALWAYS.has(item.name) && player.gameMode !== 1) return false;
  player.using = { kind: 'eat', slot, item: item.name, since: serv.survival.tick };
  return true;
}

function affect(serv, player, item) {
  const itemName = item.name;
  const { registry } = serv;
  for (const [effect, amplifier, duration, chance] of DOES[itemName] || []) {
    if (Math.random() < chance)
      player.addEffect(registry.effectsByName[effect].id, { amplifier, duration });
  }
  if (itemName === 'potion') serv.survival.drinkPotion(player, item);
  if (itemName === 'milk_bucket') player.clearEffects();
  if (itemName === 'honey_bottle') player.removeEffect(registry.effectsByName.Poison.id);
}

function swallow(serv, player, slot) {
  const { survival } = serv;
  const item = player.inventory.slots[slot];
  const food = serv.registry.foodsByName[item.name];
  if (food) player.feed(food.foodPoints, food.saturation);
  affect(serv, player, item);
  // The status is sent first: the client interprets a changed stack as an interruption.
  player._client.write('entity_status', { entityId: player.id, entityStatus: 9 });
  if (player.gameMode !== 1) {
    player.useUp(slot);
    const rest = LEAVES[item.name];
    if (rest) {
      const left = survival.items.make(rest);
      if (!player.inventory.slots[slot]) player.setSlot(slot, left);
      else if (player.give(left)) survival.toss(player, left);
    }
  }
  serv.emit('gamut:eat', { player, item: item.name });
}

function tickPlayer(serv, player, tick) {
  const { using } = player;
  if (!using || using.kind !== 'eat') return;
  const item = player.inventory.slots[using.slot];
  if (!item || item.name !== using.item) {
    player.stopUsing();
    return;
  }
  const time = item.name === 'dried_kelp' ? TIME / 2 : TIME;
  if (tick - using.since < time) return;
  player.stopUsing();
  swallow(serv, player, using.slot);
}

function biteCake(serv, { player, x, y, z, info }) {
  if (player.food >= 20 && player.gameMode !== 1) return false;
  player.feed(2, 0.4);
  const bites = info.props.bites + 1;
  const { blocks } = serv.survival;
  if (bites > 6) blocks.set(x, y, z, 0);
  else blocks.set(x, y, z, blocks.changed(info, { bites }));
  serv.emit('gamut:eat', { player, item: 'cake' });
  return true;
}

function server(serv) {
  const { survival } = serv;
  const foods = Object.keys(serv.registry.foodsByName).filter((food) => food !== 'cake');
  survival.onUseItem([...foods, 'milk_bucket', 'potion'], (call) => begin(serv, call));
  survival.onUseBlock('cake', (call) => biteCake(serv, call));
  survival.onTick((tick) => {
    for (const player of serv.players) tickPlayer(serv, player, tick);
  });
}

module.exports = { name, server };

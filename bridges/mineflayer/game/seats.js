'use strict';
/**
 * What mineflayer lacks to ride: where its own body is, keys that steer, and that it has got off.
 *
 * While a bot rides, its body is in the seat instead of under its own physics, which mineflayer
 * would stop with all that depends on it. The keys forward, back, left and right steer, jump lets a
 * horse leap; without keys only `bot.moveVehicle` does. Works with servers of any version that
 * know the packet `steer_vehicle`.
 */
const RIDES = require('./survival/riding.json');

const NO_KEYS = '0 0';

/** Puts a bot into its seat, and tells the server what its keys say. */
function sit(bot, last) {
  const { vehicle, entity, controlState: keys } = bot;
  const { x, y, z } = vehicle.position;
  entity.position.set(x, y + (RIDES[vehicle.name]?.height ?? 0), z);
  entity.velocity.set(0, 0, 0);
  entity.onGround = false;
  const forward = Number(keys.forward) - Number(keys.back);
  const sideways = Number(keys.left) - Number(keys.right);
  const now = `${forward} ${sideways}`;
  if (now !== NO_KEYS || last.keys !== NO_KEYS) {
    bot._client.write('steer_vehicle', { sideways, forward, jump: 0 });
  }
  last.keys = now;
  if (keys.jump && !last.jump && RIDES[vehicle.name]?.jumps) {
    const named = bot.supportFeature('entityActionUsesStringMapper');
    const actionId = named ? 'start_horse_jump' : 5;
    bot._client.write('entity_action', { entityId: entity.id, actionId, jumpBoost: 100 });
  }
  last.jump = keys.jump;
}

/** Lets a bot ride. */
function takeSeats(bot) {
  if (bot.supportFeature('newPlayerInputPacket')) return; // of 1.21.2 and later
  const { simulatePlayer } = bot.physics;
  const last = { keys: NO_KEYS, jump: false };
  bot.physics.simulatePlayer = (state, world) =>
    bot.vehicle ? { apply: () => sit(bot, last) } : simulatePlayer(state, world);
  // mineflayer notices only that somebody got on.
  bot._client.on('set_passengers', ({ entityId, passengers }) => {
    const { vehicle } = bot;
    if (!vehicle || vehicle.id !== entityId || passengers.includes(bot.entity.id)) return;
    vehicle.passengers = vehicle.passengers.filter(({ id }) => id !== bot.entity.id);
    bot.entity.vehicle = null;
    bot.vehicle = null;
    bot.emit('dismount', vehicle);
  });
}

module.exports = { takeSeats };

'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, events, until, count, mobs, summon, calm, Vec3 } = require('./mobs_help');
const { KEYS } = require('../actions');
const { begin, low, play, playUntil } = require('./actions_help');

const id = (w, name) => w.serv.registry.itemsByName[name].id;
const clientSide = (bot, entity) => bot.entities[entity.id];
const vehicle = (w) => [...w.serv.survival.vehicles.values()].pop();

async function getOn(w, bot, entity) {
  w.run(() => bot.mount(clientSide(bot, entity)));
  await w.step(2);
}

function look(w, bot, yaw) {
  return w.until(() => bot.look(yaw, 0, true));
}

test('mineflayer: a boat is summoned, mounted and dismounted', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/summon boat 8.5 4 9.5');
    await w.step(2);
    const boat = bot.nearestEntity((entity) => entity.name === 'boat');
    const heard = [];
    w.run(() => {
      bot.on('mount', () => heard.push('mount'));
      bot.on('dismount', (from) => heard.push(`dismount ${from.name}`));
    });
    await getOn(w, bot, boat);
    assert.equal(bot.vehicle, boat);
    assert.equal(player.vehicle.id, boat.id);
    assert.ok(player.position.distanceTo(bot.entity.position) < 0.01, 'both sides know the seat');
    w.run(() => bot.dismount());
    await w.step(5);
    assert.deepEqual([bot.vehicle, player.vehicle], [null, null]);
    assert.deepEqual(heard, ['mount', 'dismount boat']);
    assert.ok(player.position.distanceTo(boat.position) >= 0.9);
    assert.ok(player.position.distanceTo(bot.entity.position) < 0.01);
    assert.equal(player.position.y, 4);
    await getOn(w, bot, boat);
    w.run(() => bot.setControlState('sneak', true));
    await w.step(3);
    assert.deepEqual([bot.vehicle, player.vehicle], [null, null], 'sneaking gets off');
  }));

test('mineflayer: a boat is placed on water, rowed by keys and by moveVehicle, and broken', () =>
  inWorld({}, async (w, bot, player) => {
    await w.console('/fill 0 3 10 16 3 40 water');
    await w.console('/give a0 birch_boat');
    await w.step(2);
    await w.until(() => bot.equip(id(w, 'birch_boat'), 'hand'));
    const [x, z] = [8, 12];
    const placed = await w.until(() =>
      bot.placeEntity(bot.blockAt(new Vec3(x, 2, z)), new Vec3(0, 1, 0)));
    assert.equal(placed.name, 'boat');
    assert.equal(count(player, 'birch_boat'), 0);
    await w.step(20);
    const boat = vehicle(w);
    assert.ok(boat.position.y > 3.4 && boat.position.y < 4, `it floats at ${boat.position.y}`);
    await getOn(w, bot, boat);
    await w.console('/gamerule fallDamage true');
    boat.heading = 0;
    const from = boat.position.clone();
    w.run(() => bot.setControlState('forward', true));
    await w.step(40);
    w.run(() => bot.setControlState('forward', false));
    const gone = boat.position.z - from.z;
    assert.ok(gone > 8 && gone < 17, `${gone} blocks in 2 s, 8 a second at most`);
    assert.ok(bot.entity.position.distanceTo(player.position) < 0.01);
    await w.step(60);
    const rest = boat.position.clone();
    w.run(() => bot.moveVehicle(0, 1));
    await w.step(5);
    assert.ok(boat.position.z > rest.z + 0.2, 'moveVehicle rows as well');
    const { heading } = boat;
    w.run(() => bot.setControlState('left', true));
    await w.step(10);
    w.run(() => bot.clearControlStates());
    assert.ok(boat.heading < heading - 0.1, 'left turns it left');
    w.run(() => bot.dismount());
    await w.step(2);
    await w.console(`/tp a0 ${boat.position.x} ${boat.position.y + 1} ${boat.position.z}`);
    await w.step(5);
    for (let i = 0; i < 14 && w.serv.entities[boat.id]; i++) {
      w.run(() => bot.attack(clientSide(bot, boat)));
      await w.step(6);
    }
    assert.equal(w.serv.entities[boat.id], undefined);
    await until(w, () => count(player, 'birch_boat') === 1, 200);
  }));

test('a horse throws off its rider until it is tame, and needs a saddle to be steered', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    await w.console('/give a0 saddle');
    summon(w, 'horse', [8.5, 4, 10.5], { Temper: 60 });
    await w.step(2);
    const [horse] = mobs(w, 'horse');
    const off = events(w, 'gamut:dismounted');
    for (let tries = 0; !horse.tame && tries < 40; tries++) {
      await w.console(`/tp a0 ${horse.position.x} ${horse.position.y} ${horse.position.z - 1}`);
      await w.step(2);
      await getOn(w, bot, horse);
      await until(w, () => horse.tame || !player.vehicle, 1200);
    }
    assert.ok(horse.tame && horse.owner === 'a0');
    assert.ok(player.vehicle === horse && off.length >= 0);
    await look(w, bot, 0);
    w.run(() => bot.setControlState('forward', true));
    await w.step(20);
    assert.equal(w.serv.survival.steering(horse), null, 'no saddle, no steering');
    w.run(() => bot.dismount());
    await w.step(2);
    await w.until(() => bot.equip(id(w, 'saddle'), 'hand'));
    await w.console(`/tp a0 ${horse.position.x} ${horse.position.y} ${horse.position.z - 1}`);
    await w.step(2);
    await w.until(() => bot.activateEntity(clientSide(bot, horse)));
    await w.step(1);
    assert.equal(horse.saddled, true);
    assert.equal(clientSide(bot, horse).metadata[16], 6);
    await getOn(w, bot, horse);
    await look(w, bot, Math.PI);
    const from = horse.position.clone();
    w.run(() => bot.setControlState('forward', true));
    await w.step(40);
    const speed = Math.hypot(horse.position.x - from.x, horse.position.z - from.z) / 2;
    assert.ok(speed > 7 && speed < 11, `${speed} blocks a second`);
    assert.ok(horse.position.z > from.z + 10, 'where its rider looks: south');
    w.run(() => bot.setControlState('jump', true));
    let top = 0;
    for (let i = 0; i < 20; i++) {
      await w.step(1);
      top = Math.max(top, horse.position.y - 4);
    }
    assert.ok(top > 1.5, `it leaps ${top} blocks`);
    assert.equal(player.health, 20);
  }));

test('a saddled pig is steered by who holds a carrot on a stick, a bare one is not mounted', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    summon(w, 'pig', [8.5, 4, 10.5], { NoAI: 1 });
    await w.step(2);
    const [bare] = mobs(w, 'pig');
    await getOn(w, bot, bare);
    assert.equal(player.vehicle, null);
    w.run(() => w.serv.survival.mobs.remove(bare));
    summon(w, 'pig', [8.5, 4, 10.5], { Saddle: 1 });
    await w.step(2);
    const pig = mobs(w, 'pig').find((each) => each.saddled);
    await getOn(w, bot, pig);
    assert.equal(player.vehicle, pig);
    await w.console('/replaceitem entity a0 weapon.mainhand carrot_on_a_stick');
    await look(w, bot, 0);
    const from = pig.position.clone();
    await w.step(60);
    assert.ok(pig.position.z < from.z - 3, `north, where its rider looks: ${pig.position}`);
  }));

test('rails bend beside one another, rise, and carry a cart downhill and round a bend', () =>
  inWorld({}, async (w, bot, player) => {
    const { blocks } = w.serv.survival;
    await w.console('/fill 10 4 8 10 5 8 stone');
    await w.console('/give a0 rail 20');
    await w.console('/give a0 minecart');
    await w.until(() => bot.equip(id(w, 'rail'), 'hand'));
    await w.console('/tp a0 12.5 4 10.5');
    await w.step(1);
    await w.console('/gamemode creative a0');
    const cells = [[10, 6, 8], [11, 4, 8], [12, 4, 8], [13, 4, 8], [13, 4, 9], [13, 4, 10]];
    await w.console('/setblock 11 5 8 stone');
    cells[1] = [11, 6, 8];
    cells.splice(2, 0);
    await w.console('/setblock 12 4 8 stone');
    cells[2] = [12, 5, 8];
    for (const [x, y, z] of cells) {
      await w.until(() => bot.placeBlock(bot.blockAt(new Vec3(x, y - 1, z)), new Vec3(0, 1, 0)));
      await w.step(1);
    }
    const shape = (x, y, z) => blocks.at(x, y, z).props.shape;
    assert.equal(shape(10, 6, 8), 'east_west');
    assert.equal(shape(12, 5, 8), 'ascending_west');
    assert.equal(shape(13, 4, 8), 'south_west', 'it bends');
    assert.equal(shape(13, 4, 10), 'north_south');
    await w.until(() => bot.equip(id(w, 'minecart'), 'hand'));
    await w.until(() => bot.activateBlock(bot.blockAt(new Vec3(12, 5, 8))));
    await w.step(2);
    const cart = vehicle(w);
    assert.equal(cart.name, 'minecart');
    await getOn(w, bot, cart);
    assert.equal(player.vehicle, cart);
    await until(w, () => cart.position.z > 10.9, 200);
    assert.ok(Math.abs(cart.position.x - 13.5) < 0.3, `${cart.position}`);
  }));

test('a powered rail drives a cart, one without power stops it', () =>
  inWorld({}, async (w, bot) => {
    await w.console('/fill 8 3 10 8 3 19 redstone_block');
    await w.console('/fill 8 4 10 8 4 27 powered_rail[shape=north_south]');
    await w.console('/setblock 8 4 9 stone');
    await w.console('/fill 8 4 28 8 4 30 powered_rail[shape=north_south,powered=false]');
    await w.console('/summon minecart 8.5 4.06 10.5');
    await w.step(2);
    const cart = vehicle(w);
    await until(w, () => cart.position.z > 29, 200);
    await w.step(40);
    assert.ok(cart.position.z < 31, `it stops at ${cart.position}`);
    assert.ok(Math.hypot(cart.motion.x, cart.motion.z) < 1e-3);
    assert.ok(bot.entities[cart.id].position.distanceTo(cart.position) < 0.01);
  }));

for (const actions of ['human', 'low_level']) {
  test(`${actions}: use mounts a boat, the keys row it, and sneaking gets off`, async () => {
    const world = await begin({ actions });
    const { x, y, z } = world.origin;
    await world.console(`/fill ${x - 8} ${y - 1} ${z} ${x + 8} ${y - 1} ${z + 40} water`);
    await world.console(`/tp a0 ${x + 0.5} ${y} ${z - 0.3} 0 40`);
    await world.console(`/summon boat ${x + 0.5} ${y} ${z + 1}`);
    await world.step(3);
    const [{ player }] = world.agents;
    const act = (keys) =>
      actions === 'human'
        ? { keys: KEYS.map((key) => Number(keys.includes(key))), camera: [5, 5] }
        : low({
            move: keys.includes('forward') ? 1 : 0,
            posture: keys.includes('sneak') ? 2 : 0,
            do: keys.includes('use') ? 'use' : 'nothing',
          });
    await playUntil(world, act(['use']), () => player.vehicle, 20);
    const from = player.position.clone();
    await play(world, act(['forward']), 40);
    assert.ok(player.position.distanceTo(from) > 6, `${player.position}, from ${from}`);
    await play(world, act(['sneak']), 2);
    assert.equal(player.vehicle, null);
    world.close();
  });
}

test('a creature that touches a boat gets in, stays, and gets out when it breaks', () =>
  inWorld({}, async (w, bot, player) => {
    await calm(w);
    await w.console('/summon boat 8.5 4 11.5');
    const pig = summon(w, 'pig', [9.3, 4, 11.5]);
    const cow = summon(w, 'cow', [2.5, 4, 20.5]);
    await w.step(20);
    const boat = vehicle(w);
    assert.equal(pig.vehicle, boat);
    assert.deepEqual(bot.entities[boat.id].passengers.map(({ name }) => name), ['pig']);
    await w.step(400);
    assert.ok(pig.position.distanceTo(boat.position) < 0.5, 'it is trapped');
    assert.ok(!cow.vehicle);
    await getOn(w, bot, boat);
    assert.equal(player.vehicle, boat, 'there are two seats');
    w.run(() => bot.dismount());
    await w.step(2);
    for (let i = 0; i < 20 && w.serv.entities[boat.id]; i++) {
      w.run(() => bot.attack(clientSide(bot, boat)));
      await w.step(6);
    }
    assert.ok(!pig.vehicle && pig.health > 0);
  }));

test('an animal that dies leaves its saddle', () =>
  inWorld({}, async (w) => {
    const { survival } = w.serv;
    const pig = w.run(() => survival.spawnMob('pig', new Vec3(4.5, 4, 4.5)));
    pig.saddled = true;
    w.run(() => survival.hurt(pig, { amount: 99, cause: 'command' }));
    const saddles = [...survival.drops.values()].filter(({ stack }) => stack.name === 'saddle');
    assert.equal(saddles.length, 1);
  }));

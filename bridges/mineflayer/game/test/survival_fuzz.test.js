'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, agree, count, seen, Vec3 } = require('./survival_help');

const pick = (w, list) => w.run(() => list[Math.floor(Math.random() * list.length)]);
const whole = (w, low, high) => w.run(() => low + Math.floor(Math.random() * (high - low + 1)));

/** All stacks of an item there are: bags, cursors, open grids, containers, the ground. */
function everywhere(w, name) {
  const { survival } = w.serv;
  let sum = 0;
  const add = (item) => {
    if (item && item.name === name) sum += item.count;
  };
  for (const player of w.players) {
    sum += count(player, name);
    add(player.cursor);
    if (player.openWindow && player.openWindow.kind === 'crafting') {
      player.openWindow.slots.slice(1, 10).forEach((slot) => add(slot.get()));
    }
  }
  for (const container of survival.containers.values()) container.slots.forEach(add);
  for (const entity of survival.drops.values()) add(entity.stack);
  return sum;
}

test('a thousand random clicks in three windows make and lose nothing', () =>
  inWorld({ agents: 2, seed: 21 }, async (w, bot, player) => {
    const kinds = ['diamond', 'iron_helmet', 'ender_pearl', 'shield', 'coal'];
    await w.console('/setblock 9 4 10 chest');
    await w.console('/setblock 9 4 7 crafting_table');
    await w.console('/setblock 10 4 7 furnace');
    await w.console('/fill 4 4 4 14 7 4 glass');
    for (const name of ['diamond 40', 'iron_helmet 2', 'ender_pearl 20', 'shield 1', 'coal 9']) {
      for (const who of ['a0', 'a1']) await w.console(`/give ${who} ${name}`);
    }
    // Coal would burn and diamonds be crafted: neither has its partner here.
    const before = kinds.map((name) => everywhere(w, name));
    const blocks = [
      [9, 4, 10],
      [9, 4, 7],
      [10, 4, 7],
    ];
    for (let i = 0; i < 1000; i++) {
      const index = whole(w, 0, 1);
      const client = w.bots[index]._client;
      const { openWindow } = w.players[index];
      if (i % 40 === 0) {
        const [x, y, z] = pick(w, blocks);
        client.write('block_place', {
          location: new Vec3(x, y, z),
          direction: 1,
          hand: 0,
          cursorX: 0.5,
          cursorY: 0.5,
          cursorZ: 0.5,
          insideBlock: false,
        });
      } else if (i % 40 === 39) {
        client.write('close_window', { windowId: openWindow ? openWindow.id : 0 });
      } else {
        client.write('window_click', {
          windowId: openWindow ? openWindow.id : 0,
          slot: pick(w, [-999, ...Array.from({ length: 64 }, (_, n) => n - 1)]),
          mouseButton: pick(w, [0, 0, 1, 1, 4, 8, 40, -1]),
          action: i + 1,
          mode: pick(w, [0, 0, 0, 1, 2, 4, 5, 6, 3]),
          item: { present: false },
        });
      }
      if (i % 3 === 0) await w.step(1);
    }
    for (const player of w.players) player.emit('closeWindows');
    await w.step(5);
    const after = kinds.map((name) => everywhere(w, name));
    assert.deepEqual(after, before);
    assert.equal(player.cursor, null);
    agree(bot, player);
    agree(w.bots[1], w.players[1]);
  }));

/** One random packet of those a player can send, mostly senseless. */
function nonsense(w, i) {
  const spot = () => new Vec3(whole(w, 4, 13), whole(w, -3, 8), whole(w, 4, 13));
  const ids = Object.keys(w.serv.entities).map(Number);
  return pick(w, [
    ['block_dig', { status: whole(w, 0, 6), location: spot(), face: whole(w, 0, 5) }],
    [
      'block_place',
      {
        location: spot(),
        direction: whole(w, 0, 5),
        hand: whole(w, 0, 1),
        cursorX: 0.5,
        cursorY: 0.7,
        cursorZ: 0.5,
        insideBlock: false,
      },
    ],
    ['use_item', { hand: whole(w, 0, 1) }],
    [
      'use_entity',
      { target: pick(w, [...ids, 99999]), mouse: whole(w, 0, 1), hand: 0, sneaking: false },
    ],
    ['held_item_slot', { slotId: whole(w, -5, 20) }],
    ['entity_action', { entityId: 1, actionId: whole(w, 0, 8), jumpBoost: 0 }],
    ['arm_animation', { hand: 0 }],
    ['client_command', { actionId: 0 }],
    ['close_window', { windowId: whole(w, 0, 100) }],
    [
      'window_click',
      {
        windowId: whole(w, 0, 3),
        slot: whole(w, -1, 50),
        mouseButton: whole(w, 0, 9),
        action: i + 1,
        mode: whole(w, 0, 6),
        item: { present: false },
      },
    ],
  ]);
}

test('two bots that send invalid packets break nothing and gain nothing', () =>
  inWorld({ agents: 2, seed: 31 }, async (w, bot, player) => {
    const things = [
      'bucket',
      'water_bucket',
      'oak_door',
      'red_bed',
      'bone_meal',
      'shears',
      'torch',
      'bread',
      'wheat_seeds',
      'oak_sapling',
      'flint_and_steel',
      'iron_axe',
      'sheep_spawn_egg',
      'stone_slab',
      'lever',
    ];
    for (const name of things) await w.console(`/give @a ${name}`);
    for (const kind of [
      'chest',
      'furnace',
      'cake',
      'oak_fence_gate',
      'farmland',
      'sand',
      'oak_log',
      'lever[face=floor]',
    ]) {
      await w.console(`/setblock ${whole(w, 5, 12)} 4 ${whole(w, 5, 12)} ${kind}`);
    }
    await w.console('/summon sheep 10 4 10');
    for (let i = 0; i < 3000; i++) {
      const [name, fields] = nonsense(w, i);
      w.run(() => pick(w, w.bots)._client.write(name, fields));
      if (i % 4 === 0) await w.step(1);
    }
    for (const each of w.players) each.emit('closeWindows');
    await w.step(60);
    assert.equal(seen(bot, 0, 0, 0).name, 'bedrock');
    for (const each of w.players) {
      assert.ok(
        each.health >= 0 && each.health <= 20 && each.heldItemSlot >= 0 && each.heldItemSlot <= 8,
      );
      for (const item of each.inventory.slots)
        assert.ok(!item || (item.count > 0 && item.count <= item.stackSize));
    }
    agree(bot, player);
    agree(w.bots[1], w.players[1]);
    for (const name of ['diamond', 'stone', 'oak_planks']) assert.equal(everywhere(w, name), 0);
  }));

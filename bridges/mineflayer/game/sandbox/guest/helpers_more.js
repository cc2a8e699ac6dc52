// MineLand's and Voyager's helpers, part 2: fights, chests, walks.
const { bot, goNear, goals, goTo, kind, pickUp, shown, whole, xyz, Vec3, ArgumentError } = guest;
const { ActionError } = globalThis;
const SECOND = 20; // ticks
const WEAPONS = ['netherite_sword', 'diamond_sword', 'iron_sword', 'stone_sword', 'golden_sword', 'wooden_sword',
  'netherite_axe', 'diamond_axe', 'iron_axe', 'stone_axe', 'golden_axe', 'wooden_axe'];
/** Ticks until a blow is at full strength: a sword's 1.6 and an axe's 0.8 to 1 blows per second. */
const cooldown = (item) => (item?.name.endsWith('_axe') ? 25 : item?.name.endsWith('_sword') ? 13 : 5);

const named = (name) => {
  kind('entities', name);
  const entity = bot.nearestEntity({ name, maxDistance: 64 });
  if (!entity) throw new ActionError(`no ${name} in sight within 64 blocks; explore first`);
  return entity;
};

/** Runs a fight until the game reports that its target is dead; a target out of sight does not count. */
const watchDeath = async (entity, fight) => {
  let dead = false;
  const onDead = (other) => { if (other.id === entity.id) dead = true; };
  bot.on('entityDead', onDead);
  try {
    await fight(() => dead);
  } finally {
    bot.removeListener('entityDead', onDead);
    bot.pathfinder.setGoal(null);
  }
  return dead;
};

/** Follows and hits an entity with the best weapon until `isOver()`, or it is gone; returns where it was last. */
const fightUntil = async (entity, isOver) => {
  const weapon = WEAPONS.map((one) => bot.inventory.findInventoryItem(one)).find(Boolean);
  if (weapon) await bot.equip(weapon, 'hand');
  let place = entity.position;
  let rest = 0;
  let followed = -Infinity;
  while (!isOver() && entity.isValid) {
    place = entity.position;
    const far = bot.entity.position.distanceTo(place);
    // A goal that moves less than its range counts as reached: it is set again now and then.
    if (far > 2.8 && guest.walks === 0 && bot.currentTick - followed >= SECOND) {
      bot.pathfinder.setGoal(goals.GoalFollow(entity, 1), true);
      followed = bot.currentTick;
    }
    if (far <= 3.2 && rest <= 0) {
      await bot.lookAt(place.offset(0, entity.height * 0.7, 0));
      if (isOver() || !entity.isValid || bot.entity.position.distanceTo(entity.position) > 3.4) continue;
      bot.attack(entity);
      rest = cooldown(bot.heldItem);
    }
    await bot.waitForTicks(1);
    rest -= 1;
  }
  return place;
};
guest.fightUntil = fightUntil;

/** Fights the nearest mob of a kind until it is dead. `timeout` in seconds. */
const killMob = guest.helper(async (name, timeout = 300) => {
  const entity = named(name);
  const limit = whole(Math.ceil(timeout), 1, 600, 'killMob(timeout)') * SECOND;
  const begin = bot.currentTick;
  let place = entity.position;
  const dead = await watchDeath(entity, async (isDead) => {
    const isLate = () => bot.currentTick - begin >= limit;
    place = await fightUntil(entity, () => isDead() || isLate());
    if (isDead() || isLate()) return;
    await bot.waitForTicks(5); // the message of its death may come later
    if (!isDead()) throw new ActionError(`lost sight of the ${name}`);
  });
  if (!dead) throw new ActionError(`the ${name} was not dead after ${Math.round(limit / SECOND)} s`);
  // A dead mob stays for a second and would be the nearest mob of its kind.
  for (let i = 0; i < 30 && entity.isValid; i++) await bot.waitForTicks(1);
  await pickUp(place, 6);
});

/** Shoots at the nearest mob of a kind until it is dead or the arrows are gone (at most 16 shots). */
const shoot = guest.helper(async (weapon, target) => {
  kind('items', weapon);
  if (!['bow', 'crossbow'].includes(weapon)) {
    throw new ArgumentError(`shoot: expected bow or crossbow, got ${shown(weapon)}`);
  }
  for (const need of [weapon, 'arrow']) {
    if (bot.inventory.count(need) === 0) throw new ActionError(`no ${need} in the inventory to shoot with`);
  }
  const entity = named(target);
  await bot.equip(weapon, 'hand');
  const aim = () => {
    const far = bot.entity.position.distanceTo(entity.position);
    // A full shot flies 3 blocks a tick and falls 0.05 blocks a tick more each tick (Minecraft Wiki: Arrow).
    const ticks = far / 2.8;
    const lead = entity.velocity.scaled(ticks);
    return bot.lookAt(entity.position.plus(lead).offset(0, entity.height * 0.7 + 0.025 * ticks * ticks, 0));
  };
  const dead = await watchDeath(entity, async (isDead) => {
    for (let shots = 0; shots < 16 && !isDead() && entity.isValid; shots++) {
      if (bot.inventory.count('arrow') === 0) break;
      await aim();
      bot.activateItem();
      await bot.waitForTicks(weapon === 'bow' ? 21 : 26);
      if (weapon === 'crossbow') bot.deactivateItem(); // it is loaded, and the next click shoots
      if (entity.isValid) await aim();
      if (weapon === 'crossbow') bot.activateItem();
      bot.deactivateItem();
      await bot.waitForTicks(SECOND);
    }
  });
  if (!dead) throw new ActionError(`the ${target} is not dead; arrows left: ${bot.inventory.count('arrow')}`);
});

/** Opens the chest at a position, hands it to `use`, closes it. */
const withChest = async (position, use) => {
  const place = new Vec3(...xyz(position, 'chest position')).floored();
  await goNear(place, 3);
  const block = bot.blockAt(place);
  if (!block || !/chest$|barrel$/.test(block.name)) {
    throw new ActionError(`no chest at ${place}: there is ${block ? block.name : 'nothing known'}`);
  }
  const chest = await bot.openChest(block);
  try {
    return await use(chest);
  } finally {
    chest.close();
  }
};
/** Walks to a chest. */
const moveToChest = guest.helper((position) => goNear(new Vec3(...xyz(position, 'moveToChest')).floored(), 3));
/** Closes the chest that was opened last; a closed one stays closed. */
const closeChest = guest.helper(async () => {
  if (guest.lastChest !== null) guest.act('closeWindow', guest.lastChest);
  guest.lastChest = null;
});
const wanted = (items, what) => {
  if (items === null || typeof items !== 'object' || Array.isArray(items)) {
    throw new ArgumentError(`${what}: expected {name: count, ...}, got ${shown(items)}`);
  }
  return Object.entries(items).map(([name, count]) => [kind('items', name), whole(count, 1, 3456, `${what}.${name}`)]);
};
const countOf = (items, id) => items.filter(({ type }) => type === id).reduce((sum, { count }) => sum + count, 0);

/** Takes {name: count, ...} out of a chest; an error names what it lacks, after taking what there is. */
const getItemFromChest = guest.helper(async (position, items) => {
  const list = wanted(items, 'getItemFromChest(items)');
  await withChest(position, async (chest) => {
    const lacking = [];
    for (const [{ id, name }, count] of list) {
      const has = countOf(chest.containerItems(), id);
      if (has > 0) await chest.withdraw(id, null, Math.min(has, count));
      if (has < count) lacking.push(`${has} of ${count} ${name}`);
    }
    if (lacking.length > 0) throw new ActionError(`the chest held only ${lacking.join(', ')}`);
  });
});

/** Puts {name: count, ...} into a chest. */
const depositItemIntoChest = guest.helper(async (position, items) => {
  const list = wanted(items, 'depositItemIntoChest(items)');
  await withChest(position, async (chest) => {
    for (const [{ id, name }, count] of list) {
      const has = bot.inventory.count(id);
      if (has < count) throw new ActionError(`there are only ${has} of ${count} ${name} in the inventory`);
      await chest.deposit(id, null, count);
    }
  });
});

/** Returns what a chest holds, {name: count}. */
const checkItemInsideChest = guest.helper((position) => withChest(position, async (chest) => {
  const held = {};
  for (const { name, count } of chest.containerItems()) held[name] = (held[name] ?? 0) + count;
  return held;
}));

/** Walks to a position: moveTo(position, range) or moveTo(x, y, z, range). */
const moveTo = guest.helper(async (...args) => {
  const isPoint = args[0] !== null && typeof args[0] === 'object';
  const place = isPoint ? args[0] : { x: args[0], y: args[1], z: args[2] };
  await goNear(place, (isPoint ? args[1] : args[3]) ?? 1, 120 * SECOND);
});

/** Follows a player for some ticks, even if it is out of sight at times. */
const followPlayer = guest.helper(async (username, range = 3, ticks = 10 * SECOND) => {
  whole(ticks, 1, 12000, 'followPlayer(ticks)');
  const names = Object.keys(bot.players);
  if (!names.includes(username)) {
    throw new ActionError(`no player is called ${shown(username)}; there are ${names.join(', ')}`);
  }
  let followed = null;
  try {
    for (let i = 0; i < ticks; i += 5) {
      const entity = bot.players[username]?.entity ?? null;
      if (entity && entity.id !== followed) {
        followed = entity.id;
        bot.pathfinder.setGoal(goals.GoalFollow(entity, range), true);
      }
      await bot.waitForTicks(Math.min(5, ticks - i));
    }
  } finally {
    bot.pathfinder.setGoal(null);
  }
  if (followed === null) throw new ActionError(`${username} was never in sight`);
});

/** Takes a block that was placed back into the inventory, by mining it. */
const givePlacedItemBack = guest.helper(async (name, position) => {
  const { id } = kind('blocks', name);
  const place = new Vec3(...xyz(position, 'givePlacedItemBack(position)')).floored();
  await goNear(place, 3);
  const block = bot.blockAt(place);
  if (!block || block.type !== id) {
    throw new ActionError(`there is ${block ? block.name : 'nothing known'} at ${place}, not ${name}`);
  }
  await guest.equipFor(block);
  await bot.dig(block);
  await pickUp(place);
});

/** Walks in a direction for at most `seconds` until a function returns a value; returns it, or null. */
const exploreUntil = guest.helper(async (direction, seconds, callback) => {
  const [x, , z] = xyz(direction, 'exploreUntil(direction)');
  const limit = bot.currentTick + whole(Math.ceil(seconds), 1, 1200, 'exploreUntil(seconds)') * SECOND;
  if (x === 0 && z === 0) throw new ArgumentError('exploreUntil: the direction has to lead along x or z');
  while (bot.currentTick < limit) {
    const found = await callback();
    if (found) return found;
    const { position } = bot.entity;
    const next = position.offset(Math.sign(x) * 12, 0, Math.sign(z) * 12);
    await goTo(goals.GoalNearXZ(next.x, next.z, 2), Math.max(1, Math.min(20 * SECOND, limit - bot.currentTick)))
      .catch(() => bot.waitForTicks(SECOND));
  }
  return null;
});

guest.provide({
  killMob, shoot, getItemFromChest, depositItemIntoChest, checkItemInsideChest, moveToChest, closeChest, moveTo,
  followPlayer, givePlacedItemBack, exploreUntil
});

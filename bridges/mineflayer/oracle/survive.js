// Digs a hole, closes it and waits. Fights what comes near before, if it has a sword, else runs away.
const eat = async () => {
  const food = bot.inventory.items().find(({ name }) => mcData.foods[name]);
  if (food && bot.food < 18) await tried(async () => { await bot.equip(food, 'hand'); await bot.consume(); });
};
const foe = (maxDistance) => bot.nearestEntity({ kind: 'Hostile mobs', maxDistance });
const armed = bot.inventory.items().some(({ name }) => name.endsWith('_sword'));

/** Walks straight ahead along a path of `turns`. */
function march(test, ticks) {
  const [x, z] = turns[way % 8];
  return approach(() => bot.entity.position.offset(16 * x, 0, 16 * z), 1, ticks, test);
}

/** Runs away from hostile mobs: they are slower, and forget a player they do not see. */
async function flee() {
  for (let legs = 0; legs < 12 && foe(28); legs++) {
    const away = bot.entity.position.minus(foe(48).position);
    const along = turns.map(([x, z]) => (x * away.x + z * away.z) / Math.hypot(x, z));
    way = along.indexOf(Math.max(...along));
    const from = bot.entity.position;
    await march(() => null, 60);
    if (bot.entity.position.distanceTo(from) > 6) continue;
    way = (way + 4) % 8;
    await march(() => null, 40);
  }
}

const HARD = /^(dirt|cobblestone|.*_planks|.*stone)$/;
const LOOSE = /^(red_)?sand$|^gravel$/;
const floor = () => bot.blockAt(feet().offset(0, -1, 0))?.name ?? '';
const soft = () => /dirt|grass_block|podzol|mycelium|snow_block|clay/.test(floor());
const sandy = () => /sand|gravel/.test(floor());
let wet = null; // where water flowed into a hole
/** Whether a hole can be dug here. */
const fit = () => (soft() || sandy()) && !sees(['water'], 7) && !(wet?.distanceTo(bot.entity.position) < 16);
const SIDES = turns.slice(0, 4).flatMap(([x, z]) => [[x, 0, z], [x, 1, z]]);
const gaps = (cells) => cells.filter(([x, y, z]) => !solid(bot.blockAt(feet().offset(x, y, z))));
const deep = () => gaps(SIDES).length === 0;
const closed = () => !bot.entity.isInWater && deep() && gaps([[0, 2, 0]]).length === 0;

/** Closes the gaps around the body; what falls cannot be put over the head. */
async function patch() {
  for (const [x, y, z] of gaps([...SIDES, [0, 2, 0]])) {
    const fits = ({ name }) => HARD.test(name) || (y < 2 && LOOSE.test(name));
    const cover = bot.inventory.items().find(fits);
    if (cover) await tried(() => placeItem(cover.name, feet().offset(x, y, z)));
  }
}

/** Digs down by a block. */
async function lower() {
  // In the air, where one also begins, digging takes five times as long.
  for (let t = 0; t < 20 && !bot.entity.onGround; t++) await bot.waitForTicks(1);
  await clear(feet().offset(0, -1, 0));
  await bot.waitForTicks(3);
}

/** Digs a hole and closes it above; below sand, which falls, it digs to the side in the rock. */
async function digIn() {
  const { x, y, z } = feet();
  await walkTo(new GoalBlock(x, y, z), 20); // moves to the middle of the block
  if (!sandy()) {
    for (let tries = 0; tries < 4 && feet().y > y - 3; tries++) await lower();
    return patch();
  }
  for (let rock = 0, tries = 0; rock < 3 && tries < 14 && /sand|stone/.test(floor()) && !foe(4); tries++) {
    if (bot.entity.isInWater) return;
    rock = /stone/.test(floor()) ? rock + 1 : 0;
    await lower();
  }
  for (const [dx, dz] of foe(4) ? [] : turns.slice(0, 4)) {
    const from = feet();
    if (gaps([[dx, 0, dz], [dx, 1, dz]]).length > 0) continue;
    await clear(from.offset(dx, 1, dz));
    await clear(from.offset(dx, 0, dz));
    if (await approach(() => from.offset(dx + 0.5, 0, dz + 0.5), 0.25, 30)) return patch();
  }
}

/** Strikes with the sword what comes near, and holds the shield up between two strokes. */
async function fight() {
  const sword = bot.inventory.items().find(({ name }) => name.endsWith('_sword'));
  await tried(() => bot.equip(sword, 'hand'));
  for (let t = 0, rest = 0; t < 40; t++, rest--) {
    const enemy = foe(5);
    if (!enemy || enemy.name === 'creeper') break;
    await bot.lookAt(enemy.position.offset(0, enemy.height * 0.7, 0));
    if (rest === 1) bot.deactivateItem();
    const far = bot.entity.position.distanceTo(enemy.position);
    if (far < 3.3 && rest <= 0 && await tried(() => bot.attack(enemy))) {
      [t, rest] = [0, 13];
      bot.activateItem(true);
    }
    await bot.waitForTicks(1);
  }
  bot.deactivateItem();
}

while (true) {
  const near = closed() ? null : foe(sandy() ? 16 : 9);
  if (closed()) await eat();
  else if (armed && foe(3)) await fight();
  else if (bot.entity.isInWater) {
    wet = bot.entity.position;
    await explore(fit);
  } else if (deep()) {
    await patch();
    if (!closed()) await digIn();
  } else if (armed && foe(5)) await fight();
  else if (near && armed && near.name === 'zombie') await bot.waitForTicks(5);
  else if (near) await flee();
  else if (fit()) await digIn();
  else await explore(() => fit() || foe(9));
  await bot.waitForTicks(closed() && !foe(8) ? 100 : 1);
}

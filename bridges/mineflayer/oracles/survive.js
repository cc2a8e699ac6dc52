// Fights nearby mobs if it has a sword, digs in, closes the hole above its head, and waits.
const eat = async () => {
  const food = bot.inventory.items().find(({ name }) => mcData.foods[name]);
  if (food && bot.food < 18) await tried(async () => { await bot.equip(food, 'hand'); await bot.consume(); });
};
const foe = (maxDistance) => bot.nearestEntity({ kind: 'Hostile mobs', maxDistance });
const armed = bot.inventory.items().some(({ name }) => name.endsWith('_sword'));
const COVER = /^(dirt|cobblestone|.*_planks|.*stone)$/;

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

async function digIn() {
  if (/water|lava|sand$|gravel/.test(bot.blockAt(feet().offset(0, -1, 0))?.name ?? 'water')) return;
  const { x, y, z } = feet();
  await walkTo(new GoalBlock(x, y, z), 20); // moves to the middle of the block
  for (let tries = 0; tries < 4 && feet().y > y - 3; tries++) {
    await clear(feet().offset(0, -1, 0));
    await bot.waitForTicks(6);
  }
  const cover = bot.inventory.items().find(({ name }) => COVER.test(name));
  const lid = feet().offset(0, 2, 0);
  if (cover && feet().y < y - 1 && !solid(bot.blockAt(lid))) await tried(() => placeItem(cover.name, lid));
}

const firm = () => !/water|lava|sand|gravel/.test(bot.blockAt(feet().offset(0, -1, 0))?.name ?? 'water');
while (true) {
  for (let fights = 0; armed && bot.health > 7 && foe(6) && fights < 8; fights++) {
    await tried(() => killMob(foe(6).name, 20));
    await bot.waitForTicks(1);
  }
  if (!roofed() && foe(28)) await flee();
  if (!roofed() && !firm()) await explore(firm);
  if (!solid(bot.blockAt(feet().offset(0, 2, 0)))) await digIn();
  await eat();
  await bot.waitForTicks(foe(8) ? 20 : 100);
}

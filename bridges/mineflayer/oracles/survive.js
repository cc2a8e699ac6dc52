// Digs in where the ground is soft, closes the hole above the head, and waits.
const eat = async () => {
  const food = bot.inventory.items().find(({ name }) => mcData.foods[name]);
  if (food && bot.food < 18) await tried(async () => { await bot.equip(food, 'hand'); await bot.consume(); });
};
await explore(() => !/water|lava|sand|gravel/.test(bot.blockAt(feet().offset(0, -1, 0))?.name ?? 'water'), 6);
const { x, y, z } = feet();
await tried(() => bot.pathfinder.goto(new GoalBlock(x, y - 3, z), 1200));
const cover = bot.inventory.items().find(({ name }) => /^(dirt|cobblestone|.*_planks|.*stone)$/.test(name));
if (cover) await tried(() => placeItem(cover.name, feet().offset(0, 2, 0)));
while (true) {
  await eat();
  await bot.waitForTicks(100);
}

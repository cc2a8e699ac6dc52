// Fights the targets one after the other until no more come into sight.

/** Runs away from a creeper that has been lit: it goes out only where one is more than 7 blocks away. */
async function escape(from) {
  for (let t = 0; t < 60 && from.isValid; t += 2) {
    const { x, z } = bot.entity.position.minus(from.position);
    const far = Math.hypot(x, z);
    await bot.look(Math.atan2(-x, -z), 0);
    if (far < 12) press(Math.round(x / far), Math.round(z / far));
    else bot.clearControlStates();
    await bot.waitForTicks(2);
  }
  bot.clearControlStates();
}

/** Strikes a creeper from as far as a sword reaches, where it is not lit yet, and steps back. */
async function fence(prey) {
  const sword = bot.inventory.items().find(({ name }) => name.endsWith('_sword'));
  if (sword) await bot.equip(sword, 'hand');
  for (let t = 0, rest = 0, lit = false; t < 600 && prey.isValid; t++, rest--) {
    const far = bot.entity.position.distanceTo(prey.position);
    lit = lit || far < 3.05;
    if (lit && rest > 0) {
      await escape(prey);
      lit = false;
    }
    await bot.lookAt(prey.position.offset(0, prey.height * 0.7, 0));
    if (far < 3.7 && rest <= 0 && await tried(() => bot.attack(prey))) rest = 13;
    bot.setControlState('back', rest > 0 && far < 4.5);
    bot.setControlState('forward', far > 6);
    await bot.waitForTicks(1);
  }
  bot.clearControlStates();
}

for (let poor = 0; poor < 20; poor++) {
  const found = await explore(() => bot.nearestEntity({ name: TARGET }));
  if (found && await tried(() => (TARGET === 'creeper' ? fence(found) : killMob(TARGET, 60)))) poor = 0;
  await bot.waitForTicks(1);
}

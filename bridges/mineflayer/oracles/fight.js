// Fights the targets one after the other until no more come into sight.
for (let poor = 0; poor < 20; poor++) {
  const found = await explore(() => bot.nearestEntity({ name: TARGET }));
  if (found && await tried(() => killMob(TARGET, 60))) poor = 0;
}

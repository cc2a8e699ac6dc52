// What fails for once may not the next time: animals walk, and another way leads elsewhere.
while (have(TARGET) < COUNT) {
  await tried(() => obtain(TARGET, COUNT));
  await bot.waitForTicks(5);
}

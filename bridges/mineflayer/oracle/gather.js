// A failure may not repeat: animals walk, and another path leads elsewhere.
while (have(TARGET) < COUNT) {
  await tried(() => obtain(TARGET, COUNT));
  await bot.waitForTicks(5);
}

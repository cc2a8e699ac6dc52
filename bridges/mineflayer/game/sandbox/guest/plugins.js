// What the plugins pvp and collectBlock of MineLand's and Voyager's bots do.
const { bot, digOne, fightUntil, goNear, pickUp, shown, whole, ArgumentError } = guest;
const { ActionError } = globalThis;
const LONGEST_FIGHT = 6000; // ticks

/** The fight that goes on beside the program, as of the plugin pvp. */
const fight = {
  target: null,
  stop() {
    if (fight.target === null) return;
    fight.target = null;
    if (guest.walks === 0) bot.pathfinder.setGoal(null);
    guest.events.emit(['stoppedAttacking', []]);
  },
  async attack(entity) {
    guest.entityId(entity, 'bot.pvp.attack');
    fight.stop();
    fight.target = entity;
    guest.events.emit(['startedAttacking', []]);
    const limit = bot.currentTick + LONGEST_FIGHT;
    const isOver = () => fight.target !== entity || bot.currentTick >= limit;
    fightUntil(entity, isOver).catch(() => {}).then(() => { if (fight.target === entity) fight.stop(); });
  }
};

const collectOne = async (target) => {
  if (target?.getDroppedItem) {
    await goNear(target.position, 1);
    await pickUp(target.position, 2);
    if (target.isValid) throw new ActionError(`the item at ${target.position} could not be picked up`);
    return;
  }
  const block = target?.position ? target : bot.blockAt(target);
  if (!block?.position) throw new ArgumentError(`bot.collectBlock: expected blocks or items, got ${shown(target)}`);
  if (!await digOne(block)) throw new ActionError(`${block.name} at ${block.position} is not there any more`);
};

/**
 * Mines blocks, and picks up what they drop and items on the ground, one after the other, `count` of them at most.
 * With `ignoreNoPath` those that cannot be had are left out.
 */
const collect = guest.placed(async (targets, { ignoreNoPath = false, count = 256 } = {}) => {
  let left = whole(count, 1, 256, 'bot.collectBlock.collect(count)');
  for (const target of [targets].flat()) {
    if (left === 0) return;
    try {
      await collectOne(target);
      left -= 1;
    } catch (error) {
      if (!ignoreNoPath || !(error instanceof ActionError)) throw error;
    }
  }
});

guest.provide({ fight, collect });

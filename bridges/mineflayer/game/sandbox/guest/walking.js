// Goals, movements and bot.pathfinder; access to the helpers.
const { act, call, wait, xyz, bot, ArgumentError } = guest;
const { freeze } = Object;
const kinds = {
  GoalBlock: (x, y, z) => ({ x, y, z }),
  GoalNear: (x, y, z, range = 1) => ({ x, y, z, range }),
  GoalXZ: (x, z) => ({ x, z }),
  GoalNearXZ: (x, z, range = 1) => ({ x, z, range }),
  GoalY: (y) => ({ y }),
  GoalGetToBlock: (x, y, z) => ({ x, y, z }),
  GoalLookAtBlock: (point) => { const [x, y, z] = xyz(point, 'GoalLookAtBlock'); return { x, y, z }; },
  GoalBreakBlock: (x, y, z) => ({ x, y, z }),
  GoalPlaceBlock: (point, _world, options) => {
    const [x, y, z] = xyz(point, 'GoalPlaceBlock');
    return { x, y, z, range: options?.range ?? 5 };
  },
  GoalFollow: (entity, range = 1) => ({ entity: guest.entityId(entity, 'GoalFollow'), range }),
  GoalCompositeAny: several('GoalCompositeAny'),
  GoalCompositeAll: several('GoalCompositeAll'),
  GoalInvert: (goal) => ({ goals: [goalOf(goal, 'GoalInvert')] })
};
function several(what) {
  return (list = []) => {
    const parts = [];
    const push = (goal) => { parts.push(goalOf(goal, what)); };
    list.forEach(push);
    return { goals: parts, push };
  };
}
const goals = {};
for (const [kind, fields] of Object.entries(kinds)) {
  goals[kind] = function Goal(...args) {
    return freeze({ kind, ...fields(...args) });
  };
}
freeze(goals);

/** Settings of paths; what is undefined stays as it is by default. */
class Movements {
  constructor() {
    this.canDig = true;
    this.allow1by1towers = true;
    this.allowParkour = true;
    this.allowSprinting = true;
    this.maxDropDown = 4;
  }
}
const SETTINGS = ['canDig', 'allow1by1towers', 'allowParkour', 'allowSprinting', 'allowFreeMotion', 'canOpenDoors',
  'dontCreateFlow', 'dontMineUnderFallingBlock', 'allowEntityDetection', 'digCost', 'placeCost', 'liquidCost',
  'entityCost', 'maxDropDown'];
function settings(movements) {
  const out = {};
  for (const name of SETTINGS) if (movements?.[name] !== undefined) out[name] = movements[name];
  for (const name of ['scafoldingBlocks', 'blocksCantBreak']) {
    if (movements?.[name] !== undefined) out[name] = [...movements[name]];
  }
  return out;
}

function goalOf(goal, what) {
  if (goal !== null && typeof goal === 'object' && typeof goal.kind === 'string') return goal;
  throw new ArgumentError(`${what}: expected a goal (new GoalNear(x, y, z, range), ...), got ${guest.shown(goal)}`);
}
/** Walks in progress that the program waits for: a fight beside them leaves the way to them. */
guest.walks = 0;
const goTo = guest.placed(async (goal, ticks, spare) => {
  guest.walks += 1;
  try {
    return await wait('goto', goalOf(goal, 'bot.pathfinder.goto'), ticks, spare);
  } finally {
    guest.walks -= 1;
  }
});

bot.pathfinder = freeze({
  goto: async (goal, ticks) => { await goTo(goal, ticks); },
  setGoal(goal, dynamic) {
    act('setGoal', goal ? goalOf(goal, 'bot.pathfinder.setGoal') : undefined, Boolean(dynamic));
  },
  setMovements: (movements) => act('setMovements', settings(movements)),
  stop: () => act('stopPath'),
  isMoving: () => call('walking').moving,
  isMining: () => call('walking').mining,
  isBuilding: () => call('walking').building
});
guest.goTo = goTo;
guest.goals = goals;
// Plugins of MineLand's and Voyager's bots.
bot.pvp = freeze({
  get target() { return helpers?.fight.target ?? null; },
  attack: (entity) => late().fight.attack(entity),
  stop: () => late().fight.stop(),
  forceStop: () => late().fight.stop()
});
bot.collectBlock = freeze({ collect: (targets, options) => late().collect(targets, options) });
Object.freeze(bot);
guest.expose({ bot, ...goals, goals, Movements });

// The helpers are compiled when the first of them is used.
const evaluate = eval;
let helpers = null;
const late = () => helpers ?? load();
const load = () => {
  helpers = {};
  evaluate(guest.settings.late)(guest);
  return helpers;
};
guest.provide = (more) => Object.assign(helpers, more);
for (const name of ['mineBlock', 'craftItem', 'smeltItem', 'placeItem', 'killMob', 'shoot', 'getItemFromChest',
  'depositItemIntoChest', 'checkItemInsideChest', 'moveToChest', 'closeChest', 'moveTo', 'followPlayer',
  'givePlacedItemBack', 'exploreUntil']) {
  Object.defineProperty(globalThis, name, { get: () => late()[name], enumerable: true });
}

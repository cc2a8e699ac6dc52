// Builds PLAN, [x, y, z, name] each, on free level ground: from the ground up, each block against
// one that stands. Earth is dug for steps, where it is too high to be reached from the ground.
const SIDES = [[0, -1, 0], [0, 0, -1], [0, 0, 1], [-1, 0, 0], [1, 0, 0], [0, 1, 0]];
const most = (axis) => Math.max(...PLAN.map((place) => place[axis]));
const ground = bot.blockAt(feet().offset(0, -1, 0))?.name ?? 'grass_block';
const earth = ground === 'grass_block' ? 'dirt' : ground;
const STEPS = { canDig: false, scafoldingBlocks: [earth], maxDropDown: 6, allowParkour: false };

/** Whether the blueprint, and a way around it, fits on level ground with this corner. */
function fits(corner) {
  for (let x = -1; x <= most(0) + 1; x++) {
    for (let z = -1; z <= most(2) + 1; z++) {
      const [below, above] = [-1, 0].map((y) => bot.blockAt(corner.offset(x, y, z)));
      if (!solid(below) || !above || above.boundingBox === 'block' || /water|lava/.test(above.name)) return false;
    }
  }
  return true;
}

async function findSite(nearest) {
  for (let far = nearest; far < 24; far += 2) {
    for (const [x, z] of turns) {
      const corner = feet().offset(x * far, 0, z * far);
      if (fits(corner)) return corner;
      await bot.waitForTicks(1);
    }
  }
  throw new ActionError('no level ground in sight');
}

const high = most(1) > 2;
// Earth is dug beside it, not on it.
const corner = await findSite(high ? 8 : 2);
if (high) await tried(() => mineBlock(ground, 16));
const left = new Set(PLAN.map(([x, y, z, name]) => ({ cell: corner.offset(x, y, z), name })));
const beside = (cell) => SIDES.map(([x, y, z]) => [cell.offset(x, y, z), new Vec3(-x, -y, -z)])
  .filter(([place]) => solid(bot.blockAt(place)));

/** Puts a block in its place, and removes the earth that may be there. */
async function lay({ cell, name }) {
  const there = bot.blockAt(cell);
  if (there?.name === name) return;
  if (solid(there)) {
    await bot.pathfinder.goto(new GoalNear(cell.x, cell.y, cell.z, 3), 600);
    await bot.dig(there);
  }
  if (high && have(earth) < 3) await tried(() => mineBlock(ground, 8));
  await bot.pathfinder.goto(new GoalPlaceBlock(cell, bot.world, { range: 4 }), 400);
  await bot.equip(name, 'hand');
  for (const [place, face] of beside(cell)) {
    if (await tried(() => bot.placeBlock(bot.blockAt(place), face))) break;
  }
  if (bot.blockAt(cell)?.name !== name) throw new ActionError(`could not place ${name} at ${cell}`);
}

bot.pathfinder.setMovements(STEPS);
for (let poor = 0; left.size > 0; poor++) {
  const here = bot.entity.position;
  // Every fourth failure the next one is tried first: what is in the way may be gone then.
  const next = [...left].sort((a, b) => a.cell.y - b.cell.y || a.cell.distanceTo(here) - b.cell.distanceTo(here));
  const one = next[Math.floor(poor / 4) % next.length];
  if (await tried(() => lay(one))) {
    left.delete(one);
    poor = -1;
  }
  log(`${left.size} left, ${have(earth)} ${earth}, ${feet()} ${one.cell} ${one.name}`);
  await bot.waitForTicks(2);
}

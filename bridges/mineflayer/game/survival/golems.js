'use strict';

/**
 * Snow and iron golems that players build: a carved pumpkin or a jack o'lantern, put last on two
 * blocks of snow or four of iron, in any direction (Minecraft Wiki, "Snow Golem" and "Iron Golem", Java
 * Edition 1.16). Commands and pistons that complete the shape make one too.
 */

const { Vec3 } = require('vec3');
const { biomeAt } = require('./fishing');
const { supported } = require('./support');

const name = 'golems';
/** Temperatures of biomes below which a snow golem leaves snow, and above which it melts. */
const COOL = 0.8;
const HOT = 1;
const HEADS = new Set(['carved_pumpkin', 'jack_o_lantern']);
/** What must be around the head: `[along the arms, down from the head]` of each block, and what is air. */
const SHAPES = [
  { kind: 'snow_golem', block: 'snow_block', body: [[0, 1], [0, 2]], air: [] },
  {
    kind: 'iron_golem', block: 'iron_block', body: [[-1, 1], [0, 1], [1, 1], [0, 2]],
    air: [[-1, 0], [1, 0], [-1, 2], [1, 2]],
  },
];
const WAYS = [[0, -1, 0], [0, 1, 0], [0, 0, -1], [0, 0, 1], [-1, 0, 0], [1, 0, 0]];
/** Each way down from the head with each way of the arms, upright first. */
const POSES = WAYS.flatMap((down) =>
  [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    .filter((arms) => arms.every((v, i) => v === 0 || down[i] === 0))
    .map((arms) => ({ down, arms })));

function cellsOf([x, y, z], { down, arms }, offsets) {
  return offsets.map(([across, along]) => [
    x + arms[0] * across + down[0] * along,
    y + arms[1] * across + down[1] * along,
    z + arms[2] * across + down[2] * along,
  ]);
}

function wake(serv, head) {
  const { survival } = serv;
  const { blocks } = survival;
  for (const { kind, block, body, air } of SHAPES) {
    for (const pose of POSES) {
      const cells = cellsOf(head, pose, body);
      if (!cells.every((cell) => blocks.at(...cell).name === block)) continue;
      if (!cellsOf(head, pose, air).every((cell) => blocks.at(...cell).air)) continue;
      for (const cell of [head, ...cells]) blocks.setNamed(...cell, 'air');
      const [x, y, z] = cells[cells.length - 1];
      survival.spawnMob(kind, new Vec3(x + 0.5, y + 0.05, z + 0.5)).built = true;
      return;
    }
  }
}

/** A snow golem leaves snow behind where it is cool, and melts where it is hot. */
function walk(serv, golem) {
  const { survival, registry } = serv;
  const { blocks } = survival;
  const { temperature } = registry.biomesByName[biomeAt(serv, golem.position)] ?? { temperature: 1 };
  if (temperature > HOT) survival.hurt(golem, { amount: 1, cause: 'fire' });
  if (temperature >= COOL || !survival.rules.mobGriefing) return;
  const y = Math.floor(golem.position.y);
  const snow = blocks.info(blocks.state('snow'));
  for (const [dx, dz] of [[-1, -1], [1, -1], [-1, 1], [1, 1]]) {
    const [x, z] = [golem.position.x + dx * 0.25, golem.position.z + dz * 0.25].map(Math.floor);
    if (blocks.at(x, y, z).air && supported(blocks, x, y, z, snow)) blocks.set(x, y, z, snow.stateId);
  }
}

function server(serv) {
  const { survival } = serv;
  survival.blocks.onChange((x, y, z, old, now) => {
    if (HEADS.has(now.name) && !HEADS.has(old.name)) wake(serv, [x, y, z]);
  });
  survival.onTick(() => {
    for (const mob of survival.mobs.list.values())
      if (mob.name === 'snow_golem' && mob.health > 0) walk(serv, mob);
  });
}

module.exports = { name, server };

'use strict';

/**
 * Spawners of generated places (Minecraft Wiki, "Spawner", 1.16): with a player within 16 blocks, up
 * to four creatures every 10 to 40 seconds, unless there are six around it.
 */

const { Vec3 } = require('vec3');

const name = 'spawners';
const RANGE = 16;
const LOOKS = 20; // ticks between looks for players near spawners
const WAIT = [200, 800];
const COUNT = 4;
const ENOUGH = 6;
const [WIDE, TALL] = [4, 1];

const wait = () => WAIT[0] + Math.floor(Math.random() * (WAIT[1] - WAIT[0]));

/** The spawners of the chunks around a place. */
function around(serv, generator, { x, z }) {
  const found = [];
  const [cx, cz] = [Math.floor(x) >> 4, Math.floor(z) >> 4];
  for (let dx = -1; dx <= 1; dx++)
    for (let dz = -1; dz <= 1; dz++) found.push(...generator.spawners(cx + dx, cz + dz));
  return found;
}

function spawn(serv, { x, y, z, kind }) {
  const { survival } = serv;
  const near = [...survival.mobs.list.values()].filter(
    (mob) => mob.name === kind && mob.health > 0
      && Math.abs(mob.position.x - x) <= 9 && Math.abs(mob.position.z - z) <= 9);
  for (let i = 0; i < COUNT && near.length + i < ENOUGH; i++) {
    const at = new Vec3(
      x + 0.5 + (Math.random() - Math.random()) * WIDE,
      y - TALL + Math.floor(Math.random() * 3),
      z + 0.5 + (Math.random() - Math.random()) * WIDE,
    );
    const free = [0, 1].every((up) => {
      const info = survival.blocks.at(at.x, at.y + up, at.z);
      return info.boxes.length === 0 && !info.liquid;
    });
    if (free) survival.spawnMob(kind, at, { natural: true });
  }
}

function server(serv, options) {
  const { survival } = serv;
  const { generator } = options.gamut;
  survival.spawnerDue = new Map();
  survival.onTick((tick) => {
    if (tick % LOOKS !== 0 || !generator.spawners || serv.difficulty === 0) return;
    const seen = new Set();
    for (const player of serv.players) {
      if (!player.joined || player.gameMode === 3) continue;
      for (const spawner of around(serv, generator, player.position)) {
        const { x, y, z } = spawner;
        const key = `${x},${y},${z}`;
        const far = player.position.distanceTo(new Vec3(x + 0.5, y + 0.5, z + 0.5));
        if (seen.has(key) || far > RANGE || survival.blocks.at(x, y, z).name !== 'spawner') continue;
        seen.add(key);
        if (!survival.spawnerDue.has(key)) survival.spawnerDue.set(key, tick + LOOKS);
        if (tick < survival.spawnerDue.get(key)) continue;
        survival.spawnerDue.set(key, tick + wait());
        spawn(serv, spawner);
      }
    }
  });
}

const save = ({ survival }) => [...survival.spawnerDue];

function load({ survival }, data) {
  survival.spawnerDue = new Map(data ?? []);
}

module.exports = { name, server, save, load };

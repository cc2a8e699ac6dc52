'use strict';

/**
 * Farming: crops, stems, canes, cacti, berries and saplings grow, farmland dries and is trampled,
 * hoes till, bone meal speeds up growth, berries are picked, leaves decay without their tree
 * (Minecraft Wiki, pages of the crops, 1.16). 'gamut:tilled', 'gamut:fertilised',
 * 'gamut:trampled' {player, cell}.
 */

const { FACES } = require('./blocks');
const { growTree } = require('./trees');
const { lootOf, between } = require('./loot');

const name = 'farming';
const RIPE = {
  wheat: 7,
  carrots: 7,
  potatoes: 7,
  beetroots: 3,
  nether_wart: 3,
  melon_stem: 7,
  pumpkin_stem: 7,
  cocoa: 2,
  sweet_berry_bush: 3,
};
const CROP = /^(wheat|carrots|potatoes|beetroots)$/;
const SIDES = FACES.slice(2);

/**
 * The growth rate of a crop, from its farmland and its neighbours (Minecraft Wiki, "Tutorial:Crop
 * farming").
 */
function pointsFor(blocks, x, y, z, id) {
  let points = 1;
  for (let dx = -1; dx <= 1; dx++) {
    for (let dz = -1; dz <= 1; dz++) {
      const soil = blocks.at(x + dx, y - 1, z + dz);
      if (soil.name !== 'farmland') continue;
      const worth = soil.props.moisture > 0 ? 3 : 1;
      points += dx === 0 && dz === 0 ? worth : worth / 4;
    }
  }
  const like = (dx, dz) => blocks.at(x + dx, y, z + dz).id === id;
  const alongX = like(-1, 0) || like(1, 0);
  const alongZ = like(0, -1) || like(0, 1);
  const aslant = like(-1, -1) || like(1, -1) || like(-1, 1) || like(1, 1);
  return (alongX && alongZ) || aslant ? points / 2 : points;
}

function older(blocks, x, y, z, info, by = 1) {
  const age = Math.min(RIPE[info.name], info.props.age + by);
  blocks.set(x, y, z, blocks.changed(info, { age }));
}

function growCrop(blocks, x, y, z, info) {
  if (info.props.age >= RIPE[info.name]) return;
  const points = pointsFor(blocks, x, y, z, info.id);
  if (Math.random() < 1 / (Math.floor(25 / points) + 1)) older(blocks, x, y, z, info);
}

function growStem(blocks, x, y, z, info) {
  const points = pointsFor(blocks, x, y, z, info.id);
  if (Math.random() >= 1 / (Math.floor(25 / points) + 1)) return;
  if (info.props.age < 7) {
    older(blocks, x, y, z, info);
    return;
  }
  const [dx, , dz] = SIDES[Math.floor(Math.random() * 4)];
  const soil = blocks.at(x + dx, y - 1, z + dz);
  if (
    !blocks.at(x + dx, y, z + dz).air ||
    !/^(farmland|dirt|grass_block|coarse_dirt|podzol)$/.test(soil.name)
  )
    return;
  blocks.setNamed(x + dx, y, z + dz, info.name.replace('_stem', ''));
}

function growSometimes(chance) {
  return (blocks, x, y, z, info) => {
    if (info.props.age < RIPE[info.name] && Math.random() < chance) older(blocks, x, y, z, info);
  };
}

/** Canes and cacti: up to three high, a block every 16 random ticks. */
function growTall(blocks, x, y, z, info) {
  if (!blocks.at(x, y + 1, z).air) return;
  let height = 1;
  while (height < 3 && blocks.at(x, y - height, z).id === info.id) height++;
  if (height >= 3) return;
  if (info.props.age < 15) {
    blocks.set(x, y, z, blocks.changed(info, { age: info.props.age + 1 }));
    return;
  }
  blocks.setNamed(x, y + 1, z, info.name);
  const grown = blocks.at(x, y, z);
  if (grown.id === info.id) blocks.set(x, y, z, blocks.changed(grown, { age: 0 }));
}

function growSapling(blocks, x, y, z, info, chance = 1 / 7) {
  if (Math.random() >= chance) return;
  if (info.props.stage === 0) blocks.set(x, y, z, blocks.changed(info, { stage: 1 }));
  else growTree(blocks, info.name.replace('_sapling', ''), x, y, z);
}

function wetNearby(blocks, x, y, z) {
  for (let dx = -4; dx <= 4; dx++) {
    for (let dz = -4; dz <= 4; dz++) {
      if (blocks.at(x + dx, y, z + dz).water || blocks.at(x + dx, y + 1, z + dz).water) return true;
    }
  }
  return false;
}

function tendFarmland(serv, x, y, z, info) {
  const { blocks } = serv.survival;
  const { moisture } = info.props;
  if (wetNearby(blocks, x, y, z) || serv.survival.rainsOn({ x, y: y + 1, z })) {
    if (moisture < 7) blocks.set(x, y, z, blocks.changed(info, { moisture: 7 }));
  } else if (moisture > 0) {
    blocks.set(x, y, z, blocks.changed(info, { moisture: moisture - 1 }));
  } else if (
    !CROP.test(blocks.at(x, y + 1, z).name) &&
    !/_stem$/.test(blocks.at(x, y + 1, z).name)
  ) {
    blocks.setNamed(x, y, z, 'dirt');
  }
}

/** Leaves without a log within 6 steps through leaves. */
function orphaned(blocks, x, y, z) {
  let edge = [[x, y, z]];
  const seen = new Set([String(edge[0])]);
  for (let step = 0; step < 6; step++) {
    const next = [];
    for (const [ex, ey, ez] of edge) {
      for (const [dx, dy, dz] of FACES) {
        const spot = [ex + dx, ey + dy, ez + dz];
        const key = String(spot);
        if (seen.has(key)) continue;
        seen.add(key);
        const info = blocks.at(...spot);
        if (/_(log|wood|stem|hyphae)$/.test(info.name)) return false;
        if (info.name.endsWith('_leaves')) next.push(spot);
      }
    }
    edge = next;
  }
  return true;
}

function onLogGone(survival, x, y, z) {
  const { blocks } = survival;
  for (let dx = -5; dx <= 5; dx++) {
    for (let dy = -5; dy <= 5; dy++) {
      for (let dz = -5; dz <= 5; dz++) {
        const info = blocks.at(x + dx, y + dy, z + dz);
        if (!info.name.endsWith('_leaves') || info.props.persistent) continue;
        survival.schedule(40 + Math.random() * 800, 'wither', [x + dx, y + dy, z + dz]);
      }
    }
  }
}

function witherLeaves(survival, [x, y, z]) {
  const { blocks } = survival;
  const info = blocks.at(x, y, z);
  if (!info.name.endsWith('_leaves') || info.props.persistent || !orphaned(blocks, x, y, z)) return;
  blocks.setNamed(x, y, z, 'air');
  for (const [item, count] of lootOf(survival.items, survival.registry, info, null, true)) {
    survival.popItem(x, y, z, survival.items.make(item, count));
  }
}

function till(serv, { player, x, y, z, info, face, slot }) {
  const { blocks } = serv.survival;
  const to = {
    grass_block: 'farmland',
    dirt: 'farmland',
    grass_path: 'farmland',
    coarse_dirt: 'dirt',
  }[info.name];
  if (!to || face === 0 || !blocks.at(x, y + 1, z).air) return false;
  blocks.setNamed(x, y, z, to);
  player.wearSlot(slot, 1);
  serv.emit('gamut:tilled', { player, x, y, z });
  return true;
}

function greenGrass(blocks, x, y, z) {
  for (let i = 0; i < 32; i++) {
    const [sx, sz] = [x + between(-3, 3), z + between(-3, 3)];
    if (blocks.at(sx, y, sz).name !== 'grass_block' || !blocks.at(sx, y + 1, sz).air) continue;
    const flower = Math.random() < 0.1 ? (Math.random() < 0.5 ? 'dandelion' : 'poppy') : 'grass';
    blocks.setNamed(sx, y + 1, sz, flower);
  }
}

/** Applies bone meal to a block; returns whether it has an effect. */
function fertilise(serv, x, y, z, info) {
  const { blocks } = serv.survival;
  if (CROP.test(info.name) || info.name.endsWith('_stem')) {
    if (!RIPE[info.name] || info.props.age >= RIPE[info.name]) return false;
    older(
      blocks,
      x,
      y,
      z,
      info,
      info.name === 'beetroots' ? (Math.random() < 0.75 ? 1 : 0) : between(2, 5),
    );
  } else if (info.name === 'cocoa' || info.name === 'sweet_berry_bush') {
    if (info.props.age >= RIPE[info.name]) return false;
    older(blocks, x, y, z, info);
  } else if (info.name.endsWith('_sapling')) {
    growSapling(blocks, x, y, z, info, 0.45);
  } else if (info.name === 'grass_block' && blocks.at(x, y + 1, z).air) {
    greenGrass(blocks, x, y, z);
  } else if (info.name === 'grass' || info.name === 'fern') {
    if (!blocks.at(x, y + 1, z).air) return false;
    const tall = info.name === 'grass' ? 'tall_grass' : 'large_fern';
    blocks.setNamed(x, y, z, tall, { half: 'lower' });
    blocks.setNamed(x, y + 1, z, tall, { half: 'upper' });
  } else {
    return false;
  }
  return true;
}

function useBoneMeal(serv, { player, x, y, z, info, slot }) {
  if (!fertilise(serv, x, y, z, info)) return false;
  if (player.gameMode !== 1) player.useUp(slot);
  serv.emit('gamut:fertilised', { player, block: info.name, x, y, z });
  return true;
}

function pickBerries(serv, { player, x, y, z, info }) {
  const { survival } = serv;
  if (info.props.age < 2) return false;
  const count = info.props.age === 2 ? between(1, 2) : between(2, 3);
  survival.popItem(x, y, z, survival.items.make('sweet_berries', count));
  survival.blocks.set(x, y, z, survival.blocks.changed(info, { age: 1 }));
  serv.emit('gamut:used', { player, block: info.name, x, y, z });
  return true;
}

function trample(serv, player, onGround) {
  const { x, y, z } = player.feet || player.position;
  const { blocks } = serv.survival;
  if (!onGround || player.fallDistance <= 0.5 || Math.random() >= player.fallDistance - 0.5) return;
  if (blocks.at(x, y - 0.2, z).name !== 'farmland') return;
  const cell = [x, y - 0.2, z].map(Math.floor);
  blocks.setNamed(...cell, 'dirt');
  serv.emit('gamut:trampled', { player, cell });
}

function server(serv) {
  const { survival } = serv;
  const { blocks } = survival;
  const on = (test, fn) =>
    survival.onRandomTick(test, (x, y, z, info) => fn(blocks, x, y, z, info));
  on(CROP, growCrop);
  on(/^(melon|pumpkin)_stem$/, growStem);
  on(/^nether_wart$/, growSometimes(0.1));
  on(/^(cocoa|sweet_berry_bush)$/, growSometimes(0.2));
  on(/^(sugar_cane|cactus)$/, growTall);
  on(/^(oak|birch|spruce|jungle|acacia|dark_oak)_sapling$/, (b, x, y, z, info) =>
    growSapling(b, x, y, z, info),
  );
  survival.onRandomTick(/^farmland$/, (x, y, z, info) => tendFarmland(serv, x, y, z, info));
  survival.onScheduled('wither', (spot) => witherLeaves(survival, spot));
  blocks.onChange((x, y, z, old, now) => {
    if (/_log$/.test(old.name) && !/_(log|wood)$/.test(now.name)) onLogGone(survival, x, y, z);
    // A solid block turns the farmland below it to dirt.
    if (now.full && blocks.at(x, y - 1, z).name === 'farmland')
      blocks.setNamed(x, y - 1, z, 'dirt');
  });
  const hoes = ['wooden', 'stone', 'iron', 'golden', 'diamond', 'netherite'].map((m) => `${m}_hoe`);
  survival.onUseItemOn(hoes, (call) => till(serv, call));
  survival.onUseItemOn('bone_meal', (call) => useBoneMeal(serv, call));
  survival.onUseBlock('sweet_berry_bush', (call) => pickBerries(serv, call));
  // Before the landing itself, which resets the height of the fall.
  survival.movers.unshift((player, dx, dy, dz, onGround) => trample(serv, player, onGround));
  survival.fertilise = (x, y, z) => fertilise(serv, x, y, z, blocks.at(x, y, z));
}

module.exports = { name, server };

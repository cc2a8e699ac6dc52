'use strict';

/**
 * Tools used on blocks and animals: buckets for water, lava, milk and fish, axes that strip, shovels
 * that make paths, spawn eggs (Minecraft Wiki, pages of the items). What is poured flows (fluids.js).
 */

const { Vec3 } = require('vec3');
const { FACES } = require('./blocks');
const { COLOURS, SHORN } = require('./colours');
const { inSight } = require('./sight');

const name = 'tools';
/** Where sheep keep their fleece, protocol 754. */
const SHEEP_KEY = 16;
const LOGS =
  /^(oak|spruce|birch|jungle|acacia|dark_oak)_(log|wood)$|^(crimson|warped)_(stem|hyphae)$/;

/** Sets one key of an entity's metadata and sends it to all who see it. */
function setMetadata(entity, key, type, value) {
  const rest = (Array.isArray(entity.metadata) ? entity.metadata : []).filter((m) => m.key !== key);
  entity.metadata = [...rest, { key, type, value }];
  entity._writeNearby('entity_metadata', { entityId: entity.id, metadata: [{ key, type, value }] });
}

function setShorn(entity, shorn) {
  entity.shorn = shorn;
  const colour = Math.max(0, COLOURS.indexOf(entity.colour || 'white'));
  setMetadata(entity, SHEEP_KEY, 0, colour | (shorn ? SHORN : 0));
}

/** Replaces one of a stack by another item, given as a stack or by its name. */
function exchange(serv, player, slot, given) {
  const { survival } = serv;
  const item = typeof given === 'string' ? survival.items.make(given) : given;
  if (player.gameMode === 1) return;
  player.useUp(slot);
  if (!player.inventory.slots[slot]) player.setSlot(slot, item);
  else survival.giveOrToss(player, item);
}

function milk(serv, { player, entity, slot, item }) {
  if (!item || item.name !== 'bucket' || (entity.name !== 'cow' && entity.name !== 'mooshroom'))
    return false;
  if (entity.baby || !(entity.health > 0)) return false;
  exchange(serv, player, slot, 'milk_bucket');
  serv.emit('gamut:milked', { player, entity });
  return true;
}

const FISH = ['cod', 'salmon', 'pufferfish', 'tropical_fish'];

/** A bucket of water takes in a fish. */
function scoop(serv, { player, entity, slot, item }) {
  if (item?.name !== 'water_bucket' || !FISH.includes(entity.name) || !(entity.health > 0)) return false;
  exchange(serv, player, slot, `${entity.name}_bucket`);
  serv.survival.mobs.remove(entity);
  return true;
}

/** The bucket that a block fills: sources only, including waterlogged blocks. Null for others. */
function bucketOf(info) {
  if (info.name === 'bubble_column' || info.props.waterlogged) return 'water_bucket';
  const source = (info.name === 'water' || info.name === 'lava') && info.level === 0;
  return source ? `${info.name}_bucket` : null;
}

function fill(serv, { player, slot }) {
  const { blocks } = serv.survival;
  const found = inSight(serv.survival, player, (info) => bucketOf(info) !== null);
  if (!found?.accepted) return false;
  const { info, cell } = found;
  if (info.props.waterlogged) blocks.set(...cell, blocks.changed(info, { waterlogged: false }));
  else blocks.setNamed(...cell, 'air');
  exchange(serv, player, slot, bucketOf(info));
  serv.emit('gamut:filled', { player, item: bucketOf(info) });
  return true;
}

function pour(serv, { player, slot, item }) {
  const { survival } = serv;
  const liquid = item.name.replace('_bucket', '');
  const found = inSight(survival, player, () => false);
  const to = found && (found.info.replaceable ? found.cell : found.before);
  if (!to) return false;
  return pourAt(serv, player, slot, to, liquid);
}

function pourAt(serv, player, slot, [x, y, z], content) {
  const fish = FISH.includes(content) ? content : null;
  const liquid = fish ? 'water' : content;
  const { survival } = serv;
  // Water is gone at once where it is hot.
  const dries = liquid === 'water' && survival.dimensionOf({ z }) === 'the_nether';
  if (!dries && !survival.pour(x, y, z, liquid)) return false;
  exchange(serv, player, slot, 'bucket');
  if (fish) survival.spawnMob(fish, new Vec3(x + 0.5, y + 0.2, z + 0.5));
  serv.emit('gamut:placed', { player, block: liquid, x, y, z });
  return true;
}

/** Empties a bucket on a block: into it if it takes in water, else in front of the face. */
function pourOn(serv, { player, slot, item, info, x, y, z, face }) {
  if (!FACES[face]) return false;
  const liquid = item.name.replace('_bucket', '');
  const soaks = liquid !== 'lava' && info.props.waterlogged === false;
  if (info.replaceable || soaks) {
    if (pourAt(serv, player, slot, [x, y, z], liquid)) return true;
  }
  const [dx, dy, dz] = FACES[face];
  return pourAt(serv, player, slot, [x + dx, y + dy, z + dz], liquid);
}

function strip(serv, { player, x, y, z, info, slot }) {
  if (!LOGS.test(info.name)) return false;
  serv.survival.blocks.setNamed(x, y, z, `stripped_${info.name}`, { axis: info.props.axis });
  player.wearSlot(slot, 1);
  return true;
}

function flatten(serv, { player, x, y, z, info, face, slot }) {
  if (info.name !== 'grass_block' || face === 0 || !serv.survival.blocks.at(x, y + 1, z).air)
    return false;
  serv.survival.blocks.setNamed(x, y, z, 'grass_path');
  player.wearSlot(slot, 1);
  return true;
}

function hatch(serv, { player, x, y, z, face, slot, item }) {
  const def = serv.registry.entitiesByName[item.name.replace('_spawn_egg', '')];
  const [dx, dy, dz] = FACES[face];
  serv.spawnMob(def.id, serv.overworld, new Vec3(x + dx + 0.5, y + dy, z + dz + 0.5));
  if (player.gameMode !== 1) player.useUp(slot);
  return true;
}

const MATERIALS = ['wooden', 'stone', 'iron', 'golden', 'diamond', 'netherite'];

function server(serv) {
  const { survival } = serv;
  survival.setMetadata = setMetadata;
  survival.setShorn = setShorn;
  survival.exchange = (player, slot, item) => exchange(serv, player, slot, item);
  survival.inSight = (player, accept) => inSight(survival, player, accept);
  survival.onUseEntity((call) => milk(serv, call));
  survival.onUseEntity((call) => scoop(serv, call));
  const buckets = ['water', 'lava', ...FISH].map((content) => `${content}_bucket`);
  survival.onUseItem('bucket', (call) => fill(serv, call));
  survival.onUseItem(buckets, (call) => pour(serv, call));
  survival.onUseItemOn('bucket', (call) => fill(serv, call));
  survival.onUseItemOn(buckets, (call) => pourOn(serv, call));
  survival.onUseItemOn(
    MATERIALS.map((m) => `${m}_axe`),
    (call) => strip(serv, call),
  );
  survival.onUseItemOn(
    MATERIALS.map((m) => `${m}_shovel`),
    (call) => flatten(serv, call),
  );
  const eggs = Object.keys(serv.registry.itemsByName).filter(
    (n) => n.endsWith('_spawn_egg') && serv.registry.entitiesByName[n.replace('_spawn_egg', '')],
  );
  survival.onUseItemOn(eggs, (call) => hatch(serv, call));
}

module.exports = { name, server };

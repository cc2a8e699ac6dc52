'use strict';

/** Stonecutters and looms: a button chooses what they make (cuts.json). */

const { COLOURS } = require('./colours');
const { stones: STONES, banners: BANNERS } = require('./cuts.json');

const name = 'cutting';

/** Returns what a stonecutter makes of a block, as [{item, count}]. */
function cutsOf(itemName) {
  return (STONES[itemName] ?? []).map((text) => {
    const two = text.startsWith('2 ');
    return { item: two ? text.slice(2) : text, count: two ? 2 : 1 };
  });
}

function crafted(serv, { player }, item, count) {
  serv.emit('gamut:crafted', { player, item, count });
}

function cut(serv, station) {
  const [block] = station.items;
  const chosen = block && cutsOf(block.name)[station.chosen];
  if (!chosen) return null;
  const { item, count } = chosen;
  return { item: serv.survival.items.make(item, count), use: [1], taken: () => crafted(serv, station, item, count) };
}

/** Returns a banner with one more pattern. */
function withPattern(serv, banner, pattern, colour) {
  const item = serv.survival.items.copy(banner, 1);
  const value = item.nbt?.value ?? {};
  const entity = value.BlockEntityTag?.value ?? {};
  const rows = entity.Patterns?.value.value ?? [];
  if (rows.length >= BANNERS.most) return null;
  const row = { Pattern: { type: 'string', value: pattern }, Color: { type: 'int', value: COLOURS.indexOf(colour) } };
  const Patterns = { type: 'list', value: { type: 'compound', value: [...rows, row] } };
  const BlockEntityTag = { type: 'compound', value: { ...entity, Patterns } };
  item.nbt = { type: 'compound', name: '', value: { ...value, BlockEntityTag } };
  return item;
}

function woven(serv, station) {
  const [banner, dye, pattern] = station.items;
  if (!banner || !dye) return null;
  const code = pattern ? BANNERS.items[pattern.name] : BANNERS.buttons[station.chosen - 1];
  const item = code && withPattern(serv, banner, code, dye.name.replace('_dye', ''));
  return item ? { item, use: [1, 1, 0], taken: () => crafted(serv, station, item.name, 1) } : null;
}

const LOOM_TAKES = [/_banner$/, /_dye$/, /_banner_pattern$/];
const STATIONS = [
  { block: 'stonecutter', inputs: 1, made: cut, accepts: (_, item) => cutsOf(item.name).length > 0 },
  { block: 'loom', inputs: 3, made: woven, accepts: (index, item) => LOOM_TAKES[index].test(item.name) },
];

function server(serv) {
  for (const { block, inputs, made, accepts } of STATIONS) {
    serv.survival.onUseBlock(block, ({ player, x, y, z, info }) => {
      serv.survival.openStation(player, {
        kind: block, inputs, accepts, title: info.def.displayName, place: [x, y, z],
        made: (station) => made(serv, station),
        pressed: (station, number) => {
          station.chosen = number;
          station.show({ 0: number });
          station.update();
        },
        quick: (item) => Array.from({ length: inputs }, (_, i) => i).filter((i) => accepts(i, item)),
      });
      return true;
    });
  }
}

module.exports = { name, server, cutsOf };

'use strict';

/** Every packet that a client may send, by the protocol's own table, with values that make no sense. */

const test = require('node:test');
const assert = require('node:assert');
const { inWorld, Vec3 } = require('./survival_help');

/** Values of the protocol's types: the bounds, and what is no number. */
const FLOATS = [NaN, Infinity, -Infinity, 1e300, -1e300, 0, 1, -1, 30000001];
const VALUES = {
  varint: [-2147483648, 2147483647, -1, 0, 1, 2, 99],
  i8: [-128, 127, -1, 0, 1, 6],
  u8: [255, 0, 1, 40],
  i16: [-32768, 32767, -1, -999, 0, 1, 40],
  i32: [-2147483648, 2147483647, 0],
  i64: [[-1, -1], [0, 0]],
  u16: [65535, 0],
  f32: FLOATS,
  f64: FLOATS,
  bool: [true, false],
  string: ['', '\ud800', 'x'.repeat(50000), '{"text":', '\u0000§k'],
  slot: [{ present: false }, { present: true, itemId: 1, itemCount: -1, nbtData: undefined },
    { present: true, itemId: 99999, itemCount: 127, nbtData: undefined }],
  position: [[0, 0, 0], [9, 4, 8], [33554431, 2047, 33554431], [-33554432, -2048, -33554432], [8, -1, 8], [8, 256, 8]],
  UUID: ['00000000-0000-0000-0000-000000000000'],
  restBuffer: [Buffer.alloc(0), Buffer.alloc(9, 255)],
};
/** Of a client's own connection, which the world's end of it does not hear. */
const SKIPPED = /^(keep_alive|settings|custom_payload)$/;

function valueOf(type, draw) {
  const pick = (list) => list[Math.floor(draw() * list.length)];
  if (typeof type === 'string') {
    const value = pick(VALUES[type] ?? []);
    return type === 'position' ? new Vec3(...value) : value;
  }
  const [kind, spec] = type;
  if (kind === 'container') {
    return Object.fromEntries(spec.map(({ name, type: inner }) => [name, valueOf(inner, draw)]));
  }
  if (kind === 'option') return draw() < 0.5 ? undefined : valueOf(spec, draw);
  if (kind === 'switch') return valueOf(pick(Object.values(spec.fields)), draw);
  if (kind === 'array') return Array.from({ length: Math.floor(draw() * 4) }, () => valueOf(spec.type, draw));
  return undefined;
}

test('packets with values that make no sense end no world', () =>
  inWorld({ agents: 2, seed: 3, complains: true }, async (w) => {
    const { types } = w.serv.registry.protocol.play.toServer;
    const names = Object.keys(types).filter((name) => name.startsWith('packet_') && !SKIPPED.test(name.slice(7)));
    const draw = () => w.run(() => Math.random());
    await w.console('/setblock 9 4 8 anvil');
    await w.console('/setblock 8 4 7 stonecutter');
    await w.console('/summon boat 10 4 9');
    await w.console('/summon pig 7 4 9');
    await w.console('/give @a stone 20');
    let sent = 0;
    for (let i = 0; i < 1500; i++) {
      const name = names[Math.floor(draw() * names.length)];
      const fields = valueOf(types[name], draw);
      if (name === 'packet_use_entity' && draw() < 0.9) {
        const ids = Object.keys(w.serv.entities).map(Number);
        Object.assign(fields, { target: ids[Math.floor(draw() * ids.length)], mouse: 0, x: undefined });
      }
      const client = w.bots[i % 2]._client;
      let packet = null;
      try {
        packet = client.writer.createPacketBuffer('packet', { name: name.slice(7), params: fields });
      } catch {
        continue; // it cannot even be written
      }
      client.writeRaw(packet);
      sent++;
      await w.step(1);
    }
    assert.ok(sent > 1400, `${sent}`);
    for (const { position, facing } of w.players) {
      assert.ok([...position.toArray(), facing.yaw, facing.pitch].every(Number.isFinite), `${position}`);
    }
  }));

'use strict';

/**
 * Redstone: power in dust, torches, repeaters, switches, and what it does to lamps, doors, pistons,
 * rails, TNT, dispensers and hoppers (Minecraft Wiki, "Redstone circuits", 1.16). Which block emits
 * and which reacts is redstone.json; this file is how power spreads.
 *
 * Nothing is looked at unless a block near it changes: a change puts the cells around it into a
 * queue, in their order, and each cell there that reacts looks at the power that it gets. What takes
 * time is scheduled. Pistons are in pistons.js, TNT is in tnt.js, pressure plates in plates.js.
 *
 * `serv.survival.redstone.powerAt(x, y, z)` returns the power that a cell gets, 0 to 15.
 *
 * Simplified: no comparators, tripwires, note blocks, daylight sensors and target blocks; torches do
 * not burn out; dust has no form of a dot.
 */

const { FACES, FACE_NAMES } = require('./blocks');
const { chainOf } = require('./rails');
const TABLE = require('./redstone.json');

const name = 'redstone';
const OPPOSITE = { north: 'south', south: 'north', east: 'west', west: 'east', up: 'down', down: 'up' };
const VECTOR = Object.fromEntries(FACE_NAMES.map((side, i) => [side, FACES[i]]));
const FLAT = ['north', 'south', 'west', 'east'];
const MOST = 15;
const MOST_CELLS = 20000; // of the queue in one go
const MOST_DUST = 4096; // of one net of dust
const TICK = 2; // game ticks of one redstone tick
const LAMP_OFF = 4;
const GIVES = 4; // ticks until a dispenser gives
const AROUND = around();

/** The cells that a change may concern: itself, its neighbours, and theirs, nearest first. */
function around() {
  const cells = new Map([['0,0,0', [0, 0, 0]]]);
  for (const face of FACES) cells.set(face.join(), face);
  for (const a of FACES) for (const b of FACES) {
    const sum = a.map((v, i) => v + b[i]);
    if (!cells.has(sum.join())) cells.set(sum.join(), sum);
  }
  return [...cells.values()];
}

const compiled = (rows) => rows.map((row) => ({ ...row, blocks: new RegExp(row.blocks) }));
const EMITS = compiled(TABLE.emits);
const REACTS = Object.entries(TABLE.reacts).map(([blocks, what]) => [new RegExp(blocks), what]);
const INSULATES = new RegExp(TABLE.insulates);

/** What is known of a state, once: {emits, reacts, part, conducts}. */
const KNOWN = new Map();
function known(info) {
  const before = KNOWN.get(info.stateId);
  if (before) return before;
  const emits = EMITS.find(({ blocks }) => blocks.test(info.name)) ?? null;
  const reacts = REACTS.find(([blocks]) => blocks.test(info.name))?.[1] ?? null;
  const conducts = info.full && !INSULATES.test(info.name);
  const made = { emits, reacts, part: Boolean(emits || reacts), conducts };
  KNOWN.set(info.stateId, made);
  return made;
}

/** The side on which the block is that a switch or a torch hangs on. */
function attachedTo({ name: block, props }) {
  if (props.face === 'floor') return 'down';
  if (props.face === 'ceiling') return 'up';
  return props.facing && block !== 'redstone_torch' ? OPPOSITE[props.facing] : 'down';
}

/** Whether a block emits to a side. */
const SIDES = {
  all: () => true,
  up: (info, side) => side === 'up',
  down: (info, side) => side === 'down',
  attached: (info, side) => side === attachedTo(info),
  others: (info, side) => side !== attachedTo(info),
  output: (info, side) => side === OPPOSITE[info.props.facing],
  ahead: ({ props }, side) => side === 'down' || (side !== 'up' && props[side] !== 'none'),
};

/** The power that a block gives to a side; `how` is weak or strong. */
function given(info, side, how) {
  const { emits } = known(info);
  if (!emits?.[how] || !SIDES[emits[how]](info, side)) return 0;
  if (emits.level) return info.props[emits.level];
  return !emits.when || info.props[emits.when] ? MOST : 0;
}

class Redstone {
  constructor(survival) {
    this.survival = survival;
    this.blocks = survival.blocks;
    this.queue = new Map();
    this.busy = false;
    this.waiting = new Set();
  }

  /** The power that comes out of a cell to a side; without `dust`, as if there were no dust. */
  from(x, y, z, side, dust = true) {
    const info = this.blocks.at(x, y, z);
    const counts = (each) => dust || each.name !== 'redstone_wire';
    let power = counts(info) ? given(info, side, 'weak') : 0;
    if (!known(info).conducts) return power;
    for (let i = 0; i < 6 && power < MOST; i++) {
      const [dx, dy, dz] = FACES[i];
      const other = this.blocks.at(x + dx, y + dy, z + dz);
      if (known(other).emits && counts(other))
        power = Math.max(power, given(other, OPPOSITE[FACE_NAMES[i]], 'strong'));
    }
    return power;
  }

  /** The power that a cell gets from all sides, but one. */
  powerAt(x, y, z, { dust = true, but = null } = {}) {
    let power = 0;
    for (let i = 0; i < 6 && power < MOST; i++) {
      if (FACE_NAMES[i] === but) continue;
      const [dx, dy, dz] = FACES[i];
      power = Math.max(power, this.from(x + dx, y + dy, z + dz, OPPOSITE[FACE_NAMES[i]], dust));
    }
    return power;
  }

  changed(x, y, z, old, now) {
    const [a, b] = [known(old), known(now)];
    if (old.name !== 'observer' && this.observed) this.notice(x, y, z);
    if (now.name === 'observer') this.observed = true;
    if (!a.part && !b.part && a.conducts === b.conducts) return;
    if (this.spreading) return;
    this.touch(x, y, z);
  }

  /** Puts the cells around one into the queue. */
  touch(x, y, z) {
    for (const [dx, dy, dz] of AROUND) this.put(x + dx, y + dy, z + dz);
    this.flush();
  }

  put(x, y, z) {
    if (y < 0 || y > 255) return;
    if (known(this.blocks.at(x, y, z)).reacts) this.queue.set(`${x},${y},${z}`, [x, y, z]);
  }

  flush() {
    if (this.busy) return;
    this.busy = true;
    for (let cells = 0; this.queue.size > 0 && cells < MOST_CELLS; cells++) {
      const [key, [x, y, z]] = this.queue.entries().next().value;
      this.queue.delete(key);
      const info = this.blocks.at(x, y, z);
      const { reacts } = known(info);
      if (reacts) REACTIONS[reacts](this, x, y, z, info);
    }
    this.busy = false;
  }

  /** Runs something that changes several blocks, and lets them react afterwards. */
  together(change) {
    const outer = this.busy;
    this.busy = true;
    try {
      change();
    } finally {
      this.busy = outer;
      this.flush();
    }
  }

  set(x, y, z, info, props) {
    this.blocks.set(x, y, z, this.blocks.changed(info, props));
  }

  /** Looks at a cell again after some ticks; a cell waits once. */
  later(delay, x, y, z, what) {
    const key = `${what},${x},${y},${z}`;
    if (this.waiting.has(key)) return;
    this.waiting.add(key);
    this.survival.schedule(delay, 'redstone', [what, x, y, z]);
  }

  due([what, x, y, z]) {
    this.waiting.delete(`${what},${x},${y},${z}`);
    const info = this.blocks.at(x, y, z);
    if (known(info).reacts === what || what === 'observer') DUE[what](this, x, y, z, info);
  }

  /** Observers that look at a cell give a pulse. */
  notice(x, y, z) {
    for (let i = 0; i < 6; i++) {
      const [dx, dy, dz] = FACES[i];
      const info = this.blocks.at(x + dx, y + dy, z + dz);
      if (info.name !== 'observer' || info.props.facing !== OPPOSITE[FACE_NAMES[i]]) continue;
      if (!info.props.powered) this.later(TICK, x + dx, y + dy, z + dz, 'observer');
    }
  }

  isDust(x, y, z) {
    return this.blocks.at(x, y, z).name === 'redstone_wire';
  }

  conducts(x, y, z) {
    return known(this.blocks.at(x, y, z)).conducts;
  }

  /** The dust that a piece of dust is joined to on a side: beside, above or below; null for none. */
  next(x, y, z, side) {
    const [dx, , dz] = VECTOR[side];
    const [nx, nz] = [x + dx, z + dz];
    if (this.isDust(nx, y, nz)) return [nx, y, nz];
    if (this.conducts(nx, y, nz)) {
      return !this.conducts(x, y + 1, z) && this.isDust(nx, y + 1, nz) ? [nx, y + 1, nz] : null;
    }
    return this.isDust(nx, y - 1, nz) ? [nx, y - 1, nz] : null;
  }

  /** The arms of a piece of dust. */
  arms(x, y, z) {
    const arms = {};
    for (const side of FLAT) {
      const next = this.next(x, y, z, side);
      const [dx, , dz] = VECTOR[side];
      const beside = this.blocks.at(x + dx, y, z + dz);
      arms[side] = next ? (next[1] > y ? 'up' : 'side') : joinsDust(beside, side) ? 'side' : 'none';
    }
    const none = (...sides) => sides.every((side) => arms[side] === 'none');
    const [line, across] = [none('north', 'south'), none('east', 'west')];
    for (const side of ['east', 'west']) if (line && arms[side] === 'none') arms[side] = 'side';
    for (const side of ['north', 'south']) if (across && arms[side] === 'none') arms[side] = 'side';
    return arms;
  }

  /** Computes the power of all dust that is joined to a piece. */
  spread(x, y, z) {
    const net = new Map();
    const cells = [[x, y, z]];
    net.set(`${x},${y},${z}`, null);
    for (let i = 0; i < cells.length && cells.length < MOST_DUST; i++) {
      const row = { at: cells[i], next: [] };
      net.set(cells[i].join(), row);
      for (const side of FLAT) {
        const next = this.next(...cells[i], side);
        if (!next) continue;
        row.next.push(next.join());
        if (!net.has(next.join())) {
          net.set(next.join(), null);
          cells.push(next);
        }
      }
    }
    // From the strongest on, each gives one less to the next ones.
    const levels = Array.from({ length: MOST + 1 }, () => []);
    const power = new Map();
    for (const row of net.values()) {
      if (!row) continue;
      const own = this.powerAt(...row.at, { dust: false });
      power.set(row, 0);
      levels[own].push(row);
    }
    for (let level = MOST; level > 0; level--) {
      for (const row of levels[level]) {
        if (power.get(row) >= level) continue;
        power.set(row, level);
        for (const key of row.next) {
          const other = net.get(key);
          if (other && power.get(other) < level - 1) levels[level - 1].push(other);
        }
      }
    }
    this.apply(power);
    this.settleArms(net);
  }

  /** Sets the arms of the dust of a net that waits in the queue: its power is known. */
  settleArms(net) {
    for (let again = true; again;) {
      again = false;
      for (const [key, row] of net) {
        if (row === null || !this.queue.delete(key)) continue;
        again = true;
        this.setArms(...row.at);
      }
    }
  }

  setArms(x, y, z) {
    const info = this.blocks.at(x, y, z);
    if (info.name !== 'redstone_wire') return;
    const arms = this.arms(x, y, z);
    if (FLAT.some((side) => info.props[side] !== arms[side])) this.set(x, y, z, info, arms);
  }

  /** Sets the power of pieces of dust, and lets what is around those that changed react. */
  apply(power) {
    const outer = this.spreading;
    this.spreading = true;
    const touched = [];
    for (const [{ at }, level] of power) {
      const info = this.blocks.at(...at);
      if (info.props.power === level) continue;
      this.set(...at, info, { power: level });
      touched.push(at);
    }
    this.spreading = outer;
    for (const [x, y, z] of touched) {
      for (const [dx, dy, dz] of AROUND)
        if (!this.isDust(x + dx, y + dy, z + dz)) this.put(x + dx, y + dy, z + dz);
    }
  }
}

/** Whether dust turns to a block on a side of it. */
function joinsDust(info, side) {
  if (info.name === 'redstone_wire') return true;
  if (info.name === 'repeater') return info.props.facing === side || OPPOSITE[info.props.facing] === side;
  if (info.name === 'observer') return info.props.facing === side;
  return known(info).emits !== null;
}

/** A repeater beside another one that points at it locks it. */
function isLocked(redstone, x, y, z, { props: { facing } }) {
  const sides = facing === 'north' || facing === 'south' ? ['east', 'west'] : ['north', 'south'];
  return sides.some((side) => {
    const [dx, , dz] = VECTOR[side];
    const info = redstone.blocks.at(x + dx, y, z + dz);
    return info.name === 'repeater' && info.props.powered && info.props.facing === side;
  });
}

function inputOf(redstone, x, y, z, { props: { facing } }) {
  const [dx, , dz] = VECTOR[facing];
  return redstone.from(x + dx, y, z + dz, OPPOSITE[facing]) > 0;
}

/** Whether the block that a torch hangs on has power. */
function isPutOut(redstone, x, y, z, info) {
  const side = attachedTo(info);
  const [dx, dy, dz] = VECTOR[side];
  return redstone.from(x + dx, y + dy, z + dz, OPPOSITE[side]) > 0;
}

/** Power of a block that also answers to what powers the cell above it. */
const quasi = (redstone, x, y, z) =>
  redstone.powerAt(x, y, z) > 0 || redstone.powerAt(x, y + 1, z) > 0;

const REACTIONS = {
  wire(redstone, x, y, z) {
    redstone.setArms(x, y, z);
    redstone.spread(x, y, z);
  },
  torch(redstone, x, y, z, info) {
    if (info.props.lit === isPutOut(redstone, x, y, z, info)) redstone.later(TICK, x, y, z, 'torch');
  },
  repeater(redstone, x, y, z, info) {
    const locked = isLocked(redstone, x, y, z, info);
    if (locked !== info.props.locked) redstone.set(x, y, z, info, { locked });
    if (!locked && info.props.powered !== inputOf(redstone, x, y, z, info))
      redstone.later(TICK * info.props.delay, x, y, z, 'repeater');
  },
  lamp(redstone, x, y, z, info) {
    const on = redstone.powerAt(x, y, z) > 0;
    if (on && !info.props.lit) redstone.set(x, y, z, info, { lit: true });
    else if (!on && info.props.lit) redstone.later(LAMP_OFF, x, y, z, 'lamp');
  },
  door(redstone, x, y, z, info) {
    const isDoor = info.name.endsWith('_door');
    const other = info.props.half === 'lower' ? y + 1 : y - 1;
    const powered = redstone.powerAt(x, y, z) > 0 || (isDoor && redstone.powerAt(x, other, z) > 0);
    if (info.props.powered === powered) return;
    redstone.together(() => redstone.survival.setOpen(x, y, z, powered, { powered }));
  },
  piston(redstone, x, y, z, info) {
    const { facing, extended } = info.props;
    const on = redstone.powerAt(x, y, z, { but: facing }) > 0 || redstone.powerAt(x, y + 1, z) > 0;
    if (on !== extended) redstone.later(1, x, y, z, 'piston');
  },
  tnt(redstone, x, y, z) {
    if (redstone.powerAt(x, y, z) > 0) redstone.survival.primeTnt(x, y, z);
  },
  giver(redstone, x, y, z, info) {
    const triggered = quasi(redstone, x, y, z);
    if (triggered === info.props.triggered) return;
    redstone.set(x, y, z, info, { triggered });
    if (triggered) redstone.later(GIVES, x, y, z, 'giver');
  },
  hopper(redstone, x, y, z, info) {
    const enabled = redstone.powerAt(x, y, z) === 0;
    if (enabled !== info.props.enabled) redstone.set(x, y, z, info, { enabled });
  },
  rail(redstone, x, y, z, info) {
    const chain = chainOf(redstone.blocks, x, y, z);
    const powered = chain.some((cell) => redstone.powerAt(...cell) > 0);
    if (powered === info.props.powered) return;
    redstone.set(x, y, z, info, { powered });
    for (const cell of chain) redstone.put(...cell);
  },
};

/** What is done when the time of a cell has come. */
const DUE = {
  torch(redstone, x, y, z, info) {
    const lit = !isPutOut(redstone, x, y, z, info);
    if (lit !== info.props.lit) redstone.set(x, y, z, info, { lit });
  },
  repeater(redstone, x, y, z, info) {
    if (isLocked(redstone, x, y, z, info)) return;
    const input = inputOf(redstone, x, y, z, info);
    const { powered, delay } = info.props;
    if (powered && !input) redstone.set(x, y, z, info, { powered: false });
    else if (!powered) {
      // A pulse that is already over goes on for as long as the delay.
      redstone.set(x, y, z, info, { powered: true });
      if (!input) redstone.later(TICK * delay, x, y, z, 'repeater');
    }
  },
  lamp(redstone, x, y, z, info) {
    if (info.props.lit && redstone.powerAt(x, y, z) === 0) redstone.set(x, y, z, info, { lit: false });
  },
  piston(redstone, x, y, z, info) {
    const { facing, extended } = info.props;
    const on = redstone.powerAt(x, y, z, { but: facing }) > 0 || redstone.powerAt(x, y + 1, z) > 0;
    if (on !== extended) redstone.together(() => redstone.survival.movePiston(x, y, z, on));
  },
  giver(redstone, x, y, z) {
    redstone.survival.dispense(x, y, z);
  },
  observer(redstone, x, y, z, info) {
    if (info.name !== 'observer') return;
    const powered = !info.props.powered;
    redstone.set(x, y, z, info, { powered });
    if (powered) redstone.later(TICK, x, y, z, 'observer');
  },
};

/** A click changes the delay of a repeater. */
function adjust(serv, { player, x, y, z, info }) {
  const { blocks } = serv.survival;
  blocks.set(x, y, z, blocks.changed(info, { delay: (info.props.delay % 4) + 1 }));
  serv.emit('gamut:used', { player, block: info.name, x, y, z });
  return true;
}

function server(serv) {
  const { survival } = serv;
  const redstone = new Redstone(survival);
  survival.redstone = redstone;
  survival.blocks.onChange((...change) => redstone.changed(...change));
  survival.onScheduled('redstone', (data) => redstone.due(data));
  survival.onUseBlock('repeater', (call) => adjust(serv, call));
}

const save = ({ survival }) => ({ waiting: [...survival.redstone.waiting] });

function load({ survival }, data) {
  survival.redstone.queue.clear();
  survival.redstone.waiting = new Set(data ? data.waiting : []);
}

module.exports = { name, server, save, load, known, VECTOR, OPPOSITE };

'use strict';
/**
 * Keyboard and mouse, the layout of blockworld and of VPT: 20 keys in the order of KEYS, and a
 * camera of 11 x 11 bins, pitch (more is down) and yaw (more is right), that are denser near zero
 * (MineStudio's mu-law, 10 degrees at most, mu 10; 5 is no movement). One tick per step is usual;
 * in longer steps the keys are held and the camera turns in the first tick.
 *
 * Keys are levels. Held attack continues to dig; at a creature it strikes when pressed and then
 * whenever the blow is at full strength again. Held use clicks every 4 ticks, eats, draws a bow,
 * raises a shield. Drop throws one item when pressed. Opposite keys both count, as in the game; of
 * two hot-bar keys the later counts; sneak has priority over sprint.
 *
 * The inventory key, when pressed, opens the inventory, or closes any open window. While a window
 * is open the camera and the other keys operate its cursor; see pointer.js.
 */
const { Actor } = require('./actor');
const { Hands } = require('./hands');
const { blockAtCursor, bodyAtCursor, face } = require('./cursor');
const { Pointer } = require('./pointer');

const KEYS = ['attack', 'back', 'forward', 'jump', 'left', 'right', 'sneak', 'sprint', 'use', 'drop',
  'inventory', ...Array.from({ length: 9 }, (_, i) => `hotbar.${i + 1}`)];
/** Those of the layout `mouse`. */
const MOUSE_KEYS = [...KEYS, 'pickItem'];
const WALKING = ['back', 'forward', 'jump', 'left', 'right', 'sneak', 'sprint'];
const BINS = 11;
const MOST = 10;
const MU = 10;
/** Largest turn of the layout `mouse` in a step, in degrees. */
const FARTHEST = 180;
const RADIANS = Math.PI / 180;

/** Returns the degrees at the centre of a bin of the camera: 0, +-0.615, 1.61, 3.22, 5.81, 10. */
function degrees(bin) {
  const step = 2 * bin - MOST;
  return (Math.sign(step) * MOST / MU) * ((1 + MU) ** (Math.abs(step) / MOST) - 1);
}

class Human extends Actor {
  constructor(agent) {
    super(agent);
    this.hands = new Hands(agent, true);
    this.pointer = new Pointer(agent);
    this.before = new Set();
  }

  /** Names of the keys, in the order of an action. */
  get keys() {
    return KEYS;
  }

  begin({ keys, camera }) {
    const held = new Set(this.keys.filter((_, i) => keys[i]));
    const pressed = new Set([...held].filter((key) => !this.before.has(key)));
    this.before = held;
    this.attacking = false;
    const turn = this.angles(camera);
    const { window } = this.pointer;
    if (pressed.has('inventory')) this.pointer.toggle();
    else if (window) this.pointer.step(held, pressed, turn);
    if (window || this.pointer.window) {
      this.bot.clearControlStates();
      this.hands.letGo();
      return;
    }
    for (const key of WALKING) this.bot.setControlState(key, held.has(key));
    if (held.has('sneak')) this.bot.setControlState('sprint', false);
    this.turn(turn);
    this.press(held, pressed);
  }

  press(held, pressed) {
    const { bot, hands } = this;
    for (let slot = 9; slot > 0; slot--) {
      if (!pressed.has(`hotbar.${slot}`)) continue;
      if (bot.quickBarSlot !== slot - 1) {
        hands.letGo();
        bot.setQuickBarSlot(slot - 1);
      }
      break;
    }
    if (pressed.has('drop')) hands.drop(false);
    if (pressed.has('pickItem')) this.pick();
    hands.holdUse(held.has('use'));
    this.attacking = held.has('attack');
    this.fresh = pressed.has('attack');
  }

  /** Returns the turn of the camera in degrees: down, right. */
  angles([pitch, yaw]) {
    return [degrees(pitch), degrees(yaw)];
  }

  turn([down, right]) {
    if (down === 0 && right === 0) return;
    const { entity } = this.bot;
    face(this.bot, entity.yaw - right * RADIANS, entity.pitch - down * RADIANS);
  }

  /** Takes the block that is looked at into the hand, if the agent carries it. */
  pick() {
    const hit = bodyAtCursor(this.bot) === null ? blockAtCursor(this.bot) : null;
    if (hit !== null) this.pointer.pick(hit.block.name);
  }

  pulse() {
    const { hands } = this;
    const body = this.attacking ? bodyAtCursor(this.bot) : null;
    if (!this.attacking || body !== null || hands.isBusy()) hands.holdDig(false);
    else if (!hands.digging) hands.holdDig(true);
    if (this.attacking && !hands.isBusy() && (this.fresh || (body !== null && hands.isCharged()))) {
      hands.strike();
    }
    this.fresh = false;
    hands.pulse();
  }

  close() {
    this.hands.close();
  }
}

/**
 * The same keys and `pickItem`, with a camera in degrees, `[pitch, yaw]`, as MineRL's engine gets
 * them.
 */
class Mouse extends Human {
  get keys() {
    return MOUSE_KEYS;
  }

  angles(camera) {
    return camera;
  }
}

module.exports = { Human, Mouse, KEYS, MOUSE_KEYS, BINS, FARTHEST, degrees };

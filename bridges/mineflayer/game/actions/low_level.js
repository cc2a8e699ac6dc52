'use strict';
/**
 * MineDojo's and MineLand's array of eight numbers:
 *
 *   0 move     none, forward, back
 *   1 strafe   none, left, right
 *   2 posture  none, jump, sneak, sprint
 *   3, 4       pitch and yaw turn by (v - 12) * 15 degrees, at once, before the rest; 12 is no turn.
 *              As in MineLand, more pitch looks up and more yaw turns left (counter-clockwise)
 *   5 do       0 nothing, 1 use, 2 drop what is held, 3 attack, 4 craft, 5 equip, 6 place, 7 destroy,
 *              8 dig, 9 stop digging
 *   6 craft    for do 4: the place of the item in craftables.json
 *   7 slot     for do 5 to 7: a slot of the inventory window: 5 to 8 armour, 9 to 35 the inventory,
 *              36 to 44 the hot-bar, 45 the off hand (0 to 4 are the crafting grid and always empty)
 *
 * [0, 0, 0, 12, 12, 0, 0, 0] does nothing; zeros turn by half a circle, as in MineLand.
 *
 * Keys, digging and use last as long as they are chosen; use clicks again in each step, unless it
 * is eating, drawing a bow or raising a shield. A window opened by use is closed by the next
 * inventory operation (4 to 7). Differences from MineLand, whose code does not implement these or
 * assumes a creative player: pitch is limited to straight up and down; use on a creature is a right
 * click and not a blow; use on a block without an effect of its own uses the item in hand; craft
 * crafts, once, by hand or at a crafting table within reach of 4.5 blocks; place puts the slot's
 * item into the hand and places it where the agent looks; destroy throws the slot's stack away;
 * digging ends as soon as it is not chosen, and continues with the next block while it is. A craft,
 * equip, place or destroy that cannot be done is an event `actionFailed`.
 */
const { Actor } = require('./actor');
const { Hands } = require('./hands');
const { blockAtCursor, face, gaze, REACH } = require('./cursor');

const MOVES = ['forward', 'back'];
const STRAFES = ['left', 'right'];
const POSTURES = ['jump', 'sneak', 'sprint'];
const STILL = 12;
const BIN = (15 * Math.PI) / 180;
const [USE, DROP, ATTACK, CRAFT, EQUIP, PLACE, DESTROY, DIG] = [1, 2, 3, 4, 5, 6, 7, 8];

/** Number of values of each number of an action. */
const SIZES = [3, 3, 4, 25, 25, 10, 244, 46];

/**
 * Names of the items that `do 4` crafts, by number: what 1.16.5 has recipes for, in the order of its
 * item ids, without what a survivor's day can do without, so that MineDojo's 244 numbers suffice:
 * blocks in 16 colours (but white, pink and blue wool and white beds), wood other than oak (but
 * planks), cut, chiselled, polished and smooth stone, slabs, stairs and walls of rare stone, banner
 * patterns, and what takes the Nether's or the End's own goods.
 */
const CRAFTABLES = require('./craftables.json');

class LowLevel extends Actor {
  constructor(agent) {
    super(agent);
    this.hands = new Hands(agent, false);
  }

  begin({ action }) {
    const [move, strafe, posture, pitch, yaw, what, craft, slot] = action;
    this.press(MOVES, move);
    this.press(STRAFES, strafe);
    this.press(POSTURES, posture);
    this.turn(pitch, yaw);
    const { hands } = this;
    hands.holdDig(what === DIG);
    hands.holdUse(what === USE);
    if (what === USE && !hands.isBusy()) hands.use();
    else if (what === DROP) hands.drop(true);
    else if (what === ATTACK) hands.strike();
    else if (what === CRAFT) hands.run('craft', () => this.craft(CRAFTABLES[craft]));
    else if (what === EQUIP) hands.run('equip', () => this.equip(slot));
    else if (what === PLACE) hands.run('place', () => this.place(slot));
    else if (what === DESTROY) hands.run('destroy', () => this.bot.tossStack(this.itemIn(slot)));
  }

  press(keys, chosen) {
    keys.forEach((key, i) => this.bot.setControlState(key, chosen === i + 1));
  }

  turn(pitch, yaw) {
    if (pitch === STILL && yaw === STILL) return;
    const { entity } = this.bot;
    face(this.bot, entity.yaw + (yaw - STILL) * BIN, entity.pitch + (pitch - STILL) * BIN);
  }

  pulse() {
    this.hands.pulse();
  }

  /** Returns the stack in a slot. @throws {Error} when there is none */
  itemIn(slot) {
    const item = this.bot.inventory.slots[slot];
    if (!item) throw new Error(`slot ${slot} is empty`);
    return item;
  }

  async equip(slot) {
    await this.bot.equip(this.itemIn(slot), 'hand');
  }

  async place(slot) {
    const item = this.itemIn(slot);
    if (item !== this.bot.heldItem) await this.bot.equip(item, 'hand');
    const hit = blockAtCursor(this.bot);
    if (hit === null) throw new Error(`no block within ${REACH} blocks is looked at`);
    await this.bot._placeBlockWithOptions(hit.block, hit.face,
      { forceLook: 'ignore', swingArm: 'right', delta: hit.at });
  }

  async craft(name) {
    const { bot } = this;
    // The list is of 1.16.5; servers of other versions name some items differently, or do not have
    // them.
    const id = bot.registry.itemsByName[name]?.id;
    if (id === undefined) throw new Error(`${name}: there is no such item in ${bot.version}`);
    const table = this.table();
    const [recipe] = bot.recipesFor(id, null, 1, table);
    if (recipe) {
      await bot.craft(recipe, 1, recipe.requiresTable ? table : null);
      return;
    }
    const lacks = bot.recipesFor(id, null, 1, true).length > 0 ? `a crafting table within ${REACH} blocks`
      : 'what it takes';
    throw new Error(`${name}: ${lacks} is missing`);
  }

  /** Returns a crafting table within reach of the eyes, or null. */
  table() {
    const { eye } = gaze(this.bot);
    const kind = this.bot.registry.blocksByName.crafting_table.id;
    const [cell] = this.bot.findBlocks({ point: eye, matching: kind, maxDistance: REACH + 1, count: 1 });
    if (!cell || cell.offset(0.5, 0.5, 0.5).distanceTo(eye) > REACH + 0.5) return null;
    return this.bot.blockAt(cell);
  }

  close() {
    this.hands.close();
  }
}

module.exports = { LowLevel, SIZES, CRAFTABLES };

'use strict';
/**
 * The two mouse buttons and other actions of the hands, for the layouts that act through a view:
 * digging and using that continue while held, blows, dropping, and inventory operations.
 *
 * Only the agent turns its head: mineflayer turns it before most of its actions, so that is
 * disabled.
 */
const { blockAtCursor, bodyAtCursor, FACES } = require('./cursor');
const { weapon } = require('../survival/combat');

/**
 * Ticks between two uses while the button is held, and between two dug blocks; blocks that break
 * instantly have no such pause (Minecraft Wiki, "Breaking").
 */
const USE_EVERY = 4;
const DIG_PAUSE = 5;
const SWING_EVERY = 6;
const TICK_MS = 50;
/** Blocks with a use of their own, whatever is held. */
const REACTS = new RegExp('(^|_)(chest|furnace|smoker|crafting_table|door|trapdoor|fence_gate|button'
  + '|lever|bed|barrel|anvil|table|stonecutter|grindstone|loom|hopper|dispenser|dropper|lectern'
  + '|brewing_stand|beacon|repeater|comparator|bell|jukebox|note_block|cake|shulker_box|cauldron|composter|campfire)$');
/** Items that are used over time or in the air, besides food. */
const IN_THE_AIR = new RegExp('^(bow|crossbow|trident|shield|potion|splash_potion|snowball|egg'
  + '|lingering_potion|ender_pearl|ender_eye|milk_bucket|bucket|water_bucket|lava_bucket|fishing_rod'
  + '|experience_bottle|map|.*_(helmet|chestplate|leggings|boots)|elytra|turtle_helmet|.*_boat)$');
const OVER_TIME = new RegExp('^(bow|crossbow|trident|shield|potion|milk_bucket)$');

class Hands {
  /**
   * @param {object} agent see agent.js: bot, events, listen
   * @param {boolean} repeats whether use that is held clicks again and again
   */
  constructor(agent, repeats) {
    this.agent = agent;
    this.repeats = repeats;
    this.bot = agent.bot;
    this.lookAt = this.bot.lookAt;
    this.bot.lookAt = async () => {};
    this.digging = false;
    this.using = false;
    this.dug = null;
    this.pause = 0;
    this.waited = 0;
    this.sinceBlow = Infinity;
    this.errand = null;
    agent.listen(this.bot, 'death', () => this.letGo());
  }

  /** Holds or releases the button of digging. */
  holdDig(on) {
    this.digging = on;
    if (!on) this.stopDigging();
  }

  /** Holds or releases the button of use: on release a bow shoots, a shield is lowered. */
  holdUse(on) {
    if (on && !this.using) this.waited = USE_EVERY;
    this.using = on;
    if (!on && this.bot.usingHeldItem) this.bot.deactivateItem();
  }

  letGo() {
    this.holdDig(false);
    this.holdUse(false);
  }

  /** Applies the buttons for one tick; called before every tick. */
  pulse() {
    this.sinceBlow++;
    if (this.pause > 0) this.pause--;
    if (this.using && this.repeats) this.goOnUsing();
    if (this.digging && !this.isBusy()) this.goOnDigging();
  }

  /** Whether an item is being eaten, drawn or held up. */
  isBusy() {
    const held = this.bot.heldItem;
    return Boolean(this.bot.usingHeldItem && held && this.lasts(held.name));
  }

  lasts(name) {
    return OVER_TIME.test(name) || name in this.bot.registry.foodsByName;
  }

  /**
   * Digs for one tick, like a vanilla client: progress depends on the player's position and item in
   * each tick, so a jump or a change of tool counts at once.
   */
  goOnDigging() {
    const { bot, dug } = this;
    const hit = blockAtCursor(bot);
    const held = bot.heldItem?.type ?? null;
    if (dug !== null) {
      const same = hit && hit.block.position.equals(dug.block.position)
        && hit.block.type === dug.block.type && held === dug.held;
      if (same) this.digOn(hit.block);
      else this.stopDigging();
      if (same) return;
    }
    if (hit === null || this.pause > 0 || !hit.block.diggable) return;
    const time = bot.digTime(hit.block);
    if (!Number.isFinite(time)) return;
    bot.swingArm();
    this.tell(0, hit.block, hit.face);
    if (time === 0) this.takeAway(hit.block);
    if (time > 0) this.dug = { block: hit.block, face: hit.face, held, share: 0, ticks: 0 };
  }

  digOn(block) {
    const { dug } = this;
    dug.share += TICK_MS / this.bot.digTime(block);
    dug.ticks++;
    if (dug.ticks % SWING_EVERY === 0) this.bot.swingArm();
    if (dug.share < 1) return;
    this.tell(2, dug.block, dug.face);
    this.takeAway(dug.block);
    this.dug = null;
    this.pause = DIG_PAUSE;
  }

  /** Removes a dug block, as clients do; some servers inform all players but the digger. Ours do. */
  takeAway(block) {
    if (this.agent.embedded) return;
    this.bot._updateBlockState(block.position, 0);
    this.bot.emit('dug', block);
  }

  /** Informs the server of digging: status 0 begins, 1 aborts, 2 ends. */
  tell(status, block, face) {
    this.bot._client.write('block_dig', { status, location: block.position,
      face: FACES.findIndex((other) => other.equals(face)), sequence: 0 });
  }

  stopDigging() {
    if (this.dug === null) return;
    const { block, face } = this.dug;
    this.dug = null;
    this.tell(1, block, face);
  }

  goOnUsing() {
    this.waited++;
    if (this.waited < USE_EVERY || this.isBusy()) return;
    this.waited = 0;
    this.use();
  }

  /** Uses once, like a right click: the creature looked at, else the block, then the item in hand. */
  use() {
    const { bot } = this;
    const body = bodyAtCursor(bot);
    const held = bot.heldItem;
    if (body !== null) {
      bot.useOn(body);
      bot.swingArm();
    } else {
      const hit = blockAtCursor(bot);
      if (hit !== null) this.touch(hit);
      if (hit !== null && REACTS.test(hit.block.name) && !bot.getControlState('sneak')) return;
    }
    if (held && (IN_THE_AIR.test(held.name) || held.name in bot.registry.foodsByName)) {
      bot.activateItem();
      if (!this.lasts(held.name)) bot.usingHeldItem = false;
    }
  }

  /** Clicks on a block with what is held. */
  touch({ block, face, at }) {
    const { bot } = this;
    const refused = () => {};
    if (!bot.heldItem) bot.activateBlock(block, face, at).catch(refused);
    else {
      bot._genericPlace(block, face, { forceLook: 'ignore', swingArm: 'right', delta: at })
        .catch(refused);
    }
  }

  /** Strikes what is looked at, at any charge of the swing; returns whether it hit. */
  strike() {
    const body = bodyAtCursor(this.bot);
    if (body === null) this.bot.swingArm();
    else this.bot.attack(body);
    this.sinceBlow = 0;
    return body !== null;
  }

  /** Whether a blow would have its full strength. */
  isCharged() {
    return this.sinceBlow >= 20 / weapon(this.bot.heldItem?.name).speed;
  }

  /** Drops the held item, one or all of the stack; the key Q. */
  drop(all) {
    if (!this.bot.heldItem) return;
    this.bot._client.write('block_dig', { status: all ? 3 : 4, location: { x: 0, y: 0, z: 0 },
      face: 0, sequence: 0 });
  }

  /**
   * Runs an inventory operation that waits for messages, one at a time: while one is in progress
   * another is refused. A failure becomes an event `actionFailed`.
   */
  run(what, work) {
    if (this.errand !== null) {
      this.say(`${what}: ${this.errand} is not done yet`);
      return;
    }
    this.errand = what;
    this.letGo();
    if (this.bot.currentWindow) this.bot.closeWindow(this.bot.currentWindow);
    Promise.resolve().then(work)
      .catch((error) => this.say(`${what}: ${String(error?.message ?? error).split('\n')[0]}`))
      .finally(() => { this.errand = null; });
  }

  say(message) {
    if (!this.agent.stopped) this.agent.events.add('actionFailed', { message });
  }

  close() {
    this.letGo();
    this.bot.lookAt = this.lookAt;
  }
}

module.exports = { Hands, USE_EVERY, DIG_PAUSE };

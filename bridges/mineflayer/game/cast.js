'use strict';
/**
 * Scripted players: bots that play the steps of a start's script, one after the other, and answer
 * messages. A step that cannot be done is given up after LIMIT ticks, or its own `ticks`, and the next
 * begins.
 */
const { goals } = require('mineflayer-pathfinder');
const { Movements } = require('./agents');

const LIMIT = 600; // ticks of a step
const REACH = 2.5; // blocks from which something is given, and somebody hit
const NEAR = 2; // blocks between a player and whom it follows
const TURNS = 3; // ticks until others know where a player looks
const THINKS = 10; // ticks before an answer
const EYES = 1.62;
const MOVES = new Set(['go', 'give', 'hit']);

class ScriptedPlayer {
  /**
   * @param {object} world that it plays in
   * @param {object} bot mineflayer bot that has spawned
   * @param {object} part `{script, answers, ask}` of the start
   * @param {object} spawn place of the first agent, which places are relative to
   */
  constructor(world, bot, { script, answers, ask }, spawn) {
    Object.assign(this, { world, bot, spawn, steps: [...script], step: null, began: 0,
      toss: null, faced: null });
    this.answers = answers.map(([pattern, text]) => [new RegExp(pattern, 'i'), text]);
    this.once = ask === 'once';
    this.replies = [];
    /** What others have said since the step began. */
    this.lines = [];
    const movements = new Movements(bot);
    movements.canDig = false;
    movements.scafoldingBlocks = [];
    bot.pathfinder.setMovements(movements);
    bot.on('chat', (who, message) => this.heard(who, message));
  }

  heard(who, message) {
    if (who === this.bot.username) return;
    this.lines.push(message);
    const found = this.answers.find(([pattern]) => pattern.test(message));
    if (!found) return;
    if (this.once) this.answers.splice(this.answers.indexOf(found), 1);
    this.replies.push([this.world.tick() + THINKS, found[1]]);
  }

  /** Plays one tick. */
  tick() {
    const now = this.world.tick();
    while (this.replies.length > 0 && this.replies[0][0] <= now) {
      this.bot.chat(this.replies.shift()[1]);
    }
    while (this.step !== null || this.steps.length > 0) {
      if (this.step === null) {
        [this.step] = Object.entries(this.steps.shift());
        this.began = now;
        this.lines = [];
        if (MOVES.has(this.step[0])) this.bot.pathfinder.setGoal(null);
      }
      const [kind, value] = this.step;
      const late = kind !== 'wait' && now - this.began >= (value?.ticks ?? LIMIT);
      if (!this[kind](value, now - this.began) && !late) return;
      this.step = null;
      if (MOVES.has(kind)) this.bot.pathfinder.setGoal(null);
    }
  }

  /** Where another player is; null out of sight. */
  other(name) {
    return this.bot.players[name]?.entity ?? null;
  }

  // The steps: each returns whether it is done, given the ticks since it began.

  say(text) {
    this.bot.chat(text);
    return true;
  }

  wait(ticks, since) {
    return since >= ticks;
  }

  /** Until another says something that matches. */
  wait_chat({ pattern }) {
    return this.lines.some((line) => new RegExp(pattern, 'i').test(line));
  }

  /** Until the player has so many of an item. */
  wait_item({ item, count }) {
    const { id } = this.bot.registry.itemsByName[item];
    return this.bot.inventory.count(id, null) >= count;
  }

  /** Looks at a place, `[x, y, z]`, or at the head of another player. */
  look(at) {
    const entity = typeof at === 'string' ? this.other(at) : null;
    if (typeof at === 'string' && entity === null) return false;
    const point = entity ? entity.position.offset(0, EYES, 0) : this.spawn.offset(...at).offset(0.5, 0.5, 0.5);
    this.bot.lookAt(point, true);
    return true;
  }

  /** Strikes another player once. */
  hit(name, since) {
    const entity = this.other(name);
    if (entity === null || !this.faces(entity, since)) return false;
    this.bot.attack(entity);
    this.faced = null;
    return true;
  }

  go([x, y, z]) {
    const place = this.spawn.offset(x, y, z);
    if (!this.bot.pathfinder.goal) {
      this.bot.pathfinder.setGoal(new goals.GoalBlock(place.x, place.y, place.z));
    }
    return this.bot.entity.position.floored().equals(place);
  }

  follow(name) {
    const entity = this.other(name);
    if (entity === null) return false;
    this.bot.pathfinder.setGoal(new goals.GoalFollow(entity, NEAR), true);
    return true;
  }

  stay() {
    this.bot.pathfinder.setGoal(null);
    return true;
  }

  give({ item, count, to }, since) {
    const entity = this.other(to);
    if (this.toss !== null || entity === null) return this.tossed();
    if (!this.faces(entity, since)) return false;
    this.toss = 'going on';
    // One who has not so many gives nothing: that is the task's mistake.
    this.bot.toss(this.bot.registry.itemsByName[item].id, null, count).catch(() => {})
      .then(() => { this.toss = 'done'; });
    return false;
  }

  /** Walks to another and turns to it; returns whether it has done so long enough. */
  faces(entity, since) {
    if (this.bot.entity.position.distanceTo(entity.position) > REACH) {
      if (!this.bot.pathfinder.goal) {
        this.bot.pathfinder.setGoal(new goals.GoalFollow(entity, NEAR), true);
      }
      this.faced = null;
      return false;
    }
    this.bot.pathfinder.setGoal(null);
    this.bot.lookAt(entity.position.offset(0, 1, 0), true);
    this.faced ??= since;
    return since - this.faced >= TURNS;
  }

  tossed() {
    if (this.toss !== 'done') return false;
    this.toss = null;
    this.faced = null;
    return true;
  }
}

module.exports = { ScriptedPlayer };

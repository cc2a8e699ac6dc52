'use strict';
/** For tests of the sandbox: a bot without a game, and a loop that runs programs. */
const { EventEmitter } = require('node:events');
const { Vec3 } = require('vec3');
const registry = require('minecraft-data')('1.16.5');
const { makeApi } = require('./api');
const { Sandbox } = require('./runtime');

/** A bot on a floor of grass; calls to it are listed in `recorded`. */
class FakeBot extends EventEmitter {
  constructor() {
    super();
    this.registry = registry;
    this.username = 'fake';
    this.health = 20;
    this.food = 17;
    this.entity = {
      id: 1, name: 'player', type: 'player', username: 'fake', position: new Vec3(0.5, 64, 0.5),
      velocity: new Vec3(0, 0, 0), yaw: 0, pitch: 0, height: 1.8, width: 0.6, eyeHeight: 1.62, onGround: true
    };
    this.entities = { 1: this.entity };
    this.players = { fake: { username: 'fake', entity: this.entity } };
    this.inventory = { slots: new Array(46).fill(null), items: () => [], count: () => 0 };
    this.controlState = {};
    this.recorded = [];
    this.digging = null;
    this.targetDigBlock = null;
    this.world = {};
  }

  blockAt(point) {
    const cell = point.floored();
    if (Math.abs(cell.x) > 64 || Math.abs(cell.z) > 64) return null;
    const kind = registry.blocksByName[cell.y < 64 ? 'grass_block' : 'air'];
    return {
      type: kind.id, name: kind.name, stateId: kind.defaultState, metadata: 0, position: cell,
      diggable: kind.diggable, boundingBox: kind.boundingBox, getProperties: () => ({}), digTime: () => 900
    };
  }

  /** The world of a fake bot has no columns: sandbox/find.js asks the bot. */
  findBlocks({ matching, count }) {
    const isGrass = matching.includes(registry.blocksByName.grass_block.id);
    return isGrass ? [new Vec3(0, 63, 0), new Vec3(1, 63, 0), new Vec3(2, 63, 0)].slice(0, count) : [];
  }

  addEntity(id, name, x, z) {
    this.entities[id] = {
      id, name, type: 'mob', position: new Vec3(x, 64, z), velocity: new Vec3(0, 0, 0),
      yaw: 0, pitch: 0, height: 1.95, width: 0.6
    };
    return this.entities[id];
  }

  digTime() { return 900; }
  chat(text) { this.recorded.push(`chat ${text}`); }
  attack(entity) { this.recorded.push(`attack ${entity.name}`); }
  swingArm() { throw new TypeError('cannot read "arm" of /somewhere/secret/path.js'); }
  async lookAt(point) { this.recorded.push(`lookAt ${point}`); }

  setControlState(control, on) {
    this.controlState[control] = on;
    this.recorded.push(`${control} ${on}`);
  }

  clearControlStates() { this.controlState = {}; }

  dig(block) {
    this.targetDigBlock = block;
    this.recorded.push(`dig ${block.position}`);
    return new Promise((resolve, reject) => { this.digging = { resolve, reject }; });
  }

  stopDigging() {
    if (!this.targetDigBlock) return;
    this.targetDigBlock = null;
    this.recorded.push('stopDigging');
    this.digging.reject(new Error('Digging aborted'));
  }
}

/** Lets the host's promises settle, like the stepper's drain. */
const drain = () => new Promise((resolve) => { setImmediate(resolve); });

/** Returns a sandbox of a fake agent; `bot` may be another. Timeouts are generous: machines are busy. */
function makeSandbox(limits = {}, agent = { bot: new FakeBot() }) {
  return new Sandbox({ agent, api: makeApi(), holdMs: 300000, seed: 7, ...limits });
}

/** Plays a sandbox for some ticks, or until its program is over. */
async function playOn(sandbox, ticks = 100, each = () => {}) {
  for (let i = 0; i < ticks && sandbox.running; i++) {
    sandbox.tick();
    await drain();
    each(i);
  }
  return sandbox.state();
}

/** Plays a program from its start; returns the last state. */
async function play(sandbox, source, ticks = 100) {
  await sandbox.start(source);
  return playOn(sandbox, ticks);
}

module.exports = { FakeBot, drain, makeSandbox, play, playOn };

'use strict';
/** Actions of the body: look, walk by keys, dig, place, hit, use, sleep, talk. */
const { Vec3 } = require('vec3');
const { ActionError, ArgumentError } = require('./check');
const { entityData, knownEntity, middleOf, reachedBlock, reachedEntity, seenBlock, turnTo } = require('./api_shared');

const CELL = { name: 'position', type: 'cell' };
const POINT = { name: 'point', type: 'point' };
const ENTITY = { name: 'entity', type: 'integer', min: -2147483648, max: 2147483647 };
const ON = { name: 'state', type: 'boolean' };
const CONTROLS = ['forward', 'back', 'left', 'right', 'jump', 'sprint', 'sneak'];
const ANGLE = { type: 'number', min: -1000, max: 1000 };
/** What mineflayer's placeEntity knows. */
const PLACED_ENTITIES = /(_boat|_spawn_egg)$|^(armor_stand|end_crystal)$/;
const STEER = { type: 'number', min: -1, max: 1 };
const OFF_HAND = { name: 'offHand', type: 'boolean', default: false };
const MINUTE = 1200; // ticks

/**
 * Lines that an agent may say at once, and ticks until it may say another one. Each line costs time
 * at everyone who hears it.
 */
const LINES = 5;
const LINE_TICKS = 5;
/** Refused lines after which a program is ended: it does not listen. */
const MAX_REFUSED = 100;

/** Per agent {left, at}: the lines that it may say at that tick, whatever program says them. */
const voices = new WeakMap();

/** Takes a line from what the agent may say; returns whether there was one. */
function mayTalk(agent) {
  const now = agent.now?.() ?? 0;
  const voice = voices.get(agent) ?? { left: LINES, at: now };
  voice.left = Math.min(LINES, voice.left + (now - voice.at) / LINE_TICKS);
  voice.at = now;
  voices.set(agent, voice);
  if (voice.left < 1) return false;
  voice.left -= 1;
  return true;
}

/** Sends a chat message. Commands are for the console only. */
function chat(agent, [text], sandbox) {
  const line = text.replace(/[\r\n§]+/g, ' ').trim();
  if (line.startsWith('/')) {
    agent.trace?.add('violation', { rule: 'operator_command', evidence: line });
    throw new ArgumentError(`bot.chat: commands are not allowed to agents: ${line.split(' ')[0]}`);
  }
  if (!line) return;
  if (!mayTalk(agent)) {
    sandbox.refusedLines += 1;
    const rule = `an agent may say ${LINES} lines at once, then one in ${LINE_TICKS} ticks`;
    if (sandbox.refusedLines > MAX_REFUSED) sandbox.exceed(`${MAX_REFUSED} lines too many: ${rule}`);
    throw new ActionError(`bot.chat: ${rule}`);
  }
  agent.bot.chat(line);
}

async function dig(agent, [cell, forceLook], signal) {
  const { bot } = agent;
  const block = reachedBlock(agent, cell, 'dig');
  if (block.name.endsWith('air')) throw new ActionError(`nothing to dig at ${cell}`);
  if (!block.diggable || !Number.isFinite(bot.digTime(block))) {
    throw new ActionError(`${block.name} cannot be dug`);
  }
  const stop = () => bot.stopDigging();
  signal.addEventListener('abort', stop);
  await bot.dig(block, forceLook);
  signal.removeEventListener('abort', stop);
}

async function placeBlock(agent, [cell, face], signal) {
  const { bot } = agent;
  if (Math.abs(face.x) + Math.abs(face.y) + Math.abs(face.z) !== 1) {
    throw new ArgumentError(`bot.placeBlock(faceVector): expected a unit vector along an axis, got ${face}`);
  }
  const block = reachedBlock(agent, cell, 'place something at');
  if (!bot.heldItem) throw new ActionError('nothing is held that could be placed (bot.equip first)');
  const target = seenBlock(agent, cell.plus(face), 'replace');
  if (target.boundingBox === 'block') {
    throw new ActionError(`there is ${target.name} already at ${target.position}`);
  }
  await turnTo(agent, middleOf(cell).plus(face.scaled(0.5)), signal);
  await bot.placeBlock(block, new Vec3(face.x, face.y, face.z));
}

/** Places a boat or another entity by a block, and returns it. */
async function placeEntity(agent, [cell, face], signal) {
  const { bot } = agent;
  const block = reachedBlock(agent, cell, 'place something at');
  if (!PLACED_ENTITIES.test(bot.heldItem?.name ?? '')) {
    throw new ActionError('what is held is no boat, spawn egg, armor stand or end crystal (bot.equip first)');
  }
  await turnTo(agent, middleOf(cell).plus(face.scaled(0.5)), signal);
  return entityData(await bot.placeEntity(block, new Vec3(face.x, face.y, face.z)));
}

async function activateBlock(agent, [cell], signal) {
  const block = reachedBlock(agent, cell, 'use');
  await turnTo(agent, middleOf(cell), signal);
  await agent.bot.activateBlock(block);
}

async function consume({ bot }) {
  if (!bot.heldItem) throw new ActionError('nothing is held that could be eaten (bot.equip first)');
  await bot.consume();
}

/** Gets on an entity, and waits until the server has agreed. */
async function mount(agent, [id], signal) {
  const { bot } = agent;
  const entity = reachedEntity(agent, id, 'mount');
  if (bot.vehicle) throw new ActionError(`already rides ${bot.vehicle.name} (bot.dismount first)`);
  await turnTo(agent, entity.position.offset(0, 1, 0), signal);
  bot.mount(entity);
  await bot.waitForTicks(2);
  if (!bot.vehicle) throw new ActionError(`${entity.name} cannot be mounted, or not now`);
}

function dismount({ bot }) {
  if (!bot.vehicle) throw new ActionError('nothing is ridden (bot.mount first)');
  bot.dismount();
}

function moveVehicle({ bot }, [left, forward]) {
  if (!bot.vehicle) throw new ActionError('nothing is ridden (bot.mount first)');
  bot.moveVehicle(left, forward);
}

async function fish({ bot }, _args, signal) {
  if (bot.heldItem?.name !== 'fishing_rod') throw new ActionError('no fishing_rod is held (bot.equip first)');
  signal.addEventListener('abort', () => bot.activateItem()); // reels the line in
  await bot.fish();
}

async function sleep(agent, [cell]) {
  await agent.bot.sleep(reachedBlock(agent, cell, 'sleep in'));
}

function attack(agent, [id]) {
  const entity = reachedEntity(agent, id, 'hit');
  agent.bot.attack(entity);
}

async function lookAt({ bot }, [point, force]) {
  await bot.lookAt(point, force);
}

async function look({ bot }, [yaw, pitch, force]) {
  await bot.look(yaw, Math.max(-Math.PI / 2, Math.min(Math.PI / 2, pitch)), force);
}

function setControlState({ bot }, [control, on]) {
  bot.setControlState(control, on);
}

async function useOn(agent, [id], signal) {
  const entity = reachedEntity(agent, id, 'use something on');
  await turnTo(agent, entity.position.offset(0, 1, 0), signal);
  await agent.bot.activateEntity(entity);
}

const FORCE = { name: 'force', type: 'boolean', default: true };
const sync = (name, doc, args, run, returns = 'nothing') => ({ name, doc, args, returns, cost: 1, run });
const long = (name, doc, args, run, ticks = MINUTE) =>
  ({ name, doc, args, returns: 'nothing', cost: 2, async: true, ticks, run });

module.exports = [
  sync(
    'chat', 'says something; at most 256 characters, no commands, 5 lines at once, then one in 5 ticks',
    [{ name: 'text', type: 'text', max: 256 }], chat
  ),
  sync(
    'setControlState', 'presses or lets go of a key',
    [{ name: 'control', type: 'choice', of: CONTROLS }, ON], setControlState
  ),
  sync('clearControlStates', 'lets go of all keys', [], ({ bot }) => bot.clearControlStates()),
  sync(
    'controlState', 'the keys that are pressed', [],
    ({ bot }) => Object.fromEntries(CONTROLS.map((key) => [key, Boolean(bot.controlState?.[key])])),
    'object'
  ),
  sync('swingArm', 'moves the arm', [], ({ bot }) => bot.swingArm('right')),
  sync('attack', 'hits an entity within reach, once', [ENTITY], attack),
  sync(
    'activateItem', 'begins to use the held item (bow, shield, bucket, ...)', [OFF_HAND],
    ({ bot }, [off]) => bot.activateItem(off)
  ),
  sync('deactivateItem', 'ends to use the held item (shoots the bow)', [], ({ bot }) => bot.deactivateItem()),
  sync('stopDigging', 'ends digging', [], ({ bot }) => { bot.stopDigging(); }),
  long(
    'look', 'turns to angles in radians', [{ name: 'yaw', ...ANGLE }, { name: 'pitch', ...ANGLE }, FORCE],
    look, 100
  ),
  long('lookAt', 'turns to a point', [POINT, FORCE], lookAt, 100),
  long('dig', 'digs a block within reach', [CELL, FORCE], dig, 6 * MINUTE),
  long(
    'placeBlock', 'places the held block at a face of another',
    [CELL, { name: 'faceVector', type: 'cell' }], placeBlock, 200
  ),
  {
    ...long(
      'placeEntity', 'places the held boat, spawn egg, ... at a face of a block',
      [CELL, { name: 'faceVector', type: 'cell' }], placeEntity, 200
    ), returns: 'Entity'
  },
  long('activateBlock', 'uses a block: door, lever, button, bed, ...', [CELL], activateBlock, 200),
  long('activateEntity', 'uses an entity', [ENTITY], useOn, 200),
  long(
    'useOn', 'uses the held item on an entity: shears, wheat, ...', [ENTITY],
    async (agent, [id]) => { agent.bot.useOn(reachedEntity(agent, id, 'use something on')); }, 200
  ),
  long('mount', 'gets on a boat, a minecart, a horse, ... within reach', [ENTITY], mount, 200),
  sync('dismount', 'gets off', [], dismount),
  sync(
    'moveVehicle', 'steers what is ridden until the next call, ever less: left 1, right -1; forward 1, back -1',
    [{ name: 'left', ...STEER }, { name: 'forward', ...STEER }], moveVehicle
  ),
  long('consume', 'eats or drinks what is held', [], consume, 200),
  long('fish', 'casts the held rod where the agent looks, waits for a bite, and reels in', [], fish, 2 * MINUTE),
  long('sleep', 'lies down in a bed', [CELL], sleep, 200),
  long('wake', 'gets up', [], async ({ bot }) => bot.wake(), 200),
  {
    name: 'waitForTicks', doc: 'waits', args: [{ name: 'ticks', type: 'integer', min: 1, max: 24000 }],
    returns: 'nothing', cost: 1, async: true, wait: ([ticks]) => ticks
  },
  {
    name: 'isNear', doc: 'whether an entity is within reach of a blow', args: [ENTITY], returns: 'boolean', cost: 1,
    run(agent, [id]) {
      try {
        return Boolean(reachedEntity(agent, id, 'hit'));
      } catch {
        knownEntity(agent, id);
        return false;
      }
    }
  }
];

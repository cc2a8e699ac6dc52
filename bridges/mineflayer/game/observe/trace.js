'use strict';
/**
 * What an agent did, and what others did to it or with what it tossed, as `details.trace`: a list of
 * plain maps in their order, each with `type`, `tick` and `who`; docs/mineflayer.md has their fields.
 * Judges use it, so its counts are exact. On a remote server it has what the client is told: blocks dug,
 * items picked up, chat.
 */

/** Events kept between two frames, and lines of chat beside them; later ones are counted and dropped. */
const MOST = 500;

const TURN = 2 * Math.PI;
const round = (v) => Math.round(v * 100) / 100;
const exact = ({ x, y, z }) => [x, y, z].map(round);
const cell = ({ x, y, z }) => [x, y, z].map(Math.floor);
/** The name of a player, the kind of any other entity. */
const nameOf = (entity) => entity.username ?? entity.name;

class Trace {
  /** @param {object} agent see agent.js */
  constructor(agent) {
    this.agent = agent;
    this.list = [];
    this.lines = 0;
    this.dropped = 0;
    if (!agent.embedded) this.listenToBot(agent.bot);
  }

  listenToBot(bot) {
    this.agent.listen(bot, 'dug', (block) => this.add('dug', { block: block.name, properties: block.getProperties(),
      position: cell(block.position), tool: bot.heldItem?.name ?? '' }));
    this.agent.listen(bot._client, 'collect', ({ collectorEntityId, collectedEntityId, pickupItemCount }) => {
      if (collectorEntityId !== bot.entity.id) return;
      const entity = bot.entities[collectedEntityId];
      const stack = entity?.getDroppedItem();
      if (!stack) return;
      this.add('picked', { item: stack.name, count: pickupItemCount ?? stack.count,
        position: exact(entity.position), thrower: '' });
    });
  }

  add(type, fields, who = this.agent.name) {
    const isChat = type === 'chat';
    if ((isChat ? this.lines : this.list.length - this.lines) >= MOST) this.dropped++;
    else this.list.push({ type, tick: this.agent.tick(), who, ...fields });
    if (isChat) this.lines++;
  }

  /** Returns the events since the last call. */
  take() {
    const taken = this.list;
    if (this.dropped > 0) {
      taken.push({ type: 'dropped', tick: this.agent.tick(), who: this.agent.name, count: this.dropped });
    }
    Object.assign(this, { list: [], lines: 0, dropped: 0 });
    return taken;
  }
}

/** Adds what the mechanics of a server say to the traces of the agents of its world. */
function follow(world) {
  const { serv } = world;
  const of = (player) => world.counters.agentOf(player)?.trace;
  const on = (event, listener) => serv.on(`gamut:${event}`, (said) => {
    const trace = of(said.player);
    if (trace !== undefined) listener(trace, said);
  });
  const station = ({ openWindow }) => (openWindow?.place ? cell(openWindow.place) : null);
  on('mined', (trace, { block, properties, tool, ...where }) =>
    trace.add('dug', { block, properties, position: cell(where), tool }));
  on('placed', (trace, { block, properties = {}, ...where }) =>
    trace.add('placed', { block, properties, position: cell(where) }));
  on('crafted', (trace, { player, item, count = 1 }) => trace.add('crafted', { item, count, position: station(player) }));
  on('smelted', (trace, { player, item, count }) => trace.add('smelted', { item, count, position: station(player) }));
  on('opened', (trace, { block, place }) => { if (block) trace.add('opened', { block, position: cell(place) }); });
  on('stored', (trace, { block, cells, item, count }) => {
    const [position, ...others] = cells;
    trace.add(count > 0 ? 'put' : 'took', { block, position, item, count: Math.abs(count),
      ...(others.length > 0 && { other_half: others[0] }) });
  });
  on('tossed', (trace, { player, item, count }) => trace.add('tossed', { item, count,
    position: exact(player.position), yaw: round(yawOf(player)) }));
  on('eat', (trace, { item }) => trace.add('ate', { item }));
  on('forbidden', (trace, { rule, evidence }) => trace.add('violation', { rule, evidence }));
  on('trampled', (trace, { cell: position }) => trace.add('trampled', { position }));
  serv.on('gamut:picked', (said) => picked(world, said));
  serv.on('gamut:hurt', ({ victim, by }) => {
    if (!by || by === victim) return;
    for (const trace of [of(by), of(victim)]) trace?.add('hit', { entity: nameOf(victim) }, nameOf(by));
  });
}

function picked(world, { player, item, count, shares = [['', count]], position = player.position }) {
  for (const [thrower, part] of shares) {
    const fields = { item, count: part };
    world.counters.agentOf(player)?.trace.add('picked', { ...fields, position: exact(position), thrower });
    const giver = thrower === player.username ? undefined : world.agents.find((agent) => agent?.name === thrower);
    giver?.trace.add('gave', { ...fields, to: player.username });
  }
}

/** The direction in which a player looks, as agents see their own: radians, counterclockwise from north, 0 to 2 pi. */
const yawOf = ({ facing }) => (((Math.PI - facing.yaw) % TURN) + TURN) % TURN;

module.exports = { Trace, follow, yawOf };

'use strict';
/**
 * What an agent notices between two frames, in the form of MineLand's event list: plain maps with
 * `type`, `tick`, `message` and, by type:
 *   entityHurt, entityDead, entityEat   entity_type (self, bot, player or the kind), entity_name;
 *                                       a meal in a world of ours also item
 *   entitySpawn                         the same and position [x, y, z]; creatures only
 *   chat                                username, only_message; message is "<name> text"
 *   death                               username; the agent's own
 *   blockIsBeingBroken                  block_name, position [x, y, z]; of blocks in sight
 *   playerJoined, playerLeft            player_name
 *   kicked                              agent, reason; the agent's connection has ended
 *   fellOutOfWorld                      agent, reason; the agent is below the world
 * Unlike in MineLand, a name is always that of the entity that the event happened to, and distances
 * count for every type that has a position.
 */

const NEAR_SPAWN = 10; // blocks within which a creature's arrival is noticed, as in MineLand
/** Categories of minecraft-data that hold living creatures other than players. */
const CREATURES = /mobs$/;
/** Events kept between two frames; later ones are counted and dropped. */
const MOST = 200;
/** The same for lines of chat, which must not push out anything else. */
const MOST_CHAT = 200;

const round = (v) => Math.round(v * 100) / 100;
const place = (position) => [position.x, position.y, position.z].map(round);

class Events {
  /**
   * @param {object} agent with bot, senses, name, world
   * @param {boolean} embedded whether the server's own events are heard as well
   */
  constructor(agent, embedded) {
    this.agent = agent;
    this.list = [];
    this.chat = [];
    this.dropped = 0;
    const { bot } = agent;
    const on = (event, listener) => agent.listen(bot, event, listener);
    on('entityHurt', (entity) => this.of('entityHurt', entity, 'was hurt'));
    on('entityDead', (entity) => this.of('entityDead', entity, 'died'));
    if (embedded) {
      // The protocol informs others of a meal only by a sound; here the server says who ate.
      agent.listen(agent.world.serv, 'gamut:eat', ({ player, item }) =>
        this.of('entityEat', bot.entities[player.id], `ate ${item}`, { item }));
    } else {
      on('entityEat', (entity) => this.of('entityEat', entity, 'ate'));
    }
    on('entitySpawn', (entity) => this.spawned(entity));
    on('chat', (username, text) => this.said(username, text));
    on('death', () => this.add('death', { username: agent.name, message: `${agent.name} died` }));
    on('blockBreakProgressObserved', (block) => this.broken(block));
    on('playerJoined', ({ username }) => this.came('playerJoined', username, 'joined'));
    on('playerLeft', ({ username }) => this.came('playerLeft', username, 'left'));
    on('kicked', (reason) => this.ended('kicked', plain(reason)));
  }

  add(type, fields) {
    const isChat = type === 'chat';
    const kept = isChat ? this.chat.length : this.list.length - this.chat.length;
    if (kept >= (isChat ? MOST_CHAT : MOST)) this.dropped++;
    else this.list.push({ type, tick: this.agent.tick(), ...fields });
  }

  /** Records why the agent's episode ended; once per type, whatever else happened. */
  ended(type, reason) {
    if (this.list.some((event) => event.type === type)) return;
    const { name } = this.agent;
    this.list.push({ type, tick: this.agent.tick(), agent: name, reason, message: reason });
  }

  /** Returns the name of an entity from this agent's point of view: [entity_type, entity_name]. */
  label(entity) {
    if (entity === this.agent.bot.entity) return ['self', this.agent.name];
    if (entity.type === 'player') {
      const known = this.agent.world.names.includes(entity.username);
      return [known ? 'bot' : 'player', entity.username];
    }
    return [entity.name ?? 'unknown', entity.name ?? 'unknown'];
  }

  of(type, entity, verb, more = {}) {
    if (!entity?.position || !this.agent.senses.canHear(entity.position)) return;
    const [kind, name] = this.label(entity);
    this.add(type, { entity_type: kind, entity_name: name, message: `${name} ${verb}`, ...more });
  }

  spawned(entity) {
    // Before 1.17 minecraft-data classes arrows and dropped items as mobs too; their category
    // differs.
    if (!CREATURES.test(entity.kind ?? '')) return;
    if (this.agent.bot.entity.position.distanceTo(entity.position) > NEAR_SPAWN) return;
    if (!this.agent.senses.canHear(entity.position)) return;
    const [kind, name] = this.label(entity);
    this.add('entitySpawn', { entity_type: kind, entity_name: name,
      position: place(entity.position), message: `${name} appeared` });
  }

  said(username, text) {
    const { bot, name, senses } = this.agent;
    const speaker = bot.players[username]?.entity;
    const known = this.agent.world.names.includes(username);
    if (known && username !== name) {
      const limit = senses.limits.chat_distance;
      const away = speaker ? speaker.position.distanceTo(bot.entity.position) : Infinity;
      if (limit > 0 && away > limit) return;
    }
    const message = `<${username}> ${text}`;
    this.add('chat', { username, only_message: text, message });
    if (this.chat.length < MOST_CHAT) this.chat.push(message);
    this.agent.trace.add('chat', { text }, username);
  }

  broken(block) {
    if (!block || !this.agent.senses.canSeeBlock(block.position)) return;
    this.add('blockIsBeingBroken', { block_name: block.name, position: place(block.position),
      message: `${block.name} is being broken` });
  }

  came(type, username, verb) {
    if (username === this.agent.name) return;
    this.add(type, { player_name: username, message: `${username} ${verb}` });
  }

  /** Returns the events since the last call: `{event, chat}`. */
  take() {
    const taken = { event: this.list, chat: this.chat };
    if (this.dropped > 0) {
      taken.event.push({ type: 'dropped', tick: this.agent.tick(), count: this.dropped,
        message: `${this.dropped} more events were dropped` });
    }
    this.list = [];
    this.chat = [];
    this.dropped = 0;
    return taken;
  }
}

/** Returns the text of a server's reason; the raw value if it contains no text. */
function plain(reason) {
  return spoken(reason) || JSON.stringify(reason);
}

/** Returns the text of a string, of chat JSON, or of an NBT tree; empty if there is none. */
function spoken(said) {
  if (typeof said !== 'string') return words(said);
  try {
    const value = JSON.parse(said);
    return ['string', 'object'].includes(typeof value) ? words(value) : said; // a number is a text
  } catch {
    return said;
  }
}

function words(value) {
  if (typeof value === 'string') return value;
  if (value === null || typeof value !== 'object') return '';
  if (Array.isArray(value)) return value.map(words).join('');
  if ('value' in value && 'type' in value) return words(value.value);
  const own = words(value.text ?? '') || words(value.translate ?? '');
  const filled = [value.with ?? ''].flat().map((each) => ` ${words(each)}`).join('').trimEnd();
  return own + filled + words(value.extra ?? '');
}

module.exports = { Events, plain, spoken };

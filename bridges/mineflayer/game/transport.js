'use strict';
/**
 * The connection between the server and the bots of one world: packets in memory.
 *
 * A packet is written as the protocol's bytes (minecraft-protocol's own compiled serialisers) and
 * read back from them, so neither side can pass an object of its own to the other. Only what a
 * network needs is omitted: framing, compression, encryption, and Node's streams. Packets wait in
 * one queue per world and are delivered in the order they were written, when the world is stepped.
 */
require('./libraries');
const { outside } = require('./context');
const { EventEmitter } = require('node:events');
const { createSerializer, createDeserializer, states } = require('minecraft-protocol');
const minecraftData = require('minecraft-data');

/** Packets whose contents none of our readers changes or keeps: decoded once for all receivers. */
const SHARED = new Set(['rel_entity_move', 'entity_look', 'entity_move_look', 'entity_teleport',
  'entity_head_rotation', 'entity_velocity', 'entity_status', 'entity_destroy', 'animation',
  'update_time', 'block_change', 'multi_block_change', 'block_break_animation',
  'named_sound_effect', 'sound_effect', 'chat', 'game_state_change', 'difficulty', 'collect']);

const protocols = new Map();

/** Returns the compiled protocol that writes (or reads) in one state and direction. */
function protocol(version, state, isServer, reads) {
  const key = `${version}/${state}/${isServer}/${reads}`;
  if (!protocols.has(key)) {
    const make = reads ? createDeserializer : createSerializer;
    // Compiling draws random names: not from a world's random numbers.
    protocols.set(key, outside(() => make({ state, isServer, version }).proto));
  }
  return protocols.get(key);
}

/** A packet in the queue: its bytes, and its contents once a reader has decoded them. */
class Packet {
  constructor(buffer, shared) {
    this.buffer = buffer;
    this.shared = shared;
    this.read = null;
  }

  decode(proto) {
    if (this.read !== null) return this.read;
    const { data } = proto.parsePacketBuffer('packet', this.buffer);
    if (this.shared) this.read = data;
    return data;
  }
}

/** The queue of one world. */
class Link {
  /** @param {import('./context').Context} context of the world */
  constructor(context) {
    this.context = context;
    this.queue = [];
    /** Packets delivered since the world began. */
    this.delivered = 0;
  }

  /** Delivers waiting packets, and those written in response; returns how many. */
  deliver() {
    let done = 0;
    while (done < this.queue.length) {
      const { target, deliver } = this.queue[done++];
      try {
        deliver(target);
      } catch (error) {
        this.context.errors.push(error);
      }
    }
    this.queue = [];
    this.delivered += done;
    return done;
  }

  /** Connects a bot's end to a new end for the server, and returns the latter. */
  connect(bot, version) {
    const end = new MemoryClient(true, version);
    end.attach(this, bot);
    bot.attach(this, end);
    return end;
  }
}

/**
 * One end of a connection, which replaces minecraft-protocol's Client: the events and methods that
 * flying-squid and mineflayer use.
 */
class MemoryClient extends EventEmitter {
  constructor(isServer, version) {
    super();
    this.setMaxListeners(0);
    this.isServer = Boolean(isServer);
    this.version = version;
    this.ended = true;
    this.latency = 0;
    this.compressionThreshold = -2;
    this.socket = { remoteAddress: 'embedded', remotePort: 0, destroy() {} };
    this._supportFeature = minecraftData(version).supportFeature;
    this.serializer = { writable: true };
    this.state = states.HANDSHAKING;
  }

  get state() { return this.protocolState; }

  set state(value) {
    const old = this.protocolState;
    this.protocolState = value;
    this.writer = protocol(this.version, value, this.isServer, false);
    this.reader = protocol(this.version, value, this.isServer, true);
    this.emit('state', value, old);
  }

  /** Connects this end to another one through a link, for writing. */
  attach(link, peer) {
    this.link = link;
    this.peer = peer;
    this.ended = false;
  }

  _send(deliver) {
    this.link.queue.push({ target: this.peer, deliver });
  }

  /** Returns the bytes of a packet; null when it cannot be written, which the world reports. */
  encode(name, params) {
    try {
      const buffer = this.writer.createPacketBuffer('packet', { name, params });
      return new Packet(buffer, SHARED.has(name));
    } catch (error) {
      error.message = `cannot write the packet ${this.state}.${name}: ${error.message}`;
      this.link.context.errors.push(error);
      return null;
    }
  }

  write(name, params) {
    if (this.ended) return;
    const packet = this.encode(name, params);
    if (packet !== null) this.writePacket(packet);
  }

  /** Writes a packet that is encoded already. */
  writePacket(packet) {
    if (!this.ended) this._send((peer) => peer._receive(packet));
  }

  writeBundle(packets) {
    for (const [name, params] of packets) this.write(name, params);
  }

  writeRaw(buffer) {
    this.writePacket(new Packet(buffer, false));
  }

  /** Sends the other end a notification that is not a packet, in order with the packets. */
  tell(event, value) {
    if (!this.ended) this._send((peer) => { if (!peer.ended) peer.emit(event, value); });
  }

  _receive(packet) {
    if (this.ended) return;
    const { name, params } = packet.decode(this.reader);
    const metadata = { name, state: this.protocolState };
    this.emit('packet', params, metadata);
    this.emit(name, params, metadata);
  }

  end(reason, full) {
    if (this.ended) return;
    if (this.isServer) this._writeReason(String(reason ?? 'disconnected'), full);
    this._send((peer) => peer._closed(reason ?? 'socketClosed'));
    this.link.queue.push({ target: this, deliver: (self) => self._closed(reason) });
  }

  _writeReason(reason, full) {
    const text = full ?? JSON.stringify({ text: reason });
    if (this.state === states.PLAY) this.write('kick_disconnect', { reason: text });
    else if (this.state === states.LOGIN) this.write('disconnect', { reason: text });
  }

  _closed(reason) {
    if (this.ended) return;
    this.ended = true;
    this.emit('end', reason);
  }
}

/** Replaces minecraft-protocol's Server: nothing listens, bots are added by `accept`. */
class MemoryServer extends EventEmitter {
  constructor(version) {
    super();
    this.version = version;
    this.clients = {};
    this.nextId = 0;
    this.socketServer = { address: () => ({ port: 0 }), close() {} };
  }

  listen() {
    queueMicrotask(() => this.emit('listening'));
  }

  /** Adds a bot: `end` is the server's end of its connection. */
  accept(end) {
    end.id = this.nextId++;
    this.clients[end.id] = end;
    end.on('end', () => { delete this.clients[end.id]; });
    this.emit('connection', end);
  }

  /** Writes one packet to several players, encoded once. */
  writeToClients(clients, name, params) {
    const first = clients.find((client) => !client.ended && client.state === states.PLAY);
    if (first === undefined) return;
    const packet = first.encode(name, params);
    if (packet === null) return;
    for (const client of clients) if (client.state === states.PLAY) client.writePacket(packet);
  }

  close() {
    for (const client of Object.values(this.clients)) client.end('the world is closed');
    queueMicrotask(() => this.emit('close'));
  }
}

module.exports = { Link, MemoryClient, MemoryServer };

// Blocks, items and entities as programs see them.
const { Vec3, call } = guest;

/** Returns the version's record of a kind; looked up once, on first use. */
const known = new Map();
guest.lookUp = (kind, key) => {
  const id = `${kind} ${key}`;
  if (!known.has(id)) known.set(id, call('lookUp', kind, String(key).slice(0, 80)));
  return known.get(id) ?? undefined;
};

/** A block as it was when it was looked at. */
class Block {
  constructor({ type, name, stateId, metadata, position, properties }) {
    Object.assign(this, { type, name, stateId, metadata });
    this.position = new Vec3(...position);
    this.properties = properties;
  }

  get info() { return guest.lookUp('blocks', this.type) ?? {}; }
  get displayName() { return this.info.displayName; }
  get hardness() { return this.info.hardness; }
  get diggable() { return this.info.diggable; }
  get boundingBox() { return this.info.boundingBox; }
  get transparent() { return this.info.transparent; }
  get material() { return this.info.material; }
  get drops() { return this.info.drops; }
  get harvestTools() { return this.info.harvestTools; }
  getProperties() { return this.properties; }

  canHarvest(itemType) {
    const tools = this.harvestTools;
    return !tools || Boolean(itemType !== null && tools[itemType]);
  }
}

/** A stack of items as it was when it was looked at. */
class Item {
  constructor(data) { Object.assign(this, data); }
  get displayName() { return guest.lookUp('items', this.type)?.displayName; }
  get stackSize() { return guest.lookUp('items', this.type)?.stackSize; }
}
Object.assign(Item.prototype, { nbt: null, enchants: Object.freeze([]), customName: null, repairCost: 0 });

/** An entity: its place and health are always those of now, or the last ones seen. */
class Entity {
  #data;
  #stamp;
  #gone = false;

  constructor(data) {
    this.id = data.id;
    this.#set(data);
  }

  #set(data) {
    this.#data = { ...data, position: new Vec3(...data.position), velocity: new Vec3(...data.velocity) };
    this.#stamp = guest.stamp;
  }

  #now() {
    if (this.#stamp === guest.stamp || this.#gone) return this.#data;
    const data = call('entity', this.id);
    this.#stamp = guest.stamp;
    if (data === null) this.#gone = true;
    else this.#set(data);
    return this.#data;
  }

  get name() { return this.#data.name; }
  get type() { return this.#data.type; }
  get kind() { return this.#data.kind; }
  get displayName() { return this.#data.displayName; }
  get mobType() { return this.#data.displayName; }
  get username() { return this.#data.username; }
  get position() { return this.#now().position; }
  get velocity() { return this.#now().velocity; }
  get yaw() { return this.#now().yaw; }
  get pitch() { return this.#now().pitch; }
  get onGround() { return this.#now().onGround; }
  get health() { return this.#now().health; }
  get height() { return this.#data.height; }
  get width() { return this.#data.width; }
  get villager() { return this.#now().villager; }
  get heldItem() { const name = this.#now().heldItem; return name ? { name } : null; }
  /** False once it is dead, gone or out of sight. */
  get isValid() { this.#now(); return !this.#gone; }
  getDroppedItem() { const item = this.#data.droppedItem; return item ? new Item(item) : null; }
  toJSON() { return { id: this.id, name: this.name, position: this.#data.position }; }
}

/** The agent's own entity. */
class Self {
  #data = null;
  #stamp = -1;

  now() {
    if (this.#stamp !== guest.stamp) {
      const data = call('self');
      this.#data = { ...data, position: new Vec3(...data.position), velocity: new Vec3(...data.velocity) };
      this.#stamp = guest.stamp;
    }
    return this.#data;
  }

  get isValid() { return true; }
  toJSON() { return { id: this.id, name: this.name, position: this.position }; }
}
const OWN = ['id', 'name', 'type', 'username', 'position', 'velocity', 'yaw', 'pitch', 'height', 'width', 'eyeHeight',
  'onGround', 'isInWater', 'isInLava', 'isCollidedHorizontally'];
for (const name of OWN) {
  Object.defineProperty(Self.prototype, name, { get() { return this.now()[name]; }, enumerable: true });
}

guest.block = (data) => (data === null ? null : new Block(data));
guest.item = (data) => (data === null ? null : new Item(data));
guest.entity = (data) => (data === null ? null : new Entity(data));
guest.self = new Self();
guest.entityId = (entity, what) => {
  const id = typeof entity === 'number' ? entity : entity?.id;
  if (typeof id !== 'number') throw new guest.ArgumentError(`${what}: expected an entity, got ${guest.shown(entity)}`);
  return id;
};

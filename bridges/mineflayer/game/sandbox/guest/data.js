// mcData, looked up lazily.
const { call, lookUp } = guest;

/** A table whose records are requested from the host when they are first used. */
const table = (kind) => new Proxy({}, {
  get: (_own, key) => (typeof key === 'string' ? lookUp(kind, key) : undefined),
  has: (_own, key) => typeof key === 'string' && lookUp(kind, key) !== undefined,
  set: () => false,
  ownKeys: () => names(kind).map(({ name }) => name),
  getOwnPropertyDescriptor: (_own, key) => {
    const value = lookUp(kind, String(key));
    return value && { value, enumerable: true, configurable: true };
  }
});
const lists = new Map();
const names = (kind) => {
  if (!lists.has(kind)) lists.set(kind, call('names', kind));
  return lists.get(kind);
};

const mcData = {};
for (const kind of ['blocks', 'items', 'entities', 'foods', 'biomes', 'enchantments', 'effects']) {
  const both = table(kind);
  mcData[kind] = both;
  mcData[`${kind}ByName`] = both;
  Object.defineProperty(mcData, `${kind}Array`, { get: () => names(kind), enumerable: true });
}
guest.names = names;
guest.mcData = Object.freeze(mcData);

/** Returns the number of an item given by name, number or stack. */
guest.itemId = (item, what) => {
  if (typeof item === 'number' || typeof item === 'string') return item;
  const id = item?.type ?? item?.id;
  if (typeof id === 'number') return id;
  throw new guest.ArgumentError(`${what}: expected an item's name or number, got ${guest.shown(item)}`);
};
guest.expose({ mcData: guest.mcData });

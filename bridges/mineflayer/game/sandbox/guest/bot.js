// The bot, with mineflayer's names.
const { act, call, wait, xyz, self, Vec3, ArgumentError } = guest;
const { freeze, defineProperty } = Object;
const { ActionError } = globalThis;
const optional = (value) => value ?? undefined;
const asBoolean = (value, otherwise) => (value === undefined ? otherwise : Boolean(value));

// ----- inventory
/** Stacks that `bot.inventory` gave: from its slot 9 on, windows number them otherwise. */
const carried = new WeakSet();
const carry = (item) => (item && carried.add(item), item);
const slots = () => call('inventory').slots.map((data) => carry(guest.item(data)));
const sameItem = (wanted) => (item) => item && (item.type === wanted || item.name === wanted);
const inventory = freeze({
  get slots() { return slots(); },
  items() { return slots().slice(9, 45).filter(Boolean); },
  count(item) {
    const fits = sameItem(guest.itemId(item, 'inventory.count'));
    return this.items().filter(fits).reduce((sum, { count }) => sum + count, 0);
  },
  findInventoryItem(item) {
    return this.items().find(sameItem(guest.itemId(item, 'inventory.findInventoryItem'))) ?? null;
  },
  emptySlotCount() { return slots().slice(9, 45).filter((item) => !item).length; },
  firstEmptyInventorySlot() {
    const at = slots().slice(9, 45).findIndex((item) => !item);
    return at < 0 ? null : at + 9;
  }
});

/** Returns [slot, type] of a stack, or of an item given by name or number. */
function slotOf(item, what) {
  if (item !== null && typeof item === 'object' && typeof item.slot === 'number') return [item.slot, item.type];
  const id = guest.itemId(item, what);
  const found = inventory.findInventoryItem(id) ?? slots().find(sameItem(id));
  if (!found) {
    if (typeof id === 'string') call('recipes', id); // an unknown name: the host names the nearest
    throw new ActionError(`${what}: ${guest.lookUp('items', id)?.name ?? guest.shown(id)} is not in the inventory`);
  }
  return [found.slot, found.type];
}

// ----- search
/** Returns the names or numbers that a `matching` stands for, and a test for the blocks found. */
function matcher(matching, what) {
  if (typeof matching === 'function') {
    const fits = ({ id, name }) => {
      try {
        return Boolean(matching({ id, type: id, name, position: null, getProperties: () => ({}), properties: {} }));
      } catch {
        return true; // it asks for the place or the state: the block itself is asked
      }
    };
    return { kinds: guest.names('blocks').filter(fits).map(({ id }) => id), test: matching };
  }
  const kinds = (Array.isArray(matching) ? matching : [matching]).map((kind) => {
    const id = kind !== null && typeof kind === 'object' ? kind.id ?? kind.type : kind;
    if (typeof id !== 'number' && typeof id !== 'string') {
      throw new ArgumentError(`${what}: matching holds ${guest.shown(kind)}, not a name or number of a block ` +
        '(does mcData.blocksByName have it?)');
    }
    return id;
  });
  return { kinds, test: null };
}

function findBlocks(options, what = 'bot.findBlocks') {
  if (options === null || typeof options !== 'object') {
    throw new ArgumentError(`${what}: expected options {matching, ...}, got ${guest.shown(options)}`);
  }
  const { kinds, test } = matcher(options.matching, what);
  if (kinds.length === 0) return [];
  const query = {
    matching: kinds,
    maxDistance: optional(options.maxDistance),
    count: test ? 256 : optional(options.count),
    point: options.point ? xyz(options.point, what) : undefined
  };
  const cells = call('findBlocks', query).map((cell) => new Vec3(...cell));
  if (!test) return cells;
  const out = [];
  for (const cell of cells) {
    const block = blockAt(cell);
    if (block && test(block)) out.push(cell);
    if (out.length >= (options.count ?? 1)) break;
  }
  return out;
}
const blockAt = (point) => guest.block(call('blockAt', xyz(point, 'bot.blockAt')));
function findBlock(options) {
  const [cell] = findBlocks({ ...options, count: 1 }, 'bot.findBlock');
  return cell ? blockAt(cell) : null;
}
const entityList = (options) => call('entities', options ?? {}).map(guest.entity);

/** The nearest entity for which a function is true, or that fits {kind, name, type, username, maxDistance}. */
function nearestEntity(filter) {
  if (filter === undefined || typeof filter === 'function') {
    return entityList().find(filter ?? (() => true)) ?? null;
  }
  const { maxDistance, ...wanted } = filter;
  const fits = (entity) => Object.keys(wanted).every((key) => entity[key] === wanted[key]);
  return entityList(maxDistance === undefined ? {} : { maxDistance }).find(fits) ?? null;
}
function players() {
  const own = {};
  for (const { username, entity } of call('players')) {
    own[username] = {
      username,
      get entity() {
        if (entity === null) return null;
        return entity === self.id ? self : guest.entity(call('entity', entity));
      }
    };
  }
  return own;
}

// ----- events
const handlers = new Map();
/** Events of plugins that are helpers here, which the host does not know. */
const OWN_EVENTS = new Set(['startedAttacking', 'stoppedAttacking']);
function on(name, handler, once = false) {
  if (typeof handler !== 'function') throw new ArgumentError(`bot.on("${name}"): expected a function`);
  if (!OWN_EVENTS.has(name)) call('listen', String(name));
  if (!handlers.has(name)) handlers.set(name, []);
  handlers.get(name).push({ handler, once });
  return bot;
}
function removeListener(name, handler) {
  handlers.set(name, (handlers.get(name) ?? []).filter((one) => one.handler !== handler));
  return bot;
}
const entityEvents = new Set(['entityHurt', 'entityDead', 'entitySpawn', 'entityGone', 'dismount']);
function eventArguments(name, args) {
  if (!entityEvents.has(name)) return args;
  const [id, kind, place] = args;
  return [guest.entity(call('entity', id)) ?? { id, name: kind, position: new Vec3(...place), isValid: false }];
}
const failed = (error) => guest.report('$unhandled', guest.describeError(error));
guest.events = {
  emit([name, args]) {
    const own = handlers.get(name) ?? [];
    handlers.set(name, own.filter(({ once }) => !once));
    for (const { handler } of own) {
      try {
        const result = handler(...eventArguments(name, args));
        if (result instanceof Promise) result.then(undefined, failed);
      } catch (error) {
        failed(error);
      }
    }
  }
};

// ----- chests and furnaces
const items = (list) => list.filter(Boolean).map(guest.item);
function chest(window) {
  const find = (list, item, what) => list().find(sameItem(guest.itemId(item, what))) ?? null;
  const containerItems = () => items(call('contents', window).container);
  const own = () => items(call('contents', window).own);
  return freeze({
    id: window,
    containerItems,
    items: own,
    findContainerItem: (item) => find(containerItems, item, 'chest.findContainerItem'),
    findInventoryItem: (item) => find(own, item, 'chest.findInventoryItem'),
    deposit: (item, _metadata, count) =>
      wait('deposit', window, guest.itemId(item, 'chest.deposit'), optional(count)),
    withdraw: (item, _metadata, count) =>
      wait('withdraw', window, guest.itemId(item, 'chest.withdraw'), optional(count)),
    close: () => act('closeWindow', window)
  });
}
function furnace(window) {
  const slot = (i) => guest.item(call('contents', window).container[i]);
  const put = (place) => (item, _metadata, count) =>
    wait('putIn', window, place, guest.itemId(item, 'furnace.put'), optional(count));
  const take = (place) => () => wait('takeOut', window, place).then(guest.item);
  return freeze({
    id: window,
    get fuel() { return call('contents', window).fuel; },
    get progress() { return call('contents', window).progress; },
    inputItem: () => slot(0),
    fuelItem: () => slot(1),
    outputItem: () => slot(2),
    items: () => items(call('contents', window).own),
    putInput: put('input'),
    putFuel: put('fuel'),
    takeInput: take('input'),
    takeFuel: take('fuel'),
    takeOutput: take('output'),
    close: () => act('closeWindow', window)
  });
}
/** Any other window: its slots, and what can be done in it. */
function windowOf(window) {
  const all = () => {
    const { container, own } = call('contents', window);
    return [...container, ...own].map(guest.item);
  };
  const size = () => call('contents', window).container.length;
  const slotIn = (item, what) => {
    const slot = typeof item === 'number' ? item : item?.slot;
    if (typeof slot !== 'number') throw new ArgumentError(`${what}: expected a stack of bot.inventory or this window, got ${guest.shown(item)}`);
    if (slot === item) return slot;
    const at = carried.has(item) ? slot - 9 + size() : slot;
    if (all()[at]?.type === item.type) return at;
    throw new ActionError(`${what}: ${item.name} is not in slot ${at} of the window; look for it again with findInventoryItem`);
  };
  const own = () => items(call('contents', window).own);
  return {
    id: window,
    get type() { return call('contents', window).type; },
    get slots() { return all(); },
    get inventoryStart() { return size(); },
    slotIn,
    items: own,
    containerItems: () => items(call('contents', window).container),
    findInventoryItem: (item) => own().find(sameItem(guest.itemId(item, 'window.findInventoryItem'))) ?? null,
    deposit: (item, _metadata, count) => wait('deposit', window, guest.itemId(item, 'window.deposit'), optional(count)),
    withdraw: (item, _metadata, count) => wait('withdraw', window, guest.itemId(item, 'window.withdraw'), optional(count)),
    pressButton: (button) => act('pressButton', window, button),
    close: () => act('closeWindow', window)
  };
}
function villager(window) {
  return freeze({
    ...windowOf(window),
    get slots() { return windowOf(window).slots; },
    get trades() {
      return call('trades', window).map((one) => {
        const [inputs, outputs] = [one.inputs.map(guest.item), one.outputs.map(guest.item)];
        return { ...one, inputs, outputs, inputItem1: inputs[0], inputItem2: inputs[1] ?? null, outputItem: outputs[0] };
      });
    },
    trade: (index, count) => wait('trade', window, Number(index), optional(count))
  });
}
function enchantmentTable(window) {
  const base = windowOf(window);
  const put = (to) => (item) => wait('moveSlotItem', window, base.slotIn(item, 'table.put'), to);
  return freeze({
    ...base,
    get slots() { return windowOf(window).slots; },
    get enchantments() { return call('enchantments', window); },
    targetItem: () => windowOf(window).slots[0],
    putTargetItem: put(0),
    putLapis: put(1),
    takeTargetItem: async () => {
      const item = windowOf(window).slots[0];
      await wait('putAway', window, 0);
      return item;
    },
    enchant: (choice) => wait('enchant', window, Number(choice)).then(guest.item)
  });
}
function anvil(window) {
  const base = windowOf(window);
  return freeze({
    ...base,
    get slots() { return windowOf(window).slots; },
    combine: (one, two, name) =>
      wait('combine', window, base.slotIn(one, 'anvil.combine'), base.slotIn(two, 'anvil.combine'), optional(name)),
    rename: (item, name) => wait('rename', window, base.slotIn(item, 'anvil.rename'), String(name))
  });
}
/** The number of the window that clicks are for: the one that was opened last. */
let openedLast = null;
const opens = (name, make, argument) => guest.placed(async (target) => {
  openedLast = await wait(name, argument(target, `bot.${name}`));
  return make(openedLast);
});
const inOpen = (name) => (...args) => wait(name, openedLast ?? 0, ...args);

/** The number of the chest's window that was opened last. */
guest.lastChest = null;
const openChest = guest.placed(async (block) => {
  guest.lastChest = await wait('openChest', xyz(block, 'bot.openChest'));
  return chest(guest.lastChest);
});
const openFurnace = guest.placed(async (block) => furnace(await wait('openFurnace', xyz(block, 'bot.openFurnace'))));

// ----- recipes
const cellOf = (block) => (block ? xyz(block, 'craftingTable') : undefined);
const recipesFor = (item, _metadata, minCount, table) =>
  call('recipes', guest.itemId(item, 'bot.recipesFor'), optional(minCount), cellOf(table), false);
const recipesAll = (item, _metadata, table) =>
  call('recipes', guest.itemId(item, 'bot.recipesAll'), undefined, cellOf(table), true);
function craft(recipe, count, table) {
  if (recipe === null || typeof recipe !== 'object' || !recipe.result) {
    return guest.placed(async () => {
      const got = guest.shown(recipe);
      throw new ArgumentError(`bot.craft: expected a recipe of bot.recipesFor (none fits?), got ${got}`);
    })();
  }
  return wait('craft', recipe.result.id, recipe.key, optional(count), cellOf(table));
}

const bot = {
  inventory,
  blockAt,
  findBlock,
  findBlocks,
  nearestEntity,
  on,
  addListener: on,
  once: (name, handler) => on(name, handler, true),
  removeListener,
  off: removeListener,
  removeAllListeners(name) { handlers.delete(name); return bot; },
  registry: guest.mcData,
  chat: (text) => act('chat', String(text)),
  setControlState: (control, state) => act('setControlState', control, Boolean(state)),
  getControlState: (control) => call('controlState')[control],
  clearControlStates: () => act('clearControlStates'),
  swingArm: () => act('swingArm'),
  attack: (entity) => act('attack', guest.entityId(entity, 'bot.attack')),
  activateItem: (offHand) => act('activateItem', asBoolean(offHand, false)),
  deactivateItem: () => act('deactivateItem'),
  stopDigging: () => act('stopDigging'),
  setQuickBarSlot: (slot) => act('setQuickBarSlot', slot),
  canSeeBlock: (block) => call('canSeeBlock', xyz(block, 'bot.canSeeBlock')),
  canDigBlock: (block) => call('canDigBlock', xyz(block, 'bot.canDigBlock')),
  digTime: (block) => call('digTime', xyz(block, 'bot.digTime')) ?? Infinity,
  blockAtCursor: (maxDistance) => guest.block(call('blockAtCursor', optional(maxDistance))),
  entityAtCursor: (maxDistance) => guest.entity(call('entityAtCursor', optional(maxDistance))),
  look: (yaw, pitch, force) => wait('look', yaw, pitch, asBoolean(force, true)),
  lookAt: (point, force) => wait('lookAt', xyz(point, 'bot.lookAt'), asBoolean(force, true)),
  dig: (block, force) => wait('dig', xyz(block, 'bot.dig'), asBoolean(force, true)),
  placeBlock: (block, face) =>
    wait('placeBlock', xyz(block, 'bot.placeBlock'), xyz(face, 'bot.placeBlock(faceVector)')),
  placeEntity: (block, face) =>
    wait('placeEntity', xyz(block, 'bot.placeEntity'), xyz(face, 'bot.placeEntity(faceVector)')).then(guest.entity),
  activateBlock: (block) => wait('activateBlock', xyz(block, 'bot.activateBlock')),
  activateEntity: (entity) => wait('activateEntity', guest.entityId(entity, 'bot.activateEntity')),
  useOn: (entity) => wait('useOn', guest.entityId(entity, 'bot.useOn')),
  mount: (entity) => wait('mount', guest.entityId(entity, 'bot.mount')),
  dismount: () => act('dismount'),
  moveVehicle: (left, forward) => act('moveVehicle', left, forward),
  consume: () => wait('consume'),
  fish: () => wait('fish'),
  isABed: (block) => /_bed$/.test(block?.name ?? ''),
  sleep: (bed) => wait('sleep', xyz(bed, 'bot.sleep')),
  wake: () => wait('wake'),
  equip: (item, destination) => wait('equip', ...slotOf(item, 'bot.equip'), optional(destination)),
  unequip: (destination) => wait('unequip', optional(destination)),
  toss: (item, _metadata, count) => wait('toss', guest.itemId(item, 'bot.toss'), optional(count)),
  tossStack: (item) => wait('tossStack', ...slotOf(item, 'bot.tossStack')),
  waitForTicks: (ticks) => wait('waitForTicks', ticks),
  waitForChunksToLoad: () => wait('waitForTicks', 1),
  recipesFor,
  recipesAll,
  craft,
  openChest,
  openContainer: openChest,
  openFurnace,
  openBlock: opens('openBlock', (window) => freeze(windowOf(window)), xyz),
  openEnchantmentTable: opens('openEnchantmentTable', enchantmentTable, xyz),
  openAnvil: opens('openAnvil', anvil, xyz),
  openVillager: opens('openVillager', villager, guest.entityId),
  trade: (window, index, count) => window.trade(index, count),
  moveSlotItem: inOpen('moveSlotItem'),
  putAway: inOpen('putAway'),
  clickWindow: inOpen('clickWindow')
};
// What mineflayer throws by rejecting must not throw at once here: `bot.dig(null).catch(...)`.
for (const name of ['look', 'lookAt', 'dig', 'placeBlock', 'placeEntity', 'activateBlock', 'activateEntity', 'useOn', 'mount', 'sleep', 'equip',
  'toss', 'tossStack', 'craft', 'moveSlotItem', 'putAway', 'clickWindow']) {
  const plain = bot[name];
  bot[name] = (...args) => {
    try {
      return plain(...args);
    } catch (error) {
      return guest.placed(async () => { throw error; })();
    }
  };
}
const getters = {
  entity: () => self,
  entities: () => Object.fromEntries(entityList().map((entity) => [entity.id, entity])),
  players,
  heldItem: () => slots()[36 + self.now().quickBarSlot],
  time: () => call('clock').time,
  game: () => call('clock').game,
  isRaining: () => call('clock').isRaining,
  thunderState: () => call('clock').thunderState,
  controlState: () => call('controlState'),
  vehicle: () => {
    const { vehicle } = self.now();
    return vehicle === null ? null : guest.entity(call('entity', vehicle));
  },
  targetDigBlock: () => guest.block(self.now().targetDigBlock),
  currentTick: () => guest.tick
};
for (const name of ['username', 'health', 'food', 'foodSaturation', 'oxygenLevel', 'experience', 'isSleeping',
  'quickBarSlot', 'usingHeldItem']) getters[name] = () => self.now()[name];
for (const [name, get] of Object.entries(getters)) defineProperty(bot, name, { get, enumerable: true });
guest.bot = bot;

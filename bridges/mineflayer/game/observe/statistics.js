'use strict';
/**
 * Statistics of the players of a world since it began, by the names of MineRL's engine:
 * `{mine_block: {stone: 3}, custom: {jump: 2}, ...}`. Distances are in centimetres, damage in tenths
 * of a point of health, as in the game (Minecraft Wiki, "Statistics"). Not counted is what the
 * mechanics have no event for: raids, banners, the cleaning of armour, notes that are played.
 */

const GROUPS = ['mine_block', 'craft_item', 'use_item', 'pickup', 'break_item', 'drop', 'kill_entity',
  'entity_killed_by', 'damage_dealt', 'custom'];
/** What the game does not count by names: groups of our own, for goals of tasks. */
const DEEDS = { tamed: 'tame', bred: 'breed', renamed: 'rename', repaired: 'repair', enchanted: 'enchant', traded: 'trade' };
/** Tools and weapons, whose use is a broken block or a blow. */
const TOOL = /_(sword|axe|pickaxe|shovel|hoe)$|^(shears|trident)$/;
const BOWS = ['bow', 'crossbow'];
/** Statistics of opened blocks by the ends of their names; the first that fits counts. */
const OPENED = [['trapped_chest', 'trigger_trapped_chest'], ['ender_chest', 'open_enderchest'],
  ['chest', 'open_chest'], ['barrel', 'open_barrel'], ['shulker_box', 'open_shulker_box'],
  ['hopper', 'inspect_hopper'], ['dropper', 'inspect_dropper'], ['dispenser', 'inspect_dispenser'],
  ['brewing_stand', 'interact_with_brewingstand'],
  ...['anvil', 'blast_furnace', 'crafting_table', 'furnace', 'grindstone', 'loom', 'smithing_table', 'smoker',
    'stonecutter'].map((name) => [name, `interact_with_${name}`])];
const RIDES = { boat: 'boat', minecart: 'minecart', pig: 'pig', horse: 'horse', donkey: 'horse', mule: 'horse',
  strider: 'strider' };

class Statistics {
  /** @param {object} serv server of the world */
  constructor(serv) {
    this.serv = serv;
    this.players = new Map();
    this.deeds = new Map();
    this.count();
    this.countDeeds();
    this.countUses();
    this.countMoves();
  }

  /** Returns the statistics of a player, `{group: {name: number}}`. */
  of(player) {
    let found = this.players.get(player.username);
    if (found === undefined) {
      found = Object.fromEntries(GROUPS.map((group) => [group, {}]));
      this.players.set(player.username, found);
    }
    return found;
  }

  /** Returns what a player has done beside that, `{tame: {wolf: 1}, trade: {bread: 6}, ...}`. */
  deedsOf(player) {
    return this.deeds.get(player.username) ?? {};
  }

  countDeeds() {
    for (const [event, group] of Object.entries(DEEDS)) {
      this.on(event, ({ player, item, entity, count }) => {
        if (player?.type !== 'player') return;
        const counts = (this.deedsOf(player)[group] ?? {});
        const name = item ?? entity.name;
        counts[name] = (counts[name] ?? 0) + (count ?? 1);
        this.deeds.set(player.username, { ...this.deedsOf(player), [group]: counts });
      });
    }
  }

  add(player, group, name, amount = 1) {
    if (player?.type !== 'player') return;
    const counts = this.of(player)[group];
    counts[name] = (counts[name] ?? 0) + amount;
  }

  custom(player, name, amount = 1) {
    this.add(player, 'custom', name, amount);
  }

  on(event, listener) {
    this.serv.on(`gamut:${event}`, listener);
  }

  count() {
    this.on('mined', ({ player, block }) => this.add(player, 'mine_block', block));
    for (const event of ['crafted', 'smelted']) {
      this.on(event, ({ player, item, count }) => this.add(player, 'craft_item', item, count ?? 1));
    }
    this.on('picked', ({ player, item, count }) => this.add(player, 'pickup', item, count));
    this.on('broke', ({ player, item }) => this.add(player, 'break_item', item));
    this.on('tossed', ({ player, item, count }) => {
      this.add(player, 'drop', item, count);
      this.custom(player, 'drop');
    });
    this.on('hurt', ({ victim, amount, by }) => {
      const tenths = Math.round(amount * 10);
      this.custom(victim, 'damage_taken', tenths);
      if (by === victim) return;
      this.custom(by, 'damage_dealt', tenths);
      this.add(by, 'damage_dealt', kindOf(victim), tenths);
    });
    this.on('blocked', ({ victim, amount }) =>
      this.custom(victim, 'damage_blocked_by_shield', Math.round(amount * 10)));
    this.on('death', ({ victim, by }) => {
      this.custom(victim, 'deaths');
      if (victim.type === 'player') this.of(victim).custom.time_since_death = 0;
      if (by === null || by === victim) return;
      this.add(victim, 'entity_killed_by', kindOf(by));
      this.add(by, 'kill_entity', kindOf(victim));
      this.custom(by, victim.type === 'player' ? 'player_kills' : 'mob_kills');
    });
    const events = { bred: 'animals_bred', fished: 'fish_caught', traded: 'traded_with_villager',
      enchanted: 'enchant_item', sleep: 'sleep_in_bed' };
    for (const [event, name] of Object.entries(events)) this.on(event, ({ player }) => this.custom(player, name));
    this.on('counted', ({ player, statistic }) => this.custom(player, statistic));
    this.on('sleep', ({ player }) => { this.of(player).custom.time_since_rest = 0; });
  }

  countUses() {
    const use = (player, item) => this.add(player, 'use_item', item);
    const hand = (player) => player?.type === 'player' ? player.heldStack()?.name : undefined;
    const tool = (player) => {
      const held = hand(player);
      if (held !== undefined && TOOL.test(held)) use(player, held);
    };
    this.on('mined', ({ player }) => tool(player));
    this.on('hurt', ({ cause, by }) => { if (cause === 'blow') tool(by); });
    for (const event of ['tilled', 'sheared']) this.on(event, ({ player }) => tool(player));
    this.on('placed', ({ player, block }) => use(player, this.itemOf(block)));
    this.on('eat', ({ player, item }) => {
      if (item === 'cake') this.custom(player, 'eat_cake_slice');
      else use(player, item);
    });
    for (const event of ['thrown', 'mapped']) this.on(event, ({ player, item }) => use(player, item));
    this.on('shot', ({ by }) => { if (BOWS.includes(hand(by))) use(by, hand(by)); });
    this.on('filled', ({ player, item }) => use(player, item === 'potion' ? 'glass_bottle' : 'bucket'));
    this.on('milked', ({ player }) => use(player, 'bucket'));
    this.on('lit', ({ player, item }) => use(player, item));
    this.on('fertilised', ({ player }) => use(player, 'bone_meal'));
    this.on('fished', ({ player }) => use(player, 'fishing_rod'));
    this.on('opened', ({ player, kind, block }) => {
      if (kind === 'merchant') this.custom(player, 'talked_to_villager');
      const name = OPENED.find(([ending]) => block?.endsWith(ending))?.[1];
      if (name !== undefined) this.custom(player, name);
    });
  }

  /** Returns the item that places a block. */
  itemOf(block) {
    const { itemsByName } = this.serv.registry;
    if (block === 'water' || block === 'lava') return `${block}_bucket`;
    const plain = block.replace(/(^|_)wall_/, '$1');
    return [block, plain, SEEDS[block]].find((name) => itemsByName[name] !== undefined) ?? block;
  }

  countMoves() {
    const { survival } = this.serv;
    survival.onTick(() => {
      for (const player of this.serv.players) {
        for (const name of ['play_one_minute', 'time_since_death', 'time_since_rest']) this.custom(player, name);
        if (player.crouching) this.custom(player, 'sneak_time');
        this.rode(player);
      }
    });
    survival.onMove((player, dx, dy, dz, onGround) => this.moved(player, dx, dy, dz, onGround));
  }

  /** Counts how far a player was carried in this tick: riders do not report moves of their own. */
  rode(player) {
    const { vehicle, rideFrom } = player;
    player.rideFrom = vehicle ? { vehicle, x: vehicle.position.x, z: vehicle.position.z } : undefined;
    if (!vehicle || rideFrom?.vehicle !== vehicle) return;
    const ride = RIDES[vehicle.name];
    const way = Math.round(Math.hypot(vehicle.position.x - rideFrom.x, vehicle.position.z - rideFrom.z) * 100);
    if (ride !== undefined && way > 0) this.custom(player, `${ride}_one_cm`, way);
  }

  moved(player, dx, dy, dz, onGround) {
    const across = Math.round(Math.hypot(dx, dz) * 100);
    const jumped = player.leftGround !== true && !onGround && dy > JUMP;
    player.leftGround = !onGround;
    if (jumped) this.custom(player, 'jump');
    if (player.vehicle) return; // see rode
    const { x, y, z } = player.position;
    const wet = this.serv.survival.blocks.at(x, y, z).water;
    if (wet) {
      const way = Math.round(Math.hypot(dx, dy, dz) * 100);
      const head = this.serv.survival.blocks.at(x, y + EYES, z).water;
      const name = player.sprinting ? 'swim' : head ? 'walk_under_water' : 'walk_on_water';
      if (way > 0) this.custom(player, `${name}_one_cm`, way);
      return;
    }
    if (!onGround && dy < 0) this.custom(player, 'fall_one_cm', Math.round(-dy * 100));
    if (across === 0 || !onGround) return;
    const gait = player.sprinting ? 'sprint' : player.crouching ? 'crouch' : 'walk';
    this.custom(player, `${gait}_one_cm`, across);
  }
}

const JUMP = 0.3; // blocks of the first tick of a jump
const EYES = 1.62;
/** Items of plants whose block has another name. */
const SEEDS = { wheat: 'wheat_seeds', carrots: 'carrot', potatoes: 'potato', beetroots: 'beetroot_seeds',
  melon_stem: 'melon_seeds', pumpkin_stem: 'pumpkin_seeds', sweet_berry_bush: 'sweet_berries', cocoa: 'cocoa_beans',
  redstone_wire: 'redstone', tripwire: 'string', fire: 'flint_and_steel', bamboo_sapling: 'bamboo',
  kelp_plant: 'kelp', moving_piston: 'piston' };

const kindOf = (entity) => (entity.type === 'player' ? 'player' : entity.name);

module.exports = { Statistics };

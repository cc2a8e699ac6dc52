'use strict';
/**
 * Counters of an agent's episode, from the events of its server.
 *
 * The server's mechanics emit 'gamut:hurt' {victim, amount, cause, by}, 'gamut:death' {victim,
 * cause, by}, 'gamut:mined', 'gamut:placed', 'gamut:picked' and 'gamut:crafted' {player, count}.
 */

const FARTHEST_STEP = 8; // blocks per tick; more is a teleport, not a walk

/** Returns a new agent's counts, all zero. */
const zero = () => ({
  deaths: 0, kills: 0, target_damage: 0, target_deaths: 0, damage_dealt: 0, damage_taken: 0,
  blocks_mined: 0, blocks_placed: 0, items_picked: 0, items_crafted: 0, distance: 0,
  code_errors: 0
});

class Counters {
  /** @param {object} world whose agents are counted; `world.agents` may change */
  constructor(world) {
    this.world = world;
    const { serv } = world;
    serv.on('gamut:hurt', (event) => this.hurt(event));
    serv.on('gamut:death', (event) => this.death(event));
    const counts = { mined: 'blocks_mined', placed: 'blocks_placed', picked: 'items_picked',
      crafted: 'items_crafted' };
    for (const [event, key] of Object.entries(counts)) {
      serv.on(`gamut:${event}`, ({ player, count }) => this.add(player, key, count ?? 1));
    }
  }

  agentOf(entity) {
    if (entity === null || entity === undefined) return undefined;
    return this.world.agents.find((agent) => agent !== null && agent.player === entity);
  }

  add(player, key, amount) {
    const agent = this.agentOf(player);
    if (agent !== undefined) agent.counts[key] += amount;
  }

  hurt({ victim, amount, by }) {
    this.add(victim, 'damage_taken', amount);
    if (by !== victim) this.add(by, 'damage_dealt', amount);
    if (victim.gamutTarget) this.forAll('target_damage', amount);
  }

  death({ victim, by }) {
    this.add(victim, 'deaths', 1);
    if (victim.type === 'mob') this.add(by, 'kills', 1);
    if (victim.gamutTarget && !victim.gamutDead) {
      victim.gamutDead = true;
      this.forAll('target_deaths', 1);
    }
    const agent = this.agentOf(victim);
    if (agent !== undefined) agent.died();
  }

  forAll(key, amount) {
    for (const agent of this.world.agents) if (agent !== null) agent.counts[key] += amount;
  }
}

/** Returns the distance walked between two places on the ground; 0 for a teleport. */
function walked(from, to) {
  const way = Math.hypot(to.x - from.x, to.z - from.z);
  return way <= FARTHEST_STEP ? way : 0;
}

module.exports = { Counters, zero, walked };

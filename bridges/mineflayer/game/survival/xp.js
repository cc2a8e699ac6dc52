'use strict';

/**
 * Experience: points go directly to the player who earned them (there are no orbs), levels as in
 * the game (Minecraft Wiki, "Experience").
 *
 * On players: `addXp(points)`, `setXpPoints(points)`, `setXpLevel(level)`, `stats.xp` = {points, level, progress}.
 */

const name = 'xp';

/** Returns the points from a level to the next. */
function need(level) {
  if (level >= 30) return 112 + (level - 30) * 9;
  if (level >= 15) return 37 + (level - 15) * 5;
  return 7 + level * 2;
}

/** Returns the points of a level without progress. */
function pointsOf(level) {
  let points = 0;
  for (let below = 0; below < level; below++) points += need(below);
  return points;
}

/** Returns `{points, level, progress}` for a total of points, progress in [0, 1). */
function describe(points) {
  let level = 0;
  let rest = points;
  while (rest >= need(level)) rest -= need(level++);
  return { points, level, progress: rest / need(level) };
}

function show(player) {
  const { points, level, progress } = player.experience;
  player._client.write('experience', { experienceBar: progress, level, totalExperience: points });
}

function player(player) {
  player.experience = describe(0);
  player.setXpPoints = (points) => {
    player.experience = describe(Math.max(0, Math.floor(points)));
    player.xp = player.experience.points;
    show(player);
  };
  player.addXp = (points) => {
    if (points > 0) player.setXpPoints(player.experience.points + points);
  };
  /** Sets the level; the progress to the next stays. */
  player.setXpLevel = (level) => {
    const at = Math.max(0, level);
    player.setXpPoints(pointsOf(at) + player.experience.progress * need(at));
  };
  player.setXp = (points) => player.setXpPoints(points || 0);
}

function savePlayer(player) {
  return { points: player.experience.points };
}

function loadPlayer(player, serv, data) {
  player.setXpPoints(data ? data.points : 0);
}

module.exports = { name, player, savePlayer, loadPlayer, describe };

'use strict';
/** The surroundings of an agent for the ray-caster, from its first frame on. */
const { Display } = require('./observe/display');
const { SceneFeed } = require('./observe/scene');

/**
 * Returns the changes around an agent since its last frame; everything, the first time. With
 * `config.rgb.hud` also what lies over its picture.
 */
function sceneOf(agent) {
  agent.scene ??= new SceneFeed(agent.bot);
  const scene = agent.scene.update();
  if (!agent.config.rgb.hud) return scene;
  agent.display ??= new Display(agent);
  return { ...scene, display: agent.display.look() };
}

module.exports = { sceneOf };

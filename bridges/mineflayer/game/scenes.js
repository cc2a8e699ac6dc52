'use strict';
/** The surroundings of an agent for the ray-caster, from its first frame on. */
const { SceneFeed } = require('./observe/scene');

/** Returns the changes around an agent since its last frame, everything the first time, and its display. */
function sceneOf(agent) {
  agent.scene ??= new SceneFeed(agent.bot);
  const scene = agent.scene.update();
  return agent.display === null ? scene : { ...scene, display: agent.display.look() };
}

module.exports = { sceneOf };

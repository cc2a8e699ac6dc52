'use strict';
/** The surroundings of an agent for the ray-caster, from its first frame on. */
const { SceneFeed } = require('./observe/scene');

/** Returns the changes around an agent since its last frame; everything, the first time. */
function sceneOf(agent) {
  agent.scene ??= new SceneFeed(agent.bot);
  return agent.scene.update();
}

module.exports = { sceneOf };

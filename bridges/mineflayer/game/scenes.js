'use strict';
/** What the ray-caster needs of an agent's surroundings, from its first frame on. */
const { SceneFeed } = require('./observe/scene');

/** Returns what has changed around an agent since its last frame; everything, the first time. */
function sceneOf(agent) {
  agent.scene ??= new SceneFeed(agent.bot);
  return agent.scene.update();
}

module.exports = { sceneOf };

'use strict';
/** The views of agents: a scene for each, one camera and one screen for all of them. */
const THREE = require('three');
const { blocksOf } = require('./blocks');
const { Bodies } = require('./bodies');
const { hourOf } = require('./hour');
const { Screen } = require('./screen');
const { Meshes, Terrain } = require('./terrain');
const { textureOf } = require('./textures');
const { getVersion } = require('prismarine-viewer/viewer/lib/version');

/** Vertical field of view in degrees, the same as the ray-caster's. */
const FIELD_OF_VIEW = 70;
const NEAR = 0.05;
/** prismarine-viewer's lights by day. */
const AMBIENT = 0.8;
const DIRECTIONAL = 0.5;
const SUN = [1, 1, 0.5];
/**
 * Distance in blocks at which all is haze: the eye is never closer to the sides of the box; see
 * game/observe/scene.js.
 */
const SEEN = 34.5;
const SEEN_IN_WATER = 16;
const WATER = /^water$|seagrass|kelp|bubble_column/;

class View {
  /**
   * @param {{version: string, width: number, height: number, table: object}} config `table` as of
   *   `sceneTable`; sizes in pixels
   * @throws {Error} where nothing can be drawn, or the version has no pictures
   */
  constructor({ version, width, height, table }) {
    const known = getVersion(version);
    if (known === null) throw new Error(`prismarine-viewer has no pictures of Minecraft ${version}`);
    this.screen = new Screen(width, height);
    const states = require(`prismarine-viewer/public/blocksStates/${known}.json`);
    const map = textureOf(`textures/${known}.png`);
    this.material = new THREE.MeshLambertMaterial({ map, vertexColors: true, transparent: true, alphaTest: 0.1 });
    this.meshes = new Meshes(blocksOf(version, table.appearances, states), table.biomes, states);
    this.bodies = new Bodies(table.entities, table.items);
    this.camera = new THREE.PerspectiveCamera(FIELD_OF_VIEW, width / height, NEAR, SEEN);
    this.camera.rotation.order = 'ZYX';
    this.sight = new THREE.Matrix4();
    this.frustum = new THREE.Frustum();
    this.terrains = new Map();
    this.furnish();
  }

  furnish() {
    this.scene = new THREE.Scene();
    this.scene.background = new THREE.Color();
    this.scene.fog = new THREE.Fog(0, 0, SEEN);
    this.ambient = new THREE.AmbientLight();
    this.sun = new THREE.DirectionalLight();
    this.sun.position.set(...SUN).normalize();
    this.scene.add(this.ambient, this.sun);
  }

  /**
   * Applies the changes around an agent, and returns its picture; see Screen.draw.
   *
   * @param {number} number of its scene; a new one begins with a box of blocks
   * @param {Array<object>} updates of `SceneFeed.update`, one at least, the newest last
   */
  draw(number, updates) {
    const terrain = this.terrains.get(number) ?? this.begin(number, updates[0]);
    for (const { box, changes } of updates) {
      if (box) terrain.fill(box);
      terrain.change(numbers(Int32Array, changes));
    }
    const update = updates.at(-1);
    this.aim(update);
    terrain.update(this.frustum);
    this.light(update, WATER.test(terrain.nameAt(update.eye)));
    this.scene.add(terrain.group);
    this.bodies.show(numbers(Float32Array, update.bodies), update.eye, this.scene);
    try {
      return this.screen.draw(this.scene, this.camera);
    } finally {
      this.bodies.clear(this.scene);
      this.scene.remove(terrain.group);
    }
  }

  begin(number, update) {
    if (!update?.box) throw new Error(`scene ${number} begins without a box of blocks`);
    const terrain = new Terrain(this.meshes, this.material);
    this.terrains.set(number, terrain);
    return terrain;
  }

  aim({ eye, yaw, pitch }) {
    this.camera.position.set(...eye);
    this.camera.rotation.set(pitch, yaw, 0);
    this.camera.updateMatrixWorld();
    this.sight.multiplyMatrices(this.camera.projectionMatrix, this.camera.matrixWorldInverse);
    this.frustum.setFromProjectionMatrix(this.sight);
  }

  light(update, wet) {
    const { sky, shade } = hourOf(update, wet);
    this.scene.background.setRGB(...sky);
    this.scene.fog.color.setRGB(...sky);
    this.scene.fog.far = wet ? SEEN_IN_WATER : SEEN;
    this.scene.fog.near = wet ? 0 : SEEN * (0.7 - 0.35 * update.rain);
    this.ambient.color.setRGB(...shade).multiplyScalar(AMBIENT);
    this.sun.color.setRGB(...shade).multiplyScalar(DIRECTIONAL);
  }

  /** Discards a scene that is no longer needed. */
  forget(number) {
    this.terrains.get(number)?.close();
    this.terrains.delete(number);
  }
}

/** Returns numbers from the bytes of a message, at any alignment. */
function numbers(Kind, bytes) {
  return new Kind(Uint8Array.from(bytes).buffer);
}

module.exports = { View };

'use strict';
/** Creatures, players and items on the ground, with prismarine-viewer's models. */
const THREE = require('three');

globalThis.THREE = THREE; // the models' code expects it there
const utils = require('prismarine-viewer/viewer/lib/utils');
const { imageOf, stack, textureOf } = require('./textures');

// Entity.js takes this function when it is loaded. The package's own needs another native library,
// and loads textures asynchronously, so that a picture would depend on when it is drawn.
utils.loadTexture = (name, use) => {
  const texture = textureOf(name);
  if (texture === undefined) return;
  use(texture);
  // It requests repetition, which needs sizes that are powers of two and is not used here.
  texture.wrapS = THREE.ClampToEdgeWrapping;
  texture.wrapT = THREE.ClampToEdgeWrapping;
};
const Entity = require('prismarine-viewer/viewer/lib/entity/Entity');
const models = require('prismarine-viewer/viewer/lib/entity/entities.json');

const ROW = 8;
const YOUNG = 2;
const SHORN = 16;
const ITEM_SIZE = 0.35;
/** The only version for which the package has models of creatures. */
const VERSION = '1.16.4';
/** Colours of wool by number, from the Minecraft Wiki (Dye). */
const WOOL = [0xf9fffe, 0xf9801d, 0xc74ebd, 0x3ab3da, 0xfed83d, 0x80c71f, 0xf38baa, 0x474f52, 0x9d9d97, 0x169c9c,
  0x8932b8, 0x3c44aa, 0x835432, 0x5e7c16, 0xb02e26, 0x1d1d21];
const PLAIN = 0x9a9a9a;

const fileOf = (texture) => `${texture.replace('textures', `textures/${VERSION}`)}.png`;

/** Fixes the models once: they are Bedrock's, the pictures are Java's, with other sizes and names. */
function mend() {
  const sheep = 'textures/entity/sheep';
  stack(fileOf(`${sheep}/both`), fileOf(`${sheep}/sheep`), fileOf(`${sheep}/sheep_fur`));
  models.sheep.textures = { default: `${sheep}/both`, sheared: `${sheep}/both` };
  for (const model of Object.values(models)) {
    const there = Object.values(model.textures).find((name) => imageOf(fileOf(name)) !== undefined);
    model.textures.default ??= there;
    for (const [name, geometry] of Object.entries(model.geometry)) {
      const bones = new Set(geometry.bones.map((bone) => bone.name));
      for (const bone of geometry.bones) {
        if (!bones.has(bone.parent)) delete bone.parent;
        for (const cube of bone.cubes ?? []) if (!Array.isArray(cube.uv)) cube.uv = [0, 0];
      }
      const image = model.textures[name] && imageOf(fileOf(model.textures[name]));
      if (!image) continue;
      geometry.texturewidth ??= 64;
      geometry.textureheight = image.height * geometry.texturewidth / image.width;
    }
  }
}
mend();

/** Bodies that are lent to a scene while it is drawn; scenes are drawn one at a time. */
class Bodies {
  /**
   * @param {Array} kinds [name, width, height] by number
   * @param {Array<string>} items names by number
   */
  constructor(kinds, items) {
    this.kinds = kinds;
    this.items = items;
    this.idle = new Map();
    this.lent = [];
  }

  /** Adds bodies to a scene: rows of kind, x, y, z from the eye, yaw, head's yaw, variant, flags. */
  show(rows, eye, scene) {
    for (let at = 0; at + ROW <= rows.length; at += ROW) {
      const [kind, x, y, z, yaw, , variant, flags] = rows.subarray(at, at + ROW);
      const body = this.borrow(kind, variant);
      body.position.set(eye[0] + x, eye[1] + y, eye[2] + z);
      body.rotation.y = yaw;
      body.scale.setScalar(flags & YOUNG ? 0.5 : 1);
      body.userData.order = `body ${String(at / ROW).padStart(3, '0')}`;
      body.traverse((part) => { part.userData.order = `${body.userData.order} ${part.userData.part}`; });
      scene.add(body);
    }
  }

  /** Removes the bodies from the scene. */
  clear(scene) {
    for (const { key, body } of this.lent) {
      scene.remove(body);
      if (!this.idle.has(key)) this.idle.set(key, []);
      this.idle.get(key).push(body);
    }
    this.lent = [];
  }

  borrow(kind, variant) {
    const name = this.kinds[kind]?.[0];
    const key = name === 'item' || name === 'sheep' ? `${name} ${variant}` : `${kind}`;
    const body = this.idle.get(key)?.pop() ?? this.make(kind, name, variant);
    this.lent.push({ key, body });
    return body;
  }

  make(kind, name, variant) {
    const body = new THREE.Group();
    body.add(name === 'item' ? itemOf(this.items[variant]) : creatureOf(name, variant) ?? boxOf(this.kinds[kind]));
    let parts = 0;
    body.traverse((part) => { part.userData.part = parts++; });
    return body;
  }
}

function creatureOf(name, variant) {
  if (models[name] === undefined) return null;
  const { mesh } = new Entity(VERSION, name, null);
  if (name === 'sheep') {
    const wool = mesh.children[Object.keys(models.sheep.geometry).indexOf('default')];
    wool.material.color.set(WOOL[variant % SHORN]);
    if (variant >= SHORN) mesh.remove(wool);
  }
  mesh.traverse((part) => { part.frustumCulled = false; }); // skinned meshes have no bounds
  return mesh.children.length > 0 ? mesh : null;
}

/** An item on the ground: its picture, always facing the viewer. */
function itemOf(name) {
  const map = ['items', 'blocks'].map((folder) => textureOf(`textures/${VERSION}/${folder}/${name}.png`)).find(Boolean);
  if (map === undefined) return boxOf(['item', ITEM_SIZE, ITEM_SIZE]);
  const sprite = new THREE.Sprite(new THREE.SpriteMaterial({ map, alphaTest: 0.1, fog: true }));
  sprite.scale.setScalar(ITEM_SIZE);
  sprite.position.y = ITEM_SIZE / 2;
  return sprite;
}

function boxOf(kind) {
  const [, width, height] = kind ?? ['', 0.6, 0.6];
  const geometry = new THREE.BoxGeometry(width, height, width);
  geometry.translate(0, height / 2, 0);
  return new THREE.Mesh(geometry, new THREE.MeshLambertMaterial({ color: PLAIN, transparent: true }));
}

module.exports = { Bodies };

'use strict';
/**
 * Pictures that are part of prismarine-viewer, as textures. They are Mojang's: the package's
 * licence is for its code. None is in this repository.
 */
const fs = require('node:fs');
const path = require('node:path');
const { PNG } = require('pngjs');
const THREE = require('three');

const PUBLIC = path.join(path.dirname(require.resolve('prismarine-viewer/package.json')), 'public');

const images = new Map();
const textures = new Map();

/**
 * Returns {width, height, data} of a picture, RGBA; undefined if the package has none.
 *
 * @param {string} name path below the package's folder of public files, with .png
 */
function imageOf(name) {
  if (!images.has(name)) {
    const file = path.join(PUBLIC, name);
    images.set(name, fs.existsSync(file) ? PNG.sync.read(fs.readFileSync(file)) : undefined);
  }
  return images.get(name);
}

/** Combines two pictures, one below the other, under a name of its own. */
function stack(name, upper, lower) {
  const [one, other] = [imageOf(upper), imageOf(lower)];
  images.set(name, {
    width: one.width,
    height: one.height + other.height,
    data: Buffer.concat([one.data, other.data]),
  });
}

/** Returns the texture of a picture, unfiltered, its first row at v = 0; undefined if there is none. */
function textureOf(name) {
  if (!textures.has(name)) {
    const image = imageOf(name);
    let texture;
    if (image !== undefined) {
      texture = new THREE.DataTexture(new Uint8Array(image.data), image.width, image.height, THREE.RGBAFormat);
      texture.magFilter = THREE.NearestFilter;
      texture.minFilter = THREE.NearestFilter;
      texture.needsUpdate = true;
    }
    textures.set(name, texture);
  }
  return textures.get(name);
}

module.exports = { imageOf, stack, textureOf };

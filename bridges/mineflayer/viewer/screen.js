'use strict';
/** Pictures of three.js scenes, drawn by headless-gl into memory. */
const createContext = require('gl');
const THREE = require('three');

const RGBA = 4;
const RGB = 3;

class Screen {
  /**
   * @param {number} width pixels
   * @param {number} height pixels
   * @throws {Error} where there is no OpenGL
   */
  constructor(width, height) {
    this.gl = createContext(width, height, { antialias: false, preserveDrawingBuffer: true });
    if (this.gl === null) {
      throw new Error('headless-gl found no OpenGL: install Mesa (Debian: libgl1-mesa-dri) and Xvfb');
    }
    const canvas = { width, height, style: {}, addEventListener() {}, removeEventListener() {} };
    this.gl.canvas = canvas; // three.js asks it for its size
    this.renderer = new THREE.WebGLRenderer({ canvas, context: this.gl });
    this.renderer.setSize(width, height, false);
    this.renderer.setTransparentSort(farFirst);
    this.read = new Uint8Array(width * height * RGBA);
    this.width = width;
    this.height = height;
  }

  /** Returns the view of a camera: a Buffer of height x width x 3 bytes, the top row first. */
  draw(scene, camera) {
    const { gl, width, height, read } = this;
    this.renderer.render(scene, camera);
    gl.readPixels(0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, read);
    const picture = Buffer.allocUnsafe(width * height * RGB);
    let out = 0;
    for (let row = height - 1; row >= 0; row--) {
      for (let at = row * width * RGBA, end = at + width * RGBA; at < end; at += RGBA) {
        picture[out++] = read[at];
        picture[out++] = read[at + 1];
        picture[out++] = read[at + 2];
      }
    }
    return picture;
  }

  /** Returns a line that says which OpenGL is used. */
  describe() {
    const { gl } = this;
    return [gl.VENDOR, gl.RENDERER, gl.VERSION].map((name) => gl.getParameter(name)).join(', ');
  }
}

/**
 * The drawing order: by distance, then by position, so that it does not depend on earlier pictures;
 * three.js would use the order in which objects were made.
 */
function farFirst(one, other) {
  if (one.z !== other.z) return other.z - one.z;
  return orderOf(one) < orderOf(other) ? -1 : 1;
}

function orderOf(item) {
  return item.object.userData.order ?? '';
}

module.exports = { Screen };

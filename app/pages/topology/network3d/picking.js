// What lies under the pointer: nodes and pieces of lines are projected; of those close by the nearest to the eye wins.

/** @import { Place, What } from "./types.d.ts" */
/** @import { Camera } from "./camera.js" */
/** @import { Scene } from "./scene.js" */

import { FIELD } from "./camera.js";

const REACH = 4; // px beside a line or beyond a node's rim
const BEFORE = 1.5; // by which a line has to be nearer than a node that it crosses

export class Picker {
  constructor() {
    /** Set by `project`; until then nothing lies under a pointer. @type {{ scene: Scene, camera: Camera } | null} */
    this.seen = null;
    this.width = this.height = 0;
    this.m = new Float32Array(16);
    this.x = this.y = this.w = new Float32Array(0);
    /** @type {Float32Array | null} */
    this.ends = null;
  }

  get scene() {
    return this.projected.scene;
  }

  get camera() {
    return this.projected.camera;
  }

  get projected() {
    if (!this.seen) throw new Error("asked of a picture before it was projected");
    return this.seen;
  }

  /**
   * Places on the screen (px) and distances from the eye of all nodes.
   * @param {Scene} scene
   * @param {Camera} camera
   * @param {number} width
   * @param {number} height
   */
  project(scene, camera, width, height) {
    Object.assign(this, { width, height });
    this.seen = { scene, camera };
    this.m = camera.matrix();
    this.ends = null;
    const n = scene.nodes,
      at = scene.at,
      m = this.m;
    if (this.x.length !== n) [this.x, this.y, this.w] = [0, 1, 2].map(() => new Float32Array(n));
    for (let i = 0; i < n; i++) {
      const px = at[3 * i],
        py = at[3 * i + 1],
        pz = at[3 * i + 2];
      const w = m[3] * px + m[7] * py + m[11] * pz + m[15];
      this.w[i] = w;
      this.x[i] = (0.5 + (0.5 * (m[0] * px + m[4] * py + m[8] * pz + m[12])) / w) * width;
      this.y[i] = (0.5 - (0.5 * (m[1] * px + m[5] * py + m[9] * pz + m[13])) / w) * height;
    }
  }

  // Both ends of each piece: x, y, distance, x, y, distance.
  get lines() {
    if (this.ends) return this.ends;
    const { pieces } = this.scene,
      m = this.m;
    const ends = (this.ends = new Float32Array(pieces.length));
    for (let k = 0; k < pieces.length; k += 3) {
      const px = pieces[k],
        py = pieces[k + 1],
        pz = pieces[k + 2];
      const w = m[3] * px + m[7] * py + m[11] * pz + m[15];
      ends[k] = (0.5 + (0.5 * (m[0] * px + m[4] * py + m[8] * pz + m[12])) / w) * this.width;
      ends[k + 1] = (0.5 - (0.5 * (m[1] * px + m[5] * py + m[9] * pz + m[13])) / w) * this.height;
      ends[k + 2] = w;
    }
    return ends;
  }

  /** On the screen (px), and its distance from the eye. @param {Place} place */
  point(place) {
    const m = this.m,
      [px, py, pz] = place,
      w = m[3] * px + m[7] * py + m[11] * pz + m[15];
    return [
      (0.5 + (0.5 * (m[0] * px + m[4] * py + m[8] * pz + m[12])) / w) * this.width,
      (0.5 - (0.5 * (m[1] * px + m[5] * py + m[9] * pz + m[13])) / w) * this.height,
      w,
    ];
  }

  /** Half the size (px) of a node as it is drawn. @param {number} node */
  radius(node) {
    const glyph = node >= this.scene.chips ? 0.23 : 0.15;
    return Math.min(45, Math.max(1.2, (glyph * this.height) / (2 * FIELD * this.w[node])));
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {Set<string>} hidden kinds of links that are not there to be pointed at
   * @returns {What | null}
   */
  under(x, y, hidden) {
    /** @type {What | null} */
    let best = null;
    let near = Infinity;
    for (let i = 0; i < this.scene.nodes; i++) {
      if (this.w[i] < this.camera.near || this.w[i] >= near) continue;
      const dx = this.x[i] - x,
        dy = this.y[i] - y;
      if (Math.abs(dx) > 50 || Math.abs(dy) > 50 || Math.hypot(dx, dy) > this.radius(i) + REACH / 2) continue;
      near = this.w[i];
      best = { node: i };
    }
    return this.line(x, y, near, hidden) ?? best;
  }

  /** @param {number} x @param {number} y @param {number} nearest @param {Set<string>} hidden */
  line(x, y, nearest, hidden) {
    const { pieceLink, kind, kinds } = this.scene,
      shown = kinds.map((k) => !hidden.has(k.name)),
      ends = this.lines;
    /** @type {What | null} */
    let best = null;
    let near = nearest - BEFORE;
    for (let k = 0; k < pieceLink.length; k++) {
      const link = pieceLink[k];
      if (link < 0 || !shown[kind[link]]) continue;
      const ax = ends[6 * k],
        ay = ends[6 * k + 1],
        aw = ends[6 * k + 2];
      const bx = ends[6 * k + 3],
        by = ends[6 * k + 4],
        bw = ends[6 * k + 5];
      if (Math.min(aw, bw) < this.camera.near || Math.min(aw, bw) > near) continue;
      const dx = bx - ax,
        dy = by - ay;
      const t = Math.min(1, Math.max(0, ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy || 1)));
      if (Math.hypot(ax + t * dx - x, ay + t * dy - y) > REACH) continue;
      const w = aw + t * (bw - aw);
      if (w >= near) continue;
      near = w;
      best = { link };
    }
    return best;
  }
}

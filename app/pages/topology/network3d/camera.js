// Where one looks from: turned about a target by yaw and pitch. The third axis points up.

/** @import { Place } from "./types.d.ts" */

export const FIELD = Math.tan((28 * Math.PI) / 360);
const NEAREST = 0.15;
const FIRST = [
  [-62, 24],
  [-90, 52],
]; // yaw and pitch of the first view, of bodies and of flat ones

export class Camera {
  constructor() {
    this.aspect = 1.8;
    this.flat = false;
    this.near = 0.05;
    this.yaw = this.pitch = 0;
    this.zoom = 1;
    this.target = [0, 0, 0];
    this.fitted = { distance: 10, radius: 5 };
    this.reset();
  }

  reset() {
    const [yaw, pitch] = FIRST[this.flat ? 1 : 0];
    Object.assign(this, { yaw, pitch, zoom: 1, target: [0, 0, 0] });
  }

  /**
   * Fits all places as they are seen from the first view, with `around` free about each.
   * @param {Float32Array} at
   * @param {number} around
   * @param {boolean} flat
   */
  fit(at, around, flat) {
    this.flat = flat;
    const kept = [this.yaw, this.pitch];
    [this.yaw, this.pitch] = FIRST[flat ? 1 : 0];
    const { right, up, back } = this.frame();
    let distance = 1,
      radius = 0;
    for (let i = 0; i < at.length; i += 3) {
      const place = [at[i], at[i + 1], at[i + 2]],
        depth = dot(place, back);
      distance = Math.max(
        distance,
        (Math.abs(dot(place, right)) + around) / (FIELD * this.aspect) + depth,
        (Math.abs(dot(place, up)) + around) / FIELD + depth,
      );
      radius = Math.max(radius, Math.hypot(...place));
    }
    [this.yaw, this.pitch] = kept;
    this.fitted = { distance: distance + around, radius: radius + around };
  }

  /** Pixels of one unit at the target, on a canvas so high. @param {number} height */
  pixels(height) {
    return height / (2 * FIELD * this.distance);
  }

  get distance() {
    return Math.max(this.fitted.distance / this.zoom, NEAREST);
  }

  frame() {
    const y = (this.yaw * Math.PI) / 180,
      p = (this.pitch * Math.PI) / 180;
    const back = [Math.cos(p) * Math.cos(y), Math.cos(p) * Math.sin(y), Math.sin(p)];
    const right = [-Math.sin(y), Math.cos(y), 0];
    return { back, right, up: cross(back, right) };
  }

  // Column-major matrix from the picture's space to clip space; w is the distance along the line of sight.
  matrix() {
    const { back, right, up } = this.frame(),
      d = this.distance,
      t = this.target;
    const near = Math.max(0.05, (d - 2 * this.fitted.radius) * 0.5),
      far = d + 4 * this.fitted.radius + 10;
    const x = 1 / (FIELD * this.aspect),
      y = 1 / FIELD;
    const a = (far + near) / (far - near),
      b = (-2 * far * near) / (far - near);
    const depth = d + dot(t, back);
    this.near = near;
    const m = new Float32Array(16);
    for (let i = 0; i < 3; i++) {
      m[4 * i] = right[i] * x;
      m[4 * i + 1] = up[i] * y;
      m[4 * i + 2] = -back[i] * a;
      m[4 * i + 3] = -back[i];
    }
    m[12] = -dot(t, right) * x;
    m[13] = -dot(t, up) * y;
    m[14] = depth * a + b;
    m[15] = depth;
    return m;
  }

  /** By degrees. @param {number} yaw @param {number} pitch */
  turn(yaw, pitch) {
    this.yaw = ((this.yaw + yaw + 540) % 360) - 180;
    this.pitch = Math.min(89, Math.max(-89, this.pitch + pitch));
  }

  /** @param {number} factor */
  zoomBy(factor) {
    this.zoom = Math.min(400, Math.max(0.3, this.zoom * factor));
  }

  /** By parts of the picture's height. @param {number} x @param {number} y */
  pan(x, y) {
    const { right, up } = this.frame(),
      size = 2 * FIELD * this.distance;
    this.target = this.target.map((v, i) => v - size * (x * right[i] + y * up[i]));
  }

  get text() {
    const place = this.target.some((v) => Math.abs(v) > 0.05) ? this.target.map((v) => v.toFixed(1)) : [];
    return [Math.round(this.yaw), Math.round(this.pitch), +this.zoom.toFixed(2), ...place].join(",");
  }

  /** @param {string | null} text as `text` gave it; anything else changes nothing */
  read(text) {
    const numbers = (text || "").split(",").map(Number);
    if (numbers.length < 3 || !numbers.every(Number.isFinite)) return;
    this.yaw = this.pitch = 0;
    this.turn(numbers[0], numbers[1]);
    this.zoom = 1;
    this.zoomBy(numbers[2]);
    if (numbers.length === 6) this.target = numbers.slice(3);
  }
}

/** @type {(a: Place, b: Place) => number} */
export const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
/** @type {(a: Place, b: Place) => Place} */
export const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];

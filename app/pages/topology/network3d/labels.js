// Everything over the picture that is text or a ring: axes, numbers along the route, what is hovered and chosen.

/** @import { Look } from "./types.d.ts" */
/** @import { Camera } from "./camera.js" */
/** @import { Picker } from "./picking.js" */
/** @import { Scene } from "./scene.js" */
/** @import { View } from "./view.js" */

import { dot, FIELD } from "./camera.js";
import { flatContext } from "./elements.js";

export class Labels {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.context = flatContext(canvas);
  }

  /**
   * @param {View} view
   * @param {number} width
   * @param {number} height
   * @param {number} ratio
   */
  draw(view, width, height, ratio) {
    const { camera, picker, hover, chosen, start, moving, share } = view,
      { scene, look } = view.drawn;
    const c = this.context;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    c.font = "600 12px sans-serif";
    this.triad(scene, camera, look, height);
    for (const [what, wide] of /** @type {const} */ ([
      [hover, 1.5],
      [chosen, 2.5],
    ])) {
      if (what?.node !== undefined) this.ring(picker.point(scene.place(what.node)), picker, look, wide);
    }
    scene.shown.route.forEach((node, hop) => this.tag(picker.point(scene.place(node)), String(hop), look));
    const part = Math.round(100 * share);
    if (moving && part < 100) this.note(`${part} % of the lines are drawn while it turns`, look, width, height);
    if (start !== null && !scene.shown.route.length) this.tag(picker.point(scene.place(start)), "from", look);
  }

  /** @param {Scene} scene @param {Camera} camera @param {Look} look @param {number} height */
  triad(scene, camera, look, height) {
    const c = this.context,
      { right, up } = camera.frame(),
      x = 58,
      y = height - 52;
    c.lineWidth = 1.5;
    c.textAlign = "center";
    c.textBaseline = "middle";
    for (const [name, way] of scene.directions) {
      const dx = dot(way, right),
        dy = -dot(way, up);
      c.strokeStyle = c.fillStyle = look.text;
      c.beginPath();
      c.moveTo(x, y);
      c.lineTo(x + 26 * dx, y + 26 * dy);
      c.stroke();
      if (Math.hypot(dx, dy) < 0.3) continue;
      c.fillText(name, x + 26 * dx + 16 * limited(2 * dx), y + 26 * dy + 10 * limited(2 * dy));
    }
  }

  /** @param {string} text @param {Look} look @param {number} width @param {number} height */
  note(text, look, width, height) {
    const c = this.context;
    c.fillStyle = look.text;
    c.textAlign = "right";
    c.fillText(text, width - 14, height - 16);
  }

  /** @param {number[]} point @param {Picker} picker @param {Look} look @param {number} wide */
  ring([x, y, w], picker, look, wide) {
    if (w < picker.camera.near) return;
    const c = this.context,
      radius = Math.min(48, Math.max(5, (0.2 * picker.height) / (2 * FIELD * w)) + 2);
    c.strokeStyle = look.chosenText;
    c.lineWidth = wide;
    c.beginPath();
    c.arc(x, y, radius, 0, 2 * Math.PI);
    c.stroke();
  }

  /** @param {number[]} point @param {string} text @param {Look} look */
  tag([x, y, w], text, look) {
    if (w < 0) return;
    const c = this.context,
      wide = c.measureText(text).width + 9;
    c.fillStyle = look.chosenText;
    c.beginPath();
    c.roundRect(x - wide / 2, y - 24, wide, 16, 8);
    c.fill();
    c.fillStyle = look.backText;
    c.textAlign = "center";
    c.textBaseline = "middle";
    c.fillText(text, x, y - 15.5);
  }
}

/** @param {number} v */
const limited = (v) => Math.max(-1, Math.min(1, v));

// The same scene without WebGL: a plain 2D canvas, lines by kind, nodes as dots. Slower, and nothing hides what is
// behind it.

/** @import { Frame, Look, Marked, Painter, Style } from "./types.d.ts" */
/** @import { Scene } from "./scene.js" */

import { flatContext } from "./elements.js";
import { cssColour } from "./look.js";
import { Picker } from "./picking.js";

/** Colour, width (px) and dash of a line. @typedef {[string, number, number]} Pen */

/** @implements {Painter} */
export class FlatPainter {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.context = flatContext(canvas);
    this.lost = false;
    this.took = 0;
    this.picker = new Picker();
    /** @type {Marked[]} */
    this.marked = [];
    /** @type {Scene | null} */
    this.drawn = null;
    this.bytes = this.glyph = new Uint8Array(0);
  }

  async finished() {
    return this.took;
  }

  /** @param {Scene} scene */
  scene(scene) {
    this.drawn = scene;
  }

  /** @param {Style} style */
  style({ style, glyph }) {
    [this.bytes, this.glyph] = [style, glyph];
  }

  /** @param {Marked[]} marked */
  mark(marked) {
    this.marked = marked;
  }

  /** @param {Frame} frame */
  draw({ camera, look, ratio, dim, heated, moving, share }) {
    const c = this.context,
      { width, height } = c.canvas,
      scene = this.drawn,
      picker = this.picker;
    const began = performance.now();
    if (!scene) return;
    picker.project(scene, camera, width, height);
    c.fillStyle = look.backText;
    c.globalAlpha = 1;
    c.fillRect(0, 0, width, height);
    /** Colour, width and dash -> path. @type {Map<string, [Pen, Path2D]>} */
    const lines = new Map();
    const ends = picker.lines;
    const count = Math.ceil(scene.pieceLink.length * (moving ? share : 1));
    for (let k = 0; k < count; k++) {
      if (Math.min(ends[6 * k + 2], ends[6 * k + 5]) < camera.near) continue;
      const pen = this.pen(k, look, heated);
      if (!pen) continue;
      const name = pen.join("|");
      let path = lines.get(name)?.[1];
      if (!path) lines.set(name, [pen, (path = new Path2D())]);
      path.moveTo(ends[6 * k], ends[6 * k + 1]);
      path.lineTo(ends[6 * k + 3], ends[6 * k + 4]);
    }
    c.globalAlpha = 0.6 * (1 - dim);
    for (const [pen, path] of lines.values()) this.stroke(path, ...pen, ratio);
    c.globalAlpha = 1;
    for (let i = 0; i < scene.nodes; i++) if (picker.w[i] > camera.near) this.node(i, look, ratio);
    const path = new Path2D();
    for (const [a, b] of this.marked) {
      const [p, q] = [picker.point(a), picker.point(b)];
      path.moveTo(p[0], p[1]);
      path.lineTo(q[0], q[1]);
    }
    this.stroke(path, look.chosenText, look.chosenWidth, 0, ratio);
    this.took = performance.now() - began;
  }

  /** How piece k is drawn; null: it is hidden. @param {number} k @param {Look} look @param {boolean} heated @returns {Pen | null} */
  pen(k, look, heated) {
    const [kind, heat, lost] = this.bytes.subarray(4 * k, 4 * k + 3);
    if (lost) return [look.failedText, 1.7, 1];
    const [r, g, b, width] = look.kinds.subarray(4 * kind, 4 * kind + 4);
    if (!width) return null;
    if (heated && heat < 255) return [look.rampText[Math.round((heat / 254) * 5)], 1 + heat / 180, 0];
    return [cssColour([r, g, b]), width, look.dashes[kind]];
  }

  /** @param {Path2D} path @param {string} colour @param {number} width @param {number} dash @param {number} ratio */
  stroke(path, colour, width, dash, ratio) {
    const c = this.context;
    c.strokeStyle = colour;
    c.lineWidth = width * ratio;
    c.setLineDash([[], [6, 4], [2, 2]][dash]);
    c.stroke(path);
    c.setLineDash([]);
  }

  /** @param {number} i @param {Look} look @param {number} ratio */
  node(i, look, ratio) {
    const c = this.context,
      { x: xs, y: ys } = this.picker,
      x = xs[i],
      y = ys[i];
    const r = Math.max(1.2 * ratio, this.picker.radius(i));
    if (this.glyph[i] === 2) {
      const path = new Path2D(`M${x - 4} ${y - 4}L${x + 4} ${y + 4}M${x - 4} ${y + 4}L${x + 4} ${y - 4}`);
      return this.stroke(path, look.failedText, 2.5, 0, ratio);
    }
    c.fillStyle = cssColour(this.glyph[i] ? look.packetSwitch : look.chip);
    if (this.glyph[i]) return c.fillRect(x - r, y - r, 2 * r, 2 * r);
    c.beginPath();
    c.arc(x, y, r, 0, 2 * Math.PI);
    c.fill();
  }
}

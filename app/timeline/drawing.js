// Draws marks, names, arrows and the ruler on a canvas.

/** @import { Described, Held, Looked, Scene } from "./types.d.ts" */

import { exactly, step } from "./clock.js";
import { RULER } from "./layout.js";
import { reaching, Strips } from "./strips.js";

export const LABELS = 210;
const FONT = "12px ",
  BAR = 15,
  NAMED_PX = 34,
  TICK_PX = 110,
  MOST_TICKS = 500,
  HEAD_PX = 6,
  FLAG = 5,
  FAR_PX = 1e5; // canvases lose their way beyond

export class Drawing {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { willReadFrequently: true })); // pixels are put
    this.strips = new Strips();
    this.width = this.height = this.ratio = this.from = 0;
    this.scale = 1;
    this.ink = this.paper = "#000000";
  }

  /**
   * @param {number} width
   * @param {number} height
   */
  size(width, height) {
    const ratio = devicePixelRatio || 1;
    if (width === this.width && height === this.height && ratio === this.ratio) return;
    [this.width, this.height, this.ratio] = [width, height, ratio];
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
  }

  /** @param {Scene} scene */
  draw(scene) {
    const pen = this.pen,
      style = getComputedStyle(this.canvas);
    this.ink = style.color;
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    pen.font = FONT + style.fontFamily;
    pen.textBaseline = "middle";
    this.scale = (this.width - LABELS) / (scene.to - scene.from);
    this.from = scene.from;
    this.zone(RULER, () => this.marks(scene, true));
    this.zone(scene.under, () => this.marks(scene, false));
    this.ruler(scene);
    this.zone(0, () => this.flags(scene));
    this.zone(RULER, () => {
      this.band(scene);
      this.arrows(scene);
    });
  }

  /**
   * What is drawn reaches no higher than here.
   * @param {number} top
   * @param {() => void} what
   */
  zone(top, what) {
    const pen = this.pen;
    pen.save();
    pen.beginPath();
    pen.rect(LABELS, top, this.width - LABELS, this.height - top);
    pen.clip();
    what();
    pen.restore();
  }

  /**
   * @param {Scene} scene
   * @param {boolean} pinned
   */
  marks({ of, lines, held, chosen, looked, under }, pinned) {
    const pen = this.pen,
      own = held ? lines.filter((line) => line.pinned === pinned) : [];
    if (pinned && lines.some((line) => line.pinned)) {
      pen.fillStyle = this.ink;
      pen.globalAlpha = 0.35;
      pen.fillRect(LABELS, under - 2, this.width, 1);
      pen.globalAlpha = 1;
    }
    if (!held || !own.length) return;
    const width = Math.max(Math.round((this.width - LABELS) * this.ratio), 1),
      [base, unit] = this.placed(held),
      [left, least] = [Math.round(LABELS * this.ratio), Math.round((pinned ? RULER : under) * this.ratio)];
    this.strips.begin(of, width, Math.round(BAR * this.ratio));
    for (const line of own) {
      const at = held.place.get(line.row);
      if (at === undefined) continue;
      this.strips.fill(held, at, base * this.ratio, unit * this.ratio, looked);
      this.strips.put(pen, left, Math.round(line.top * this.ratio), least);
    }
    for (const line of own) {
      const at = held.place.get(line.row);
      if (at !== undefined) this.words(of, held, at, line.top, chosen, looked);
    }
  }

  /** Where a tile begins, in pixels from the labels, and how wide its unit is. @param {Held} held */
  placed({ tile }) {
    return [(tile.start - this.from) * this.scale, tile.unit * this.scale];
  }

  /**
   * Names of a row's wide events, and a frame around the chosen one.
   * @param {Described} of
   * @param {Held} held
   * @param {number} at
   * @param {number} top
   * @param {number} chosen
   * @param {Looked} looked
   */
  words(of, held, at, top, chosen, looked) {
    const { tile, first } = held,
      [base, unit] = this.placed(held),
      wide = this.width - LABELS;
    for (let i = reaching(held, at, -base / unit); i < first[at + 1]; i++) {
      const begin = base + tile.begin[i] * unit,
        end = begin + tile.width[i] * unit;
      if (begin > wide) break;
      if (end < 0) continue;
      const x = LABELS + Math.max(begin, 0),
        w = LABELS + Math.min(end, wide) - x;
      const dim = looked.any && !looked.names.has(tile.name[i]) && !looked.events.has(tile.event[i]),
        colour = of.looks[tile.code[i]]?.colour ?? "#888888";
      if (w > NAMED_PX && tile.count[i] <= 1)
        this.name(of.names[tile.name[i]] ?? "", x, w, top, dim ? this.ink : bright(colour) ? "#000000" : "#ffffff");
      if (tile.event[i] !== chosen) continue;
      this.pen.strokeStyle = this.ink;
      this.pen.lineWidth = 2;
      this.pen.strokeRect(x, top, Math.max(w, 1), BAR);
    }
  }

  /**
   * @param {string} text
   * @param {number} x
   * @param {number} w
   * @param {number} top
   * @param {string} ink
   */
  name(text, x, w, top, ink) {
    const room = Math.floor((w - 8) / 6.6);
    if (room < 3) return;
    this.pen.fillStyle = ink;
    this.pen.fillText(text.length > room ? `${text.slice(0, room - 1)}…` : text, x + 4, top + BAR / 2 + 0.5);
  }

  /** The stretch that is selected. @param {Scene} scene */
  band({ picked }) {
    if (!picked) return;
    const pen = this.pen,
      [a, b] = [this.x(picked.from), this.x(picked.to)];
    pen.fillStyle = pen.strokeStyle = this.ink;
    pen.globalAlpha = 0.1;
    pen.fillRect(a, RULER, Math.max(b - a, 1), this.height);
    pen.globalAlpha = 0.6;
    pen.fillRect(a, RULER, 1, this.height);
    pen.fillRect(b, RULER, 1, this.height);
    pen.globalAlpha = 1;
  }

  /** @param {number} tick */
  x(tick) {
    return LABELS + Math.min(Math.max((tick - this.from) * this.scale, -FAR_PX), FAR_PX);
  }

  /** What led to what: whole lines from a launch to its kernel, broken ones across ranks of a collective. @param {Scene} scene */
  arrows({ arrows, middle }) {
    const pen = this.pen;
    pen.strokeStyle = pen.fillStyle = this.ink;
    for (const { from, to, kind } of arrows) {
      const [y, end] = [middle(from.row), middle(to.row)];
      if (y === null || end === null) continue;
      this.curve(this.x(from.tick), y, this.x(to.tick), end, kind === "collective");
    }
    pen.setLineDash([]);
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {number} toX
   * @param {number} toY
   * @param {boolean} broken
   */
  curve(x, y, toX, toY, broken) {
    const pen = this.pen,
      out = Math.max(Math.abs(toX - x) / 2, 24);
    pen.setLineDash(broken ? [5, 4] : []);
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.moveTo(x, y);
    pen.bezierCurveTo(x + out, y, toX - out, toY, toX - HEAD_PX, toY);
    pen.stroke();
    pen.beginPath();
    pen.moveTo(toX, toY);
    pen.lineTo(toX - HEAD_PX - 1, toY - HEAD_PX / 2);
    pen.lineTo(toX - HEAD_PX - 1, toY + HEAD_PX / 2);
    pen.fill();
  }

  /** @param {Scene} scene */
  ruler({ of, from, to }) {
    const pen = this.pen,
      scale = this.scale;
    const each = step((TICK_PX / scale) * of.tick_ps) / of.tick_ps;
    const first = Math.ceil(from / each) * each;
    const apart = first > 50 * each; // what is near together far from the beginning is told from the first of them
    pen.fillStyle = this.ink;
    for (let n = 0, at = first; at <= to && n < MOST_TICKS; n++, at = first + n * each) {
      const x = LABELS + (at - from) * scale;
      pen.globalAlpha = 0.12;
      pen.fillRect(x, RULER - 6, 1, this.height);
      pen.globalAlpha = 0.85;
      const told =
        apart && n
          ? `+${exactly(n * each * of.tick_ps, each * of.tick_ps)}`
          : exactly(at * of.tick_ps, each * of.tick_ps);
      pen.fillText(told, x + 4, RULER / 2);
    }
    pen.globalAlpha = 1;
  }

  /** Where two runs lie over one another. Bookmarks and comments: on the ruler, and the one that was gone to through all lanes. @param {Scene} scene */
  flags({ marks, marked, anchor }) {
    const pen = this.pen;
    pen.fillStyle = getComputedStyle(this.canvas).getPropertyValue("--st-primary-color") || this.ink;
    if (anchor !== null) pen.fillRect(this.x(anchor) - 1, 0, 2, this.height);
    for (const mark of marks) {
      const x = this.x(mark.at);
      if (mark.id === marked) pen.fillRect(x - 0.5, 0, 1, this.height);
      pen.beginPath();
      pen.moveTo(x - FLAG, 0);
      pen.lineTo(x + FLAG, 0);
      pen.lineTo(x, 1.6 * FLAG);
      pen.fill();
    }
  }

  /**
   * The mark of a row at this time, or near it; null where there is none.
   * @param {Held} held
   * @param {number} row
   * @param {number} time
   * @param {number} near
   */
  find(held, row, time, near) {
    const at = held.place.get(row);
    if (at === undefined) return null;
    const { tile, first } = held;
    let best = -1,
      least = near;
    for (let i = reaching(held, at, (time - near - tile.start) / tile.unit); i < first[at + 1]; i++) {
      const begin = tile.start + tile.begin[i] * tile.unit,
        end = begin + tile.width[i] * tile.unit;
      if (begin > time + near) break;
      const off = Math.max(begin - time, time - end, 0);
      if (off <= least) [best, least] = [i, off];
      if (off === 0) break;
    }
    return best < 0 ? null : { mark: best, row };
  }
}

/** @type {Map<string, boolean>} */
const BRIGHT = new Map();

/** Whether black reads better on a colour than white. @param {string} colour */
function bright(colour) {
  const known = BRIGHT.get(colour);
  if (known !== undefined) return known;
  const [r, g, b] = [1, 3, 5].map((i) => {
    const v = parseInt(colour.slice(i, i + 2), 16) / 255;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  });
  const found = 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179;
  BRIGHT.set(colour, found);
  return found;
}

// Draws marks, names and the ruler on a canvas.

/** @import { Described, Held, Lane, Line } from "./types.d.ts" */

import { exactly, lasted, step } from "./clock.js";

export const LABELS = 210;
export const RULER = 26;
export const ROW = 18;
const FONT = "12px ",
  BAR = 15,
  NAMED_PX = 34,
  TICK_PX = 110,
  DIM = 0.3,
  MOST_TICKS = 500;

export class Drawing {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    this.width = this.height = this.ratio = this.from = 0;
    this.scale = 1;
    this.ink = "#000000";
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

  /**
   * @param {Described} of
   * @param {Line[]} lines
   * @param {Held | null} held
   * @param {number} from
   * @param {number} to
   * @param {number} scrolled
   * @param {number} chosen
   * @param {[number, number, number][]} hits
   * @param {Set<Lane>} folded
   */
  draw(of, lines, held, from, to, scrolled, chosen, hits, folded) {
    const pen = this.pen,
      style = getComputedStyle(this.canvas);
    this.ink = style.color;
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    pen.font = FONT + style.fontFamily;
    pen.textBaseline = "middle";
    this.scale = (this.width - LABELS) / (to - from);
    this.from = from;
    pen.save();
    pen.beginPath();
    pen.rect(LABELS, RULER, this.width - LABELS, this.height - RULER);
    pen.clip();
    const looked = new Set(hits.map(([event]) => event));
    for (const line of lines) if (held) this.row(of, held, line.row, line.top - scrolled, chosen, looked);
    pen.restore();
    this.labels(lines, scrolled, folded);
    this.ruler(of, from, to);
  }

  /**
   * @param {Described} of
   * @param {Held} held
   * @param {number} row
   * @param {number} top
   * @param {number} chosen
   * @param {Set<number>} looked
   */
  row(of, held, row, top, chosen, looked) {
    const at = held.rows.indexOf(row);
    if (at < 0) return;
    const { tile, first } = held,
      pen = this.pen,
      scale = this.scale;
    const base = LABELS + (tile.start - this.from) * scale,
      unit = tile.unit * scale;
    let code = -1,
      drawn = LABELS - 1;
    for (let i = first[at]; i < first[at + 1]; i++) {
      const begin = base + tile.begin[i] * unit,
        end = begin + tile.width[i] * unit;
      if (end < LABELS || begin > this.width) continue;
      const x = Math.max(begin, LABELS),
        w = Math.max(Math.min(end, this.width) - x, 0.75);
      if (x + w < drawn + 0.25 && tile.event[i] !== chosen) continue; // under a pixel that is drawn
      drawn = x + w;
      if (tile.code[i] !== code) {
        code = tile.code[i];
        pen.fillStyle = of.codes[code]?.colour ?? "#888888";
      }
      const share = tile.share[i];
      const dim = looked.size && !looked.has(tile.event[i]) ? DIM : 1;
      pen.globalAlpha = (share === 255 ? 1 : 0.25 + (0.75 * share) / 255) * dim;
      pen.fillRect(x, top, w - (w > 3 ? 0.5 : 0), BAR);
      if (w > NAMED_PX && tile.count[i] <= 1)
        this.name(of.names[tile.name[i]] ?? "", x, w, top, of.codes[code]?.colour);
      if (tile.event[i] === chosen) {
        pen.globalAlpha = 1;
        pen.strokeStyle = this.ink;
        pen.lineWidth = 2;
        pen.strokeRect(x, top, w, BAR);
      }
      if (pen.fillStyle !== of.codes[code]?.colour) code = -1;
    }
    pen.globalAlpha = 1;
  }

  /**
   * @param {string} text
   * @param {number} x
   * @param {number} w
   * @param {number} top
   * @param {string | undefined} under
   */
  name(text, x, w, top, under) {
    const pen = this.pen,
      room = Math.floor((w - 8) / 6.6);
    if (room < 3) return;
    const fill = pen.fillStyle;
    pen.fillStyle = bright(under ?? "#888888") ? "#000000" : "#ffffff";
    pen.fillText(text.length > room ? `${text.slice(0, room - 1)}…` : text, x + 4, top + BAR / 2 + 0.5);
    pen.fillStyle = fill;
  }

  /**
   * @param {Line[]} lines
   * @param {number} scrolled
   * @param {Set<Lane>} folded
   */
  labels(lines, scrolled, folded) {
    const pen = this.pen;
    pen.save();
    pen.beginPath();
    pen.rect(0, RULER, LABELS - 8, this.height - RULER);
    pen.clip();
    pen.fillStyle = this.ink;
    for (const line of lines) {
      if (!line.head) continue;
      const folds = line.lane.rows > 1 ? (folded.has(line.lane) ? "▸ " : "▾ ") : "";
      pen.fillText(`${folds}${line.lane.title}`, folds ? 10 : 23, line.top - scrolled + BAR / 2);
    }
    pen.restore();
  }

  /**
   * @param {Described} of
   * @param {number} from
   * @param {number} to
   */
  ruler(of, from, to) {
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
      const told = apart && n ? `+${lasted(n * each * of.tick_ps)}` : exactly(at * of.tick_ps, each * of.tick_ps);
      pen.fillText(told, x + 4, RULER / 2);
    }
    pen.globalAlpha = 1;
  }

  /**
   * The mark of a row at this time, or near it; null where there is none.
   * @param {Held} held
   * @param {number} row
   * @param {number} time
   * @param {number} near
   */
  find(held, row, time, near) {
    const at = held.rows.indexOf(row);
    if (at < 0) return null;
    const { tile, first } = held;
    let best = -1,
      least = near;
    for (let i = first[at]; i < first[at + 1]; i++) {
      const begin = tile.start + tile.begin[i] * tile.unit,
        end = begin + tile.width[i] * tile.unit;
      const off = Math.max(begin - time, time - end, 0);
      if (off <= least) [best, least] = [i, off];
      if (off === 0) break;
    }
    return best < 0 ? null : { mark: best };
  }
}

/** Whether black reads better on a colour than white. @param {string} colour */
function bright(colour) {
  const [r, g, b] = [1, 3, 5].map((i) => {
    const v = parseInt(colour.slice(i, i + 2), 16) / 255;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179;
}

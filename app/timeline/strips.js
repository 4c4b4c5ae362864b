// A row's marks as one line of pixels, which is put on the canvas as high as a bar.
//
// A pixel has the colour of the mark that covers most of it, and is the denser the more of it is covered. So a frame
// costs a few steps for each mark and each pixel, and one call for each row. Rectangles one by one, by the canvas or by
// WebGL on a renderer in software, cost some ten times as much where marks are as narrow as pixels.

/** @import { Described, Held, Looked } from "./types.d.ts" */

const LEAST = 1e-6, // of a pixel: what is shorter is drawn too
  FAINTEST = 0.35,
  DIM = 0.3,
  APART = 3, // pixels: from here on neighbours are told apart by a gap
  BESIDE = 4; // marks that may begin before the one that began last, and still reach beyond it

export class Strips {
  constructor() {
    this.width = this.high = 0;
    this.image = new ImageData(1, 1);
    this.pixels = new Uint32Array(1);
    this.cover = this.best = new Float32Array(1);
    this.code = this.lit = new Uint8Array(1);
    this.palette = new Uint32Array(256);
    /** @type {Described | null} */
    this.of = null;
  }

  /**
   * @param {Described} of
   * @param {number} width
   * @param {number} high of a bar
   */
  begin(of, width, high) {
    if (width !== this.width || high !== this.high) {
      [this.width, this.high] = [width, high];
      this.image = new ImageData(width, high);
      this.pixels = new Uint32Array(this.image.data.buffer);
      [this.cover, this.best] = [new Float32Array(width), new Float32Array(width)];
      [this.code, this.lit] = [new Uint8Array(width), new Uint8Array(width)];
    }
    if (of !== this.of) this.colours(of);
  }

  /** As pixels hold them: red in the lowest byte. @param {Described} of */
  colours(of) {
    this.of = of;
    this.palette.fill(0x888888);
    for (const [code, { colour }] of Object.entries(of.looks)) {
      const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
      this.palette[Number(code)] = r | (g << 8) | (b << 16);
    }
  }

  /**
   * The marks of a row. `base`: pixel at which the tile begins; `unit`: pixels of one of its units.
   * @param {Held} held
   * @param {number} at which of the tile's rows
   * @param {number} base
   * @param {number} unit
   * @param {Looked} looked
   */
  fill(held, at, base, unit, looked) {
    const { begin, width, code, share, count, event, name } = held.tile,
      [W, cover, best, top, lit] = [this.width, this.cover, this.best, this.code, this.lit],
      last = held.first[at + 1],
      all = looked.any ? 0 : 1;
    cover.fill(0);
    best.fill(0);
    lit.fill(all);
    for (let i = reaching(held, at, -base / unit); i < last; i++) {
      let x = base + begin[i] * unit,
        end = x + width[i] * unit;
      if (x >= W) break;
      if (end < 0) continue;
      if (end - x > APART && count[i] <= 1) end -= 0.5;
      x = Math.max(x, 0);
      end = Math.min(end, W);
      const dense = share[i] / 255,
        [p, q] = [x | 0, Math.min(end | 0, W - 1)],
        found = all || looked.names.has(name[i]) || looked.events.has(event[i]);
      for (let k = p; k <= q; k++) {
        const part = Math.min(end, k + 1) - Math.max(x, k);
        if (part <= 0 && k > p) break;
        const weight = Math.max(part, LEAST) * dense;
        cover[k] += weight;
        if (weight > best[k]) {
          best[k] = weight;
          top[k] = code[i];
        }
        if (found) lit[k] = 1;
      }
    }
    this.paint();
  }

  paint() {
    const [W, cover, pixels] = [this.width, this.cover, this.pixels];
    for (let k = 0; k < W; k++) {
      const covered = cover[k];
      if (!covered) {
        pixels[k] = 0;
        continue;
      }
      const alpha = (covered > 0.998 ? 1 : FAINTEST + (1 - FAINTEST) * covered) * (this.lit[k] ? 1 : DIM);
      pixels[k] = this.palette[this.code[k]] | ((alpha * 255) << 24);
    }
  }

  /**
   * Puts it on a canvas, in the canvas's own pixels, no higher than `top`.
   * @param {CanvasRenderingContext2D} pen
   * @param {number} x
   * @param {number} y
   * @param {number} top
   */
  put(pen, x, y, top) {
    const cut = Math.max(top - y, 0);
    if (cut >= this.high) return;
    for (let line = 1; line < this.high; line++) this.pixels.copyWithin(line * this.width, 0, this.width);
    pen.putImageData(this.image, x, y, 0, cut, this.width, this.high - cut);
  }
}

/**
 * The first mark of a row that may reach to this unit or beyond it.
 * @param {Held} held
 * @param {number} at
 * @param {number} unit
 */
export function reaching(held, at, unit) {
  const begin = held.tile.begin;
  let [low, high] = [held.first[at], held.first[at + 1]];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (begin[middle] < unit) low = middle + 1;
    else high = middle;
  }
  return Math.max(low - BESIDE, held.first[at]);
}

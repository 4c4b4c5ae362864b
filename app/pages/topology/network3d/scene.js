// What is drawn of a network: places of its nodes, and pieces of lines: a link, one end of a wrap, a bit of an arc.

/** @import { Network, Piece, Place, Shown, Style } from "./types.d.ts" */

import { cross } from "./camera.js";

const STUB = 0.75,
  ARC_PIECES = 20,
  MOST_BESIDE = 20000;
const STRAIGHT = 0,
  FADES = 1; // how a piece ends
export const OUTLINE = 16; // kind of pieces that are no links

const COLOUR = { light: "", dark: "" };
/** @type {Shown} */
const NOTHING = {
  id: "",
  plain: false,
  aside: false,
  alt: "",
  fails: [],
  failures: [],
  route: [],
  routeLinks: [],
  looks: {
    failed: COLOUR,
    chip: COLOUR,
    switch: COLOUR,
    chosen: COLOUR,
    ramp: { light: [], dark: [] },
    chosenWidth: 0,
  },
};

export class Scene {
  /** @param {Network} network */
  constructor(network) {
    this.network = network;
    this.nodes = network.nodes;
    this.links = network.links;
    this.chips = network.chips;
    this.slices = network.slices;
    this.step = network.step;
    this.axes = network.axes;
    this.parts = network.parts;
    this.linkParts = network.linkParts;
    this.directions = network.directions;
    this.kinds = network.kinds;
    this.switches = network.switches;
    this.switchKind = network.switchKind;
    this.kind = network.kind;
    this.from = network.from;
    this.closes = network.closes;
    this.lane = network.lane;
    this.outlines = network.outlines;
    this.coordinates = network.coordinates;
    const n = this.nodes,
      step = this.step;
    this.at = new Float32Array(3 * n);
    for (let i = 0; i < 3 * n; i++) this.at[i] = network.places[(i % 3) * n + Math.floor(i / 3)] * step;
    this.to = network.to.map((difference, i) => this.from[i] + difference);
    this.half = [0, 1, 2].map((axis) => {
      let most = 0;
      for (let i = 0; i < n; i++) most = Math.max(most, Math.abs(this.at[3 * i + axis]));
      return most;
    });
    this.flat = this.half[2] < 0.01;
    const arcs = this.closes.some((c) => c > 3) ? Math.max(...this.half) : 0;
    this.around = 0.8 + arcs * (this.flat ? 0.14 : 0.16);
    /** What is shown now; `style` sets it. @type {Shown} */
    this.shown = NOTHING;
    this.pieces = new Float32Array(0);
    this.pieceLink = new Int32Array(0);
    this.pieceEnd = new Uint8Array(0);
    this.build();
    this.order();
  }

  /** The numbers of the parts of this name that the chips stand in. @param {string} name */
  part(name) {
    return this.network[/** @type {const} */ (`part ${name}`)];
  }

  /** The numbers of the parts of this name that the links go through; -1: none. @param {string} name */
  linkPart(name) {
    return this.network[/** @type {const} */ (`linkPart ${name}`)];
  }

  /** @param {number} node @returns {Place} */
  place(node) {
    return [this.at[3 * node], this.at[3 * node + 1], this.at[3 * node + 2]];
  }

  build() {
    const count = this.outlines.length / 6,
      merged = this.links > MOST_BESIDE;
    /** @param {number} i */
    const drawn = (i) => !(merged && this.lane[i]); // of very many links parallel ones are drawn as one
    let room = count;
    this.closes.forEach((c, i) => {
      if (drawn(i)) room += c === 0 ? 1 : c > 3 ? ARC_PIECES : 2;
    });
    this.pieces = new Float32Array(6 * room);
    this.pieceLink = new Int32Array(room);
    this.pieceEnd = new Uint8Array(room);
    let k = 0;
    /** @type {(link: number, a: ArrayLike<number>, b: ArrayLike<number>, end: number) => void} */
    const put = (link, a, b, end) => {
      this.pieces.set(a, 6 * k);
      this.pieces.set(b, 6 * k + 3);
      this.pieceLink[k] = link;
      this.pieceEnd[k++] = end;
    };
    for (let i = 0; i < count; i++) {
      const ends = Float32Array.from(this.outlines.subarray(6 * i, 6 * i + 6), (v) => v * this.step);
      put(-1, ends.subarray(0, 3), ends.subarray(3), STRAIGHT);
    }
    for (let i = 0; i < this.links; i++) {
      if (drawn(i)) for (const [a, b, end] of this.lines(i, this.closes[i] > 3)) put(i, a, b, end);
    }
  }

  // What is seen first comes first, so that the beginning alone can be drawn while the picture turns: outlines, then of
  // a body what is near its surface, of all else evenly some.
  order() {
    const count = this.pieceLink.length,
      key = new Float32Array(count),
      [hx, hy, hz] = this.half;
    const p = this.pieces,
      thick = Math.min(hx, hy, hz) > 2;
    for (let k = 0; k < count; k++) {
      if (this.pieceLink[k] < 0) key[k] = -1e6;
      else if (!thick) key[k] = (k * 0.6180339887) % 1;
      else {
        const middle = [0, 1, 2].map((i) => Math.abs(p[6 * k + i] + p[6 * k + 3 + i]) / 2);
        key[k] = Math.min(hx - middle[0], hy - middle[1], hz - middle[2]);
      }
    }
    const order = Uint32Array.from(key.keys()).sort((a, b) => key[a] - key[b]);
    this.pieces = Float32Array.from({ length: 6 * count }, (_, i) => p[6 * order[Math.floor(i / 6)] + (i % 6)]);
    this.pieceLink = this.pieceLink.map((_, i, old) => old[order[i]]);
    this.pieceEnd = this.pieceEnd.map((_, i, old) => old[order[i]]);
  }

  /**
   * The pieces [a, b, how it ends] of one link; `whole`: a wrap as its arc rather than as two stubs.
   * @param {number} link
   * @param {boolean} whole
   * @returns {Piece[]}
   */
  lines(link, whole) {
    const a = this.place(this.from[link]),
      b = this.place(this.to[link]),
      closes = this.closes[link] & 3;
    if (!closes) return [this.beside(link, a, b)];
    const out = [0, 0, 0];
    out[closes - 1] = STUB;
    if (!whole) {
      return [
        [a, a.map((v, i) => v + out[i]), FADES],
        [b, b.map((v, i) => v - out[i]), FADES],
      ];
    }
    const points = this.arc(a, b, closes - 1);
    return points.slice(1).map((p, i) => [points[i], p, STRAIGHT]);
  }

  /** Parallel links lie side by side. @param {number} link @param {Place} a @param {Place} b @returns {Piece} */
  beside(link, a, b) {
    const lane = this.lane[link];
    if (!lane) return [a, b, STRAIGHT];
    const along = a.map((v, i) => b[i] - v),
      steep = Math.abs(along[2]) > 0.9 * Math.hypot(...along);
    const side = cross(along, steep ? [1, 0, 0] : [0, 0, 1]);
    const shift = (((lane + 1) >> 1) * (lane & 1 ? 0.09 : -0.09)) / (Math.hypot(...side) || 1);
    return [a.map((v, i) => v + side[i] * shift), b.map((v, i) => v + side[i] * shift), STRAIGHT];
  }

  /** From a up along the axis, around the outside, to b from below. @param {Place} a @param {Place} b @param {number} axis */
  arc(a, b, axis) {
    let out = a.map((v, i) => (i === axis ? 0 : (v + b[i]) / 2));
    if (this.flat || this.slices > 1) out = [0, 0, axis ? -1 : 1];
    const size = Math.hypot(...out),
      span = Math.hypot(...a.map((v, i) => b[i] - v));
    out = size > 0.2 ? out.map((v) => v / size) : axis === 2 ? [1, 0, 0] : [0, 0, 1];
    const away = 0.9 + 0.1 * span,
      high = (this.flat ? 0.3 : 0.2) * span + 0.8;
    const p = a.map((v, i) => v + out[i] * high + (i === axis ? away : 0));
    const q = b.map((v, i) => v + out[i] * high - (i === axis ? away : 0));
    /** @type {Place[]} */
    const points = [];
    for (let k = 0; k <= ARC_PIECES; k++) {
      const t = k / ARC_PIECES,
        s = 1 - t;
      points.push(a.map((v, i) => s * s * s * v + 3 * s * s * t * p[i] + 3 * s * t * t * q[i] + t * t * t * b[i]));
    }
    return points;
  }

  /** @param {number} link */
  isLost(link) {
    return this.shown.left ? !this.shown.left[link] : false;
  }

  /** @param {number} node */
  isDead(node) {
    return this.shown.alive ? !this.shown.alive[node] : false;
  }

  /** Of its busier direction; null where no load is shown. @param {number} link */
  load(link) {
    const { forward, backward } = this.shown;
    return forward && backward ? Math.max(forward[link], backward[link]) : null;
  }

  /**
   * Bytes for each piece: kind, heat (255: none), lost, how it ends. For each node: glyph (0 chip, 1 switch, 2 lost).
   * @param {Shown} shown
   * @returns {Style}
   */
  style(shown) {
    this.shown = shown;
    const count = this.pieceLink.length,
      style = new Uint8Array(4 * count),
      heat = new Uint8Array(this.links);
    const most = shown.most || 1;
    for (let i = 0; i < this.links; i++) {
      const load = this.isLost(i) ? null : this.load(i);
      heat[i] = load === null ? 255 : Math.round((254 * load) / most);
    }
    for (let k = 0; k < count; k++) {
      const link = this.pieceLink[k];
      style[4 * k] = link < 0 ? OUTLINE : this.kind[link];
      style[4 * k + 1] = link < 0 ? 255 : heat[link];
      style[4 * k + 2] = link >= 0 && this.isLost(link) ? 1 : 0;
      style[4 * k + 3] = this.pieceEnd[k];
    }
    const glyph = new Uint8Array(this.nodes);
    for (let i = 0; i < this.nodes; i++) glyph[i] = this.isDead(i) ? 2 : i >= this.chips ? 1 : 0;
    return { style, glyph };
  }
}

// The whole run above the picture, and the window in it as a frame that can be dragged.

/** @import { Described, Held } from "./types.d.ts" */
/** @import { Viewer } from "./view.js" */

import { part } from "../components/parts.js";
import { LABELS } from "./drawing.js";
import { Strips } from "./strips.js";
import { Refused } from "./tiles.js";

const HIGH = 40,
  MOST_ROWS = 8,
  LEAST_PX = 6,
  STEP = 0.25,
  NONE = { any: false, events: new Set(), names: new Set() };

export class Overview {
  /** @param {Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    this.canvas = part(viewer.root, ".overview", HTMLCanvasElement);
    this.pen = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d", { willReadFrequently: true }));
    this.strips = new Strips();
    /** @type {Held | null} */
    this.held = null;
    this.asked = false;
    this.drawn = "";
    this.canvas.addEventListener("pointerdown", (event) => this.dragged(event));
    this.canvas.addEventListener("keydown", (event) => this.pressed(event));
  }

  /** The first row of each of the first lanes of job, serving and accounts; of a run without them, of the first. @param {Described} of */
  rows(of) {
    const told = of.lanes.filter((lane) => ["job", "serving"].includes(lane.group) || lane.role === "account");
    return (told.length ? told : of.lanes).slice(0, MOST_ROWS).map((lane) => lane.row);
  }

  /** Of other clocks. */
  forget() {
    this.asked = false;
    this.held = null;
    this.drawn = "";
  }

  /** Once; again where the server did not answer. */
  ask() {
    const { viewer } = this,
      of = viewer.of;
    if (!of || this.asked || !of.lanes.length || viewer.ends <= viewer.begins) return;
    this.asked = true;
    const clocks = viewer.ranks.clocks,
      share = (viewer.ends - viewer.begins) / (viewer.last - viewer.first); // less than all where two runs are shown
    viewer.tiles
      .one(this.rows(of), viewer.begins, viewer.ends, Math.max(Math.round(viewer.wide * share), 1))
      .then((held) => {
        if (!this.asked || clocks !== viewer.ranks.clocks) return;
        this.held = held;
        this.drawn = "";
        viewer.later();
      })
      .catch((error) => {
        this.asked = !(error instanceof Refused && error.status === 0);
      }); // the picture says what is wrong; without marks the frame still leads
  }

  /** @param {string} ink */
  draw(ink) {
    const { viewer, canvas, pen } = this,
      of = viewer.of,
      ratio = devicePixelRatio || 1,
      width = viewer.wide;
    if (!of) return;
    const said = [width, ratio, viewer.from, viewer.to, ink, this.held !== null].join();
    if (said === this.drawn) return;
    this.drawn = said;
    const [w, h] = [Math.round(width * ratio), Math.round(HIGH * ratio)];
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    canvas.style.width = `${width}px`;
    canvas.style.height = `${HIGH}px`;
    canvas.style.marginLeft = `${LABELS}px`;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, w, h);
    if (this.held) this.marks(of, this.held, w);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.frame(ink);
    const middle = (50 * (viewer.from + viewer.to - 2 * viewer.first)) / (viewer.last - viewer.first || 1);
    canvas.setAttribute("aria-valuenow", String(Math.round(Math.min(Math.max(middle, 0), 100))));
    canvas.setAttribute("aria-valuetext", viewer.where());
  }

  /**
   * @param {Described} of
   * @param {Held} held
   * @param {number} width
   */
  marks(of, held, width) {
    const rows = held.rows.length,
      high = this.canvas.height / rows,
      { first, last } = this.viewer,
      scale = width / (last - first);
    this.strips.begin(of, width, Math.max(Math.floor(high) - 1, 1));
    for (let n = 0; n < rows; n++) {
      this.strips.fill(held, n, (held.tile.start - first) * scale, held.tile.unit * scale, NONE);
      this.strips.put(this.pen, 0, Math.round(n * high), 0);
    }
  }

  /** @param {string} ink */
  frame(ink) {
    const pen = this.pen,
      [a, b] = this.ends();
    pen.fillStyle = pen.strokeStyle = ink;
    pen.globalAlpha = 0.25;
    pen.fillRect(0, 0, a, HIGH);
    pen.fillRect(b, 0, this.viewer.wide - b, HIGH);
    pen.globalAlpha = 1;
    pen.lineWidth = 2;
    pen.strokeRect(a + 1, 1, Math.max(b - a - 2, 1), HIGH - 2);
  }

  /** Of the frame, in pixels: never too narrow to be seen. */
  ends() {
    const { from, to, first, last, wide } = this.viewer,
      scale = wide / (last - first || 1),
      a = Math.min(Math.max((from - first) * scale, 0), wide - LEAST_PX);
    return [a, Math.max(Math.min((to - first) * scale, wide), a + LEAST_PX)];
  }

  /** Inside the frame it is drawn along; beside it the frame comes here first. @param {PointerEvent} down */
  dragged(down) {
    const { viewer, canvas } = this;
    if (down.button || !viewer.of) return;
    const tick = (/** @type {PointerEvent} */ event) =>
      viewer.first +
      ((event.clientX - canvas.getBoundingClientRect().left) / viewer.wide) * (viewer.last - viewer.first);
    const [a, b] = this.ends(),
      x = down.clientX - canvas.getBoundingClientRect().left,
      span = viewer.to - viewer.from;
    const off = x >= a && x <= b ? tick(down) - viewer.from : span / 2;
    const moved = (/** @type {PointerEvent} */ event) => viewer.look(tick(event) - off, tick(event) - off + span);
    const done = new AbortController();
    canvas.setPointerCapture(down.pointerId);
    moved(down);
    canvas.addEventListener("pointermove", moved, { signal: done.signal });
    for (const end of ["pointerup", "pointercancel"])
      canvas.addEventListener(end, () => done.abort(), { signal: done.signal });
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    const by = { ArrowLeft: -STEP, ArrowRight: STEP }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    this.viewer.move(by);
  }
}

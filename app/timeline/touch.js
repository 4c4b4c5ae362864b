// Fingers: one draws the picture along, two bring it closer about the place between them, a tap picks, and one that
// rests begins a selection. Up and down the lanes scroll, and the page beyond them.

/** @import { Viewer } from "./view.js" */

import { DRAGGED_PX, moving, selecting } from "./drags.js";
import { LABELS } from "./drawing.js";
import { clicked, place } from "./pointer.js";

const RESTS_MS = 500,
  SHAKES_PX = 2 * DRAGGED_PX, // fingers lie less still than a mouse
  LEAST_APART_PX = 24;

/** @typedef {{ move: (event: PointerEvent) => void, end: () => void }} Drag */

export class Touch {
  /** @param {Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    /** Where each finger is, by its number. @type {Map<number, PointerEvent>} */
    this.fingers = new Map();
    /** What one finger does, once it is known. @type {Drag | null} */
    this.drag = null;
    this.selects = this.several = false;
    /** @type {PointerEvent | null} */
    this.down = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.rests = undefined;
    /** Between two fingers: how far apart they were, and which instant lay there. */
    this.pinch = { apart: 1, middle: 0, span: 1 };
    const { canvas } = viewer,
      on = (/** @type {string} */ name, /** @type {(event: PointerEvent) => void} */ what) =>
        canvas.addEventListener(name, (event) => {
          if (event instanceof PointerEvent && event.pointerType === "touch") what(event);
        });
    on("pointerdown", (event) => this.begin(event));
    on("pointermove", (event) => this.move(event));
    on("pointerup", (event) => this.end(event));
    on("pointercancel", (event) => this.end(event));
    // without this the browser would scroll the page beneath a selection or two fingers
    canvas.addEventListener(
      "touchmove",
      (event) => {
        if (event.cancelable && (this.selects || event.touches.length > 1)) event.preventDefault();
      },
      { passive: false },
    );
    canvas.addEventListener("contextmenu", (event) => {
      if (this.fingers.size) event.preventDefault(); // a finger that rests is a selection
    });
  }

  /** @param {PointerEvent} event */
  begin(event) {
    this.fingers.set(event.pointerId, event);
    clearTimeout(this.rests);
    this.drop();
    if (this.fingers.size === 1) {
      this.several = false;
      this.down = event;
      this.rests = setTimeout(() => this.select(), RESTS_MS);
    } else if (this.fingers.size === 2) {
      this.several = true;
      this.pinch = { ...this.between(), span: this.viewer.to - this.viewer.from };
      this.pinch.middle = this.viewer.at(this.pinch.middle);
    }
  }

  /** How far two fingers are apart, and the middle of them on the stage. */
  between() {
    const [a, b] = [...this.fingers.values()].map((event) => place(this.viewer, event));
    return { apart: Math.max(Math.hypot(a.x - b.x, a.y - b.y), LEAST_APART_PX), middle: (a.x + b.x) / 2 };
  }

  /** A finger that rested selects from there on. */
  select() {
    const { viewer, down } = this;
    if (!down || this.drag || place(viewer, down).x < LABELS || !viewer.of) return;
    this.selects = true;
    this.drag = selecting(viewer, down);
    this.drag.move(down);
    viewer.said("A selection begins here.");
  }

  /** @param {PointerEvent} event */
  move(event) {
    if (!this.fingers.has(event.pointerId)) return;
    this.fingers.set(event.pointerId, event);
    if (this.fingers.size > 1) {
      if (this.fingers.size === 2) this.closer();
      return;
    }
    if (!this.drag && this.down) {
      if (Math.hypot(event.clientX - this.down.clientX, event.clientY - this.down.clientY) <= SHAKES_PX) return;
      clearTimeout(this.rests);
      this.drag = moving(this.viewer, this.down);
    }
    this.drag?.move(event);
  }

  /** What lay between the fingers stays there. */
  closer() {
    const { viewer, pinch } = this,
      { apart, middle } = this.between();
    if (!viewer.of) return;
    const span = viewer.within((pinch.span * pinch.apart) / apart, viewer.of),
      from = pinch.middle - (span * (middle - LABELS)) / viewer.wide;
    viewer.look(from, from + span);
  }

  /** @param {PointerEvent} event */
  end(event) {
    if (!this.fingers.delete(event.pointerId)) return;
    clearTimeout(this.rests);
    const tapped = event.type === "pointerup" && !this.drag && !this.several;
    this.drop();
    if (tapped) clicked(this.viewer, event);
    const [left] = this.fingers.values();
    if (this.fingers.size === 1) {
      this.down = left; // the other finger draws on from where it is
      this.drag = moving(this.viewer, left);
    }
  }

  /** What one finger did is done; one that rested and never moved selected nothing. */
  drop() {
    const { picked, canvas } = this.viewer;
    canvas.classList.remove("moving");
    if (this.selects && picked.stretch?.from === picked.stretch?.to) picked.clear();
    else this.drag?.end();
    this.drag = this.down = null;
    this.selects = false;
  }
}

// Wheel, pointer and keys of the timeline.

/** @import { Viewer } from "./view.js" */

import { part } from "../components/parts.js";
import { LABELS, ROW } from "./drawing.js";

const TURN = 1.0015,
  MOST_TURN = 2000,
  STEP = 0.25,
  DRAGGED_PX = 4;

/** @param {Viewer} viewer */
export function listen(viewer) {
  new ResizeObserver(() => viewer.later()).observe(viewer.stage);
  viewer.stage.addEventListener("scroll", () => viewer.later());
  viewer.stage.addEventListener("wheel", (event) => turned(viewer, event), { passive: false });
  viewer.stage.addEventListener("keydown", (event) => pressed(viewer, event));
  viewer.canvas.addEventListener("pointerdown", (event) => dragged(viewer, event));
  viewer.canvas.addEventListener("pointermove", (event) => viewer.pointed(event));
  viewer.canvas.addEventListener("pointerleave", () => (viewer.tip.hidden = true));
  const on = (/** @type {string} */ name, /** @type {() => void} */ what) =>
    part(viewer.root, name, HTMLButtonElement).addEventListener("click", what);
  on(".fit", () => viewer.of && viewer.look(0, viewer.of.span_ticks));
  on(".before", () => viewer.walk(-1));
  on(".after", () => viewer.walk(1));
  const q = part(viewer.root, ".q", HTMLInputElement);
  q.addEventListener("change", () => viewer.find(q.value));
}

/**
 * @param {Viewer} viewer
 * @param {WheelEvent} event
 */
function turned(viewer, event) {
  if (event.altKey) return; // the lanes scroll
  event.preventDefault();
  const across = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) viewer.move(across / viewer.wide);
  else
    viewer.zoom(
      TURN ** Math.min(Math.max(event.deltaY, -MOST_TURN), MOST_TURN),
      event.clientX - viewer.canvas.getBoundingClientRect().left,
    );
}

/**
 * @param {Viewer} viewer
 * @param {KeyboardEvent} event
 */
function pressed(viewer, event) {
  const of = viewer.of;
  if (!of || event.ctrlKey || event.metaKey) return;
  const middle = LABELS + viewer.wide / 2;
  /** @type {Record<string, () => void>} */
  const keys = {
    w: () => viewer.zoom(1 - STEP, middle),
    s: () => viewer.zoom(1 / (1 - STEP), middle),
    a: () => viewer.move(-STEP),
    d: () => viewer.move(STEP),
    ArrowLeft: () => viewer.move(-STEP),
    ArrowRight: () => viewer.move(STEP),
    ArrowUp: () => viewer.stage.scrollBy(0, -3 * ROW),
    ArrowDown: () => viewer.stage.scrollBy(0, 3 * ROW),
    f: () => viewer.look(0, of.span_ticks),
    n: () => viewer.walk(1),
    p: () => viewer.walk(-1),
    Escape: () => viewer.close(),
  };
  const does = keys[event.key];
  if (!does) return;
  event.preventDefault();
  event.stopPropagation();
  does();
}

/**
 * @param {Viewer} viewer
 * @param {PointerEvent} down
 */
function dragged(viewer, down) {
  if (down.button) return;
  viewer.stage.focus({ preventScroll: true });
  const { from, to } = viewer,
    scrolled = viewer.stage.scrollTop;
  let far = false;
  const moved = (/** @type {PointerEvent} */ event) => {
    const [x, y] = [event.clientX - down.clientX, event.clientY - down.clientY];
    far ||= Math.hypot(x, y) > DRAGGED_PX;
    if (!far) return;
    viewer.canvas.classList.add("moving");
    const by = ((to - from) * x) / viewer.wide;
    viewer.stage.scrollTop = scrolled - y;
    viewer.look(from - by, to - by);
  };
  const up = (/** @type {PointerEvent} */ event) => {
    viewer.canvas.removeEventListener("pointermove", moved);
    viewer.canvas.classList.remove("moving");
    if (!far) viewer.clicked(event);
  };
  viewer.canvas.setPointerCapture(down.pointerId);
  viewer.canvas.addEventListener("pointermove", moved);
  viewer.canvas.addEventListener("pointerup", up, { once: true });
}

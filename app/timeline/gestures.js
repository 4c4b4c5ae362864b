// Wheel, pointer and keys of the timeline.

/** @import { Viewer } from "./view.js" */

import { part } from "../components/parts.js";
import { DRAGGED_PX, moving, selecting } from "./drags.js";
import { LABELS } from "./drawing.js";
import { ROW, RULER } from "./layout.js";
import { clicked, place, pointed } from "./pointer.js";
import { save } from "./saving.js";
import { Touch } from "./touch.js";

const TURN = 1.0015,
  MOST_TURN = 2000,
  STEP = 0.25;

/** @param {Viewer} viewer */
export function listen(viewer) {
  const { root, stage, canvas } = viewer;
  new ResizeObserver(() => viewer.later()).observe(stage);
  canvas.addEventListener("contextrestored", () => viewer.later());
  stage.addEventListener("scroll", () => viewer.later());
  stage.addEventListener("wheel", (event) => turned(viewer, event), { passive: false });
  stage.addEventListener("keydown", (event) => pressed(viewer, event));
  new Touch(viewer);
  canvas.addEventListener("pointerdown", (event) => dragged(viewer, event));
  canvas.addEventListener("pointermove", (event) => event.pointerType !== "touch" && pointed(viewer, event));
  canvas.addEventListener("pointerleave", () => (viewer.tip.hidden = true));
  const on = (/** @type {string} */ name, /** @type {() => void} */ what) =>
    part(root, name, HTMLButtonElement).addEventListener("click", what);
  on(".fit", () => viewer.fit());
  on(".before", () => viewer.search.walk(-1));
  on(".after", () => viewer.search.walk(1));
  on(".png", () => save(viewer));
  on(".unpick", () => viewer.picked.clear());
  on(".follow", () => viewer.choice.follow());
  const [q, step] = [".q", ".step"].map((name) => part(root, name, HTMLInputElement));
  q.addEventListener("change", () => viewer.search.find(q.value));
  step.addEventListener("change", () => viewer.step(step.value));
}

/**
 * @param {Viewer} viewer
 * @param {WheelEvent} event
 */
function turned(viewer, event) {
  if (event.altKey || event.clientX - viewer.canvas.getBoundingClientRect().left < LABELS) return; // the lanes scroll
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
  if (!viewer.of || event.ctrlKey || event.metaKey || event.altKey) return;
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
    f: () => viewer.fit(),
    m: () => viewer.pickShown(),
    b: () => viewer.marks.write(),
    c: () => viewer.colours.turn(),
    l: () => viewer.choice.follow(),
    n: () => viewer.search.walk(1),
    p: () => viewer.search.walk(-1),
    Escape: () => viewer.close(),
  };
  const does = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key]; // under Caps Lock too
  if (!does) return;
  event.preventDefault();
  event.stopPropagation();
  does();
}

/**
 * A drag moves the picture; with Shift, or along the ruler, it selects.
 * @param {Viewer} viewer
 * @param {PointerEvent} down
 */
function dragged(viewer, down) {
  if (down.button || down.pointerType === "touch") return;
  viewer.stage.focus({ preventScroll: true });
  const { x, y } = place(viewer, down),
    moves = x >= LABELS && (down.shiftKey || y < RULER) ? selecting(viewer, down) : moving(viewer, down),
    done = new AbortController(),
    heard = { signal: done.signal };
  let far = false;
  viewer.canvas.setPointerCapture(down.pointerId);
  viewer.canvas.addEventListener(
    "pointermove",
    (event) => {
      far ||= Math.hypot(event.clientX - down.clientX, event.clientY - down.clientY) > DRAGGED_PX;
      if (far) moves.move(event);
    },
    heard,
  );
  const up = (/** @type {PointerEvent} */ event) => {
    done.abort();
    viewer.canvas.classList.remove("moving");
    if (far) moves.end();
    else if (event.type === "pointerup") clicked(viewer, event);
  };
  viewer.canvas.addEventListener("pointerup", up, heard);
  viewer.canvas.addEventListener("pointercancel", up, heard);
}

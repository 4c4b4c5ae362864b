// What a pointer that is drawn along does: it moves the picture, or selects a stretch.

/** @import { Viewer } from "./view.js" */

import { LABELS } from "./drawing.js";
import { RULER } from "./layout.js";
import { place, rowsBetween } from "./pointer.js";

export const DRAGGED_PX = 4;

/**
 * @param {Viewer} viewer
 * @param {PointerEvent} down
 */
export function moving(viewer, down) {
  const { from, to } = viewer,
    scrolled = viewer.stage.scrollTop,
    pace = viewer.layout?.pace(viewer.stage.clientHeight) ?? 1;
  const move = (/** @type {PointerEvent} */ event) => {
    viewer.canvas.classList.add("moving");
    const by = ((to - from) * (event.clientX - down.clientX)) / viewer.wide;
    viewer.stage.scrollTop = scrolled - (event.clientY - down.clientY) / pace;
    viewer.look(from - by, to - by);
  };
  return { move, end: () => {} };
}

/**
 * @param {Viewer} viewer
 * @param {PointerEvent} down
 */
export function selecting(viewer, down) {
  const begun = place(viewer, down),
    from = viewer.at(begun.x);
  const move = (/** @type {PointerEvent} */ event) => {
    const { x, y } = place(viewer, event),
      to = viewer.at(Math.min(Math.max(x, LABELS), LABELS + viewer.wide));
    const rows = begun.y < RULER ? null : rowsBetween(viewer, begun.y, y);
    viewer.picked.set(from, to, rows?.length ? rows : null);
  };
  return { move, end: () => viewer.picked.settle() };
}

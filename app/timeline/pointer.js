// What is under the pointer, and what a click opens.

/** @import { Viewer } from "./view.js" */

import { beside, words } from "./cards.js";
import { LABELS } from "./drawing.js";
import { ROW, RULER } from "./layout.js";

/**
 * Where the pointer is on the stage.
 * @param {Viewer} viewer
 * @param {PointerEvent} event
 */
export function place({ canvas }, event) {
  const { left, top } = canvas.getBoundingClientRect();
  return { x: event.clientX - left, y: event.clientY - top };
}

/**
 * Tells of it beside the pointer.
 * @param {Viewer} viewer
 * @param {PointerEvent} event
 */
export function pointed(viewer, event) {
  const { of, held, tip } = viewer,
    mark = event.buttons ? null : under(viewer, event),
    flag = event.buttons ? null : flagged(viewer, event);
  const said = flag ? flag.text || "Bookmark" : mark && of && held ? words(of, held.tile, mark.mark) : "";
  tip.hidden = !said;
  tip.textContent = said && viewer.which ? `${viewer.which}. ${said}` : said;
  if (said) beside(tip, event);
}

/**
 * @param {Viewer} viewer
 * @param {PointerEvent} event
 */
export function clicked(viewer, event) {
  const flag = flagged(viewer, event),
    mark = under(viewer, event);
  if (flag) void viewer.marks.go(flag, true);
  else if (mark && viewer.held) viewer.choice.open(viewer.held.tile.event[mark.mark], mark.row);
  else if (place(viewer, event).x >= LABELS) viewer.close();
}

/**
 * The bookmark or comment whose flag it is on.
 * @param {Viewer} viewer
 * @param {PointerEvent} event
 */
function flagged(viewer, event) {
  const { x, y } = place(viewer, event);
  return y < RULER ? viewer.marks.under(x) : null;
}

/**
 * The mark of an event, or of several.
 * @param {Viewer} viewer
 * @param {PointerEvent} event
 */
function under(viewer, event) {
  const { x, y } = place(viewer, event);
  const line = viewer.seen.find((one) => y >= one.top && y < one.top + ROW);
  if (!line || x < LABELS || !viewer.held || y < RULER) return null;
  const near = ((viewer.to - viewer.from) / viewer.wide) * 2;
  return viewer.drawing.find(viewer.held, line.row, viewer.at(x), near);
}

/**
 * The rows that stand between two heights of the stage.
 * @param {Viewer} viewer
 * @param {number} a
 * @param {number} b
 */
export function rowsBetween(viewer, a, b) {
  const [top, end] = [Math.min(a, b), Math.max(a, b)];
  return viewer.seen.filter((line) => line.top + ROW > top && line.top < end).map((line) => line.row);
}

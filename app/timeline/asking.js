// Which marks to ask for, and whether those that are held are sharp enough for what is looked at.

/** @import { Held } from "./types.d.ts" */

export const BEYOND = 0.05; // of the run: so far a person may look before its begin and after its end
const AROUND = 0.5, // of the window: asked for on each side, for whoever drags
  EDGE = 0.125,
  COARSE = 1.35,
  FINE = 3,
  EVENTS_COARSE = 6, // where marks are events they are placed by 16ths of a pixel
  SHARPEST = 1.5,
  MOST_PIXELS = 20_000;

/** @typedef {{ from: number, to: number, wide: number, first: number, last: number }} Window ticks, how many pixels they are wide, and where the run begins and ends */

/** Ticks of a pixel. @param {Window} window */
export function fineness({ from, to, wide }) {
  return (to - from) / (wide * Math.min(devicePixelRatio || 1, SHARPEST));
}

/**
 * Whether these rows stand sharp on the screen: "edge" where they soon do not.
 * @param {Held | null} held
 * @param {number[]} rows
 * @param {Window} window
 * @returns {"sharp" | "edge" | "coming"}
 */
export function standing(held, rows, window) {
  const now = fineness(window),
    margin = (window.to - window.from) * EDGE;
  if (!held || !rows.every((row) => held.place.has(row))) return "coming";
  const covers = (/** @type {number} */ more) =>
    held.from <= Math.max(window.from - more, window.first) && held.to >= Math.min(window.to + more, window.last);
  const coarsest = now * (held.tile.shift === null ? EVENTS_COARSE : COARSE);
  const narrow = held.to - held.from <= now; // all of a run that is short beside another: no pixel is wider
  if (!covers(0) || held.fine > coarsest || (held.fine < now / FINE && !narrow)) return "coming";
  return covers(margin) ? "sharp" : "edge";
}

/**
 * The window to ask for: wider than what is looked at, within the run.
 * @param {Window} window
 */
export function wanted(window) {
  const more = (window.to - window.from) * AROUND,
    most = Math.max((window.last - window.first) * BEYOND, 1);
  const from = Math.floor(Math.max(window.from - more, window.first - most)),
    to = Math.max(Math.ceil(Math.min(window.to + more, window.last + most)), from + 1);
  const pixels = Math.min(Math.max(Math.round((to - from) / fineness(window)), 1), MOST_PIXELS);
  return { from, to, pixels };
}

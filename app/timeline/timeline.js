// Streamlit calls this with each message and each change of theme; the viewers stay between calls.

/** @import { Beside } from "./types.d.ts" */

import { part } from "../components/parts.js";
import { Pair } from "./pair.js";
import { Viewer } from "./view.js";

/** @typedef {HTMLElement & { viewer?: Viewer, fresh?: HTMLElement, shown?: string }} Root */

/** @param {StreamlitComponent<{ run: string, written: string, beside: Beside | null } | null>} component */
export default function ({ parentElement, data }) {
  if (!data || !parentElement.querySelector(".timeline")) return;
  /** @type {Root} */
  const root = part(parentElement, ".timeline", HTMLElement);
  root.fresh ??= /** @type {HTMLElement} */ (root.cloneNode(true));
  root.viewer ??= new Viewer(root, data.run, data.written);
  second(root, root.viewer, data.beside);
  root.viewer.begin();
  root.viewer.pair?.second.begin();
  return () => {
    root.viewer?.pair?.second.end();
    root.viewer?.end();
  };
}

/**
 * A second run below the first, or none, or another one.
 * @param {Root} root
 * @param {Viewer} viewer
 * @param {Beside | null} beside
 */
function second(root, viewer, beside) {
  const wanted = beside ? `${beside.run} ${beside.written}` : "";
  if (wanted === (root.shown ?? "")) return; // at which step it stands is the viewer's matter by then
  root.shown = wanted;
  viewer.pair?.second.leave();
  viewer.pair?.end();
  root.classList.toggle("paired", beside !== null);
  if (!beside || !root.fresh) return;
  const below = /** @type {HTMLElement} */ (root.fresh.cloneNode(true));
  below.classList.add("paired", "other");
  for (const named of below.querySelectorAll("[aria-label]"))
    named.setAttribute("aria-label", `${named.getAttribute("aria-label")}, run B`);
  root.after(below);
  new Pair(viewer, new Viewer(below, beside.run, beside.written, "b_"), beside);
  viewer.lay();
}

// What is told in words beside the picture.

/** @import { Code, Described, Tile } from "./types.d.ts" */

import { lasted, when } from "./clock.js";

const BELOW_PX = 16;
const TITLES = /** @type {Record<string, string>} */ ({
  module: "Program",
  category: "Kind",
  scope: "Place in the model",
  source: "Source",
  shape: "Shape",
  direction: "Pass",
  flops: "FLOPs",
  bytes: "Bytes",
  count: "Executions",
});

/**
 * @param {HTMLElement} root
 * @param {Code[]} codes
 */
export function legend(root, codes) {
  root.replaceChildren(
    ...codes.map((code) => {
      const entry = document.createElement("span");
      entry.textContent = code.title;
      if (code.meaning) entry.title = code.meaning;
      entry.style.setProperty("--colour", code.colour);
      return entry;
    }),
  );
}

/**
 * @param {HTMLElement} root
 * @param {Record<string, any>} told
 * @param {Described} of
 * @param {string} which the run, where two are shown
 */
export function card(root, told, of, which) {
  const name = document.createElement("strong");
  name.textContent = told.name;
  const list = document.createElement("dl");
  const add = (/** @type {string} */ title, /** @type {string} */ text) => {
    const [term, said] = [document.createElement("dt"), document.createElement("dd")];
    [term.textContent, said.textContent] = [title, text];
    list.append(term, said);
  };
  if (which) add("Run", which);
  const usual = told.usual_s ? `, usually ${lasted(told.usual_s * 1e12)}` : "";
  add("Took", `${lasted(told.dur_s * 1e12)}${usual}`);
  const began = `${lasted(told.start_s * 1e12)} after the first event`;
  add("Began", of.origin_ns === null ? began : `${when(of.origin_ns, told.start_s * 1e12)}, ${began}`);
  add("Lane", told.lane);
  add("Work of", Object.values(of.codes).find((code) => code.name === told.account)?.title ?? told.account);
  for (const [key, title] of Object.entries(TITLES))
    if (told[key] != null) add(title, typeof told[key] === "number" ? told[key].toLocaleString("en") : told[key]);
  root.replaceChildren(name, list);
  root.hidden = false;
}

/**
 * What a mark is: an event, or how much of it is covered by which.
 * @param {Described} of
 * @param {Tile} tile
 * @param {number} i
 */
export function words(of, tile, i) {
  const name = of.names[tile.name[i]] ?? "an event",
    what = of.looks[tile.code[i]]?.title ?? "",
    took = lasted(tile.dur[i] * of.tick_ps);
  if (tile.count[i] <= 1) return `${name}: ${took}, ${what}`;
  const share = Math.round((tile.share[i] / 255) * 100),
    bin = lasted(2 ** (tile.shift ?? 0) * of.tick_ps);
  return `${tile.count[i].toLocaleString("en")} events, ${share} % of ${bin}, most of it ${what}; the longest: ${name}, ${took}`;
}

/**
 * Puts the hover text below the pointer, or above it where the window ends.
 * @param {HTMLElement} tip
 * @param {PointerEvent} event
 */
export function beside(tip, { clientX, clientY }) {
  const below = clientY + BELOW_PX,
    high = tip.offsetHeight;
  tip.style.left = `${Math.min(clientX + 12, innerWidth - 400)}px`;
  tip.style.top = `${below + high <= innerHeight ? below : Math.max(clientY - BELOW_PX / 2 - high, 0)}px`;
}

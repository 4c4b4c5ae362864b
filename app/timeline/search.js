// Events that bear a name: counted, and walked through.

/** @import { Looked } from "./types.d.ts" */
/** @import { Viewer } from "./view.js" */

import { part } from "../components/parts.js";
import { atHome } from "./home.js";
import { address, answer } from "./tiles.js";

const AROUND = 8,
  FARTHEST = 60; // times as long as the hit: a window that is wider comes closer

export class Search {
  /** @param {Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    /** Number, start and duration of each. @type {[number, number, number][]} */
    this.hits = [];
    /** What is not dim: events and names. @type {Looked} */
    this.looked = { any: false, events: new Set(), names: new Set() };
    this.hit = -1;
  }

  /**
   * @param {string} text
   * @param {boolean} [stay] the window stays
   */
  find(text, stay) {
    const { root, run } = this.viewer,
      said = part(root, ".hits", HTMLElement),
      input = part(root, ".q", HTMLInputElement);
    this.found([]);
    said.textContent = "";
    if (!text.trim()) return;
    answer(address(`runs/${run}/timeline/search?q=${encodeURIComponent(text.trim())}${this.viewer.ranks.clocks}`))
      .then((got) => got.json())
      .then((told) => {
        if (input.value !== text || !atHome(this.viewer)) return; // something else is looked for
        this.viewer.say("");
        this.found(told.events, text.trim());
        const first = told.hits > told.events.length ? `, the first ${told.events.length} walked through` : "";
        said.textContent = `${told.hits.toLocaleString("en")} found${first}`;
        if (!stay) this.walk(1);
      })
      .catch((error) => this.viewer.say(error, "Nothing was found"));
  }

  /**
   * The server tells the first of many: the others are known by their names.
   * @param {[number, number, number][]} hits
   * @param {string} text
   */
  found(hits, text = "") {
    this.hits = hits;
    const wanted = text.toLowerCase(),
      names = hits.length ? (this.viewer.of?.names ?? []) : [];
    const numbers = names.flatMap((name, i) => (name.toLowerCase().includes(wanted) ? [i] : []));
    this.looked = { any: hits.length > 0, events: new Set(hits.map(([event]) => event)), names: new Set(numbers) };
    this.hit = -1;
    for (const name of [".before", ".after"]) part(this.viewer.root, name, HTMLButtonElement).disabled = !hits.length;
    this.viewer.later();
  }

  /** To the next hit or the one before. @param {number} by */
  walk(by) {
    if (!this.hits.length) return;
    this.hit = (this.hit + by + this.hits.length) % this.hits.length;
    const [event, start, dur] = this.hits[this.hit],
      { from, to } = this.viewer;
    const span = dur ? Math.max(dur * AROUND, Math.min(to - from, dur * FARTHEST + 1)) : to - from;
    this.viewer.look(start + dur / 2 - span / 2, start + dur / 2 + span / 2);
    this.viewer.choice.open(event);
  }
}

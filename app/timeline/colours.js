// What colours mean: the account that work is entered in, or what kind of work it is.

/** @import { Code } from "./types.d.ts" */
/** @import { Viewer } from "./view.js" */

import { part } from "../components/parts.js";

const ASKED = "&colours=categories";

export class Colours {
  /** @param {Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    this.kinds = false;
    this.box = part(viewer.root, "select.colours", HTMLSelectElement);
    this.box.addEventListener("change", () => this.choose(this.box.value === "categories"));
  }

  /** As an address has it, before anything is drawn. @param {boolean} kinds */
  restore(kinds) {
    this.kinds = kinds;
    this.box.value = kinds ? "categories" : "accounts";
    this.viewer.tiles.colours = kinds ? ASKED : "";
  }

  /** Of both runs, where two are shown. @param {boolean} kinds */
  choose(kinds) {
    const { pair } = this.viewer;
    for (const { colours } of pair ? [pair.first, pair.second] : [this.viewer]) colours.set(kinds);
    this.viewer.explain();
    pair?.first.explain();
    this.viewer.said(kinds ? "Colours are of kinds of work." : "Colours are of accounts.");
  }

  /** @param {boolean} kinds */
  set(kinds) {
    const { viewer } = this;
    this.restore(kinds);
    viewer.held = null;
    viewer.overview.forget();
    viewer.overview.ask();
    viewer.tell();
    viewer.later();
  }

  turn() {
    this.choose(!this.kinds);
  }

  /** What there is to tell of a run, by number. @returns {Record<string, Code>} */
  get legend() {
    const of = this.viewer.of;
    return (this.kinds ? of?.kinds : of?.codes) ?? {};
  }
}

// A stretch that was selected, and the panel beside that says what it holds.

/** @import { Stretch, Summed } from "./types.d.ts" */
/** @import { Viewer } from "./view.js" */

import { part } from "../components/parts.js";
import { lasted } from "./clock.js";
import { address, answer, Refused, spelled, whole } from "./tiles.js";

const MOST_ROWS = 4_000,
  MOST_LANES = 12;

export class Picked {
  /** @param {Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    /** @type {Stretch | null} */
    this.stretch = null;
    this.asked = 0;
    this.panel = part(viewer.root, ".picked", HTMLElement);
  }

  /**
   * While it is drawn; `settle` asks what it holds.
   * @param {number} a
   * @param {number} b
   * @param {number[] | null} rows
   */
  set(a, b, rows) {
    this.stretch = { from: Math.min(a, b), to: Math.max(a, b), rows };
    this.viewer.later();
  }

  settle() {
    const { viewer, stretch } = this;
    if (!stretch || !viewer.of) return;
    const from = Math.max(Math.min(Math.floor(stretch.from), viewer.ends), viewer.begins),
      to = Math.max(Math.ceil(Math.min(stretch.to, viewer.ends)), from + 1),
      mine = ++this.asked,
      rows = stretch.rows && stretch.rows.length <= MOST_ROWS ? `&rows=${spelled(stretch.rows)}` : "",
      clocks = viewer.ranks.clocks;
    stretch.from = from;
    stretch.to = to;
    viewer.tell();
    viewer.later();
    answer(address(`runs/${viewer.run}/timeline/selection?start=${whole(from)}&end=${whole(to)}${rows}${clocks}`))
      .then((got) => got.json())
      .then((told) => {
        if (mine === this.asked && this.stretch) this.show(told, this.stretch);
      })
      .catch((error) => {
        if (mine !== this.asked) return;
        this.panel.hidden = true;
        if (!(error instanceof Refused && error.status === 404)) viewer.say(error, "The selection is not summed");
      });
  }

  /**
   * @param {Summed} told
   * @param {Stretch} stretch
   */
  show(told, { from, to, rows }) {
    const of = this.viewer.of;
    if (!of) return;
    const [head, note, sums, lanes] = [".sum", ".sum-note", ".sums", ".sum-lanes"].map((name) =>
      part(this.panel, name, HTMLElement),
    );
    head.textContent = lasted((to - from) * of.tick_ps);
    const busy = told.lanes.filter((lane) => lane.events).sort((a, b) => b.busy_s - a.busy_s);
    const where = rows ? `the ${rows.length.toLocaleString("en")} rows it spans` : "all rows";
    note.textContent = `${told.events.toLocaleString("en")} events in ${where}`;
    sums.replaceChildren(...told.accounts.map(account));
    lanes.replaceChildren(...busy.slice(0, MOST_LANES).map((lane) => entry(lane.title, lasted(lane.busy_s * 1e12))));
    part(this.panel, ".sum-more", HTMLElement).textContent =
      busy.length > MOST_LANES ? `and ${(busy.length - MOST_LANES).toLocaleString("en")} more lanes` : "";
    this.panel.hidden = false;
    this.viewer.said(`Selected: ${head.textContent}, ${note.textContent}.`);
  }

  clear() {
    this.stretch = null;
    this.asked++;
    this.panel.hidden = true;
    this.viewer.tell();
    this.viewer.later();
  }
}

/** @param {Summed["accounts"][number]} of */
function account({ title, colour, seconds, share }) {
  const row = entry(title, `${lasted(seconds * 1e12)}, ${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`),
    bar = document.createElement("i");
  bar.style.setProperty("--colour", colour);
  bar.style.setProperty("--share", `${Math.min(Math.max(share, 0), 1) * 100}%`);
  row.append(bar);
  return row;
}

/**
 * @param {string} title
 * @param {string} sum
 */
function entry(title, sum) {
  const [row, name, told] = ["li", "span", "b"].map((kind) => document.createElement(kind));
  name.textContent = title;
  told.textContent = sum;
  row.append(name, told);
  return row;
}

// Bookmarks and comments: flags on the ruler, a list below, and a line to write one. Their text is text.

/** @import { Mark } from "./types.d.ts" */
/** @import { Viewer } from "./view.js" */

import { part } from "../components/parts.js";
import { lasted, when } from "./clock.js";
import { atHome, read } from "./home.js";
import { address, answer, spelled, whole } from "./tiles.js";

const NEAR_PX = 6;

export class Marks {
  /** @param {Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    /** @type {Mark[]} */
    this.kept = [];
    /** The one that was gone to. @type {number | null} */
    this.chosen = null;
    const root = viewer.root;
    this.form = part(root, ".remark", HTMLFormElement);
    this.text = part(root, ".remark input", HTMLInputElement);
    part(root, ".mark", HTMLButtonElement).addEventListener("click", () => this.write());
    part(root, ".remark .cancel", HTMLButtonElement).addEventListener("click", () => this.close());
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.keep();
    });
    this.form.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Escape") this.close();
    });
  }

  get path() {
    return address(`runs/${this.viewer.run}/timeline/marks`);
  }

  /** Those of the clocks that are looked at: at others they stand elsewhere. */
  get shown() {
    const clocks = this.viewer.ranks.aligned ? "aligned" : "recorded";
    return this.kept.filter((mark) => mark.clocks === clocks);
  }

  /** All that are kept; to the one that the address names. */
  async ask() {
    const { mark, from, to } = read(this.viewer.letter); // now: the address is written to soon
    this.chosen = mark;
    try {
      const told = await (await answer(this.path)).json();
      if (!atHome(this.viewer)) return;
      this.show(told.marks);
      const named = this.kept.find((one) => one.id === mark);
      if (named) await this.go(named, to > from);
      else this.chosen = null;
      if (mark !== null && !named) this.viewer.say("there is none of this number", "The bookmark was deleted");
    } catch (error) {
      this.viewer.say(error, "Bookmarks and comments are not shown");
    }
  }

  /** @param {Mark[]} kept */
  show(kept) {
    const box = part(this.viewer.root, ".marks", HTMLElement);
    this.kept = kept;
    box.hidden = !kept.length;
    part(box, "ul", HTMLElement).replaceChildren(...kept.map((mark) => this.entry(mark)));
    this.viewer.later();
  }

  /** @param {Mark} mark */
  entry(mark) {
    const row = document.createElement("li"),
      go = document.createElement("button"),
      by = document.createElement("span"),
      link = document.createElement("a"),
      gone = document.createElement("button");
    go.type = gone.type = "button";
    go.className = "go";
    go.textContent = `${lasted(mark.at * (this.viewer.of?.tick_ps ?? 1))}: ${mark.text || "bookmark"}`;
    go.addEventListener("click", () => void this.go(mark));
    if (mark.id === this.chosen) go.setAttribute("aria-current", "true");
    by.textContent = [mark.who, when(mark.written_ns, 0).slice(0, 16)].filter(Boolean).join(", ");
    link.href = this.permalink(mark);
    link.textContent = "Link";
    link.setAttribute("aria-label", `Link to ${mark.text.slice(0, 80) || "this bookmark"}`);
    gone.textContent = "Delete";
    gone.setAttribute("aria-label", `Delete ${mark.text.slice(0, 80) || "this bookmark"}`);
    gone.addEventListener("click", () => void this.send("DELETE", `/${mark.id}`));
    row.append(go, by, link, gone);
    return row;
  }

  /** @param {Mark} mark */
  permalink(mark) {
    const { letter, run } = this.viewer,
      own = letter ? null : new URLSearchParams(location.search).get("run"),
      said = new URLSearchParams({ run: own ?? run });
    said.set("mark", String(mark.id));
    return `${location.pathname}?${said}`;
  }

  /**
   * Looks at it as whoever wrote it did.
   * @param {Mark} mark
   * @param {boolean} [stay] the window stays
   */
  async go(mark, stay) {
    const { viewer } = this;
    this.chosen = mark.id;
    if (!stay) {
      await viewer.ranks.turn(mark.clocks === "aligned");
      viewer.look(mark.from, mark.to);
    }
    if (mark.rows.length) viewer.reach(mark.rows[0], null);
    this.show(this.kept);
    viewer.said(`${mark.text || "Bookmark"}, at ${lasted(mark.at * (viewer.of?.tick_ps ?? 1))}.`);
    viewer.tell();
  }

  /** Opens the line in which one is written. */
  write() {
    this.form.hidden = false;
    this.text.value = "";
    this.text.focus();
  }

  close() {
    this.form.hidden = true;
    this.viewer.stage.focus({ preventScroll: true });
  }

  /** At the begin of the selection, else in the middle of the window; on the rows of the selection or of the chosen event. */
  async keep() {
    const { from, to, picked, choice, ranks } = this.viewer,
      rows = picked.stretch ? picked.stretch.rows : choice.event >= 0 && choice.row !== null ? [choice.row] : null;
    const told = await this.send("POST", "", {
      text: this.text.value,
      at: whole(picked.stretch ? picked.stretch.from : (from + to) / 2),
      from: whole(from),
      to: whole(Math.max(to, from + 1)),
      rows: spelled((rows ?? []).slice(0, 64)),
      clocks: ranks.aligned ? "aligned" : "recorded",
    });
    if (!told) return;
    this.close();
    this.viewer.said("Kept.");
  }

  /**
   * @param {string} method
   * @param {string} which
   * @param {Record<string, string>} [body]
   */
  async send(method, which, body) {
    try {
      const how = { method, headers: { "Content-Type": "application/json" }, body: body && JSON.stringify(body) };
      const told = await (await answer(this.path + which, undefined, how)).json();
      this.viewer.say("");
      this.show(told.marks);
      return told;
    } catch (error) {
      this.viewer.say(error, method === "POST" ? "It was not kept" : "It was not deleted");
      return null;
    }
  }

  /** The one whose flag is at a pixel of the ruler. @param {number} x */
  under(x) {
    const { drawing } = this.viewer;
    return this.shown.find((mark) => Math.abs(drawing.x(mark.at) - x) <= NEAR_PX) ?? null;
  }
}

// Two runs above one another: each has its own lanes, ruler and nanoseconds, and both look at the same place, counted
// from where they are laid over one another.

/** @import { Beside } from "./types.d.ts" */
/** @import { Viewer } from "./view.js" */

import { part } from "../components/parts.js";
import { atHome, read } from "./home.js";
import { address, answer, Refused } from "./tiles.js";

const ROOM = 0.05, // of a step, what is shown before and after it
  STEP = "beside_step";

export class Pair {
  /**
   * @param {Viewer} first
   * @param {Viewer} second
   * @param {Beside} told
   */
  constructor(first, second, told) {
    this.first = first;
    this.second = second;
    this.at = told.at;
    this.otherAt = told.other_at;
    this.stepped = told.step;
    const { from, to } = read("");
    /** Where the address looks; null: at all of the shorter one. */
    this.wanted = to > from && Number.isFinite(to - from) ? { from, to } : null;
    first.pair = second.pair = this;
    first.which = `Run A, ${told.names[0]}`;
    second.which = `Run B, ${told.names[1]}`;
    for (const viewer of [first, second]) part(viewer.root, ".which", HTMLElement).textContent = viewer.which;
    this.say(told.said);
  }

  /** How they lie over one another. @param {string} text */
  say(text) {
    part(this.first.root, ".aligned", HTMLElement).textContent = text;
  }

  /** @param {Viewer} viewer */
  other(viewer) {
    return viewer === this.first ? this.second : this.first;
  }

  /** Where a viewer's run lies over the other, in its own ticks. @param {Viewer} viewer */
  anchor(viewer) {
    return viewer === this.first ? this.at : this.otherAt;
  }

  /** Ticks of `viewer` in one of the other's. @param {Viewer} viewer */
  tick(viewer) {
    const other = this.other(viewer).of;
    return viewer.of && other ? other.tick_ps / viewer.of.tick_ps : 0;
  }

  /**
   * A time of the other run as `viewer` counts.
   * @param {Viewer} viewer
   * @param {number} tick
   */
  here(viewer, tick) {
    return this.anchor(viewer) + (tick - this.anchor(this.other(viewer))) * this.tick(viewer);
  }

  /** Where the other run begins and ends, as `viewer` counts; null until both are there. @param {Viewer} viewer */
  span(viewer) {
    const other = this.other(viewer);
    if (!viewer.of || !other.of) return null;
    return { first: this.here(viewer, other.begins), last: this.here(viewer, other.ends) };
  }

  /** The other looks where this one does. @param {Viewer} viewer */
  moved(viewer) {
    const other = this.other(viewer);
    if (other.of && viewer.of) other.put(this.here(other, viewer.from), this.here(other, viewer.to));
  }

  /** A run is there. Where clocks are aligned from the start, the step is not where the page was told that it is. */
  there() {
    const { first, second } = this;
    if (first.of && second.of && this.stepped !== null && (first.ranks.aligned || second.ranks.aligned))
      void this.again();
    else this.ready();
  }

  /** Once a run is there, or they lie otherwise: what can be looked at is another stretch. */
  ready() {
    const { first, second } = this;
    if (!first.of || !second.of) return;
    for (const viewer of [first, second]) {
      viewer.overview.forget();
      viewer.overview.ask();
      viewer.lay();
    }
    first.explain();
    if (first.from !== first.shown)
      first.look(first.from, first.to); // it was moved meanwhile
    else if (this.wanted) first.look(this.wanted.from, this.wanted.to);
    else this.shorter();
    first.shown = NaN;
  }

  /** All of the shorter run: beside it the longer one may last a million times as long. */
  shorter() {
    const { first, second } = this,
      there = this.span(first),
      [a, b] = [first.ends - first.begins, (second.ends - second.begins) * this.tick(first)];
    if (there && b < a) first.look(there.first, there.last);
    else first.look(first.begins, first.ends);
  }

  /** To a step, at whose begin both are then laid over one another. @param {string} text */
  async step(text) {
    const long = await this.align(text);
    if (long === null) return;
    const room = Math.max(long * ROOM, 1);
    this.first.put(this.at - room, this.at + long + room);
    this.ready();
  }

  /**
   * How long the step took at most, as the first run counts. Where either has none, null, and they lie as they did.
   * @param {string} text
   */
  async align(text) {
    const { first, second } = this,
      number = encodeURIComponent(text);
    try {
      const [mine, other] = await Promise.all(
        [first, second].map(async (viewer) => {
          const path = address(`runs/${viewer.run}/timeline/step?number=${number}${viewer.ranks.clocks}`);
          return (await answer(path).catch((error) => this.refused(viewer, error))).json();
        }),
      );
      if (first.pair !== this || !atHome(first)) return null;
      [this.at, this.otherAt, this.stepped] = [mine.start, other.start, Number(text)];
      this.keep();
      this.say(`Both lie over one another at the beginning of step ${Number(text).toLocaleString("en")}.`);
      first.say("");
      return Math.max(mine.end - mine.start, (other.end - other.start) * this.tick(first));
    } catch (error) {
      first.say(error, "They lie as they did");
      return null;
    }
  }

  /**
   * Whose refusal it is.
   * @param {Viewer} viewer
   * @param {unknown} error
   * @returns {never}
   */
  refused(viewer, error) {
    if (error instanceof Refused) throw new Refused(`${viewer.which}: ${error.message}`, error.status);
    throw error;
  }

  /** Clocks were aligned, or no longer: the step begins elsewhere. */
  async again() {
    if (this.stepped !== null) await this.align(String(this.stepped));
    this.ready();
  }

  /** The address says at which step. */
  keep() {
    const said = new URLSearchParams(location.search);
    said.set(STEP, String(this.stepped));
    history.replaceState(history.state, "", `${location.pathname}?${said}${location.hash}`);
  }

  /** One run alone again. */
  end() {
    const { first } = this;
    first.pair = null;
    first.which = "";
    this.say("");
    first.explain();
    first.overview.forget();
    first.overview.ask();
    first.lay();
    first.look(first.from, first.to);
  }
}

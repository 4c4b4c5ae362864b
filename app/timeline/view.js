// The viewer: where it looks, and what it shows of it.

/** @import { Described, Held, Lane, Line } from "./types.d.ts" */
/** @import { Pair } from "./pair.js" */

import { part } from "../components/parts.js";
import { BEYOND, standing, wanted } from "./asking.js";
import { legend } from "./cards.js";
import { Choice } from "./choice.js";
import { lasted, when } from "./clock.js";
import { Colours } from "./colours.js";
import { Drawing, LABELS } from "./drawing.js";
import { listen } from "./gestures.js";
import { atHome, home, read, write } from "./home.js";
import { Labels } from "./labels.js";
import { Layout, ROW } from "./layout.js";
import { Marks } from "./marks.js";
import { Overview } from "./overview.js";
import { Picked } from "./picked.js";
import { Ranks } from "./ranks.js";
import { Search } from "./search.js";
import { address, answer, Refused, rowsOf, Tiles } from "./tiles.js";

const NEAREST_PS = 200,
  BEYOND_PX = 12 * ROW,
  MOST_ROWS = 380,
  LEAST_HIGH = 180,
  MOST_HIGH = 640,
  OF_WINDOW = 0.7,
  TELL_MS = 300,
  AGAIN_MS = 4_000,
  UNMOVED = 1e-4, // of the window: at the last step numbers round
  FINEST = 2 ** -46; // of the whole: numbers of 53 bits tell no less apart

export class Viewer {
  /**
   * @param {HTMLElement} root
   * @param {string} run
   * @param {string} written
   * @param {string} [letter] before the names by which the address tells of it, where it is the second of two runs
   */
  constructor(root, run, written, letter = "") {
    this.root = root;
    this.run = run;
    this.letter = letter;
    /** The run in words, where two are shown. */
    this.which = "";
    /** The other run, and how the two lie over one another. @type {Pair | null} */
    this.pair = null;
    this.tiles = new Tiles(run, written);
    this.stage = part(root, ".stage", HTMLElement);
    this.canvas = part(root, ".picture", HTMLCanvasElement);
    this.tip = part(root, ".tip", HTMLElement);
    this.drawing = new Drawing(this.canvas);
    this.search = new Search(this);
    this.choice = new Choice(this);
    this.picked = new Picked(this);
    this.overview = new Overview(this);
    this.ranks = new Ranks(this);
    this.marks = new Marks(this);
    this.colours = new Colours(this);
    this.labels = new Labels(
      part(root, ".lanes", HTMLElement),
      (lane) => this.changed(lane, () => this.layout?.fold(lane, this.most)),
      (lane) => this.changed(lane, () => this.pin(lane)),
    );
    /** @type {Described | null} */
    this.of = null;
    /** @type {Layout | null} */
    this.layout = null;
    /** @type {Held | null} */
    this.held = null;
    /** Rows on the screen. @type {Line[]} */
    this.seen = [];
    this.from = 0;
    this.to = 1;
    this.shown = NaN; // where it looked at first
    this.frame = 0;
    this.started = this.lost = false;
    this.home = home();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.told = this.retry = undefined;
  }

  begin() {
    this.home = home();
    if (!this.started) listen(this);
    this.started = true;
    if (!this.of) this.describe();
    else if (this.told !== undefined) this.soon();
    this.later();
  }

  describe() {
    answer(address(`runs/${this.run}/timeline`))
      .then((got) => got.json())
      .then((/** @type {Described} */ of) => this.show(of))
      .catch((error) => {
        this.say(error);
        this.again(error, () => this.describe());
      });
  }

  /** Asks once more, later, and while the page is shown, where the server did not answer at all. @param {unknown} error @param {() => void} what */
  again(error, what) {
    clearTimeout(this.retry);
    if (error instanceof Refused && error.status === 0) this.retry = setTimeout(() => atHome(this) && what(), AGAIN_MS);
  }

  /** Streamlit calls this as the page is left, and before it calls `begin` again: that goes on with what waited. */
  end() {
    this.tip.hidden = true;
    clearTimeout(this.told);
    clearTimeout(this.retry);
  }

  /** For good. */
  leave() {
    this.end();
    this.root.remove();
  }

  /**
   * @param {unknown} error
   * @param {string} what
   */
  say(error, what = "The timeline cannot be drawn") {
    const said = part(this.root, ".said", HTMLElement);
    said.hidden = !error;
    said.textContent = error ? `${what}: ${error instanceof Error ? error.message : error}` : "";
  }

  /** For who does not see the picture. @param {string} text */
  said(text) {
    part(this.root, ".live", HTMLElement).textContent = text;
  }

  /** @param {Described} of */
  async show(of) {
    if (this.of || !atHome(this)) return;
    this.say("");
    await this.ranks.restore(of);
    if (this.of || !atHome(this)) return;
    this.of = of;
    of.looks = { ...of.codes, ...of.kinds };
    this.layout = new Layout(of);
    this.layout.arrange(this.ranks.order);
    const { from, to, at, row, pick, pickRows, pins, kinds } = read(this.letter);
    this.colours.restore(kinds);
    for (const one of pins) {
      const lane = this.layout.laneOf(one);
      if (lane && !this.layout.pinned.has(lane)) this.layout.pin(lane, this.most);
    }
    if (this.letter) this.put(this.begins, this.ends);
    else if (to > from && Number.isFinite(to - from)) this.look(from, to);
    else this.look(this.first, this.last);
    this.shown = this.from;
    this.explain();
    this.lay();
    this.overview.ask();
    const [a, b] = pick;
    if (b > a && a >= this.begins && a < this.ends) {
      this.picked.set(a, Math.min(b, this.ends), rowsOf(pickRows, this.layout.rows));
      this.picked.settle();
    }
    if (at !== null) this.choice.open(at, row);
    if (row !== null) this.reach(row, null);
    void this.marks.ask();
    this.pair?.there();
  }

  /** What colours mean, of both runs. */
  codes() {
    return Object.values({ ...this.pair?.other(this).colours.legend, ...this.colours.legend });
  }

  /** The same in words. */
  explain() {
    legend(part(this.root, ".legend", HTMLElement), this.codes());
  }

  /** The stage is as high as its lanes, within bounds. */
  lay() {
    const layout = this.layout;
    if (!layout) return;
    part(this.root, ".tall", HTMLElement).style.height = `${layout.tall}px`;
    this.stage.style.height = `${Math.round(Math.min(Math.max(layout.high + 8, LEAST_HIGH), this.most))}px`;
    this.later();
  }

  /** How high the stage may be: half of it is for pinned lanes, also where an address names them. */
  get most() {
    return Math.max(MOST_HIGH, innerHeight * OF_WINDOW) / (this.pair ? 2 : 1);
  }

  /**
   * @param {Lane} lane
   * @param {() => void} what
   */
  changed(lane, what) {
    what();
    this.lay();
    this.tell();
    const pinned = this.layout?.pinned.has(lane) ? ", kept on top" : "";
    this.said(`${lane.title}: ${this.layout?.folded.has(lane) ? "folded" : "open"}${pinned}.`);
  }

  /** @param {Lane} lane */
  pin(lane) {
    const room = this.layout?.pin(lane, this.most);
    if (room === false) this.say("others would not be seen", "No more lanes can be kept on top");
    else this.say("");
  }

  /** Where the first event begins. */
  get begins() {
    return this.ranks.aligned ? Math.min(this.ranks.aligned.start_tick, 0) : 0;
  }

  /** Where the last ends. */
  get ends() {
    const end = this.of?.span_ticks ?? 1;
    return this.ranks.aligned ? Math.max(this.ranks.aligned.end_tick, end) : end;
  }

  /** Where what can be looked at begins: the earlier run of two. */
  get first() {
    return Math.min(this.begins, this.pair?.span(this)?.first ?? this.begins);
  }

  /** Where it ends. */
  get last() {
    return Math.max(this.ends, this.pair?.span(this)?.last ?? this.ends);
  }

  /** The whole run. */
  fit() {
    this.look(this.first, this.last);
  }

  get wide() {
    return Math.max(this.stage.clientWidth - LABELS, 50);
  }

  /** How far the lanes moved up. */
  get scrolled() {
    return this.stage.scrollTop * (this.layout?.pace(this.stage.clientHeight) ?? 1);
  }

  later() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  draw() {
    const { of, layout, drawing } = this;
    if (!of || !layout || !this.stage.clientWidth) return;
    drawing.size(this.stage.clientWidth, this.stage.clientHeight);
    const scrolled = this.scrolled;
    this.seen = layout.seen(scrolled, this.stage.clientHeight);
    drawing.draw({
      of,
      lines: this.seen,
      held: this.held,
      from: this.from,
      to: this.to,
      chosen: this.choice.event,
      looked: this.search.looked,
      picked: this.picked.stretch,
      arrows: this.choice.arrows,
      marks: this.marks.shown,
      anchor: this.pair?.anchor(this) ?? null,
      marked: this.marks.chosen,
      under: layout.under,
      middle: (row) => layout.middle(row, scrolled),
    });
    this.labels.show(this.seen, layout.folded, layout.under);
    this.overview.draw(drawing.ink);
    part(this.root, ".where", HTMLElement).textContent = this.where();
    this.ask(layout);
  }

  /** The window in words. */
  where() {
    const of = this.of;
    if (!of) return "";
    const at = of.origin_ns === null ? "" : ` from ${when(of.origin_ns, this.from * of.tick_ps)}`;
    return `${lasted((this.to - this.from) * of.tick_ps)}${at}${this.ranks.aligned ? ", clocks aligned" : ""}`;
  }

  /**
   * Marks for what is seen, where those that are held do not do.
   * @param {Layout} layout
   */
  ask(layout) {
    const shown = this.seen.map((line) => line.row),
      window = { from: this.from, to: this.to, wide: this.wide, first: this.begins, last: this.ends },
      stands = shown.length ? standing(this.held, shown, window) : "sharp";
    this.stage.setAttribute("aria-busy", String(stands === "coming"));
    if (stands === "sharp") return;
    const { from, to, pixels } = wanted(window);
    const around = layout.seen(this.scrolled - BEYOND_PX, this.stage.clientHeight + 2 * BEYOND_PX);
    const rows = [...new Set([...shown, ...around.map((line) => line.row)])].slice(0, MOST_ROWS).sort((a, b) => a - b);
    this.tiles
      .get(rows, from, to, pixels)
      .then((found) => {
        if (!found) return;
        this.held = found;
        if (this.lost) this.say("");
        this.lost = false;
        this.overview.ask();
        this.later();
      })
      .catch((error) => {
        this.say(error);
        this.lost = true;
        this.again(error, () => this.later());
      });
  }

  /**
   * Look at another stretch.
   * @param {number} from
   * @param {number} to
   */
  look(from, to) {
    const of = this.of;
    if (!of || Number.isNaN(from + to)) return;
    const beyond = (this.last - this.first) * BEYOND,
      span = this.within(to - from, of),
      least = this.first - beyond,
      start = Math.max(Math.min((from + to) / 2 - span / 2, Math.max(this.last + beyond - span, least)), least);
    this.put(start, start + span);
    this.pair?.moved(this);
  }

  /**
   * The window, as it is.
   * @param {number} from
   * @param {number} to
   */
  put(from, to) {
    [this.from, this.to] = [from, to];
    this.tip.hidden = true;
    this.soon();
    this.later();
  }

  /** As wide as a window may be. @param {number} span @param {Described} of */
  within(span, of) {
    const whole = this.last - this.first,
      least = Math.max(NEAREST_PS / of.tick_ps, 1, whole * FINEST, this.pair?.tick(this) ?? 0);
    return Math.max(Math.min(span, whole * (1 + BEYOND)), least);
  }

  soon() {
    clearTimeout(this.told);
    this.told = setTimeout(() => this.tell(), TELL_MS);
  }

  /** The address says what is looked at, and so does a line for who does not see it. */
  tell() {
    this.told = undefined;
    if (!atHome(this)) return;
    write(this);
    this.said(`${this.which ? `${this.which}. ` : ""}The window shows ${this.where()}. ${this.choice.words}`);
  }

  /**
   * @param {number} factor
   * @param {number} x
   */
  zoom(factor, x) {
    if (!this.of) return;
    const at = this.at(Math.min(Math.max(x, LABELS), LABELS + this.wide)),
      span = this.to - this.from,
      by = this.within(span * factor, this.of) / span;
    if (Math.abs(by - 1) > UNMOVED) this.look(at - (at - this.from) * by, at + (this.to - at) * by);
  }

  /** @param {number} share */
  move(share) {
    const by = (this.to - this.from) * share;
    this.look(this.from + by, this.to + by);
  }

  /** The instant at a pixel of the stage. @param {number} x */
  at(x) {
    return this.from + ((this.to - this.from) * (x - LABELS)) / this.wide;
  }

  /**
   * Scrolls to a row and looks at an instant, unless they are seen.
   * @param {number} row
   * @param {number | null} tick
   */
  reach(row, tick) {
    const layout = this.layout,
      lane = layout?.laneOf(row),
      high = this.stage.clientHeight;
    if (!layout || !lane) return;
    if (layout.folded.has(lane) && row > lane.row) this.changed(lane, () => layout.fold(lane, this.most));
    const y = layout.middle(row, this.scrolled) ?? 0;
    if (!layout.pinned.has(lane) && (y < layout.under || y > high - ROW))
      this.stage.scrollTop += (y - high / 2) / layout.pace(high);
    const span = this.to - this.from;
    if (tick !== null && (tick < this.from || tick > this.to)) this.look(tick - span / 2, tick + span / 2);
    this.later();
  }

  /** Where a step is; without a number the window stays. @param {string} text */
  step(text) {
    if (!text.trim()) return;
    if (this.pair) {
      void this.pair.step(text.trim());
      return;
    }
    answer(address(`runs/${this.run}/timeline/step?number=${encodeURIComponent(text.trim())}${this.ranks.clocks}`))
      .then((got) => got.json())
      .then(({ start, end }) => {
        if (!atHome(this)) return;
        this.say("");
        this.look(start - (end - start) * BEYOND, end + (end - start) * BEYOND);
      })
      .catch((error) => this.say(error, "That step is not shown"));
  }

  /** Selects what is shown. */
  pickShown() {
    const from = Math.max(this.from, this.begins),
      to = Math.min(this.to, this.ends);
    if (to <= from) return;
    this.picked.set(from, to, null);
    this.picked.settle();
  }

  /** The last that was opened is closed first. */
  close() {
    if (this.picked.stretch) this.picked.clear();
    else this.choice.close();
  }
}

// The viewer: where it looks, what it asks for, and what is told of what was chosen.

/** @import { Described, Held, Lane, Line } from "./types.d.ts" */

import { part } from "../components/parts.js";
import { card, legend, words } from "./cards.js";
import { lasted, when } from "./clock.js";
import { Drawing, LABELS, RULER, ROW } from "./drawing.js";
import { listen } from "./gestures.js";
import { address, answer, Tiles } from "./tiles.js";

const NEAREST_PS = 200,
  FARTHEST = 1.05,
  ROWS_BEYOND = 12,
  MANY_ROWS = 40,
  FINEST = 2 ** -46; // of the whole: numbers of 53 bits tell no less apart

export class Viewer {
  /**
   * @param {HTMLElement} root
   * @param {string} run
   * @param {string} written
   */
  constructor(root, run, written) {
    this.root = root;
    this.run = run;
    this.tiles = new Tiles(run, written);
    this.stage = part(root, ".stage", HTMLElement);
    this.canvas = part(root, ".picture", HTMLCanvasElement);
    this.tip = part(root, ".tip", HTMLElement);
    this.drawing = new Drawing(this.canvas);
    /** @type {Described | null} */
    this.of = null;
    /** @type {Held | null} */
    this.held = null;
    /** @type {Line[]} */
    this.lines = [];
    /** @type {Set<Lane>} */
    this.folded = new Set();
    /** Events that bear the name looked for: number, start and duration. @type {[number, number, number][]} */
    this.hits = [];
    this.hit = -1;
    this.from = 0;
    this.to = 1;
    this.chosen = -1;
    this.frame = 0;
    this.started = this.lost = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.told = undefined;
  }

  begin() {
    if (this.started) {
      this.later();
      return;
    }
    this.started = true;
    listen(this);
    answer(address(`runs/${this.run}/timeline`))
      .then((got) => got.json())
      .then((/** @type {Described} */ of) => this.show(of))
      .catch((error) => this.say(error));
  }

  end() {
    this.tip.hidden = true;
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

  /** @param {Described} of */
  show(of) {
    this.of = of;
    const rows = of.lanes.reduce((sum, lane) => sum + lane.rows, 0);
    for (const lane of of.lanes) if (rows > MANY_ROWS && lane.rows > 2 && lane.group === "host") this.folded.add(lane);
    const said = new URLSearchParams(location.search);
    const [from, to] = [Number(said.get("from")), Number(said.get("to"))];
    if (to > from && Number.isFinite(to - from)) this.look(from, to);
    else this.look(0, of.span_ticks);
    legend(part(this.root, ".legend", HTMLElement), of);
    this.lay();
    if (said.get("at")) this.open(Number(said.get("at")));
  }

  /** Which rows stand where. */
  lay() {
    const of = this.of;
    if (!of) return;
    this.lines = [];
    let top = RULER;
    for (const lane of of.lanes) {
      const shown = this.folded.has(lane) ? 1 : lane.rows;
      for (let r = 0; r < shown; r++) {
        this.lines.push({ lane, row: lane.row + r, top, head: r === 0 });
        top += ROW;
      }
      top += 4;
    }
    part(this.root, ".tall", HTMLElement).style.height = `${top}px`;
    const high = Math.min(Math.max(top + 8, 180), 640);
    this.stage.style.height = `${high}px`;
    this.later();
  }

  get wide() {
    return Math.max(this.stage.clientWidth - LABELS, 50);
  }

  later() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  draw() {
    const of = this.of;
    if (!of || !this.stage.clientWidth) return;
    this.drawing.size(this.stage.clientWidth, this.stage.clientHeight);
    const seen = this.seen();
    this.drawing.draw(
      of,
      seen,
      this.held,
      this.from,
      this.to,
      this.stage.scrollTop,
      this.chosen,
      this.hits,
      this.folded,
    );
    const span = lasted((this.to - this.from) * of.tick_ps);
    const at = of.origin_ns === null ? "" : ` from ${when(of.origin_ns, this.from * of.tick_ps)}`;
    part(this.root, ".where", HTMLElement).textContent = `${span}${at}`;
    this.ask(seen);
  }

  /** Rows on the screen. */
  seen() {
    const top = this.stage.scrollTop - ROW,
      end = this.stage.scrollTop + this.stage.clientHeight;
    return this.lines.filter((line) => line.top >= top && line.top <= end);
  }

  /** @param {Line[]} seen */
  ask(seen) {
    const of = this.of,
      span = this.to - this.from;
    if (!of || !seen.length) return;
    const first = Math.max(this.lines.indexOf(seen[0]) - ROWS_BEYOND, 0);
    const rows = this.lines.slice(first, first + seen.length + 2 * ROWS_BEYOND).map((line) => line.row);
    const held = this.held;
    const enough =
      held &&
      held.from <= Math.max(this.from, 0) &&
      held.to >= Math.min(this.to, of.span_ticks) &&
      held.to - held.from < 4 * span &&
      held.to - held.from > 1.2 * Math.min(span, of.span_ticks / 1.3) &&
      seen.every((line) => held.rows.includes(line.row));
    if (enough) return;
    const from = Math.round(this.from - span),
      to = Math.round(this.to + span);
    rows.sort((a, b) => a - b);
    this.tiles
      .get(rows, from, to, Math.round(3 * this.wide * Math.min(devicePixelRatio, 1.5)))
      .then((found) => {
        if (!found) return;
        this.held = found;
        if (this.lost) this.say("");
        this.lost = false;
        this.later();
      })
      .catch((error) => {
        this.lost = true;
        this.say(error);
      });
  }

  /**
   * Look at another stretch.
   * @param {number} from
   * @param {number} to
   */
  look(from, to) {
    const of = this.of;
    if (!of) return;
    const most = of.span_ticks * FARTHEST,
      least = Math.max(NEAREST_PS / of.tick_ps, 1, of.span_ticks * FINEST);
    let span = Math.min(Math.max(to - from, least), most);
    const middle = (from + to) / 2;
    const beyond = of.span_ticks * (FARTHEST - 1);
    let start = middle - span / 2;
    start = Math.min(Math.max(start, -Math.max(beyond, 0)), Math.max(of.span_ticks + beyond - span, -beyond));
    span = Math.max(span, least);
    this.from = start;
    this.to = start + span;
    this.tip.hidden = true;
    clearTimeout(this.told);
    this.told = setTimeout(() => this.tell(), 300);
    this.later();
  }

  /** The address says what is looked at. */
  tell() {
    const said = new URLSearchParams(location.search);
    said.set("from", String(Math.round(this.from)));
    said.set("to", String(Math.round(this.to)));
    if (this.chosen >= 0) said.set("at", String(this.chosen));
    else said.delete("at");
    history.replaceState(history.state, "", `${location.pathname}?${said}${location.hash}`);
  }

  /**
   * @param {number} factor
   * @param {number} x
   */
  zoom(factor, x) {
    const at = this.from + ((this.to - this.from) * Math.min(Math.max(x - LABELS, 0), this.wide)) / this.wide;
    this.look(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  /** @param {number} share */
  move(share) {
    const by = (this.to - this.from) * share;
    this.look(this.from + by, this.to + by);
  }

  /** @param {PointerEvent} event */
  pointed(event) {
    const of = this.of,
      mark = event.buttons ? null : this.under(event);
    this.tip.hidden = mark === null || !of;
    if (!of || !mark || !this.held) return;
    this.tip.textContent = words(of, this.held.tile, mark.mark);
    this.tip.style.left = `${Math.min(event.clientX + 12, innerWidth - 400)}px`;
    this.tip.style.top = `${event.clientY + 16}px`;
  }

  /** @param {PointerEvent} event */
  clicked(event) {
    const { left, top } = this.canvas.getBoundingClientRect();
    if (event.clientX - left < LABELS) {
      this.fold(event.clientY - top + this.stage.scrollTop);
      return;
    }
    const mark = this.under(event);
    if (mark && this.held) this.open(this.held.tile.event[mark.mark]);
    else this.close();
  }

  /**
   * What is under the pointer.
   * @param {PointerEvent} event
   */
  under(event) {
    const { left, top } = this.canvas.getBoundingClientRect();
    const x = event.clientX - left,
      y = event.clientY - top + this.stage.scrollTop;
    const line = this.lines.find((one) => y >= one.top && y < one.top + ROW);
    if (!line || x < LABELS || !this.held || y - this.stage.scrollTop < RULER) return null;
    const at = this.from + ((this.to - this.from) * (x - LABELS)) / this.wide;
    return this.drawing.find(this.held, line.row, at, ((this.to - this.from) / this.wide) * 2);
  }

  /** @param {number} y */
  fold(y) {
    const line = this.lines.find((one) => y >= one.top && y < one.top + ROW);
    if (!line || line.lane.rows < 2) return;
    if (!this.folded.delete(line.lane)) this.folded.add(line.lane);
    this.lay();
  }

  /** @param {number} event */
  open(event) {
    this.chosen = event;
    answer(address(`runs/${this.run}/timeline/event?event=${event}`))
      .then((got) => got.json())
      .then((told) => {
        if (this.chosen !== event || !this.of) return; // another one was chosen meanwhile
        card(part(this.root, ".card", HTMLElement), told, this.of);
        this.say("");
      })
      .catch((error) => this.say(error, "That event is not told"));
    this.tell();
    this.later();
  }

  close() {
    this.chosen = -1;
    part(this.root, ".card", HTMLElement).hidden = true;
    this.tell();
    this.later();
  }

  /** @param {string} text */
  find(text) {
    const said = part(this.root, ".hits", HTMLElement);
    [this.hits, this.hit] = [[], -1];
    const able = (/** @type {boolean} */ some) => {
      for (const name of [".before", ".after"]) part(this.root, name, HTMLButtonElement).disabled = !some;
    };
    able(false);
    said.textContent = "";
    this.later();
    if (!text.trim()) return;
    answer(address(`runs/${this.run}/timeline/search?q=${encodeURIComponent(text.trim())}`))
      .then((got) => got.json())
      .then((told) => {
        if (part(this.root, ".q", HTMLInputElement).value !== text) return; // something else is looked for
        this.say("");
        this.hits = told.events;
        said.textContent = `${told.hits.toLocaleString("en")} found`;
        able(told.hits > 0);
        this.walk(1);
      })
      .catch((error) => this.say(error, "Nothing was found"));
  }

  /** To the next hit or the one before. @param {number} by */
  walk(by) {
    if (!this.hits.length) return;
    this.hit = (this.hit + by + this.hits.length) % this.hits.length;
    const [event, start, dur] = this.hits[this.hit];
    const span = Math.max(dur * 8, Math.min(this.to - this.from, dur * 60 + 1));
    this.look(start + dur / 2 - span / 2, start + dur / 2 + span / 2);
    this.open(event);
  }
}

// Which row of which lane stands where on the stage: pinned lanes on top, the others scroll beneath them.

/** @import { Described, Lane, Line } from "./types.d.ts" */

export const RULER = 26;
export const ROW = 18;
const GAP = 4,
  TALLEST_PX = 8_000_000, // browsers draw no element higher than about twice that
  MANY_ROWS = 40;

export class Layout {
  /** @param {Described} of */
  constructor(of) {
    this.of = of;
    /** @type {Set<Lane>} */
    this.folded = new Set();
    /** @type {Set<Lane>} */
    this.pinned = new Set();
    /** In which order they stand. */
    this.lanes = of.lanes;
    this.rows = of.lanes.reduce((sum, lane) => sum + lane.rows, 0);
    for (const lane of of.lanes)
      if (this.rows > MANY_ROWS && lane.rows > 2 && lane.group === "host") this.folded.add(lane);
    /** Lanes that scroll, and where each begins below the ruler and the pinned ones; one more: their end. */
    /** @type {Lane[]} */
    this.loose = [];
    this.tops = new Float64Array(1);
    /** @type {Map<Lane, number>} */
    this.places = new Map();
    this.held = 0;
    this.lay();
  }

  /** How many rows of a lane are shown. @param {Lane} lane */
  shown(lane) {
    return this.folded.has(lane) ? Math.min(lane.rows, 1) : lane.rows;
  }

  /** Lanes by number; null: as they are recorded. @param {number[] | null} order */
  arrange(order) {
    const lanes = this.of.lanes;
    this.lanes = order ? order.flatMap((n) => lanes[n] ?? []) : lanes;
    this.lay();
  }

  lay() {
    this.loose = this.lanes.filter((lane) => !this.pinned.has(lane));
    this.tops = new Float64Array(this.loose.length + 1);
    this.places.clear();
    let top = 0;
    this.loose.forEach((lane, i) => {
      this.tops[i] = top;
      this.places.set(lane, top);
      top += this.shown(lane) * ROW + GAP;
    });
    this.tops[this.loose.length] = top;
    let high = 0;
    for (const lane of this.pinned) {
      this.places.set(lane, high);
      high += this.shown(lane) * ROW + GAP;
    }
    this.held = high;
  }

  /** Where lanes begin that scroll. */
  get under() {
    return RULER + this.held;
  }

  /** Of all, as if there were no limit. */
  get high() {
    return this.under + this.tops[this.loose.length];
  }

  /** Of the element that is scrolled. */
  get tall() {
    return Math.min(this.high, TALLEST_PX);
  }

  /** How far lanes move for each pixel that is scrolled. @param {number} view height of the stage */
  pace(view) {
    return this.high > TALLEST_PX ? (this.high - view) / (TALLEST_PX - view) : 1;
  }

  /**
   * The rows on the screen; `scrolled`: how far the lanes moved.
   * @param {number} scrolled
   * @param {number} view
   * @returns {Line[]}
   */
  seen(scrolled, view) {
    /** @type {Line[]} */
    const lines = [];
    for (const lane of this.pinned) this.add(lines, lane, RULER + (this.places.get(lane) ?? 0), RULER, view, true);
    for (let i = this.first(scrolled); i < this.loose.length; i++) {
      const top = this.under + this.tops[i] - scrolled;
      if (top > view) break;
      this.add(lines, this.loose[i], top, this.under, view, false);
    }
    return lines;
  }

  /** The first lane that reaches below where the screen begins. @param {number} scrolled */
  first(scrolled) {
    let [low, high] = [0, this.loose.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.tops[middle + 1] <= scrolled) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /**
   * @param {Line[]} lines
   * @param {Lane} lane
   * @param {number} top
   * @param {number} from
   * @param {number} view
   * @param {boolean} pinned
   */
  add(lines, lane, top, from, view, pinned) {
    const first = Math.max(Math.floor((from - top) / ROW), 0);
    let head = true;
    for (let r = first; r < this.shown(lane) && top + r * ROW <= view; r++) {
      const at = top + r * ROW;
      lines.push({ lane, row: lane.row + r, top: at, head: head && at >= from - ROW / 3, pinned });
      if (at >= from - ROW / 3) head = false;
    }
  }

  /** The lane of a row. @param {number} row */
  laneOf(row) {
    const lanes = this.of.lanes;
    let [low, high] = [0, lanes.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (lanes[middle].row + lanes[middle].rows <= row) low = middle + 1;
      else high = middle;
    }
    const lane = lanes[low];
    return lane && lane.row <= row ? lane : null;
  }

  /**
   * The middle of a row on the screen, also where it lies beyond; of a folded lane that of its first.
   * @param {number} row
   * @param {number} scrolled
   */
  middle(row, scrolled) {
    const lane = this.laneOf(row);
    if (!lane) return null;
    const within = Math.min(row - lane.row, Math.max(this.shown(lane) - 1, 0)) * ROW + ROW / 2;
    const top = this.places.get(lane) ?? 0;
    return this.pinned.has(lane) ? RULER + top + within : this.under + top - scrolled + within;
  }

  /**
   * A pinned lane that would take more than its share of the stage scrolls again: else its end could not be seen.
   * @param {Lane} lane
   * @param {number} view
   */
  fold(lane, view) {
    if (lane.rows < 2) return;
    if (!this.folded.delete(lane)) this.folded.add(lane);
    this.lay();
    if (this.held > (view - RULER) / 2 && !this.folded.has(lane) && this.pinned.delete(lane)) this.lay();
  }

  /**
   * Whether there was room: pinned lanes leave half of the stage to the others.
   * @param {Lane} lane
   * @param {number} view
   */
  pin(lane, view) {
    if (!this.pinned.delete(lane)) {
      const high = (/** @type {Lane} */ one) => this.shown(one) * ROW + GAP;
      if (this.held + ROW + GAP > (view - RULER) / 2) return false;
      if (this.held + high(lane) > (view - RULER) / 2) this.folded.add(lane);
      this.pinned.add(lane);
    }
    this.lay();
    return true;
  }
}

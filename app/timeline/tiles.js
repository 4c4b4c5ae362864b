// Asks for marks, and reads what comes.

/** @import { Held, Tile } from "./types.d.ts" */

const KEPT = 24;

/** What the server refused, and how. */
export class Refused extends Error {
  /**
   * @param {string} text
   * @param {number} status
   */
  constructor(text, status) {
    super(text);
    this.status = status;
  }
}

/** @param {string} path */
export function address(path) {
  return new URL(`./api/${path}`, document.baseURI).href;
}

/**
 * @param {string} url
 * @param {AbortSignal} [signal]
 * @param {RequestInit} [how]
 */
export async function answer(url, signal, how) {
  const got = await fetch(url, { ...how, signal }).catch((error) => {
    throw error instanceof TypeError ? new Refused("the server does not answer", 0) : error;
  });
  if (got.ok) return got;
  const told = await got.json().catch(() => ({}));
  throw new Refused(told.error ?? `the server answered ${got.status}`, got.status);
}

/**
 * @param {ArrayBuffer} bytes
 * @returns {Tile}
 */
export function readTile(bytes) {
  const view = new DataView(bytes);
  const length = view.getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length)));
  const n = head.marks;
  const all = new Uint8Array(bytes);
  let at = 4 + length;
  /**
   * The next column: its lowest bytes stand first, then the next ones. `beyond`: each is told as more than the last.
   * @template {Int32Array | Uint32Array | Uint16Array} T
   * @param {T} into
   * @param {boolean} [beyond]
   */
  const take = (into, beyond) => {
    const size = into.BYTES_PER_ELEMENT;
    for (let byte = 0, shift = 0; byte < size; byte++, shift += 8, at += n)
      for (let i = 0; i < n; i++) into[i] |= all[at + i] << shift;
    if (beyond) for (let i = 1; i < n; i++) into[i] += into[i - 1];
    return into;
  };
  /** @param {Uint8Array} into */
  const bytewise = (into) => {
    into.set(all.subarray(at, at + n));
    at += n;
    return into;
  };
  return {
    start: head.start_tick,
    unit: head.unit_ticks,
    shift: head.shift,
    begin: take(new Int32Array(n), true),
    width: take(new Int32Array(n)),
    event: take(new Int32Array(n), true),
    name: take(new Int32Array(n)),
    count: take(new Uint32Array(n)),
    dur: new Float32Array(take(new Uint32Array(n)).buffer),
    row: take(new Uint16Array(n), true),
    code: bytewise(new Uint8Array(n)),
    share: bytewise(new Uint8Array(n)),
  };
}

/** A number of ticks as the server reads it, also beyond what JavaScript writes in full. @param {number} ticks */
export function whole(ticks) {
  return BigInt(Math.round(ticks)).toString();
}

/** Numbers as the server reads them: `0-3,7`. @param {number[]} rows */
export function spelled(rows) {
  /** @type {string[]} */
  const parts = [];
  for (let i = 0; i < rows.length; i++) {
    const from = i;
    while (i + 1 < rows.length && rows[i + 1] === rows[i] + 1) i++;
    parts.push(i > from ? `${rows[from]}-${rows[i]}` : `${rows[from]}`);
  }
  return parts.join(",");
}

/**
 * What `spelled` wrote; null where it is no rows below `all`.
 * @param {string} text
 * @param {number} all
 */
export function rowsOf(text, all) {
  const rows = new Set();
  for (const part of text.split(",").filter(Boolean)) {
    const [from, to = from] = part.split("-").map(Number);
    if (!Number.isInteger(from) || !Number.isInteger(to)) return null;
    for (let row = Math.max(from, 0); row <= Math.min(to, all - 1); row++) rows.add(row);
  }
  return rows.size ? [...rows].sort((a, b) => a - b) : null;
}

/** What was asked for lately, and what is on the way. */
export class Tiles {
  /**
   * @param {string} run
   * @param {string} written
   */
  constructor(run, written) {
    this.run = run;
    this.written = written;
    this.clocks = "";
    this.colours = "";
    /** @type {Map<string, Held>} */
    this.kept = new Map();
    /** @type {AbortController | null} */
    this.asking = null;
    this.wanted = "";
  }

  /**
   * The marks of these rows; null where they come later, or others were asked for meanwhile.
   * @param {number[]} rows
   * @param {number} from
   * @param {number} to
   * @param {number} pixels
   * @returns {Promise<Held | null>}
   */
  async get(rows, from, to, pixels) {
    const query = this.query(rows, from, to, pixels);
    const held = this.kept.get(query);
    if (held) return held;
    if (query === this.wanted) return null;
    this.asking?.abort();
    this.asking = new AbortController();
    this.wanted = query;
    try {
      const found = await this.fetched(query, rows, from, to, pixels, this.asking.signal);
      this.kept.set(query, found);
      const oldest = this.kept.keys().next().value;
      if (this.kept.size > KEPT && oldest !== undefined) this.kept.delete(oldest);
      return found;
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") return null;
      throw error;
    } finally {
      if (this.wanted === query) this.wanted = "";
    }
  }
  /**
   * The marks of these rows, whatever else is asked for.
   * @param {number[]} rows
   * @param {number} from
   * @param {number} to
   * @param {number} pixels
   */
  one(rows, from, to, pixels) {
    return this.fetched(this.query(rows, from, to, pixels), rows, from, to, pixels);
  }

  /**
   * @param {number[]} rows
   * @param {number} from
   * @param {number} to
   * @param {number} pixels
   */
  query(rows, from, to, pixels) {
    return `start=${whole(from)}&end=${whole(to)}&pixels=${pixels}&rows=${spelled(rows)}${this.clocks}${this.colours}&written=${this.written}`;
  }

  /**
   * @param {string} query
   * @param {number[]} rows
   * @param {number} from
   * @param {number} to
   * @param {number} pixels
   * @param {AbortSignal} [signal]
   * @returns {Promise<Held>}
   */
  async fetched(query, rows, from, to, pixels, signal) {
    const got = await answer(address(`runs/${this.run}/timeline/tiles?${query}`), signal);
    const tile = readTile(await got.arrayBuffer());
    const first = new Array(rows.length + 1).fill(tile.row.length);
    for (let i = tile.row.length - 1; i >= 0; i--) first[tile.row[i]] = i;
    for (let i = rows.length - 1; i >= 0; i--) first[i] = Math.min(first[i], first[i + 1]);
    const place = new Map(rows.map((row, i) => [row, i]));
    return { tile, from, to, fine: (to - from) / pixels, rows, place, first };
  }
}

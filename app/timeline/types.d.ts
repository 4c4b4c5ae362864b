export interface Lane {
  group: string;
  host: string;
  device: number | null;
  title: string;
  line: string;
  role: string;
  row: number;
  rows: number;
  events: number;
  /** How late its rank came, in words. */
  late?: string;
}

/** How late ranks came, and how far clocks are apart: `ranked.py`. */
export interface Ranked {
  order: number[];
  ahead_ticks: number[];
  start_tick: number;
  end_tick: number;
  lateness: string;
  clocks: string;
  ranks: { rank: string; host: string; device: number; late_s: number | null; clock_ahead_s: number | null }[];
}

export interface Code {
  name: string;
  title: string;
  colour: string;
  meaning?: string;
}

export interface Described {
  span_ticks: number;
  tick_ps: number;
  origin_ns: number | null;
  events: number;
  names: string[];
  lanes: Lane[];
  codes: Record<string, Code>;
  /** What events have where colours are of kinds. */
  kinds: Record<string, Code>;
  /** Of any number that a mark may have. */
  looks: Record<string, Code>;
}

/** Marks of some rows of a window, as `packing.py` sends them. */
export interface Tile {
  start: number;
  unit: number;
  shift: number | null;
  begin: Int32Array;
  width: Int32Array;
  event: Int32Array;
  name: Int32Array;
  count: Uint32Array;
  /** Of the event, in ticks: a mark's width is rounded, or that of a bin. */
  dur: Float32Array;
  row: Uint16Array;
  code: Uint8Array;
  share: Uint8Array;
}

/** A tile with the rows and the time that it was asked for. */
export interface Held {
  tile: Tile;
  from: number;
  to: number;
  /** Ticks of a pixel, as it was asked for. */
  fine: number;
  rows: number[];
  /** Which of the tile's rows a row is. */
  place: Map<number, number>;
  /** For each row where its marks begin in the tile, and one more. */
  first: number[];
}

/** A row on the screen: of which lane, and which of all rows. `head`: its lane's label stands there. */
export interface Line {
  lane: Lane;
  row: number;
  top: number;
  head: boolean;
  pinned: boolean;
}

export interface End {
  event: number;
  row: number;
  tick: number;
}

export interface Arrow {
  from: End;
  to: End;
  kind: "launch" | "collective";
}

/** A stretch that is selected, and of which rows; null: of all. */
export interface Stretch {
  from: number;
  to: number;
  rows: number[] | null;
}

/** A second run below the first, and where the two lie over one another: `beside.py`. Ticks are each run's own. */
export interface Beside {
  run: string;
  written: string;
  /** Of both. */
  names: [string, string];
  /** At whose begin they do; null: at the first events of both. */
  step: number | null;
  at: number;
  other_at: number;
  said: string;
}

/** What a selection holds, as the server sums it. */
export interface Summed {
  seconds: number;
  events: number;
  /** Time of the ledger's strips; shares of all of it. */
  accounts: { account: string; title: string; colour: string; seconds: number; share: number }[];
  lanes: { title: string; events: number; busy_s: number }[];
}

/** What a search found: others are dim. */
export interface Looked {
  any: boolean;
  events: Set<number>;
  names: Set<number>;
}

/** A bookmark or a comment: `marks.py`. */
export interface Mark {
  id: number;
  text: string;
  who: string;
  written_ns: number;
  at: number;
  from: number;
  to: number;
  rows: number[];
  clocks: "recorded" | "aligned";
}

/** All that a picture shows. `under`: where lanes begin that scroll; `middle`: of a row on the screen. */
export interface Scene {
  of: Described;
  lines: Line[];
  held: Held | null;
  from: number;
  to: number;
  chosen: number;
  looked: Looked;
  picked: Stretch | null;
  arrows: Arrow[];
  marks: Mark[];
  marked: number | null;
  /** Where two runs are laid over one another. */
  anchor: number | null;
  under: number;
  middle: (row: number) => number | null;
}

export interface Lane {
  group: string;
  title: string;
  line: string;
  role: string;
  row: number;
  rows: number;
  events: number;
}

export interface Code {
  name: string;
  title: string;
  colour: string;
}

export interface Described {
  span_ticks: number;
  tick_ps: number;
  origin_ns: number | null;
  events: number;
  names: string[];
  lanes: Lane[];
  codes: Record<string, Code>;
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
  row: Uint16Array;
  code: Uint8Array;
  share: Uint8Array;
}

/** A tile with the rows and the time that it was asked for. */
export interface Held {
  tile: Tile;
  from: number;
  to: number;
  rows: number[];
  /** For each row where its marks begin in the tile, and one more. */
  first: number[];
}

/** A row on the screen: of which lane, and which of all rows. */
export interface Line {
  lane: Lane;
  row: number;
  top: number;
  head: boolean;
}

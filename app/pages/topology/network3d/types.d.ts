// What Python sends: `packing.py` (a network) and `picture.py` (what is shown of it).

export type Theme = "light" | "dark";
export type Coloured = Record<Theme, string>;
/** Three coordinates, in lengths of the way between neighbours. */
export type Place = number[];
/** Two ends and how the line ends there: see `scene.js`. */
export type Piece = [Place, Place, number];
/** Two ends, whether the link is lost, whether it is drawn thinner. */
export type Marked = [Place, Place, boolean, boolean];

export interface Kind extends Coloured {
  name: string;
  meaning: string;
  count: number;
  width: number;
  dash: "solid" | "dashed" | "dotted";
}

export interface Network {
  id: string;
  spec: string;
  chips: number;
  nodes: number;
  links: number;
  slices: number;
  axes: string[];
  parts: string[];
  step: number;
  linkParts: string[];
  directions: [string, Place][];
  switches: string[];
  kinds: Kind[];
  places: Int32Array;
  from: Int32Array;
  /** Less `from`: links lead to near nodes, and small numbers pack well. */
  to: Int32Array;
  kind: Int32Array;
  closes: Int32Array;
  lane: Int32Array;
  outlines: Int32Array;
  coordinates: Int32Array;
  switchKind: Int32Array;
  [part: `part ${string}`]: Int32Array;
  [linkPart: `linkPart ${string}`]: Int32Array;
}

export interface Shown {
  id: string;
  looks: {
    failed: Coloured;
    chip: Coloured;
    switch: Coloured;
    chosen: Coloured;
    ramp: Record<Theme, string[]>;
    chosenWidth: number;
  };
  plain: boolean;
  aside: boolean;
  fails: string[];
  failures: string[];
  alt: string;
  route: number[];
  routeLinks: number[];
  unit?: string;
  most?: number;
  forward?: Float32Array;
  backward?: Float32Array;
  left?: Int32Array;
  alive?: Int32Array;
}

/** A chip or a switch, or a link. */
export type What = { node: number; link?: undefined } | { link: number; node?: undefined };

/** Bytes for each piece and for each node. */
export interface Style {
  style: Uint8Array<ArrayBuffer>;
  glyph: Uint8Array<ArrayBuffer>;
}

export interface Look {
  theme: Theme;
  back: number[];
  kinds: Float32Array;
  dashes: Int32Array;
  ramp: number[];
  rampText: string[];
  failed: number[];
  failedText: string;
  chip: number[];
  packetSwitch: number[];
  chosen: number[];
  chosenText: string;
  chosenWidth: number;
  text: string;
  backText: string;
}

/** What a painter is asked to draw; `share`: the part of the lines that it draws while the picture turns. */
export interface Frame {
  camera: import("./camera.js").Camera;
  look: Look;
  ratio: number;
  dim: number;
  heated: boolean;
  moving: boolean;
  share: number;
}

export interface Painter {
  readonly lost: boolean;
  finished(): Promise<number>;
  scene(scene: import("./scene.js").Scene): void;
  style(style: Style): void;
  mark(marked: Marked[]): void;
  draw(frame: Frame): void;
}

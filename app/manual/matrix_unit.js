// The matrix unit of the docs: a product's operands in the unit's squares, and what of them is padding. The counts are
// those of `analyzers/flops/mxu.py`; a test holds the two against each other.

const SUBLANES = 8; // rows of the moving operand that go in together
const MOST = 1_000_000; // of a dimension
const MOST_LINES = 64; // between squares along one edge; more would be a grey area
const ROOM = 380; // of the longest edge of an operand, in the drawing
const LEAST = 3; // so that a thin operand can be seen
const SVG = "http://www.w3.org/2000/svg";
const REAL = "#0B7A75";
const PADDING = "#E69F00";

/**
 * @typedef {object} Product
 * @property {number} m rows of the moving operand
 * @property {number} k the dimension that is summed over
 * @property {number} n columns of the operand that is held in the unit
 * @property {number} side of the unit
 */

/**
 * @typedef {object} Edge one edge of an operand: as given, as multiplied, and in what steps
 * @property {string} name
 * @property {number} real
 * @property {number} whole
 * @property {number} step
 */

/**
 * Dimensions as they are multiplied, and the share of the multiplications that is padding.
 * @param {Product} product
 */
export function padded({ m, k, n, side }) {
  const rows = up(m, SUBLANES);
  const summed = up(k, side);
  const columns = up(n, side);
  return { rows, summed, columns, padding: 1 - (m * k * n) / (rows * summed * columns) };
}

/**
 * @param {number} value
 * @param {number} multiple
 */
function up(value, multiple) {
  return Math.ceil(value / multiple) * multiple;
}

/**
 * A share as a person reads it.
 * @param {number} share
 */
export function percent(share) {
  return `${(share * 100).toPrecision(3).replace(/\.?0+$/, "") || "0"} %`;
}

/**
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 * @param {string} text
 */
function element(name, attributes, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, `${value}`);
  made.textContent = text;
  return made;
}

/**
 * Where lines between squares stand along an edge.
 * @param {Edge} edge
 * @param {number} length of the edge in the drawing
 */
function between({ whole, step }, length) {
  const squares = whole / step;
  if (squares > MOST_LINES) return [];
  return Array.from({ length: squares - 1 }, (_, i) => ((i + 1) / squares) * length);
}

/**
 * An operand: what is real, what pads it, and the squares that it is loaded in.
 * @param {string} title
 * @param {Edge} down
 * @param {Edge} across
 * @param {number} left
 */
function operand(title, down, across, left) {
  const scale = ROOM / Math.max(down.whole, across.whole);
  const [high, wide] = [down, across].map((edge) => Math.max(edge.whole * scale, LEAST));
  const top = 62;
  const line = { stroke: "currentColor", "stroke-opacity": 0.5, "stroke-width": 0.7 };
  return [
    element("text", { x: left, y: 18, fill: "currentColor", "font-size": 15, "font-weight": 600 }, title),
    element(
      "text",
      { x: left, y: 42, fill: "currentColor", "font-size": 13 },
      [down, across].map(({ name, real, whole }) => `${name} ${real} → ${whole}`).join(",  "),
    ),
    element("rect", { x: left, y: top, width: wide, height: high, fill: PADDING }),
    element("rect", {
      x: left,
      y: top,
      width: (across.real / across.whole) * wide,
      height: (down.real / down.whole) * high,
      fill: REAL,
    }),
    ...between(down, high).map((y) =>
      element("line", { x1: left, x2: left + wide, y1: top + y, y2: top + y, ...line }),
    ),
    ...between(across, wide).map((x) =>
      element("line", { x1: left + x, x2: left + x, y1: top, y2: top + high, ...line }),
    ),
  ];
}

/**
 * The drawing, and the sentence below it.
 * @param {Product} product
 */
function draw(product) {
  const { m, k, n, side } = product;
  const { rows, summed, columns, padding } = padded(product);
  const drawing = element("svg", { viewBox: `0 0 ${2 * ROOM + 60} ${ROOM + 70}`, role: "img" });
  drawing.append(
    ...operand(
      "Moving operand: rows, eight at a time",
      { name: "m", real: m, whole: rows, step: SUBLANES },
      { name: "k", real: k, whole: summed, step: side },
      0,
    ),
    ...operand(
      `Held operand: squares of ${side} x ${side}`,
      { name: "k", real: k, whole: summed, step: side },
      { name: "n", real: n, whole: columns, step: side },
      ROOM + 60,
    ),
  );
  const squares = (summed / side) * (columns / side);
  const said =
    `${m} x ${k} by ${k} x ${n} is multiplied as ${rows} x ${summed} by ${summed} x ${columns}, in ${squares} ` +
    `${squares === 1 ? "square" : "squares"} of the unit. ${percent(padding)} of the multiplications are padding.`;
  drawing.setAttribute("aria-label", said);
  return { drawing, said };
}

/**
 * A dimension as it was given; what is none is the one before.
 * @param {string | null} text
 * @param {number} before
 */
function dimension(text, before) {
  const value = Number(text);
  return text && Number.isInteger(value) && value >= 1 && value <= MOST ? value : before;
}

/** @param {HTMLElement} box */
function begin(box) {
  const form = box.querySelector("form");
  const [place, words] = [box.querySelector(".drawing"), box.querySelector(".said")];
  if (!form || !place || !words) return;
  /** @type {Product} */
  const product = { m: 512, k: 64, n: 512, side: 128 };
  const fields = [...form.querySelectorAll("input, select")].filter(
    (field) => field instanceof HTMLInputElement || field instanceof HTMLSelectElement,
  );

  /** @param {(name: string) => string | null} given */
  function take(given) {
    for (const name of /** @type {const} */ (["m", "k", "n", "side"])) {
      product[name] = dimension(given(name), product[name]);
    }
    if (product.side !== 256) product.side = 128;
    const { drawing, said } = draw(product);
    place?.replaceChildren(drawing);
    if (words) words.textContent = said;
  }

  take((name) => new URLSearchParams(location.search).get(name));
  for (const field of fields) field.value = `${product[/** @type {keyof Product} */ (field.name)]}`;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => {
    take((name) => fields.find((field) => field.name === name)?.value ?? null);
    const { m, k, n, side } = product;
    history.replaceState(null, "", `?m=${m}&k=${k}&n=${n}&side=${side}`);
  });
}

if (typeof document !== "undefined") {
  for (const box of document.querySelectorAll(".matrix-unit")) if (box instanceof HTMLElement) begin(box);
}

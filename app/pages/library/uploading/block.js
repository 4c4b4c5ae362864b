// One upload on the page: how far it is, its files, and what became of it.

/**
 * A file as it is told.
 * @typedef {object} Told
 * @property {string} name
 * @property {number} bytes
 * @property {string} [title] its format
 * @property {"uploading" | "fetching" | "waiting" | "reading" | "read" | "left_out" | "refused"} state
 * @property {number | null} [progress] from 0 to 1
 * @property {string} [reason]
 */

/**
 * A button of a block, or a link.
 * @typedef {object} Way
 * @property {string} label
 * @property {() => void} [act]
 * @property {string} [address]
 */

/**
 * All that a block shows beside its files.
 * @typedef {object} Shown
 * @property {string} title
 * @property {string} doing
 * @property {"busy" | "done" | "failed" | "ended"} kind
 * @property {number | null} [part] of 1; null: nobody knows
 * @property {string} [detail]
 * @property {Way[]} ways
 */

const ROWS = 100; // of files; the others are counted
const STATES = {
  uploading: "uploading",
  fetching: "fetching",
  waiting: "waiting",
  reading: "reading",
  read: "read",
  left_out: "left out",
  refused: "refused",
};
const FIRST = ["refused", "left_out", "reading"]; // of more files than are shown

/** @param {number} n */
export function bytes(n) {
  for (const [factor, unit] of /** @type {const} */ ([
    [1e9, "GB"],
    [1e6, "MB"],
    [1e3, "kB"],
  ]))
    if (n >= factor) return (n / factor).toPrecision(3) + " " + unit;
  return n === 1 ? "1 byte" : n + " bytes";
}

/** @param {number} n @param {string} one */
export const count = (n, one) => `${n.toLocaleString("en")} ${one}${n === 1 ? "" : "s"}`;

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag @param {string} [name] its class @param {string} [text]
 * @returns {HTMLElementTagNameMap[K]}
 */
function made(tag, name, text) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text) element.textContent = text;
  return element;
}

export class Block {
  constructor() {
    this.element = made("section", "work");
    this.title = made("h4", "title");
    this.doing = made("p", "doing");
    this.doing.setAttribute("role", "status");
    this.bar = made("progress");
    this.bar.max = 1;
    this.detail = made("p", "detail");
    this.ways = made("p", "buttons");
    this.files = made("details", "list");
    this.summary = made("summary");
    this.rows = made("ul");
    this.more = made("p", "detail");
    this.files.append(this.summary, this.rows, this.more);
    this.files.hidden = true;
    this.element.append(this.title, this.doing, this.bar, this.detail, this.files, this.ways);
    /** @type {Map<string, Told>} */
    this.told = new Map();
    /** @type {Map<string, HTMLLIElement>} */
    this.drawn = new Map();
    this.waysShown = "";
    this.files.ontoggle = () => (this.touched ||= this.files.open !== this.opened);
    this.touched = false; // by the person: their choice stays
    this.opened = false;
  }

  /** @param {Shown} shown */
  show({ title, doing, kind, part, detail, ways }) {
    this.element.className = `work ${kind}`;
    this.element.setAttribute("aria-label", title);
    set(this.title, title);
    spoken(this.doing, doing);
    this.bar.hidden = kind !== "busy";
    if (part == null) this.bar.removeAttribute("value");
    else this.bar.value = part;
    set(this.detail, detail ?? "");
    const key = ways.map((way) => way.label + (way.address ?? "")).join("\n");
    if (key === this.waysShown) return; // or a button would lose the focus at each step
    this.waysShown = key;
    this.ways.replaceChildren(...ways.map(drawnWay));
  }

  /** Whether its files are listed: what a block says of one file alone need not be said twice. @param {boolean} listed */
  list(listed) {
    this.files.hidden = !listed || !this.told.size;
  }

  /** Forgets its files: others are told from here on. */
  clear() {
    this.told.clear();
    this.drawn.clear();
    this.rows.replaceChildren();
  }

  /** @param {Iterable<Told>} files those that are new or changed */
  tell(files) {
    /** @type {Told[]} */
    const changed = [];
    for (const file of files) {
      this.told.set(file.name, file);
      changed.push(file);
    }
    if (!changed.length) return;
    if (this.told.size <= ROWS) for (const file of changed) this.row(file);
    else this.choose();
    const all = [...this.told.values()];
    set(this.summary, summary(all));
    this.files.hidden = false;
    const more = all.length - this.drawn.size;
    set(this.more, more > 0 ? `and ${count(more, "file")} more` : "");
    if (!this.touched && !this.opened) {
      this.opened = all.length <= 8 || all.some((file) => file.state === "refused");
      this.files.open = this.opened;
    }
  }

  /** Draws those files of many that matter most. */
  choose() {
    /** @type {Told[]} */
    const chosen = [];
    for (const state of FIRST)
      for (const file of this.told.values()) if (file.state === state && chosen.length < ROWS) chosen.push(file);
    for (const file of this.told.values()) if (!FIRST.includes(file.state) && chosen.length < ROWS) chosen.push(file);
    const names = new Set(chosen.map((file) => file.name));
    for (const [name, row] of this.drawn)
      if (!names.has(name)) {
        row.remove();
        this.drawn.delete(name);
      }
    for (const file of chosen) this.row(file);
  }

  /** @param {Told} file */
  row(file) {
    let row = this.drawn.get(file.name);
    if (!row) {
      row = made("li");
      row.append(made("span", "mark"), made("bdi", "file"), made("span", "format"), made("span", "size"));
      row.append(made("span", "state"), made("span", "why"));
      this.drawn.set(file.name, row);
      this.rows.append(row);
    }
    const [mark, name, format, size, state, why] = /** @type {HTMLElement[]} */ ([...row.children]);
    row.className = file.state;
    mark?.setAttribute("aria-hidden", "true");
    set(name, file.name);
    name?.setAttribute("title", file.name);
    set(format, file.title ?? "");
    set(size, bytes(file.bytes));
    const moves =
      file.progress != null && file.progress < 1 && ["uploading", "fetching", "reading"].includes(file.state);
    set(state, STATES[file.state] + (moves ? ` ${Math.floor(100 * (file.progress ?? 0))} %` : ""));
    if (why) spoken(why, file.reason ?? "");
  }
}

/** @param {Way} way */
function drawnWay(way) {
  const element = way.address === undefined ? made("button", "", way.label) : made("a", "open", way.label);
  if (element instanceof HTMLAnchorElement) element.href = way.address ?? "";
  else {
    element.type = "button";
    element.onclick = () => way.act?.();
  }
  return element;
}

/** Text alone, and only where it is new: whoever has it read out hears it once. @param {Element | undefined} of @param {string} text */
function set(of, text) {
  if (of && of.textContent !== text) of.textContent = text;
}

/** The same with what stands between backticks as code. @param {Element} of @param {string} text */
function spoken(of, text) {
  if (of.getAttribute("data-said") === text) return;
  of.setAttribute("data-said", text);
  const parts = text.split("`");
  const whole = parts.length % 2 === 1; // or one stands alone
  of.replaceChildren(...(whole ? parts.map((part, n) => (n % 2 ? made("code", "", part) : part)) : [text]));
}

/** @param {Told[]} files */
function summary(files) {
  /** @param {string[]} states */
  const of = (...states) => files.filter((file) => states.includes(file.state)).length;
  const parts = [
    [of("read"), "read"],
    [of("reading", "uploading", "fetching", "waiting"), "to come"],
    [of("left_out"), "left out"],
    [of("refused"), "refused"],
  ];
  const told = parts.filter(([n]) => n).map(([n, what]) => `${n?.toLocaleString("en")} ${what}`);
  return `${count(files.length, "file")}: ${told.join(", ")}`;
}

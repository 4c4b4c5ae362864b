import { part } from "../../components/parts.js";
import { focusRow, keysOf, reachable } from "./table/keys.js";
import { button, make } from "./table/make.js";
import { menuOf } from "./table/menu.js";
import { rowOf } from "./table/row.js";

/** @import { Act, Asks, Column, Row } from "./table/row.js" */

/**
 * @typedef {object} Given
 * @property {Column[]} columns beside the name
 * @property {boolean} usual whether these are the columns of who chose none: some give way where there is little room
 * @property {{ by: string, up: boolean } | null} sort null where rows have an order of their own
 * @property {Row[]} rows
 * @property {Act[]} bulk what can be done with several
 * @property {{ text: string, undo: boolean, wrong: boolean } | null} told what came of what was asked for last
 */
/** What is kept between two drawings. */
class Table {
  /** @type {Map<string, { text: string, line: HTMLTableRowElement }>} */
  drawn = new Map();
  /** @type {Set<string>} */
  picked = new Set();
  headed = ""; // what the heads were drawn of
  /** @type {string | null} where a range begins */
  from = null;
  /** @type {Given} */
  given = { columns: [], usual: true, sort: null, rows: [], bulk: [], told: null };
  /** @type {StreamlitComponent<Given>["setTriggerValue"]} */
  tell = () => {};

  /** @param {HTMLElement | ShadowRoot} root */
  constructor(root) {
    this.root = root;
    this.table = part(root, "table", HTMLTableElement);
    this.body = part(root, "tbody", HTMLTableSectionElement);
    this.head = part(root, "thead tr", HTMLTableRowElement);
    this.bulk = part(root, ".bulk", HTMLDivElement);
    const popup = part(root, ".menu", HTMLDivElement);
    const ask = this.ask.bind(this);
    /** @type {Asks} */
    this.asks = { ask, pick: this.pick.bind(this), menu: menuOf(popup, ask), popup };
    part(root, ".undo", HTMLButtonElement).onclick = () => this.ask("undo", []);
    keysOf(this.body, {
      ask,
      rowOf: (id) => this.given.rows.find((row) => row.id === id),
      turn: (id, range) => this.pick(id, !this.picked.has(id), range),
    });
  }

  /** @param {string} act @param {string[]} ids */
  ask(act, ids) {
    this.tell("asked", { act, ids });
  }

  /** @param {string} id @param {boolean} on @param {boolean} range with all between it and the one before */
  pick(id, on, range) {
    const ids = this.given.rows.map((row) => row.id);
    const [a, b] = [range && this.from !== null ? ids.indexOf(this.from) : -1, ids.indexOf(id)];
    for (const one of a < 0 ? [id] : ids.slice(Math.min(a, b), Math.max(a, b) + 1))
      if (on) this.picked.add(one);
      else this.picked.delete(one);
    this.from = id;
    this.selection();
  }

  /** @param {Given} given */
  draw(given) {
    this.given = given;
    const was = this.focused();
    this.told();
    this.heads();
    const ids = new Set(given.rows.map((row) => row.id));
    for (const id of this.picked) if (!ids.has(id)) this.picked.delete(id);
    const before = this.drawn;
    this.drawn = new Map();
    for (const row of given.rows) {
      const text = JSON.stringify([row, given.columns]);
      const there = before.get(row.id);
      const kept = there?.text === text ? there : { text, line: rowOf(row, given.columns, this.asks) };
      this.drawn.set(row.id, kept);
    }
    const lines = [...this.drawn.values()].map(({ line }) => line);
    this.place(lines);
    const first = lines.find((line) => line.tabIndex === 0) ?? lines[0];
    if (first) reachable(this.body, first);
    this.selection();
    this.focus(was);
  }

  /** Rows in their order, those that stay where they are untouched: a press of which one moves is no click. @param {HTMLTableRowElement[]} lines */
  place(lines) {
    const stay = new Set(lines);
    for (const line of [...this.body.rows]) if (!stay.has(line)) line.remove();
    lines.forEach((line, at) => {
      const there = this.body.rows[at];
      if (there !== line) this.body.insertBefore(line, there ?? null);
    });
  }

  /** Where the focus is: a row by its run and its place, and the part of it. */
  focused() {
    const root = /** @type {ShadowRoot | Document} */ (this.body.getRootNode());
    const on = root.activeElement;
    const line = on instanceof HTMLElement ? on.closest("tr") : null;
    if (!(on instanceof HTMLElement) || !line || !this.body.contains(line)) return null;
    return { id: line.dataset["id"] ?? "", at: line.rowIndex - 1, part: on.dataset["part"] ?? "" };
  }

  /** The focus as it was; a row that is gone leaves it to the one that took its place. @param {ReturnType<Table["focused"]>} was */
  focus(was) {
    if (!was) return;
    const line = this.drawn.get(was.id)?.line ?? this.body.rows[Math.min(was.at, this.body.rows.length - 1)];
    const inner = was.part && line?.querySelector(`[data-part="${was.part}"]`);
    if (inner instanceof HTMLElement) inner.focus();
    else focusRow(this.body, line);
  }

  told() {
    const { told } = this.given;
    const line = part(this.root, ".told", HTMLParagraphElement);
    line.hidden = !told;
    line.classList.toggle("wrong", Boolean(told?.wrong));
    part(line, "span", HTMLSpanElement).textContent = told?.text ?? "";
    part(line, ".undo", HTMLButtonElement).hidden = !told?.undo;
  }

  heads() {
    const { columns, sort, usual } = this.given;
    const text = JSON.stringify([columns, sort]);
    this.table.classList.toggle("usual", usual);
    if (text === this.headed) return; // a button that is taken away while it is pressed is never clicked
    this.headed = text;
    const name = { key: "name", title: "Run", sort: sort ? "name" : "", hover: "" };
    const all = make("input", "box");
    all.type = "checkbox";
    all.setAttribute("aria-label", "Select all that are shown");
    all.onclick = () => {
      this.picked = new Set(all.checked ? this.given.rows.map((row) => row.id) : []);
      this.selection();
    };
    const first = make("th", "pick");
    first.append(all);
    this.head.replaceChildren(first, ...[name, ...columns].map((column) => this.headOf(column)), make("th", "more"));
  }

  /** @param {Column} column */
  headOf(column) {
    const cell = make("th", column.key);
    cell.scope = "col";
    cell.title = column.hover;
    const { sort } = this.given;
    if (!sort || !column.sort) {
      cell.textContent = column.title;
      return cell;
    }
    const on = sort.by === column.sort;
    cell.setAttribute("aria-sort", on ? (sort.up ? "ascending" : "descending") : "none");
    const arrow = on ? (sort.up ? " \u2191" : " \u2193") : "";
    cell.append(button("sort", column.title + arrow, column.title + arrow, () => this.ask("sort", [column.sort])));
    return cell;
  }

  /** Marks what is selected, and shows what can be done with it. */
  selection() {
    const ids = [...this.drawn.keys()].filter((id) => this.picked.has(id));
    for (const [id, { line }] of this.drawn) {
      line.classList.toggle("picked", this.picked.has(id));
      part(line, "input", HTMLInputElement).checked = this.picked.has(id);
    }
    const all = part(this.head, "input", HTMLInputElement);
    all.checked = ids.length > 0 && ids.length === this.drawn.size;
    all.indeterminate = ids.length > 0 && !all.checked;
    this.table.classList.toggle("picking", ids.length > 0);
    this.bulk.hidden = !ids.length;
    if (!ids.length) return;
    const label = make("span", "many", `${ids.length} selected`);
    const acts = this.given.bulk.map(({ act, label: said }) => button(act, said, said, () => this.ask(act, ids)));
    const none = button("clear", "\u2715", "Select none", () => {
      this.picked.clear();
      this.selection();
    });
    this.bulk.replaceChildren(label, ...acts, none);
  }
}

/** @type {WeakMap<HTMLTableElement, Table>} */
const tables = new WeakMap();

/** @param {StreamlitComponent<Given>} component */
export default function ({ parentElement, data, setTriggerValue }) {
  const element = part(parentElement, "table", HTMLTableElement);
  const table = tables.get(element) ?? new Table(parentElement);
  tables.set(element, table);
  table.tell = setTriggerValue;
  table.draw(data);
}

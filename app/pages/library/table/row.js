import { button, make } from "./make.js";

/** @typedef {{ title: string, share: number, colour: string, hatched: boolean }} Part of the ledger's bar */
/** @typedef {{ act: string, label: string }} Act */
/**
 * A run as the table shows it.
 * @typedef {object} Row
 * @property {string} id what leads to it wherever a run is asked for
 * @property {string} name
 * @property {string | null} href its page; null where it has none
 * @property {{ text: string, hover: string, state: string }[]} marks
 * @property {string[]} tags
 * @property {Record<string, string>} cells text by column
 * @property {Part[]} bar
 * @property {boolean | null} starred null where it cannot be
 * @property {{ count: number, first: string } | null} notes
 * @property {Act[]} menu
 */
/** @typedef {{ key: string, title: string, sort: string, hover: string }} Column */
/**
 * What rows ask for.
 * @typedef {object} Asks
 * @property {(act: string, ids: string[]) => void} ask
 * @property {(id: string, on: boolean, range: boolean) => void} pick
 * @property {(row: Row, from: HTMLButtonElement) => void} menu
 * @property {HTMLElement} popup the menu, one for all rows
 */

/** @param {Row} run @param {Column[]} columns @param {Asks} asks */
export function rowOf(run, columns, asks) {
  const line = make("tr");
  line.dataset["id"] = run.id;
  line.tabIndex = -1;
  line.append(pick(run, asks), name(run, asks), ...columns.map((column) => cell(run, column.key)));
  const last = make("td", "more");
  if (run.menu.length) {
    const more = button("dots", "\u22ef", "More about " + run.name, () => asks.menu(run, more));
    more.setAttribute("aria-haspopup", "menu");
    more.popoverTargetElement = asks.popup;
    last.append(more);
  }
  line.append(last);
  return line;
}

/** @param {Row} run @param {Asks} asks */
function pick(run, asks) {
  const cellOf = make("td", "pick");
  const box = make("input", "box");
  box.type = "checkbox";
  box.dataset["part"] = "box";
  box.setAttribute("aria-label", "Select " + run.name);
  box.onclick = (event) => asks.pick(run.id, box.checked, event.shiftKey);
  cellOf.append(box);
  return cellOf;
}

/** @param {Row} run @param {Asks} asks */
function name(run, asks) {
  const cellOf = make("td", "name");
  const first = make("div", "first");
  if (run.starred !== null) {
    const on = run.starred;
    const star = button(on ? "star on" : "star", on ? "\u2605" : "\u2606", "Star " + run.name, () =>
      asks.ask(on ? "unstar" : "star", [run.id]),
    );
    star.dataset["part"] = "star";
    star.setAttribute("aria-pressed", String(on));
    first.append(star);
  }
  first.append(run.href === null ? make("span", "title", run.name) : link(run, run.href, asks));
  if (run.notes) {
    const said = run.notes.count > 1 ? `${run.notes.first} (1 of ${run.notes.count} notes)` : run.notes.first;
    const note = button("note", "", `Notes of ${run.name}: ${said}`, () => asks.ask("note", [run.id]));
    note.title = said;
    first.append(note);
  }
  cellOf.append(first);
  if (run.marks.length || run.tags.length) {
    const tags = make("div", "tags");
    for (const mark of run.marks)
      tags.append(Object.assign(make("span", "mark " + mark.state, mark.text), { title: mark.hover }));
    for (const tag of run.tags) tags.append(make("span", "tag", tag));
    cellOf.append(tags);
  }
  return cellOf;
}

/** @param {Row} run @param {string} href @param {Asks} asks */
function link(run, href, asks) {
  const element = make("a", "title", run.name);
  element.href = href;
  element.target = "_self";
  element.dataset["part"] = "title";
  element.onclick = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return; // a new tab is the browser's
    event.preventDefault();
    asks.ask("open", [run.id]);
  };
  return element;
}

/** @param {Row} run @param {string} key */
function cell(run, key) {
  const cellOf = make("td", "cell " + key);
  const text = run.cells[key] ?? "";
  if (key !== "time") {
    cellOf.textContent = text;
    return cellOf;
  }
  if (run.bar.length) {
    const bar = make("div", "bar");
    bar.setAttribute("role", "img");
    bar.setAttribute("aria-label", run.bar.map(({ title }) => title).join(", "));
    for (const share of run.bar) {
      const piece = make("span", share.hatched ? "hatched" : "");
      piece.style.width = 100 * share.share + "%";
      piece.style.backgroundColor = share.colour;
      piece.title = share.title;
      bar.append(piece);
    }
    cellOf.append(bar);
  }
  cellOf.append(make("div", "under", text));
  return cellOf;
}

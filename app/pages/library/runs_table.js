import { part } from "../../components/parts.js";

/** @typedef {{ title: string, share: number, colour: string, hatched: boolean }} Part of the ledger's bar */
/** What each column is sorted by. @typedef {Record<string, string | number | null | undefined>} Keys */
/**
 * @typedef {object} Row
 * @property {string} run_id
 * @property {string} name
 * @property {string} chips
 * @property {string} model
 * @property {string} kind
 * @property {string} added
 * @property {string[]} tags
 * @property {string} [problem]
 * @property {boolean} [broken]
 * @property {boolean} [simulated]
 * @property {{ state: string, text: string } | null} [live]
 * @property {Part[]} bar
 * @property {string} under
 * @property {Keys} sort
 */
/** @typedef {{ by: string | null, up: boolean }} Sorted */

const COLUMNS = [
  ["name", "Run"],
  ["chips", "Chips"],
  ["model", "Model"],
  ["kind", "Kind"],
  ["added", "Added"],
  ["goodput", "Chip time"],
];

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {string} [className]
 * @param {string} [text]
 */
function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

/** @param {StreamlitComponent<Row[]>} component */
export default function ({ parentElement, data, setTriggerValue }) {
  /** @type {HTMLTableElement & { sorted?: Sorted }} */
  const table = part(parentElement, "table", HTMLTableElement);
  const sorted = (table.sorted ||= { by: null, up: true });

  /** @param {Row} run */
  function row(run) {
    const line = make("tr");
    const name = make("td", "name");
    const link = make("a", "", run.name);
    link.href = "/findings?run=" + encodeURIComponent(run.run_id);
    link.target = "_self";
    link.onclick = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return; // a new tab is the browser's
      event.preventDefault();
      setTriggerValue("opened", run.run_id);
    };
    name.append(link);
    const tags = make("div", "tags");
    if (run.problem) tags.append(Object.assign(make("span", "mark", "damaged"), { title: run.problem }));
    if (run.simulated) tags.append(make("span", "mark", "simulated"));
    if (run.live) tags.append(make("span", "mark live " + run.live.state, run.live.text));
    for (const tag of run.tags) tags.append(make("span", "tag", tag));
    const edit = make("button", "edit", run.tags.length ? "edit tags" : "add tags");
    edit.type = "button";
    edit.setAttribute("aria-label", "Tags of " + run.name);
    edit.onclick = () => setTriggerValue("edited", run.run_id);
    if (!run.broken) tags.append(edit);
    name.append(tags);
    line.append(
      name,
      make("td", "number chips", run.chips),
      make("td", "model", run.model),
      make("td", "kind", run.kind),
      make("td", "number added", run.added),
    );
    const time = make("td", "goodput");
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
      time.append(bar);
    }
    time.append(make("div", "under", run.under));
    line.append(time);
    return line;
  }

  function draw() {
    const head = part(table, "thead tr", HTMLTableRowElement);
    head.replaceChildren(
      ...COLUMNS.map(([key, title]) => {
        const cell = make("th", key);
        const on = sorted.by === key;
        cell.setAttribute("aria-sort", on ? (sorted.up ? "ascending" : "descending") : "none");
        const button = make("button", "", title + (on ? (sorted.up ? " \u2191" : " \u2193") : ""));
        button.type = "button";
        button.onclick = () => {
          if (on) sorted.up = !sorted.up;
          else Object.assign(sorted, { by: key, up: key === "name" || key === "model" });
          draw();
        };
        cell.append(button);
        return cell;
      }),
    );
    const runs = [...data];
    const { by } = sorted;
    if (by) {
      /** @param {Row} a @param {Row} b */
      const order = (a, b) => {
        const [x, y] = [a.sort[by] ?? null, b.sort[by] ?? null];
        if (x === y) return 0;
        if (x === null) return 1; // what is not known stands last either way
        if (y === null) return -1;
        const difference = typeof x === "string" ? x.localeCompare(String(y)) : x - Number(y);
        return (difference < 0 ? -1 : 1) * (sorted.up ? 1 : -1);
      };
      runs.sort(order);
    }
    part(table, "tbody", HTMLTableSectionElement).replaceChildren(...runs.map(row));
  }
  draw();
}

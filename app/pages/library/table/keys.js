/** @import { Row } from "./row.js" */

/**
 * What keys do in the rows: arrows move, Enter opens, x selects, s stars.
 * @param {HTMLTableSectionElement} body
 * @param {object} does
 * @param {(id: string) => Row | undefined} does.rowOf
 * @param {(act: string, ids: string[]) => void} does.ask
 * @param {(id: string, range: boolean) => void} does.turn selects a row, or no longer
 */
export function keysOf(body, { rowOf, ask, turn }) {
  body.onkeydown = (event) => {
    const on = event.target instanceof HTMLElement ? event.target : null;
    const line = on?.closest("tr");
    if (!on || !line || event.ctrlKey || event.metaKey || event.altKey) return;
    const lines = [...body.rows];
    const at = lines.indexOf(line);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: lines.length - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      focusRow(body, lines[Math.min(Math.max(to, 0), lines.length - 1)]);
      return;
    }
    const run = rowOf(line.dataset["id"] ?? "");
    if (!run) return;
    if (event.key === "Enter" && on === line && run.href !== null) ask("open", [run.id]);
    else if (event.key.toLowerCase() === "x") turn(run.id, event.shiftKey);
    else if (event.key === "s" && run.starred !== null) ask(run.starred ? "unstar" : "star", [run.id]);
    else return;
    event.preventDefault();
  };
  body.addEventListener("focusin", (event) => {
    const line = event.target instanceof HTMLElement ? event.target.closest("tr") : null;
    if (line) reachable(body, line);
  });
}

/** The one row that the tab key comes to. @param {HTMLTableSectionElement} body @param {Element} line */
export function reachable(body, line) {
  for (const other of body.rows) other.tabIndex = other === line ? 0 : -1;
}

/** @param {HTMLTableSectionElement} body @param {HTMLElement} [line] */
export function focusRow(body, line) {
  if (!line) return;
  reachable(body, line);
  line.focus();
}

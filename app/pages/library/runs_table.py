"""The list of runs: each with a small picture of its ledger, a link and its tags. Text is shown as text, not HTML."""

from typing import Any

import streamlit as st

_HTML = "<table><thead><tr></tr></thead><tbody></tbody></table>"
_CSS = """
:host { container-type: inline-size; }
table { width: 100%; border-collapse: collapse; font-family: var(--st-font); color: var(--st-text-color);
        font-size: 0.92rem; }
th, td { text-align: left; padding: 0.55rem 0.75rem 0.55rem 0; border-bottom: 1px solid var(--st-border-color);
         vertical-align: middle; }
th { font-weight: 500; opacity: 0.8; padding-top: 0.2rem; }
th button { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer; }
td.name { overflow-wrap: anywhere; min-width: 12rem; }
td.name a { color: var(--st-link-color, var(--st-primary-color)); font-weight: 600; text-decoration: none; }
td.name a:hover { text-decoration: underline; }
td.number { white-space: nowrap; }
.tags { display: flex; flex-wrap: wrap; gap: 0.25rem 0.35rem; margin-top: 0.2rem; align-items: center; }
.tag, .mark { font-size: 0.78rem; border-radius: 0.35rem; padding: 0.05rem 0.45rem;
              border: 1px solid var(--st-border-color); }
.mark { border-color: #c77700; color: var(--st-orange-text-color, #c77700); }
.mark.live { border-color: #0B7A75; color: var(--st-green-text-color, #0B7A75); }
.mark.live.stopped, .mark.live.finished { border-color: var(--st-border-color); color: inherit; opacity: 0.8; }
.edit { font: inherit; font-size: 0.78rem; color: inherit; opacity: 0.7; background: none; border: 0; cursor: pointer;
        padding: 0 0.2rem; text-decoration: underline dotted; }
.edit:hover { opacity: 1; color: var(--st-primary-color); }
.bar { display: flex; height: 0.9rem; width: 15rem; border: 1px solid rgba(128,128,128,0.55); border-radius: 3px;
       overflow: hidden; }
.bar span { height: 100%; flex: none; }
.hatched { background-image: repeating-linear-gradient(135deg, transparent 0 4px, rgba(90,90,90,0.6) 4px 5px); }
.under { font-size: 0.8rem; opacity: 0.8; margin-top: 0.15rem; }
:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
@container (max-width: 900px) { .model, .kind { display: none; } .bar { width: 9rem; } }
@container (max-width: 640px) { .added { display: none; } .bar { width: 6rem; } td.name { min-width: 0; } }
"""
_JS = """
const COLUMNS = [["name", "Run"], ["chips", "Chips"], ["model", "Model"], ["kind", "Kind"], ["added", "Added"],
                 ["goodput", "Chip time"]];

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

export default function ({ parentElement, data, setTriggerValue }) {
  const table = parentElement.querySelector("table");
  const sorted = table.sorted ||= { by: null, up: true };

  function row(run) {
    const line = make("tr");
    const name = make("td", "name");
    const link = make("a", "", run.name);
    link.href = "/ledger?run=" + encodeURIComponent(run.run_id);
    link.target = "_self";
    link.onclick = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;   // a new tab is the browser's
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
    line.append(name, make("td", "number chips", run.chips), make("td", "model", run.model),
                make("td", "kind", run.kind), make("td", "number added", run.added));
    const time = make("td", "goodput");
    if (run.bar.length) {
      const bar = make("div", "bar");
      bar.setAttribute("role", "img");
      bar.setAttribute("aria-label", run.bar.map((part) => part.title).join(", "));
      for (const part of run.bar) {
        const piece = make("span", part.hatched ? "hatched" : "");
        piece.style.width = 100 * part.share + "%";
        piece.style.backgroundColor = part.colour;
        piece.title = part.title;
        bar.append(piece);
      }
      time.append(bar);
    }
    time.append(make("div", "under", run.under));
    line.append(time);
    return line;
  }

  function draw() {
    const head = table.querySelector("thead tr");
    head.replaceChildren(...COLUMNS.map(([key, title]) => {
      const cell = make("th", key);
      const on = sorted.by === key;
      cell.setAttribute("aria-sort", on ? (sorted.up ? "ascending" : "descending") : "none");
      const button = make("button", "", title + (on ? (sorted.up ? " \\u2191" : " \\u2193") : ""));
      button.type = "button";
      button.onclick = () => {
        if (on) sorted.up = !sorted.up; else Object.assign(sorted, { by: key, up: key === "name" || key === "model" });
        draw();
      };
      cell.append(button);
      return cell;
    }));
    const runs = [...data];
    if (sorted.by) {
      const order = (a, b) => {
        const [x, y] = [a.sort[sorted.by] ?? null, b.sort[sorted.by] ?? null];
        if (x === y) return 0;
        if (x === null) return 1;                           // what is not known stands last either way
        if (y === null) return -1;
        return ((typeof x === "string" ? x.localeCompare(y) : x - y) < 0 ? -1 : 1) * (sorted.up ? 1 : -1);
      };
      runs.sort(order);
    }
    table.querySelector("tbody").replaceChildren(...runs.map(row));
  }
  draw();
}
"""

_table = st.components.v2.component("chipledger_runs", html=_HTML, css=_CSS, js=_JS)


def runs_table(rows: list[dict[str, Any]]) -> tuple[str | None, str | None]:
    """Draws the rows; returns (run to open, run whose tags to edit), each only right after it was asked for."""
    asked = _table(key="runs", data=rows, on_opened_change=lambda: None, on_edited_change=lambda: None)
    return asked.opened, asked.edited

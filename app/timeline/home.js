// The page's address: whose it is, and what it says of the view.

/** @import { Viewer } from "./view.js" */

import { spelled, whole } from "./tiles.js";

/** The page and its run: what an address must still tell for a viewer to write into it. */
export function home() {
  return { path: location.pathname, run: new URLSearchParams(location.search).get("run") };
}

/**
 * Whether the viewer is shown, and the address its own: Streamlit tells another page's address some time before the
 * viewer leaves the document, and answers may come later than either.
 * @param {Viewer} viewer
 */
export function atHome({ root, home: own }) {
  const now = home();
  return root.isConnected && now.path === own.path && (now.run === own.run || !own.run);
}

/** The address says what is looked at. @param {Viewer} viewer */
export function write({ from, to, choice, picked, layout, ranks, marks }) {
  const said = new URLSearchParams(location.search),
    { event, row } = choice,
    { stretch } = picked;
  const put = (/** @type {string} */ name, /** @type {string | null} */ value) =>
    value === null ? said.delete(name) : said.set(name, value);
  put("from", whole(from));
  put("to", whole(to));
  put("at", event >= 0 ? String(event) : null);
  put("row", event >= 0 && row !== null ? String(row) : null);
  put("pick", stretch ? `${whole(stretch.from)}-${whole(stretch.to)}` : null);
  put("pick_rows", stretch?.rows ? spelled(stretch.rows) : null);
  put("pins", [...(layout?.pinned ?? [])].map((lane) => lane.row).join(",") || null);
  put("mark", marks.chosen === null ? null : String(marks.chosen));
  put("lanes", ranks.order ? "latest" : null);
  put("clocks", ranks.aligned ? "aligned" : null);
  history.replaceState(history.state, "", `${location.pathname}?${said}${location.hash}`);
}

/** What an address says of the view. */
export function read() {
  const said = new URLSearchParams(location.search),
    number = (/** @type {string} */ name) => (said.get(name) ? Number(said.get(name)) : null);
  return {
    from: Number(said.get("from")),
    to: Number(said.get("to")),
    at: number("at"),
    row: number("row"),
    pick: (said.get("pick") ?? "").split("-").map(Number),
    pickRows: said.get("pick_rows") ?? "",
    mark: number("mark"),
    latest: said.get("lanes") === "latest",
    aligned: said.get("clocks") === "aligned",
    pins: (said.get("pins") ?? "").split(",").filter(Boolean).map(Number),
  };
}

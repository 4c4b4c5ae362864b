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

/** The address says what is looked at; of a second run names begin with its own letter. @param {Viewer} viewer */
export function write({ letter, from, to, choice, colours, picked, layout, ranks, marks }) {
  const said = new URLSearchParams(location.search),
    { event, row } = choice,
    { stretch } = picked;
  const put = (/** @type {string} */ name, /** @type {string | null} */ value) =>
    value === null ? said.delete(letter + name) : said.set(letter + name, value);
  if (!letter) {
    put("from", whole(from)); // a second run looks where the first does
    put("to", whole(to));
    put("colours", colours.kinds ? "categories" : null);
  }
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

/** What an address says of the view. @param {string} letter before names of a second run */
export function read(letter) {
  const all = new URLSearchParams(location.search),
    said = { get: (/** @type {string} */ name) => all.get(letter + name) },
    number = (/** @type {string} */ name) => (said.get(name) ? Number(said.get(name)) : null);
  return {
    from: Number(all.get("from")),
    to: Number(all.get("to")),
    at: number("at"),
    row: number("row"),
    pick: (said.get("pick") ?? "").split("-").map(Number),
    pickRows: said.get("pick_rows") ?? "",
    mark: number("mark"),
    latest: said.get("lanes") === "latest",
    aligned: said.get("clocks") === "aligned",
    kinds: all.get("colours") === "categories",
    pins: (said.get("pins") ?? "").split(",").filter(Boolean).map(Number),
  };
}

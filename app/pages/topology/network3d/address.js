// What of the picture stands in the page's address.

/** @param {string} name */
export const parameter = (name) => new URLSearchParams(window.location.search).get(name);

/** Others stay as they are written; empty ones are left out. @param {Record<string, string>} values */
export function writeParameters(values) {
  const kept = window.location.search
    .slice(1)
    .split("&")
    .filter((p) => p && !(p.split("=")[0] in values));
  const added = Object.entries(values)
    .filter(([, v]) => v)
    .map(([name, v]) => `${name}=${v}`);
  const search = "?" + [...kept, ...added].join("&");
  if (search === (window.location.search || "?")) return;
  window.history.replaceState(window.history.state, "", window.location.pathname + search + window.location.hash);
}

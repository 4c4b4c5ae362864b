import { part } from "./parts.js";

/**
 * @typedef {object} Keys
 * @property {{ key: string, name: string, title: string }[]} pages those that a letter leads to after g
 * @property {string} search the label of the library's search
 */

const AWAIT_MS = 1500; // so long the letter after g is waited for
const SEARCH_MS = 20_000; // so long the library's search is waited for
const MOVES = [
  { key: "/", name: "", title: "Search the runs" },
  { key: "[", name: "previous", title: "The run before in the list" },
  { key: "]", name: "next", title: "The next run in the list" },
  { key: "?", name: "", title: "These keys" },
];

/** What the page drew last: its keys, and how it is told of one. @type {{ data: Keys, go: (name: string) => void, dialog: HTMLDialogElement } | null} */
let latest = null;
let after = -Infinity; // when g was pressed: never, also of a page that was opened just now
let listening = false;

/** @param {Keys} data @param {HTMLElement} list */
function fill(data, list) {
  const rows = [...MOVES.map((m) => ({ ...m, lead: "" })), ...data.pages.map((p) => ({ ...p, lead: "g" }))];
  const told = document.createElement("dl");
  for (const { lead, key, title } of rows) {
    const [row, keys, what] = ["div", "dt", "dd"].map((tag) => document.createElement(tag));
    for (const one of lead ? [lead, key] : [key]) {
      const cap = document.createElement("kbd");
      cap.textContent = one;
      keys.append(cap);
    }
    what.textContent = title;
    row.append(keys, what);
    told.append(row);
  }
  list.replaceChildren(told);
}

/** Whether what is pressed there is written, or chosen, and no key of ours. @param {Event} event */
function isField(event) {
  const at = event.composedPath()[0];
  if (!(at instanceof HTMLElement)) return false;
  return at.isContentEditable || at.matches("input, textarea, select, [role=combobox], [role=listbox], [role=slider]");
}

const atLibrary = () => window.location.pathname === "/";

/** @param {string} label @param {number} until */
function focusSearch(label, until) {
  const field = [...document.querySelectorAll("input")].find((one) => one.getAttribute("aria-label") === label);
  if (field && atLibrary()) field.focus();
  else if (performance.now() < until) setTimeout(() => focusSearch(label, until), 100);
}

/** The letter after g. @param {string} key @returns {boolean} whether it leads anywhere */
function leads(key) {
  const page = latest?.data.pages.find((one) => one.key === key);
  if (page) latest?.go(page.name);
  return page !== undefined;
}

/** @param {string} key @returns {boolean} whether it is one of ours */
function pressed(key) {
  if (!latest) return false;
  if (performance.now() - after < AWAIT_MS) {
    after = -Infinity;
    return leads(key);
  }
  const move = MOVES.find((one) => one.key === key);
  if (key === "g") after = performance.now();
  else if (key === "/") {
    if (!atLibrary()) latest.go("library");
    focusSearch(latest.data.search, performance.now() + SEARCH_MS);
  } else if (key === "?") latest.dialog.showModal();
  else if (move) latest.go(move.name);
  return key === "g" || move !== undefined;
}

/** @param {KeyboardEvent} event */
function heard(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || isField(event) || latest?.dialog.open) return;
  if (event.key.length !== 1 || !pressed(event.key)) return;
  event.preventDefault(); // such as the browser's own search at /
  event.stopImmediatePropagation(); // Streamlit has keys of its own
}

/** @param {StreamlitComponent<Keys>} component */
export default function ({ parentElement, data, setTriggerValue }) {
  const dialog = part(parentElement, "dialog", HTMLDialogElement);
  fill(data, part(dialog, ".lists", HTMLElement));
  latest = { data, dialog, go: (name) => setTriggerValue("go", name) };
  const host = parentElement instanceof ShadowRoot ? parentElement.host : parentElement;
  const around = host.closest("[data-testid=stElementContainer]");
  if (around instanceof HTMLElement) around.style.position = "absolute"; // it takes no place on the page
  dialog.dataset.listening = "true";
  if (listening) return;
  listening = true;
  window.addEventListener("keydown", heard, { capture: true });
}

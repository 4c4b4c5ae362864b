import { part } from "./parts.js";

/**
 * @typedef {object} Entry a page
 * @property {string} name
 * @property {string} title
 * @property {string} asks
 * @property {string} href
 * @property {string} why it tells nothing of this run; empty: it tells
 */
/** @typedef {{ title: string, pages: Entry[] }} Group */
/** @typedef {{ page: string, text: string, colour: string }} Mark the page that explains the largest loss */
/**
 * @typedef {object} Menu
 * @property {Group[]} groups
 * @property {Mark | null} mark
 * @property {number | null} look_ms after how long to ask for the mark again; null: it is known that there is one, or none
 */

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {string} className
 * @param {string} text
 */
function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.textContent = text;
  return element;
}

/** @param {string} href */
function isHere(href) {
  return new URL(href, window.location.href).pathname === window.location.pathname;
}

/** @param {StreamlitComponent<Menu>} component */
export default function ({ parentElement, data, setTriggerValue }) {
  /** @type {HTMLElement & { opened?: string, at?: string, look?: number }} */
  const nav = part(parentElement, "nav", HTMLElement);
  const why = part(nav, ".why", HTMLElement);
  const { groups, mark, look_ms } = data;
  const path = window.location.pathname;
  const own = groups.find((group) => group.pages.some((page) => isHere(page.href)));
  if (nav.at !== path || !groups.some((group) => group.title === nav.opened)) {
    nav.at = path;
    nav.opened = (own ?? groups[0])?.title;
  }

  /** @param {Mark} told */
  function dot(told) {
    const spot = make("span", "mark", "");
    spot.style.background = told.colour;
    spot.title = told.text;
    spot.setAttribute("role", "img");
    spot.setAttribute("aria-label", told.text);
    return spot;
  }

  /** @param {Group} group */
  function head(group) {
    const button = make("button", "", group.title);
    button.type = "button";
    button.setAttribute("aria-expanded", String(group.title === nav.opened));
    button.setAttribute("aria-controls", "pages");
    if (mark && group.pages.some((page) => page.name === mark.page)) button.append(dot(mark));
    button.onclick = () => {
      nav.opened = group.title;
      draw();
      for (const one of nav.querySelectorAll("button")) if (one.textContent === group.title) one.focus();
    };
    return button;
  }

  /** @param {Entry} page */
  function entry(page) {
    if (page.why) {
      const off = make("span", "off", page.title);
      off.title = page.why;
      off.tabIndex = 0;
      off.setAttribute("role", "link");
      off.setAttribute("aria-disabled", "true");
      off.setAttribute("aria-description", page.why);
      off.onclick = () => {
        why.textContent = `${page.title}: ${page.why}`; // a finger hovers over nothing
        why.hidden = false;
      };
      return off;
    }
    const link = make("a", "", page.title);
    link.href = page.href;
    link.target = "_self";
    link.title = page.asks;
    if (isHere(page.href)) link.setAttribute("aria-current", "page");
    if (mark?.page === page.name) {
      link.append(dot(mark), make("span", "said", "largest loss"));
      link.title = mark.text;
    }
    link.onclick = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return; // a new tab is the browser's
      event.preventDefault();
      window.clearTimeout(nav.look); // what is asked later would take the place of a choice that waits
      setTriggerValue("go", page.name);
    };
    return link;
  }

  function draw() {
    const opened = groups.find((group) => group.title === nav.opened);
    why.hidden = true;
    part(nav, ".groups", HTMLElement).replaceChildren(...groups.map(head));
    const row = part(nav, ".pages", HTMLElement);
    row.replaceChildren(...(opened?.pages ?? []).map(entry));
    const here = row.querySelector("[aria-current]");
    if (here instanceof HTMLElement) row.scrollLeft = here.offsetLeft - row.offsetLeft - row.clientWidth / 2;
  }
  draw();

  /** Asks for the mark again and again, until the menu is drawn with it or is gone.
   * @param {number} ms */
  function lookIn(ms) {
    nav.look = window.setTimeout(() => {
      if (!nav.isConnected) return;
      setTriggerValue("look", Date.now());
      lookIn(ms);
    }, ms);
  }
  window.clearTimeout(nav.look);
  if (look_ms !== null) lookIn(look_ms);
}

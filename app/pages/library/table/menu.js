import { make } from "./make.js";

/** @import { Row } from "./row.js" */

const MARGIN = 8;

/**
 * The menu of rows: filled for the row whose button opens it.
 * @param {HTMLElement} popup
 * @param {(act: string, ids: string[]) => void} ask
 */
export function menuOf(popup, ask) {
  /** @type {HTMLButtonElement | null} */
  let opener = null;
  const items = () => /** @type {HTMLButtonElement[]} */ ([...popup.querySelectorAll("button")]);

  popup.ontoggle = (event) => {
    const open = event instanceof ToggleEvent && event.newState === "open";
    opener?.setAttribute("aria-expanded", String(open));
    if (!open || !opener) return;
    const from = opener.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = popup;
    const below = from.bottom + height + MARGIN < window.innerHeight;
    popup.style.top = Math.max(below ? from.bottom : from.top - height, MARGIN) + "px";
    popup.style.left = Math.max(from.right - width, MARGIN) + "px";
    items()[0]?.focus();
  };
  popup.onkeydown = (event) => {
    const all = items();
    const root = /** @type {ShadowRoot | Document} */ (popup.getRootNode());
    const at = all.findIndex((item) => item === root.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    event.stopPropagation();
    if (event.key === "Tab") popup.hidePopover();
    if (event.key === "Escape" || event.key === "Tab") opener?.focus();
    if (to === undefined) return;
    event.preventDefault();
    all[(to + all.length) % all.length]?.focus();
  };

  /** @param {Row} row @param {HTMLButtonElement} from */
  return (row, from) => {
    opener = from;
    popup.setAttribute("aria-label", "What can be done with " + row.name);
    popup.replaceChildren(
      ...row.menu.map(({ act, label }) => {
        const item = make("button", act, label);
        item.type = "button";
        item.setAttribute("role", "menuitem");
        item.onclick = () => {
          popup.hidePopover();
          from.focus();
          ask(act, [row.id]);
        };
        return item;
      }),
    );
  };
}

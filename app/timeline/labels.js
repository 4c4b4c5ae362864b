// Names of lanes beside their rows: buttons, so that a keyboard and a screen reader find them.

/** @import { Lane, Line } from "./types.d.ts" */

import { ROW } from "./layout.js";

/**
 * @param {string} name
 * @param {(lane: Lane) => void} what
 * @param {() => Lane | null} lane
 */
function button(name, what, lane) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = name;
  made.addEventListener("click", () => {
    const own = lane();
    if (own) what(own);
  });
  return made;
}

/** One label, that stands for another lane when lanes scroll. */
class Label {
  /**
   * @param {HTMLElement} root
   * @param {(lane: Lane) => void} fold
   * @param {(lane: Lane) => void} pin
   */
  constructor(root, fold, pin) {
    /** @type {Lane | null} */
    this.lane = null;
    this.said = "";
    const lane = () => this.lane;
    this.box = document.createElement("div");
    this.box.className = "lane";
    this.fold = button("fold", fold, lane);
    this.pin = button("pin", pin, lane);
    this.box.append(this.fold, this.pin);
    root.append(this.box);
  }

  /**
   * @param {Line} line
   * @param {boolean} folded
   */
  show({ lane, top, pinned }, folded) {
    this.lane = lane;
    this.box.style.transform = `translateY(${top}px)`;
    const said = `${lane.row} ${folded} ${pinned} ${lane.late ?? ""}`;
    if (said === this.said) return;
    this.said = said;
    this.box.hidden = false;
    const some = lane.rows > 1;
    this.fold.textContent = `${some ? (folded ? "▸ " : "▾ ") : ""}${lane.title}`;
    this.fold.title = `${lane.title}: ${lane.events.toLocaleString("en")} events${lane.late ?? ""}`;
    this.fold.disabled = !some;
    if (some) this.fold.setAttribute("aria-expanded", String(!folded));
    else this.fold.removeAttribute("aria-expanded");
    this.pin.setAttribute("aria-pressed", String(pinned));
    this.pin.setAttribute("aria-label", `Keep ${lane.title} on top`);
    this.pin.title = pinned ? "Let it scroll again" : "Keep on top";
  }

  hide() {
    this.said = "";
    this.lane = null;
    this.box.hidden = true;
  }
}

export class Labels {
  /**
   * @param {HTMLElement} root
   * @param {(lane: Lane) => void} fold
   * @param {(lane: Lane) => void} pin
   */
  constructor(root, fold, pin) {
    this.root = root;
    this.fold = fold;
    this.pin = pin;
    /** @type {Map<Lane, Label>} */
    this.of = new Map();
    /** @type {Label[]} */
    this.idle = [];
  }

  /** Lanes stand otherwise now: labels are made anew, so that the keyboard goes through them in their order. */
  forget() {
    this.root.replaceChildren();
    this.of.clear();
    this.idle = [];
  }

  /**
   * A label stays with its lane as long as that is seen: what has the focus keeps it.
   * @param {Line[]} lines
   * @param {Set<Lane>} folded
   * @param {number} under lanes that scroll are hidden above it
   */
  show(lines, folded, under) {
    const heads = lines.filter((line) => line.head && (line.pinned || line.top > under - ROW / 2));
    const seen = new Set(heads.map((line) => line.lane));
    for (const [lane, label] of this.of)
      if (!seen.has(lane)) {
        label.hide();
        this.of.delete(lane);
        this.idle.push(label);
      }
    for (const line of heads) {
      let label = this.of.get(line.lane);
      if (!label) {
        label = this.idle.pop() ?? new Label(this.root, this.fold, this.pin);
        this.of.set(line.lane, label);
      }
      label.show(line, folded.has(line.lane));
    }
  }
}

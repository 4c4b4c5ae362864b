// The event that was chosen: its card, and arrows to what it led to or came from.

/** @import { Arrow, End } from "./types.d.ts" */
/** @import { Viewer } from "./view.js" */

import { part } from "../components/parts.js";
import { card } from "./cards.js";
import { lasted } from "./clock.js";
import { atHome } from "./home.js";
import { address, answer, Refused } from "./tiles.js";

const WORDS = /** @type {[Arrow["kind"], string][]} */ ([
  ["launch", "launch and kernel"],
  ["collective", "the same collective"],
]);

export class Choice {
  /** @param {Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    this.event = -1;
    /** Where it stands, as far as that is known. @type {number | null} */
    this.row = null;
    this.words = "";
    /** @type {Arrow[]} */
    this.arrows = [];
    this.more = 0; // that are not told
    this.walked = -1;
  }

  /**
   * @param {number} event
   * @param {number | null} row
   */
  open(event, row = null) {
    const { viewer } = this;
    this.event = event;
    this.row = row;
    this.arrows = [];
    this.walked = -1;
    answer(address(`runs/${viewer.run}/timeline/event?event=${event}`))
      .then((got) => got.json())
      .then((told) => {
        if (this.event !== event || !viewer.of || !atHome(viewer)) return; // another one was chosen meanwhile
        card(part(viewer.root, ".card", HTMLElement), told, viewer.of, viewer.which);
        this.words = `Chosen: ${told.name}, took ${lasted(told.dur_s * 1e12)}, lane ${told.lane}.`;
        viewer.say("");
        if (this.row === null) {
          this.row = told.row;
          viewer.reach(told.row, null);
        }
        viewer.tell();
        this.lead();
      })
      .catch((error) => viewer.say(error, "That event is not told"));
    this.link(event);
    viewer.tell();
    viewer.later();
  }

  /** What it led to: a server that refuses to tell knows of none. @param {number} event */
  link(event) {
    const { viewer } = this;
    answer(address(`runs/${viewer.run}/timeline/arrows?event=${event}${viewer.ranks.clocks}`))
      .then((got) => got.json())
      .then((told) => {
        if (this.event !== event) return;
        this.arrows = told.arrows;
        this.more = told.more;
        this.lead();
        viewer.later();
      })
      .catch((error) => {
        if (!(error instanceof Refused && error.status < 500)) viewer.say(error, "Its arrows are not drawn");
      });
  }

  /** Below the card: the other ends of its arrows, to go to. */
  lead() {
    const root = part(this.viewer.root, ".links", HTMLElement),
      others = this.others();
    root.hidden = !others.length;
    const kinds = new Set(this.arrows.map((arrow) => arrow.kind));
    const word = WORDS.filter(([kind]) => kinds.has(kind)).map(([, told]) => told);
    const more = this.more ? ` of ${(others.length + this.more).toLocaleString("en")}` : "";
    part(root, "span", HTMLElement).textContent =
      `Arrows: ${word.join(", and ")}, ${others.length.toLocaleString("en")}${more}`;
  }

  /** @returns {End[]} */
  others() {
    return this.arrows.flatMap(({ from, to }) => [from, to]).filter((end) => end.event !== this.event);
  }

  /** Looks at the next end of its arrows, and leaves the event chosen. */
  follow() {
    const ends = this.others();
    if (!ends.length) return;
    this.walked = (this.walked + 1) % ends.length;
    this.viewer.reach(ends[this.walked].row, ends[this.walked].tick);
  }

  close() {
    this.event = -1;
    this.words = "";
    this.arrows = [];
    part(this.viewer.root, ".card", HTMLElement).hidden = true;
    part(this.viewer.root, ".links", HTMLElement).hidden = true;
    this.viewer.tell();
    this.viewer.later();
  }
}

// Ranks by how late they came, and clocks aligned: what collectives that ranks shared tell, asked for once it is wanted.

/** @import { Described, Ranked } from "./types.d.ts" */
/** @import { Viewer } from "./view.js" */

import { part } from "../components/parts.js";
import { lasted } from "./clock.js";
import { read } from "./home.js";
import { address, answer } from "./tiles.js";

export class Ranks {
  /** @param {Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    /** @type {Ranked | null} */
    this.told = null;
    this.latest = this.align = false;
    this.boxes = ["order", "clocks"].map((name) => part(viewer.root, `select.${name}`, HTMLSelectElement));
    for (const box of this.boxes) box.addEventListener("change", () => this.chosen());
  }

  /** Lanes by number, those of the latest rank first; null: as they are recorded. */
  get order() {
    return this.latest && this.told ? this.told.order : null;
  }

  /** What moves lanes, if clocks are aligned. */
  get aligned() {
    return this.align ? this.told : null;
  }

  /** What requests say of it. */
  get clocks() {
    return this.aligned ? "&clocks=aligned" : "";
  }

  /** What an address says is there before anything is drawn. @param {Described} of */
  async restore(of) {
    const { latest, aligned } = read(this.viewer.letter);
    if (latest || aligned) await this.set(latest, aligned, of);
  }

  /** What the boxes say. */
  async chosen() {
    const [latest, align] = this.boxes.map((box) => box.value !== "recorded");
    await this.change(latest, align);
  }

  /** Aligned clocks, or those recorded. @param {boolean} align */
  async turn(align) {
    if (align !== this.align) await this.change(this.latest, align);
  }

  /**
   * Another order, or other clocks.
   * @param {boolean} latest
   * @param {boolean} align
   */
  async change(latest, align) {
    const { viewer } = this,
      of = viewer.of,
      before = this.clocks;
    if (!of) return;
    await this.set(latest, align, of);
    viewer.layout?.arrange(this.order);
    viewer.labels.forget();
    if (before !== this.clocks) this.moved();
    viewer.lay();
    viewer.tell();
  }

  /** Lanes stand at other times: whatever was told of times is asked for anew. */
  moved() {
    const { viewer } = this;
    viewer.held = null;
    viewer.overview.forget();
    viewer.overview.ask();
    if (viewer.pair) void viewer.pair.again();
    else viewer.look(viewer.from, viewer.to);
    viewer.picked.settle();
    if (viewer.choice.event >= 0) viewer.choice.open(viewer.choice.event, viewer.choice.row);
    viewer.search.find(part(viewer.root, ".q", HTMLInputElement).value, true);
  }

  /**
   * @param {boolean} latest
   * @param {boolean} align
   * @param {Described} of
   */
  async set(latest, align, of) {
    const { viewer } = this;
    if ((latest || align) && !this.told)
      try {
        this.told = /** @type {Ranked} */ (await (await answer(address(`runs/${viewer.run}/timeline/ranks`))).json());
        this.name(of, this.told);
      } catch (error) {
        viewer.say(error, "Lanes stand as they were recorded");
        [latest, align] = [false, false];
      }
    [this.latest, this.align] = [latest, align];
    viewer.tiles.clocks = this.clocks;
    [this.boxes[0].value, this.boxes[1].value] = [latest ? "latest" : "recorded", align ? "aligned" : "recorded"];
    this.say();
  }

  say() {
    const said = part(this.viewer.root, ".ranks", HTMLElement),
      told = this.told;
    said.textContent = told
      ? [this.latest ? told.lateness : "", this.align ? told.clocks : ""].filter(Boolean).join(" ")
      : "";
    said.hidden = !said.textContent;
  }

  /**
   * Each lane of a rank says how late that came.
   * @param {Described} of
   * @param {Ranked} told
   */
  name(of, told) {
    const places = new Map(told.ranks.map((rank) => [`${rank.host}/${rank.device}`, rank.late_s]));
    for (const lane of of.lanes) {
      const late = lane.group === "device" ? places.get(`${lane.host}/${lane.device ?? 0}`) : undefined;
      if (late != null)
        lane.late = `; came ${lasted(Math.abs(late) * 1e12)} ${late < 0 ? "before" : "after"} its peers' median`;
    }
  }
}

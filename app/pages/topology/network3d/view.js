// The picture itself: takes what Python sends, draws it on change, turns it, and tells what a person asked for.

/** @import { Look, Marked, Painter, Style, What } from "./types.d.ts" */

import { part } from "../../../components/parts.js";
import { parameter, writeParameters } from "./address.js";
import { Camera } from "./camera.js";
import { readMessage } from "./data.js";
import { button, paragraphs } from "./elements.js";
import { FlatPainter } from "./flat.js";
import { listen } from "./gestures.js";
import { Labels } from "./labels.js";
import { legend } from "./legend.js";
import { makeLook } from "./look.js";
import { Picker } from "./picking.js";
import { Scene } from "./scene.js";
import { WebglPainter } from "./webgl.js";
import { about, actions } from "./words.js";

const QUIET_MS = 160,
  FRAME_MS = 26,
  SHARPEST = 2,
  COARSEST = 0.6,
  FEWEST = 0.08,
  MANY_PIECES = 60000,
  PLENTY = 30000;

export class View {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    /** @param {string} selector */
    this.$ = (selector) => part(root, selector, HTMLElement);
    this.canvas = part(root, ".picture", HTMLCanvasElement);
    this.camera = new Camera();
    this.picker = new Picker();
    this.labels = new Labels(part(root, ".labels", HTMLCanvasElement));
    this.hidden = new Set((parameter("hide") || "").split(",").filter(Boolean));
    /** @type {What | null} */
    this.hover = null;
    /** @type {What | null} */
    this.chosen = null;
    /** The chip that a route begins at. @type {number | null} */
    this.start = null;
    /** @type {[number, number]} */
    this.pointer = [-1e4, -1e4];
    this.width = this.height = this.frames = this.pace = this.turn = 0;
    this.movingRatio = this.share = 1;
    this.moving = this.measuring = this.aside = this.fresh = this.gone = false;
    this.usual = "";
    /** The network; none until the first message. @type {Scene | null} */
    this.scene = null;
    /** @type {Style | null} */
    this.bytes = null;
    /** @type {Look | null} */
    this.look = null;
    /** The network's blob of the last message. @type {Uint8Array<ArrayBuffer> | undefined} */
    this.blob = undefined;
    /** What the address says of this picture, where it was changed. @type {Record<string, string> | undefined} */
    this.wanted = undefined;
    /** The frame that was asked for. @type {number | null} */
    this.asked = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.settle = undefined;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.written = undefined;
    /** Tells Python. @type {(event: string, value: unknown) => void} */
    this.send = () => {};
    this.painter = this.openPainter();
    listen(this);
    new ResizeObserver(() => this.resized()).observe(this.$(".stage"));
    this.kept = () => this.keepAddress();
    window.navigation?.addEventListener("currententrychange", this.kept);
  }

  /** Scene and look; an error before the first message. */
  get drawn() {
    const { scene, look } = this;
    if (!scene || !look) throw new Error("asked of a picture before it was there");
    return { scene, look };
  }

  end() {
    window.navigation?.removeEventListener("currententrychange", this.kept);
    this.gone = true;
  }

  /** @returns {Painter} */
  openPainter() {
    const painter = WebglPainter.on(this.canvas);
    if (painter) return painter;
    this.say("This browser has no WebGL 2: a plain drawing, which turns more slowly.");
    return new FlatPainter(this.canvas);
  }

  /** @param {string} text */
  say(text) {
    this.$(".said").textContent = text;
    this.$(".said").hidden = !text;
  }

  /** A message from Python. Camera and what is chosen stay, unless another network came. @param {Uint8Array<ArrayBuffer>} bytes */
  async show(bytes) {
    const turn = ++this.turn;
    const { blob, network, shown } = await readMessage(bytes, this.blob);
    if (turn !== this.turn || this.gone) return;
    this.blob = blob;
    if (shown.aside && !this.aside) this.hidden.clear();
    this.aside = shown.aside;
    this.root.style.setProperty("--high", shown.aside ? "320px" : "560px");
    if (network) {
      const first = !this.scene;
      this.scene = new Scene(network);
      Object.assign(this, { chosen: null, hover: null, start: null });
      this.picker.seen = null;
      this.fit(this.scene);
      this.camera.reset();
      this.usual = this.camera.text;
      this.share = Math.min(1, PLENTY / this.scene.pieceLink.length);
      if (first && !this.aside) this.camera.read(parameter("camera"));
      else this.keepAddress(true);
      this.fresh = true;
    }
    if (!this.scene) return;
    if (network || shown.id !== this.scene.shown.id) {
      this.bytes = this.scene.style(shown);
      this.fresh = true;
    }
    if (this.chosen?.node !== undefined && shown.route.length) this.start = null;
    this.upload();
    this.furnish();
  }

  /** @param {Scene} scene */
  fit(scene) {
    this.camera.fit(scene.at, scene.around, scene.flat);
  }

  upload() {
    if (this.painter.lost || !this.fresh || !this.scene || !this.bytes) return;
    this.painter.scene(this.scene);
    this.painter.style(this.bytes);
    this.fresh = false;
  }

  // Legend, colours, words for who cannot see: all that hangs on the message or the theme.
  furnish() {
    const { scene } = this;
    if (!scene) return;
    this.look = makeLook(this.root, scene, scene.shown, this.hidden);
    this.canvas.setAttribute("aria-label", `${scene.shown.alt} Arrow keys turn it, plus and minus zoom, 0 resets.`);
    legend(this);
    this.card();
    this.marks();
    this.draw(!this.frames);
    if (!this.frames) this.paint(); // the first frame at once, the sharp one after it
  }

  resized() {
    const box = this.$(".stage").getBoundingClientRect();
    if (!box.width || (box.width === this.width && box.height === this.height)) return;
    Object.assign(this, { width: box.width, height: box.height });
    this.camera.aspect = box.width / box.height;
    if (this.scene) this.fit(this.scene);
    this.draw(!this.frames);
  }

  // Pieces drawn thick over the rest: the route, what is hovered and chosen, and whole arcs of the wraps of a chip.
  marks() {
    const { scene } = this.drawn,
      route = new Set(scene.shown.routeLinks),
      links = new Set(route);
    for (const what of [this.hover, this.chosen]) {
      if (what?.link !== undefined) links.add(what.link);
      if (what?.node === undefined) continue;
      for (let i = 0; i < scene.links; i++) {
        if (scene.from[i] === what.node || scene.to[i] === what.node) links.add(i);
      }
    }
    if (this.painter.lost) return;
    /** @type {(i: number) => Marked[]} */
    const thick = (i) => scene.lines(i, true).map(([a, b]) => [a, b, scene.isLost(i), !route.has(i)]);
    this.painter.mark([...links].flatMap(thick));
  }

  // Draws once, soon; `moving`: coarser where the machine is slow, and sharp again when all is still.
  draw(moving = false) {
    this.moving = moving;
    clearTimeout(this.settle);
    if (moving) this.settle = setTimeout(() => this.draw(), QUIET_MS);
    this.asked ??= requestAnimationFrame(() => {
      this.asked = null;
      this.paint();
    });
  }

  paint() {
    if (!this.scene || !this.look || !this.width || this.painter.lost || this.gone) return;
    const device = window.devicePixelRatio || 1;
    const sharp = this.scene.pieceLink.length > MANY_PIECES ? 1.5 : SHARPEST;
    const ratio = this.moving ? device * this.movingRatio : Math.max(sharp, device);
    const width = Math.round(this.width * ratio),
      height = Math.round(this.height * ratio);
    if (this.canvas.width !== width) this.canvas.width = width;
    if (this.canvas.height !== height) this.canvas.height = height;
    const { scene, camera, look, picker } = this;
    this.painter.draw({
      camera,
      look,
      ratio,
      heated: !!scene.shown.forward,
      dim: scene.shown.route.length ? 0.62 : 0,
      moving: this.moving,
      share: this.share,
    });
    if (this.moving) this.measure();
    picker.project(scene, camera, this.width, this.height);
    this.labels.draw(this, this.width, this.height, Math.max(device, 1));
    Object.assign(this.canvas.dataset, {
      frames: ++this.frames,
      drawMs: this.pace.toFixed(1),
      nodes: scene.nodes,
      links: scene.links,
      ratio: ratio.toFixed(2),
    });
  }

  // What a frame costs while the picture turns: where too much, fewer pixels, then fewer links.
  async measure() {
    if (this.measuring) return;
    this.measuring = true;
    const ms = await this.painter.finished(),
      factor = Math.min(1.25, Math.max(0.5, FRAME_MS / ms));
    this.measuring = false;
    this.pace = this.pace ? 0.6 * this.pace + 0.4 * ms : ms;
    if (this.pace > FRAME_MS && ms > FRAME_MS) {
      if (this.movingRatio > COARSEST) this.movingRatio = Math.max(COARSEST, this.movingRatio * factor);
      else this.share = Math.max(FEWEST, this.share * factor);
    } else if (this.pace < FRAME_MS * 0.75) {
      if (this.share < 1) this.share = Math.min(1, this.share * factor);
      else this.movingRatio = Math.min(1, this.movingRatio * factor);
    }
  }

  moved() {
    this.tip(null, 0);
    this.draw(true);
    clearTimeout(this.written);
    this.written = setTimeout(() => this.keepAddress(true), 300);
  }

  // Camera and hidden kinds of the one large picture belong to the address, but the server need not hear of them.
  keepAddress(changed = false) {
    if (this.gone || this.aside || !this.scene || (!changed && this.wanted === undefined)) return;
    if (changed) {
      const { text } = this.camera;
      this.wanted = { camera: text === this.usual ? "" : text, hide: [...this.hidden].join(",") };
    }
    if (this.wanted) writeParameters(this.wanted);
  }

  /** @param {number} x @param {number} y */
  hovered(x, y) {
    const what = this.scene && this.picker.seen ? this.picker.under(x, y, this.hidden) : null;
    if (same(what, this.hover)) {
      if (this.hover) this.tip(x, y);
      return;
    }
    this.hover = what;
    this.canvas.style.cursor = what ? "pointer" : "grab";
    this.tip(what ? x : null, y);
    this.marks();
    this.draw();
  }

  /** @param {number | null} x null: no tip @param {number} y */
  tip(x, y) {
    const tip = this.$(".tip");
    tip.hidden = x === null || !this.hover;
    if (x === null || !this.hover) return;
    tip.replaceChildren(...paragraphs(about(this.drawn.scene, this.hover)));
    tip.style.left = `${Math.min(x + 14, this.width - tip.offsetWidth - 6)}px`;
    tip.style.top = `${y + 18 + tip.offsetHeight > this.height ? y - tip.offsetHeight - 10 : y + 18}px`;
  }

  /** @param {What | null} what */
  choose(what) {
    this.chosen = what;
    this.card();
    this.marks();
    this.draw();
  }

  // What may be done with what was clicked.
  card() {
    const card = this.$(".card"),
      { chosen, scene } = this;
    card.hidden = !chosen;
    if (!chosen || !scene) return;
    const buttons = document.createElement("div");
    buttons.className = "buttons";
    buttons.append(
      ...actions(scene, chosen, this.start).map(([text, event, value]) =>
        button(text, () => {
          if (event !== "start") return this.tell(event, value);
          this.start = value;
          this.say("Now click the chip that the route goes to.");
          this.card();
          this.draw();
        }),
      ),
    );
    const close = button("×", () => this.choose(null));
    close.className = "close";
    close.setAttribute("aria-label", "Close");
    card.replaceChildren(close, ...paragraphs(about(scene, chosen)), buttons);
  }

  /** @param {"fail" | "repair" | "route"} event @param {string} value */
  tell(event, value) {
    if (event === "route") this.start = null;
    this.say("");
    this.send(event, value);
  }

  /** @param {string} kind */
  toggle(kind) {
    if (!this.hidden.delete(kind)) this.hidden.add(kind);
    this.keepAddress(true);
    this.furnish();
  }
}

/** @param {What | null} a @param {What | null} b */
const same = (a, b) => a?.node === b?.node && a?.link === b?.link;

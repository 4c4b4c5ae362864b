// Pointer, wheel, touch and keys.

/** @import { View } from "./view.js" */

import { part } from "../../../components/parts.js";

const TURN = 0.36,
  CLICK_PX = 4,
  WHEEL = 0.0016;
/** @type {Record<string, [number, number]>} */
const KEYS = { ArrowLeft: [-6, 0], ArrowRight: [6, 0], ArrowUp: [0, 5], ArrowDown: [0, -5] };

/** @param {View} view */
export function listen(view) {
  /** Where each pressed pointer is. @type {Map<number, [number, number]>} */
  const pointers = new Map();
  const canvas = view.canvas;
  let travelled = 0,
    aimed = false;
  /** How far apart two fingers are. @type {number | null} */
  let pinch = null;
  /** @type {number | null} */
  let waiting = null;
  /** @param {MouseEvent} e @returns {[number, number]} */
  const place = (e) => {
    const box = canvas.getBoundingClientRect();
    return [e.clientX - box.left, e.clientY - box.top];
  };

  canvas.addEventListener("pointerdown", (e) => {
    canvas.setPointerCapture(e.pointerId);
    pointers.set(e.pointerId, [e.clientX, e.clientY]);
    travelled = 0;
    pinch = null;
  });
  canvas.addEventListener("pointermove", (e) => {
    if (e.movementX || e.movementY) aimed = true;
    const from = pointers.get(e.pointerId);
    if (!from) {
      const [x, y] = place(e);
      waiting ??= requestAnimationFrame(() => {
        waiting = null;
        view.hovered(...view.pointer);
      });
      view.pointer = [x, y];
      return;
    }
    const dx = e.clientX - from[0],
      dy = e.clientY - from[1];
    pointers.set(e.pointerId, [e.clientX, e.clientY]);
    travelled += Math.abs(dx) + Math.abs(dy);
    if (pointers.size === 2) {
      const [p, q] = [...pointers.values()],
        apart = Math.hypot(p[0] - q[0], p[1] - q[1]);
      if (pinch) view.camera.zoomBy(apart / pinch);
      pinch = apart;
      view.camera.pan(dx / 2 / view.height, -dy / 2 / view.height);
    } else if (e.shiftKey || e.buttons & 6) {
      view.camera.pan(dx / view.height, -dy / view.height);
    } else {
      view.camera.turn(-dx * TURN, dy * TURN);
    }
    if (travelled > CLICK_PX) view.moved();
  });
  /** @param {PointerEvent} e */
  const release = (e) => {
    const pressed = pointers.delete(e.pointerId);
    pinch = null;
    if (e.type !== "pointerup" || !pressed || pointers.size || travelled > CLICK_PX || e.button) return;
    view.pointer = place(e);
    view.choose(view.picker.seen ? view.picker.under(...view.pointer, view.hidden) : null);
  };
  for (const kind of /** @type {const} */ (["pointerup", "pointercancel"])) canvas.addEventListener(kind, release);
  canvas.addEventListener("pointerleave", () => {
    aimed = false;
    if (!pointers.size && view.scene) view.hovered(-1e4, -1e4);
  });
  canvas.addEventListener("contextmenu", (e) => e.preventDefault());

  // A page that scrolls beneath a pointer at rest goes on scrolling; who points at the picture zooms.
  canvas.addEventListener(
    "wheel",
    (e) => {
      if (!aimed && !e.ctrlKey) return;
      e.preventDefault();
      view.camera.zoomBy(Math.exp(-e.deltaY * (e.deltaMode === 1 ? 20 : 1) * (e.ctrlKey ? 6 : 1) * WHEEL));
      view.moved();
    },
    { passive: false },
  );

  canvas.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key in KEYS) view.camera.turn(...KEYS[e.key]);
    else if (e.key === "+" || e.key === "=") view.camera.zoomBy(1.2);
    else if (e.key === "-") view.camera.zoomBy(1 / 1.2);
    else if (e.key === "0" || e.key === "Home") view.camera.reset();
    else if (e.key === "Escape") return view.choose(null);
    else return;
    e.preventDefault();
    view.moved();
  });
  const tools = {
    ".in": () => view.camera.zoomBy(1.3),
    ".out": () => view.camera.zoomBy(1 / 1.3),
    ".reset": () => view.camera.reset(),
  };
  for (const [name, act] of Object.entries(tools)) {
    part(view.root, name, HTMLButtonElement).onclick = () => {
      act();
      view.moved();
    };
  }

  canvas.addEventListener("webglcontextlost", (e) => {
    e.preventDefault();
    view.say("The graphics driver dropped the picture; it is drawn again as soon as the driver allows.");
  });
  canvas.addEventListener("webglcontextrestored", () => {
    view.painter = view.openPainter();
    view.fresh = true;
    view.say("");
    view.upload();
    view.furnish();
  });
}

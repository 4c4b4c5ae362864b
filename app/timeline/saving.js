// The view as a PNG: the picture, the names of its lanes, and what colours mean.

/** @import { Viewer } from "./view.js" */

import { LABELS } from "./drawing.js";
import { ROW, RULER } from "./layout.js";

const EDGE = 12,
  LINE = 22,
  BOX = 10;

/** @param {Viewer} viewer */
export function save(viewer) {
  const canvas = pictured(viewer);
  canvas?.toBlob((blob) => {
    if (!blob) return;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = `timeline-${viewer.run.slice(0, 12)}.png`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  });
}

/** Of two runs both, one above the other. @param {Viewer} viewer */
function pictured(viewer) {
  const { drawing } = viewer,
    canvas = document.createElement("canvas"),
    pen = canvas.getContext("2d"),
    shown = viewer.pair ? [viewer.pair.first, viewer.pair.second] : [viewer];
  if (!pen || shown.some(({ of, layout }) => !of || !layout)) return null;
  const { width, ratio } = drawing,
    style = getComputedStyle(drawing.canvas),
    codes = viewer.codes();
  pen.font = `12px ${style.fontFamily}`;
  const places = flowed(
    codes.map((code) => pen.measureText(code.title).width + BOX + 24),
    width,
  );
  const below = ((places.at(-1)?.[1] ?? 0) + 1) * LINE,
    high = shown.reduce((sum, one) => sum + LINE + one.drawing.height, 0) + below + 2 * EDGE;
  canvas.width = Math.round((width + 2 * EDGE) * ratio);
  canvas.height = Math.round(high * ratio);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.fillStyle = style.getPropertyValue("--st-background-color") || "#ffffff";
  pen.fillRect(0, 0, width + 2 * EDGE, high);
  pen.translate(EDGE, EDGE);
  pen.font = `12px ${style.fontFamily}`;
  pen.textBaseline = "middle";
  pen.fillStyle = style.color;
  for (const one of shown) {
    pen.fillText([one.which, one.where()].filter(Boolean).join(": "), 0, LINE / 2);
    pen.translate(0, LINE);
    pen.drawImage(one.drawing.canvas, 0, 0, width, one.drawing.height);
    names(pen, one, one.drawing.height);
    pen.translate(0, one.drawing.height);
  }
  codes.forEach((code, i) => {
    const [x, line] = places[i],
      y = line * LINE + LINE / 2;
    pen.fillStyle = code.colour;
    pen.fillRect(x, y - BOX / 2, BOX, BOX);
    pen.fillStyle = style.color;
    pen.fillText(code.title, x + BOX + 6, y);
  });
  return canvas;
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {Viewer} viewer
 * @param {number} height
 */
function names(pen, viewer, height) {
  pen.save();
  pen.beginPath();
  pen.rect(0, RULER, LABELS - 8, height - RULER);
  pen.clip();
  for (const line of viewer.seen) if (line.head) pen.fillText(line.lane.title, 4, line.top + ROW / 2 - 1);
  pen.restore();
}

/**
 * Where entries of these widths stand, line by line: x, and which line.
 * @param {number[]} widths
 * @param {number} room
 * @returns {[number, number][]}
 */
function flowed(widths, room) {
  let [x, line] = [0, 0];
  return widths.map((width) => {
    if (x && x + width > room) [x, line] = [0, line + 1];
    x += width;
    return [x - width, line];
  });
}

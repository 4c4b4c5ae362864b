// Colours of the page's theme. A kind's form (dash, width) is the same in both.

/** @import { Kind, Look, Shown } from "./types.d.ts" */

import { OUTLINE } from "./scene.js";

const DASHES = { solid: 0, dashed: 1, dotted: 2 };

/** Red, green and blue from 0 to 1 of `#rrggbb` or `rgb(...)`. @param {string} text */
function channels(text) {
  if (text.startsWith("#")) return [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16) / 255);
  return (text.match(/[\d.]+/g) || ["1", "1", "1"]).slice(0, 3).map((c) => Number(c) / 255);
}

/** @param {ArrayLike<number>} parts */
export const cssColour = (parts) => `rgb(${Array.from(parts, (v) => Math.round(v * 255))})`;

/**
 * @param {HTMLElement} root
 * @param {{ kinds: Kind[] }} network
 * @param {Shown} shown
 * @param {Set<string>} hidden
 * @returns {Look}
 */
export function makeLook(root, network, shown, hidden) {
  const back = channels(getComputedStyle(root).backgroundColor);
  const dark = 0.299 * back[0] + 0.587 * back[1] + 0.114 * back[2] < 0.5,
    theme = dark ? "dark" : "light";
  const kinds = new Float32Array(68),
    dashes = new Int32Array(17),
    looks = shown.looks;
  network.kinds.forEach((kind, i) => {
    const width = hidden.has(kind.name) ? 0 : kind.width;
    kinds.set([...channels(shown.plain ? looks.chip[theme] : kind[theme]), width], 4 * i);
    dashes[i] = DASHES[kind.dash];
  });
  kinds.set([...back.map((c) => (dark ? c + 0.32 : c - 0.25)), 1], 4 * OUTLINE);
  return {
    theme,
    back,
    kinds,
    dashes,
    ramp: looks.ramp[theme].flatMap(channels),
    rampText: looks.ramp[theme],
    failed: channels(looks.failed[theme]),
    failedText: looks.failed[theme],
    chip: channels(looks.chip[theme]),
    packetSwitch: channels(looks.switch[theme]),
    chosen: channels(looks.chosen[theme]),
    chosenText: looks.chosen[theme],
    chosenWidth: looks.chosenWidth,
    text: getComputedStyle(root).color,
    backText: getComputedStyle(root).backgroundColor,
  };
}

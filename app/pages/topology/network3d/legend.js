// Kinds of links that are there, each with its line; pressed, it hides or shows its kind. And the ramp of loads.

/** @import { Look, Shown } from "./types.d.ts" */
/** @import { View } from "./view.js" */

import { button } from "./elements.js";
import { cssColour } from "./look.js";
import { digits, number } from "./words.js";

const SHAPES = { solid: "", dashed: "7 4", dotted: "2 3" };

/** @param {View} view */
export function legend(view) {
  const { scene, look } = view.drawn,
    { hidden } = view,
    list = view.$(".legend");
  const kinds = scene.kinds.map((kind) => {
    const made = button("", () => view.toggle(kind.name)),
      off = hidden.has(kind.name);
    made.setAttribute("aria-pressed", String(!off));
    made.title = `${kind.meaning}. ${off ? "Show" : "Hide"} these links.`;
    const own = !scene.shown.forward && !scene.shown.plain;
    const line = sample(own ? kind[look.theme] : look.text, kind.width, kind.dash);
    made.append(line, `${kind.name} ${number(kind.count)}`);
    return made;
  });
  const more = [];
  if (scene.shown.left || scene.shown.alive) more.push(item("failed", sample(look.failedText, 1.7, "dashed"), "×"));
  if (scene.nodes > scene.chips) more.push(item("packet switch", swatch(look.packetSwitch)));
  if (scene.shown.forward) more.push(ramp(scene.shown, look));
  list.replaceChildren(...kinds, ...more);
}

/** @param {string} text @param {...(Element | string)} signs */
function item(text, ...signs) {
  const made = document.createElement("span");
  made.append(...signs, " " + text);
  return made;
}

/** @param {number[]} colour */
function swatch(colour) {
  const made = document.createElement("i");
  made.style.background = cssColour(colour);
  return made;
}

/** @param {string} colour @param {number} width @param {keyof typeof SHAPES} dash */
function sample(colour, width, dash) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  made.setAttribute("viewBox", "0 0 26 8");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
  const drawn = { x1: 0, y1: 4, x2: 26, y2: 4, stroke: colour, "stroke-width": Math.max(1.5, width) };
  for (const [name, value] of Object.entries(drawn)) line.setAttribute(name, String(value));
  line.setAttribute("stroke-dasharray", SHAPES[dash]);
  made.append(line);
  return made;
}

/** @param {Shown} shown @param {Look} look */
function ramp(shown, look) {
  const made = document.createElement("span"),
    bar = document.createElement("b");
  bar.style.background = `linear-gradient(to right, ${look.rampText.join(",")})`;
  made.append("0 ", bar, ` ${digits(shown.most ?? 0)} ${shown.unit}`);
  return made;
}

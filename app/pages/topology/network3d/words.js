// What is said of a chip or a link, and what may be done with it.

/** @import { What } from "./types.d.ts" */
/** @import { Scene } from "./scene.js" */

/** @param {number} n */
export const number = (n) => n.toLocaleString("en-GB");
/** @param {number} v */
export const digits = (v) =>
  v >= 1e5 ? Math.round(v).toLocaleString("en-GB") : String(+v.toPrecision(v >= 1000 ? 6 : 4));

/** @param {Scene} scene @param {number} node */
function nodeName(scene, node) {
  if (node < scene.chips) return `${scene.nodes === scene.chips ? "Chip" : "GPU"} ${number(node)}`;
  const kind = scene.switchKind[node - scene.chips];
  return `${kind < 0 ? "Switch" : scene.switches[kind]} ${number(node - scene.chips)}`;
}

/** Lines of text on a node. @param {Scene} scene @param {number} node */
function aboutNode(scene, node) {
  const lines = [nodeName(scene, node)];
  if (node < scene.chips) {
    const n = scene.chips;
    lines.push(scene.axes.map((axis, i) => `${axis} ${scene.coordinates[i * n + node]}`).join(" · "));
    lines.push(scene.parts.map((part) => `${part} ${number(scene.part(part)[node])}`).join(" · "));
  }
  if (scene.isDead(node)) lines.push("failed");
  const step = scene.shown.route.indexOf(node);
  if (step >= 0) lines.push(`on the route, after ${step} ${step === 1 ? "hop" : "hops"}`);
  return lines.filter(Boolean);
}

/** @param {Scene} scene @param {number} link */
function aboutLink(scene, link) {
  const kind = scene.kinds[scene.kind[link]];
  const lines = [`${kind.name} link`, `${nodeName(scene, scene.from[link])} – ${nodeName(scene, scene.to[link])}`];
  for (const part of scene.linkParts) {
    const which = scene.linkPart(part)[link];
    if (which >= 0) lines.push(`${part === "ocs" ? "through optical switch" : part} ${number(which)}`);
  }
  if (scene.isLost(link)) lines.push("failed");
  const { forward, backward, unit } = scene.shown;
  if (!scene.isLost(link) && forward && backward) {
    lines.push(`${digits(forward[link])} there, ${digits(backward[link])} back: ${unit}`);
  }
  return lines;
}

/** @param {Scene} scene @param {What} what */
export const about = (scene, what) =>
  what.node === undefined ? aboutLink(scene, what.link) : aboutNode(scene, what.node);

/** @typedef {[text: string, event: "repair" | "fail" | "route", value: string] | [text: string, event: "start", value: number]} Action */

/**
 * Buttons for what is chosen: [text, event, value].
 * @param {Scene} scene
 * @param {What} what
 * @param {number | null} start
 * @returns {Action[]}
 */
export function actions(scene, what, start) {
  if (scene.shown.aside) return [];
  /** @type {Action[]} */
  const found = [];
  const failed = scene.shown.failures;
  /** @param {string} text @param {string} part @param {number | string} which */
  const named = (text, part, which) => {
    const [its, numbers] = text.split("=");
    return its === part && numbers.split(part === "link" ? " " : ",").includes(String(which));
  };
  /** @param {string} part @param {number | string} which @param {boolean} lost */
  const offer = (part, which, lost) => {
    const plain = part === "ocs" ? "optical switch" : part,
      by = failed.find((text) => named(text, part, which));
    const back = String(which).split("-").reverse().join("-");
    const repaired = by ?? (part === "link" ? failed.find((text) => named(text, part, back)) : undefined);
    if (repaired) found.push([`Repair ${plain} ${which}`, "repair", repaired]);
    else if (!lost && scene.shown.fails.includes(part)) {
      found.push([`Fail ${plain}${part === "chip" || part === "link" ? "" : " " + which}`, "fail", `${part}=${which}`]);
    }
  };
  if (what.link !== undefined) {
    const ends = [scene.from[what.link], scene.to[what.link]],
      lost = scene.isLost(what.link);
    offer("link", ends.join("-"), lost);
    for (const part of scene.linkParts) {
      const which = scene.linkPart(part)[what.link];
      if (which >= 0) offer(part, which, lost);
    }
    return found;
  }
  const node = what.node,
    lost = scene.isDead(node);
  if (node >= scene.chips) {
    offer("switch", node - scene.chips, lost);
    return found;
  }
  offer("chip", node, lost);
  for (const part of scene.parts) offer(part, scene.part(part)[node], lost);
  if (!lost) {
    if (start !== null && start !== node) {
      found.push([`Route from ${number(start)} to here`, "route", `${start}-${node}`]);
    }
    found.push(["Route from here", "start", node]);
  }
  if (scene.shown.route.length) found.push(["Clear the route", "route", ""]);
  return found;
}

// What is said of a chip or a link, and what may be done with it.

const number = (n) => n.toLocaleString("en-GB");
const digits = (v) => (v >= 1e5 ? Math.round(v).toLocaleString("en-GB") : String(+v.toPrecision(v >= 1000 ? 6 : 4)));

function nodeName(scene, node) {
  if (node < scene.chips) return `${scene.nodes === scene.chips ? "Chip" : "GPU"} ${number(node)}`;
  const kind = scene.switchKind[node - scene.chips];
  return `${kind < 0 ? "Switch" : scene.switches[kind]} ${number(node - scene.chips)}`;
}

// Lines of text on a node.
function aboutNode(scene, node) {
  const lines = [nodeName(scene, node)];
  if (node < scene.chips) {
    const n = scene.chips;
    lines.push(scene.axes.map((axis, i) => `${axis} ${scene.coordinates[i * n + node]}`).join(" · "));
    lines.push(scene.parts.map((part) => `${part} ${number(scene["part " + part][node])}`).join(" · "));
  }
  if (scene.isDead(node)) lines.push("failed");
  const step = scene.shown.route.indexOf(node);
  if (step >= 0) lines.push(`on the route, after ${step} ${step === 1 ? "hop" : "hops"}`);
  return lines.filter(Boolean);
}

function aboutLink(scene, link) {
  const kind = scene.kinds[scene.kind[link]];
  const lines = [`${kind.name} link`, `${nodeName(scene, scene.from[link])} – ${nodeName(scene, scene.to[link])}`];
  for (const part of scene.linkParts) {
    const which = scene["linkPart " + part][link];
    if (which >= 0) lines.push(`${part === "ocs" ? "through optical switch" : part} ${number(which)}`);
  }
  if (scene.isLost(link)) lines.push("failed");
  else if (scene.shown.forward) {
    const { forward, backward, unit } = scene.shown;
    lines.push(`${digits(forward[link])} there, ${digits(backward[link])} back: ${unit}`);
  }
  return lines;
}

const about = (scene, what) => (what.node === undefined ? aboutLink(scene, what.link) : aboutNode(scene, what.node));

// Buttons for what is chosen: [text, event, value].
function actions(scene, what, start) {
  if (scene.shown.aside) return [];
  const found = [], failed = scene.shown.failures;
  const named = (text, part, which) => {
    const [its, numbers] = text.split("=");
    return its === part && numbers.split(part === "link" ? " " : ",").includes(String(which));
  };
  const offer = (part, which, lost) => {
    const plain = part === "ocs" ? "optical switch" : part, by = failed.find((text) => named(text, part, which));
    const other = part === "link" && failed.find((text) => named(text, part, which.split("-").reverse().join("-")));
    if (by || other) found.push([`Repair ${plain} ${which}`, "repair", by || other]);
    else if (!lost && scene.shown.fails.includes(part)) {
      found.push([`Fail ${plain}${part === "chip" || part === "link" ? "" : " " + which}`, "fail", `${part}=${which}`]);
    }
  };
  if (what.link !== undefined) {
    const ends = [scene.from[what.link], scene.to[what.link]], lost = scene.isLost(what.link);
    offer("link", ends.join("-"), lost);
    for (const part of scene.linkParts) {
      const which = scene["linkPart " + part][what.link];
      if (which >= 0) offer(part, which, lost);
    }
    return found;
  }
  const node = what.node, lost = scene.isDead(node);
  if (node >= scene.chips) {
    offer("switch", node - scene.chips, lost);
    return found;
  }
  offer("chip", node, lost);
  for (const part of scene.parts) offer(part, scene["part " + part][node], lost);
  if (!lost) {
    if (start !== null && start !== node) {
      found.push([`Route from ${number(start)} to here`, "route", `${start}-${node}`]);
    }
    found.push(["Route from here", "start", node]);
  }
  if (scene.shown.route.length) found.push(["Clear the route", "route", ""]);
  return found;
}

// Kinds of links that are there, each with its line; pressed, it hides or shows its kind. And the ramp of loads.

const SHAPES = { solid: "", dashed: "7 4", dotted: "2 3" };

function legend(view) {
  const { scene, look, hidden } = view, list = view.$(".legend");
  const kinds = scene.kinds.map((kind) => {
    const made = button("", () => view.toggle(kind.name)), off = hidden.has(kind.name);
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
  if (scene.shown.forward) more.push(ramp(view));
  list.replaceChildren(...kinds, ...more);
}

function item(text, ...signs) {
  const made = document.createElement("span");
  made.append(...signs, " " + text);
  return made;
}

function swatch(colour) {
  const made = document.createElement("i");
  made.style.background = cssColour(colour);
  return made;
}

function sample(colour, width, dash) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  made.setAttribute("viewBox", "0 0 26 8");
  made.innerHTML = '<line x1="0" y1="4" x2="26" y2="4"/>';
  const line = made.firstChild;
  line.setAttribute("stroke", colour);
  line.setAttribute("stroke-width", Math.max(1.5, width));
  line.setAttribute("stroke-dasharray", SHAPES[dash]);
  return made;
}

function ramp({ scene, look }) {
  const made = document.createElement("span"), bar = document.createElement("b");
  bar.style.background = `linear-gradient(to right, ${look.rampText.join(",")})`;
  made.append("0 ", bar, ` ${digits(scene.shown.most)} ${scene.shown.unit}`);
  return made;
}

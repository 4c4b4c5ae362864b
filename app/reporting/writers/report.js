"use strict";
(async () => {
  const root = document.documentElement;
  const places = Array.from(document.querySelectorAll(".figure"));

  /** Text of a block that is no script. */
  const held = (id) => document.getElementById(id)?.textContent ?? "";

  /** What the style sheet says for the light or the dark, or for paper. */
  const ink = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  const colours = () => ({
    "font.color": ink("--figure"),
    "hoverlabel.bgcolor": ink("--hover"),
    "hoverlabel.font.color": ink("--figure"),
    "modebar.bgcolor": "rgba(0,0,0,0)",
    "modebar.color": "#808080",
    "modebar.activecolor": ink("--figure"),
  });

  /** Plotly's text, unpacked. It runs because its hash stands in the file's policy. */
  const unpacked = async () => {
    const bytes = Uint8Array.from(atob(held("plotly")), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  };

  const draw = async (place) => {
    const { figure, config } = JSON.parse(held(place.dataset.figure));
    await globalThis.Plotly.newPlot(place, figure.data, figure.layout, config);
    await globalThis.Plotly.relayout(place, colours());
  };

  const again = () => {
    for (const place of places) {
      globalThis.Plotly.relayout(place, colours());
      globalThis.Plotly.Plots.resize(place);
    }
  };

  try {
    for (const place of places) place.style.minHeight = `${place.dataset.height}px`;
    const script = document.createElement("script");
    script.textContent = await unpacked();
    document.head.append(script);
    for (const place of places) await draw(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    matchMedia("print").addEventListener("change", again);
  } catch (error) {
    for (const place of places) {
      if (place.childElementCount) continue;
      place.style.minHeight = "";
      place.classList.add("failed");
      place.textContent = `This figure could not be drawn (${error}). The text and the tables hold its numbers.`;
    }
  }
  root.dataset.drawn = "yes";
})();

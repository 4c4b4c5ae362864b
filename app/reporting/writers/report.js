(async () => {
  const root = document.documentElement;
  const places = /** @type {HTMLElement[]} */ (Array.from(document.querySelectorAll(".figure")));

  /** Plotly, once its text has run. */
  const plotly = () => /** @type {any} */ (globalThis).Plotly;

  /**
   * Text of a block that is no script.
   * @param {string} id
   */
  const held = (id) => document.getElementById(id)?.textContent ?? "";

  /**
   * What the style sheet says for the light or the dark, or for paper.
   * @param {string} name
   */
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

  /** @param {HTMLElement} place */
  const draw = async (place) => {
    const { figure, config } = JSON.parse(held(place.dataset.figure ?? ""));
    await plotly().newPlot(place, figure.data, figure.layout, config);
    await plotly().relayout(place, colours());
  };

  const again = () => {
    for (const place of places) {
      plotly().relayout(place, colours());
      plotly().Plots.resize(place);
    }
  };

  document.getElementById("lacks")?.remove();
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

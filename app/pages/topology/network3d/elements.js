// Small elements that more than one part of the picture makes.

/** The first is a name. @param {string[]} lines */
export function paragraphs(lines) {
  return lines.map((line, i) => {
    const p = document.createElement("p");
    p.textContent = line;
    if (!i) p.className = "name";
    return p;
  });
}

/** @param {string} text @param {() => void} pressed */
export function button(text, pressed) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.onclick = pressed;
  return made;
}

/** For a plain drawing; every browser has it. @param {HTMLCanvasElement} canvas */
export function flatContext(canvas) {
  const context = canvas.getContext("2d");
  if (!context) throw new Error("this browser draws on no canvas");
  return context;
}

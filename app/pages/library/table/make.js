/**
 * An element with a class and a text, which is shown as text.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {string} [className]
 * @param {string} [text]
 */
export function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

/**
 * A button; `part` finds it again after a redraw.
 * @param {string} className
 * @param {string} text
 * @param {string} label what a screen reader says
 * @param {() => void} act
 */
export function button(className, text, label, act) {
  const element = make("button", className, text);
  element.type = "button";
  element.dataset["part"] = className;
  element.setAttribute("aria-label", label);
  element.onclick = act;
  return element;
}

// Streamlit calls this with each message and each change of theme; the viewer stays between calls.

import { part } from "../components/parts.js";
import { Viewer } from "./view.js";

/** @param {StreamlitComponent<{ run: string, written: string } | null>} component */
export default function ({ parentElement, data }) {
  if (!data || !parentElement.querySelector(".timeline")) return;
  /** @type {HTMLElement & { viewer?: Viewer }} */
  const root = part(parentElement, ".timeline", HTMLElement);
  root.viewer ??= new Viewer(root, data.run, data.written);
  root.viewer.begin();
  return () => root.viewer?.end();
}

// Streamlit calls this with each message and each change of theme; the view stays between calls.

import { part } from "../../../components/parts.js";
import { View } from "./view.js";

/** @param {StreamlitComponent<Uint8Array<ArrayBuffer> | null>} component */
export default function ({ parentElement, data, setTriggerValue }) {
  if (!data || !parentElement.querySelector(".network3d")) return;
  /** @type {HTMLElement & { view?: View }} */
  const root = part(parentElement, ".network3d", HTMLElement);
  const view = (root.view ??= new View(root));
  view.send = setTriggerValue;
  view.show(data).catch((error) => {
    view.say("The picture cannot be drawn: " + error.message);
    throw error;
  });
  return () => view.end();
}

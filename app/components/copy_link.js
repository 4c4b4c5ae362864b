import { part } from "./parts.js";

/** @param {StreamlitComponent<null>} component */
export default function ({ parentElement }) {
  const button = part(parentElement, "button", HTMLButtonElement);
  const label = part(button, "span", HTMLElement);
  const status = part(parentElement, "[role=status]", HTMLElement);
  async function copy() {
    const address = window.location.href;
    try {
      await navigator.clipboard.writeText(address);
    } catch {
      // no clipboard without HTTPS away from localhost
      const field = document.createElement("textarea");
      field.value = address;
      document.body.appendChild(field);
      field.select();
      document.execCommand("copy");
      field.remove();
    }
    label.textContent = "Copied";
    status.textContent = "The link to this page was copied";
    setTimeout(() => {
      label.textContent = "Copy link";
      status.textContent = "";
    }, 1500);
  }
  button.onclick = copy;
}

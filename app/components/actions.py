"""A button that copies the address of what is shown: the browser alone knows it whole."""

import streamlit as st

_HTML = '<button type="button" part="button"><span>Copy link</span></button><span role="status"></span>'
_CSS = """
:host, div { text-align: right; }
button {
  font: inherit; font-size: 0.875rem; color: var(--st-text-color); background: transparent; cursor: pointer;
  border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius, 0.5rem); padding: 0.3rem 0.75rem;
}
button:hover, button:focus-visible { border-color: var(--st-primary-color); color: var(--st-primary-color); }
[role=status] { position: absolute; left: -999rem; }
"""
_JS = """
export default function ({ parentElement }) {
  const button = parentElement.querySelector("button");
  const label = button.querySelector("span");
  const status = parentElement.querySelector("[role=status]");
  async function copy() {
    const address = window.location.href;
    try {
      await navigator.clipboard.writeText(address);
    } catch {                       // no clipboard without HTTPS away from localhost
      const field = document.createElement("textarea");
      field.value = address;
      document.body.appendChild(field);
      field.select();
      document.execCommand("copy");
      field.remove();
    }
    label.textContent = "Copied";
    status.textContent = "The link to this page was copied";
    setTimeout(() => { label.textContent = "Copy link"; status.textContent = ""; }, 1500);
  }
  button.onclick = copy;
}
"""

_copy_link = st.components.v2.component("chipledger_copy_link", html=_HTML, css=_CSS, js=_JS)


def copy_link() -> None:
    """The button "Copy link": the page's address with everything that is chosen on it."""
    _copy_link(key="copy_link", width=98)

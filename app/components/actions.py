"""A button that copies the address of what is shown: the browser alone knows it whole."""

from pathlib import Path

from app.components.browser import component

_copy_link = component("chipledger_copy_link", Path(__file__).parent / "copy_link")


def copy_link() -> None:
    """The button "Copy link": the page's address with everything that is chosen on it."""
    _copy_link(key="copy_link", width=98)

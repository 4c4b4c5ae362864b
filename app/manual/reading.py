"""How each page is read: parts of `reading.md` beside this, by the name of the page."""

import functools
import re
from pathlib import Path

_PART = re.compile(r"^## (\w+)\n\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


@functools.cache
def readings() -> dict[str, str]:
    """The text of each page that has one, as one paragraph."""
    text = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
    return {name: " ".join(part.split()) for name, part in _PART.findall(text)}

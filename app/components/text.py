"""Text from inputs inside Markdown: names, tags and log lines are shown as they are, never interpreted."""

import re
import string

_ESCAPED = str.maketrans({c: "\\" + c for c in string.punctuation})
_ADDRESS = re.compile(r"(?<=:)(?=//)|(?<=\bwww)(?=\.)|(?<=\S)(?=@)", re.IGNORECASE)
_JOINER = "\u2060"  # takes no room; without it an address in plain text would become a link


def md(text: object) -> str:
    """Any text on one line as Markdown that shows exactly it: no links, maths, colours, images or HTML."""
    return _ADDRESS.sub(_JOINER, " ".join(str(text).split())).translate(_ESCAPED)

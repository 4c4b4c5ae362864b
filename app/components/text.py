"""Text from inputs inside Markdown: names, tags and log lines are shown as they are, never interpreted."""

import re
import string

_ESCAPED = str.maketrans({c: "\\" + c for c in string.punctuation})
_ADDRESS = re.compile(r"(?<=:)(?=//)|(?<=\bwww)(?=\.)|(?<=\S)(?=@)", re.IGNORECASE)
_CODE = re.compile(r"\\`((?:(?!\\`).)+)\\`")  # as `md` leaves it
_UNESCAPED = re.compile(r"\\(.)")
_JOINER = "\u2060"  # takes no room; without it an address in plain text would become a link


def md(text: object) -> str:
    """Any text on one line as Markdown that shows exactly it: no links, maths, colours, images or HTML."""
    return _ADDRESS.sub(_JOINER, " ".join(str(text).split())).translate(_ESCAPED)


def prose(text: object) -> str:
    """As `md`, of a sentence of ours: what stands between backticks, as commands do, is set as code, as it is."""
    return _CODE.sub(lambda found: "`" + _UNESCAPED.sub(r"\1", found[1]).replace(_JOINER, "") + "`", md(text))

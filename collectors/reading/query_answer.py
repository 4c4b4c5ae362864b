"""What answers of Prometheus and its relatives to queries look like, for whoever asks before a reader does."""

import re

BLANK = b"\xef\xbb\xbf \t\r\n"  # what may stand before JSON
_SERIES = re.compile(
    rb'"metric"\s*:\s*\{[^{}]*\}\s*,\s*"(?:values"\s*:\s*\[\s*(?:\[\s*\d|-?\d|null)|value"\s*:\s*\[\s*\d[\d.eE+]*\s*,\s*"'
    rb'|timestamps"\s*:\s*\[\s*\d|histograms?"\s*:\s*\[)'
    rb'|"(?:values|timestamps)"\s*:\s*\[[^\[\]{}]*\]\s*,\s*"(?:values|timestamps)"\s*:\s*\['
)
_ANSWER = re.compile(
    rb'"data"\s*:\s*\{\s*"resultType"\s*:\s*"(?:matrix|vector|scalar|string)"'
    rb'|^\W{0,9}"status"\s*:\s*"error"\s*,\s*(?:"data"\s*:\s*(?:null|\{\})\s*,\s*)?"errorType"\s*:\s*"'
)


def is_json(head: bytes) -> bool:
    return head.lstrip(BLANK)[:1] in (b"{", b"[")


def is_answer(head: bytes) -> bool:
    """Whether a file that begins so is an answer in JSON, or an export of series."""
    return is_json(head) and b"\0" not in head and bool(_SERIES.search(head) or _ANSWER.search(head))

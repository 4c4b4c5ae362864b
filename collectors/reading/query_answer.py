"""What answers of Prometheus, its relatives and Grafana to queries look like, for whoever asks before a reader does."""

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
_FRAMES = re.compile(rb'"frames"\s*:\s*\[\s*\{\s*"(?:schema|data)"\s*:\s*\{')
_PANEL = re.compile(rb'\W{0,9}"(?:schema|fields|name|refId|meta)"\s*:')  # how a frame of Grafana's begins
_FIELDS, _TIME = re.compile(rb'"fields"\s*:\s*\['), re.compile(rb'"type"\s*:\s*"time"')


def is_json(head: bytes) -> bool:
    return head.lstrip(BLANK)[:1] in (b"{", b"[")


def is_answer(head: bytes) -> bool:
    """Whether a file that begins so is an answer in JSON, or an export of series."""
    return is_json(head) and b"\0" not in head and bool(_SERIES.search(head) or _ANSWER.search(head) or _is_frame(head))


def _is_frame(head: bytes) -> bool:
    """Whether data frames of Grafana's begin so: an answer of several, or those of a panel."""
    return bool(_FRAMES.search(head) or (_PANEL.match(head) and _FIELDS.search(head) and _TIME.search(head)))

"""What NVIDIA's DCGM exporter tells at `/metrics`: Prometheus text (`collectors.reading.exposition`), one scrape or
many, as `curl` saves it or a poller with the time above each.

Rows are those of `dcgm_rows`; an engine's metrics in the same file become what `serving.prometheus` makes of them. The
text tells no time of its own: without a line of one, or stamps, times are not known.
"""

import re
from collections.abc import Iterator

from collectors.base import Item, Source
from collectors.serving import prometheus

NAME = "dcgm"
TITLE = "NVIDIA DCGM exporter"
HELP = "Prometheus text of NVIDIA's DCGM exporter: units, memory, power, clocks and Xids of GPUs."

LOOKED_AT = 1 << 14
_LINE = re.compile(rb"#|[a-zA-Z_:][\w:]*(?:\{[^\n]*\})?[ \t]+[-+\dN]")  # of metrics in text
_SAMPLE = re.compile(rb"^DCGM_(?:FI|EXP)_[A-Z0-9_]+\{[^\n]*\}[ \t]+[-+\dN]", re.MULTILINE)


def sniff(source: Source) -> float:
    """Surer than of any other metrics, less than of an engine's, whose reader reads both. A job may print a sample into
    its log: that is a log."""
    head = source.head
    if b"\0" in head or not _SAMPLE.search(head):
        return 0.0
    lines = [line for line in head[:LOOKED_AT].splitlines() if line.strip()]
    return 0.93 if 2 * sum(map(bool, map(_LINE.match, lines))) >= len(lines) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Scalars, memory, evidence, facts. Raises InputError where there is no sample."""
    yield from prometheus.read(source)

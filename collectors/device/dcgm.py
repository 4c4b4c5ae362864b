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

_SAMPLE = re.compile(rb"^DCGM_(?:FI|EXP)_[A-Z0-9_]+\{[^\n]*\}[ \t]+[-+\dN]", re.MULTILINE)


def sniff(source: Source) -> float:
    """Surer than of any other metrics, less than of an engine's, whose reader reads both."""
    return 0.93 if b"\0" not in source.head and _SAMPLE.search(source.head) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Scalars, memory, evidence, facts. Raises InputError where there is no sample."""
    yield from prometheus.read(source)

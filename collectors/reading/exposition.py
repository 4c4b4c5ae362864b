"""Prometheus' text format and OpenMetrics, cut into scrapes: one line a sample, `name{label="value"} number [time]`.

A file may hold one scrape or many. A new one begins

    at `# scraped_at TIME` (`chipledger watch` writes it above each answer), or at a line that is a time alone (`date`)
    after `# EOF`
    where a series comes again, if nothing marks the scrapes, or if servers are known to answer under one time
Samples that carry times of their own are put together by those, in whatever order they come.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite

from collectors.base import Source
from collectors.reading.textlog import DATED, NS_PER_S, Tally, fits, lines, moment_ns

SCRAPED_AT, NO_ANSWER = "# scraped_at ", "# no_answer "  # what a poller writes: the time, and for the second the reason
MAX_SERIES = 200_000  # of one scrape
MAX_STAMPED = 2_000_000  # samples with times of their own, held until they are in order
# `*+`: what was taken is not given back, so that a line of no label is found out in time that grows with its length
_LABEL = r'\s*+[a-zA-Z_][\w.:/-]*+\s*+=\s*+"(?:[^"\\\n]|\\.)*+"\s*+'
_SERIES = r"[a-zA-Z_:][\w:.]*+(?:\s*+\{(?:" + _LABEL + r"(?:," + _LABEL + r")*+,?)?\s*+\})?"
_SAMPLE = re.compile(rf"({_SERIES})[ \t]+([^\s_#]+)(?:[ \t]+(-?[\d.eE+-]+))?[ \t]*(?:[ \t]#[ \t].*)?")
_ONE_LABEL = re.compile(r'(?<![\w.:/-])([a-zA-Z_][\w.:/-]*)\s*=\s*"((?:[^"\\\n]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")
_EPOCH = re.compile(r"\d{10}(?:\.\d{1,9})?|\d{13}|\d{16}|\d{19}")
MOMENT = re.compile(rf"(?:{_EPOCH.pattern}|[\d-]{{8,10}}[T ][\d:.,]+\s?(?:Z|UTC|GMT|[+-]\d\d:?\d\d)?)")


@dataclass
class Scrape:
    """What a server told at one moment. `values`: number of each series by its text, see `parsed`."""

    ts_ns: int | None
    marked: bool = False  # something said where it begins and ends
    values: dict[str, float] = field(default_factory=dict)


def parsed(series: str) -> tuple[str, dict[str, str]]:
    """(name, labels with escapes undone) of a series' text."""
    name, brace, rest = series.partition("{")
    labels = {key: _unescaped(value) for key, value in _ONE_LABEL.findall(rest)} if brace else {}
    return name.strip(), labels


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda m: "\n" if m[1] == "n" else m[1], text) if "\\" in text else text


def time_ns(text: str) -> int | None:
    """A time of day: seconds since the epoch (with a fraction, exactly), ms, us or ns by their digits, or a date."""
    text = text.strip()
    if _EPOCH.fullmatch(text):
        head, _, tail = text.partition(".")
        scale = 10 ** (19 - len(head))
        ns = int(head) * scale + (int(tail.ljust(9, "0")) if tail else 0)
        return ns if fits(ns) else None
    match = DATED.search(text)
    return moment_ns(match) if match else None


class Reader:
    """Reads the scrapes of one file. `together`: several servers answer under one time. `help`: what `# HELP` says of
    each metric, as far as it was read."""

    def __init__(self, source: Source, tally: Tally, together: bool = False):
        self._source, self._tally, self._together = source, tally, together
        self.help: dict[str, str] = {}
        self._now = Scrape(None)
        self._stamped: dict[int, Scrape] = {}
        self._held = 0

    def scrapes(self) -> Iterator[Scrape]:
        """Scrapes in the order of the file; those with times of their own in the order of these."""
        for offset, line, whole in lines(self._source):
            if not line or line.isspace():
                continue
            if line.startswith("#"):
                yield from self._comment(line)
            elif MOMENT.fullmatch(line):
                yield from self._flush(Scrape(time_ns(line), marked=True))
            elif not whole:
                self._tally.add("last line", "it is cut off: no line end", offset)
            else:
                yield from self._sample(line, offset)
        yield from self._flush(Scrape(None))

    def _comment(self, line: str) -> Iterator[Scrape]:
        if line.startswith("# EOF"):
            yield from self._flush(Scrape(None))
        elif line.startswith(SCRAPED_AT):
            yield from self._flush(Scrape(time_ns(line[len(SCRAPED_AT) :]), marked=True))
        elif line.startswith(NO_ANSWER):
            yield from self._flush(Scrape(None))
            reason = line[len(NO_ANSWER) :].partition(" ")[2].strip()[:200] or "no reason given"
            self._tally.add("scrapes", f"a gap: the server did not answer ({reason})")
        elif line.startswith("# HELP ") and len(self.help) < MAX_SERIES:
            name, _, text = line[len("# HELP ") :].partition(" ")
            self.help[name] = text[:500]

    def _sample(self, line: str, offset: int) -> Iterator[Scrape]:
        match = _SAMPLE.fullmatch(line)
        value = _number(match[2]) if match else None
        if match is None or value is None:
            self._tally.add("lines", 'they are no sample such as `name{label="value"} 1.5`', offset)
            return
        series = match[1]
        if match[3]:
            self._stamp(series, value, match[3], offset)
            return
        if series in self._now.values:
            if self._together and series == next(iter(self._now.values)):
                yield from self._flush(Scrape(self._now.ts_ns, self._now.marked))
            elif self._now.marked:
                self._tally.add("samples", "their series is there twice in one scrape; the first counts", offset)
                return
            else:
                yield from self._flush(Scrape(None))
        if len(self._now.values) >= MAX_SERIES:
            self._tally.add("samples", f"a scrape of more than {MAX_SERIES:,} series", offset)
            return
        self._now.values[series] = value

    def _stamp(self, series: str, value: float, time: str, offset: int) -> None:
        ns = _stamp_ns(time)
        if ns is None:
            self._tally.add("samples", "their time is none", offset)
        elif self._held >= MAX_STAMPED:
            self._tally.add("samples", f"more than {MAX_STAMPED:,} samples with times of their own in one file", offset)
        else:
            self._held += 1
            self._stamped.setdefault(ns, Scrape(ns)).values.setdefault(series, value)

    def _flush(self, following: Scrape) -> Iterator[Scrape]:
        if self._now.values:
            yield self._now
        for ns in sorted(self._stamped):
            yield self._stamped[ns]
        self._now, self._stamped, self._held = following, {}, 0


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _stamp_ns(text: str) -> int | None:
    """Milliseconds in Prometheus' format, seconds in OpenMetrics': told apart by size. None beyond 64 bits of ns."""
    value = _number(text)
    if value is None or not isfinite(value) or not 0 <= value < 1e16:
        return None
    if value < 1e11:
        head, _, tail = text.partition(".")
        if head.isdigit() and (not tail or tail.isdigit()):
            ns = int(head) * NS_PER_S + int(tail[:9].ljust(9, "0"))
        else:
            ns = round(value * 1e9)
    else:
        ns = round(value) * 1_000_000
    return ns if fits(ns) else None

"""Timers that Megatron prints, by each --timing-log-option: the longest of all ranks is what a timer took.

    minmax   `(min, max) time across ranks (ms):`, then `    name .......: (3999.00, 4000.00)`
    max      `max time across ranks (ms):`, then `    name .......: 4000.00`
    all      `times across ranks (ms):`, then `  name:` and below it `     rank  0: 3999.00` of those it took time
and of old `time (ms) | name: 4000.00 | ...`
"""

import re
from itertools import pairwise

from collectors.reading.line_prefix import bare
from collectors.reading.textlog import seconds_to_ns

OLD_TIMER = re.compile(r"\| *([\w/-]{1,60}): (\d{1,12}(?:\.\d+)?)(?![\w.])", re.ASCII)
NEW_TIMER = re.compile(
    r"\s*([\w/-]{1,60}) \.{2,}: \((\d{1,12}(?:\.\d+)?), (\d{1,12}(?:\.\d+)?)\)", re.ASCII
)  # least and most of all ranks
MAX_HEAD = "max time across ranks (ms)"  # after which a timer is one number
MAX_TIMER = re.compile(r"\s*([\w/-]{1,60}) \.{2,}: (\d{1,12}(?:\.\d+)?)\s*$", re.ASCII)
ALL_HEAD = "times across ranks (ms):"
NAME_ALONE = re.compile(r"\s*([\w/-]{1,60}):\s*$", re.ASCII)
OF_RANK = re.compile(r"\s*rank +\d{1,7}: (\d{1,12}(?:\.\d+)?)\s*$", re.ASCII)

_STEP_TIME = re.compile(
    rb"iteration +\d+/ *\d+ \|[^\n]{0,400}?elapsed time per iteration \((m?)s\): *(\d{1,12}(?:\.\d+)?)"
)
_PAUSED = re.compile(rb"sav(?:e|ing)[ -]checkpoint|evaluate|eval-time|validation loss")


class PausesTold:
    """Which saves and evaluations were timed, by the iteration that they follow: of several hosts each may say so."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int | None, str | None]] = {}  # by kind: after which iteration, by which host

    def first(self, kind: str, step: int | None, host: str | None) -> bool:
        """Whether no other host has timed this one before."""
        last = self._last.get(kind)
        if last is not None and last[0] == step and (host is None or host != last[1]):
            return False
        self._last[kind] = step, host
        return True


class Timers:
    """What timers an attempt prints, and how: (name, ms) of each. `by_rank`: they stand above their ranks, until `end`;
    lines of others may come between."""

    def __init__(self) -> None:
        self._forms = (NEW_TIMER,)
        self.by_rank = False
        self._name: str | None = None
        self._longest: str | None = None

    def on_line(self, line: str) -> list[tuple[str, str]]:
        """Those that one line tells; a head tells how the next ones are printed."""
        if MAX_HEAD in line:
            self._forms = NEW_TIMER, MAX_TIMER
        elif ALL_HEAD in line:
            self.by_rank = True
        forms = ((form, text) for form in self._forms for text in (line, bare(line)))
        new = next((match for form, text in forms if (match := form.match(text))), None)
        return [(new[1], new[new.re.groups])] if new else OLD_TIMER.findall(line)

    def below(self, line: str) -> list[tuple[str, str]] | None:
        """The timer that ends with such a line, where `by_rank`; None where the line is none of theirs."""
        for text in (line, bare(line)):
            if match := OF_RANK.match(text):
                if self._name is not None and (self._longest is None or float(match[1]) > float(self._longest)):
                    self._longest = match[1]
                return []
            if match := NAME_ALONE.match(text):
                ended = self._ended()
                self._name = match[1]
                return ended
        return None

    def end(self) -> list[tuple[str, str]]:
        """The last of them, where `by_rank`."""
        self.by_rank = False
        return self._ended()

    def _ended(self) -> list[tuple[str, str]]:
        found = [] if self._name is None or self._longest is None else [(self._name, self._longest)]
        self._name = self._longest = None
        return found


def step_ahead_ns(head: bytes) -> int | None:
    """What a step takes by the first line of a log that follows another with no save and no evaluation between them."""
    for one, other in pairwise(_STEP_TIME.finditer(head)):
        if not _PAUSED.search(head, one.end(), other.start()):
            return seconds_to_ns(float(other[2]) * (1e-3 if other[1] else 1.0))
    return None


def ran_on(total: int, paused: int, gap: int | None, usual: int | None) -> bool:
    """Whether the printed time of steps, `total`, includes the saves and evaluations before it. `gap`: by the clock
    since the line before; `usual`: where that is not known, what as many steps take by the lines about it. In ns."""
    if gap is not None:
        return abs(gap - total) <= abs(gap - total - paused)
    if usual is None:
        return True
    return abs(total - paused - usual) <= 4 * abs(total - usual)  # unless they clearly took as long as ever without

"""What lines of NeMo look like, of its progress bars and of NeMo 2: steps, saves and restores.

A step line names one step and what that took, without the save behind it. Saves and restores tell when they began, in
seconds since the epoch; a log whose other lines are dated by the hosts' own clock and zone has them by that.
"""

import re
from typing import NamedTuple

from collectors.base import Source
from collectors.reading.line_prefix import Clock, plain
from collectors.reading.textlog import Tally, fits, lines, seconds_to_ns
from collectors.training.step_fields import NUMBER, fields_of
from collectors.training.unprinted import MOST, stood_for

STEP = re.compile(  # for `match`; atomic: only the first step is tried, others would fare no better
    r"(?a)(?>.*?(?P<step>global_step[=:] ?(\d{1,18})(?:\.0)?\b)).*?train_step_timing in s[=:] ?(\d{1,9}(?:\.\d+)?)"
)
PRINTED = re.compile(rb"global_step[=:] ?(\d{1,18})")
TIMING = "train_step_timing in s"
_OF_BAR = re.compile(r"(?:^|[\s,|\[])([A-Za-z]\w{0,79}(?: in s)?)=([-+\d.eE]{1,40}|-?inf|nan)(?=[\s,\]]|$)", re.ASCII)
_NO_METRICS = {"global_step", "iteration", "v_num", TIMING}
_SECONDS = r"(\d{9,11}(?:\.\d{1,9})?)s"
_TOOK = r"(\d{1,9}(?:\.\d{1,9})?)s"
_SAVED = re.compile(
    r"Global Checkpoint Save : Rank ?: 0 :(?: Iteration ?: (\d{1,18}) :)? "
    rf"Start time ?: {_SECONDS} : Save duration ?: {_TOOK}",
    re.ASCII,
)
_LOADED = re.compile(
    rf"Global Checkpoint Load : Rank ?: 0 : Start time ?: {_SECONDS} : Time spent in load_checkpoint ?: {_TOOK}",
    re.ASCII,
)
_LOOKED_AT = 1 << 24  # bytes in which the first save is looked for
_QUARTER_NS = 900 * 10**9  # by whole quarters of an hour clocks of zones differ
_NEAR_NS = 5 * 10**9  # between the end of a save and its line, which is dated to the second


class Checkpoint(NamedTuple):
    """A save or a restore, as rank 0 tells of it."""

    kind: str
    start: int
    end: int
    step: int | None


def checkpoint(line: str, offset: int, clock: Clock) -> Checkpoint | None:
    """What a line tells of a save or a restore; None where it tells of none."""
    if match := _SAVED.search(line):
        kind, step, began, lasted = "checkpoint_save", match[1], match[2], match[3]
    elif match := _LOADED.search(line):
        kind, step, began, lasted = "checkpoint_restore", None, match[1], match[2]
    else:
        return None
    start, took = seconds_to_ns(float(began)), seconds_to_ns(float(lasted))
    if start is None or took is None:
        return None
    if (at := clock.time_ns(line[: match.start()], offset)) is not None:
        ahead = at - (start + took)
        zone = (ahead + _QUARTER_NS // 2) // _QUARTER_NS * _QUARTER_NS
        start = start + zone if abs(ahead - zone) <= _NEAR_NS else at - took
    return Checkpoint(kind, start, start + took, int(step) if step and fits(int(step)) else None)


def begun_ns(source: Source, apart: int) -> int | None:
    """When the first step of a log began whose steps are not dated, by the save behind some of them: these took what
    is printed, one after the other. `apart`: from one printed step to the next. None where no save tells."""
    clock, before, took, each = Clock(source, Tally()), None, 0, 0
    for offset, line, _ in lines(source):
        if offset > _LOOKED_AT:
            break
        if TIMING in line and (match := STEP.match(plain(line))):
            step, printed = int(match[2]), seconds_to_ns(float(match[3]))
            if printed is None or clock.time_ns(plain(line)[: match.start("step")], offset) is not None:
                return None
            if before is None or step > before:
                count, each = stood_for(step, before, apart, printed, None)
                before, took = step, took + count * each
        elif "Global Checkpoint " in line and (found := checkpoint(plain(line), offset, clock)):
            if found.kind != "checkpoint_save" or before is None:
                return None
            since = (found.step or before) - before  # steps without a line; of one more it may be counted otherwise
            return found.start - took - (each * since if 1 < since <= MOST else 0)
    return None


def metrics(line: str, cut_off: bool) -> dict[str, float]:
    """The numbers of a step line beside its step and time; the last is left out where the file ends in it."""
    _, bars, text = line.partition("|")
    found = fields_of(text, cut_off) if bars else {}
    if not found:
        found = {name: float(value) for name, value in _OF_BAR.findall(line) if NUMBER.fullmatch(value)}
    return {name: value for name, value in found.items() if name not in _NO_METRICS}

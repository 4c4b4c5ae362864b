"""Why jobs are interrupted: the causes, in families, and the patterns of log lines that tell of each.

`cause_of(line)` says what one line tells of. A line that only tells *that* something failed (a worker exited, a
collective timed out) is a symptom: it counts where no line names more, and what names more counts before it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog.cause_patterns import EXCEPTION, GATE, HARMLESS, NOTHING, RULES, XIDS, ZERO
from catalog.entries import read_data


@dataclass(frozen=True)
class Cause:
    """A cause of interruptions. `name` is its key; `symptom`: it tells that something failed rather than what."""

    name: str
    family: str
    title: str
    meaning: str
    cure: str
    symptom: bool = False


def parse_causes(data: Mapping[str, Any]) -> dict[str, Cause]:
    """The causes of the data file by name. Raises ValueError for one that stands twice or is of no family."""
    causes: dict[str, Cause] = {}
    for raw in data["causes"]:
        cause = Cause(**raw)
        if cause.family not in data["families"] or cause.name in causes:
            raise ValueError(f"the cause {cause.name!r} stands twice, or its family {cause.family!r} is not listed")
        causes[cause.name] = cause
    return causes


_DATA = read_data("causes.json")
FAMILIES: dict[str, str] = _DATA["families"]  # with what each is
CAUSES = parse_causes(_DATA)

LINE_LIMIT = 2000  # characters of a line that are looked at: causes stand at the front
_NAME = r"((?=[\w.-]*\d)(?=[\w.-]*[a-z])[a-z0-9][\w.-]{1,62}(?<![.-]))"
_SYSLOG_TIME = r"(?:\w{3} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.,]+(?:Z|[+-]\d\d:?\d\d)?)"
_HOSTS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:host(?:name)?|node|instance|machine|server|peer)s?(?:\s|[/=:'\"]\s?){{1,2}}{_NAME}(?![\w-]*\()",
        rf"\bon {_NAME} cancelled",
        rf"\bnode failure on {_NAME}(?![\w.,\[-])",  # a list of hosts names none of them
        rf"\b(?:srun|slurmstepd): error: {_NAME}: ",
        rf"^\[pod/{_NAME}/",
        rf"^{_SYSLOG_TIME} {_NAME} [\w./-]+(?:\[\d+\])?:",
        rf"\bipmi: {_NAME}:|\b(?:on|from) (?=\S*-){_NAME}(?<!\.py)(?=[\s:,;)<]|\.?$)",
    )
)
_PARTED = re.compile(  # between the counts of a line: `nvlink errors=0` is one, what stands behind it no part of it
    r"([,;|{}()]|(?<==0)\s++"
    r"|(?<!\s)(?<!nvlink)(?<!ecc)(?<!xid)(?<!pcie)(?<!crc)(?<!fatal)(?<!uncorrectable)(?<!uncorrected)(?<!error)"
    r"(?<!errors:)(?<!counters:)(?<!counts:)\s++(?=[\w.]+=))",
    re.IGNORECASE,
)
_DEVICE = re.compile(
    r"(?<![a-z])(?:gpu|cuda|tpu|chip|accelerator|/dev/nvidia|/dev/accel|local[_ ]?rank)"
    r"(?:[ _-]?(?:id|index|device|chip))?(?: ?[:=#] ?| |-)?(\d{1,3})(?![\d.x]|:[0-9a-f]{2}|-bit)",
    re.IGNORECASE,
)


@lru_cache(maxsize=1)
def _rules() -> tuple[tuple[str | None, tuple[str, ...], Callable[[str], re.Match[str] | None]], ...]:
    """Each rule with what looks for its patterns: compiled when the first line is looked at, which few programs do."""
    return tuple((rule.cause, rule.needles, re.compile("|".join(rule.patterns)).search) for rule in RULES)


def cause_of(line: str) -> str | None:
    """The cause that a line of a log tells of (a key of CAUSES), or None where no pattern fits. What a line counts
    nothing of tells of none, and hides nothing beside it: `ECC errors: 12, Xid errors: 0` tells of the first."""
    line = line[:LINE_LIMIT]
    low = line.lower()
    cause = _named(line, low)
    if cause is None or HARMLESS.search(low):
        return None
    if not NOTHING.search(low):
        return cause
    parts = _PARTED.split(line)
    rest = "".join(part for part in parts if not NOTHING.search(part.lower()) and not ZERO.search(part.lower()))
    return cause_of(rest) if len(rest) < len(line) and not NOTHING.search(rest.lower()) else None


def _named(line: str, low: str) -> str | None:
    """What the first rule that fits names. `low`: the line in small letters."""
    for cause, needles, search in _rules():
        for needle in needles:
            if needle in low:
                if match := search(low):
                    return cause or XIDS.get(int(match["xid"]), "driver")
                break
    return "software" if EXCEPTION.search(line) else None


def telling(lines: Sequence[str], also: str = "") -> list[int]:
    """Which of the lines may tell of a cause, or hold `also`, another pattern for RE2: one pass over all of them, ten
    times faster than to ask `cause_of` of each where most are ordinary. Their case does not matter."""
    text = [line[:LINE_LIMIT] for line in lines]
    try:
        array = pa.array(text, pa.string())
    except UnicodeEncodeError:  # lone surrogates
        array = pa.array([line.encode("utf-8", "replace").decode() for line in text], pa.string())
    told = pc.match_substring_regex(array, f"{GATE}|{also}" if also else GATE, ignore_case=True)
    return [int(i) for i in np.flatnonzero(told.to_numpy(zero_copy_only=False))]


def causes_of(lines: Sequence[str], bare: Callable[[str], str] = str) -> list[str | None]:
    """`cause_of` of each line. `bare` takes from a line what a launcher put before it: where a line begins tells
    much."""
    causes: list[str | None] = [None] * len(lines)
    for i in telling(lines):
        causes[i] = cause_of(bare(lines[i][:LINE_LIMIT]))
    return causes


def host_of(line: str) -> str | None:
    """The host that a line names, else the one that its syslog or kubectl prefix says wrote it; None where neither.

    A host is a name with a letter and a digit in it, where a host is usually named: `rank 3` or `node 3` name none.
    """
    for pattern in _HOSTS:
        if match := pattern.search(line[:LINE_LIMIT]):
            return next(name for name in match.groups() if name)
    return None


def device_of(line: str) -> int | None:
    """The number of the accelerator on its host (`GPU 3`, `cuda:3`, `/dev/nvidia3`), None where a line names none."""
    match = _DEVICE.search(line[:LINE_LIMIT])
    return int(match[1]) if match else None

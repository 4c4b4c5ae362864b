"""Any other log that may tell why a job was interrupted, or what it ran with: kernel messages, journals, scheduler and
Kubernetes events, a launcher's dump of its environment, the output of programs that print no step this project reads.
It brings `evidence` and `settings` and nothing else.

Such files look like nothing in particular, so every other collector goes first. What is taken is named like a log and
reads like one: lines that begin with a time, a level, a rank or a host, or that tell of a failure or of a setting.
"""

import re
from collections.abc import Iterator

from catalog.causes import cause_of
from collectors.base import Item, Source
from collectors.reading.evidence import Evidence
from collectors.reading.line_prefix import Clock, bare
from collectors.reading.settings import tells
from collectors.reading.textlog import Tally, lines, tail
from errors import InputError

NAME = "job_log"
TITLE = "job log"
HELP = (
    "Other logs (dmesg, journal, Slurm, kubectl get events -o json, stderr, a launcher's environment): the lines that "
    "tell why a job was interrupted, and settings that are known to cost."
)

_SURE = 0.5  # just enough to be read, and less than any format that knows its files
_NAMED = re.compile(
    r"(?:\.(?:log|out|err|stderr|stdout)(?:\.\d+)?"
    r"|(?:^|[/\\._-])(?:dmesg|journal(?:ctl)?|syslog|messages|kern|events)(?:-[\w-]+|\.\d+|\.txt)*"
    r"|\.(?:INFO|WARNING|ERROR|FATAL)(?:\.[\d.-]+)?)(?:\.gz)?$",
)
_TEXT = re.compile(r"\.txt(?:\.gz)?$", re.IGNORECASE)
_LOG_LINE = re.compile(
    r"^\W{0,3}(?:"
    r"\d{4}[-/]?\d\d[-/]?\d\d[T ]\d\d:?\d\d|[IWEF]\d{3,8} \d\d:\d\d"  # a time
    r"|(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
    r"|\[ *\d+\.\d{6}\]"  # seconds since boot
    r"|\[?(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)\b"
    r"|\[?rank[ _-]?\d+\]?:|\d{1,6}: |\[pod/|[\w.-]+ +\| |(?:srun|slurmstepd|sbatch|kernel|systemd)\b.*:"
    r"|LAST SEEN +TYPE|\S+ +(?:Normal|Warning) +\w+ "  # kubectl get events
    r"|\{'\w+': )"  # a dict as Python prints it: what Hugging Face's Trainer says of a step
)
_NO_LOG = re.compile(rb"\{(?!')|<|\[[{\n]")  # how JSON and XML begin
_SOURCE_CODE = re.compile(
    r"^\s*(?:import \w|from \w[\w.]* import |def \w+\(|class \w+[(:]|#include|package \w|#!|---$|<\w)"
)
_LEAST_SHARE = 0.2  # of the lines at either end begin like a log's


def sniff(source: Source) -> float:
    named = bool(_NAMED.search(source.name))
    if not (named or _TEXT.search(source.name)) or b"\0" in source.head or not source.head.strip():
        return 0.0
    if _NO_LOG.match(source.head.lstrip()):
        return 0.0
    ends = [_lines(source.head), _lines(tail(source))]
    if any(_share(_SOURCE_CODE, found) > 0.05 for found in ends):
        return 0.0
    if any(_share(_LOG_LINE, found) >= _LEAST_SHARE for found in ends):
        return _SURE
    if any(tells(found) for found in ends):
        return _SURE
    return _SURE if named and any(cause_of(bare(line)) for found in ends for line in found[-200:]) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Evidence and settings. Raises InputError where no line tells of either."""
    tally = Tally()
    evidence = Evidence(source, tally, Clock(source, tally))
    told = False
    for offset, line, _ in lines(source):
        if line:
            evidence.see(offset, line, None)
        for rows in evidence.full():
            told = True
            yield rows
    for rows in evidence.rest():
        told = True
        yield rows
    if not told:
        raise InputError(
            "no line in it tells of a failure or of a setting, and it is no format that brings anything else",
            where=source.name,
            expected="lines such as `NVRM: Xid ...`, `Traceback ...`, `CANCELLED ... DUE TO TIME LIMIT`, `OOMKilled`, "
            "`XLA_FLAGS=...`",
        )
    yield from tally.lost()


def _lines(text: bytes) -> list[str]:
    return [line for line in text.decode("utf-8", "replace").splitlines() if line.strip()]


def _share(pattern: re.Pattern, found: list[str]) -> float:
    return sum(bool(pattern.match(line)) for line in found) / len(found) if found else 0.0

"""Restart cycles of the NVIDIA resiliency extension (ft_launcher), as its log lines tell of them:

    ... - Cycle: 3 Event: failure_detected Node: n7_1234_0 Rank: 5 Time: 2026-03-04 05:06:07.123 UTC

A cycle begins with the failure of the workers before (all but the first), gathers the nodes (rendezvous) and starts the
workers. Each cycle that started any becomes a `job` row, an attempt, from its first worker_start_started on; it is
open-ended, since nothing tells that the workers came to their end. The rest of the cycle is in the row's detail, as
first and last time of each event: no sign of life of the attempt before. A failure_detected becomes `evidence` of the
attempt whose workers were running then, as a symptom: it tells that, not why. Any other line that tells why does, too.

A launcher counts its cycles from 0. Where a job was put back into the queue its new launchers write on in the same
file, of the same hosts or of others: a cycle that is not beyond the last one, and begins well after that had, is of
another launch.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator

from collectors.base import Item, Source
from collectors.reading.evidence import Evidence
from collectors.reading.line_prefix import plain
from collectors.reading.textlog import DATED, NS_PER_S, Buffer, Tally, clean, is_text_log, lines, moment_ns
from errors import InputError

NAME = "nvrx"
TITLE = "NVIDIA resiliency log"
HELP = "Restart cycles of the NVIDIA resiliency extension (ft_launcher logs): attempts, rendezvous, failures."

_EVENTS = (
    "failure_detected",
    "worker_terminated",
    "rendezvous_started",
    "rendezvous_completed",
    "worker_start_started",
    "worker_start_completed",
)
_BEGINNING = ("rendezvous_started", "worker_start_started")
_LINE = re.compile(
    r"Cycle: *(?P<cycle>\d{1,9}),? +Event: *(?P<event>\w{1,40}),? +Node: *(?P<node>[^\s,]{1,200}),? +"
    r"(?:Rank: *(?P<rank>-?\w{1,12}),? +)?Time: *(?=\d{4}-)",
    re.ASCII,
)
_SNIFF = re.compile(rb"Cycle: *\d+,? +Event: *(?:" + "|".join(_EVENTS).encode() + rb")\b")
_HOST = re.compile(r"(.+?)(?:_\d+)+")  # a node is named host_pid_number
_TOGETHER_NS = 60 * NS_PER_S  # nodes of one launch begin a cycle within so long, and none is put back so soon
_MOST_CYCLES, _MOST_FAILURES = 100_000, 100_000  # of one log


def sniff(source: Source) -> float:
    return 0.9 if is_text_log(source) and _SNIFF.search(source.head) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Lifecycle and evidence. Raises InputError where no line tells of a cycle."""
    log = _Log(source)
    for offset, line, whole in lines(source):
        if "Event:" in line and log.event(offset, plain(line), whole):
            continue
        log.evidence.see(offset, line, log.attempt)
        yield from log.evidence.full()
    if not log.cycles:
        raise InputError(
            "no restart cycle in it",
            where=source.name,
            expected="lines such as `- Cycle: 0 Event: worker_start_completed Node: n7 Rank: 0 Time: ... UTC`",
        )
    yield from log.jobs()
    yield from log.evidence.rest()
    yield from log.tally.lost()


def _started(cycle: dict[str, list[int]]) -> list[int] | None:
    """When a cycle's workers were started, as far as it tells."""
    return cycle.get("worker_start_started") or cycle.get("worker_start_completed")


class _Log:
    def __init__(self, source: Source):
        self.name, self.tally = source.name, Tally()
        self.evidence = Evidence(source, self.tally)
        self.attempt, self.begun = 0, False  # as far as the log has come
        self.launch = 0
        self.latest: tuple[int, int] | None = None  # the furthest cycle of this launch that began, and when
        self.nodes: dict[str, str] = {}  # of this launch, by their hosts
        # (launch, cycle): event: first time, last time, how many told of it
        self.cycles: dict[tuple[int, int], dict[str, list[int]]] = {}
        self.failures: list[tuple[int, int, str, str]] = []

    def event(self, offset: int, line: str, whole: bool) -> bool:
        """Whether the line is an event of a cycle; what it tells is kept."""
        match = _LINE.search(line)
        if not match:
            return False
        stamp = DATED.match(line, match.end())
        at = moment_ns(stamp) if stamp else None
        if match["event"] not in _EVENTS or stamp is None or at is None or not (whole or stamp["zone"]):
            self.tally.add("cycle events", "of a kind that is not known, or without a time", offset)
            return True
        event, node = match["event"], match["node"]
        named = _HOST.fullmatch(node)
        host = named[1] if named else node
        if event in _BEGINNING:
            self._begins(int(match["cycle"]), at, host, node)
        number = self.launch, int(match["cycle"])
        if number not in self.cycles and len(self.cycles) >= _MOST_CYCLES:
            raise InputError(f"more than {_MOST_CYCLES:,} cycles", where=self.name, expected="the cycles of one job")
        times = self.cycles.setdefault(number, {}).setdefault(event, [at, at, 0])
        times[:] = min(times[0], at), max(times[1], at), times[2] + 1
        if event == "worker_start_started" and times[2] == 1:
            self.attempt += self.begun
            self.begun = True
        elif event == "failure_detected" and len(self.failures) < _MOST_FAILURES:
            self.failures.append((at, offset, line, clean(host)))
        return True

    def _begins(self, number: int, at: int, host: str, node: str) -> None:
        """Follow which launch a cycle that begins is of."""
        if self.latest is not None and at > self.latest[1] + _TOGETHER_NS:
            last = self.latest[0]
            if number < last or (number == last and self._again(host, node, at)):
                self.launch, self.latest, self.nodes = self.launch + 1, None, {}
        if self.latest is None or number > self.latest[0]:
            self.latest = number, at
        self.nodes.setdefault(host, node)

    def _again(self, host: str, node: str, at: int) -> bool:
        """Whether a node that begins the furthest cycle at a later time is of another launch: one of a host that was
        there under another name, or of a new host once that cycle's workers had been started, who wait for all."""
        if host in self.nodes or self.latest is None:
            return self.nodes.get(host, node) != node
        times = _started(self.cycles.get((self.launch, self.latest[0]), {}))
        return times is not None and at > times[0] + _TOGETHER_NS

    def jobs(self) -> Iterator[Item]:
        life = Buffer("lifecycle", "kind", "start_ns", "attempt", "detail", "order", "source")
        begun = {}  # when each cycle's workers were started
        for number, cycle in self.cycles.items():
            if times := _started(cycle):
                begun[number] = times[0]
            else:
                self.tally.add("cycles", "their workers were never started: no attempt")
        in_time = sorted(begun, key=lambda number: (begun[number], number))
        for attempt, number in enumerate(in_time):
            events = {
                event: {"first_ns": first, "last_ns": last, "count": count}
                for event, (first, last, count) in self.cycles[number].items()
            }
            detail = json.dumps({"cycle": number[1], **events}, sort_keys=True)
            life.add("job", begun[number], attempt, detail, attempt, self.name)
            yield from life.full()
        yield from life.rest()
        starts = [begun[number] for number in in_time]
        for at, offset, line, host in sorted(self.failures):
            attempt = max(bisect_right(starts, at) - 1, 0)
            self.evidence.add("process_exit", offset, line, attempt, ts_ns=at, host=host, severity="error")

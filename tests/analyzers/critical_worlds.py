"""Worlds whose critical path is known: threads, streams, events, synchronisation and collectives over ranks, as a graph
whose longest path is found here, and the trace that a profiler would write of it. Nothing here knows an analyzer.

A node's time is the greatest, over what it waits for, of that node's time and what passes until it: the longest path.
Times are ns on one true clock; traces are written by each rank's own, `shift` off.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from runs.tables import MemoryTables

EPOCH = 1_767_571_200_000_000_000
MAIN, OTHER = "thread 1 (python)", "thread 2 (autograd)"
US = 1000
LAG = 3 * US  # from the end of a call to the start of what it launched on an idle stream
BETWEEN = 700  # from the end of what ran before to the start of what was queued
RETURN = 5 * US  # from the end of what was waited for to the return of the call
WAKE = 4 * US  # from one thread's word to the other's start

Piece = tuple[str, int, int]  # kind, rank, ns


class Node:
    """An instant. `edges()`: what it waits for, each with the pieces that pass until it, in order of time. `ends`: the
    kind and stream of the execution that ends here."""

    def __init__(self, edges: Callable[[], list[tuple["Node", list[Piece]]]] | None = None):
        self._edges, self._time, self.bound = edges, None if edges else 0, None
        self.found: list[tuple[Node, list[Piece]]] = []
        self.ends: tuple[str, int] | None = None

    def time(self) -> int:
        if self._time is None:
            self.found = self._edges()
            ends = [node.time() + sum(ns for _, _, ns in pieces) for node, pieces in self.found]
            self._time = max(ends)
            self.bound = self.found[ends.index(self._time)]
        return self._time

    def without(self, ops: tuple[tuple[str, int], ...], known: dict["Node", int]) -> int:
        """The longest path to it through the same graph, where these executions take no time."""
        if self not in known:
            self.time()
            gone = self.ends in ops
            ends = [n.without(ops, known) + (0 if gone else sum(ns for *_, ns in pieces)) for n, pieces in self.found]
            known[self] = max(ends, default=0)
        return known[self]


def chain(node: Node) -> list[Piece]:
    """The pieces of the longest path to a node, backwards."""
    out: list[Piece] = []
    while node.time() or node.bound:
        if node.bound is None:
            break
        node, pieces = node.bound
        out += reversed(pieces)
    return out


def clipped(pieces: list[Piece], skip: int, width: int) -> dict[tuple[str, int], int]:
    """Ns by kind and rank of what lies `skip` to `skip + width` from the end."""
    out: dict[tuple[str, int], int] = {}
    at = 0
    for kind, rank, ns in pieces:
        inside = min(at + ns, skip + width) - max(at, skip)
        if inside > 0:
            out[kind, rank] = out.get((kind, rank), 0) + inside
        at += ns
    return out


@dataclass
class Execution:
    rank: int
    stream: int
    kind: str
    start: Node
    end: Node
    call: tuple[str, Node, Node]  # thread, begin, end
    meeting: int | None = None


@dataclass
class Rank:
    """What a rank's trace holds."""

    number: int
    now: dict[str, Node] = field(default_factory=dict)
    executions: list[Execution] = field(default_factory=list)
    events: list[tuple[str, str, Node, Node, int]] = field(
        default_factory=list
    )  # thread, name, begin, end, correlation
    told: list[dict] = field(default_factory=list)
    fetches: list[tuple[Node, Node]] = field(default_factory=list)
    pending: dict[int, list[Execution]] = field(default_factory=dict)


class World:
    """Ranks that each run a program drawn by chance; collectives are where the program says, in one order on all."""

    def __init__(self, seed: int, ranks: int = 2, actions: int = 30, shift: tuple[int, ...] = (0, 0)):
        self.draw, self.shift = random.Random(seed), shift
        self.ranks = [Rank(r) for r in range(ranks)]
        self.meetings: list[list[Execution]] = []
        self.correlation = 0
        root = Node()
        for rank in self.ranks:
            for thread in (MAIN, OTHER):
                rank.now[thread] = root
                self.event(rank, thread, "aten::begin", "launching", 1 * US)
            self.event(rank, MAIN, "aten::mul", "launching", 80 * US)  # so long that a thread that waits is seen to
        blocks = [self.draw.choice(("work", "work", "handover", "collective")) for _ in range(actions // 3)]
        for block in [*blocks, "collective", "work"]:
            meeting: list[Execution] = []
            for rank in self.ranks:
                if block == "handover":
                    self.handover(rank)
                else:
                    self.work(rank, MAIN, self.draw.randint(1, 4))
                if block == "collective":
                    self.collective(rank, meeting)

    def event(self, rank: Rank, thread: str, name: str, kind: str, ns: int, correlation: int = 0) -> tuple[Node, Node]:
        begin = rank.now[thread]
        end = Node(lambda: [(begin, [(kind, rank.number, ns)])])
        rank.events.append((thread, name, begin, end, correlation))
        rank.now[thread] = end
        return begin, end

    def code(self, rank: Rank, thread: str) -> None:
        """What no event marks."""
        begin, ns = rank.now[thread], self.draw.randint(100, 2 * US)
        rank.now[thread] = Node(lambda: [(begin, [("host_code", rank.number, ns)])])

    def work(self, rank: Rank, thread: str, actions: int) -> None:
        for _ in range(actions):
            what = self.draw.choice(("op", "code", "launch", "launch", "launch", "wait", "sync", "copy", "fetch"))
            if what == "op":
                self.event(rank, thread, "aten::mul", "launching", self.draw.randint(5 * US, 40 * US))
            elif what == "code":
                self.code(rank, thread)
            elif what == "launch":
                self.launch(rank, thread, self.draw.choice((7, 9)), "computing", self.draw.randint(1 * US, 60 * US))
            elif what == "wait":
                self.wait(rank, thread)
            elif what == "sync":
                self.sync(rank, thread)
            elif what == "copy":
                self.copy(rank, thread)
            elif thread == MAIN:
                begin, end = self.event(rank, thread, "next batch", "input_wait", self.draw.randint(5 * US, 30 * US))
                rank.fetches.append((begin, end))

    def before(self, rank: Rank, stream: int) -> list[Execution]:
        """What the next execution on a stream waits for: what ran before it, and events."""
        mine = [x for x in rank.executions if x.stream == stream][-1:]
        return [*mine, *rank.pending.pop(stream, [])]

    def launch(self, rank: Rank, thread: str, stream: int, kind: str, ns: int) -> Execution:
        call_ns = self.draw.randint(2 * US, 5 * US)
        begin, end = self.event(rank, thread, "cudaLaunchKernel", "launching", call_ns)
        ahead = self.before(rank, stream)

        def edges():
            ready = max((x.end.time() for x in ahead), default=-1)
            queued = ready >= end.time()
            r = rank.number
            found = [(x.end, [("between_kernels", r, BETWEEN)] if queued else []) for x in ahead]
            return [*found, (begin, [("launch_delay", r, call_ns + (0 if queued else LAG))])]

        start = Node(edges)
        done = Node(lambda: [(start, [(kind, rank.number, ns)])])
        done.ends = kind, stream
        ran = Execution(rank.number, stream, kind, start, done, (thread, begin, end))
        rank.executions.append(ran)
        return ran

    def collective(self, rank: Rank, meeting: list[Execution]) -> None:
        """All ranks leave together, once the last is there and the transfer is done. Of several that come last in the
        same ns each gives a longest path: it stays on its rank if that is one, else goes to the lowest."""
        if not meeting:
            self.meetings.append(meeting)
            self.transfer = self.draw.randint(5 * US, 50 * US)
        ran = self.launch(rank, MAIN, 20, "communication", 0)
        transfer = self.transfer

        def edges():
            home_first = sorted(meeting, key=lambda x: x.rank != rank.number)
            return [(x.start, [("communication", rank.number, transfer)]) for x in home_first]

        ran.end = Node(edges)
        ran.end.ends = "communication", 20
        ran.meeting = len(self.meetings) - 1
        meeting.append(ran)

    def wait(self, rank: Rank, thread: str) -> None:
        """A stream waits for what another was given so far."""
        from_, to = self.draw.sample((7, 9, 20), 2)
        recorded, waited = self.numbered(), self.numbered()
        given = [x for x in rank.executions if x.stream == from_][-1:]
        self.event(rank, thread, "cudaEventRecord", "host_code", 1 * US, recorded)
        begin, _ = self.event(rank, thread, "cudaStreamWaitEvent", "host_code", 1 * US, waited)
        rank.pending[to] = rank.pending.get(to, []) + given
        rank.told.append(
            {"name": "Stream Wait Event", "at": begin, "correlation": waited, "stream": to, "wait_on_stream": from_}
            | {"wait_on_cuda_event_record_corr_id": recorded}
        )

    def numbered(self) -> int:
        self.correlation += 1
        return self.correlation

    def sync(self, rank: Rank, thread: str) -> None:
        """A call that returns once a stream, or the device, is done."""
        stream = self.draw.choice((None, 7, 9))
        mine = [x for x in rank.executions if stream in (None, x.stream)]
        begin, correlation = rank.now[thread], self.numbered()

        def edges():
            late = [x for x in mine if x.end.time() > begin.time()]
            found = [(x.end, [("return_delay", rank.number, RETURN)]) for x in late]
            return [*found, (begin, [("waiting", rank.number, 1 * US)])]

        end = Node(edges)
        name = "cudaDeviceSynchronize" if stream is None else "cudaStreamSynchronize"
        rank.events.append((thread, name, begin, end, correlation))
        rank.now[thread] = end
        if stream is not None:
            rank.told.append({"name": "Stream Sync", "at": begin, "correlation": correlation, "stream": stream})

    def copy(self, rank: Rank, thread: str) -> None:
        """A copy whose call returns once it is done."""
        begin, ns, r = rank.now[thread], self.draw.randint(2 * US, 30 * US), rank.number
        ahead = self.before(rank, 7)

        def edges():
            queued = max((x.end.time() for x in ahead), default=-1) >= begin.time()
            found = [(x.end, [("between_kernels", r, BETWEEN)] if queued else []) for x in ahead]
            return [*found, (begin, [("launch_delay", r, 0 if queued else 2 * LAG)])]

        start = Node(edges)
        done = Node(lambda: [(start, [("copies", r, ns)])])
        done.ends = "copies", 7
        end = Node(lambda: [(done, [("return_delay", r, RETURN)])])
        rank.executions.append(Execution(r, 7, "copies", start, done, (thread, begin, end)))
        rank.events.append((thread, "cudaMemcpy", begin, end, 0))
        rank.now[thread] = end

    def handover(self, rank: Rank) -> None:
        """The main thread has the other one work, and waits for it."""
        self.event(rank, MAIN, "aten::mul", "launching", self.draw.randint(5 * US, 40 * US))
        given = rank.now[MAIN]
        rank.now[OTHER] = Node(lambda: [(given, [("host_code", rank.number, WAKE)])])
        self.event(rank, OTHER, "aten::mul", "launching", self.draw.randint(60 * US, 90 * US))
        self.launch(
            rank, OTHER, 7, "computing", self.draw.randint(1 * US, 60 * US)
        )  # else it is none that is waited for
        self.work(rank, OTHER, self.draw.randint(1, 4))
        self.event(rank, OTHER, "aten::mul", "launching", self.draw.randint(5 * US, 40 * US))
        done = rank.now[OTHER]
        rank.now[MAIN] = Node(lambda: [(done, [("host_code", rank.number, WAKE)])])
        self.event(rank, MAIN, "aten::mul", "launching", self.draw.randint(60 * US, 90 * US))

    def truth(self, rank: int, begin: int, end: int) -> dict[tuple[str, int], int]:
        """Ns by kind and rank of the path of a window: back from what runs at its end and ends last, else from what
        begins next. KeyError-free only where something begins after the window or runs at its end."""
        mine = self.ranks[rank].executions
        running = [x for x in mine if x.start.time() < end]
        last = max(running, key=lambda x: x.end.time(), default=None)
        if last is not None and last.end.time() >= end:
            return clipped(chain(last.end), last.end.time() - end, end - begin)
        following = min((x for x in mine if x.start.time() >= end), key=lambda x: x.start.time())
        return clipped(chain(following.start), following.start.time() - end, end - begin)

    def gain(self, ops: tuple[tuple[str, int], ...]) -> int:
        """Ns, summed over ranks, by which all would be done sooner if these executions took no time."""
        known: dict[Node, int] = {}
        ends = [[x.end for x in rank.executions] for rank in self.ranks]
        return sum(max(x.time() for x in e) - max(x.without(ops, known) for x in e) for e in ends)

    def extent(self, rank: int) -> tuple[int, int]:
        mine = self.ranks[rank].executions
        return min(x.start.time() for x in mine), max(x.end.time() for x in mine)

    def tables(self, steps: dict[int, list[tuple[int, int]]] | None = None) -> MemoryTables:
        return _Trace(self).tables(steps or {})


class _Trace:
    """Rows as a collector would write them."""

    def __init__(self, world: World):
        self.world = world
        self.ops = {n: [] for n in ("capture", "op_id", "host", "device", "line", "role", "category", "op")}
        self.rows = {n: [] for n in ("capture", "event", "device", "op_id", "start_ps", "dur_ps")}
        self.launches = {
            n: [] for n in ("capture", "event", "device", "call", "line", "call_start_ps", "call_dur_ps", "graph")
        }
        self.stats = {n: [] for n in ("capture", "event", "name", "int_value")}
        names = ("capture", "host", "rank", "device", "group", "kind", "bytes", "op", "seq", "start_ns", "end_ns")
        self.collectives = {n: [] for n in names}
        self.lifecycle = {n: [] for n in ("kind", "host", "start_ns", "end_ns")}
        self.number: dict[tuple, int] = {}

    def op(self, rank: int, device: int | None, line: str, role: str, category: str, name: str) -> int:
        key = (rank, device, line, name)
        if key not in self.number:
            self.number[key] = len(self.number)
            row = (rank, self.number[key], f"h{rank}", device, line, role, category, name)
            self.add(self.ops, row)
        return self.number[key]

    def add(self, columns: dict[str, list], row: tuple) -> None:
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)

    def event(self, rank: int, device: int | None, op: int, begin: int, end: int) -> int:
        n = len(self.rows["event"])
        self.add(self.rows, (rank, n, device, op, begin * 1000, (end - begin) * 1000))
        return n

    def tables(self, steps: dict[int, list[tuple[int, int]]]) -> MemoryTables:
        for rank in self.world.ranks:
            self.rank(rank)
        rows = [(r, n, a, b) for r, mine in steps.items() for n, (a, b) in enumerate(mine)]
        at = [EPOCH + s for s in self.world.shift]
        count = len(self.world.ranks)
        return MemoryTables(
            {
                "captures": {
                    "capture": list(range(count)),
                    "host": [f"h{r}" for r in range(count)],
                    "process": list(range(count)),
                    "start_ns": at[:count],
                    "stop_ns": [None] * count,
                },
                "ops": self.ops,
                "op_events": self.rows,
                "launches": self.launches,
                "event_stats": self.stats,
                "collectives": self.collectives,
                "lifecycle": self.lifecycle,
                "steps": {
                    "step": [n for _, n, _, _ in rows],
                    "host": [f"h{r}" for r, *_ in rows],
                    "start_ns": [at[r] + a for r, _, a, _ in rows],
                    "dur_ns": [b - a for *_, a, b in rows],
                    "capture": [r for r, *_ in rows],
                },
            }
        )

    def rank(self, rank: Rank) -> None:
        r, shift = rank.number, EPOCH + self.world.shift[rank.number]
        for thread, name, begin, end, correlation in rank.events:
            n = self.event(r, None, self.op(r, None, thread, "host", "host", name), begin.time(), end.time())
            if correlation:
                self.add(self.stats, (r, n, "correlation", correlation))
        for told in rank.told:
            op = self.op(r, None, f"stream {told['stream']}", "other", "other", told["name"])
            n = self.event(r, None, op, told["at"].time(), told["at"].time() + 1)
            for name in ("correlation", "stream", "wait_on_stream", "wait_on_cuda_event_record_corr_id"):
                if name in told:
                    self.add(self.stats, (r, n, name, told[name]))
        for x in rank.executions:
            category = {"computing": "matmul", "communication": "collective", "copies": "copy"}[x.kind]
            op = self.op(r, r, f"stream {x.stream}", "compute", category, f"{category} {x.stream}")
            n = self.event(r, r, op, x.start.time(), x.end.time())
            thread, begin, end = x.call
            call = "cudaMemcpy" if x.kind == "copies" else "cudaLaunchKernel"
            took = (end.time() - begin.time()) * 1000
            self.add(self.launches, (r, n, r, call, thread, begin.time() * 1000, took, False))
            if x.meeting is not None:
                group = ",".join(str(k) for k in range(len(self.world.ranks)))
                times = (x.meeting, shift + x.start.time(), shift + x.end.time())
                self.add(self.collectives, (r, f"h{r}", r, r, group, "all-reduce", 8.0, "all-reduce", *times))
        for begin, end in rank.fetches:
            self.add(self.lifecycle, ("data_loading", f"h{r}", shift + begin.time(), shift + end.time()))

"""Why devices were idle, instant by instant: judged again by brute force over every nanosecond of random worlds."""

import random
from dataclasses import dataclass, field

import pytest

from analyzers.device import overlap
from analyzers.device.launches import launches
from analyzers.device.launches.launches import KINDS
from analyzers.device.launches.seen import launched
from analyzers.time import ledger
from errors import QuestionError
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.conftest import seeds

EPOCH = 1_767_571_200_000_000_000
MAIN, BACKWARD = "thread 1 (python)", "thread 2 (autograd)"
NAMED = {
    "aten::mul": "launching",
    "log_metrics": "logging",
    "my_own_loop": "host_code",
    "cudaStreamSynchronize": "waiting",
}
LOUDER = ["host_code", "waiting", "launching", "device_to_host", "logging"]  # where events lie over one another


@dataclass
class World:
    """One process and one device, times in ns from the capture's start.

    `runs`: (stream, start, end, call) with a call (thread, start, end) or None; `events`: (thread, name, start, end);
    `steps`: (start, end); `fetches`: (start, end).
    """

    runs: list = field(default_factory=list)
    events: list = field(default_factory=list)
    steps: list = field(default_factory=list)
    fetches: list = field(default_factory=list)
    categories: tuple = ("matmul",)

    def tables(self, shift: int = 0) -> MemoryTables:
        begin, stop = EPOCH + shift, max((b for _, b in self.steps), default=None)
        ops = {n: [] for n in ("capture", "op_id", "host", "device", "line", "role", "category", "op")}
        rows = {n: [] for n in ("capture", "event", "device", "op_id", "start_ps", "dur_ps")}
        calls = {n: [] for n in ("capture", "event", "device", "call", "line", "call_start_ps", "call_dur_ps", "graph")}
        number: dict = {}

        def op(device, line, role, category, name):
            key = (device, line, name, category)
            if key not in number:
                number[key] = len(number)
                for column, value in zip(ops, (0, number[key], "h", device, line, role, category, name), strict=True):
                    ops[column].append(value)
            return number[key]

        def event(device, which, start, end):
            n = len(rows["event"])
            for column, value in zip(rows, (0, n, device, which, start * 1000, (end - start) * 1000), strict=True):
                rows[column].append(value)
            return n

        for start, end in self.steps:
            event(None, op(None, MAIN, "host", "annotation", "ProfilerStep"), start, end)
        for thread, name, start, end in self.events:
            event(None, op(None, thread, "host", "host", name), start, end)
        for n, (stream, start, end, call) in enumerate(self.runs):
            category = self.categories[n % len(self.categories)]
            which = event(0, op(0, f"stream {stream}", "compute", category, f"{category} {stream}"), start, end)
            if call is not None:
                thread, began, done = call
                told = (0, which, 0, "cudaLaunchKernel", thread, began * 1000, (done - began) * 1000, False)
                for column, value in zip(calls, told, strict=True):
                    calls[column].append(value)
        return MemoryTables(
            {
                "captures": {"capture": [0], "host": ["h"], "start_ns": [begin], "stop_ns": [stop and begin + stop]},
                "ops": ops,
                "op_events": rows,
                "launches": calls,
                "steps": {
                    "step": list(range(len(self.steps))),
                    "host": ["h"] * len(self.steps),
                    "start_ns": [begin + a for a, _ in self.steps],
                    "dur_ns": [b - a for a, b in self.steps],
                    "capture": [0] * len(self.steps),
                },
                "lifecycle": {
                    "kind": ["data_loading"] * len(self.fetches),
                    "host": ["h"] * len(self.fetches),
                    "start_ns": [begin + a for a, _ in self.fetches],
                    "end_ns": [begin + b for _, b in self.fetches],
                },
            }
        )

    def by_hand(self, begin: int, end: int) -> dict[str, int]:
        """Nanoseconds by kind, each judged by itself."""
        out = dict.fromkeys(KINDS, 0)
        for t in range(begin, end):
            if any(a <= t < b for _, a, b, _ in self.runs):
                continue
            out[self.kind(t, end)] += 1
        return out

    def kind(self, t: int, end: int) -> str:
        if any(a <= t < b for a, b in self.fetches):
            return "input_wait"
        coming = sorted(((a, n) for n, (_, a, b, _) in enumerate(self.runs) if a > t))
        if not coming:
            return self.doing(MAIN, t)
        call = self.runs[coming[0][1]][3]
        if call is None:
            return self.doing(MAIN, t)
        thread, began, done = call
        fell_idle = max((b for _, a, b, _ in self.runs if b <= t), default=0)
        if t < began:
            return self.doing(thread, t)
        if self.steps:
            fell_idle = max(fell_idle, min(a for a, _ in self.steps))
        return "between_kernels" if done <= fell_idle else "launch_delay"

    def doing(self, thread: str, t: int) -> str:
        mine = [e for e in self.events if e[0] == thread]
        if thread == MAIN:
            mine += [(MAIN, "ProfilerStep", a, b) for a, b in self.steps]
        if not mine:
            return self.doing(MAIN, t) if thread != MAIN and self.steps else "not_told"
        if not min(e[2] for e in mine) <= t < max(e[3] for e in mine):
            return "not_told"
        kinds = {NAMED[e[1]] for e in mine if e[1] in NAMED and e[2] <= t < e[3]}
        return max({"host_code", *kinds}, key=LOUDER.index)


def asked(world: World, window: str | None = None, shift: int = 0, tables: MemoryTables | None = None):
    options = parse_options(launches.OPTIONS, {"window": window} if window else {})
    return launches.analyze(tables or world.tables(shift), {}, options)


def drawn(seed: int, stepped: bool = True) -> World:
    """Two streams, two threads, some calls unknown, kernels at once and of no length."""
    draw = random.Random(seed)
    world = World()
    t = 20
    for _ in range(draw.randint(3, 14)):
        t += draw.choice((0, 0, 1, 5, 17, 30))
        length = draw.choice((0, 1, 4, 12, 25))
        call = None
        if draw.random() < 0.8:
            began = max(0, t - draw.choice((0, 1, 3, 9, 30, 60)))
            call = (draw.choice((MAIN, BACKWARD)), began, began + draw.randint(0, 8))
        world.runs.append((draw.choice((7, 20)), t, t + length, call))
        t += length - draw.choice((0, 0, 0, 5))
        t = max(t, 20)
    last = max(b for _, _, b, _ in world.runs)
    world.steps = [(0, last // 2), (last // 2, last + draw.randint(1, 20))] if stepped else []
    for thread in (MAIN, BACKWARD):
        for _ in range(draw.randint(0, 6)):
            a = draw.randint(0, last)
            world.events.append((thread, draw.choice(list(NAMED)), a, a + draw.randint(1, 25)))
    for _ in range(draw.choice((0, 0, 2))):
        a = draw.randint(0, last)
        world.fetches.append((a, a + draw.randint(1, 12)))
    if not any(call for *_, call in world.runs):
        stream, a, b, _ = world.runs[0]
        world.runs[0] = (stream, a, b, (MAIN, a, a))
    return world


@pytest.mark.parametrize("seed", seeds(75))
def test_every_idle_nanosecond_is_of_the_kind_that_it_is_by_hand(seed):
    world = drawn(seed)
    if not any(b > a for _, a, b, _ in world.runs):
        with pytest.raises(QuestionError, match="shows what a device did"):
            asked(world)
        return
    result = asked(world)
    begin, end = min(a for a, _ in world.steps), max(b for _, b in world.steps)
    found = {kind: round(result.totals[f"{kind}_s"] * 1e9) for kind in KINDS}
    assert found == world.by_hand(begin, end)


@pytest.mark.parametrize("seed", seeds(30))
def test_the_kinds_are_the_idle_time_of_overlap(seed):
    world = drawn(seed, stepped=seed % 3 > 0)
    tables = world.tables()
    for window in (None, "operations", "capture"):
        mine = asked(world, window, tables=tables)
        other = overlap.analyze(tables, {}, parse_options(overlap.OPTIONS, {"window": window} if window else {}))
        assert mine.window == other.window
        for name in ("window_s", "idle_s", "input_wait_s"):
            assert mine.totals[name] == pytest.approx(other.totals[name], abs=1e-15)
        assert sum(mine.totals[f"{kind}_s"] for kind in KINDS) == pytest.approx(mine.totals["idle_s"], abs=1e-15)


@pytest.mark.parametrize("seed", seeds(20))
def test_another_clock_changes_nothing(seed):
    world = drawn(seed)
    assert asked(world, shift=5_000_000).to_dict()["devices"] == asked(world).to_dict()["devices"]


@pytest.mark.parametrize("seed", seeds(30))
def test_the_ledger_books_the_same(seed):
    """Over steps: what hosts did instead of launching, as its accounts have it."""
    world = drawn(seed)
    result, books = asked(world), ledger.analyze(world.tables(), facts_of({}), parse_options(ledger.OPTIONS, {}))

    def account(name: str) -> float:
        found = books.ledger.find(name)
        return found.chip_seconds if found else 0.0

    t = result.totals
    pairs = {
        "idle_launching": t["launching_s"] + t["launch_delay_s"],
        "idle_between_kernels": t["between_kernels_s"],
        "idle_host_code": t["host_code_s"],
        "idle_logging": t["logging_s"],
        "input_wait": t["input_wait_s"],
    }
    if books.ledger.find("idle_unexplained") or any(account(n) for n in pairs if n.startswith("idle")):
        assert {n: account(n) for n in pairs} == pytest.approx(pairs, abs=1e-12)


def test_the_thread_that_launches_is_the_one_that_is_told_of():
    """While the thread of the backward pass launches too late, the main thread only waits for it."""
    world = World(
        runs=[(7, 0, 10, (MAIN, 0, 1)), (7, 100, 110, (BACKWARD, 95, 98))],
        events=[(BACKWARD, "aten::mul", 5, 95), (MAIN, "log_metrics", 200, 210)],
        steps=[(0, 120)],
    )
    t = asked(world).totals
    assert (t["launching_s"], t["launch_delay_s"], t["host_code_s"]) == pytest.approx((85e-9, 5e-9, 10e-9))
    books = ledger.analyze(world.tables(), facts_of({}), parse_options(ledger.OPTIONS, {}))
    assert books.ledger.find("idle_launching").chip_seconds == pytest.approx(90e-9)


def test_what_was_waited_for_is_told_by_operation():
    world = World(
        runs=[(7, 0, 10, (MAIN, 0, 1)), (20, 50, 60, (MAIN, 40, 42)), (7, 61, 70, (MAIN, 43, 44))],
        steps=[(0, 70)],
    )
    rows = asked(world).waited.set_index("operation")
    assert rows.loc["matmul 20", ["gaps", "idle_s", "late_s", "delay_s", "between_s"]].tolist() == pytest.approx(
        [1, 40e-9, 30e-9, 10e-9, 0]
    )
    assert rows.loc["matmul 7", ["gaps", "idle_s", "between_s"]].tolist() == pytest.approx([1, 1e-9, 1e-9])


def test_calls_are_counted_by_name_and_a_graph_once():
    tables = World(runs=[(7, 10 * n, 10 * n + 5, (MAIN, 0, 2)) for n in range(1, 5)], steps=[(0, 50)]).tables()
    calls = {n: list(v) for n, v in tables.arrow("launches").to_pydict().items()}
    calls["call"], calls["graph"] = ["cudaGraphLaunch"] * 4, [True] * 4
    whole = {n: tables.arrow(n).to_pydict() for n in ("captures", "ops", "op_events", "steps")} | {"launches": calls}
    (row,) = launches.analyze(MemoryTables(whole), {}, parse_options(launches.OPTIONS, {})).calls.to_dict("records")
    assert (row["launches"], row["executions"], row["shorter_executions"]) == (1, 4, 0)
    assert (row["call_s"], row["execution_s"], row["delay_median_s"]) == pytest.approx((2e-9, 20e-9, 8e-9))


def test_executions_without_a_known_call_are_kept():
    world = World(runs=[(7, 0, 5, None), (7, 9, 12, (MAIN, 3, 4))], steps=[(0, 12)])
    ran = launched(world.tables(), 0, EPOCH, 0)
    assert ran.known.tolist() == [False, True]
    result = asked(world)
    assert result.devices["told_share"].tolist() == [0.5]
    assert any("50 %" in note for note in result.notes)


def test_a_run_that_tells_no_launches_is_told_so():
    tables = World(runs=[(7, 0, 5, None)], steps=[(0, 9)]).tables()
    with pytest.raises(QuestionError, match="no input tells which call launched"):
        launches.analyze(tables, {}, parse_options(launches.OPTIONS, {}))

"""The critical path against worlds whose longest path is known, over two threads, three streams and two ranks."""

import itertools
import random

import pytest

from analyzers.device import overlap
from analyzers.device.critical_path import critical_path
from analyzers.device.critical_path.holding import NO_STEPS
from analyzers.device.critical_path.kinds import KINDS
from errors import QuestionError
from errors.options import parse_options
from runs.tables import MemoryTables
from tests.analyzers.critical_worlds import EPOCH, MAIN, Node, World
from tests.conftest import seeds


def asked(tables, **options):
    return critical_path.analyze(tables, {}, parse_options(critical_path.OPTIONS, options))


def kinds(row) -> dict[str, int]:
    found = {kind: round(row[f"{kind}_s"] * 1e9) for kind in KINDS}
    return {kind: ns for kind, ns in found.items() if ns}


def by_kind(truth) -> dict[str, int]:
    out: dict[str, int] = {}
    for (kind, _), ns in truth.items():
        out[kind] = out.get(kind, 0) + ns
    return out


@pytest.mark.parametrize("seed", seeds(75))
def test_the_path_is_the_longest_of_the_true_graph(seed):
    world = World(seed, ranks=1 + seed % 2)
    result = asked(world.tables())
    for row in result.devices.to_dict("records"):
        rank = row["device"]
        begin, end = world.extent(rank)
        assert kinds(row) == by_kind(world.truth(rank, begin, end))
        assert round(row["path_s"] * 1e9) == end - begin


def ranks(result) -> dict[int, int]:
    return {row["device"]: round(row["held_s"] * 1e9) for row in result.ranks.to_dict("records") if row["held_s"]}


@pytest.mark.parametrize("seed", seeds(30))
def test_every_step_has_the_path_of_its_window_and_its_duration(seed):
    """Windows drawn anywhere before the last start: links beyond their ends are cut off, nothing is lost."""
    world = World(seed, ranks=2)
    draw = random.Random(seed)
    windows, held, truths = {}, {}, {}
    for rank in (0, 1):
        last = max(x.start.time() for x in world.ranks[rank].executions)
        cuts = sorted(draw.sample(range(200_000, last), 4))
        windows[rank] = list(itertools.pairwise(cuts))
        for n, (begin, end) in enumerate(windows[rank]):
            truths[rank, n] = world.truth(rank, begin, end)
            for (_, holder), ns in truths[rank, n].items():
                held[holder] = held.get(holder, 0) + ns
    result = asked(world.tables(windows))
    assert ranks(result) == held
    for row in result.steps.to_dict("records"):
        mine = [by_kind(truths[rank, row["step"]]) for rank in (0, 1)]
        whole = {kind: sum(m.get(kind, 0) for m in mine) for kind in KINDS}
        assert {kind: round(row[f"{kind}_s"] * 2e9) for kind in KINDS} == whole
        widths = [windows[rank][row["step"]] for rank in (0, 1)]
        assert round(row["path_s"] * 2e9) == sum(b - a for a, b in widths)


AFTER_ALL_NS = 5_000_000  # later than all that is drawn in a world of no actions


class Least(random.Random):
    """Draws nothing by chance: each thing takes the least that it may, and what is chosen is a stream that is given."""

    def __init__(self, stream: int):
        super().__init__()
        self.stream = stream

    def randint(self, a: int, b: int) -> int:
        return a

    def choice(self, seq):
        return self.stream


def go_on(world: World, stream: int = 7) -> None:
    """From here on as `Least` draws, after all that there is."""
    assert max(world.extent(rank.number)[1] for rank in world.ranks) < AFTER_ALL_NS
    world.draw = Least(stream)
    for rank in world.ranks:
        pieces = [("host_code", rank.number, AFTER_ALL_NS)]
        rank.now[MAIN] = Node(lambda pieces=pieces: [(Node(), pieces)])


def come_together(late: tuple[int, ...]) -> World:
    """Three ranks; those of `late` come last into the last collective, in the same ns, the others 40 us before. It
    takes 5 us, its calls 2 us, and it begins 3 us after them."""
    world, meeting = World(1, ranks=3, actions=0, shift=(0, 0, 0)), []
    go_on(world)
    for rank in world.ranks:
        world.event(rank, MAIN, "aten::mul", "launching", 90_000 if rank.number in late else 50_000)
        world.collective(rank, meeting)
    return world


@pytest.mark.parametrize(
    ("late", "goes_to"), [((0, 1, 2), (0, 1, 2)), ((1, 2), (1, 1, 2)), ((0, 2), (0, 0, 2)), ((2,), (2, 2, 2))]
)
def test_of_ranks_that_came_last_together_a_path_stays_on_its_own_else_goes_to_the_lowest(late, goes_to):
    world = come_together(late)
    end = world.extent(0)[1]
    window = (end - 40_000, end)
    result = asked(world.tables({rank: [window] for rank in range(3)}))
    truths = [world.truth(rank, *window) for rank in range(3)]
    transfer, before = 5_000, 35_000
    for rank, holder in enumerate(goes_to):
        by_rank = dict.fromkeys((rank, holder), 0)
        for (_, whose), ns in truths[rank].items():
            by_rank[whose] += ns
        assert by_rank == ({rank: 40_000} if holder == rank else {rank: transfer, holder: before})
    away = [round(x * 1e9) for x in result.devices["elsewhere_s"]]
    assert away == [0 if holder == rank else before for rank, holder in enumerate(goes_to)]
    assert ranks(result) == {rank: ns for rank in range(3) if (ns := transfer + before * goes_to.count(rank))}


def waits_for_a_stream(stream: int) -> tuple[World, tuple[int, int]]:
    """A call waits for a stream, while what runs on stream 7 ends; and a window over all of that. Before it an event
    was recorded."""
    world = World(1, ranks=1, actions=0)
    go_on(world, stream)
    rank = world.ranks[0]
    begin = rank.now[MAIN].time()
    world.launch(rank, MAIN, 7, "computing", 47_500)
    world.event(rank, MAIN, "aten::mul", "launching", 49_000)
    world.event(rank, MAIN, "cudaEventRecord", "host_code", 1_000, world.numbered())
    world.sync(rank, MAIN)
    return world, (begin, world.launch(rank, MAIN, 7, "computing", 10_000).end.time())


PAST_THE_CALL = {"launching": 51_000, "host_code": 1_000, "waiting": 1_000, "launch_delay": 5_000, "computing": 10_000}


@pytest.mark.parametrize("what", ["Stream Sync", "Event Sync"])
def test_a_call_that_waited_for_a_stream_on_which_nothing_ran_waited_for_nothing(what):
    """The stream is told, or the event: what ended on another one meanwhile is no guess at what it waited for."""
    world, window = waits_for_a_stream(9)
    assert not any(x.stream == 9 for x in world.ranks[0].executions)
    told = world.ranks[0].told[-1]
    told |= {"name": what, "wait_on_stream": 9, "wait_on_cuda_event_record_corr_id": told["correlation"] - 1}
    result = asked(world.tables({0: [window]}))
    row = result.steps.to_dict("records")[0]
    assert kinds(row) == by_kind(world.truth(0, *window)) == PAST_THE_CALL
    assert result.totals["inferred_s"] == 0


@pytest.mark.parametrize(
    "untold",
    [
        {"stream": -1},
        {"stream": 2**32 - 1},
        {"name": "Event Sync", "wait_on_stream": 9, "wait_on_cuda_event_record_corr_id": 999_999},
    ],
)
def test_a_call_of_which_no_stream_is_told_is_said_to_have_waited_by_a_rule(untold):
    world, window = waits_for_a_stream(9)
    world.ranks[0].told[-1] |= untold
    result = asked(world.tables({0: [window]}))
    assert kinds(result.steps.to_dict("records")[0]).keys() == {"computing", "launch_delay", "return_delay"}
    assert (result.totals["inferred_s"] or 0) > 0


def test_a_call_that_waited_for_the_stream_of_what_ended_meanwhile_returned_after_it():
    world, window = waits_for_a_stream(7)
    row = asked(world.tables({0: [window]})).steps.to_dict("records")[0]
    assert kinds(row) == by_kind(world.truth(0, *window))
    assert kinds(row) == {"computing": 57_500, "launch_delay": 10_000, "return_delay": 5_000}


@pytest.mark.parametrize("seed", seeds(10))
def test_a_device_without_steps_has_one_path_beside_those_of_steps(seed):
    steps = {0: [(100_000, 250_000), (250_000, 420_000)]}
    mixed = asked(World(seed, ranks=2).tables(steps))
    assert mixed.window == "operations and steps" and mixed.totals["paths"] == 3
    assert mixed.chain_step in (0, 1) and mixed.chain_host == "h0" and mixed.holder.of_steps in (0, 2)
    assert any("A device without steps" in note for note in mixed.notes)
    assert asked(World(seed, ranks=2).tables(steps), step="1").chain_step == 1
    whole = asked(World(seed, ranks=2).tables(steps), window="operations")
    assert whole.holder.reason == NO_STEPS and not any("profile has no steps" in note for note in whole.notes)


@pytest.mark.parametrize("seed", seeds(20))
def test_a_clock_that_is_off_changes_nothing(seed):
    told = [asked(World(seed, ranks=2, shift=(0, by)).tables()).to_dict() for by in (0, 5_000_000, -5_000_000)]
    assert told[0] == told[1] == told[2]


def test_the_kinds_of_a_path_are_its_length_and_shares_their_parts():
    result = asked(World(3, ranks=2).tables())
    t = result.totals
    assert sum(t[f"{kind}_s"] for kind in KINDS) == pytest.approx(t["path_s"], rel=1e-12)
    assert sum(t[f"{kind}_share"] for kind in KINDS) == pytest.approx(1, rel=1e-12)
    assert result.ranks["held_s"].sum() == pytest.approx(t["path_s"])
    assert result.chain["dur_s"].sum() == pytest.approx(result.devices["path_s"].max())
    on_path = result.operations["on_path_s"].sum()
    kinds_on_devices = ("computing", "communication", "communication_or_wait", "copies")
    assert on_path == pytest.approx(sum(t[f"{kind}_s"] for kind in kinds_on_devices))


@pytest.mark.parametrize("seed", seeds(25))
def test_a_device_alone_computes_and_idles_no_more_than_its_neighbours_tell(seed):
    """Of one rank, over the same window: what its path computes it computed, by Overlap."""
    tables = World(seed, ranks=1).tables()
    mine = asked(tables).totals
    theirs = overlap.analyze(tables, {}, parse_options(overlap.OPTIONS, {})).totals
    assert mine["path_s"] == pytest.approx(theirs["window_s"])
    assert mine["computing_s"] <= theirs["compute_s"] + 1e-12
    assert mine["copies_s"] <= theirs["memory_s"] + 1e-12


KIND_OF = {"matmul": "computing", "collective": "communication", "copy": "copies"}


@pytest.mark.parametrize("seed", seeds(30))
def test_what_an_operation_gives_lies_in_its_range(seed):
    """Against the longest path of the same graph with that operation taking no time."""
    world = World(seed, ranks=1 + seed % 2)
    without: tuple = ()
    for row in asked(world.tables()).shorten.to_dict("records"):
        one = (KIND_OF[row["category"]], int(row["operation"].split()[-1]))
        without = (*without, one)
        for ops, what in (((one,), "alone"), (without, "together")):
            gain = world.gain(ops) / 1e9
            assert row[f"{what}_low_s"] - 1e-12 <= gain <= row[f"{what}_high_s"] + 1e-12


def columns(tables, name) -> dict[str, list]:
    return tables.arrow(name).to_pydict()


TABLES = ("captures", "ops", "op_events", "launches", "event_stats", "collectives", "lifecycle", "steps")


@pytest.mark.parametrize("seed", seeds(25))
@pytest.mark.parametrize("gone", ["launches", "event_stats", "collectives", "captures", "half"])
def test_what_is_missing_leaves_whole_paths(seed, gone):
    """Without a table, or with nulls drawn by chance: paths that are whole, or one sentence that says why not."""
    whole = World(seed, ranks=2).tables()
    draw = random.Random(seed)
    given = {name: columns(whole, name) for name in TABLES if name != gone}
    if gone == "half":
        for table in ("op_events", "launches", "collectives"):
            for values in given[table].values():
                values[:] = [None if draw.random() < 0.2 else v for v in values]
    try:
        result = asked(MemoryTables(given))
    except QuestionError as e:
        assert "no profile" in str(e)
        return
    t = result.totals
    assert sum(t[f"{kind}_s"] for kind in KINDS) == pytest.approx(t["path_s"])
    assert result.devices["path_s"].sum() == pytest.approx(t["path_s"])
    assert (result.shorten["alone_low_s"] <= result.shorten["alone_high_s"]).all()
    if gone == "launches":
        assert t["launch_delay_s"] == 0


@pytest.mark.parametrize("seed", seeds(20))
def test_an_order_of_rows_changes_nothing(seed):
    whole = World(seed, ranks=2).tables()
    given = {name: columns(whole, name) for name in TABLES}
    for table in given.values():
        order = list(range(len(next(iter(table.values())))))
        random.Random(seed).shuffle(order)
        for name, values in table.items():
            table[name] = [values[n] for n in order]
    assert asked(MemoryTables(given)).to_dict() == asked(whole).to_dict()


def test_collectives_in_a_circle_come_to_an_end():
    """Two ranks that each came last by the durations told: nothing is right in it, but it ends, and closes."""
    rows = {n: [] for n in ("capture", "host", "rank", "device", "group", "kind", "bytes", "op", "start_ns", "end_ns")}
    ops = {n: [] for n in ("capture", "op_id", "host", "device", "line", "role", "category", "op")}
    events = {n: [] for n in ("capture", "event", "device", "op_id", "start_ps", "dur_ps")}
    for rank in (0, 1):
        for op in (0, 1):
            values = (rank, op, f"h{rank}", rank, f"stream {op}", "compute", "collective", f"all-reduce.{op}")
            for column, value in zip(ops.values(), values, strict=True):
                column.append(value)
        for number, (op, start, took) in enumerate([(rank, 100, 50), (1 - rank, 100, 10)]):
            for column, value in zip(events.values(), (rank, number, rank, op, start * 1000, took * 1000), strict=True):
                column.append(value)
            at = EPOCH + start
            told = (rank, f"h{rank}", rank, rank, "0,1", "all-reduce", 8.0, f"all-reduce.{op}", at, at + took)
            for column, value in zip(rows.values(), told, strict=True):
                column.append(value)
    captures = {"capture": [0, 1], "host": ["h0", "h1"], "start_ns": [EPOCH] * 2, "stop_ns": [None] * 2}
    tables = MemoryTables({"captures": captures, "ops": ops, "op_events": events, "collectives": rows})
    result = asked(tables)
    assert result.totals["path_s"] == pytest.approx(100e-9)
    assert sum(result.totals[f"{kind}_s"] for kind in KINDS) == pytest.approx(100e-9)


def test_steps_over_one_another_without_end_are_refused_in_one_sentence():
    world = World(2, ranks=1)
    begin, end = world.extent(0)
    tables = world.tables({0: [(begin, end)] * 150_000})
    with pytest.raises(QuestionError, match="lie over one another"):
        asked(tables)

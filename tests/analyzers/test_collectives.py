"""Collectives by axis and size: waiting taken out, bandwidths as nccl-tests reckons them, bounds from the catalogue."""

import json

import pytest

from analyzers.ranks import collectives
from analyzers.ranks.collectives import bus_factor
from analyzers.ranks.mesh import Links, axis_of, ranks_along
from app.questions import question
from errors import QuestionError
from runs.run import facts_of
from runs.tables import MemoryTables
from tests.analyzers.device_rows import collective_rows, device_tables
from tests.analyzers.worlds import World

MS = 1_000_000
MESH = {"data": 2, "model": 4}


def ask(tables, **facts):
    return collectives.analyze(tables, facts_of(facts), {})


def test_waiting_is_what_the_others_took_longer():
    result = ask(World(steps=10, extra_ms={(1, n): 20.0 for n in range(1, 10)}).tables())
    (row,) = result.rows.to_dict("records")
    assert (row["kind"], row["group_size"], row["count"], row["matched"]) == ("all-reduce", 4, 40, True)
    assert row["transfer_median_s"] == pytest.approx(0.010)
    # three ranks wait 20 ms in nine steps; of the first step of a capture nothing is said
    assert row["wait_s"] == pytest.approx(3 * 9 * 0.020)
    assert row["total_s"] == pytest.approx(40 * 0.010 + 3 * 9 * 0.020)
    assert row["uncovered_s"] == pytest.approx(row["total_s"])
    assert result.totals["transfer_s"] == pytest.approx(0.4)


@pytest.mark.parametrize(
    "kind, n, factor",
    [
        ("all-reduce", 2, 1.0),
        ("all-reduce", 4, 1.5),
        ("all-reduce", 8, 1.75),
        ("all-gather", 4, 0.75),
        ("reduce-scatter", 8, 0.875),
        ("all-to-all", 2, 0.5),
        ("permute", 8, 1.0),
        ("permute", None, 1.0),
        ("all-reduce", None, None),
        ("all-reduce", 1, None),
    ],
)
def test_bus_factors_of_nccl_tests(kind, n, factor):
    assert bus_factor(kind, n) == factor


def timed(kind, size, dur_ns, ranks=4, op="op.1"):
    group = ",".join(map(str, range(ranks)))
    return [(r, f"host {r}", 0, kind, group, size, 0, dur_ns + (r > 0), op, 0) for r in range(ranks)]


def compared(rows):
    """The same again in a second step of the capture, of which it is known when the others came."""
    later = 10**9
    return [*rows, *((*r[:6], r[6] + later, r[7] + later, r[8], 1) for r in rows)]


def rows_of(rows, **facts):
    hosts = sorted({r[1] for r in rows})
    work = [(h, 0, "compute", "fusion", [(0, 1)]) for h in hosts]
    return ask(device_tables(work, extra=collective_rows(rows)), **facts).rows.set_index(["kind", "bytes"])


def test_an_all_gather_is_reckoned_by_what_it_ends_up_with():
    rows = rows_of([*timed("all-gather", 1e6, MS), *timed("reduce-scatter", 4e6, MS, op="op.2")])
    gather, scatter = rows.loc[("all-gather", 1e6)], rows.loc[("reduce-scatter", 4e6)]
    assert gather["message_bytes"] == scatter["message_bytes"] == 4e6  # each is the other undone
    assert gather["algbw_bytes_per_s"] == pytest.approx(4e9, rel=1e-5)
    assert gather["busbw_bytes_per_s"] == pytest.approx(3e9, rel=1e-5)
    assert scatter["busbw_bytes_per_s"] == pytest.approx(gather["busbw_bytes_per_s"])


def test_against_the_links_of_the_chip():
    rows = rows_of(timed("all-reduce", 60e6, MS), chip="v5p", chips=4)
    row = rows.iloc[0]
    assert row["link_bytes_per_s"] == 6 * 100e9
    assert row["share_of_link"] == pytest.approx(60e6 * 1.5 / 1e-3 / 600e9, rel=1e-5)
    assert row["bound_s"] == pytest.approx(60e6 * 1.5 / 600e9)
    assert row["network"] == "scale-up"


def test_small_ones_are_bound_by_latency_and_said_so_only_where_sizes_differ():
    small, large = timed("all-reduce", 1e3, MS // 10), timed("all-reduce", 100e6, 10 * MS, op="op.2")
    rows = rows_of(compared([*small, *large]), chip="v5p", chips=4)
    assert bool(rows.loc[("all-reduce", 1e3), "latency_bound"]) is True
    assert bool(rows.loc[("all-reduce", 100e6), "latency_bound"]) is False
    assert rows_of(compared(small), chip="v5p", chips=4)["latency_bound"].isna().all()


def test_a_message_that_may_wait_for_others_is_not_told_to_be_bound_by_latency():
    """3 kB that take 30 ms in a trace of one rank, whose peers came late: larger messages would change nothing."""
    every = compared([*timed("all-reduce", 3e3, 30 * MS), *timed("all-reduce", 400e6, 60 * MS, op="op.2")])
    assert rows_of([r for r in every if r[0] == 0], chip="v5p", chips=4)["latency_bound"].isna().all()


def test_where_no_link_is_known_the_largest_tells_what_bytes_take():
    """Of 400 MB in 10 ms, 300 MB take 7.5 ms: in 9 ms they are not bound by latency, though 1 kB takes 6 ms."""
    times = enumerate({1e3: 6 * MS, 300e6: 9 * MS, 400e6: 10 * MS}.items())
    rows = rows_of(compared([r for n, (size, ns) in times for r in timed("all-reduce", size, ns, op=f"op.{n}")]))
    told = {size: bool(bound) for (_, size), bound in rows["latency_bound"].items()}
    assert told == {1e3: True, 300e6: False, 400e6: False}


def test_what_was_not_seen_on_all_ranks_is_a_lower_bound():
    rows = [(0, "host 0", 0, "all-reduce", "0,4", 8e6, at * MS, (at + 2) * MS) for at in (0, 3)]
    work = [("host 0", 0, "compute", "fusion", [(0, 1)])]
    result = ask(device_tables(work, extra=collective_rows(rows)), chip="v6e", chips=8)
    (row,) = result.rows.to_dict("records")
    assert not row["matched"]
    assert row["busbw_bytes_per_s"] == pytest.approx(8e6 / 2e-3)
    assert result.totals["wait_s"] is None
    assert result.to_dict()["rows"][0]["wait_s"] is None
    assert any("lower bounds" in n for n in result.notes)


def test_transfer_times_come_from_executions_that_were_matched():
    """One met on both ranks and took 10 ms after 5 ms of waiting; three of 90 ms were seen on one rank alone, where
    waiting cannot be told from moving."""
    met = [(r, f"host {r}", 0, "all-reduce", "0,1", 8e6, 0, (15 - 5 * r) * MS) for r in (0, 1)]
    lone = [(0, "host 0", 0, "all-reduce", "0,1", 8e6, at * MS, (at + 90) * MS, "op.2") for at in (100, 200, 300)]
    work = [(f"host {r}", 0, "compute", "fusion", [(0, 1)]) for r in (0, 1)]
    (row,) = ask(device_tables(work, extra=collective_rows([*met, *lone]))).rows.to_dict("records")
    assert (row["count"], row["matched"]) == (5, True)
    assert row["transfer_median_s"] == pytest.approx(0.010)
    assert row["algbw_bytes_per_s"] == pytest.approx(8e6 / 0.010)


def test_permutes_found_on_every_rank_are_not_said_to_be_missing():
    rows = [(h, f"host {h}", 0, "permute", "0,1", 8e6, at * MS, (at + 2) * MS) for at in (0, 3) for h in (0, 1)]
    work = [(f"host {h}", 0, "compute", "fusion", [(0, 1)]) for h in (0, 1)]
    result = ask(device_tables(work, extra=collective_rows(rows)), chip="v6e", chips=8)
    assert not result.rows["matched"].any()
    assert not any("not found" in n for n in result.notes)
    assert any(n.startswith("4 executions are of kinds in which ranks do not all wait") for n in result.notes)


def test_what_of_the_first_step_may_be_waiting_is_told_beside_the_transfer():
    """Of three steps, 2 ms each; in the first, host 1 came 5 ms late."""
    spans = [(0, 7), (10, 12), (20, 22)], [(5, 7), (10, 12), (20, 22)]
    rows = [
        (h, f"host {h}", 0, "all-reduce", "0,1", 8e6, start * MS, end * MS, "op.1", step)
        for h, mine in enumerate(spans)
        for step, (start, end) in enumerate(mine)
    ]
    work = [(f"host {h}", 0, "compute", "fusion", [(0, 1)]) for h in (0, 1)]
    result = ask(device_tables(work, extra=collective_rows(rows)), chip="v6e", chips=8)
    (row,) = result.rows.to_dict("records")
    assert [row[n] for n in ("total_s", "wait_s", "unknown_s", "transfer_s")] == pytest.approx([0.017, 0, 0.005, 0.017])
    assert result.totals["unknown_s"] == pytest.approx(0.005)


def test_exposed_is_what_computing_does_not_cover():
    rows = [(0, "h", 0, "all-reduce", None, 8e6, 0, 100), (0, "h", 0, "permute", None, 8e6, 200, 300, "op.2")]
    work = [("h", 0, "compute", "fusion", [(60, 250)])]
    got = ask(device_tables(work, extra=collective_rows(rows))).rows.set_index("kind")["uncovered_s"]
    assert got["all-reduce"] == pytest.approx(60e-9)
    assert got["permute"] == pytest.approx(50e-9)


def test_axes_from_ranks():
    assert axis_of((0, 1, 2, 3), MESH) == "model"
    assert axis_of((1, 5), MESH) == "data"
    assert axis_of(tuple(range(8)), MESH) == "data+model"
    assert axis_of((0, 2), MESH) is None  # half an axis
    assert axis_of((0, 8), MESH) is None
    assert axis_of((0, 1), None) is None
    for axis in ("data", "model", "data+model"):
        assert axis_of(ranks_along(axis, MESH), MESH) == axis


def test_rows_name_the_axis_where_the_mesh_is_declared_or_the_program_tells():
    rows = rows_of(timed("all-reduce", 1e6, MS), parallelism={"data": 1, "model": 4})
    assert rows.iloc[0]["axis"] == "model"
    work = [("host 0", 0, "compute", "fusion", [(0, 1)])]
    extra = collective_rows([(0, "host 0", 0, "all-reduce", None, 8e6, 0, MS)])
    extra["collectives"]["module"] = ["jit_f"]
    extra["program_collectives"] = {"module": ["jit_f"], "op": ["op.1"], "axis": ["fsdp"], "group_size": [16]}
    (row,) = ask(device_tables(work, extra=extra)).rows.to_dict("records")
    assert (row["axis"], row["group_size"]) == ("fsdp", 16)


def test_groups_that_leave_a_slice_or_a_host_go_over_the_data_centre():
    links = Links(facts_of({"chip": "v5e", "chips": 512, "slices": 2}))
    assert links.of((0, 1)).network == "scale-up" and links.of((0, 1)).bytes_per_s == 4 * 50e9
    assert links.of((0, 256)).network == "data centre" and links.of((0, 256)).bytes_per_s == 3.125e9
    gpus = Links(facts_of({"chip": "H100 SXM", "chips": 16}))
    assert gpus.of((0, 7)).bytes_per_s == 450e9
    assert gpus.of((0, 8)).bytes_per_s == 50e9
    cores = Links(facts_of({"chip": "TPU7x", "chips": 4}))
    assert cores.of((0, 2)).bytes_per_s == 6 * 100e9 / 2  # two devices share a chip's links
    assert Links(facts_of({"chip": "a chip of my own"})).of((0, 1)) is None


@pytest.mark.parametrize(
    ("group", "chips", "network"),
    [
        ("?," * 15 + "?", 8, "data centre"),  # more ranks than one NVLink domain joins
        ("?,?", 16, None),  # of two hosts: both ranks may be of one of them, or one of each
        ("?,?", 8, "scale-up"),
        (None, 16, "data centre"),  # all ranks of the job
        (None, 8, "scale-up"),
        ("0,8", 16, "data centre"),
    ],
)
def test_ranks_that_nothing_names_are_not_taken_to_share_a_network(group, chips, network):
    work = [("h", d, "compute", "collective", [(0, MS)]) for d in range(8)]
    extra = collective_rows([(0, "h", d, "all-reduce", group, 1e6, 0, MS) for d in range(8)])
    result = ask(device_tables(work, extra=extra), chip="H100 SXM", chips=chips)
    (row,) = result.to_dict()["rows"]
    assert (row["network"], row["link_bytes_per_s"]) == (network, {"data centre": 50e9, "scale-up": 450e9}.get(network))
    assert any("Whether 8 executions stayed" in note for note in result.notes) == (network is None)
    size = {None: None, "0,8": 2}.get(group, (group or "").count(",") + 1)
    program = {"op": ["ar.1"], "kind": ["all-reduce"], "group_size": [size], "bytes": [1e6], "count": [8]}
    (row,) = ask(MemoryTables({"program_collectives": program}), chip="H100 SXM", chips=chips).to_dict()["rows"]
    assert row["network"] == (network if group != "0,8" else None)


def test_a_program_alone_gives_counts_bytes_and_a_bound():
    program = {
        "module": ["jit_step"] * 2,
        "op": ["ar.1", "ag.1"],
        "kind": ["all-reduce", "all-gather"],
        "axis": ["model", "data"],
        "group_size": [4, 2],
        "bytes": [1e6, 2e6],
        "dtype": ["bf16"] * 2,
        "count": [64, 2],
    }
    result = ask(MemoryTables({"program_collectives": program}), chip="v5e", chips=8, parallelism=MESH)
    assert not result.measured
    rows = result.rows.set_index("kind")
    assert rows.loc["all-reduce", "bound_s"] == pytest.approx(1e6 * 1.5 / 200e9)
    assert rows.loc["all-gather", "bound_s"] == pytest.approx(2 * 2e6 * 0.5 / 200e9)
    assert result.totals["bound_s"] == pytest.approx(64 * 1e6 * 1.5 / 200e9 + 2 * 2e6 / 200e9)
    assert result.totals["bytes"] == 64 * 1e6 + 2 * 2e6
    assert result.rows["total_s"].isna().all()
    two = ask(MemoryTables({"program_collectives": program}), chip="v5e", chips=8, slices=2, parallelism=MESH)
    assert two.rows.set_index("kind").loc["all-gather", "network"] == "data centre"
    assert two.rows.set_index("kind").loc["all-reduce", "network"] == "scale-up"


def test_the_answer_as_json_has_the_contract_and_no_nan():
    said = json.loads(json.dumps(ask(World(steps=5).tables(), chip="v6e", chips=4).to_dict(), allow_nan=False))
    assert set(said["rows"][0]) >= {
        "kind",
        "axis",
        "group_size",
        "bytes",
        "count",
        "total_s",
        "wait_s",
        "transfer_s",
        "algbw_bytes_per_s",
        "busbw_bytes_per_s",
        "link_bytes_per_s",
        "share_of_link",
    }
    assert said["rows"][0]["bytes"] is None  # the trace did not tell
    json.dumps(ask(MemoryTables({"program_collectives": {"kind": ["permute"]}})).to_dict(), allow_nan=False)


def test_without_collectives_the_answer_says_what_would_bring_them():
    with pytest.raises(QuestionError, match="no collectives"):
        ask(device_tables([("h", 0, "compute", "fusion", [(0, 1)])]))


def test_what_no_input_tells_is_not_told_as_nothing():
    rows = collective_rows([(0, f"h{n}", 0, "all-reduce", "0,1", None, 0, 100) for n in range(2)])
    assert ask(MemoryTables(rows)).totals["bytes"] is None
    program = {"program_collectives": {"kind": ["permute"], "axis": ["data"]}}
    result = ask(MemoryTables(program), chip="v5e", chips=8)
    assert result.totals["bytes"] is None and "0 bytes" not in question("collectives").verdict(result)
    rows["collectives"]["end_ns"] = [None, None]
    with pytest.raises(QuestionError, match="have no times"):
        ask(MemoryTables(rows))
    assert not ask(MemoryTables(rows | program), chip="v5e", chips=8).measured

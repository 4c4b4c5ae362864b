"""Input on which a reader once went on without end, or took the square of its size: each ends here, or is ended."""

import gzip
import io
import json
import tracemalloc
from collections.abc import Iterator, Sequence
from math import inf
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collectors.device import kineto
from collectors.device.hlo import module
from collectors.device.hlo.attributes import given_text
from collectors.device.hlo.shapes import HLO, Collective, iota_devices
from collectors.device.hlo.text import collective_of_text, groups_of_text
from collectors.device.kineto import stream
from collectors.device.kineto.texts import OTHER, Texts
from collectors.device.kineto.warm import warm
from collectors.device.memory_snapshot.shapes import ARENA
from collectors.device.memory_snapshot.state import State
from collectors.device.rocm.rocpd_tables import processes, unknown
from collectors.device.viewer.events import trace_events
from collectors.device.xplane import prepare
from collectors.device.xplane.collectives import Collectives, Site, StepSpans
from collectors.device.xplane.marks import _taken
from collectors.device.xplane.planes import _identifiers, index_space, plane_stats
from collectors.device.xplane.ranks import Ranks
from collectors.device.xplane.wire import Window
from collectors.reading import documents, json_stream
from collectors.reading.attempts import Lanes
from collectors.reading.textlog import Tally
from collectors.serving import prometheus
from collectors.serving.serving_rows import Loads
from collectors.serving.vllm_bench.objects import objects
from collectors.training import dllogger, megatron, nanogpt, pipeline_trace, wandb_config, wandb_history
from collectors.training.dllogger_printed import printed
from collectors.training.goodput_log.fit import _stray_null
from errors import InputError
from tests.collectors.kineto_traces import event, trace
from tests.collectors.reading import read, source_of
from tests.collectors.traces import XSpace, got
from tests.proportion import soon

__all__ = ["soon"]  # the bound, of each test here


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """What a new installation compiles is no part of what is measured."""
    warm()
    prepare()


def test_an_event_of_pytorch_with_more_arguments_than_there_is_room_for(tmp_path, monkeypatch):
    given = [event("cpu_op", "few", 0, 1, a=1), event("cpu_op", "many", 2, 1, **{f"a{n}": n for n in range(40)})]
    data = trace([*given, event("cpu_op", "last", 4, 1, b=2)])
    usual = read(kineto, source_of(tmp_path, data))
    assert len(usual.rows["event_stats"]) == 42
    for rows in (1, 5, 16):
        monkeypatch.setattr(stream, "STAT_ROWS", rows)
        assert read(kineto, source_of(tmp_path, data)).rows == usual.rows


def test_a_text_of_ones_own_where_no_more_are_kept(monkeypatch):
    monkeypatch.setattr("collectors.device.kineto.texts.MOST_TEXTS", 3)
    texts = Texts(2, 16)
    assert [texts.of(f"text {n}") for n in (0, 1, 2, 3, 4, 1, 5)] == [0, 1, 2, 3, OTHER, 1, OTHER]


def test_texts_of_a_snapshot_find_room_up_to_the_most_that_is_kept(monkeypatch):
    state = State()
    most = len(state.kept.arena) + 1_000
    monkeypatch.setattr("collectors.device.memory_snapshot.state.MOST_ARENA", most)
    state.counters[ARENA] = len(state.kept.arena) - 10
    state.grow(1 << 23)  # bytes at hand, of which the text is a few: it fits, and is asked for until there is room
    assert len(state.kept.arena) >= most


def test_room_for_texts_is_made_where_they_do_not_fit_and_not_where_others_were_damaged(tmp_path, monkeypatch):
    monkeypatch.setattr("collectors.device.xplane.batches._ARENA", 64)
    made = []
    monkeypatch.setattr("collectors.device.xplane.batches.Batches.more_inline", lambda self: made.append(1))
    space = XSpace()
    line = space.planes.add(name=b"/host:CPU").lines.add(name=b"work")
    for n in range(40):  # each leaves its text behind, and is left out: it takes longer than anything does
        line.events.add(duration_ps=1 << 60).stats.add(metadata_id=1, str_value=b"%040d" % n)
    assert got(tmp_path, space.SerializeToString()).lost and not made


def test_stats_of_a_plane_as_a_whole(tmp_path):
    space, many = XSpace(), 25_000
    plane = space.planes.add(name=b"/host:CPU")
    for n in range(1, many):
        plane.stat_metadata.add(key=n).value.name = b"%d" % n
        plane.stats.add(metadata_id=n, int64_value=n)
    with source_of(tmp_path, space.SerializeToString()).binary() as file:
        window = Window(file)
        stats = plane_stats(window, index_space(window).planes[0])
    assert len(stats) == many - 1 and stats["7"] == 7


def test_a_table_of_identifiers_is_not_larger_for_a_single_one():
    dense, ids, rows = _identifiers(np.array([1_000_000]))
    assert len(dense) == 0 and ids.tolist() == [1_000_000] and rows.tolist() == [0]


def test_a_step_that_all_devices_take_at_once():
    assert _taken([(n % 7, 10, n) for n in range(60_000)]) == [(0, 10, None)]


def test_very_many_different_collectives():
    many = 25_000
    found, what = Collectives(), Collective("all-reduce", "", 1.0, None, None)
    found.sites = {n: Site(0, None, f"all-reduce.{n}", "compute", what) for n in range(many)}
    found.add(np.arange(many), np.arange(many), np.ones(many, np.int64))
    rows = found.rows(Ranks([], set(), None), 0, None, 0, StepSpans())
    assert sum(item.batch.num_rows for item in rows) == many


def test_spaces_without_end_before_a_null():
    many = 1 << 20
    for sign, told in ((b"]", True), (b":", False)):
        block = b'{"a":"' + b"nu" * (many // 2) + b'"' + sign + b" " * many + b"null}"
        assert _stray_null(memoryview(block)) is told


def test_a_long_event_for_a_viewer_that_comes_in_small_pieces(tmp_path):
    told = [{"ph": "X", "name": "x" * 1_000_000, "args": {"n": n}} for n in range(8)]
    packed = gzip.compress(json.dumps({"traceEvents": told}).encode(), 1)
    with source_of(tmp_path, packed).open() as f:
        pieces = _Small(f)
        assert [e["args"]["n"] for e in trace_events(pieces, Tally())] == [*range(8)]  # type: ignore[arg-type]


class _Small:
    """A stream that gives a little at a time, as one that is unpacked does."""

    def __init__(self, stream):
        self._stream = stream

    def read1(self, size: int) -> bytes:
        return self._stream.read1(min(size, 1 << 10))


def test_names_of_tables_that_are_made_of_many_parts():
    there = SimpleNamespace(columns={"rocpd_region_0a": (), "rocpd_a" + "_a" * 200_000: ()})
    assert (processes(there), [*unknown(there)]) == (["_0a"], [])  # type: ignore[arg-type]


def program_with(shape: list[int], contracting: Sequence[int] = ()) -> bytes:
    """A program that computes a number and a product of two constants of a shape."""
    proto = HLO["HloProto"]()
    computation = proto.hlo_module.computations.add(name=b"main", id=1, root_id=2)
    for n, opcode in enumerate((b"constant", b"dot"), 1):
        made = computation.instructions.add(name=b"i%d" % n, opcode=opcode, id=n, operand_ids=[1, 1][: 2 * (n - 1)])
        made.shape.element_type = 11
        made.shape.dimensions.extend(shape)
        made.dot_dimension_numbers.lhs_contracting.extend(contracting)
    return proto.SerializeToString()


@pytest.mark.parametrize("shape, contracting", [([1 << 62] * 200_000, ()), ([1 << 62], [0] * 200_000)])
def test_shapes_and_products_of_very_many_dimensions(shape, contracting):
    with pytest.raises(InputError, match="more than 1,024 dimensions"):
        module.analyse(program_with(shape, contracting))


def test_a_constant_of_nothing_in_brackets_without_end():
    few, many = (
        given_text(HLO["HloProto"].FromString(program_with(shape)).hlo_module.computations[0].instructions[0])
        for shape in ([2, 0], [1 << 62, 0])
    )
    assert (few, many) == ("{{}, {}}", "{...}")


@pytest.mark.parametrize("digits", [400, 5_000])
def test_numbers_that_no_shape_has_in_the_text_of_an_operation(digits):
    told = collective_of_text(f"%all-reduce.1 = f32[8] all-reduce(f32[{'9' * digits}] %x)")
    assert told is not None and told.kind == "all-reduce" and told.bytes is None


def test_devices_in_more_axes_than_can_be_told():
    assert iota_devices([1], [1] * 100, []) is None
    axes = ",".join(f"'a{n}'=1" for n in range(100))
    assert groups_of_text(f"replica_groups=mesh[{axes}] {{'a1'}}") is None


def test_many_small_programs(monkeypatch):
    monkeypatch.setattr(module, "_analysed", {})
    monkeypatch.setattr(module, "_MOST_MODULES", 8)
    for n in range(20):
        module.analyse(bytes([10, 4, 10, 2]) + b"%02d" % n)
    assert len(module._analysed) == 8


def test_a_file_that_begins_with_its_last_step():
    lanes, many = Lanes(), 20_000
    assert [lanes.take(step).start.number for step in range(many, 0, -1)] == [*range(many)]
    assert {lanes.take(step).start.number for step in range(2, many)} == {many - 1}


@pytest.fixture
def little_memory() -> Iterator[None]:
    """What is made meanwhile in Python takes 100 MB at most."""
    tracemalloc.start()
    yield
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 100_000_000


@pytest.mark.usefixtures("little_memory")
def test_a_long_name_that_stands_before_many():
    name, inner = "a" * 200_000, {str(n): n for n in range(10_000)}
    found = list(wandb_config.numbers({"b": inner}, name))
    assert len(found) == 10_000 and {key[:200] for key, _ in found} == {name[:200]}
    assert [*wandb_config.numbers({"b": {"c": 1}}, "a")] == [("a.b.c", 1.0)]


def test_a_number_to_the_base_of_60_of_very_many_digits(tmp_path):
    text = f"a: 1{':1' * 300_000}\nb: 1:30:00\nc: {'9' * 5_000}\nd: 0x1F\n"
    assert documents.document(source_of(tmp_path, text), "x") == {"a": inf, "b": 5400, "c": inf, "d": 31}


@pytest.mark.parametrize(
    "reader, line",
    [
        (nanogpt, "host-{}: iter {}: loss 3.2500, time 100.00ms, mfu 14.60%\n"),
        (megatron, "host-{}: iteration {}/ 900 | elapsed time per iteration (ms): 100.0 | lm loss: 2.0E+00 |\n"),
    ],
    ids=["nanogpt", "megatron"],
)
def test_very_many_hosts_that_print_each_step(tmp_path, reader, line):
    hosts = 6_000
    got = read(reader, source_of(tmp_path, "".join(line.format(n, step) for step in (1, 2) for n in range(hosts))))
    assert len(got.rows["steps"]) == 2 * hosts and {*got.column("steps", "attempt")} == {0}


def test_series_of_an_engine_with_very_many_labels(tmp_path):
    series = (f'vllm:num_requests_running{{engine="{n}",label{n}="x"}} {n}\n' for n in range(8_000))
    got = read(prometheus, source_of(tmp_path, "# scraped_at 1700000000\n" + "".join(series)))
    assert sorted(got.column("engine", "running")) == [*range(8_000)]


def test_very_many_starts_in_one_log(tmp_path):
    many = 16_000
    lines = (f'DLLL {{"timestamp": "{BEGUN + n}", "step": {many - n}, "data": {{"loss": 1.5}}}}\n' for n in range(many))
    got = read(dllogger, source_of(tmp_path, "".join(lines)))
    assert got.column("lifecycle", "attempt") == [*range(many)]


def test_a_word_without_end_behind_what_dllogger_prints():
    line = "DLL 2020-09-15 14:29:13.47 - Epoch: 0 Iteration: 10  loss : 1.5 " + "a" * 65_000 + ":took : 2 s"
    for _ in range(64):
        told = printed(line)
        assert told is not None and told.data == {"loss": 1.5, "took": 2.0}


def packed(rows: int, **columns: Any) -> bytes:
    """A Parquet file in which each column holds one value in all rows."""
    out, none = io.BytesIO(), pa.array(np.zeros(rows, np.int32))
    table = pa.table({name: pa.DictionaryArray.from_arrays(none, pa.array([one])) for name, one in columns.items()})
    pq.write_table(table, out, store_schema=False, write_statistics=False, compression="zstd")
    return out.getvalue()


@pytest.mark.parametrize(
    "reader, columns",
    [
        (wandb_history, {"_step": 5, "_timestamp": 1.7e9, "loss": 2.5}),
        (pipeline_trace, dict.fromkeys(pipeline_trace.NEEDED, 1.0) | {"optype": "forward-compute"}),
    ],
    ids=["wandb_history", "pipeline_trace"],
)
def test_a_table_of_very_many_rows_that_are_all_alike(tmp_path, monkeypatch, reader, columns):
    monkeypatch.setattr(reader, "FREE_ROWS", 1 << 17)
    with pytest.raises(InputError, match="more rows than fit in the file"):
        read(reader, source_of(tmp_path, packed(400_000, **columns)))


def test_a_long_text_in_very_many_rows_of_a_table(tmp_path):
    got = read(wandb_history, source_of(tmp_path, packed(20_000, _step=5, loss=2.5, name="x" * 200_000)))
    assert len(got.rows["scalars"]) == 20_000 and "values (20,000): no numbers" in got.reasons()


def test_loads_of_one_name(tmp_path):
    loads = Loads(source_of(tmp_path, b"", "a.json"), "bench")
    told = [loads.name() for _ in range(20_000)]
    assert told[:3] == ["a", "a #2", "a #3"] and told[-1] == "a #20000"


def test_a_load_called_as_another_would_be(tmp_path):
    loads = Loads(source_of(tmp_path, b"", "a.json"), "bench")
    assert [loads.name(label) for label in ("", "#2", "", "#2", "")] == ["a", "a #2", "a #3", "a #2 #2", "a #4"]


BEGUN = 1_700_000_000  # seconds since the epoch
LINES = (b'{"ph":[' + b"1," * 40 + b"\n") * 2_000
"""Brackets that open line after line, and never close: each line begins an object with all others in it."""


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(json_stream, "_VAIN", 1 << 21)


@pytest.mark.usefixtures("impatient")
def test_brackets_that_never_close(tmp_path):
    source = source_of(tmp_path, b'{"whole": 1}\n' + LINES)
    for walk in (json_stream.objects, objects):
        found = []
        with pytest.raises(InputError, match="within one another"):
            found.extend(o for _, o in walk(source, Tally()))
        assert found == [{"whole": 1}]


@pytest.mark.usefixtures("impatient")
def test_brackets_that_never_close_in_a_trace_for_a_viewer(tmp_path):
    tally = Tally()
    with source_of(tmp_path, b'{"traceEvents":[{"ph":"X"},' + LINES).open() as f:
        assert [*trace_events(f, tally)] == [{"ph": "X"}]
    assert "the rest of the trace" in {lost.what.split(" (")[0] for lost in tally.lost()}

"""Lines of NCCL's Inspector plugin: every format from v4.0 to v4.3, rates against nccl-tests' definition."""

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.ranks import collectives, stragglers
from app.questions.collectives import words
from collectors.device import nccl_inspector
from errors import InputError, QuestionError
from runs.tables import MemoryTables
from tests.collectors.reading import read, source_of

US = 1_752_867_229_000_000
HEADER = {"id": "0x7f8c496ae9f661", "rank": 2, "n_ranks": 8, "nnodes": 1}
METADATA = {
    "inspector_output_format_version": "v4.0",
    "git_rev": "",
    "rec_mechanism": "nccl_profiler_interface",
    "dump_timestamp_us": US + 900_000,
    "hostname": "node7",
    "pid": 468528,
}
FACTOR = {"AllReduce": 2 * 7 / 8, "AllGather": 7 / 8, "ReduceScatter": 7 / 8, "Broadcast": 1, "Reduce": 1}
WHOLE = ("AllGather", "ReduceScatter")


def operation(call="AllReduce", size=1 << 30, micros=4000, sn=7, **more):
    """What a record holds; the rates are nccl-tests'."""
    rate = size * (8 if call in WHOLE else 1) / micros / 1e3
    return {
        "coll": call,
        "coll_sn": sn,
        "coll_msg_size_bytes": size,
        "coll_exec_time_us": micros,
        "coll_timing_source": "kernel_gpu",
        "coll_algobw_gbs": rate,
        "coll_busbw_gbs": rate * FACTOR[call],
        **more,
    }


def traced(start=US):
    kernels = [{"channel_id": n, "kernel_start_ts": start + n, "kernel_stop_ts": start + 50} for n in (1, 0)]
    return {"event_trace_ts": {"coll_start_ts": start - 90, "coll_stop_ts": start - 80, "kernel_events": kernels}}


TRACED = operation(**traced())


def record(told=None, **changed):
    return {"header": HEADER, "metadata": METADATA, "coll_perf": told or operation(), **changed}


def lines(*records):
    return "".join(json.dumps(r) + "\n" for r in records)


def got(tmp_path, *records):
    return read(nccl_inspector, source_of(tmp_path, lines(*records), "node7-pid468528.log"))


def table(got):
    return MemoryTables({n: {c: [r[c] for r in rows] for c in rows[0]} for n, rows in got.rows.items()})


@pytest.mark.parametrize("version", ["v4.0", "v4.1", "v4.2", "v5.1"])
def test_an_operation_with_its_rates(tmp_path, version):
    told = operation(coll_algo="RING", coll_proto="unknown")
    result = got(tmp_path, record(told, metadata={**METADATA, "inspector_output_format_version": version}))
    row = result.rows["collective_times"][0]
    assert (row["host"], row["communicator"], row["communicator_rank"]) == ("node7-pid468528", HEADER["id"], 2)
    assert (row["kind"], row["call"], row["seq"], row["group_size"]) == ("all-reduce", "AllReduce", 7, 8)
    assert (row["bytes"], row["dur_ns"], row["timing"]) == (float(1 << 30), 4_000_000, "kernel_gpu")
    assert (row["algorithm"], row["protocol"], row["start_ns"]) == ("RING", None, None)
    assert row["algbw_bytes_per_s"] == pytest.approx((1 << 30) / 4e-3) and row["dumped_ns"] == (US + 900_000) * 1000
    assert result.lost == [] and "collectives" not in result.rows


@pytest.mark.parametrize("call", FACTOR)
def test_the_operand_and_our_rates_follow_from_size_and_ranks(tmp_path, call):
    result = got(tmp_path, record(operation(call)))
    row = result.rows["collective_times"][0]
    assert row["bytes"] == (8 if call == "ReduceScatter" else 1) * (1 << 30) and result.lost == []
    answer = collectives.analyze(table(result), {}, {})
    ours = answer.rows.iloc[0]
    assert ours["algbw_bytes_per_s"] == pytest.approx(row["algbw_bytes_per_s"])
    assert ours["busbw_bytes_per_s"] == pytest.approx(row["busbw_bytes_per_s"])


def test_the_published_example_of_a_reduce_scatter(tmp_path):
    """65,536 bytes kept by each of 32 ranks in 110 us: 19.07 and 18.47 GB/s as the plugin's own notes print."""
    told = {**operation("ReduceScatter", 65536, 110), "coll_algobw_gbs": 19.065018, "coll_busbw_gbs": 18.469236}
    result = got(tmp_path, record(told, header={**HEADER, "n_ranks": 32}))
    assert result.lost == [] and result.rows["collective_times"][0]["bytes"] == 65536 * 32


def test_rates_that_do_not_follow_are_named(tmp_path):
    result = got(tmp_path, record({**operation(), "coll_busbw_gbs": 1.0}))
    assert "bandwidths as told (1): more than 1 % off" in result.reasons()


def test_an_all_to_all_whose_size_is_told_by_its_rate(tmp_path):
    told = operation("AllReduce") | {"coll": "AlltoAll"}
    each = {**told, "coll_algobw_gbs": told["coll_algobw_gbs"] * 8}
    odd = {**told, "coll_algobw_gbs": told["coll_algobw_gbs"] * 3}
    rows = got(tmp_path, record(told), record(each), record(odd)).rows["collective_times"]
    assert [r["bytes"] for r in rows] == [float(1 << 30), float(8 << 30), None]


def test_sends_and_receives(tmp_path):
    told = {
        "p2p": "Send",
        "p2p_sn": 5,
        "p2p_peer": 3,
        "p2p_msg_size_bytes": 1 << 20,
        "p2p_exec_time_us": 100,
        "p2p_timing_source": "kernel_gpu",
        "p2p_algobw_gbs": 10.48576,
        "p2p_busbw_gbs": 10.48576,
    }
    result = got(tmp_path, {"header": HEADER, "metadata": METADATA, "p2p_perf": told})
    row = result.rows["collective_times"][0]
    assert (row["kind"], row["call"], row["peer"], row["bytes"]) == ("permute", "Send", 3, float(1 << 20))
    assert result.lost == []


def test_since_v4_3_a_batch_tells_whose_lines_follow(tmp_path):
    stats = {"coll_records": 2, "coll_dropped_total": 512, "p2p_records": 0, "proxy_records": 1}
    batch = {"header": HEADER, "metadata": METADATA, "dump_stats": stats}
    alone = [{"coll_perf": operation(sn=n)} for n in (1, 2)]
    result = got(tmp_path, batch, *alone, {"proxy_trace": {"record_type": "proxy_op"}}, {"coll_perf": operation(sn=3)})
    assert [r["seq"] for r in result.rows["collective_times"]] == [1, 2]
    assert {r["communicator"] for r in result.rows["collective_times"]} == {HEADER["id"]}
    said = result.reasons()
    assert "collectives (512): overwritten in the ring buffer" in said and "COLL_RING_SIZE" in said
    assert "neither they nor a line before them" in said and "proxy traces (1)" in said


def test_missing_numbers_are_counted(tmp_path):
    result = got(tmp_path, *(record(operation(sn=n)) for n in (3, 4, 9)))
    assert "operations between the first and the last (4): their numbers are missing" in result.reasons()


def test_only_traced_kernels_have_a_start(tmp_path):
    result = got(tmp_path, record(operation(**traced())), record(operation(sn=8)))
    row = result.rows["collectives"][0]
    assert (row["start_ns"], row["end_ns"]) == (US * 1000, US * 1000 + 4_000_000)
    assert row["group"] == ",".join("?" * 8) and row["kind"] == "all-reduce" and len(result.rows["collectives"]) == 1


def test_no_straggler_is_named_where_ranks_or_starts_are_not_known(tmp_path):
    def many(**more):
        parts = []
        for rank in range(4):
            meta = {**METADATA, "pid": rank}
            for n in range(30):
                trace = traced(US + n * 10_000) if more else {}
                told = operation(micros=4000 + 900 * (rank == 2), sn=n, **trace)
                parts.append(record(told, metadata=meta, header={**HEADER, "rank": rank, "n_ranks": 4}))
        return table(got(tmp_path, *parts))

    with pytest.raises(QuestionError):
        stragglers.analyze(many(), {}, {})
    try:
        assert not stragglers.analyze(many(traced=True), {}, {}).to_dict().get("stragglers")
    except QuestionError as e:
        assert "\n" not in str(e)


def test_the_collectives_question_shows_them(tmp_path):
    sizes = [(1 << 20, 60), (1 << 26, 700), (1 << 30, 9000)]
    result = got(tmp_path, *(record(operation(size=s, micros=t, sn=n)) for n, (s, t) in enumerate(sizes)))
    answer = collectives.analyze(table(result), {}, {})
    assert answer.measured and sorted(answer.rows["bytes"]) == [float(s) for s, _ in sizes]
    assert answer.rows["uncovered_s"].isna().all() and answer.totals["wait_s"] is None
    assert answer.totals["total_s"] == pytest.approx(sum(t for _, t in sizes) / 1e6)
    assert not answer.rows["matched"].any() and any("waiting included" in note for note in answer.notes)
    assert "nan" not in words.verdict(answer) and answer.to_dict()


def test_recognised_and_packed(tmp_path):
    text = lines(record())
    source = source_of(tmp_path, gzip.compress(text.encode()), "node7-pid1.log.gz")
    assert nccl_inspector.sniff(source) == 0.95 and len(read(nccl_inspector, source).rows["collective_times"]) == 1
    assert nccl_inspector.sniff(source_of(tmp_path, '{"header": {}, "coll_perf": {}}')) == 0
    with pytest.raises(InputError, match="no operation in it"):
        read(nccl_inspector, source_of(tmp_path, json.dumps({"metadata": METADATA, "header": HEADER})))


@pytest.mark.parametrize("cut", range(0, 900, 64))
def test_a_file_cut_anywhere_gives_what_is_whole_or_one_sentence(tmp_path, cut):
    text = lines(record(operation(sn=1)), record(operation(sn=2)))
    try:
        result = read(nccl_inspector, source_of(tmp_path, text[: len(text) - cut]))
        assert len(result.rows.get("collective_times", [])) == (2 if cut == 0 else 1)
    except InputError as e:
        assert "\n" not in str(e)


ODD = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.lists(st.integers(), max_size=2)
)


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(st.sampled_from([*operation(), "event_trace_ts"]), ODD),
    st.dictionaries(st.sampled_from([*HEADER, "comm_name"]), ODD),
    st.dictionaries(st.sampled_from([*METADATA]), ODD),
)
def test_any_values_give_rows_or_one_sentence(tmp_path_factory, told, header, metadata):
    one = record({**operation(), **told}, header={**HEADER, **header}, metadata={**METADATA, **metadata})
    stats = {"header": header, "metadata": metadata, "dump_stats": told}
    text = json.dumps(one) + "\n" + json.dumps(stats) + "\n"
    try:
        read(nccl_inspector, source_of(tmp_path_factory.mktemp("odd"), text))
    except InputError as e:
        assert "\n" not in str(e)

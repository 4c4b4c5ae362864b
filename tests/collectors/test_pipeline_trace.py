"""Traces of pipeline-parallel steps as Parquet and CSV, and the sizes beside them."""

import contextlib
import gzip
import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.base import Source
from collectors.training import pipeline_trace
from errors import InputError
from tests.collectors.reading import read, source_of

HEAD = "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc"
LINES = (
    "0,0,0,16,forward-compute,0.289192,0.212,0,0,0,0",
    "0,0,0,16,forward-send,0.5012,0.001,0,-1,-1,-1",
    "0,1,4,16,forward-recv,0.1,0.4022,0,-1,-1,-1",
    "0,1,4,16,backward-compute,0.51,0.4,0,0,0,1",
    "1,0,8,16,gc,0.9,0,0,-1,0,-1",
    "1,1,12,16,optimizer,1.25,0.02,0,-1,-1,-1",
)
CSV = "\n".join((HEAD, *LINES)) + "\n"
META = "trial_name: AR\nrun_id: 0\ndp_size: 4\ndsp_size: 1\npp_size: 4\ntp_size: 4\nvpp_size: 1\nworld_size: 64\n"


def table(text=CSV):
    return pd.read_csv(io.StringIO(text))


def parquet(rows, **types):
    buffer = io.BytesIO()
    rows.astype(types).to_parquet(buffer, index=False)
    return buffer.getvalue()


def test_rows_of_csv_become_operations(tmp_path):
    result = read(pipeline_trace, source_of(tmp_path, CSV, "trace.csv"))
    rows = result.rows["pipeline"]
    assert rows[0] == {
        "step": 16,
        "dp_rank": 0,
        "stage": 0,
        "rank": 0,
        "op_type": "forward-compute",
        "microbatch": 0,
        "chunk": None,
        "seq": 0,
        "start_ns": 289_192_000,
        "dur_ns": 212_000_000,
        "source": "trace.csv",
    }
    assert rows[1]["microbatch"] is None and rows[1]["start_ns"] == 501_200_000
    assert result.column("pipeline", "rank") == [0, 0, 4, 4, 8, 12]
    assert not result.lost


def test_parquet_says_the_same_whatever_its_types(tmp_path):
    of_csv = read(pipeline_trace, source_of(tmp_path, CSV, "t")).rows
    for types in (
        {},
        {"optype": "category", "dp_rank": "int8", "step": "int64", "rank": "int16"},
        {"step": "float64", "start_ts": "float64", "seq_id": "str"},
    ):
        assert read(pipeline_trace, source_of(tmp_path, parquet(table(), **types), "t")).rows == of_csv
    single = read(pipeline_trace, source_of(tmp_path, parquet(table(), start_ts="float32"), "t"))
    starts = np.array(single.column("pipeline", "start_ns")) / 1e9
    assert starts == pytest.approx(table().start_ts, rel=1e-7)


def test_a_gzipped_csv_is_read_and_gzipped_parquet_is_not_taken(tmp_path):
    source = source_of(tmp_path, gzip.compress(CSV.encode()), "trace.csv.gz")
    assert pipeline_trace.sniff(source) > 0.5
    assert len(read(pipeline_trace, source).rows["pipeline"]) == 6
    assert pipeline_trace.sniff(source_of(tmp_path, gzip.compress(parquet(table())), "trace.parquet.gz")) == 0


def test_sizes_follow_from_the_ranks_seen(tmp_path):
    facts = read(pipeline_trace, source_of(tmp_path, CSV)).facts
    assert facts == {"parallelism": {"data": 2, "pipeline": 2, "tensor": 4}, "chips": 16}  # ranks 0, 4, 8, 12
    each = CSV.replace(",4,16", ",1,16").replace("1,0,8", "1,0,2").replace("1,1,12", "1,1,3")
    assert read(pipeline_trace, source_of(tmp_path, each)).facts["chips"] == 4
    unsure = CSV.replace("1,1,12", "1,1,11")
    assert read(pipeline_trace, source_of(tmp_path, unsure)).facts == {"parallelism": {"data": 2, "pipeline": 2}}
    rankless = parquet(table().drop(columns="rank"))
    assert read(pipeline_trace, source_of(tmp_path, rankless)).facts == {"parallelism": {"data": 2, "pipeline": 2}}


def test_all_tensor_parallel_ranks_in_the_trace(tmp_path):
    lines = [f"0,{stage},{2 * stage + lane},0,optimizer,0,1,0,-1,-1,-1" for stage in (0, 1) for lane in (0, 1)]
    facts = read(pipeline_trace, source_of(tmp_path, "\n".join((HEAD, *lines)))).facts
    assert facts == {"parallelism": {"data": 1, "pipeline": 2, "tensor": 2}, "chips": 4}


def test_sizes_beside_the_trace(tmp_path):
    source = source_of(tmp_path, META, "meta-AR.yaml")
    assert pipeline_trace.sniff(source) > 0.5
    result = read(pipeline_trace, source)
    assert result.facts == {"parallelism": {"data": 4, "pipeline": 4, "tensor": 4}, "chips": 64, "job_name": "AR"}
    assert not result.rows and not result.lost


def test_bad_sizes_are_named(tmp_path):
    result = read(pipeline_trace, source_of(tmp_path, "dp_size: many # or few\npp_size: '8'\nother\nworld_size: 0\n"))
    assert result.facts == {"parallelism": {"pipeline": 8}}
    assert result.reasons() == "dp_size: many: not a whole number from 1; world_size: 0: not a whole number from 1"
    with pytest.raises(InputError, match="no parallel sizes"):
        read(pipeline_trace, source_of(tmp_path, "a: b\ndp_size: -1"))
    with pytest.raises(InputError, match="longer than"):
        read(pipeline_trace, source_of(tmp_path, "dp_size: 1\npp_size: 1\n" * 5000))


def test_model_chunks_where_a_stage_has_several(tmp_path):
    several = CSV.replace("16,forward-compute,0.289192,0.212,0,0", "16,forward-compute,0.289192,0.212,0,1")
    assert read(pipeline_trace, source_of(tmp_path, several)).column("pipeline", "chunk") == [
        1,
        None,
        None,
        0,
        None,
        None,
    ]


def test_unusable_rows_are_counted_by_reason(tmp_path):
    bad = (
        "x,0,0,16,gc,0,1,0,0,0,0",
        "0,-1,0,16,gc,0,1,0,0,0,0",
        "0,0.5,0,16,gc,0,1,0,0,0,0",
        "0,0,0,16,gc,nan,1,0,0,0,0",
        "0,0,0,16,gc,0,-1,0,0,0,0",
        "0,0,0,16,gc,0,inf,0,0,0,0",
        "0,0,0,16,nap,0,1,0,0,0,0",
        "0,0,0,16,,0,1,0,0,0,0",
        "0,0,0,16",
        "0,0,0,16,gc,0,1,0,0,0,0,0",
        "0,0,0,1e99,gc,0,1,0,0,0,0",
    )
    result = read(pipeline_trace, source_of(tmp_path, CSV + "\n".join(bad) + "\n"))
    assert len(result.rows["pipeline"]) == 6
    said = {lost.reason: lost.what for lost in result.lost}
    assert said == {
        "they have more or fewer fields than the head": "2 rows",
        "they lack a whole step, data-parallel rank or stage from 0": "4 rows",
        "they lack a start, or a duration from 0, in seconds": "3 rows",
        "operations of no known type: '', 'nap'": "2 rows",
    }


def test_nothing_usable_is_refused(tmp_path):
    for text in (HEAD + "\n", HEAD + "\n0,0,0,0,nap,0,1,0,0,0,0\n"):
        with pytest.raises(InputError, match="no usable row"):
            read(pipeline_trace, source_of(tmp_path, text))


def test_damaged_parquet_is_an_input_error(tmp_path):
    whole = parquet(pd.concat([table()] * 5000))
    for data in (whole[: len(whole) // 2], whole[:1000] + b"\0" * 400 + whole[1400:]):
        source = source_of(tmp_path, data)
        pipeline_trace.sniff(source)
        with pytest.raises(InputError):
            read(pipeline_trace, source)


@pytest.mark.parametrize(
    ("data", "taken"),
    [
        (CSV, True),
        (CSV.replace(",", ", ", 3), True),
        ("step,host\n1,2\n", False),
        ("dp_size: 4\n", False),
        ("", False),
        (META, True),
        (b"PAR1garbage", False),
        (parquet(pd.DataFrame({"step": [1]})), False),
        (parquet(table()), True),
    ],
)
def test_sniff(tmp_path, data, taken):
    assert (pipeline_trace.sniff(source_of(tmp_path, data)) >= 0.5) is taken


def test_batches_are_bounded(tmp_path):
    rows = pd.concat([table()] * 30_000)
    result = read(pipeline_trace, source_of(tmp_path, parquet(rows)))
    assert result.batches >= 180_000 / pipeline_trace.BATCH_ROWS
    assert len(result.rows["pipeline"]) == 180_000


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 10**6), st.floats(-1e9, 1e9), st.floats(0, 1e9)),
        min_size=1,
        max_size=20,
    )
)
def test_what_is_written_is_what_is_read(tmp_path_factory, values):
    lines = [f"{d},{s},{step},optimizer,{start!r},{dur!r}" for d, s, step, start, dur in values]
    text = "\n".join(("dp_rank,stage,step,optype,start_ts,duration", *lines))
    rows = read(pipeline_trace, source_of(tmp_path_factory.mktemp("t"), text)).rows["pipeline"]
    for row, (d, s, step, start, dur) in zip(rows, values, strict=True):
        assert (row["dp_rank"], row["stage"], row["step"], row["rank"]) == (d, s, step, None)
        assert row["start_ns"] == pytest.approx(start * 1e9, rel=1e-15, abs=1)
        assert row["dur_ns"] == pytest.approx(dur * 1e9, rel=1e-15, abs=1)


@settings(deadline=None, max_examples=150)
@given(st.binary(max_size=40), st.integers(0, 2000), st.sampled_from(["csv", "parquet", "meta"]))
def test_damage_is_named_and_never_a_defect(tmp_path_factory, noise, at, kind):
    data = {"csv": CSV.encode(), "parquet": parquet(table()), "meta": META.encode()}[kind]
    data = data[:at] + noise + data[at + len(noise) :]
    source = Source(source_of(tmp_path_factory.mktemp("t"), data).path, "trace")
    if pipeline_trace.sniff(source) >= 0.5:
        with contextlib.suppress(InputError, OSError, EOFError):
            read(pipeline_trace, source)

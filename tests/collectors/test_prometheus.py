"""Prometheus text: scrapes told apart, names of all versions, and numbers that cannot be."""

import gzip
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.reading.exposition import parsed, time_ns
from collectors.serving import prometheus
from errors import InputError
from tests.app.metrics_server import exposition
from tests.collectors.reading import read, source_of
from tests.collectors.scrapes import SGLANG, WHO, engine, metrics

S = 1_000_000_000


def test_replicas_and_models_are_kept_apart(tmp_path):
    who = (("0", "a:8000", "m"), ("1", "a:8000", "m"), ("0", "b:8000", "m"), ("0", "b", "n"))
    text = "".join(
        f'vllm:num_requests_running{{engine="{e}",instance="{i}",model_name="{m}"}} {n}\n'
        for n, (e, i, m) in enumerate(who)
    )
    got = metrics(tmp_path, text)
    assert [(r["replica"], r["running"]) for r in got.rows["engine"]] == [
        ("a:8000 0", 0),
        ("a:8000 1", 1),
        ("b:8000 0", 2),
        ("n b 0", 3),
    ]


ONE, TWO = exposition(10), exposition(30)
AT, LATER = 1_700_000_000 * S, 1_700_000_005 * S


@pytest.mark.parametrize(
    ("text", "times"),
    [
        (ONE + TWO, [None, None]),
        (f"{ONE}# EOF\n{TWO}# EOF\n", [None, None]),
        (f"# scraped_at 1700000000.000000001\n{ONE}# scraped_at 1700000005\n{TWO}", [AT + 1, LATER]),
        (f"2023-11-14T22:13:20Z\n{ONE}2023-11-14T22:13:25+00:00\n{TWO}", [AT, LATER]),
        (f"1700000000\n{ONE}1700000005\n{TWO}", [AT, LATER]),
        (f"1700000000\n{ONE}\n{TWO}", [1_700_000_000 * S]),
    ],
)
def test_scrapes_joined_in_one_file(tmp_path, text, times):
    got = metrics(tmp_path, text)
    assert got.column("engine", "ts_ns") == times
    assert got.column("engine", "order") == list(range(len(times)))
    assert got.column("engine", "prompt_tokens") == [1000, 3000][: len(times)]
    if len(times) == 1:
        assert "twice in one scrape" in got.reasons()


@pytest.mark.parametrize("by_series", [True, False])
@pytest.mark.parametrize("scale", [1, 1000])
def test_samples_with_times_of_their_own(tmp_path, by_series, scale):
    """Prometheus' format has ms, OpenMetrics seconds; a dump goes series by series, a federation scrape by scrape."""
    names = ("vllm:num_requests_running", "vllm:num_requests_waiting")
    cells = [(n, t) for n in names for t in (1_700_000_005, 1_700_000_000)]
    cells = cells if by_series else sorted(cells, key=lambda c: c[1])
    text = "".join(f"{n}{WHO} {t % 100 + (n == names[1])} {t * scale}\n" for n, t in cells)
    rows = engine(metrics(tmp_path, text + "# EOF\n"))
    assert [(r["ts_ns"], r["running"], r["waiting"]) for r in rows] == [
        (1_700_000_000 * S, 0, 1),
        (1_700_000_005 * S, 5, 6),
    ]


def test_openmetrics_exemplars_escapes_and_spaces(tmp_path):
    text = (
        'vllm:e2e_request_latency_seconds_bucket{le="1.0",model_name="m"} 2 # {trace_id="a } b"} 0.67 1700000000.1\n'
        'vllm:e2e_request_latency_seconds_bucket{le="+Inf",model_name="m"} 3 1700000000.5 # {} 1\n'
        'custom{ path = "C:\\\\dir\\"x\\"\\n}" , b="1",}  -1.5e3\n'
    )
    got = metrics(tmp_path, text)
    assert [(r["le"], r["count"], r["ts_ns"]) for r in got.rows["histograms"]] == [
        (1.0, 2, None),
        (math.inf, 3, 1_700_000_000 * S + S // 2),
    ]
    assert got.rows["scalars"][0]["name"] == 'custom{path="C:\\dir"x"\n}",b="1"}'
    assert got.rows["scalars"][0]["value"] == -1500.0


def test_counters_that_reset_are_kept_as_they_stand(tmp_path):
    text = "".join(f"# scraped_at {1_700_000_000 + n}\n{exposition(r)}" for n, r in enumerate((5, 9, 2)))
    got = metrics(tmp_path, text)
    assert got.column("engine", "prompt_tokens") == [500, 900, 200]


def test_gaps_of_the_poller_are_told(tmp_path):
    text = (
        f"# scraped_at 1700000000\n{ONE}# no_answer 1700000005.5 does not answer (Connection refused)\n"
        f"# scraped_at 1700000010\n{TWO}"
    )
    got = metrics(tmp_path, text)
    assert len(got.rows["engine"]) == 2
    [lost] = got.lost
    assert lost.what == "scrapes (1)" and "gap" in lost.reason and "Connection refused" in lost.reason


def bucket(le, n, name="x_seconds"):
    return f'{name}_bucket{{le="{le}"}} {n}\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (bucket(1, 5) + bucket(2, 4) + bucket("+Inf", 6), "fewer than the one below"),
        (bucket(1, 5) + bucket("+Inf", 4), "fewer than the one below"),
        (bucket("one", 5), "bound is no number"),
        (bucket("NaN", 5), "bound is no number"),
        (bucket(1, "NaN"), "counts that are no numbers"),
        (bucket(1, -1), "counts that are no numbers"),
    ],
)
def test_histograms_that_cannot_be(tmp_path, text, said):
    got = metrics(tmp_path, "y 1\n" + text)
    assert "histograms" not in got.rows and said in got.reasons()


def test_bounds_that_change_are_told_and_kept(tmp_path):
    text = "".join(
        f"# scraped_at {1_700_000_000 + n}\n" + "".join(bucket(b, c) for c, b in enumerate(bounds))
        for n, bounds in enumerate(((1, 2, "+Inf"), (1, 5, "+Inf")))
    )
    got = metrics(tmp_path, text)
    assert got.column("histograms", "le") == [1, 2, math.inf, 1, 5, math.inf] and "bounds changed" in got.reasons()


def test_a_histogram_without_its_last_bucket_takes_it_from_the_count(tmp_path):
    got = metrics(tmp_path, bucket(2, 4) + bucket(1, 3) + "x_seconds_count 9\nx_seconds_sum NaN\n")
    assert [(r["le"], r["count"], r["total"]) for r in got.rows["histograms"]] == [
        (1.0, 3, None),
        (2.0, 4, None),
        (math.inf, 9, None),
    ]


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("vllm:kv_cache_usage_perc 1.5", "kv_usage"),
        ("vllm:num_requests_running -2", "running"),
        ("vllm:num_requests_running NaN", "running"),
        ("vllm:num_preemptions_total +Inf", "preemptions"),
        ("vllm:num_preemptions_total 1e300", "preemptions"),
        ("vllm:gpu_prefix_cache_hit_rate -1", "prefix_hit_rate"),
    ],
)
def test_numbers_that_cannot_be_are_not_known(tmp_path, line, column):
    assert metrics(tmp_path, line + "\n").rows["engine"][0][column] is None


def test_lines_that_are_no_samples_are_counted(tmp_path):
    bad = "bad line here\nx{a=b} 1\nx{ 1\nx 1_000\nx one\n"
    got = metrics(tmp_path, bad + exposition(1) + "vllm:num_requests_run")
    assert {lost.what for lost in got.lost} == {"lines (5)", "last line (1)"} and len(got.rows["engine"]) == 1


def test_other_series_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(prometheus, "MAX_SCALAR_SERIES", 3)
    got = metrics(tmp_path, "".join(f"x{n} 1\n" for n in range(5)))
    assert len(got.rows["scalars"]) == 3 and "more than 3 other series" in got.reasons()


def test_labels_that_tell_series_apart_stay_in_the_name(tmp_path):
    name = "vllm:request_success_total"
    got = metrics(tmp_path, f'{name}{{engine="1",finished_reason="stop",model_name="m"}} 4\npython_info_created 5\n')
    assert [(r["name"], r["value"]) for r in got.rows["scalars"]] == [
        (f'{name}{{finished_reason="stop",engine="1"}}', 4.0)
    ]


@pytest.mark.parametrize("text", ["", "\n\n", "# HELP x y\n# EOF\n", "hello\nworld\n"])
def test_nothing_in_it_is_refused(tmp_path, text):
    with pytest.raises(InputError, match="no sample"):
        metrics(tmp_path, text)


def test_gzipped_in_many_members(tmp_path):
    data = b"".join(gzip.compress(f"# scraped_at {1_700_000_000 + n}\n{exposition(n)}".encode()) for n in range(3))
    assert metrics(tmp_path, data).column("engine", "prompt_tokens") == [0, 100, 200]


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        (exposition(1), 0.9, 1.0),
        (SGLANG, 0.9, 1.0),
        (f"vllm:num_requests_running{WHO} 3\n", 0.9, 1.0),
        ("# TYPE go_goroutines gauge\ngo_goroutines 8\n", 0.85, 0.9),
        ("# scraped_at 1700000000\nx 1\n", 0.85, 0.9),
        ("", 0, 0),
        ("# TYPE of thing\n", 0, 0),
        ("completed step: 1, seconds: 2.0\n", 0, 0),
        ("INFO vllm: hello {x}\n", 0, 0),
        (json.dumps({"vllm:num_requests_running": 1}), 0, 0),
        ("x,y\n1,2\n", 0, 0),
        ("# TYPE a gauge\n\0", 0, 0),
    ],
)
def test_sniff(tmp_path, text, least, most):
    assert least <= prometheus.sniff(source_of(tmp_path, text)) <= most


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1700000000", 1_700_000_000 * S),
        ("1700000000.000000001", 1_700_000_000 * S + 1),
        ("1700000000123", 1_700_000_000 * S + 123_000_000),
        ("1700000000000000001", 1_700_000_000 * S + 1),
        ("2023-11-14 22:13:20", 1_700_000_000 * S),
        ("2023-11-14T23:13:20.5+01:00", 1_700_000_000 * S + S // 2),
        ("yesterday", None),
        ("170", None),
    ],
)
def test_times(text, ns):
    assert time_ns(text) == ns


NAMES = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,10}", fullmatch=True).filter(lambda n: not n.endswith("_created"))
VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\r\x85\x1c\x1d\x1e\x0b\x0c\u2028\u2029"), max_size=12)


@settings(deadline=None)
@given(NAMES, st.dictionaries(st.from_regex(r"[a-z]{1,4}x", fullmatch=True), VALUES, max_size=3), st.floats(-1e9, 1e9))
def test_what_is_written_is_what_is_read(tmp_path_factory, name, labels, value):
    escaped = {k: v.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for k, v in labels.items()}
    series = name + "{" + ",".join(f'{k}="{v}"' for k, v in escaped.items()) + "}"
    assert parsed(series) == (name, labels)
    got = metrics(tmp_path_factory.getbasetemp(), f"{series} {value!r}\n")
    [row] = got.rows["scalars"]
    assert row["value"] == value and row["name"].startswith(name)


def test_a_time_beyond_64_bits_is_no_time(tmp_path):
    line = 'vllm:num_requests_running{engine="0"}'
    text = f"{line} 1 11700000000000\n{line} 2 99999999999\n{line} 3 1700000000000\n"
    rows = read(prometheus, source_of(tmp_path, text, "metrics.prom")).column("engine", "ts_ns")
    assert 1_700_000_000 * 10**9 in rows
    assert all(t is None or 0 <= t < 2**63 for t in rows)

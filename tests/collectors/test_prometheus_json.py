"""Answers of Prometheus to queries: they tell what the scrapes told that they are made of."""

import gzip
import json
import re
from time import process_time

import pytest

from collectors.ingest import ingest
from collectors.ingesting.folders import AnswerFolder, joined
from collectors.ingesting.unpack import SafeSource
from collectors.serving import prometheus, prometheus_json
from errors import InputError
from runs.store import Store
from tests.app.metrics_server import exposition
from tests.collectors.reading import read, source_of
from tests.collectors.scrapes import SGLANG, WHO
from tests.collectors.test_dcgm import sample

S, T = 1_000_000_000, 1_700_000_000
RUNNING = {"__name__": "vllm:num_requests_running", "engine": "0", "model_name": "llama"}


def answer(*result, kind="matrix", **more):
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": [*result]}, **more})


def series(metric, *values):
    return {"metric": metric, "values": [list(v) for v in values]}


def made_of(scrapes, sort=False):
    """The series of scrapes, (time, text) each, as a query of all of them answers."""
    found = {}
    for at, text in scrapes:
        for name, labels, value in re.findall(r"^([^#\s{]+)(?:\{(.*)\})? (\S+)$", text, re.MULTILINE):
            pairs = [("__name__", name), *re.findall(r'(\w+)="([^"]*)"', labels)]
            found.setdefault(tuple(sorted(pairs) if sort else pairs), []).append([at, value])
    return [{"metric": dict(pairs), "values": values} for pairs, values in found.items()]


def printed(result):
    lines = []
    for one in result:
        labels = ", ".join(f'{key}="{value}"' for key, value in one["metric"].items() if key != "__name__")
        lines.append(one["metric"].get("__name__", "") + (f"{{{labels}}}" if labels else "") + " =>")
        lines += [f"{value} @[{at}]" for at, value in one["values"]]
    return "\n".join(lines) + "\n"


def exported(result):
    rows = ({"metric": r["metric"], "values": [float(v) for _, v in r["values"]]} for r in result)
    times = ([round(at * 1000) for at, _ in r["values"]] for r in result)
    return "".join(json.dumps(row | {"timestamps": at}) + "\n" for row, at in zip(rows, times, strict=True))


def field(kind, values=None, **more):
    return {"name": kind.title(), "type": kind, **more, **({} if values is None else {"values": values})}


def frame(one):
    """A series as a frame: NaN and what is infinite stand beside the values."""
    values, places = [], {"NaN": [], "Inf": [], "NegInf": []}
    for n, (_, text) in enumerate(one["values"]):
        number = float(text)
        name = "NaN" if number != number else {float("inf"): "Inf", float("-inf"): "NegInf"}.get(number)
        values.append(None if name else number)
        if name:
            places[name].append(n)
    schema = {"refId": "A", "meta": {"type": "timeseries-multi", "custom": {"resultType": "matrix"}}}
    schema["fields"] = [field("time", config={"interval": 15000}), field("number", labels=one["metric"])]
    data = {"values": [[round(at * 1000) for at, _ in one["values"]], values], "entities": [None, places]}
    return {"schema": schema, "data": data}


def framed(result):
    return json.dumps({"results": {"A": {"status": 200, "frames": [frame(one) for one in result]}}})


def told(tmp_path, text, name="answer.json"):
    source = source_of(tmp_path, text, name)
    assert prometheus_json.sniff(source) >= 0.9
    return read(prometheus_json, source)


VLLM = [(T + 5 * n + 0.25, exposition(100 + 40 * (n % 5), running=n)) for n in range(8)]
ANSWERS = (
    answer(*made_of(VLLM[:2])),
    exported(made_of(VLLM[:2])),
    printed(made_of(VLLM[:2])),
    answer({"metric": RUNNING, "value": [T, "3"]}, kind="vector"),
    framed(made_of(VLLM[:2])),
)
OTHERS = [(T + 15 * n, SGLANG + sample("PROF_SM_ACTIVE", n / 10) + sample("DEV_FB_USED", n)) for n in range(3)]


@pytest.mark.parametrize("scrapes", [VLLM, OTHERS], ids=["vllm", "sglang and GPUs"])
def test_an_answer_tells_what_its_scrapes_told(tmp_path, scrapes):
    text = "".join(f"# scraped_at {at}\n{text}" for at, text in scrapes)
    expected = read(prometheus, source_of(tmp_path, text, "answer.json"))
    result = made_of(scrapes)
    each = "\n".join(answer(one) for one in result)
    written = (answer(*result), json.dumps(json.loads(answer(*result)), indent=2), json.dumps(result), each)
    frames = (framed(result), json.dumps(json.loads(framed(result)), sort_keys=True, indent=1))
    for text in (*written, *frames, printed(result), exported(result), "\ufeff" + answer(*result)):
        got = told(tmp_path, text)
        assert got.rows == expected.rows and got.facts == expected.facts
        assert got.reasons() == expected.reasons()
    assert told(tmp_path, gzip.compress(each.encode())).rows == expected.rows
    got = told(tmp_path, answer(*made_of(scrapes, sort=True)))
    assert {k: len(v) for k, v in got.rows.items()} == {k: len(v) for k, v in expected.rows.items()}
    assert got.rows.get("engine") == expected.rows.get("engine")


def test_an_instant(tmp_path):
    got = told(tmp_path, answer({"metric": RUNNING, "value": [T + 0.123, "3"]}, kind="vector"))
    assert [(r["ts_ns"], r["running"]) for r in got.rows["engine"]] == [(T * S + 123_000_000, 3)]
    got = told(tmp_path, f"vllm:num_requests_running{WHO} => 3 @[{T}.123]\n", "out.txt")
    assert [(r["ts_ns"], r["running"]) for r in got.rows["engine"]] == [(T * S + 123_000_000, 3)]


def test_what_a_query_computed_counts_nothing(tmp_path):
    """rate(vllm:generation_tokens_total[1m]) keeps the labels and loses the name."""
    rate = {key: value for key, value in RUNNING.items() if key != "__name__"}
    got = told(tmp_path, answer(series(rate, (T, "35.5")), series({"le": "0.5"}, (T, "1")), series({}, (T, "2"))))
    assert "engine" not in got.rows and "histograms" not in got.rows
    assert {r["name"]: r["value"] for r in got.rows["scalars"]} == {
        'query result(engine="0",model_name="llama")': 35.5,
        'query result(le="0.5")': 1,
        "query result": 2,
    }
    assert "names no metric" in got.reasons()


def test_a_number_alone_is_a_scalar_and_a_text_is_none(tmp_path):
    scalar = '{"status":"success","data":{"resultType":"scalar","result":[1700000000,"42"]}}'
    assert told(tmp_path, scalar).column("scalars", "value") == [42]
    with pytest.raises(InputError, match="is a string"):
        told(tmp_path, '{"status":"success","data":{"resultType":"string","result":[1700000000,"foo"]}}')


def test_gaps_and_markers_of_staleness(tmp_path):
    got = told(tmp_path, answer(series(RUNNING, (T, "1"), (T + 5, "NaN"), (T + 10, "+Inf"), (T + 60, "2"))))
    assert [(r["ts_ns"] // S - T, r["running"]) for r in got.rows["engine"]] == [(0, 1), (5, None), (10, None), (60, 2)]


def test_errors_and_warnings_of_the_server(tmp_path):
    with pytest.raises(InputError, match="bad_data invalid parameter"):
        told(tmp_path, '{"status":"error","errorType":"bad_data","error":"invalid parameter"}')
    got = told(tmp_path, answer(series(RUNNING, (T, "1")), warnings=["one store did not answer"], isPartial=True))
    assert "one store did not answer" in got.reasons() and "partial" in got.reasons()
    with pytest.raises(InputError, match="with no sample"):
        told(tmp_path, answer())


def test_one_that_is_cut_off_is_read_so_far(tmp_path):
    whole = answer(*(series(RUNNING | {"engine": str(n)}, (T, "1"), (T + 5, "2")) for n in range(4)))
    at = whole.index('"engine": "3"')
    got = told(tmp_path, whole[:at])
    assert len(got.rows["engine"]) == 6 and "ends in the middle" in got.reasons()
    damaged = exported([series(RUNNING, (T, "1"))]) + '{"metric":{"__na\n' + exported([series(RUNNING, (T + 5, "2"))])
    got = told(tmp_path, damaged)
    assert got.column("engine", "running") == [1, 2] and "not valid JSON" in got.reasons()


def test_levels_without_end(tmp_path):
    whole = exported([series(RUNNING, (T, "1"))])
    got = told(tmp_path, whole + '{"a":[\n' * 5_000)
    assert got.column("engine", "running") == [1] and "too many levels" in got.reasons()
    with pytest.raises(InputError, match="too many levels"):
        told(tmp_path, '{"data":{"resultType":"matrix","result":' + "[" * 5_000)


def test_the_same_series_twice(tmp_path):
    one = series(RUNNING, (T, "1"), (T + 5, "2"))
    assert told(tmp_path, answer(one, one)).column("engine", "running") == [1, 2]
    got = told(tmp_path, answer(one) + answer(series(RUNNING, (T + 5, "7"), (T + 10, "3"))))
    assert got.column("engine", "running") == [1, 2, 3] and "there twice" in got.reasons()


def test_what_is_no_sample_is_counted(tmp_path):
    odd = series(RUNNING, (T, "x"), (T, True), ("?", "1"), (1e300, "1"), (-5, "1"), (T, "1"))
    odd["values"] += [[T], "1", None, {"a": 1}, [T, [1]]]
    got = told(tmp_path, answer(odd, {"metric": RUNNING, "values": 5}, {"metric": RUNNING, "histograms": [[T, {}]]}))
    assert got.column("engine", "running") == [1]
    assert "no time and number" in got.reasons() and "native histograms" in got.reasons()


def test_labels_of_any_kind(tmp_path):
    metric = {"__name__": "up", "path": 'a"b\\c\n{d}', "metric": "x", "value": "1", "odd": 3}
    got = told(tmp_path, answer(series(metric, (T, "1"))))
    assert got.column("scalars", "name") == ['up{path="a"b\\c\n{d}",metric="x",value="1"}']


def test_what_is_not_its_own(tmp_path):
    others = (
        '{"status":"success","data":{"resultType":"streams","result":[{"stream":{},"values":[["1","line"]]}]}}',
        '{"metric":{"name":"x"},"value":1}',
        '{"status":"success"}',
        '{"time":"x","message":"y","errorType":"KeyError"}\n{"resultType":"string"}\n',
        '{"metric":{"name":"loss"},"values":["a"]}',
        f"vllm:num_requests_running{WHO} 1\n",
        "a => b\n",
        "",
    )
    for other in others:
        assert prometheus_json.sniff(source_of(tmp_path, other)) == 0, other


def test_answers_of_one_folder_are_one_input(tmp_path):
    """As where each was asked for one metric: of two files two servers would be told, each of half."""
    folder = tmp_path / "answers"
    folder.mkdir()
    result = made_of(VLLM)
    for n, one in enumerate(result):
        text = answer(one).encode()
        (folder / f"{n}.json{'.gz' if n % 2 else ''}").write_bytes(gzip.compress(text) if n % 2 else text)
    (folder / "cut.json.gz").write_bytes(
        gzip.compress(answer(series({"__name__": "up"}, (T + 0.25, "1"))).encode())[:-9]
    )
    (folder / "wrong.json").write_text('{"status":"error","errorType":"timeout","error":"too slow"}')
    (folder / "config.json").write_text('{"metric": "loss"}')
    found = list(joined(SafeSource(path, f"answers/{path.name}") for path in sorted(folder.iterdir())))
    assert [(type(f), f.name) for f in found] == [(AnswerFolder, "answers"), (SafeSource, "answers/config.json")]
    assert len(found[0].parts) == len(result) + 2
    got = read(prometheus_json, found[0])
    expected = told(tmp_path, answer(*result), "answers")
    assert got.rows["engine"] == expected.rows["engine"] and got.rows["histograms"] == expected.rows["histograms"]
    assert "timeout too slow" in got.reasons() and "cut.json.gz" in got.reasons()
    alone = folder / "0.json"
    assert [type(f) for f in joined([SafeSource(alone, "0.json")])] == [SafeSource]


def test_a_folder_is_no_copy_of_its_first_file(tmp_path):
    made = {"a/0.json.gz": gzip.compress, "a/1.json.gz": gzip.compress, "b/0.json": bytes}
    for name, packed in made.items():
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        metric = RUNNING if "0.json" in name else {**RUNNING, "__name__": "vllm:num_requests_waiting"}
        path.write_bytes(packed(answer(series(metric, (T, "1"), (T + 5, "2"))).encode()))
    store = Store(tmp_path / "store")
    run = store.get(ingest([tmp_path / "in"], store).run_id)
    rows = run.tables.arrow("engine", ["source", "running", "waiting"]).to_pylist()
    assert [row["waiting"] for row in rows if row["source"].endswith("a")] == [1, 2]


def power(n):
    return {"gpu": str(n), "Hostname": "n1", "modelName": "NVIDIA L4", "device": f"nvidia{n}", "UUID": f"GPU-{n}"}


POWER = "DCGM_FI_DEV_POWER_USAGE"


def test_the_data_of_a_panel_of_grafana(tmp_path):
    """A wide frame, whose names its query alone tells, and the frames that a panel holds."""
    at = [T * 1000, T * 1000 + 15000, T * 1000 + 30000]
    fields = [field("time"), *(field("number", labels=power(n)) for n in range(2)), field("string")]
    said = {"executedQueryString": f'Expr: {POWER}{{Hostname="n1"}}\nStep: 15s'}
    wide = {
        "schema": {"meta": said, "fields": fields},
        "data": {"values": [at, [70, None, 72], [60, 61, 62], ["a"] * 3]},
    }
    got = told(tmp_path, json.dumps([wide]), "panel.json")
    assert [(r["ts_ns"] // S - T, r["name"][:11], r["value"]) for r in got.rows["scalars"]] == [
        *((0, "GPU 0 power", 70), (0, "GPU 1 power", 60), (15, "GPU 1 power", 61)),
        *((30, "GPU 0 power", 72), (30, "GPU 1 power", 62)),
    ]
    shown = {
        "fields": [field("time", at), field("number", [1, 2, 3], labels={"__name__": POWER, **power(0)})],
        "length": 3,
    }
    got = told(tmp_path, json.dumps([shown]), "panel.json")
    assert [r["value"] for r in got.rows["scalars"]] == [1, 2, 3] and got.facts == {"chip": "NVIDIA L4"}


def test_what_a_query_computed_has_no_metric_in_a_frame_either(tmp_path):
    said = {"executedQueryString": "Expr: sum(rate(x_total[5m]))\nStep: 15s"}
    one = {"schema": {"meta": said, "fields": [field("time"), field("number", labels={"pod": "a"})]}}
    one["data"] = {"values": [[T * 1000], [2.5]]}
    got = told(tmp_path, json.dumps({"results": {"A": {"frames": [one]}}}))
    [row] = got.rows["scalars"]
    assert row["name"].startswith("query result") and row["value"] == 2.5


@pytest.mark.parametrize(
    "frames",
    [
        [{"schema": {"fields": [field("string"), field("number")]}, "data": {"values": [["a"], [1]]}}],
        [{"schema": {"fields": [field("time")]}, "data": {"values": [[T * 1000]]}}],
        [{"schema": {"fields": []}, "data": {"values": []}}],
    ],
)
def test_frames_without_a_number_by_time_are_told_as_such(tmp_path, frames):
    with pytest.raises(InputError, match="no number by time"):
        told(tmp_path, json.dumps({"results": {"A": {"frames": frames}}}))


@pytest.mark.parametrize(
    "head", ['[{"schema":{', '[{"schema":{"a":{},', '{"results":{"A":{"frames":[{"schema":{', '[{"fields":[{']
)
def test_a_long_beginning_of_a_frame_takes_no_time(tmp_path, head):
    began = process_time()
    for part in ("{", "{}", '"a":{},', " ", '"fields":[', '{"type"'):
        prometheus_json.sniff(source_of(tmp_path, head + part * 60_000))
    assert process_time() - began < 5

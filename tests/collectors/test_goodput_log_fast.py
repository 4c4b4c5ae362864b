"""Blocks read as columns give exactly the rows that entries read one by one give, whatever the file looks like."""

import gzip
import json
import math
import random
from fractions import Fraction
from itertools import count

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from collectors.reading import json_stream
from collectors.reading.textlog import DATED, moment_ns, seconds_to_ns
from collectors.training import goodput_log
from collectors.training.goodput_log import batch, fit, keys, numbers, spoken, stream
from collectors.training.goodput_log.keys import NONE
from errors import InputError
from tests.collectors.reading import read, source_of
from tests.collectors.test_goodput_log import A_JOB, T0, entry, event, lines, save, step
from tests.fuzz.damage import damaged

SEPARATORS = {
    "lines": lines,
    "lines with CRLF": lambda es: lines(es).replace("\n", "\r\n"),
    "lines with blank ones between": lambda es: lines(es).replace("\n", "\n\n"),
    "an array, compact": lambda es: json.dumps(es, separators=(",", ":")),
    "an array in one line": json.dumps,
    "an array, an entry a line": lambda es: "[\n" + ",\n".join(map(json.dumps, es)) + "\n]\n",
    "an array, indented": lambda es: json.dumps(es, indent=2, sort_keys=True),
    "an array, tabs": lambda es: json.dumps(es, indent="\t"),
    "objects, indented": lambda es: "".join(json.dumps(e, indent=1) + "\n" for e in es),
    "letters as they are": lambda es: "".join(json.dumps(e, ensure_ascii=False) + "\n" for e in es),
}
FORMS = [*SEPARATORS.values(), lambda es: "\ufeff" + lines(es), lambda es: "[" + lines(es)]


def outcome(folder, data, *, fast, block=400, rare=2):
    """What reading gives, without the order in which losses were found; and how many blocks went which way."""
    blocks = {"fast": 0, "slow": 0}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "BLOCK", block)
        patch.setattr(spoken, "_FEW", 1)
        patch.setattr(batch, "_RARE", rare)
        if fast:
            known = stream.from_json

            def counted(*args):
                found = known(*args)
                blocks["slow" if found is None else "fast"] += 1
                return found

            patch.setattr(stream, "from_json", counted)
        else:
            patch.setattr(stream, "_separator", lambda head: None)
        try:
            got = read(goodput_log, source_of(folder, data))
        except InputError as error:
            return str(error), blocks
    lost = sorted((x.what, x.reason, x.offset) for x in got.lost if x.offset is not None)
    return (got.rows, got.facts, lost, sorted(x.what for x in got.lost)), blocks


def same_both_ways(folder, data, block=400):
    data = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    fast, blocks = outcome(folder, data, fast=True, block=block, rare=len(data) % 4)
    assert fast == outcome(folder, data, fast=False)[0]
    return fast, blocks


MANY = [
    *A_JOB,
    *(e for at in range(100, 130) for e in (event(at, "data_loading_start_time"), step(at + 0.25, at))),
    save(),
    event(131, "elastic_wait_start_time", elastic_wait_event_type="scale_up"),
    A_JOB[3],
    entry(132, {"active_slices": 3, "total_slices": 4, "elastic_slice_counts_timestamp": T0 + 131.5}),
    entry(133, {"job_end_time": T0 + 133.0, "job_start_time": T0 + 134.0, "step_count": 1, "step_start_time": T0 + 13}),
    event(140, "job_end_time"),
]


@pytest.mark.parametrize("form", SEPARATORS)
@pytest.mark.parametrize("block", [400, 1_500, 1 << 21])
def test_every_separator_is_read_in_blocks(tmp_path, form, block):
    got, blocks = same_both_ways(tmp_path, SEPARATORS[form](MANY), block)
    assert blocks == {"fast": blocks["fast"], "slow": 0} and blocks["fast"] >= 1
    assert got[0]["steps"] == read(goodput_log, source_of(tmp_path, lines(MANY))).rows["steps"]


NUMBER = (
    st.floats(T0 - 1e6, T0 + 1e6)
    | st.floats()
    | st.integers()
    | st.integers(0, 300)
    | st.integers(T0, T0 + 10_000)
    | st.floats(-3, 3)
    | st.sampled_from([0, -0.0, 1 << 53, (1 << 53) + 1, 10**400, 9.3e9, -9.3e9, 1e300, 3.0, 2.5])
)
ODD = st.none() | st.booleans() | st.text(max_size=4) | st.lists(st.integers(), max_size=2) | st.just({"a": [{}]})
TEXT = st.text(max_size=9) | st.sampled_from(
    ["a", "b", "", "é", "scale_up", "}\n{", "},{", '}, {"logName"', "null", "\\u", "\x00\x7f"]
)
FAILURE = st.sampled_from(["NCCL WARN Call failed", "Instance was preempted.", "CUDA error: out of memory", "ok"])
STAMP = st.sampled_from(
    [
        "2026-01-05T00:00:00Z",
        "2026-01-05T00:00:00.5Z",
        "2026-01-05T00:00:00.123456789Z",
        "2026-01-05T00:00:01+01:00",
        "2026-01-05 00:00:00Z",
        "2026-01-05T00:00:61Z",
        "2026-02-30T00:00:00Z",
        "2026-01-05T00:00:00.1234567891Z",
        "soon",
        "1500-01-05T00:00:00Z",
        "9999-01-05T00:00:00.25Z",
        "2026-01-05T00:00:00",
        "20260105T000000Z",
        "",
        "2026-01-05T01Z",
    ]
)


OFTEN = [*keys.NUMBERS, "step_start_time", "step_count", "data_loading_start_time"]
SAID = [*keys.LABELS, "event_type", "step", "message"]
LOGS = ["projects/p/logs/goodput_x", "projects/p/logs/goodput_night-run", "y"]
ANYTHING, ANY_TEXT, ANY_LABEL, OF_MADE = NUMBER | ODD, TEXT | ODD, TEXT | ODD | NUMBER, ODD | NUMBER
LABEL, MESSAGE, ID = TEXT | st.sampled_from(["save", "restore"]), FAILURE | TEXT, st.sampled_from("abcdefgh") | TEXT


@st.composite
def an_entry(draw):
    """An entry such as the library writes, with now and then something else in it. What it holds follows from a seed,
    values are drawn: to draw each choice too takes longer than to read the file."""
    dice = random.Random(draw(st.integers(0, 1 << 32)))
    usual = dice.randrange(10) < 8
    payload = {dice.choice(OFTEN): draw(NUMBER if usual else ANYTHING) for _ in range(dice.randrange(4))}
    payload |= {"job_name": dice.choice(["night-run", "night-run", "x"]) if usual else draw(ANY_TEXT)}
    for _ in range(dice.randrange(2)):
        payload[dice.choice(SAID)] = draw(LABEL if usual else ANY_LABEL)
    made = {
        "logName": dice.choice(LOGS),
        "severity": dice.choice(["INFO"] * 6 + ["ERROR", "DEFAULT", "", None]),
        "timestamp": draw(STAMP),
        "insertId": draw(ID),
        "jsonPayload": payload,
    }
    if dice.randrange(3) == 0:
        payload["message"] = draw(MESSAGE)
        made["textPayload"] = draw(MESSAGE)
        made["protoPayload"] = {"methodName": draw(TEXT), "status": {"message": draw(FAILURE)}}
    if not usual:
        for key in dice.choices(list(made), k=dice.randrange(3)):
            made[key] = draw(OF_MADE)
    return {key: made[key] for key in dice.sample(list(made), dice.randint(5, len(made)))}


ESCAPED = "".join(json.dumps(e).replace("_time", "\\u005ftime") + "\n" for e in A_JOB)


@settings(max_examples=150, deadline=None)
@given(st.lists(an_entry(), min_size=1, max_size=12), st.sampled_from(FORMS), st.sampled_from([200, 5_000]))
def test_generated_files(tmp_path_factory, entries, form, block):
    same_both_ways(tmp_path_factory.getbasetemp(), form(entries), block)


@settings(max_examples=300, deadline=None)
@given(data=damaged([f(MANY).encode() for f in FORMS]), block=st.sampled_from([200, 1_500, 20_000]))
@example(data=b"null\n" + lines(A_JOB).encode(), block=20_000)
@example(data=lines(A_JOB).replace("}\n", "}null\n", 3).encode(), block=20_000)
@example(data=lines(A_JOB).replace("}\n", "}\n null\n", 1).encode(), block=20_000)
@example(data=lines(A_JOB).replace('"global"', "Inf", 1).encode(), block=20_000)
@example(data=lines(A_JOB).replace('"global"', "-Infinity", 1).replace('"global"', "NaN", 1).encode(), block=20_000)
@example(data=lines(A_JOB).encode().replace(b"global", b"\xff\xfe", 2), block=20_000)
@example(data=ESCAPED.encode(), block=20_000)
@example(data=lines(A_JOB).replace('"global"', '"a\nb"', 1).encode(), block=300)
@example(data=lines(A_JOB).replace('"global"', '"a}\n{b"', 1).encode(), block=300)
@example(data=(lines(A_JOB)[:-1] * 2).encode(), block=20_000)
@example(data=b"not JSON\n" + lines(A_JOB).encode(), block=300)
@example(data=lines(A_JOB[:3]).encode() + json.dumps(A_JOB, indent=1).encode() + lines(A_JOB[3:]).encode(), block=300)
@example(data=lines(A_JOB).replace('{"logName"', '{"logName": "twice", "logName"', 2).encode(), block=400)
def test_damaged_files(tmp_path_factory, data, block):
    if data[:2] != b"\x1f\x8b":
        same_both_ways(tmp_path_factory.getbasetemp(), data, block)


def test_only_the_block_that_does_not_fit_is_read_one_by_one(tmp_path):
    entries = [step(i, i) for i in range(400)]
    entries[200]["severity"] = 200
    entries[300]["jsonPayload"]["step_count"] = "many"
    got, blocks = same_both_ways(tmp_path, lines(entries), 4_000)
    assert blocks["slow"] == 2 and blocks["fast"] > 20
    assert [row["step"] for row in got[0]["steps"]] == [i for i in range(400) if i != 300]


def test_an_entry_longer_than_a_block_and_broken_ones(tmp_path):
    long = entry(5, {"event_type": "save", "step": 1, "directory": "x" * 9_000})
    text = lines(A_JOB + [long] + [step(i, i) for i in range(200, 240)])
    for data in (text, text.replace('xxx"', "xxx"), text[:-30], text.replace('"step_count": 2,', '"step_count": ,')):
        same_both_ways(tmp_path, data, 300)


def test_gzipped(tmp_path):
    got, blocks = same_both_ways(tmp_path, gzip.compress(lines(MANY).encode()), 1_500)
    assert blocks["slow"] == 0 and len(got[0]["steps"]) > 30


def test_broken_objects_are_weighed_against_those_read_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(json_stream, "BROKEN_LIMIT", 3)
    good = lines([step(i, i) for i in range(40)])
    assert same_both_ways(tmp_path, good + '{"a" 1}\n' * 30)[1]["fast"] > 3
    with pytest.raises(InputError, match="41 broken JSON objects, 40 good ones"):
        read(goodput_log, source_of(tmp_path, good + '{"a" 1}\n' * 50))


@settings(deadline=None)
@given(st.lists(st.floats() | st.floats(-1e4, 1e4) | st.floats(1.7e9, 1.8e9), min_size=1))
@example([0.5e-9, 1.5e-9, 2.5e-9, -0.5e-9, 7.1234567895, -7.1234567895, 0.0, -0.0, 1e-320])
@example([9_223_372_036.0, 9_223_372_036.8, 9_223_372_037.0, -9_223_372_036.8, math.inf, -math.inf, math.nan])
@example([T0 + k / (1 << 22) for k in range(0, 1 << 22, 4_099)])
def test_columns_of_seconds_are_exact(seconds):
    expected = [NONE if (ns := seconds_to_ns(s)) is None else ns for s in seconds]
    assert numbers.seconds_ns(np.array(seconds, "f8")).tolist() == expected
    for s, ns in zip(seconds, expected, strict=True):
        assert ns == NONE or abs(Fraction(s) * 10**9 - ns) <= Fraction(1, 2)


@settings(deadline=None)
@given(st.lists(st.none() | STAMP | st.text(max_size=30) | st.datetimes().map("{:%Y-%m-%dT%H:%M:%S.%fZ}".format)))
def test_columns_of_timestamps_are_read_as_one_by_one(stamps):
    stamps = [s if s is None else s.encode("utf-8", "replace").decode() for s in stamps]
    expected = [NONE if s is None or not (m := DATED.match(s)) or (ns := moment_ns(m)) is None else ns for s in stamps]
    assert numbers.stamps_ns(pa.array(stamps, pa.string())).tolist() == expected
    for stamp, ns in zip(stamps, expected, strict=True):
        assert numbers.stamps_ns(pa.array([stamp], pa.string())).tolist() == [ns]


def test_hashes_tell_texts_apart_wherever_they_lie():
    draw = random.Random(5)
    texts = list({"".join(draw.choices("ab", k=draw.randint(1, 40))) for _ in range(20_000)})
    made = numbers.hashes(pa.array(texts))
    assert len(np.unique(made)) == len(texts)
    moved = pa.array([None, "", *texts[::-1]])
    assert numbers.hashes(moved)[:2].tolist() == [0, 0]
    assert np.array_equal(numbers.hashes(moved)[2:], made[::-1])
    assert np.array_equal(numbers.hashes(moved.slice(2)), made[::-1])
    # one bit of a text turns half of the hash's
    a, b = numbers.hashes(pa.array(["insert-id-0001"])), numbers.hashes(pa.array(["insert-id-0000"]))
    assert 16 <= int(a[0] ^ b[0]).bit_count() <= 48


@pytest.mark.parametrize("key", [*keys.TIMES, keys.EVENT_TYPE])
def test_every_key_is_seen_where_it_stands(key):
    others = {k: 1 for k in [*keys.TIMES, keys.EVENT_TYPE] if k != key}
    text = lines([entry(i, payload, insert_id="i") for i, payload in enumerate(({key: 1}, others, {key: 2}))])
    places = fit.key_places(memoryview(text.encode()))
    assert [text[: at + 1].count(f'"{key[: key.rindex("_t")]}_') for at in sorted(places[key])] == [1, 2]
    assert set(places) == {*others, key}
    assert set(fit.key_places(memoryview(lines([entry(1, {key: 1}, insert_id="i")]).encode()))) == {key}
    assert fit.key_places(memoryview(text.replace("_t", "\\u005ft").encode())) is None


def test_what_pyarrow_must_not_be_given():
    good = lines(A_JOB).encode()
    assert fit.fits_arrow(memoryview(good))
    infinite = [good.replace(b'"global"', word, 1) for word in (b"Inf", b"-Inf")]
    stray = [b"null", b"null" + good, good + b"null", good.replace(b"}\n", b"} null\n", 1), good + b"{\xff}"]
    for bad in (*infinite, *stray, b"", b"[]"):
        assert not fit.fits_arrow(memoryview(bad))
        assert batch.from_json(memoryview(bad), 0, b"}\n{") is None


def test_a_month_of_steps_takes_little_memory():
    """45 bytes an event: ten million of them, in four columns' worth of copies, stay far below 2 GB."""
    log = goodput_log.Log(goodput_log.Tally())
    places = count()
    for _ in range(20):
        some = batch.from_entries([(0, step(i, i)) for i in (next(places) for _ in range(50))])
        log.add(goodput_log.events_of(some))
    kept = sum(column.nbytes for columns in log._columns.values() for column in columns)
    assert kept / 1_000 <= 45

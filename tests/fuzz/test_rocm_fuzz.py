"""Files of AMD's profilers: random worlds give the sums that were put in; damaged ones are read in part or refused in
one sentence, whatever became of them."""

import contextlib
import json
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.base import Lost, Rows, Source
from collectors.device.rocm import rocpd, rocprofv3, rpd
from collectors.ingesting.plausible import plausible
from errors import InputError
from runs.schema import SCHEMAS
from tests.collectors.reading import read
from tests.collectors.rocm_files import BOOT, Process, everything, rocpd_bytes, write_rocpd, write_tables
from tests.collectors.rocprofv3_files import Tool, whole_tool
from tests.collectors.rpd_files import RPD, Rpd, chrome, rpd_bytes, whole_rpd
from tests.fuzz.damage import damaged

FORMATS = {
    "rocpd": (rocpd, "908_results.db", [rocpd_bytes(), rocpd_bytes(shared=True)]),
    "rpd": (rpd, "trace.rpd", [rpd_bytes(), chrome(whole_rpd()).encode()]),
    "rocprofv3": (rocprofv3, "908_results.json", [whole_tool().text().encode()]),
}
WHOLE = st.integers(-(1 << 63), (1 << 63) - 1)
ANY = st.one_of(st.none(), st.sampled_from([0, 1, 2, 7, -1, 10**18, 1 << 40]), WHOLE, st.floats(), st.text(max_size=9))


def check(collector, data: bytes, name: str) -> None:
    """Reads a file to its end; raises where the reader fails in any other way than it may."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        source = Source(path, path.name)
        collector.sniff(source)
        with contextlib.suppress(InputError):
            for item in plausible(collector.read(source)):
                if isinstance(item, Rows):
                    assert item.batch.schema.equals(SCHEMAS[item.table].arrow)
                    item.batch.validate(full=True)
                elif isinstance(item, Lost):
                    assert item.what and item.reason


@pytest.mark.parametrize("what", FORMATS)
def test_no_damage_breaks_the_reader(what):
    collector, name, files = FORMATS[what]

    @given(damaged(files))
    @settings(max_examples=120, deadline=None)
    def holds(data):
        check(collector, data, name)

    holds()


@st.composite
def databases(draw) -> tuple[str, bytes]:
    """Tables with the right columns and anything in them."""
    what = draw(st.sampled_from(["rocpd", "rocpd shared", "rpd"]))
    columns, rows = (RPD, whole_rpd().rows) if what == "rpd" else everything("shared" in what).tables()
    columns, rows = dict(columns), {table: list(mine) for table, mine in rows.items()}
    for table in draw(st.lists(st.sampled_from(sorted(columns)), max_size=5)):
        columns[table] = ", ".join(c.split()[0] for c in columns[table].split(", "))  # of no type, and no key
        width = len(columns[table].split(", "))
        odd = draw(st.lists(st.tuples(*[ANY] * width), max_size=6))
        rows[table] = odd + rows.get(table, []) if draw(st.booleans()) else odd
    with tempfile.TemporaryDirectory() as folder:
        return what.split()[0], write_tables(Path(folder) / "made.db", columns, rows).read_bytes()


@given(databases())
@settings(max_examples=200, deadline=None)
def test_any_values_break_nothing(made):
    what, data = made
    check(FORMATS[what][0], data, FORMATS[what][1])


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["id", "handle", "kind", "operation", "start_timestamp"]), inner, max_size=3),
    ),
    max_leaves=6,
)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_any_json_breaks_nothing(data):
    told = whole_tool().told()
    for _ in range(data.draw(st.integers(1, 3))):
        at = told
        while isinstance(at, dict | list) and at:
            key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
            if not isinstance(at[key], dict | list) or not at[key] or data.draw(st.integers(0, 4)) == 0:
                at[key] = data.draw(JSON)
                break
            at = at[key]
    check(rocprofv3, json.dumps({"rocprofiler-sdk-tool": [told]}).encode(), "908_results.json")


@st.composite
def worlds(draw):
    """(kernel, start, duration, call or None, device) of what ran, and (start, duration) of each call."""
    calls = draw(st.lists(st.tuples(st.integers(0, 400), st.integers(1, 90)), min_size=1, max_size=8))
    ran = st.tuples(
        st.sampled_from("abc"),
        st.integers(0, 900),
        st.integers(1, 99),
        st.one_of(st.none(), st.integers(0, len(calls) - 1)),
        st.integers(0, 1),
    )
    return draw(st.lists(ran, min_size=1, max_size=20)), calls


def written(what: str, folder: Path, ran, calls) -> Source:
    """The same world in each of the formats."""
    if what == "rpd":
        rpd_made = Rpd()
        ids = [rpd_made.call("hipLaunchKernel", BOOT + start, dur, tid=900 + n) for n, (start, dur) in enumerate(calls)]
        for name, start, dur, call, device in ran:
            of = None if call is None else ids[call]
            rpd_made.op("KernelExecution", BOOT + start, dur, of, name, gpu=device)
        return Source(rpd_made.write(folder / "made.rpd"), "made.rpd")
    if what == "rocprofv3":
        tool = Tool()
        for n, (start, dur) in enumerate(calls):
            tool.record("hip_api", "HIP_RUNTIME_API_EXT", 1, BOOT + start, dur, n + 1)
        for name, start, dur, call, device in ran:
            tool.kernel(name, BOOT + start, dur, 0 if call is None else call + 1, agent=37_946 + device)
        (folder / "made.json").write_text(tool.text())
        return Source(folder / "made.json", "made.json")
    process = Process(shared="shared" in what)
    for n in range(2):
        process.agent(2 + n, index=n)
    for n, (start, dur) in enumerate(calls):
        process.call("hipLaunchKernel", BOOT + start, dur, n + 1, tid=900 + n)
    for name, start, dur, call, device in ran:
        process.kernel(name, BOOT + start, dur, 0 if call is None else call + 1, agent=2 + device)
    return Source(write_rocpd(folder / "made.db", process), "made.db")


@pytest.mark.parametrize("what", ["rocpd", "rocpd shared", "rpd", "rocprofv3"])
def test_random_worlds_come_out_as_they_were_put_in(what):
    @given(worlds())
    @settings(max_examples=60, deadline=None)
    def holds(world):
        ran, calls = world
        with tempfile.TemporaryDirectory() as folder:
            result = read(
                {"rpd": rpd, "rocprofv3": rocprofv3}.get(what, rocpd), written(what, Path(folder), ran, calls)
            )
        sums, counts = Counter(), Counter()
        for op in result.rows["ops"]:
            if op["role"] == "compute":
                sums[op["device"], op["op"]] += op["total_ns"]
                counts[op["device"], op["op"]] += op["count"]
        expected, numbers = Counter(), Counter()
        for name, _, dur, _, device in ran:
            expected[device, name] += dur
            numbers[device, name] += 1
        assert sums == expected and counts == numbers
        (capture,) = result.rows["captures"]
        events = {e["event"]: e for e in result.rows["op_events"]}
        assert len(events) == len(ran) + len(calls)
        joined = sorted(
            (
                events[row["event"]]["start_ps"] // 1000 + capture["start_ns"] - BOOT,
                row["call_start_ps"] // 1000 + capture["start_ns"] - BOOT,
                row["call_dur_ps"] // 1000,
            )
            for row in result.rows.get("launches", [])
        )
        assert joined == sorted((start, *calls[call]) for _, start, _, call, _ in ran if call is not None)

    holds()

"""Damaged files of compiled programs: rows of their tables, or one sentence that says what is wrong."""

import base64
import json

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.base import Blob, Rows
from collectors.device import compiled
from errors import InputError
from runs.schema import SCHEMAS
from tests.collectors import compiled_files as files
from tests.collectors.reading import source_of
from tests.collectors.traces import hlo_proto
from tests.fuzz.damage import damaged

NAMES = ("x.compiled.json", "x.hlo.pb")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 70), 1 << 70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def survive(folder, data, name):
    source = source_of(folder, data, name)
    assert 0 <= compiled.sniff(source) <= 1
    if data.startswith(b"HloModule "):
        return  # the parser of text is another process, see test_compiled
    try:
        for item in compiled.read(source):
            if isinstance(item, Rows):
                assert item.batch.schema.equals(SCHEMAS[item.table].arrow)
                item.batch.validate(full=True)
            elif isinstance(item, Blob):
                assert item.data
    except InputError as error:
        assert "\n" not in str(error) and name in str(error)


@settings(max_examples=200, deadline=None)
@given(data=damaged([files.text(), files.text(outcome="out_of_memory", programs=[])]))
def test_damaged_files(data, tmp_path_factory):
    survive(tmp_path_factory.getbasetemp(), data, NAMES[0])


@settings(max_examples=300, deadline=None)
@given(data=damaged([files.program(), hlo_proto(files.program())]))
def test_damaged_programs(data, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    survive(folder, data, NAMES[1])
    programs = files.compiled()["programs"]
    programs[0]["hlo"] = base64.b64encode(pa.Codec("zstd").compress(data, asbytes=True)).decode()
    survive(folder, files.text(programs=programs), NAMES[0])


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_any_value_in_any_place(data, tmp_path_factory):
    whole = files.compiled()
    place = whole
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        inner = place[key]
        if isinstance(inner, dict | list) and inner and data.draw(st.booleans()):
            place = inner
            continue
        place[key] = data.draw(JSON)
        break
    survive(tmp_path_factory.getbasetemp(), json.dumps(whole).encode(), NAMES[0])

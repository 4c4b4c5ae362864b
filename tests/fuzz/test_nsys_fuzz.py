"""Damaged exports of Nsight Systems: read in part or refused in one sentence, whatever became of them."""

import contextlib
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.base import Lost, Rows, Source
from collectors.device import nsys
from collectors.ingesting.plausible import plausible
from errors import InputError
from runs.schema import SCHEMAS
from tests.collectors.nsys_exports import Export, as_bytes
from tests.fuzz.damage import damaged

WHOLE = st.integers(-(1 << 63), (1 << 63) - 1)
ANY = st.one_of(st.none(), st.sampled_from([0, 1, 7, -1, 10**18, 1 << 40]), WHOLE, st.floats(), st.text(max_size=9))
TABLES = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS")
TABLES += ("CUDA_GRAPH_NODE_EVENTS",)


def check(data: bytes) -> None:
    """Reads a file to its end; raises where the reader fails in any other way than it may."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report1.sqlite"
        path.write_bytes(data)
        source = Source(path, path.name)
        nsys.sniff(source)
        with contextlib.suppress(InputError):
            for item in plausible(nsys.read(source)):
                if isinstance(item, Rows):
                    assert item.batch.schema.equals(SCHEMAS[item.table].arrow)
                    item.batch.validate(full=True)
                elif isinstance(item, Lost):
                    assert item.what and item.reason


@given(damaged([as_bytes()]))
@settings(max_examples=300, deadline=None)
def test_no_damage_breaks_the_reader(data):
    check(data)


@st.composite
def exports(draw) -> bytes:
    """Tables with the right columns and anything in them."""
    made = Export(**{table: ("never",) for table in TABLES})
    for table in TABLES:
        made.columns[table] = ", ".join(c.split()[0] for c in made.columns[table].split(", "))  # of no type
        width = len(made.columns[table].split(", "))
        made.put(table, *draw(st.lists(st.tuples(*[ANY] * width), max_size=6)))
    made.range("step 1", 10, 900).ran("k", 100, 50, 1).launch(200, 10, 9, "cudaGraphLaunch")
    made.kernel("k", 300, 10, 9, node=draw(st.sampled_from([None, 0, 1, 7, -1])))
    with tempfile.TemporaryDirectory() as folder:
        return made.data(Path(folder))


@given(exports())
@settings(max_examples=200, deadline=None)
def test_any_values_break_nothing(data):
    check(data)

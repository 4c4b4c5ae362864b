"""What findings read of collectives whose element type some sources do not tell."""

from types import SimpleNamespace
from typing import Any

import pytest

from analyzers.findings.rules import program
from runs.run import facts_of
from runs.tables import MemoryTables


def test_collectives_whose_element_type_is_not_told_tell_no_size_of_gradients():
    rows = {"kind": ["all-reduce"], "bytes": [2048.0], "op": ["nccl:AllReduce w"], "start_ns": [1], "end_ns": [2]}
    facts = facts_of({"parameters": 100, "parallelism": {"data": 2}})
    seen: Any = SimpleNamespace(tables=MemoryTables({"collectives": rows}), facts=facts, amount=lambda _: 8.0)
    assert program._grown(seen) is None and program._sent_as(seen, "f32") == 0.0
    rows = {name: [*values * 2] for name, values in rows.items()} | {"dtype": [None, "f32"]}
    seen.tables = MemoryTables({"collectives": rows})
    assert program._grown(seen) == pytest.approx(5.12) and program._sent_as(seen, "f32") == 4.0

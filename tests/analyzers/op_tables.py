"""Tables of operations with known costs, and questions about them."""

from typing import Any

from catalog import chip
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables

V5P = {"chip": "TPU v5p", "chips": 1}
PEAK, WIDE = chip("TPU v5p").need("bf16_flops_per_s"), chip("TPU v5p").need("hbm_bytes_per_s")
DEFAULTS = {
    "capture": 0,
    "host": "h",
    "device": 0,
    "line": "XLA Ops",
    "role": "compute",
    "module": "jit_f",
    "program": 1,
    "op": "x",
    "category": "fusion",
    "count": 1,
    "total_ns": 0.0,
    "self_ns": 0.0,
    "flops": None,
    "bytes": None,
    "cycles": None,
    "source": None,
    "shape": None,
    "scope": None,
    "direction": None,
}


def op_tables(rows: list[dict[str, Any]]) -> dict[str, dict]:
    """Columns of `ops`; what a row does not say is as above."""
    full = [{**DEFAULTS, **r} for r in rows]
    columns = {name: [r[name] for r in full] for name in DEFAULTS}
    return {"ops": {**columns, "op_id": list(range(len(rows)))}} if rows else {}


def ask_with(question: Any, rows: list[dict[str, Any]], facts: dict, more: dict | None = None, **options: Any) -> Any:
    """The answer of an analyzer about these operations, `more` tables and facts."""
    tables = MemoryTables({**op_tables(rows), **(more or {})})
    return question.analyze(tables, facts_of(facts), parse_options(question.OPTIONS, options))

"""What cannot be, whichever format tells of it: named where it is read, and left out where it would be counted.

A step below zero is refused. A rate, a duration or a count of FLOPs below zero is not known rather than negative. An
interval that ends before it starts is kept and named: which of its two times is wrong, nobody can tell.
"""

from collections.abc import Iterable, Iterator
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from collectors.base import Item, Rows
from collectors.reading.textlog import Tally

NOT_BELOW_ZERO: dict[str, tuple[str, ...]] = {
    "steps": ("dur_ns", "tokens_per_s_per_chip", "model_flops_per_chip"),
    "ops": ("flops", "bytes"),
    "modules": ("flops", "remat_flops", "bytes"),
    "pipeline": ("dur_ns",),
    "iterations": ("dur_ns",),
}
ENDS: dict[str, tuple[str, str]] = {
    "lifecycle": ("start_ns", "end_ns"),
    "captures": ("start_ns", "stop_ns"),
    "collectives": ("start_ns", "end_ns"),
}


def plausible(items: Iterable[Item]) -> Iterator[Item]:
    """The items without what cannot be, and at their end what that was."""
    tally = Tally()
    for item in items:
        yield _checked(item, tally) if isinstance(item, Rows) else item
    yield from tally.lost()


def _checked(rows: Rows, tally: Tally) -> Rows:
    batch = rows.batch
    for name in NOT_BELOW_ZERO.get(rows.table, ()):
        below = _below_zero(batch.column(name))
        if below is not None:
            tally.add(f"{rows.table}: {name}", "below zero: taken as not known", count=pc.sum(below).as_py())
            known = pc.if_else(below, pa.scalar(None, batch.column(name).type), batch.column(name))
            batch = batch.set_column(batch.schema.get_field_index(name), batch.schema.field(name), known)
    if rows.table in ENDS:
        start, end = (batch.column(name) for name in ENDS[rows.table])
        turned = pc.less(end, start)
        if count := pc.sum(turned).as_py():  # pyright: ignore[reportArgumentType]  # Arrow sums true and false, too
            tally.add(f"{rows.table}: intervals", "they end before they start", count=count)
    if rows.table == "steps" and (below := _below_zero(batch.column("step"))) is not None:
        tally.add("steps", "their number is below zero: refused", count=pc.sum(below).as_py())
        batch = batch.filter(pc.invert(below))
    return rows if batch is rows.batch else Rows(rows.table, batch)


def _below_zero(column: pa.Array) -> pa.Array | None:
    """Which values are below zero; None where none is."""
    least = pc.min(column).as_py() if len(column) else None
    if least is None or least >= 0:
        return None
    below = pc.fill_null(pc.less(column, pa.scalar(0, column.type)), pa.scalar(False))
    return cast(pa.BooleanArray, below)  # of an array, so no single value

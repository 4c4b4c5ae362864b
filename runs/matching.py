# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyarrow's stubs leave some types open
"""The rows of a table in memory for which conditions hold, by the kernels that pyarrow loads anyway: its engine for
datasets, which takes the same conditions, takes longer to load than most tables to look through."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Where = Sequence[tuple[str, str, Any]]  # (column, operator, value), all of which must hold
_COMPARED: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def matching(table: pa.Table, where: Where) -> pa.Table:
    """The rows for which all conditions hold, in their order; one that is not known of a row does not hold. Rows that
    are all there are not copied. Raises ValueError for an operator that there is none of."""
    some = table
    for column, operator, value in where:
        kept = _holds(some[column], operator, value)
        if not pc.all(kept, skip_nulls=False).as_py():
            some = some.filter(kept)
    return some


def _holds(column: "pa.ChunkedArray[Any]", operator: str, value: Any) -> Any:
    """Whether a condition holds, of each row; null where it is not known."""
    if operator in _COMPARED:
        return _COMPARED[operator](column, value)
    if operator not in ("in", "not in"):
        raise ValueError(f"no operator {operator!r}")
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    within = pc.is_in(column, value_set=pa.array(list(value), kind))
    return within if operator == "in" else pc.invert(within)

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyarrow's stubs leave some types open
"""Which devices a profile saw at work: the one definition that ingest and every question count by."""

import pyarrow as pa
import pyarrow.compute as pc

from runs.tables import Tables

COLUMNS = ("host", "device", "role")
ROLES = ("compute", "async", "module")  # lines of a device on which it works, see `schema.LINE_ROLES`
_APART = "\x1f"


def devices(ops: pa.Table) -> set[tuple[str, int]]:
    """(host, device) of every device that rows of the table `ops` tell of. O(n), without a loop over rows.

    Grouping by Arrow, its scalars of Python's values and its arrays of NumPy would bring pandas along, which takes
    longer to load than a small profile to read.
    """
    apart = pa.lib.StringBuilder()  # pyright: ignore[reportAttributeAccessIssue]  # not in the stubs
    apart.append(_APART)
    texts = [ops[name].cast(pa.string()) for name in COLUMNS]
    kinds = pc.unique(pc.binary_join_element_wise(*texts, apart.finish()[0])).to_pylist()
    parts = (kind.rsplit(_APART, 2) for kind in kinds if kind is not None)  # null where a part is
    return {(host, int(device)) for host, device, role in parts if role in ROLES}


def seen_devices(tables: Tables) -> set[tuple[str, int]]:
    """(host, device) of every profiled device of a run."""
    return devices(tables.arrow("ops", COLUMNS))

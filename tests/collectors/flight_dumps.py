"""Dumps as PyTorch's flight recorder writes them, made with Python's own pickle."""

import io
import json
import pickle
from typing import Any

T0 = 1_758_610_500_000_000_000


def entry(call: str, group: str = "0", seq: int = 1, *, described: str = "default_pg", **told: Any) -> dict[str, Any]:
    """One operation, `scheduled` unless told otherwise; `p2p`: its number among sends and receives."""
    p2p = told.pop("p2p", 0)
    sizes = told.pop("sizes", [[4, 8]])
    kinds = told.pop("kinds", ["BFloat16"] * len(sizes))
    return {
        "record_id": told.pop("record_id", seq),
        "pg_id": told.pop("pg_id", 0),
        "process_group": (group, described),
        "collective_seq_id": seq,
        "p2p_seq_id": p2p,
        "op_id": seq + p2p,
        "profiling_name": f"nccl:{call}",
        "time_created_ns": T0 + seq * 1_000_000,
        "input_sizes": sizes,
        "input_dtypes": kinds,
        "output_sizes": sizes,
        "output_dtypes": kinds,
        "state": "scheduled",
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None,
        "retired": False,
        "timeout_ms": 180_000,
        "is_p2p": p2p > 0,
        **told,
    }


def dump(
    groups: dict[str, list[int]],
    entries: list[dict[str, Any]],
    status: dict[str, tuple[int, int, int]] | None = None,
    version: str = "2.9",
) -> dict[str, Any]:
    """`status`: {the rank's own number of a group: (last enqueued, started, completed)}."""
    told: dict[str, Any] = {
        "version": version,
        "pg_config": {n: {"name": n, "desc": f"GROUP_{n}", "ranks": str(ranks)} for n, ranks in groups.items()},
        "nccl_version": "2.27.3",
        "entries": entries,
    }
    if status is not None:
        names = ("last_enqueued_collective", "last_started_collective", "last_completed_collective")
        told["pg_status"] = {n: dict(zip(names, values, strict=True)) for n, values in status.items()}
    return told


def pickled(value: Any, protocol: int = 2) -> bytes:
    return pickle.dumps(value, protocol)


def as_json(value: dict[str, Any]) -> bytes:
    """As the recorder writes JSON: keys sorted, times that are not there 0, progress as text, no list where empty."""
    told = json.loads(json.dumps(value))
    for one in told["entries"]:
        for name in ("time_discovered_started_ns", "time_discovered_completed_ns"):
            one[name] = one[name] or 0
    for one in told.get("pg_status", {}).values():
        one.update({name: str(number) for name, number in one.items()})
    if not told["entries"]:
        del told["entries"]
    return json.dumps(told, sort_keys=True).encode()


class Calls:
    """What pickles as a call."""

    def __init__(self, function: Any, *arguments: Any):
        self.told = function, arguments

    def __reduce__(self) -> Any:
        return self.told


def with_reference(value: Any) -> bytes:
    """A pickle that refers to what only its writer has."""

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj: Any) -> Any:
            return "elsewhere" if obj == "version" else None

    out = io.BytesIO()
    Pickler(out, 2).dump(value)
    return out.getvalue()

"""What the JSON of rocprofv3 tells of one process beside its records: agents, kernels, names of calls, markers."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from collectors.device.rocm.agents import Agents, shown_by
from collectors.reading.sqlite import NULL
from collectors.reading.textlog import clean

_CPU, _GPU = 1, 2
_LIMIT = 1 << 63


class Process:
    """`number`: which of the file's processes it is; `pid` and `machine`: as it tells, once that was read."""

    def __init__(self, number: int):
        self.number, self.pid, self.machine = number, NULL, ""
        self.program = ""
        self._nodes: dict[int, int] = {}
        self._kernels: dict[int, str] = {}
        self._kinds: list[tuple[str, Sequence[Any]]] = []
        self._markers: dict[int, str] = {}

    def told(self, metadata: Any) -> None:
        """Takes what stands under `metadata`."""
        metadata = metadata if isinstance(metadata, dict) else {}
        self.pid = whole(metadata.get("pid"))
        node = metadata.get("node")
        host = node.get("hostname") or node.get("machine_id") if isinstance(node, dict) else None
        self.machine = clean(host.strip()[:80]) if isinstance(host, str) else ""
        command = metadata.get("command")
        if isinstance(command, list) and command and isinstance(command[0], str):
            self.program = clean(command[0].rsplit("/", 1)[-1][:80])

    def agents(self, found: Any, agents: Agents) -> None:
        """Takes what stands under `agents`."""
        for agent in found if isinstance(found, list) else ():
            handle = number_in(agent, "id", "handle")
            node = number_in(agent, "node_id")
            if handle == NULL:
                continue
            self._nodes[handle] = node if node != NULL else handle
            if agent.get("type") == _CPU:
                agents.cpu(self.machine, self._nodes[handle])
            elif agent.get("type") == _GPU:
                index = number_in(agent, "logical_node_type_id")
                agents.gpu(self.machine, self._nodes[handle], index if index >= 0 else None, shown_by(agent))

    def kernels(self, symbols: Iterable[dict[str, Any]]) -> None:
        """Takes what stands under `kernel_symbols`."""
        for symbol in symbols:
            names = (symbol.get(key) for key in ("formatted_kernel_name", "demangled_kernel_name", "kernel_name"))
            name = next((n for n in names if isinstance(n, str) and n), None)
            if name and (key := whole(symbol.get("kernel_id"))) != NULL:
                self._kernels[key] = clean(name)

    def strings(self, found: Any) -> None:
        """Takes what stands under `strings`."""
        found = found if isinstance(found, dict) else {}
        kinds = found.get("buffer_records")
        for kind in kinds if isinstance(kinds, list) else ():
            told = kind if isinstance(kind, dict) else {}
            operations = told.get("operations")
            self._kinds.append(
                (clean(str(told.get("kind", ""))[:80]), operations if isinstance(operations, list) else ())
            )
        markers = found.get("marker_api")
        for marker in markers if isinstance(markers, list) else ():
            if isinstance(marker, dict) and isinstance(text := marker.get("value"), str):
                self._markers[whole(marker.get("key"))] = clean(text)

    def nodes(self, handles: np.ndarray) -> np.ndarray:
        """Agent of each handle."""
        unique, inverse = np.unique(handles, return_inverse=True)
        found = [self._nodes.get(h, h) for h in unique.tolist()]
        return np.array(found, np.int64)[inverse.reshape(-1)] if found else handles

    def kernel(self, key: int) -> str:
        """Name of a kernel."""
        return self._kernels.get(key) or f"kernel {key if key != NULL else 'of no name'}"

    def call(self, kind: int, operation: int) -> tuple[str, str]:
        """(category, name) of a call; the category is empty where the file does not tell it."""
        category, operations = self._kinds[kind] if 0 <= kind < len(self._kinds) else ("", ())
        name = operations[operation] if 0 <= operation < len(operations) else None
        return category, clean(name) if isinstance(name, str) and name else f"{category or 'call'} {operation}"

    def marker(self, number: int) -> str | None:
        """What a program wrote into a range or a mark."""
        return self._markers.get(number) or None


def whole(value: Any) -> int:
    """A whole number that 64 bits hold, else NULL."""
    return value if isinstance(value, int) and -_LIMIT < value < _LIMIT else NULL


def number_in(record: Any, *path: str) -> int:
    """A whole number within a record."""
    for key in path:
        record = record.get(key) if isinstance(record, dict) else None
    return whole(record)


def numbers(records: Sequence[dict[str, Any]], *path: str) -> np.ndarray:
    """Whole numbers within records, NULL where there is none."""
    values: list[Any] = list(records)
    for key in path:
        values = [v.get(key) if isinstance(v, dict) else None for v in values]
    return np.fromiter(map(whole, values), np.int64, len(values))

"""The devices of AMD's profilers: which of a machine's agents is which device, and what it shows of itself."""

import json
from typing import Any

import numpy as np

from collectors.reading.textlog import clean

_DEVICES = 1 << 16  # numbers of devices beyond it are damage
_LONGEST = 1 << 20  # bytes of what is told of an agent beside its columns


class Agents:
    """Agents by (machine, number on it). A device's number is the one among the GPUs of its machine, from 0; where two
    agents tell the same number (each process of a machine may have been shown one GPU), the later ones take a free one.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, int], int] = {}
        self._gpus: set[tuple[str, int]] = set()
        self._cpus: set[tuple[str, int]] = set()
        self.properties: list[dict[str, Any]] = []

    def gpu(self, machine: str, agent: int, index: Any, told: dict[str, Any]) -> None:
        """Notes a GPU, once. `told`: its properties, as a trace of PyTorch names them."""
        if (machine, agent) in self._gpus:
            return
        self._gpus.add((machine, agent))
        self.properties.append({"id": self._number(machine, agent, index), **told})

    def cpu(self, machine: str, agent: int) -> None:
        """Notes a CPU: what runs there is no work of a device."""
        self._cpus.add((machine, agent))

    def on_gpu(self, machine: str, agents: np.ndarray) -> np.ndarray:
        """Whether each agent is a GPU, or at least none that is told to be a CPU."""
        return self._each(agents, lambda a: a >= 0 and (machine, a) not in self._cpus).astype(bool)

    def numbers(self, machine: str, agents: np.ndarray) -> np.ndarray:
        """Device of each agent."""
        return self._each(agents, lambda a: self._number(machine, a, None))

    def _number(self, machine: str, agent: int, index: Any) -> int:
        if (machine, agent) not in self._numbers:
            wanted = index if isinstance(index, int) and 0 <= index < _DEVICES else agent
            wanted = wanted if 0 <= wanted < _DEVICES else 0
            taken = set(self._numbers.values())
            self._numbers[machine, agent] = wanted if wanted not in taken else max(taken) + 1
        return self._numbers[machine, agent]

    @staticmethod
    def _each(values: np.ndarray, of: Any) -> np.ndarray:
        unique, inverse = np.unique(values, return_inverse=True)
        return np.array([of(v) for v in unique.tolist()], np.int64)[inverse] if len(unique) else np.zeros(0, np.int64)


def shown_by(agent: dict[str, Any], product: Any = None, name: Any = None) -> dict[str, Any]:
    """What an agent shows of itself (rocprofiler's own record of it), as a trace of PyTorch names it.

    The catalogue knows a product's name (`AMD Instinct MI300X`); where there is none, or one that it does not know,
    the generation (`gfx942`: 9.4) and the number of compute units tell what it may be.
    """
    texts = [
        clean(t.strip()) for t in (product, agent.get("product_name"), name, agent.get("name")) if isinstance(t, str)
    ]
    version = agent.get("gfx_target_version")
    version = version if isinstance(version, int) and 0 < version < 1 << 31 else None
    banks = agent.get("mem_banks")
    sizes = [b.get("size_in_bytes") for b in banks if isinstance(b, dict)] if isinstance(banks, list) else []
    total = sum(s for s in sizes if isinstance(s, int) and 0 < s < 1 << 60)
    return {
        "name": next((t for t in texts if t), None),
        "totalGlobalMem": total or None,
        "numSms": agent.get("cu_count") if isinstance(agent.get("cu_count"), int) else None,
        "computeMajor": None if version is None else version // 10_000,
        "computeMinor": None if version is None else version // 100 % 100,
    }


def told_beside(extdata: Any) -> dict[str, Any]:
    """What a database keeps of an agent as JSON beside its columns; empty where it is none."""
    if not isinstance(extdata, str) or len(extdata) > _LONGEST:
        return {}
    try:
        found = json.loads(extdata, strict=False)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}

"""Memory snapshots as PyTorch writes them: dictionaries for pickle, and an allocator that makes any history."""

import pickle
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

T0_US = 1_700_000_000_000_000
PAGE = 512


def frames(*lines: tuple[str, str, int]) -> list[dict[str, Any]]:
    """A stack, the innermost frame first."""
    return [{"name": name, "filename": file, "line": line} for name, file, line in lines]


TRAIN = frames(("forward", "/home/me/model.py", 12), ("_call_impl", "/v/site-packages/torch/nn/modules/module.py", 9))
STEP = frames(("step", "/v/site-packages/torch/optim/adam.py", 3), ("main", "/home/me/train.py", 40))
BACK = frames(("torch::autograd::generated::MulBackward0_apply_functional(std::vector<at::Tensor>&&)", "??", 0))


def event(action: str, addr: int, size: int, us: int, stack: list | None = None) -> dict[str, Any]:
    where = "device_free" if action == "oom" else "addr"
    told = {"action": action, where: addr, "size": size, "stream": 0, "time_us": T0_US + us}
    return told | {"compile_context": "N/A", "user_metadata": "", "frames": [] if stack is None else stack}


def block(addr: int, size: int, state: str = "active_allocated", requested: int | None = None, stack=()) -> dict:
    asked = {"requested_size": size if requested is None else requested}
    return {"address": addr, "size": size, **asked, "state": state, "frames": list(stack)}


def segment(addr: int, total: int, blocks: Sequence[dict], device: int = 0, **more: Any) -> dict[str, Any]:
    held = sum(b["size"] for b in blocks if b["state"] != "inactive")
    told = {"device": device, "address": addr, "total_size": total, "allocated_size": held, "active_size": held}
    told |= {"stream": 0, "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False, "frames": []}
    return told | {"blocks": list(blocks)} | more


def snapshot(segments: Sequence[dict] = (), *traces: Sequence[dict]) -> dict[str, Any]:
    settings = {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0}
    return {
        "segments": list(segments),
        "device_traces": [list(t) for t in traces],
        "allocator_settings": settings | {"expandable_segments": False, "roundup_power2_divisions": {"1": 0}},
        "external_annotations": [],
    }


def dumped(told: Any, protocol: int = 4) -> bytes:
    return pickle.dumps(told, protocol)


def small() -> bytes:
    """Two blocks: one that lived before the history, one that the history made; a third was freed, a fourth refused."""
    history = [
        event("segment_alloc", 1 << 20, 1 << 20, 0),
        event("alloc", 1 << 20, 900, 1, TRAIN),
        event("alloc", (1 << 20) + 1024, 3000, 2, BACK),
        event("free_requested", (1 << 20) + 1024, 3000, 3, TRAIN),
        event("free_completed", (1 << 20) + 1024, 3000, 4, TRAIN),
        event("oom", 4096, 1 << 30, 5, TRAIN),
        event("snapshot", 0, 0, 6),
    ]
    blocks = [block(1 << 16, 2048, requested=2000, stack=STEP), block((1 << 16) + 2048, 2048, "inactive")]
    more = [block(1 << 20, 1024, requested=900, stack=TRAIN), block((1 << 20) + 1024, (1 << 20) - 1024, "inactive")]
    first, second = segment(1 << 16, 4096, blocks), segment(1 << 20, 1 << 20, more)
    return dumped(snapshot([first, second], history))


@dataclass
class Allocator:
    """Gives and frees at random, and remembers everything: what a snapshot of its last events must be found to tell."""

    seed: int
    held: dict[int, tuple[int, int]] = field(default_factory=dict)  # address -> bytes, number of the block
    pending: dict[int, tuple[int, int]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    levels: list[int] = field(default_factory=list)  # bytes in use after each event
    owners: list[frozenset[int]] = field(default_factory=list)  # addresses in use after each event

    def __post_init__(self) -> None:
        self.random, self.us = random.Random(self.seed), 0

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.us += self.random.choice((0, 0, 1, 7))
            kind = self.random.random()
            if kind < 0.5 or not (self.held or self.pending):
                self._give()
            elif kind < 0.8 and self.held:
                self._ask_back()
            elif self.pending:
                self._take_back()

    def _note(self, action: str, addr: int, size: int) -> None:
        stack = frames(("f", "/home/me/code.py", addr // PAGE))
        self.events.append(event(action, addr, size, self.us, stack))
        used = [*self.held.items(), *self.pending.items()]
        self.levels.append(sum(size for _, (size, _) in used))
        self.owners.append(frozenset(addr for addr, _ in used))

    def _give(self) -> None:
        free = [a * PAGE for a in range(1, 40) if a * PAGE not in self.held and a * PAGE not in self.pending]
        if free:
            addr = self.random.choice(free)
            self.held[addr] = self.random.randint(1, PAGE), len(self.events)
            self._note("alloc", addr, self.held[addr][0])

    def _ask_back(self) -> None:
        addr = self.random.choice(list(self.held))
        self.pending[addr] = self.held.pop(addr)
        self._note("free_requested", addr, self.pending[addr][0])

    def _take_back(self) -> None:
        addr = self.random.choice(list(self.pending))
        size, _ = self.pending.pop(addr)
        self._note("free_completed", addr, size)

    def snapshot(self, last: int) -> dict[str, Any]:
        """What PyTorch would dump, of whose history only the last so many events are left."""
        blocks = []
        for a in range(1, 40):
            addr = a * PAGE
            if addr in self.held:
                blocks.append(block(addr, PAGE, requested=self.held[addr][0]))
            elif addr in self.pending:
                blocks.append(block(addr, PAGE, "active_pending_free", requested=self.pending[addr][0]))
            else:
                blocks.append(block(addr, PAGE, "inactive", requested=0))
        return snapshot([segment(PAGE, 39 * PAGE, blocks)], self.events[len(self.events) - last :])

"""Whether a server can do its work just now: its store, its registry, its disk, its compiled code."""

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.workspace import Workspace
from errors import ChipledgerError
from errors.format import count, size
from runs.kernel_code import ENDING
from runs.kernels import KERNELS

PROJECT = Path(__file__).parents[2]
LEAST_FREE_BYTES = 100_000_000  # below it SQLite and the writing of a run may fail at any moment


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that was looked at. `said`: a sentence where it is not as it should be; empty where it is. `needed`:
    nothing is to be sent to a server that lacks it; what else lacks makes it slower."""

    name: str
    said: str = ""
    needed: bool = True

    @property
    def ok(self) -> bool:
        return not self.said


class Readiness:
    """Looks at the store of a server. Nothing stays of what it writes there."""

    def __init__(self, place: Workspace):
        self._place = place

    def checks(self) -> list[Check]:
        looks: tuple[tuple[str, Callable[[], str]], ...] = (
            ("store", self._store),
            ("registry", self._registry),
            ("disk", self._disk),
        )
        return [
            *(Check(name=name, said=_said(look)) for name, look in looks),
            Check(name="kernels", said=kernels_said(), needed=False),
        ]

    def _store(self) -> str:
        store = self._place.store
        store.check()
        try:
            with tempfile.TemporaryFile(dir=store.root / "partial") as file:
                file.write(b"ready")
        except OSError as e:
            return f"The store cannot be written ({e.strerror}): runs are shown, none can be added."
        return ""

    def _registry(self) -> str:
        self._place.registry.standing()
        return ""

    def _disk(self) -> str:
        free = shutil.disk_usage(self._place.store.root).free
        least = size(LEAST_FREE_BYTES)
        return "" if free >= LEAST_FREE_BYTES else f"The disk of the store has {size(free)} free; {least} are needed."


def to_dict(checks: Sequence[Check]) -> dict[str, Any]:
    """As `/readyz` tells it: a sentence for each that is not as it should be."""
    ready = all(c.ok for c in checks if c.needed)
    told = {c.name: {"ok": c.ok, "needed": c.needed, "said": c.said or None} for c in checks}
    return {"status": "ready" if ready else "not ready", "checks": told}


def kernels_said() -> str:
    """Which compiled code is not kept here yet: whoever first needs it waits for the compiler."""
    lacking = [k.package for k in KERNELS if not _kept(k.package)]
    if not lacking:
        return ""
    return f"Compiled code of {count(len(lacking), 'package')} is not kept here yet: `python -m app.kernels` makes it."


def _kept(package: str) -> bool:
    """Whether code of a package lies beside its sources, as a library or as Numba keeps it."""
    folder = PROJECT.joinpath(*package.split("."), "__pycache__")
    return any(any(folder.glob(f"*{ending}")) for ending in (ENDING, ".nbc"))


def _said(look: Callable[[], str]) -> str:
    with contextlib.suppress(FileNotFoundError):
        try:
            return look()
        except ChipledgerError as e:  # without where: this is told to whoever asks
            return f"{e.what[:1].upper()}{e.what[1:]}. {e.advice}".strip()
        except OSError as e:
            return f"It cannot be looked at ({e.strerror})."
    return "It is gone."

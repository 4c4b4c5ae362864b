"""What those who write and sweep a store of objects ask of it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from runs.objects.base import Objects
from runs.objects.index import Happened
from runs.run import Manifest


class Known(Protocol):
    """The objects, and what this machine knows of them (`ObjectStore`)."""

    objects: Objects

    def mark_here(self, run_id: str) -> str: ...

    def known_mark(self, run_id: str) -> str: ...

    def run_here(self, run_id: str) -> tuple[str, Manifest] | None: ...

    def bringing(self, run_id: str, mark: str, folder: Path) -> AbstractContextManager[None]: ...

    def follow(self) -> None: ...

    def tell(self, make: Callable[[], Happened | None]) -> Happened | None: ...

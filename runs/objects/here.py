"""What writing and sweeping objects need of the store that they belong to."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from runs.objects.base import Objects
from runs.objects.index import Happened
from runs.run import Manifest


class Here(Protocol):
    """What this machine knows of the store at `objects`."""

    objects: Objects

    def mark_here(self, run_id: str) -> str:
        """Which writing of a run is in the store, as far as this machine knows; empty: none."""
        ...

    def known_mark(self, run_id: str) -> str:
        """As `mark_here`, of runs in the bin too."""
        ...

    def follow(self) -> None:
        """Learn at once what happened there. Raises InputError where it cannot be asked."""
        ...

    def run_here(self, run_id: str) -> tuple[str, Manifest] | None:
        """(which writing of a run is in the store, its manifest); None where there is none that can be read."""
        ...

    def bringing(self, run_id: str, mark: str, folder: Path) -> AbstractContextManager[None]:
        """Within it `folder`, which holds the run with all its files, is taken once the index tells of it."""
        ...

    def tell(self, make: Callable[[], Happened | None]) -> Happened | None:
        """Tell the index of what `make` gives, which is asked once all before it is done here."""
        ...

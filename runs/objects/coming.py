"""What workers of other machines leave in a store for a run that is being made: its parts lie there before it does.

<url>/.coming/<random>/<task>.<random>/...      gone once the run is there, and a day later in any case
"""

import contextlib
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from errors import InputError
from runs.objects.base import COMING, MissingError, Objects
from runs.objects.opening import objects_at

AT_ONCE = 16  # small objects go up and away


@dataclass(frozen=True)
class Coming:
    """A place for one run, as plain text, so that a worker can be told of it."""

    url: str
    below: str

    @classmethod
    def new(cls, objects: Objects) -> Self:
        return cls(objects.url, f"{COMING}/{uuid.uuid4().hex}")

    @property
    def objects(self) -> Objects:
        return objects_at(self.url)

    def leave(self, name: str, files: Mapping[str, Path]) -> str:
        """Put these files there. Under which key they lie: one of their own, whoever else does the same task."""
        below, objects = f"{self.below}/{name}.{uuid.uuid4().hex}", self.objects
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(objects.put, [f"{below}/{name}" for name in files], files.values()))
        return below

    def read(self, key: str) -> bytes:
        """What was left under a key. Raises InputError where it is gone."""
        try:
            return self.objects.read(key)
        except MissingError as e:
            raise gone(f"{self.url}/{key}") from e

    def clear(self) -> None:
        """Take away all that was left there. Where that cannot be done now, it is left to who sweeps."""
        objects = self.objects
        with contextlib.suppress(InputError, MissingError), ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(objects.delete, [[entry.key] for entry in objects.entries(self.below)]))


def gone(url: str) -> InputError:
    return InputError("what a worker left in the store is gone", where=url, advice="Ingest the files again.")

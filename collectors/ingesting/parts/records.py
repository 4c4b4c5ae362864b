"""What is told of files that were read to parts: small, however large the files are."""

from dataclasses import dataclass

from collectors.base import Fact, Lost
from errors import InputError
from runs.integrity import Mark
from runs.parts import Part


@dataclass(frozen=True, kw_only=True)
class Stored:
    """That rows of a file were kept; `devices`: (host, device) of which its operations tell."""

    devices: frozenset[tuple[str, int]] = frozenset()


@dataclass(frozen=True, kw_only=True)
class FileRead:
    """What came of a file: what it tells of the run, in its order, whether rows of it were kept, and what was wrong
    with it as the words of an InputError."""

    index: int
    told: tuple[Fact | Lost | Stored, ...]
    fault: dict[str, str] | None = None

    @property
    def error(self) -> InputError | None:
        return None if self.fault is None else InputError(self.fault["what"], **_rest(self.fault))


@dataclass(frozen=True, kw_only=True)
class PartMade:
    """A part of a table as it lies in the folder of its task, what it is, and how many rows it has."""

    part: Part
    rows: int
    mark: Mark


@dataclass(frozen=True, kw_only=True)
class TaskRead:
    """What came of a task. `folder`: where its parts and blobs lie; `there`: that is the start of their keys in the
    store (`runs/objects/coming.py`). `peak_bytes`: the most memory that its process had so far."""

    folder: str
    files: tuple[FileRead, ...]
    parts: tuple[PartMade, ...]
    blobs: dict[str, Mark]
    peak_bytes: int = 0
    there: bool = False


def fault_of(error: InputError) -> dict[str, str]:
    return {"what": error.what, "where": error.where, "expected": error.expected, "advice": error.advice}


def _rest(fault: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in fault.items() if name != "what"}

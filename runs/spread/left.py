"""What tasks leave in a folder that all workers see: each in one of its own, which gets its name last, so that what has
it is whole. The name is that of the task: one that was done before is not done again, whichever worker it comes to."""

import contextlib
import os
import pickle
import shutil
import uuid
from collections.abc import Generator
from pathlib import Path
from typing import Any

from runs.spread.engine import EngineError

TOLD = "told.pickle"


def seen(above: Path, whose: str) -> Path:
    """The folder, if this worker sees it. `whose`: what it was for. Raises EngineError."""
    if not os.access(above, os.R_OK | os.W_OK | os.X_OK):
        raise EngineError(
            "a worker does not see the folder of the store",
            where=str(above),
            advice="Workers need the store, unless it lies in a bucket, and inputs that do not, at the same paths as "
            f"the command, and to run as the same user; or {whose} has ended.",
        )
    return above


@contextlib.contextmanager
def new(done: Path) -> Generator[Path]:
    """A folder in which a task is done; what is not left as `done` within it is gone afterwards."""
    folder = done.with_name(f"{done.name}.{uuid.uuid4().hex}")
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def leave(folder: Path, done: Path, told: Any) -> None:
    """Give the folder its name; where another worker was faster, with the same, that stays."""
    with (folder / TOLD).open("wb") as f:
        pickle.dump(told, f, protocol=5)
    with contextlib.suppress(OSError):
        folder.rename(done)


def before(done: Path) -> Any | None:
    """What was told of a task that was done; None where it was not."""
    try:
        with (done / TOLD).open("rb") as f:
            return pickle.load(f)  # written by a worker of the same owner, in a folder that it alone can read
    except FileNotFoundError:
        return None

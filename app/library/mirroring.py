"""Runs of one store in another: as they were written, each whole or not at all. What is begun again goes on."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from app.identity.may import changing
from app.workspace import Workspace
from errors import ChipledgerError, InputError, QuestionError
from runs.run import Run


@dataclass
class Mirrored:
    """Ids of the runs that were copied, of those that were there, and of those that lie in the bin here since; a
    sentence about each that could not be copied. `bytes`: of what was copied."""

    copied: list[str] = field(default_factory=list)
    there: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    bytes: int = 0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@changing("mirror runs")
def mirror(
    here: Workspace,
    there: Workspace,
    runs: Sequence[Run] | None = None,
    *,
    move: bool = False,
    tell: Callable[[str], None] = lambda run_id: None,
) -> Mirrored:
    """Copy these runs, or all, each seen there by whom it is seen here. A run whose files are damaged is told of, and
    hides no other. Raises InputError where the other store cannot be written, and QuestionError where it is this one by
    another name."""
    if here.store.identity == there.store.identity:
        raise QuestionError("both are the same store", where=there.store.where, expected="another folder or address")
    done = Mirrored()
    for run in here.store.runs() if runs is None else runs:
        tell(run.run_id)
        try:
            copied = _copied(run, here, there)
        except ChipledgerError as e:
            there.store.check()  # else it is the store that fails, and each other run would as well
            done.problems.append(str(e))
            continue
        (done.copied if copied else done.there).append(run.run_id)
        done.bytes += sum(known.bytes for known in run.written.marks.values() if known) if copied else 0
        if move:
            _moved(run, here, there, done)
    return done


def _copied(run: Run, here: Workspace, there: Workspace) -> bool:
    """Whether it came to be there; False: it was there. Who sees it is said before it is there."""
    if there.store.has(run.run_id):
        return False
    there.shares.share_as(here.shares, run.run_id)
    with there.store.writer() as writer:
        return writer.copy(run)


def _moved(run: Run, here: Workspace, there: Workspace, done: Mirrored) -> None:
    """Put a run into the bin here where the other store holds the same, to the last byte."""
    copy = there.store.get(run.run_id)
    with contextlib.suppress(InputError):
        if copy is not None and _same(run, copy) and not list(copy.files.verify_there()):
            here.store.bin.put(run.run_id)
            done.moved.append(run.run_id)
            return
    done.problems.append(f"{run.run_id}: stays here, since the other store holds another writing of it")


def _same(run: Run, copy: Run) -> bool:
    mine, theirs = run.written, copy.written
    return mine.created_ns == theirs.created_ns and all(
        known is None or theirs.marks.get(relative) == known for relative, known in mine.marks.items()
    )

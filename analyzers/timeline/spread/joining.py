"""Columns of several tasks put behind one another: the bytes are copied, and only what counts from their beginning, the
first event of each row and the first mark of each level, is counted on."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from analyzers.timeline.columns import ALIGNED, PIECE, InOne, Where
from analyzers.timeline.spread.work import told_in
from analyzers.timeline.stored import WHOLE

COUNTED = "first"  # how columns end that are counted on


def joined(path: Path, check: Callable[[], None], *every: Sequence[Path]) -> dict[str, tuple[str, int, int]]:
    """Write one file of the columns of tasks; where each lies in it. `check`: may raise, between two columns; `every`:
    folders of tasks that left the same columns, in the order of their rows."""
    found: dict[str, tuple[str, int, int]] = {}
    with path.open("wb") as whole:
        for folders in every:
            where = [told_in(folder).where for folder in folders]
            for name in where[0] if where else ():
                check()
                whole.write(bytes(-whole.tell() % ALIGNED))
                found[name] = _column(whole, name, folders, where)
    return found


def _column(whole: BinaryIO, name: str, folders: Sequence[Path], where: Sequence[Where]) -> tuple[str, int, int]:
    kind, begun = where[0][name][0], whole.tell()
    write = _counted_on if name.endswith(COUNTED) else _copied
    write(whole, name, folders, where)
    return kind, begun, (whole.tell() - begun) // np.dtype(kind).itemsize


def _copied(whole: BinaryIO, name: str, folders: Sequence[Path], where: Sequence[Where]) -> None:
    for folder, of in zip(folders, where, strict=True):
        kind, at, count = of[name]
        with (folder / WHOLE).open("rb", buffering=0) as file:
            file.seek(at)
            left = count * np.dtype(kind).itemsize
            while left:
                piece = file.read(min(left, PIECE))
                if not piece:
                    raise OSError("a column ends early")
                whole.write(piece)
                left -= len(piece)


def _counted_on(whole: BinaryIO, name: str, folders: Sequence[Path], where: Sequence[Where]) -> None:
    before = 0
    for n, (folder, of) in enumerate(zip(folders, where, strict=True)):
        columns = InOne(folder / WHOLE, of)
        try:
            first = columns.take(name, [(0, columns.length(name))])
        finally:
            columns.close()
        whole.write((before + first[n > 0 :].astype(np.int64)).astype(first.dtype).tobytes())
        before += int(first[-1])

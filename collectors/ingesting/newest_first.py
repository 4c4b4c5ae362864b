"""Logs in plain lines whose newest line stands first, as log services and `journalctl -r` hand them out.

What reads a log goes through it as it was written: a step number that drops, a counter that begins anew, a program that
starts. So such a file is turned round before it is read. Whether one is, its lines tell: their times fall, or, where
they have none, their step numbers do, at its beginning and at its end and from the one to the other. Restarts, hosts
that write in turns and clocks that are put back make some of them fall, never most.
"""

import io
import mmap
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from collectors.base import HEAD_BYTES
from collectors.ingesting.unpack import SafeSource
from collectors.reading.as_far import AsFar
from collectors.reading.line_prefix import plain, rough_ns
from collectors.reading.textlog import is_text_log

_PREFIX = 120  # characters of a line in which its time stands
_LEAST = 4  # lines whose time, or step, is lower than that of the one before
_MORE = 2  # times as many fall as rise
_STEP = re.compile(r"\b(?:completed step: *|iteration +|global_step[=:] ?)(\d{1,18})\b", re.ASCII)
_CHECKED = 10_000  # lines


def newest_first(source: SafeSource) -> bool:
    """Whether the lines of a log stand newest first, as far as its first bytes tell."""
    head = source.head[:HEAD_BYTES]
    return is_text_log(source) and _falls(head, head)


def turn_round(source: SafeSource, out: Path, check: Callable[[], None] = lambda: None) -> tuple[str, ...] | None:
    """Write the lines to `out`, the last first, and say what there is to say of them; None, and nothing written, where
    the whole file does not stand newest first. Of one that breaks off the last line, which is a part of one, is left
    out."""
    with tempfile.TemporaryFile(dir=out.parent) as copy, source.open() as f:
        there = AsFar(f)
        shutil.copyfileobj(io.BufferedReader(there), copy, 1 << 20)
        if not copy.tell():
            return None
        copy.flush()
        with mmap.mmap(copy.fileno(), 0, access=mmap.ACCESS_READ) as text:
            if not _falls(text[:HEAD_BYTES], text[-HEAD_BYTES:]):
                return None
            size = text.rfind(b"\n") + 1 if there.why else len(text)
            with out.open("wb") as written:
                for number, line in enumerate(_from_the_end(text, size)):
                    if not number % _CHECKED:
                        check()
                    written.write(line + b"\n")
    return there.notes


def _from_the_end(text: mmap.mmap, size: int) -> Iterator[bytes]:
    end = size - text[max(size - 1, 0) : size].count(b"\n")
    while end >= 0:
        begin = text.rfind(b"\n", 0, end) + 1
        yield text[begin:end]
        end = begin - 1


def _falls(head: bytes, end: bytes) -> bool:
    first, last = (part.decode("utf-8", "replace").splitlines() for part in (head, end))
    for told in (_time, _step):
        begun, ended = ([x for line in part if (x := told(line)) is not None] for part in (first, last))
        if len(begun) > _LEAST and len(ended) > _LEAST:
            return begun[0] > ended[-1] and _mostly_falls(begun) and _mostly_falls(ended)
    return False


def _mostly_falls(values: list[int]) -> bool:
    gaps = [after - before for before, after in zip(values, values[1:], strict=False)]
    falls, rises = sum(gap < 0 for gap in gaps), sum(gap > 0 for gap in gaps)
    return falls >= _LEAST and falls >= _MORE * rises


def _time(line: str) -> int | None:
    return rough_ns(plain(line)[:_PREFIX])


def _step(line: str) -> int | None:
    match = _STEP.search(line)
    return int(match[1]) if match else None

"""Logs of several pods as stern prints them: before each line its pod and container, `w-0-7xk2p train completed step`.

Two words before a line may be anything, so that one line tells nothing: a whole file has them or none of it. Its lines
are written as `kubectl logs --prefix` prints them, which all readers know.
"""

import io
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from collectors.base import HEAD_BYTES, LINE_LIMIT_BYTES
from collectors.ingesting.unpack import SafeSource
from collectors.reading.as_far import AsFar
from collectors.reading.textlog import is_text_log

_NAME = rb"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_PREFIX = re.compile(
    rb"(?:\x1b\[[0-9;]*m)*(?:" + _NAME + rb" )??"  # of all namespaces: theirs
    rb"(?P<pod>(?!\d{4}-\d\d-\d\d )"  # a date is none
    rb"[a-z0-9][a-z0-9.-]{0,250}-(?:\d+|[bcdfghjklmnpqrstvwxz2456789]{5}))(?:\x1b\[[0-9;]*m)* "
    rb"(?:\x1b\[[0-9;]*m)*(?P<container>" + _NAME + rb")(?:\x1b\[[0-9;]*m)*(?: |\r?$)"
)
_ABOUT = re.compile(rb"(?:\x1b\[[0-9;]*m)*[+-] ")  # which pods it began or ended to follow
_LEAST, _EACH, _SHARE = 20, 5, 0.95
"""Lines that it takes to know, for each pod, and the share of all that begin so."""
_CHECKED = 10_000  # lines


def is_stern(source: SafeSource) -> bool:
    """Whether nearly all lines begin with one of a few pods and its container, as far as the first bytes tell."""
    if not is_text_log(source):
        return False
    head = source.head[:HEAD_BYTES]
    lines = [line for line in head.splitlines()[: -1 if len(head) >= HEAD_BYTES else None] if not _ABOUT.match(line)]
    found = Counter((m["pod"], m["container"]) for line in lines if (m := _PREFIX.match(line)))
    told = sum(found.values())
    return told >= max(_LEAST, _EACH * len(found), _SHARE * sum(map(bool, lines)))


def take_off(source: SafeSource, out: Path, check: Callable[[], None]) -> tuple[str, ...]:
    """Write the lines to `out` with their pods as `kubectl` prints them, and say what there is to say of them."""
    with source.open() as f, out.open("wb") as written:
        there = AsFar(f)
        reader, number = io.BufferedReader(there, 1 << 20), 0
        while line := reader.readline(LINE_LIMIT_BYTES):
            if not number % _CHECKED:
                check()
            number += 1
            match = _PREFIX.match(line)
            written.write(b"[pod/%s/%s] " % (match["pod"], match["container"]) if match else b"")
            written.write(line[match.end() :] if match and match[0][-1:] == b" " else b"\n" if match else line)
    return there.notes

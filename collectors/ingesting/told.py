"""What is told of each file of an ingest while it is recognised and read, and in the end of those that were refused."""

import contextlib
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from collectors import collector
from collectors.base import Source
from collectors.ingesting.gather import Gathered
from collectors.ingesting.looks import FORMATS, MEANT, Look, look
from collectors.ingesting.unpack import BROKEN
from errors import InputError
from errors import format as fmt

State = Literal["fetching", "waiting", "reading", "read", "left_out", "refused"]
REASON_CHARACTERS = 400  # of one line
EVERY_SECONDS = 0.2
NAMED = 3  # refused files that an error names; the list holds all
_VOWEL = re.compile(r"[AEIOX]|SG|NC|NV|ML")  # as it is spoken: an XPlane profile, an SGLang log


@dataclass(frozen=True)
class FileTold:
    """One file. `format`: name of the collector that reads it, `title` the same in words; both empty while unknown.
    `progress`: the part of it that was read, from 0 to 1. `reason`: one line, why it was left out or refused, or what
    is to be known of one that was read."""

    name: str
    bytes: int = 0
    format: str = ""
    title: str = ""
    state: State = "waiting"
    progress: float | None = None
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


Tell = Callable[[FileTold], None]


class Files:
    """The files of one ingest, by name; each change is handed to `tell`."""

    def __init__(self, tell: Tell | None = None):
        self._tell = tell
        self._files: dict[str, FileTold] = {}
        self._told_s = 0.0

    def all(self) -> tuple[FileTold, ...]:
        return tuple(self._files.values())

    def set(self, name: str, **changes: Any) -> None:
        """What is new of a file; whatever is not named stays as it was told before."""
        before = self._files.get(name)
        now = replace(before or FileTold(name), **changes)
        if now != before:
            self._files[name] = now
            if self._tell is not None:
                self._tell(now)

    def read(self, name: str, part: float) -> None:
        """How much of a file was read, told no more often than every EVERY_SECONDS."""
        now = time.monotonic()
        if now - self._told_s >= EVERY_SECONDS:
            self._told_s = now
            self.set(name, progress=round(min(part, 1.0), 3))

    def found(self, gathered: Gathered) -> None:
        """The list of the files before one of them is read."""
        for source in gathered.sources:
            with contextlib.suppress(OSError):
                self.set(source.name, bytes=source.size)
        for error in gathered.failures:
            self.without(error.where, "refused", why(error))

    def passed_over(self, gathered: Gathered) -> None:
        for name, reason in gathered.aside:
            self.without(name, "left_out", reason)

    def known(self, name: str, n_bytes: int, reader: str) -> None:
        self.set(name, bytes=n_bytes, format=reader, title=_title(reader))

    def without(self, name: str, state: State, reason: str) -> None:
        """A file that gives nothing: left out on purpose, or refused."""
        self.set(name, state=state, progress=None, reason=line(reason))


@dataclass(frozen=True)
class Unknown:
    """A file that no collector reads, and what it looks like."""

    name: str
    look: Look

    @property
    def reason(self) -> str:
        meant = _meant(self.look)
        could = f" Could be meant: {meant}." if meant else ""
        return line(f"Looks like {self.look.title}.{could} {self.look.advice}")


def unknown(source: Source) -> Unknown:
    try:
        return Unknown(source.name, look(source))
    except BROKEN:
        return Unknown(source.name, Look("a file that cannot be read", "Is it complete?"))


def refusal(unknown: Sequence[Unknown]) -> InputError:
    """One line for an input of which no file is of a known format."""
    if not unknown:
        return InputError("no file of a known format", where="nothing was given", advice=FORMATS)
    first = unknown[0].look
    if len(unknown) == 1:
        what = f"no file of a known format: it looks like {first.title}"
        return InputError(what, where=_short(unknown[0].name), expected=_meant(first), advice=first.advice)
    told = "; ".join(f"{_short(u.name)} looks like {u.look.title}" for u in unknown[:NAMED])
    more = f"; and {len(unknown) - NAMED:,} more" if len(unknown) > NAMED else ""
    alike = all(u.look == first for u in unknown)
    advice = first.advice if alike else FORMATS
    return InputError(f"no file of a known format: {told}{more}", where=f"{len(unknown):,} files", advice=advice)


def without_frames(error: InputError) -> InputError:
    """The error without the frames in which it rose: these hold on to what was read of the file, until all files are
    read."""
    one: BaseException | None = error
    while one is not None:
        one.__traceback__, one = None, one.__cause__ or one.__context__
    return error


def with_others(error: InputError, others: int) -> InputError:
    """The first fault, where others gave nothing either."""
    if others < 1:
        return error
    more = f"{fmt.count(others, 'other file')} gave nothing either."
    advice = f"{error.advice.rstrip('.')}. {more}" if error.advice else more
    return InputError(error.what, where=error.where, expected=error.expected, advice=advice)


def line(text: str) -> str:
    """On one line, its first letter a capital, and not longer than a line may be."""
    text = " ".join(text.split())
    text = text if len(text) <= REASON_CHARACTERS else f"{text[: REASON_CHARACTERS - 1]}…"
    return text[:1].upper() + text[1:]


def why(error: InputError) -> str:
    """An error about a file without its name, which stands beside it."""
    text = str(error)
    return text.removeprefix(f"{error.where}: ") if error.where else text


def _meant(one: Look) -> str:
    titles = [_titled(name) for name in one.meant[:MEANT]]
    return " or ".join(filter(None, [", ".join(titles[:-1]), *titles[-1:]]))


def _title(name: str) -> str:
    """What a format is called."""
    return getattr(collector(name), "TITLE", name)


def _titled(name: str) -> str:
    title = _title(name)
    return f"{'an' if _VOWEL.match(title) else 'a'} {title}"


def _short(name: str) -> str:
    return name if len(name) <= 120 else f"{name[:60]}…{name[-50:]}"

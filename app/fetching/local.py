"""Files of this machine by path or pattern. With prefixes, nothing beyond them is read, wherever links lead."""

import fnmatch
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from app.fetching.addresses import FILE, MAGIC, Address
from errors import InputError

MOST_LOOKED_AT = 1_000_000  # files and folders below the start of a pattern
ANY_DEPTH = "**"


def paths_of(one: Address, prefixes: Sequence[Address] | None, check: Callable[[], None]) -> list[Path]:
    """The paths that an address of this machine means: itself, or what a pattern fits.

    With `prefixes` they are resolved, and lie below one of them. Raises InputError for none, too many, or one outside.
    """
    if prefixes is not None:
        start = resolved(one, prefixes)
        if not one.is_pattern or Path(one.rest).exists():
            return [start]
        found = [path.resolve() for path in _matches(start, one.parts[len(one.base) :], check)]
        inside = [path for path in found if _below(path, prefixes)]
    else:
        if not MAGIC.search(one.rest) or Path(one.rest).exists():
            return [Path(one.rest)]
        start = Path("/" if one.rest.startswith("/") else "", *one.base)
        inside = list(_matches(start, one.parts[len(one.base) :], check))
    if not inside:
        raise InputError("no file fits this pattern", where=str(one), advice="** stands for folders at any depth.")
    return sorted(inside)


def resolved(one: Address, prefixes: Sequence[Address]) -> Path:
    """Where an address, or the start of a pattern, leads. Raises InputError where that is not below a prefix, or is
    not there: both in the same words, so that nobody learns what else lies on this machine."""
    start = Path("/", *one.base) if one.is_pattern and not _exists(one.rest) else Path(one.rest)
    try:
        found = start.resolve(strict=True)
        if not one.rest.startswith("/") or ".." in one.parts or not _below(found, prefixes):
            raise FileNotFoundError
    except (OSError, ValueError, RuntimeError) as e:
        raise InputError(
            "no such file or folder among those that this server may read",
            where=one.rest[:120],
            expected=f"one below {', '.join(str(p) for p in prefixes)[:300]}",
        ) from e
    return found


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def _below(path: Path, prefixes: Sequence[Address]) -> bool:
    return any(p.scheme == FILE and path.is_relative_to(Path(p.rest).resolve()) for p in prefixes)


def _matches(start: Path, pattern: Sequence[str], check: Callable[[], None]) -> Iterator[Path]:
    """Files and folders below `start` that a pattern fits, part by part. Links to folders are not followed; of a folder
    that fits nothing further is looked at."""
    from collectors.ingesting.gather import MAX_FILES  # late: it brings pyarrow, which a command's help does without

    fits = [None if part == ANY_DEPTH else re.compile(fnmatch.translate(part)).match for part in pattern]
    found = looked_at = 0
    for folder, folders, files in os.walk(start):
        check()
        before = Path(folder).relative_to(start).parts
        deeper = []
        for name in (*sorted(files), *sorted(folders)):
            looked_at += 1
            if name.startswith("."):
                continue
            if _fits((*before, name), fits):
                found += 1
                yield Path(folder, name)
            elif name in folders:
                deeper.append(name)
        folders[:] = deeper
        if found > MAX_FILES or looked_at > MOST_LOOKED_AT:
            raise InputError(f"more than {MAX_FILES:,} files fit", where=str(start), advice="Give a narrower pattern.")


def _fits(parts: Sequence[str], pattern: Sequence[Callable[[str], object] | None]) -> bool:
    """Whether all of the pattern fits all of the parts; None in the pattern is any number of folders."""
    at = _on({0}, pattern)
    for part in parts:
        fitting = {n for n in at if n < len(pattern) and _one(pattern[n], part)}
        at = _on({n if pattern[n] is None else n + 1 for n in fitting}, pattern)
    return len(pattern) in at


def _one(fit: Callable[[str], object] | None, part: str) -> bool:
    return fit is None or bool(fit(part))


def _on(at: set[int], pattern: Sequence[object]) -> set[int]:
    """With the places that follow where any number of folders may be none."""
    for n in range(len(pattern)):
        if n in at and pattern[n] is None:
            at = at | {n + 1}
    return at

"""Which files a person meant: given paths, folders below them, archives among them."""

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from collectors.ingesting.folders import joined
from collectors.ingesting.looks import is_no_archive
from collectors.ingesting.unpack import SafeSource, archive_kind, unpack
from errors import InputError
from errors import format as fmt

MAX_FILES = 20_000


class Cancelled(InputError):
    """The person changed their mind."""


@dataclass
class Gathered:
    """The files, in the order of their names; what was passed over on purpose, by name with the reason; what is to be
    said beside that; what could not be opened."""

    sources: list[SafeSource] = field(default_factory=list)
    aside: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failures: list[InputError] = field(default_factory=list)

    def pass_over(self, name: str, reason: str) -> None:
        self.aside.append((name, reason))
        self.notes.append(f"{name}: {reason}")


def gather(
    paths: Sequence[Path],
    scratch: Path,
    check: Callable[[], None],
    named: Sequence[tuple[str, Path | SafeSource]] = (),
) -> Gathered:
    """Every regular file at or below the paths, archives unpacked below `scratch`, and those of `named` by the names
    that they have there, some of them known already.

    Hidden files, links to folders and links that leave their folder are passed over. `check` is called between files
    and may raise. Raises InputError for a path that does not exist or is no file or folder, and for too many files.
    """
    result = Gathered()
    alike: dict[str, list[Path | SafeSource]] = {}
    for name, known in named:
        alike.setdefault(name, []).append(known)
    count = len(named)
    for path in paths:
        for file, name in _files_below(path, result.pass_over):
            check()
            alike.setdefault(name, []).append(file)
            count += 1
            if count > MAX_FILES:
                raise InputError(f"more than {MAX_FILES:,} files", where=str(path), advice="Give one run's folder.")
    found = dict(_unique(alike))
    for name in sorted(found):
        check()
        file = found[name]
        if isinstance(file, Path):
            _open(file, name, scratch, result, check)
        else:
            result.sources.append(replace(file, name=name))
    result.sources = list(joined(result.sources))
    return result


def _unique(alike: dict[str, list[Path | SafeSource]]) -> Iterator[tuple[str, Path | SafeSource]]:
    """Each file under a name of its own, whatever the order in which they were given. Of files of one name the later
    ones have a number in front: formats are known by the ends of names."""
    for name, files in alike.items():
        count = 1
        for file in sorted(files, key=lambda file: file if isinstance(file, Path) else file.path):
            unique = name
            while count > 1 and (unique := f"{count}/{name}") in alike:
                count += 1
            yield unique, file
            count += 1


def _files_below(path: Path, pass_over: Callable[[str, str], None]) -> Iterator[tuple[Path, str]]:
    """(file, its name below what was given)."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as e:
        raise InputError("no such file or folder", where=shown(str(path))) from e
    if stat.S_ISREG(mode):
        yield path, shown(path.name)
        return
    if not stat.S_ISDIR(mode):
        raise InputError("neither a file nor a folder", where=shown(str(path)))
    root = path.resolve()

    def closed(error: OSError) -> None:
        pass_over(shown(os.path.relpath(error.filename, path)), f"cannot be opened ({error.strerror}), passed over")

    for folder, folders, files in os.walk(path, onerror=closed):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for file in sorted(f for f in files if not f.startswith(".")):
            found = Path(folder) / file
            name = shown(found.relative_to(path).as_posix())
            if found.is_symlink() and (astray := _astray(found, root)):
                pass_over(name, f"a link that {astray}, passed over")
            elif found.is_file():
                yield found, name


def _astray(link: Path, root: Path) -> str:
    """Where a link leads that is not followed; empty for one to a file of the folder."""
    try:
        if not link.exists():
            return "leads nowhere"
        return "" if link.resolve().is_relative_to(root) else "leaves the folder"
    except (OSError, RuntimeError):  # links that lead to one another
        return "leads nowhere"


def _open(file: Path, name: str, scratch: Path, result: Gathered, check: Callable[[], None]) -> None:
    source = SafeSource(file, name)
    try:
        file.open("rb").close()  # `head` would take a file that may not be read for an empty one
        kind = archive_kind(source)
    except OSError as e:
        result.failures.append(InputError(f"cannot be read ({e.strerror})", where=name))
        return
    if kind is None or is_no_archive(source):
        result.sources.append(SafeSource(file, name))  # a fresh one: `source` holds the head that was looked at
        return
    folder = Path(tempfile.mkdtemp(dir=scratch))
    try:
        members = _last_of_each(unpack(source, kind, folder, check, result.notes.append), name, result)
    except Cancelled:
        raise
    except InputError as e:
        shutil.rmtree(folder, ignore_errors=True)
        result.failures.append(e)
    else:
        result.sources.extend(SafeSource(path, shown(member)) for path, member in members)


def _last_of_each(members: list[tuple[Path, str]], archive: str, result: Gathered) -> list[tuple[Path, str]]:
    """(file, name) in the order of names. Of several members of one name the last: an archive that was added to holds
    a file as it was each time, and unpacking it leaves the last."""
    last = {os.path.normpath(name): (path, name) for path, name in members}
    if earlier := len(members) - len(last):
        told = fmt.count(earlier, "earlier version of a file", "earlier versions of files")
        result.notes.append(f"{archive}: {told} in it left out: of each name the last is read, as unpacking leaves it")
    return [last[name] for name in sorted(last)]


def shown(name: str) -> str:
    """A file's name as plain text: what cannot be printed (or encoded) is escaped."""
    return name if name.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)

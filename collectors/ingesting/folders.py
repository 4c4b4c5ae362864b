"""Folders whose files are one input together: `nsys export --type parquetdir` writes a Parquet file for each table."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from collectors.ingesting.unpack import SafeSource

_ENDING = ".parquet"
_TABLE = re.compile(
    r"^(StringIds|NVTX_EVENTS|META_DATA_EXPORT|OSRT_API|CUPTI_ACTIVITY_KIND_\w+|TARGET_INFO_SESSION_START_TIME)$"
)
_MAGIC = b"PAR1"


@dataclass(frozen=True)
class TableFolder(SafeSource):
    """A folder of tables as one input. `tables`: (name, file) of each, by name; `path` is the first of them."""

    tables: tuple[tuple[str, Path], ...] = ()

    @property
    def parts(self) -> tuple[tuple[str, Path], ...]:
        return self.tables


def joined(sources: Iterable[SafeSource]) -> Iterator[SafeSource]:
    """The sources, with the files of each such folder as one, in the place of the first of them."""
    sources = list(sources)
    folders: dict[tuple[Path, PurePosixPath], list[SafeSource]] = {}
    for source in sources:
        if may_be_table(source):
            folders.setdefault(_folder(source), []).append(source)
    together = {key: _together(key, files) for key, files in folders.items() if any(map(_is_table, files))}
    given: set[tuple[Path, PurePosixPath]] = set()
    for source in sources:
        folder = together.get(_folder(source)) if may_be_table(source) else None
        if folder is None:
            yield source
        elif _folder(source) not in given:
            given.add(_folder(source))
            yield folder


def _folder(source: SafeSource) -> tuple[Path, PurePosixPath]:
    return source.path.parent, PurePosixPath(source.name).parent


def may_be_table(source: SafeSource) -> bool:
    """Whether it may be one of such a folder: tables of this project's own, in small letters, are inputs themselves."""
    name = PurePosixPath(source.name)
    return name.suffix == _ENDING and name.stem != name.stem.lower()


def _is_table(source: SafeSource) -> bool:
    return bool(_TABLE.match(PurePosixPath(source.name).stem)) and source.head[:4] == _MAGIC


def _together(key: tuple[Path, PurePosixPath], files: list[SafeSource]) -> TableFolder:
    place, name = key
    tables = tuple(sorted((PurePosixPath(f.name).stem, f.path) for f in files))
    return TableFolder(tables[0][1], name.as_posix() if name.name else place.name, tables=tables)

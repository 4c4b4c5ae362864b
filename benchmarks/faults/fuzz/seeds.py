"""Small valid files of every format: those that the tests make."""

import gzip
import re
from pathlib import Path

from benchmarks.faults.fuzz.case import Seeds
from collectors import COLLECTORS
from collectors.base import Source
from collectors.ingesting.items import items_of
from collectors.ingesting.unpack import SafeSource
from errors import ChipledgerError

MOST_BYTES = 200_000
_NUMBER = re.compile(r"^\d+-(?=[a-z])")  # before a name that tells what a file is


def seeds() -> Seeds:
    """By reader; each has at least one."""
    from tests.app.small_files import small_files

    found = {
        reader: [(_NUMBER.sub("", name), data) for name, data in files if len(data) < MOST_BYTES]
        for reader, files in small_files().items()
    }
    for reader, files in found.items():
        files.extend([(n.removesuffix(".gz"), gzip.decompress(d)) for n, d in files if d[:2] == b"\x1f\x8b"])
        assert files, reader
    assert {c.NAME for c in COLLECTORS} <= set(found), {c.NAME for c in COLLECTORS} - set(found)
    return found


def warm(known: Seeds, folder: Path) -> None:
    """Read each once, so that what is compiled is loaded before processes are forked."""
    for collector in COLLECTORS:
        for name, data in known[collector.NAME][:2]:
            path = folder / Path(name).name
            path.write_bytes(data)
            source: Source = SafeSource(path, name)
            try:
                for _ in items_of(source, collector):  # type: ignore[arg-type]
                    pass
            except ChipledgerError:
                pass
            path.unlink()

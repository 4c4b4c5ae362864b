"""Of which files a run was made, so that whoever reads can tell whether it is theirs."""

from collections.abc import Iterator

from app.reporting.document import Block, Rows, Text
from app.reporting.gathering import About
from app.words import Table
from errors import format as fmt

MOST = 200


def inputs(about: About) -> Iterator[Block]:
    manifest = about.run.manifest
    yield Text(f"Run {about.run.run_id}, added {fmt.date(manifest.created_ns)}, of these files:")
    rows = [
        (str(s.get("name", "")), str(s.get("collector", "")), _size(s.get("bytes")), str(s.get("sha256", "")))
        for s in manifest.sources
    ]
    more = f"{fmt.count(len(rows) - MOST, 'more file')} not shown." if len(rows) > MOST else ""
    yield Rows(Table(("file", "read as", "size", "SHA-256"), tuple(rows[:MOST]), right=(2,)), more)


def _size(n_bytes: object) -> str:
    return fmt.size(n_bytes) if isinstance(n_bytes, int | float) else fmt.NO_VALUE

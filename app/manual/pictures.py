"""Pictures of the pages: which there are, of which run, and what headings stood on the page when it was taken.

`python -m tests.pictures` takes them of the bundled runs, in light, and writes both; a test says where a page no longer
shows what its picture shows.
"""

import functools
import json
from dataclasses import asdict, dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
SEEN = FOLDER / "seen.json"


@dataclass(frozen=True)
class Seen:
    """What a picture shows: the run's name, empty where the page is of none, and the headings on the page."""

    run: str
    headings: tuple[str, ...]


@functools.cache
def seen() -> dict[str, Seen]:
    """By the name of the page."""
    if not SEEN.is_file():
        return {}
    told = json.loads(SEEN.read_text(encoding="utf-8"))
    return {name: Seen(one["run"], tuple(one["headings"])) for name, one in told.items()}


def note(taken: dict[str, Seen]) -> None:
    """Write down what pictures show."""
    text = json.dumps({name: asdict(one) for name, one in sorted(taken.items())}, indent=1, ensure_ascii=False)
    SEEN.write_text(text + "\n", encoding="utf-8")
    seen.cache_clear()

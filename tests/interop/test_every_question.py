"""Every question asked of real files of every format that is read, and of pairs of formats: an answer, or one sentence.

A file that is no input is refused in one sentence. Of many files of one format the smallest and the largest are read.
"""

from collections import defaultdict
from pathlib import Path

import pytest

from app.workspace import Workspace, workspace
from collectors import COLLECTORS
from collectors.ingest import ingest
from collectors.ingesting.gather import gather
from errors import InputError
from runs.run import Run
from tests.app.asking import wrong_answers

SHARED = Path(__file__).parents[2].parent / "shared"
FOLDERS = (SHARED / "data", SHARED / "oracles" / "goodput")
SMALLEST, LARGEST = 2, 1  # of the files of one format
LARGE_BYTES = 1 << 20  # questions, not readers, are tested here
PARTNERS = (1, 4)  # how many formats further on the others of a pair are
SURE = 0.5  # from here on a collector reads a file

pytestmark = pytest.mark.skipif(not FOLDERS[0].is_dir(), reason="no files beside the project")


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Workspace:
    return workspace(str(tmp_path_factory.mktemp("every question") / "store"))


@pytest.fixture(scope="module")
def formats(tmp_path_factory) -> dict[str, list[Path]]:
    """Files by the name of the collector that reads them, the smallest first; "" reads none."""
    scratch = tmp_path_factory.mktemp("unpacked")
    found: dict[str, list[Path]] = defaultdict(list)
    for path in sorted((p for folder in FOLDERS for p in folder.rglob("*") if p.is_file()), key=_size):
        found[_reader(path, scratch)].append(path)
    return dict(sorted(found.items()))


def _size(path: Path) -> tuple[int, Path]:
    return path.stat().st_size, path


def _reader(path: Path, scratch: Path) -> str:
    try:
        sources = gather([path], scratch, lambda: None).sources
    except InputError:
        return ""
    best = max(((c.sniff(s), c.NAME) for s in sources for c in COLLECTORS), default=(0.0, ""), key=lambda x: x[0])
    return best[1] if best[0] >= SURE else ""


def chosen(paths: list[Path]) -> list[Path]:
    small = [p for p in paths if p.stat().st_size < LARGE_BYTES]
    return list(dict.fromkeys([*small[:SMALLEST], *small[-LARGEST:]])) or paths[:1]


def stored(place: Workspace, *paths: Path) -> Run | None:
    """The run that the files make; None where they are refused, which one sentence says."""
    try:
        return place.store.get(ingest(list(paths), place.store).run_id)
    except InputError as e:
        assert str(e).strip() and "\n" not in str(e)
        return None


def wrong_of(place: Workspace, *paths: Path) -> list[str]:
    run = stored(place, *paths)
    named = " + ".join(str(p.relative_to(SHARED)) for p in paths)
    return [] if run is None else [f"{named}: {wrong}" for wrong in wrong_answers(run, place)]


def test_every_format_alone(place, formats):
    asked = {name: chosen(paths) for name, paths in formats.items() if name}
    assert len(asked) >= 10
    assert [wrong for paths in asked.values() for path in paths for wrong in wrong_of(place, path)] == []


def test_what_is_no_input_is_refused_in_one_sentence(place, formats):
    assert [path.name for path in formats.get("", []) if stored(place, path) is not None] == []


def test_two_formats_in_one_run(place, formats):
    smallest = [paths[0] for name, paths in formats.items() if name]
    pairs = {frozenset((a, (a + further) % len(smallest))) for a in range(len(smallest)) for further in PARTNERS}
    files = [[smallest[n] for n in sorted(pair)] for pair in sorted(pairs, key=sorted)]
    assert [wrong for paths in files for wrong in wrong_of(place, *paths)] == []

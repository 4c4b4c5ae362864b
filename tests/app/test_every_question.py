"""Every question asked of a small file of every format, of pairs of formats, of repeated and of damaged input.

Whatever was read, a question has an answer that is whole in JSON and in words, or one sentence that says why not.
"""

import pytest

from app.workspace import Workspace
from collectors import COLLECTORS
from collectors.ingest import ingest
from collectors.own import sidecar
from runs.run import Run
from tests.app.asking import wrong_answers
from tests.app.small_files import small_files, written
from tests.conftest import seeds

FILES = small_files()
FORMATS = sorted(FILES.keys() - {sidecar.NAME})
NEXT = 7  # formats further on: a partner from another family for each, and each of them once
KNOWN_TROUBLE = (  # pairs that had no answer once
    ("aiperf", "vllm_requests"),
    ("resiliency", "llmperf"),
    ("aiperf", "tables"),
    ("vllm_log", "vllm_bench"),
)


def stored(place: Workspace, folder, *files: tuple[str, bytes]) -> Run:
    paths = [written(folder / str(n), name, content) for n, (name, content) in enumerate(files)]
    return place.store.get(ingest(paths, place.store).run_id)


def test_every_format_has_a_small_file():
    assert {c.NAME for c in COLLECTORS} == set(FILES)


@pytest.mark.parametrize("name", FORMATS)
def test_of_each_file(place, tmp_path, name):
    for n, file in enumerate(FILES[name]):
        assert wrong_answers(stored(place, tmp_path / str(n), file), place) == [], file[0]


@pytest.mark.parametrize("n", seeds(len(FORMATS)))
def test_of_two_formats_in_one_run(place, tmp_path, n):
    run = stored(place, tmp_path, FILES[FORMATS[n]][0], FILES[FORMATS[(n + NEXT) % len(FORMATS)]][-1])
    assert wrong_answers(run, place) == []


@pytest.mark.parametrize("pair", KNOWN_TROUBLE, ids="+".join)
def test_of_formats_that_had_no_answer_together(place, tmp_path, pair):
    assert wrong_answers(stored(place, tmp_path, FILES[pair[0]][0], FILES[pair[1]][0]), place) == []


@pytest.mark.parametrize("name", ["maxtext", "megatron", "vllm_log"])
def test_of_a_log_whose_lines_are_there_twice(place, tmp_path, name):
    file, content = FILES[name][0]
    twice = b"".join(line + line for line in content.splitlines(keepends=True))
    assert wrong_answers(stored(place, tmp_path, (file, twice)), place) == []

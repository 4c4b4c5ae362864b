"""What runs needs neither Numba nor LLVM: they compile kernels, and set-up has kept those compiled."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from app.questions import QUESTIONS
from app.questions.asking import answer_dict, ask
from app.workspace import workspace
from errors import QuestionError
from runs.kernel_code import can_load
from tests.bundled import bundled

ROOT = Path(__file__).parents[2]
NAME = "pytorch"
ASKED = ("collectives", "critical_path", "modules", "timeline")

BLOCKED = """
import sys
sys.modules["numba"] = sys.modules["llvmlite"] = None
from pathlib import Path
from app.kernels import warm
from app.workspace import workspace
from collectors.ingest import ingest
from tests.app.test_without_numba import NAME, answers
from tests.bundled import RUNS

warm()
place = workspace(sys.argv[1])
print(answers(place, place.store.get(ingest([RUNS / NAME], place.store).run_id)))
"""


def answers(place, run):
    """What is answered to each question that compiled code has a part in, as JSON."""
    told = {}
    for question in (q for q in QUESTIONS if q.name in ASKED):
        try:
            told[question.name] = answer_dict(run, ask(question, run, {}, place.registry))
        except QuestionError as e:
            told[question.name] = str(e)
    return json.dumps(told, sort_keys=True)


def said(*command):
    return subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=540)


@pytest.mark.skipif(not can_load(), reason="no libraries are made for this system")
def test_every_kernel_runs_and_a_run_is_read_and_asked_without_numba(tmp_path, tmp_path_factory):
    """In a process where neither can be imported, against this one."""
    done = said("-c", BLOCKED, str(tmp_path / "without"))
    if "no code is kept" in done.stderr:  # set-up was left out
        said("-m", "app.kernels").check_returncode()
        done = said("-c", BLOCKED, str(tmp_path / "without"))
    assert done.returncode == 0, done.stderr[-2000:]
    told = answers(workspace(str(tmp_path / "with")), bundled(tmp_path_factory, NAME))
    assert done.stdout.strip() == told
    assert set(found := json.loads(told)) == set(ASKED) and all(isinstance(answer, dict) for answer in found.values())

"""A toy question, what-if, format, chip and system are added to a copy of the project, each as one new file or entry
and its line in one list: it appears on the command line, in the API, among the pages and in the docs.
"""

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.additions import toys
from tests.app.serving import serving

PROJECT = Path(__file__).parents[2]
PARTS = ("errors", "runs", "catalog", "collectors", "analyzers", "simulators", "app", "docs")
LOG = "".join(f"toy step {n} took 2.5\n" for n in range(7))


def added(file: Path, before: str, line: str, also: tuple[str, str] | None = None) -> None:
    """One line into a list; `also`: its import, before the first line that begins so."""
    text = file.read_text()
    assert text.count(before) == 1, f"{before!r} in {file.name}"
    text = text.replace(before, f"{line}{before}")
    if also is not None:
        text = text.replace(also[0], f"{also[1]}{also[0]}", 1)
    file.write_text(text)


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """A copy of the project with the toys in it."""
    root = tmp_path_factory.mktemp("project")
    for part in PARTS:
        shutil.copytree(PROJECT / part, root / part, ignore=shutil.ignore_patterns("site"))
    question = root / "app/questions/toy"
    question.mkdir()
    (question / "__init__.py").write_text(toys.QUESTION)
    (question / "page.py").write_text(toys.PAGE)
    (question / "form.json").write_text(toys.FORM)
    added(
        root / "app/questions/__init__.py",
        "    LEDGER,\n",
        "    TOY,\n",
        ("from errors", "from app.questions.toy import TOY\n"),
    )
    (root / "app/whatif/toy.py").write_text(toys.WHATIF)
    added(
        root / "app/whatif/__init__.py",
        "    CHECKPOINT,\n",
        "    TOY,\n",
        ("\nWHATIFS", "from app.whatif.toy import TOY\n"),
    )
    (root / "collectors/training/toy_log.py").write_text(toys.FORMAT)
    added(
        root / "collectors/__init__.py",
        '    "own.sidecar",\n    "training.job_log",',
        '    "training.toy_log",\n',
    )
    (root / "simulators/topology/systems/toyring.py").write_text(toys.SYSTEM)
    added(
        root / "simulators/topology/__init__.py",
        "    tpu_slice,\n)",
        "    toyring,\n",
        ("SYSTEMS", "from simulators.topology.systems import toyring\n\n"),
    )
    chips = root / "catalog/data/chips_gpu.json"
    data = json.loads(chips.read_text())
    like = next(c for c in data["chips"].values() if c["numbers"]["bf16_flops_per_s"]["value"])
    data["chips"]["Toy 9000"] = {**like, "aliases": ["toy9000"]}
    chips.write_text(json.dumps(data))
    (root / "toy.log").write_text(LOG)
    return root


def run(project: Path, *arguments: str) -> str:
    """What the copy's own Python prints."""
    env = {**os.environ, "PYTHONPATH": str(project), "CHIPLEDGER_STORE": str(project / "store")}
    done = subprocess.run(
        [sys.executable, "-P", *arguments], cwd=project, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def chipledger(project: Path, *arguments: str) -> str:
    return run(project, "-m", "app.cli", *arguments)


@pytest.fixture(scope="module")
def toy_run(project) -> str:
    told = json.loads(chipledger(project, "ingest", "toy.log", "--json", "--chip", "toy9000", "--chips", "4"))
    sources = json.loads((project / "store/runs" / told["run_id"] / "run.json").read_text())["sources"]
    assert [s["collector"] for s in sources] == ["toy_log"]
    return told["run_id"]


def test_a_question_is_answered_by_the_command_line_under_both_of_its_names(project, toy_run):
    assert json.loads(chipledger(project, "show", toy_run, "toy", "--json"))["steps"] == 7
    said = chipledger(project, "show", toy_run, "plaything", "--option", "times=3", "--explain")
    assert said.startswith("21 toy steps.") and "Toy steps: Steps as read" in said


PAGES = """
import json, sys
from streamlit.testing.v1 import AppTest

page = AppTest.from_file("app/main.py", default_timeout=120).run()
page.query_params["run"] = sys.argv[1]
page.switch_page("questions/ledger/page.py").run()
menu = next(e.proto.json for e in page.get("bidi_component") if e.proto.component_name == "chipledger_run_menu")
links = [entry["title"] for group in json.loads(menu)["groups"] for entry in group["pages"]]
page.switch_page("questions/toy/page.py").run()
wrong = [e.value for e in page.exception]
print(json.dumps({"links": links, "page": [e.value for e in page.markdown], "wrong": wrong}))
"""


@pytest.fixture(scope="module")
def seen(project, toy_run) -> dict:
    """What the copy's own server and pages show."""
    (project / "pages.py").write_text(PAGES)
    pages = json.loads(run(project, "pages.py", toy_run).splitlines()[-1])
    with serving(project / "store", cwd=project, PYTHONPATH=str(project)) as address:

        def get(path: str):
            with urllib.request.urlopen(f"{address}{path}", timeout=60) as answer:  # noqa: S310 - loopback
                return json.load(answer) if path.startswith("/api") else answer.url

        return pages | {
            "answer": get(f"/api/runs/{toy_run}/show/toy?times=2"),
            "listed": [q for q in get("/api/questions")["questions"] if q["name"] == "toy"],
            "older": get(f"/plaything?run={toy_run}"),
            "chip": get("/api/catalog/chips/toy9000")["name"],
            "toys": get("/api/whatif/toy?coins=8"),
            "ring": get("/api/topology?spec=toyring:8")["diameter_hops"],
        }


def test_a_what_if_is_answered_by_the_command_line_and_the_api_and_told_in_the_docs(project, seen):
    assert chipledger(project, "whatif", "toy", "--coins", "9").startswith("4 toys.")
    assert "--coins N" in chipledger(project, "whatif", "toy", "--help")
    assert seen["toys"] == {"toys": 4}
    run(project, "-m", "app.docs")
    told = (project / "docs/whatifs.md").read_text()
    assert "How many toys could be bought." in told and "| `--coins` |" in told
    told = (project / "docs/questions/toy.md").read_text()
    assert "| `times` |" in told and "* **Toy steps**:" in told and "| `steps` | a whole number |" in told
    assert "(questions/toy.md)" in (project / "docs/questions.md").read_text()


def test_a_question_is_answered_by_the_api_and_listed_there(seen):
    assert seen["answer"]["steps"] == 14
    (listed,) = seen["listed"]
    assert listed["page"] == "/toy" and [o["name"] for o in listed["options"]] == ["times"]
    assert listed["terms"][0]["name"] == "Toy steps"


def test_a_question_has_a_page_a_link_and_its_older_address(seen):
    assert seen["wrong"] == [] and any("7 toy steps" in text for text in seen["page"])
    assert "Toy" in seen["links"]
    assert "/toy?run=" in seen["older"]


def test_a_chip_and_a_system_are_known_to_the_api(seen):
    assert seen["chip"] == "Toy 9000" and seen["ring"] == 4


def test_a_chip_and_a_system_are_known_to_the_command_line(project):
    assert "Toy 9000" in chipledger(project, "catalog", "chips")
    assert json.loads(chipledger(project, "topology", "toyring:6", "--json"))["diameter_hops"] == 3

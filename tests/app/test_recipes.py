"""Every recipe of the docs as its reader follows it: its files are written, its commands run, its pages open.

Files that stand in a recipe (a block with a title) are taken from there. Those that a job writes and no page can hold
are made here, in the same form; the loop in JAX is run itself, and that in PyTorch where a Python with torch is named.
"""

import contextlib
import io
import json
import os
import random
import re
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from app.cli import main
from app.questions import asking, question
from app.workspace import Workspace
from runs.baseline_book import BaselineBook
from runs.registry import Registry
from runs.store import Store
from tests.app.serving import PROJECT, environment
from tests.collectors.kineto_traces import collective, frame, kernel, launch, op, step, trace
from tests.collectors.serving_files import detailed

DOCS = PROJECT / "docs"
RECIPES = tuple(sorted(p for p in (DOCS / "recipes").glob("*.md") if p.stem != "index"))
TITLED = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^```shell\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPENED = re.compile(r"\]\(\.\./questions/(\w+)\.md\)")
OUTSIDE = {
    "watch",
    "capture",
    "serve",
    "demo",
    "mcp",
    "open",
    "push",
}  # need a job, a server or a browser: parsed elsewhere
TORCH = os.environ.get("CHIPLEDGER_TORCH_PYTHON", "")
EVERY = pytest.mark.parametrize("recipe", RECIPES, ids=lambda p: p.stem)

pytestmark = pytest.mark.slow


def written(recipe: Path, folder: Path) -> None:
    """The files of a recipe: those that it shows, and those that its job would write."""
    for name, text in TITLED.findall(recipe.read_text(encoding="utf-8")):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    MADE.get(recipe.stem, lambda _: None)(folder)


def jax_profile(folder: Path) -> None:
    """The recipe's own program, run."""
    pytest.importorskip("jax")
    done = subprocess.run(
        [sys.executable, "train.py"],
        cwd=folder,
        env=environment(JAX_PLATFORMS="cpu"),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def torch_profiles(folder: Path) -> None:
    """Traces of two ranks as the profiler writes them: three steps of a matrix product and a collective."""
    for rank in range(2):
        events, correlation = [], 0
        for n in range(3):
            at = 1000.0 + 1000 * n
            events += [
                step(n, at, 900),
                frame("nn.Module: Linear_0", at + 5, 300),
                op("aten::mm", at + 10, 100, [[64, 64], [64, 64]], ["float", "float"]),
            ]
            correlation += 2
            events += [launch(at + 20, 5, correlation), kernel("ampere_sgemm_64x64", at + 40, 400, correlation)]
            events += [launch(at + 60, 5, correlation + 1)]
            events += [collective("allreduce", at + 450, 200 + 50 * rank, correlation + 1)]
        told = trace(events, distributedInfo={"rank": rank, "world_size": 2, "backend": "nccl"})
        path = folder / f"profile/node_{100 + rank}.1751410836000.pt.trace.json"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(told)


def load_tests(folder: Path) -> None:
    """Detailed results at three rates."""
    (folder / "results").mkdir()
    for rate in (1.0, 2.0, 4.0):
        (folder / f"results/vllm-{rate}qps.json").write_text(json.dumps(detailed(request_rate=rate)))


def step_logs(folder: Path) -> None:
    """Two logs of the same job: 120 steps at one pace, with its scatter."""
    for seed, name in enumerate(("base.log", "new.log")):
        rng = random.Random(seed)
        lines = [f"completed step: {n}, seconds: {rng.gauss(1, 0.01):.4f}, loss: {9 - n / 100:.3f}" for n in range(120)]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


MADE = {"jax": jax_profile, "pytorch": torch_profiles, "vllm": load_tests, "ci": step_logs}


def commands(recipe: Path) -> list[list[str]]:
    """The words of each command of ours in it, in order."""
    lines = (line for block in SHELL.findall(recipe.read_text(encoding="utf-8")) for line in block.splitlines())
    return [shlex.split(line)[1:] for line in lines if line.startswith("chipledger ")]


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """The store that is left when a recipe was followed, once for all tests of this file."""
    done: dict[str, Path] = {}

    def follow(recipe: Path) -> Path:
        if recipe.stem not in done:
            folder = tmp_path_factory.mktemp(recipe.stem)
            written(recipe, folder)
            for words in commands(recipe):
                if words[0] not in OUTSIDE:
                    run(folder, words)
            done[recipe.stem] = folder / "store"
        return done[recipe.stem]

    return follow


def run(folder: Path, words: list[str]) -> None:
    """A command in the folder, to its end."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["--store", str(folder / "store"), *words])
    assert code == 0, f"chipledger {shlex.join(words)}: {err.getvalue()}"
    assert out.getvalue().strip()


def given(recipe: Path, name: str) -> dict[str, str]:
    """The options with which a recipe shows a question."""
    shown = (words[3:] for words in commands(recipe) if words[0] == "show" and words[2] == name)
    return dict(pair.split("=", 1) for words in shown for pair in words if "=" in pair)


@EVERY
def test_its_commands_do_what_it_says(recipe, followed):
    kept = Store(followed(recipe)).runs()
    assert {w[0] for w in commands(recipe)} - OUTSIDE >= {"ingest", "show"}
    assert len(kept) == sum(words[0] == "ingest" for words in commands(recipe))


@EVERY
def test_every_page_that_it_says_opens_has_an_answer(recipe, followed):
    store = Store(followed(recipe))
    place = Workspace(store, Registry(store.root / "registry.db"))
    said = recipe.read_text(encoding="utf-8").split("## What opens\n")[1].split("\n## ")[0]
    names = OPENED.findall(said)
    assert len(names) >= 3
    for name in names:
        asked = question(name)
        runs = [r for r in store.runs() if asked.tells_of(r)]
        assert runs, f"no run of {recipe.stem} has the page {name}"
        for one in runs[:1]:
            assert asked.verdict(asking.ask(asked, one, given(recipe, name), place.registry)).strip()


@pytest.mark.parametrize("page", ["quickstart.md", "explained/torus.md", "explained/matrix-unit.md"])
def test_commands_of_other_pages_do_what_they_say(page, tmp_path):
    ((_, log),) = [found for found in TITLED.findall((DOCS / "recipes/maxtext.md").read_text(encoding="utf-8"))]
    (tmp_path / "my_run").mkdir()
    (tmp_path / "my_run/train.log").write_text(log)
    ran = [words for words in commands(DOCS / page) if words[0] not in OUTSIDE]
    for words in ran:
        run(tmp_path, words)
    assert ran


def test_the_recipes_are_those_that_the_first_page_lists():
    text = (DOCS / "recipes/index.md").read_text(encoding="utf-8")
    assert {f"{p.stem}.md" for p in RECIPES} == set(re.findall(r"\]\((\w[\w-]*\.md)\)", text))


@pytest.mark.parametrize(
    ("file", "sha"), [(".github/workflows/speed.yml", "GITHUB_SHA"), (".gitlab-ci.yml", "CI_COMMIT_SHA")]
)
def test_the_pipelines_of_ci_do_what_they_say(tmp_path, file, sha):
    (recipe,) = [p for p in RECIPES if p.stem == "ci"]
    written(recipe, tmp_path)
    for words in commands(recipe)[:3]:
        run(tmp_path, words)
    told = yaml.safe_load((tmp_path / file).read_text(encoding="utf-8"))
    found = list(dict.fromkeys(pipeline(told)))
    assert [line.split()[0] for line in found] == ["ingest", "compare", "baseline"]
    for line in found:
        run(tmp_path, shlex.split(line.replace(f"${sha}", "0a1b2c3d4e5f")))
    cases = ElementTree.parse(tmp_path / "speed.xml").getroot().findall("testsuite/testcase")
    assert [c.get("name") for c in cases] == ["step_time>+2%"]
    assert (tmp_path / "speed.md").read_text().startswith("### Passed: the gate holds")
    place = Workspace(Store(tmp_path / "store"), Registry(tmp_path / "store/registry.db"))
    assert [m.run_name for m in BaselineBook(place.registry.path).history("main")] == ["0a1b2c3d4e5f", "1a2b3c4"]


def pipeline(told) -> list[str]:
    """What a pipeline asks of this command line, in order, wherever in its YAML that stands."""
    if isinstance(told, str):
        return [line.strip().removeprefix("chipledger ") for line in told.splitlines() if "chipledger " in line]
    parts = told.values() if isinstance(told, dict) else told if isinstance(told, list) else ()
    return [line for part in parts for line in pipeline(part)]


@pytest.mark.skipif(not TORCH, reason="no Python with torch is named in $CHIPLEDGER_TORCH_PYTHON")
def test_the_loop_in_pytorch_writes_what_it_says(tmp_path):
    text = (DOCS / "recipes/pytorch.md").read_text(encoding="utf-8")
    ((name, program),) = TITLED.findall(text)
    (tmp_path / name).write_text(program)
    subprocess.run([TORCH, name], cwd=tmp_path, check=True, timeout=240)
    assert [p.name for p in (tmp_path / "profile").iterdir() if p.name.endswith(".pt.trace.json")]
    run(tmp_path, ["ingest", "profile", "--name", "own"])
    (kept,) = Store(tmp_path / "store").runs()
    assert question("steps").tells_of(kept) and question("modules").tells_of(kept)

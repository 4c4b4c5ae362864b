"""What the docs say is true: what is written from code is up to date, paths exist, and commands parse."""

import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from app.cli import parser
from app.cli.commands import COMMANDS
from app.docs import FILES
from app.manual import folder
from app.manual.api_routes import routes, said
from app.manual.said import OPENS
from app.pages.all import every_page
from app.questions import QUESTIONS
from app.questions.forms import form
from app.whatif import WHATIFS
from collectors import COLLECTORS
from collectors.own.sidecar import KEYS
from tests.app.asking import PROJECT

DOCS = PROJECT / "docs"
TEXTS = (*sorted(DOCS.rglob("*.md")), PROJECT / "README.md")
ROOMS = ("app", "analyzers", "catalog", "collectors", "errors", "runs", "simulators")
ROOMS += ("benchmarks", "deploy", "docs", "reference", "tests")
TICKED, LINKED = re.compile(r"`([^`\s]+)`"), re.compile(r"\]\(([^)#\s]+)\)")
PLACEHOLDER = re.compile(r"[<>*{}$?=:~(]|[A-Z]{2}")
EVERY_TEXT = pytest.mark.parametrize("path", TEXTS, ids=lambda p: p.relative_to(PROJECT).as_posix())
FENCED = re.compile(r"^```(?:shell)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def paths_named(text: str) -> set[str]:
    """What a text names that looks like a file or folder of the project; a link that begins with / is of the server."""
    named = {t.rstrip("/") for t in (*TICKED.findall(text), *LINKED.findall(text)) if not PLACEHOLDER.search(t)}
    return {t for t in named if t.endswith(".py") or ("/" in t and t.split("/")[0] in ROOMS)}


@cache
def existing() -> frozenset[str]:
    """Every path of the project, by each of its ends."""
    found = (p.relative_to(PROJECT) for room in ROOMS for p in (PROJECT / room).rglob("*") if p.name != "__pycache__")
    return frozenset("/".join(p.parts[i:]) for p in found for i in range(len(p.parts)))


whole = cache(parser)  # of all commands: to read words or tell of one changes nothing in it


def commands_shown(text: str) -> list[list[str]]:
    """The words of each command of ours that stands in a block, in order."""
    lines = [line.strip() for line in text.splitlines() if line.startswith("    ")]
    lines += [line for block in FENCED.findall(text) for line in block.splitlines()]
    calls = [call for line in lines for call in line.split(" && ")]
    found = (re.match(r"(?:\.venv/bin/)?chipledger (.+)", call) for call in calls)
    return [shlex.split(call[1], comments=True) for call in found if call]


def commands_mentioned(text: str) -> list[list[str]]:
    """The words of each command of ours that stands in a sentence, whole or only its beginning."""
    return [found.split() for found in re.findall(r"`chipledger ([^`]+)`", text)]


@pytest.mark.parametrize("name", FILES)
def test_what_is_written_from_code_is_up_to_date(name):
    assert (DOCS / name).read_text(encoding="utf-8") == FILES[name](), "run `make docs`"


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.name)
def test_docs_name_every_question_with_its_options_and_terms(question):
    part = (DOCS / f"questions/{question.name}.md").read_text(encoding="utf-8")
    assert f"# {question.title}\n" in part and question.asks in part and f"chipledger show RUN {question.name}`" in part
    assert all(f"| `{o.name}` |" in part for o in question.options)
    assert all(f"* **{t.name}**:" in part for t in question.terms if not set("*_<`") & set(t.name))
    assert part.count("\n* **") == len(question.terms)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.name)
def test_docs_name_every_key_of_an_answer(question):
    part = (DOCS / f"questions/{question.name}.md").read_text(encoding="utf-8")
    keys = form(question).get("properties", {})
    assert keys and all(f"\n| `{key}` |" in part for key in keys)


def test_docs_name_every_collector_what_if_and_page():
    formats, questions = ((DOCS / name).read_text(encoding="utf-8") for name in ("formats.md", "questions.md"))
    assert all(f"| `{c.NAME}` |" in formats for c in COLLECTORS)
    assert all(f"chipledger whatif {w.name}`" in questions for w in WHATIFS)
    for page in every_page():
        assert f"`/{page.path}`" in (DOCS / folder(page) / f"{page.name}.md").read_text(encoding="utf-8")


def test_docs_name_every_key_that_a_person_may_say_and_what_it_is_for():
    text = (DOCS / "chipledger-json.md").read_text(encoding="utf-8")
    assert set(OPENS) == set(KEYS)
    assert all(f"\n| `{key}` |" in text for key in KEYS)


@pytest.mark.parametrize("route", routes(), ids=lambda r: f"{min(r.methods - {'HEAD'} or r.methods)} {r.path}")
def test_docs_name_every_route_with_what_its_handler_says(route):
    assert said(route), f"{route.endpoint.__name__} needs a docstring: docs/api.md is made of it"
    assert f" {route.path}\n\n{said(route)}" in (DOCS / "api.md").read_text(encoding="utf-8")


@EVERY_TEXT
def test_every_path_that_is_named_exists(path):
    missing = {p for p in paths_named(path.read_text(encoding="utf-8")) if p not in existing()}
    assert missing == set()


def test_a_path_that_is_gone_would_be_found():
    text = "see `app/gone.py`, `runs/nowhere/` and [this](docs/architecture.md); `<store>/live/` and `a.json` are none"
    assert paths_named(text) == {"app/gone.py", "runs/nowhere", "docs/architecture.md"}


@EVERY_TEXT
def test_every_command_that_is_shown_parses(path):
    for words in commands_shown(path.read_text(encoding="utf-8")):
        assert whole().parse_args(words).command == words[0]


@EVERY_TEXT
def test_every_command_that_is_mentioned_exists_with_its_flags(path):
    names = {module.NAME for module in COMMANDS}
    for words in commands_mentioned(path.read_text(encoding="utf-8")):
        assert words[0] in names
        helped = told(words[:2] if words[0] == "whatif" else words[:1])
        assert all(word in helped for word in words if word.startswith("--"))


def told(words: list[str]) -> str:
    """What a command's help says."""
    command = whole()
    for word in words:
        choices = next((a.choices for a in command._actions if a.choices and a.nargs == "A..."), {})
        command = choices.get(word, command)
    return command.format_help()


def test_the_readme_shows_commands():
    assert len(commands_shown(Path(PROJECT / "README.md").read_text(encoding="utf-8"))) >= 15

"""Who runs a command waits for that command alone."""

import json
import subprocess
import sys

import pytest

from app.cli import LOOKS_FOR_WORK, every_command, parser
from app.cli.commands import COMMANDS, NAMES, PURPOSES, command
from tests.app.commands import out
from tests.app.serving import PROJECT, environment


def taken(words):
    """Names of the commands that a line of these words is parsed with."""
    return list(parser(words)._subparsers._group_actions[0].choices)


@pytest.mark.parametrize("name", NAMES)
def test_a_line_that_begins_with_a_command_is_parsed_with_that_alone(name):
    for before in ([], ["--store", "somewhere"], ["--store=somewhere"]):
        assert taken([*before, name, "more"]) == [name]


@pytest.mark.parametrize(
    "words", [[], ["no-such"], ["--store", "ingest"], ["--store"], ["--help"], ["-h", "ingest"], ["--bogus", "ingest"]]
)
def test_any_other_line_is_parsed_with_all(words):
    assert taken(words) == list(NAMES)


def test_each_name_is_that_of_its_file_and_listed_once():
    assert [module.NAME for module in COMMANDS] == list(NAMES) and len(set(NAMES)) == len(NAMES)
    assert all(name == command(name).NAME for name in NAMES)
    assert set(" ".join(PURPOSES.values()).split()) <= set(NAMES)


def test_a_command_imports_no_other_one():
    code = "import sys; from app.cli import parser; parser(['runs']); "
    code += "print([m for m in sys.modules if 'cli.commands.' in m])"
    env = environment()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PROJECT, env=env)
    assert json.loads(done.stdout.replace("'", '"')) == ["app.cli.commands.base", "app.cli.commands.runs"], done.stderr


def test_the_help_of_all_is_the_same_kept_and_made_anew(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = out(capsys, "--help")
    assert made == out(capsys, "-h") == out(capsys) and made[0] == 0
    (kept,) = (tmp_path / "chipledger").iterdir()
    told = json.loads(kept.read_text())
    assert told["helps"] == {module.NAME: module.HELP for module in COMMANDS}
    kept.write_text("{")
    assert out(capsys) == made
    monkeypatch.setattr("app.cli.kept_words._stamp", lambda: [1, 2, 3])
    assert every_command.helps() == told["helps"]


@pytest.mark.parametrize(("given", "kept"), [({}, LOOKS_FOR_WORK[1]), ({LOOKS_FOR_WORK[0]: "20"}, "20")])
def test_threads_of_numpy_sleep_at_once_where_nobody_says_otherwise(given, kept):
    code = f"import os; from app.cli import main; main(); print(os.environ[{LOOKS_FOR_WORK[0]!r}])"
    env = {name: text for name, text in environment().items() if name != LOOKS_FOR_WORK[0]} | given
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PROJECT, env=env)
    assert done.stdout.split()[-1] == kept, done.stderr

"""Completion of the command line: what is offered where, and that real shells complete it."""

import contextlib
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.cli import completing, kept_words
from app.cli.commands import COMMANDS
from app.cli.scripts import SCRIPTS
from app.questions import QUESTIONS
from app.whatif import WHATIFS
from catalog import chips, models
from runs.live import LiveRuns
from tests.app import made_runs
from tests.app.commands import out
from tests.app.serving import PROJECT, environment


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    """Words are kept by the process that makes them first, in a folder that all tests here share."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def offered(capsys, *words, shell="zsh"):
    code, text, error = out(capsys, "completion", shell, *words)
    assert (code, error) == (0, "")
    return [line.partition("\t")[0] for line in text.splitlines()]


def test_commands_questions_whatifs_and_names_of_the_catalogue_are_offered(place, capsys):
    assert offered(capsys, "") == [c.NAME for c in COMMANDS]
    assert offered(capsys, "show", "x", "") == [q.name for q in QUESTIONS]
    assert offered(capsys, "open", "x", "mf") == ["mfu"]
    assert offered(capsys, "whatif", "") == [w.name for w in WHATIFS]
    assert offered(capsys, "catalog", "") == ["chips", "models", "slices"]
    assert offered(capsys, "catalog", "chips", "TPU v5") == [n for n in sorted(chips()) if n.startswith("TPU v5")]
    assert offered(capsys, "compile", "llama3.1-8") == ["llama3.1-8b"]
    assert offered(capsys, "ingest", "") == [":files"]
    assert offered(capsys, "completion", "") == list(SCRIPTS)


def test_options_and_what_they_may_be_are_offered(place, capsys):
    assert {"--json", "--option", "--explain", "--store", "--help"} <= set(offered(capsys, "show", "x", "--"))
    assert offered(capsys, "ingest", "f", "--kind", "s") == ["serving", "simulated"]
    assert offered(capsys, "ingest", "f", "--kind=s") == ["--kind=serving", "--kind=simulated"]
    assert offered(capsys, "show", "x", "mfu", "--option", "conv") == ["convention="]
    assert offered(capsys, "show", "x", "mfu", "--option", "convention=6n") == ["convention=6n", "convention=6n_total"]
    assert offered(capsys, "whatif", "checkpoint", "--model") == []
    assert offered(capsys, "show", "x", "nothing", "--option", "") == []
    assert "--store" in offered(capsys, "nothing", "--sto")


def test_runs_are_offered_by_name_by_id_once_it_was_begun_and_by_the_name_of_a_live_run(place, capsys):
    run = made_runs.interrupted(place.store, "54 days: all of it")
    place.registry.rename(run.run_id, "renamed")
    other = made_runs.interrupted(place.store, "other")
    assert offered(capsys, "show", "") == ["other", "renamed"]
    assert offered(capsys, "show", "ren") == ["renamed"]
    assert offered(capsys, "show", other.run_id[:6]) == [other.run_id]
    LiveRuns(place.store.root / "live").of("night").mkdir(parents=True)
    assert offered(capsys, "show", "li") == ["live:night"]
    assert offered(capsys, "show", "model:llama3.1-8") == ["model:llama3.1-8b"]
    assert offered(capsys, "--store", str(place.store.root / "nowhere"), "show", "") == []


def test_bash_cuts_words_at_colons_and_keeps_quotes(place, capsys):
    made_runs.interrupted(place.store, "54 days: all of it")
    LiveRuns(place.store.root / "live").of("night").mkdir(parents=True)
    assert offered(capsys, "show", "live", ":", "ni", shell="bash") == ["night"]
    assert offered(capsys, "show", "live", ":", shell="bash") == ["night"]
    assert offered(capsys, "show", "54\\ da", shell="bash") == ["54 days: all of it"]
    assert offered(capsys, "show", '"54 da', shell="bash") == ["54 days: all of it"]
    assert offered(capsys, "ingest", "f", "--kind", "=", "ser", shell="bash") == ["serving"]


def test_bash_is_given_a_word_as_it_stands_within_the_open_quote(place, capsys):
    made_runs.interrupted(place.store, 'it\'s "$(x)" `x` a\\b!: 1')
    double = 'it\'s \\"\\$(x)\\" \\`x\\` a\\\\b"\'!\'": 1'
    single = "it'\\''s \"$(x)\" `x` a\\b!: 1"
    assert offered(capsys, "show", '"it', shell="bash") == [double]
    assert offered(capsys, "show", "'it", shell="bash") == [single]
    assert offered(capsys, "show", f'"{double[:-3]}', shell="bash") == [double]
    assert offered(capsys, "show", f"'{single[:-3]}", shell="bash") == [single]
    assert offered(capsys, "show", f'"{double}"', shell="bash") == [double]
    assert offered(capsys, "show", f"'{single}'", shell="bash") == [single]


def test_bash_offers_a_whole_value_where_a_quote_follows_an_equals_sign(place, capsys):
    assert offered(capsys, "ingest", "f", "--kind", "=", '"ser', shell="bash") == ["serving"]
    made_runs.interrupted(place.store, "54 days: all of it")
    assert offered(capsys, "show", '"54 days: al', shell="bash") == ["54 days: all of it"]


def test_a_name_that_a_terminal_would_act_on_is_not_offered(place, capsys):
    made_runs.interrupted(place.store, "bad \x1b[31mname")
    made_runs.interrupted(place.store, "good")
    assert offered(capsys, "show", "") == ["good"]


def test_what_cannot_be_read_is_silence_not_a_message(place, capsys, monkeypatch):
    run = made_runs.interrupted(place.store, "whole")
    (made_runs.interrupted(place.store, "broken").folder / "run.json").write_bytes(b"\xff{")
    (place.store.root / "registry.db").write_bytes(b"no database at all")
    assert offered(capsys, "show", "") == [run.manifest.name]
    monkeypatch.setattr(completing, "tree", lambda: {}["nothing"])
    assert out(capsys, "completion", "bash", "show", "") == (1, "", "")


def test_words_are_kept_and_made_anew_when_the_code_changed(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = completing.tree()
    (kept,) = (tmp_path / "chipledger").iterdir()
    kept.write_text(json.dumps({**first, "questions": [["kept", ""]]}))
    assert completing.tree()["questions"] == [["kept", ""]]
    monkeypatch.setattr(kept_words, "_stamp", lambda: [1, 2, 3])
    assert [tuple(q) for q in completing.tree()["questions"]] == [(q.name, q.title) for q in QUESTIONS]
    kept.write_text("{")
    assert completing.tree()["models"] == [(name, "") for name in sorted(models())]


def test_a_press_of_the_key_loads_no_package_of_numbers(place):
    code = """
import sys
from app.cli import main
for words in ([""], ["show", ""]):
    main(["completion", "zsh", *words])
heavy = {"numpy", "pyarrow", "pandas", "numba", "argparse", "catalog", "analyzers", "runs"}
print(sorted(heavy & {name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""
    command = [sys.executable, "-c", code]
    env = environment(CHIPLEDGER_STORE=str(place.store.root), XDG_CACHE_HOME=os.environ["XDG_CACHE_HOME"])
    completing.tree()
    done = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT, env=env, timeout=120)
    assert done.stderr.strip() == "[]" and "doctor" in done.stdout


# Real shells


@pytest.fixture
def home(tmp_path, place) -> Path:
    """A home whose `chipledger` completes as the real one does, and else notes with what it was called."""
    made_runs.interrupted(place.store, "night run, 54 days")
    LiveRuns(place.store.root / "live").of("follow").mkdir(parents=True)
    program = tmp_path / "bin" / "chipledger"
    program.parent.mkdir()
    real = f'exec "{sys.executable}" -m app.cli "$@"'
    note = f'printf "%s\\n" "$@" > "{tmp_path}/part" && mv "{tmp_path}/part" "{tmp_path}/called"'
    program.write_text(f'#!/bin/sh\nif [ "$1" = completion ]; then {real}; fi\n{note}\n')
    program.chmod(0o755)
    completing.tree()
    return tmp_path


def shell_environment(home: Path, place) -> dict[str, str]:
    path = f"{home / 'bin'}:{os.environ['PATH']}"
    told = environment(CHIPLEDGER_STORE=str(place.store.root), HOME=str(home), PATH=path, TERM="dumb")
    return {**told, "XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"]}


def called(home: Path, arguments: list[str], env: dict[str, str], setup: str, text: str) -> list[str]:
    """With what `chipledger` is called once this was typed into a shell, tabs and all."""
    (home / "called").unlink(missing_ok=True)
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(home)
        os.execvpe(arguments[0], arguments, env)  # noqa: S606 - the shell under test
    try:
        os.write(terminal, f"{setup}; touch ready\r".encode())
        until(terminal, home / "ready")
        os.write(terminal, f"{text}\r".encode())
        until(terminal, home / "called")
        return (home / "called").read_text().splitlines()
    finally:
        os.close(terminal)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        (home / "ready").unlink(missing_ok=True)


def until(terminal: int, there: Path) -> None:
    """Read what the terminal shows until this file is there."""
    shown, deadline = b"", time.monotonic() + 60
    while not there.exists():
        assert time.monotonic() < deadline, shown.decode(errors="replace")
        if select.select([terminal], [], [], 0.1)[0]:
            shown += os.read(terminal, 65_536)


TYPED = [
    ("chipledger sho\tnig\tmf\t", ["show", "night run, 54 days", "mfu"]),
    ("chipledger show live:fo\tled\t--js\t", ["show", "live:follow", "ledger", "--json"]),
    ("chipledger show x mfu --option conv\thard\t", ["show", "x", "mfu", "--option", "convention=hardware_full_remat"]),
    ("chipledger ingest bi\tchip\t--kind sim\t", ["ingest", "bin/chipledger", "--kind", "simulated"]),
    ("chipledger show model:llama3.1-8\t", ["show", "model:llama3.1-8b"]),
]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_real_shell_completes_what_is_typed(home, place, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    starts = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}
    load = f"source <(chipledger completion {shell})"
    setup = load if shell == "bash" else f"autoload -U compinit; compinit -u; {load}"
    for text, wanted in TYPED:
        assert called(home, starts[shell], shell_environment(home, place), setup, text) == wanted


HOSTILE = {  # what is typed of it, and the name of a run
    '"$': "$(touch ran)z",
    '"`': "`touch ran`z",
    "'a": "a'; touch ran; 'z",
    '"b': 'b"; touch ran; "z',
    '"c': "c!touch \\",
    "d": "d$(touch ran)';touch ran;'\"",
}


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize("typed", HOSTILE)
def test_no_shell_runs_what_a_name_says(home, place, shell, typed):
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    made_runs.interrupted(place.store, HOSTILE[typed])
    starts = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}
    load = f"source <(chipledger completion {shell})"
    setup = load if shell == "bash" else f"autoload -U compinit; compinit -u; {load}"
    env = shell_environment(home, place)
    begun = re.sub("`" if shell == "bash" else "[$`]", r"\\\g<0>", typed)  # else the shell offers names of its own
    assert called(home, starts[shell], env, setup, f"chipledger show {begun}\t") == ["show", HOSTILE[typed]]
    assert not (home / "ran").exists()


def test_fish_completes_what_is_typed(home, place):
    if shutil.which("fish") is None:
        pytest.skip("no fish here")
    lines = [text.partition("\t")[0] for text, _ in TYPED]
    lines += ["chipledger show 'night run, 54 days' mf", "chipledger ingest f --kind=sim"]
    asked = "; ".join(f'complete -C "{line}"' for line in lines)
    script = f"chipledger completion fish | source; {asked}"
    env = shell_environment(home, place)
    done = subprocess.run(["fish", "-N", "-c", script], capture_output=True, text=True, env=env, cwd=home, timeout=120)
    assert done.stderr == ""
    words = [line.partition("\t")[0] for line in done.stdout.splitlines()]
    found = ["show", "live:follow", "convention=", "bin/", "model:llama3.1-8b", "mfu", "--kind=simulated"]
    assert words == found

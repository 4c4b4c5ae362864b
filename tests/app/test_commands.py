"""Commands take what their records tell: on a terminal, in the docs, and in what each hands down."""

import ast
from dataclasses import fields
from functools import cache

import pytest

from app.cli.commands import COMMANDS, query, serve, topology, whatif
from app.docs import DOCS
from app.options import form_of
from app.serve.uploads import LIMIT_VARIABLE
from app.topology_options import ASKED
from errors import QuestionError
from errors.numbers import Number
from tests.app.asking import PROJECT
from tests.app.commands import out

EACH = pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c.NAME)
DOORS = {"run", "asked", "from_args", "values", "by_place"}  # what reads a Namespace; nothing below does
NO_PORTS = ["http", "", "-1", "65536", "8.5", "8_0", "²", "٣"]
NO_LIMITS = ["0", "-1", "1e9", "x", "", "²", "1_0"]


def about(command):
    return getattr(command, "ARGUMENTS", ())


@cache
def sources():
    return {p: ast.parse(p.read_text(encoding="utf-8")) for p in sorted((PROJECT / "app").rglob("*.py"))}


@EACH
def test_the_docs_tell_every_command_with_what_it_takes(command):
    text = (DOCS / "commands.md").read_text(encoding="utf-8")
    part = text.split(f"\n## {command.NAME}\n")[1].split("\n## ")[0]
    assert f"* `chipledger {command.NAME}" in part
    assert all(f"`{form_of(o)}`: " in part for o in about(command))
    assert all(part.count(f"| `{o.flag}` |") == 1 for o in command.OPTIONS)
    assert part.count("| `--") == len(command.OPTIONS)


def test_an_argument_is_declared_by_its_record_alone():
    calls = {
        path.relative_to(PROJECT).as_posix()
        for path, tree in sources().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "add_argument"
    }
    assert calls == {"app/options.py"}


def test_below_a_commands_door_nothing_takes_a_namespace():
    takers = {
        node.name
        for tree in sources().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for given in node.args.args
        if given.annotation and "Namespace" in ast.unparse(given.annotation)
    }
    assert {"run", "from_args"} <= takers <= DOORS


@pytest.mark.parametrize("command", [serve, query], ids=lambda c: c.NAME)
def test_what_is_asked_has_a_field_for_each_option_with_its_default(command):
    assert {f.name: f.default for f in fields(command.Asked)} == {o.name: o.default for o in command.OPTIONS}


@pytest.mark.parametrize("text", NO_PORTS)
@pytest.mark.parametrize("command", ["serve", "demo"])
def test_a_port_that_cannot_be_is_refused_before_anything_is_loaded(place, capsys, command, text):
    code, said, errors = out(capsys, command, f"--port={text}")
    assert (code, said) == (2, "") and errors.startswith("error: --port ")
    assert errors.endswith("; expected a whole number from 0 to 65,535\n")


@pytest.mark.parametrize("text", NO_LIMITS)
def test_a_limit_of_uploads_that_cannot_be_is_refused(place, capsys, text):
    code, said, errors = out(capsys, "serve", f"--upload-limit-bytes={text}")
    assert (code, said) == (2, "") and errors.startswith("error: --upload-limit-bytes ")
    assert errors.endswith("; expected a whole number from 1\n")


def test_a_limit_in_the_environment_is_read_as_that_of_the_command(place, capsys, monkeypatch):
    monkeypatch.setenv(LIMIT_VARIABLE, "²")
    code, _, errors = out(capsys, "serve", "--port=0")
    assert code == 2 and errors == (
        f"error: ${LIMIT_VARIABLE}: '²' is no limit for uploads; expected a whole number from 1, in bytes\n"
    )


def test_a_kind_that_the_catalogue_lacks_is_named(capsys):
    assert out(capsys, "catalog", "cats") == (2, "", "error: kind 'cats'; expected one of chips, models, slices\n")


def test_a_topology_is_asked_by_the_same_records_everywhere():
    assert (*about(topology), topology.OPTIONS[0]) == ASKED
    assert whatif.WHATIF.form in whatif.API and all(f"{o.name}={o.form}" in topology.API for o in ASKED)


def test_ports_are_those_that_there_are():
    port = next(o for o in serve.OPTIONS if o.name == "port")
    assert isinstance(port.kind, Number) and (port.parse("0"), port.parse("65535")) == (0, 65535)
    with pytest.raises(QuestionError):
        port.parse("65536")

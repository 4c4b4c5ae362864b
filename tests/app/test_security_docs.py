"""What docs/security.md says was tried is tried, by the test that it names."""

import ast
import re

import pytest

from tests.app.serving import PROJECT

NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (PROJECT / "docs/security.md").read_text())
ROWS = [
    line
    for line in (PROJECT / "docs/security.md").read_text().partition("## What was tried")[2].splitlines()
    if line.startswith("| ") and not line.startswith("| tried")
]


@pytest.mark.parametrize(("path", "test"), NAMED)
def test_each_test_that_is_named_is_there(path, test):
    tree = ast.parse((PROJECT / path).read_text())
    assert test in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_row_names_one_test_and_none_twice():
    assert len(ROWS) == len(NAMED) == len(set(NAMED)) > 30
    assert all(len(re.findall(r"::test_\w+`", row)) == 1 for row in ROWS)

"""A value that begins with a dash is a value: `--sort -cost` as well as `--sort=-cost`."""

import pytest

from app.cli.parsing import parser
from errors import QuestionError


@pytest.mark.parametrize("words", [["--sort", "-cost"], ["--sort=-cost"], ["--json", "--sort", "-cost"]])
def test_a_value_that_begins_with_a_dash(words):
    assert parser().parse_args(["runs", *words]).sort == "-cost"


def test_a_flag_is_no_value():
    for words in (["--sort", "--json"], ["--sort", "-h"], ["--sort"]):
        with pytest.raises(QuestionError, match="--sort: expected one argument"):
            parser().parse_args(["runs", *words])


def test_what_takes_no_value_gets_none():
    with pytest.raises(QuestionError, match="no option -x"):
        parser().parse_args(["runs", "--json", "-x"])

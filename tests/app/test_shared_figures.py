"""What several pages draw stands in one place: no question's figures reach into another's."""

import ast

import pytest

from app.figures.axes import log_ticks
from tests.app.serving import PROJECT

FIGURES = sorted(p.relative_to(PROJECT).as_posix() for p in (PROJECT / "app").glob("*/*/*figure*.py"))


def test_there_are_figures_to_look_at():
    assert len(FIGURES) > 30


@pytest.mark.parametrize("file", FIGURES)
def test_figures_take_what_they_share_from_one_place(file):
    found = [n.module for n in ast.walk(ast.parse((PROJECT / file).read_text())) if isinstance(n, ast.ImportFrom)]
    here = file.rsplit("/", 1)[0].replace("/", ".")
    others = [m for m in found if m and m.rpartition(".")[2].endswith("figure") and m.rpartition(".")[0] != here]
    assert others == []


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        (3, 800, ["5", "10", "20", "50", "100", "200", "500"]),
        (22, 47, ["30", "40"]),
        (1.2, 2.4, ["1.5", "2"]),
        (0.02, 0.04, ["0.02", "0.03", "0.04"]),
    ],
)
def test_a_narrow_logarithmic_axis_is_told_too(low, high, told):
    axis = log_ticks(low, high)
    marks = zip(axis["tickvals"], axis["ticktext"], strict=True)
    assert [text for at, text in marks if low <= at <= high] == told

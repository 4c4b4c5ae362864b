"""Choices between branches: printed so that XLA reads them again, and opened on what their branches are given."""

import os

import pytest

from analyzers.program import graph
from analyzers.program.text import Text
from collectors.device.hlo.program import program_of
from errors.options import parse_options
from tests.analyzers.test_hlo_graph import Kept
from tests.collectors.traces import hlo_proto

os.environ.setdefault("JAX_PLATFORMS", "cpu")
pytest.importorskip("jaxlib")

TEXT = """HloModule m

%t (a: f32[8]) -> f32[8] {
  %a = f32[8] parameter(0)
  ROOT %na = f32[8] negate(%a)
}

%f (b: f32[8]) -> f32[8] {
  %b = f32[8] parameter(0)
  ROOT %ab = f32[8] abs(%b)
}

ENTRY %e (p: TYPE, x: f32[8], y: f32[8]) -> f32[8] {
  %p = TYPE parameter(0)
  %x = f32[8] parameter(1)
  %y = f32[8] parameter(2)
  ROOT %c = f32[8] conditional(%p, %x, %y), BRANCHES
}
"""
KINDS = [
    ("pred[]", "true_computation=%t, false_computation=%f"),
    ("s32[]", "branch_computations={%t, %f}"),
]


def chosen(kind, branches):
    from jaxlib._hlo import hlo_module_from_text

    module = hlo_module_from_text(TEXT.replace("TYPE", kind).replace("BRANCHES", branches))
    return program_of(hlo_proto(module.as_serialized_hlo_module_proto()))


@pytest.mark.parametrize(("kind", "branches"), KINDS)
def test_the_text_of_a_choice_is_read_again(kind, branches):
    from jaxlib._hlo import hlo_module_from_text

    text = "\n".join(Text(chosen(kind, branches)).whole())
    assert f"conditional(%p, %x, %y), {branches}" in text
    again = program_of(hlo_proto(hlo_module_from_text(text).as_serialized_hlo_module_proto()))
    assert "\n".join(Text(again).whole()) == text


@pytest.mark.parametrize(("kind", "branches"), KINDS)
def test_the_branch_of_an_opened_choice_is_fed_by_its_own_operand(kind, branches):
    kept = Kept(chosen(kind, branches))
    result = graph.analyze(kept.tables, {}, parse_options(graph.OPTIONS, {"op": "na", "open": "c"}), kept)
    assert [(e["maker"], e["user"]) for e in result.to_dict()["edges"]] == [("x", "na")]
    assert any("the first branch is drawn" in note for note in result.notes)

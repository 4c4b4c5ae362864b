"""Trip counts of loops: those that follow from the program, and those that nothing tells before it runs."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.device.hlo.loops import _rounds
from collectors.device.hlo.module import analyse
from tests.collectors.traces import hlo_proto

os.environ.setdefault("JAX_PLATFORMS", "cpu")
pytest.importorskip("jaxlib")

WORK = "w = f32[8,8]{1,0} get-tuple-element(p), index=1\n  v = f32[8,8]{1,0} dot(w, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"  # noqa: E501
PRODUCT = 2 * 8 * 8 * 8


def module(text):
    from jaxlib._hlo import hlo_module_from_text

    made = hlo_module_from_text(f"HloModule m\n{text}")
    return analyse(hlo_proto(made.as_serialized_hlo_module_proto()))


def loop(first="constant(0)", step="constant(1)", limit="constant(7)", change="add(i, s)", goes_on="i, n", way="LT"):
    """A loop around a matrix product with a counter as given."""
    return module(f"""
body {{
  p = (s32[], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  s = s32[] {step}
  j = s32[] {change}
  {WORK}
  ROOT t = (s32[], f32[8,8]) tuple(j, v)
}}
cond {{
  p = (s32[], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] {limit}
  ROOT c = pred[] compare({goes_on}), direction={way}
}}
ENTRY e {{
  x = f32[8,8]{{1,0}} parameter(0)
  z = s32[] {first}
  t = (s32[], f32[8,8]) tuple(z, x)
  ROOT r = (s32[], f32[8,8]) while(t), condition=cond, body=body
}}""")


@pytest.mark.parametrize(
    ("given_as", "trips"),
    [
        ({}, 7),
        ({"first": "constant(998)", "limit": "constant(1000)"}, 2),
        ({"way": "LE"}, 8),
        ({"step": "constant(2)"}, 4),
        ({"goes_on": "n, i", "way": "GT"}, 7),
        ({"first": "constant(9)"}, 0),
        ({"first": "constant(7)", "limit": "constant(0)", "change": "subtract(i, s)", "way": "GT"}, 7),
        ({"first": "constant(7)", "limit": "constant(0)", "step": "constant(-1)", "way": "GE"}, 8),
        ({"way": "NE"}, 7),
        ({"step": "constant(-1)"}, None),
        ({"step": "constant(2)", "way": "NE"}, None),
        ({"change": "multiply(i, s)"}, None),
        ({"change": "subtract(s, i)"}, None),
        ({"change": "add(s, i)"}, 7),
        ({"change": "add(i, i)", "first": "constant(1)"}, None),  # 1, 2, 4: no counter
        ({"step": "constant(2)", "limit": "constant(8)", "way": "NE"}, 4),
        ({"first": "constant(8)", "limit": "constant(0)", "step": "constant(-2)", "way": "NE"}, 4),
        ({"first": "constant(7)", "way": "NE"}, 0),
        ({"first": "constant(7)", "way": "EQ"}, 1),
        ({"way": "EQ"}, 0),
    ],
)
def test_a_counter_from_a_constant_by_a_constant_to_a_constant(given_as, trips):
    found = loop(**given_as)
    if trips is None:
        assert found.unknown_loops == ["r"] and found.flops is None
    else:
        assert not found.unknown_loops
        assert found.flops == pytest.approx(trips * PRODUCT, abs=2 * trips + 1)  # with the counter's own arithmetic
        assert [m.count for m in found.matmuls] == ([trips] if trips else [])


@pytest.mark.parametrize(("ahead", "trips"), [("add(i, o)", 4), ("subtract(i, o)", 10), ("add(o, i)", 4)])
def test_a_counter_that_is_compared_ahead_of_itself_or_behind(ahead, trips):
    """i + 3 < 7 from 0 on holds four times, i - 3 < 7 ten times."""
    found = loop(limit=f"constant(7)\n  o = s32[] constant(3)\n  k = s32[] {ahead}", goes_on="k, n")
    assert not found.unknown_loops and [m.count for m in found.matmuls] == [trips]


@given(st.integers(-40, 40), st.integers(-5, 5), st.sampled_from(["LT", "LE", "GT", "GE", "NE", "EQ"]))
@settings(max_examples=400)
def test_rounds_equal_those_counted_one_by_one(first, step, way):
    holds = {
        "LT": int.__lt__,
        "LE": int.__le__,
        "GT": int.__gt__,
        "GE": int.__ge__,
        "NE": int.__ne__,
        "EQ": int.__eq__,
    }[way]
    rounds, value = 0, first
    while holds(value, 0) and rounds < 1000:
        rounds, value = rounds + 1, value + step
    assert _rounds(first, step, way.encode()) == (None if rounds == 1000 else rounds)


SEARCH = f"""
body {{
  p = (s32[], f32[8,8], pred[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  s = s32[] constant(1)
  j = s32[] add(i, s)
  {WORK}
  d = pred[] get-tuple-element(p), index=2
  ROOT t = (s32[], f32[8,8], pred[]) tuple(j, v, d)
}}
cond {{
  p = (s32[], f32[8,8], pred[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(1000)
  c = pred[] compare(i, n), direction=LT
  d = pred[] get-tuple-element(p), index=2
  ROOT a = pred[] and(c, d)
}}
ENTRY e {{
  x = f32[8,8]{{1,0}} parameter(0)
  d = pred[] parameter(1)
  z = s32[] constant(0)
  t = (s32[], f32[8,8], pred[]) tuple(z, x, d)
  ROOT r = (s32[], f32[8,8], pred[]) while(t), condition=cond, body=body
}}"""


def test_a_search_that_may_end_early_does_not_run_as_often_as_it_may():
    found = module(SEARCH)
    assert found.unknown_loops == ["r"]
    assert (found.flops, found.remat_flops, found.bytes) == (None, 0.0, None)
    assert [m.count for m in found.matmuls] == [None]
    assert found.operations["v"].count is None and found.operations["v"].flops == PRODUCT


def test_only_the_amounts_that_hang_on_an_unknown_loop_are_unknown():
    idle = SEARCH.replace("dot(w, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "copy(w)")
    idle = idle.replace("add(i, s)", "copy(i)")
    found = module(idle.replace("compare(i, n), direction=LT", "get-tuple-element(p), index=2"))
    assert found.unknown_loops and found.flops is None  # its condition is arithmetic too: `and`
    text = idle.replace("c = pred[] compare(i, n), direction=LT", "").replace(
        "ROOT a = pred[] and(c, d)", "ROOT a = pred[] copy(d)"
    )
    found = module(text)
    assert found.unknown_loops and found.flops == 0.0 and found.bytes is None


FUSED = f"""
next {{
  a = s32[] parameter(0)
  o = s32[] constant(1)
  ROOT b = s32[] add(a, o)
}}
less {{
  a = s32[] parameter(1)
  n = s32[] parameter(0)
  ROOT c = pred[] compare(a, n), direction=LT
}}
body {{
  p = (s32[], f32[8,8], s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  j = s32[] fusion(i), kind=kLoop, calls=next
  {WORK}
  n = s32[] get-tuple-element(p), index=2
  ROOT t = (s32[], f32[8,8], s32[]) tuple(j, v, n)
}}
cond {{
  p = (s32[], f32[8,8], s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] get-tuple-element(p), index=2
  ROOT c = pred[] fusion(n, i), kind=kLoop, calls=less
}}
around {{
  q = (s32[], f32[8,8], s32[]) parameter(0)
  m = s32[] get-tuple-element(q), index=2
  k = s32[] get-tuple-element(q), index=0
  o = s32[] constant(1)
  l = s32[] add(k, o)
  x = f32[8,8]{{1,0}} get-tuple-element(q), index=1
  z = s32[] constant(0)
  t = (s32[], f32[8,8], s32[]) tuple(z, x, m)
  r = (s32[], f32[8,8], s32[]) while(t), condition=cond, body=body
  y = f32[8,8]{{1,0}} get-tuple-element(r), index=1
  ROOT u = (s32[], f32[8,8], s32[]) tuple(l, y, m)
}}
twice {{
  q = (s32[], f32[8,8], s32[]) parameter(0)
  k = s32[] get-tuple-element(q), index=0
  n = s32[] constant(2)
  ROOT c = pred[] compare(k, n), direction=LT
}}
ENTRY e {{
  x = f32[8,8]{{1,0}} parameter(0)
  z = s32[] constant(0)
  n = s32[] constant(5)
  h = s32[] copy(n)
  t = (s32[], f32[8,8], s32[]) tuple(z, x, h)
  ROOT r = (s32[], f32[8,8], s32[]) while(t), condition=twice, body=around
}}"""


def test_a_limit_that_loops_carry_and_steps_inside_fusions_are_seen_through():
    found = module(FUSED)
    assert not found.unknown_loops and [m.count for m in found.matmuls] == [10]


def test_a_limit_that_the_loop_around_changes_is_not_known():
    found = module(
        FUSED.replace(
            "ROOT u = (s32[], f32[8,8], s32[]) tuple(l, y, m)", "ROOT u = (s32[], f32[8,8], s32[]) tuple(l, y, l)"
        )
    )
    assert found.unknown_loops == ["r"] and [m.count for m in found.matmuls] == [None]


def test_a_body_of_a_loop_without_a_known_end_and_of_one_that_never_runs():
    found = module(f"""
body {{
  p = (s32[], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  s = s32[] constant(3)
  j = s32[] multiply(i, s)
  {WORK}
  ROOT t = (s32[], f32[8,8]) tuple(j, v)
}}
cond {{
  p = (s32[], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(7)
  ROOT c = pred[] compare(i, n), direction=LT
}}
ENTRY e {{
  x = f32[8,8]{{1,0}} parameter(0)
  z = s32[] constant(1)
  t = (s32[], f32[8,8]) tuple(z, x)
  r = (s32[], f32[8,8]) while(t), condition=cond, body=body
  ROOT q = (s32[], f32[8,8]) while(r), condition=cond, body=body, backend_config={{"known_trip_count":{{"n":"0"}}}}
}}""")
    assert found.unknown_loops == ["r"] and [m.count for m in found.matmuls] == [None]

"""What names of operations tell: scopes without the transformations around them, and the pass."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.device.hlo.scopes import Scope, scope_of
from runs.scopes import MOST_LETTERS, MOST_LEVELS, names_of, path_of

LOOP = "while/body/closed_call"


@pytest.mark.parametrize(
    ("name", "path", "direction"),
    [
        (f"jit(step)/jvp(Decoder)/{LOOP}/mlp/dot_general", "Decoder/mlp", "forward"),
        (f"jit(step)/transpose(jvp(Decoder))/{LOOP}/checkpoint/mlp/dot_general", "Decoder/mlp", "backward"),
        (
            f"jit(step)/transpose(jvp(Decoder))/{LOOP}/checkpoint/rematted_computation/mlp/wi/dot_general",
            "Decoder/mlp/wi",
            "recompute",
        ),
        ("jit(f)/jit(main)/add:", None, None),
        ("jit(step)/jvp(jit(_where))/select_n", None, "forward"),
        ("jit(step)/jvp(Decoder)/mlp/jit(silu)/div", "Decoder/mlp/silu", "forward"),
        ("pmap(train)/jvp(vmap(Net))/Dense_0/dot_general", "Net/Dense_0", "forward"),
        ("jit(decode)/layers_3/attention/bqhe,bkhe->bhqk/dot_general", "layers_3/attention/bqhe,bkhe->bhqk", None),
        ("jit(f)/transpose(jvp(A/b))/mul", "A/b", "backward"),
        ("model/dense/MatMul:MatMul", "model/dense", None),
        ("jit(f)/mul;jit(f)", None, None),
        ("jit(f)/a/(transpose(jvp(b))/dot:transpose(jvp(c))/add)", "a", "backward"),
        ("jit(f)/a/(transpose(jvp(b))/dot:jvp(c)/add)", "a", None),
        ("jit(f)/a/(transpose(jvp(b))/dot:transpo", "a", "backward"),
        ("state['params']['layers/0']", None, None),
        ("broadcast.24", None, None),
        ("", None, None),
    ],
)
def test_scopes_and_pass_of_a_name(name, path, direction):
    assert scope_of(name) == Scope(path, direction)


def test_what_the_compiler_computes_again_is_told_whatever_the_name_says():
    assert scope_of("jit(f)/jvp(a)/dot", recomputed=True) == Scope("a", "recompute")
    assert scope_of("", recomputed=True).direction == "recompute"


@given(st.text(alphabet="/()[]:;>abjitvp_", max_size=200))
def test_no_name_is_too_odd(name):
    told = scope_of(name)
    assert told.direction in (None, "forward", "backward", "recompute")
    assert told.path is None or (told.path and len(names_of(told.path)) <= MOST_LEVELS)


@given(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=MOST_LEVELS))
def test_a_slash_in_a_name_is_none_between_names(names):
    path = path_of(names)
    kept = [n.replace("/", "%2F")[:MOST_LETTERS].replace("%2F", "/") for n in names]
    assert names_of(path) == kept


def test_a_path_has_an_end():
    assert names_of(path_of(["x" * 999] * 999)) == ["x" * MOST_LETTERS] * MOST_LEVELS
    assert path_of([]) is None and path_of([""]) is None

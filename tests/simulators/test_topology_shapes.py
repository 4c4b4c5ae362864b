"""Legal shapes: against a count by brute force and against xpk's own lists; and what is said of the others."""

from itertools import product
from math import prod

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from catalog.slices import families
from errors import InputError, QuestionError
from simulators.topology import parse
from simulators.topology.systems.shapes import (
    all_shapes,
    dims_in,
    largest,
    legal,
    nearest,
    no_twist,
    reasons,
    shapes_of,
    text_of,
    wraps,
)
from simulators.tpu_compile.topology import compilers, parse_topology

TORUS = [f for f in families().values() if f.axes]
V5E, V5P, V4, IRONWOOD, V8T, V2 = (families()[f"TPU {n}"] for n in ("v5e", "v5p", "v4", "7x", "8t", "v2"))


@pytest.mark.parametrize("family", [V4, V5P, IRONWOOD, V8T], ids=lambda f: f.name)
def test_whole_cubes_are_all_the_shapes_that_a_pod_can_hold(family):
    pod = int(family.numbers["pod_chips"].value)
    side = [4 * n for n in range(1, pod // 64 + 1)]
    counted = {tuple(sorted((a, b, c))) for a, b in product(side[:12], side) for c in side if a * b * c <= pod}
    small = {dims_in(s) for s in family.small_topologies}
    assert set(all_shapes(family)) == counted | small
    assert all(legal(family, s) == s for s in all_shapes(family))


@pytest.mark.parametrize("family", [f for f in TORUS if f.xpk], ids=lambda f: f.name)
def test_every_slice_that_xpk_creates_is_legal_and_has_its_usual_name(family):
    for shape in family.xpk.topologies:
        dims = dims_in(shape)
        assert legal(family, dims) == dims and parse(f"{family.xpk.prefix}-{shape}").dims == dims
    assert len({prod(dims_in(s)) for s in family.xpk.topologies}) == len(family.xpk.topologies)


@pytest.mark.parametrize("family", [f for f in TORUS if f.name in compilers()], ids=lambda f: f.name)
def test_the_compiler_takes_the_same_shapes(family):
    name = compilers()[family.name].name
    for dims in all_shapes(family)[:40]:
        assert parse_topology(f"{name}:{text_of(dims)}").shape == dims
    for illegal in (6,) * family.axes, (2,) * (family.axes - 1) + (6,):
        with pytest.raises(QuestionError, match="has no slice of"):
            parse_topology(f"{name}:{text_of(illegal)}")


@pytest.mark.parametrize(
    "name, given_, written",
    [
        ("TPU v5p", (16, 8, 4), (4, 8, 16)),
        ("TPU v5p", (2, 2), (2, 2, 1)),
        ("TPU v4", (1, 2, 2), (2, 2, 1)),
        ("TPU v5e", (16, 8), (8, 16)),
        ("TPU v6e", (4, 4, 1), (4, 4)),
        ("TPU 7x", (4, 2, 2), (2, 2, 4)),
        ("TPU v5p", (1,), (1, 1, 1)),
        ("TPU v5p", (28, 20, 16), (16, 20, 28)),
    ],
)
def test_shapes_are_written_as_the_maker_does(name, given_, written):
    assert legal(families()[name], given_) == written


@pytest.mark.parametrize(
    "text, wrapped",
    [
        ("v5p:2x2x4", (False,) * 3),
        ("v4:2x4x4", (False,) * 3),
        ("7x:4x4x4", (True,) * 3),
        ("v5p:4x8x16", (True,) * 3),
        ("v6e:8x16", (False, True)),
        ("v5e:8x8", (False, False)),
        ("v5e:16x16", (True, True)),
        ("v2:8x16", (False, False)),
        ("v3:16x16", (False, False)),
        ("v3:32x32", (True, True)),
        ("v2:16x16", (True, True)),
    ],
)
def test_which_axes_are_rings(text, wrapped):
    spec = parse(text)
    assert spec.wraps == wrapped == wraps(families()[spec.chip], spec.dims)
    assert spec.kind == ("torus" if any(wrapped) else "mesh")


@pytest.mark.parametrize(
    "text, said",
    [
        ("v5p:2x2x4", "2x2x4 is a mesh: an axis under 4 chips has no optical wrap"),
        ("v6e:8x16", "8x16 wraps on its axis of 16 only: the axis of 8 is a line"),
        ("v6e:4x8", "4x8 is a mesh: only an axis of 16 is a ring"),
        ("v5p:16x8x4", "16x8x4 is written 4x8x16: the axes in ascending order"),
        ("v5p:16x8x4", "4x8x16 is 8 cubes of 4x4x4: every axis is a ring"),
        ("v5p:16x8x4", "v5p-1024, gets 8x8x8"),
        (
            "v5p:16x20x28",
            "is the whole pod, but the largest slice of v5p that can be scheduled is 16x16x24 (6,144 chips)",
        ),
        ("v2:8x8", "in the whole pod only, 16x16"),
        ("8t:4x4x8", "The shapes of 8t are not published"),
        ("8t:4x4x8:twisted", "Whether 8t can be twisted is not published"),
        ("v4:4x8x8:twisted", "going around an axis of 4 shifts both long axes by 4"),
        ("v5e:16x16:slices=199", "199 slices of 256 chips: no ICI joins them"),
    ],
)
def test_reasons(text, said):
    assert any(said in note for note in parse(text).notes), parse(text).notes


def test_the_largest_slice_and_the_pod():
    assert largest(V5P) == (16, 16, 24) and largest(V4) == (16, 16, 16) and largest(V5E) == (16, 16)
    assert prod(largest(IRONWOOD)) == 9216 and prod(largest(V8T)) == 9600
    assert not any("can be scheduled" in r for r in reasons(V5P, (16, 16, 24)))


def test_nearest_is_by_shape_and_chips_over_all_legal_shapes():
    assert nearest(V5P, (7, 7, 7)) == ((8, 8, 8), (8, 8, 12), (4, 8, 8))
    assert nearest(V5P, (11, 13, 23), 1) == ((12, 12, 24),)  # listed nowhere, but legal
    assert nearest(V5E, (3, 5), 1) == ((4, 4),)
    assert nearest(V5P, (100, 100, 100), 1) == ((16, 20, 28),)
    assert nearest(V5E, (4, 4, 4), 1) == ((8, 8),) and nearest(V5P, (16,), 1) == ((2, 2, 4),)
    for family in TORUS:
        assert all(nearest(family, s, 1) == (s,) for s in all_shapes(family)[::25])


def test_all_shapes_of_a_count_of_chips():
    assert shapes_of(V5P, 1024) == ((8, 8, 16), (4, 16, 16), (4, 8, 32), (4, 4, 64))
    assert shapes_of(V5E, 64) == ((8, 8),) and shapes_of(V5P, 100) == ()
    assert parse("v5p-384").dims == (4, 4, 12)  # the one shape of three cubes, though it is listed nowhere


@pytest.mark.parametrize("family", TORUS, ids=lambda f: f.name)
def test_twists(family):
    able = {s for s in all_shapes(family) if no_twist(family, s) is None}
    cubes = [s for s in all_shapes(family) if len(s) == 3 and s[0] % 4 == 0]
    defined = {s for s in cubes if s[2] == 2 * s[0] and s[1] in (s[0], s[2])}
    assert able == (defined if family.twistable is not False else set())


@pytest.mark.parametrize(
    "case",
    [
        ("7x7x7", "names no generation", "multiple of 4", "v5p:8x8x8", "torus:7x7x7"),
        ("4x4x8", "names no generation;", "v4:4x4x8"),
        ("v5e:3x5", "TPU v5e has no slice of 3x5", "1, 2, 4, 8 or 16", "v5e:4x4 (16 chips)", "v5e:2x4", "v5e:4x8"),
        ("v5e:2x8", "slices of v5e are", "v5e:2x4 (8 chips)"),
        ("v9:4x4x4", "no chip is called 'v9'", "v4:4x4x4", "7x:4x4x4"),
        ("v5:4x4x4", "TPU v5e or TPU v5p"),
        ("v5p:100x100x100", "1,000,000 chips are more than the pod's 8,960", "16x16x24", "v5p:16x20x28 (8,960 chips)"),
        ("v5p:4x4x4x4", "a slice of v5p has 3 axes", "v5p:4x8x8 (256 chips)"),
        ("v5p:16", "one number is no shape", "v5p:2x2x4 (16 chips)"),
        ("v5p", "has no shape", "v5p:8x8x8"),
        ("v5p:", "has no shape", "v5p:16x16x24"),
        ("v5p-768", "384 chips, comes in 2 shapes", "v5p:4x8x12 or v5p:4x4x24"),
        ("v5p:-4x4x4", "'-4x4x4' is no shape"),
        ("v5p:0x4x4", "'0x4x4' is no shape"),
        ("v5p:４x4x4", "is no shape"),
        ("v5p:4x4x8:slices=0", "slices 0", "1 to 512"),
        ("v5p:4x4x8:slices=two", "must be a whole number, not 'two'"),
        ("v5p:16x16x24:slices=100", "614,400 chips", "10 slices of 16x16x24"),
        ("v5p:4x4x8:twisted=perhaps", "yes or no"),
        ("v5p:4x4x8:wrapped", "no option 'wrapped'"),
        ("v6e:8x8:twisted", "v6e has no twisted torus"),
        ("v5p:2x2x4:twisted", "a twist shifts optical wraps", "v5p:4x4x8:twisted"),
        ("v4:4x4x4:twisted", "k x k x 2k and k x 2k x 2k only", "v4:4x4x8:twisted"),
        ("TPU v1:4x4", "TPU v1 has no slices"),
        ("TPU_8i:4x4", "boardfly:1024"),
        ("boardfly", "the number of chips is missing", "boardfly:1152"),
        ("boardfly:4x4", "'4x4' is no number of chips"),
        ("boardfly:0", "a group has 32 chips"),
        ("boardfly:99999999999999", "a group has 32 chips"),
        ("torus:1000x1000", "1,000,000 chips", "torus:256x256"),
        ("torus", "the shape is missing"),
        ("", "no topology is named"),
        ("x" * 10_000, "more than 200 characters"),
    ],
    ids=lambda case: case[0][:30],
)
def test_what_cannot_be_is_one_sentence_with_the_rule_and_the_nearest(case):
    text, *said = case
    with pytest.raises(QuestionError) as error:
        parse(text)
    assert all(s in str(error.value) for s in said) and "\n" not in str(error.value)
    assert len(str(error.value)) < 700


NAMES = st.sampled_from(
    [
        "v5p",
        "V4",
        "v5e",
        "7x",
        "tpu7x-2x2x4",
        "8t",
        "8i",
        "boardfly",
        "torus",
        "mesh",
        "h100",
        "nvl",
        "fattree",
        "rail",
        "edges",
        "v5p-256",
        "TPU v6e",
        "4x4x4",
        "mi300x",
        "",
    ]
)
SHAPES = st.from_regex(r"-?[0-9]{0,7}(x[0-9]{1,4}){0,6}", fullmatch=True)
OPTIONS = st.sampled_from(
    ["", ":twisted", ":slices=3", ":slices=", ":twisted=no", ":x=y", "::", ":chip=h100", ":spare=no"]
)
WRITTEN = st.builds(lambda n, s, o: f"{n}:{s}{o}", NAMES, SHAPES, OPTIONS)


@settings(deadline=None, max_examples=250)
@given(st.one_of(WRITTEN, st.text(max_size=60)))
@example("v5p:4x4x8:twisted:slices=2")
@example("\0:٣x٣")
@example("ſ5p:4x4x4")
def test_only_a_question_error_leaves_it_and_what_is_read_reads_back(text):
    try:
        spec = parse(text)
    except (QuestionError, InputError) as e:
        assert "\n" not in str(e)
        assert isinstance(e, QuestionError) or text.strip().lower().startswith("edges")  # a list of links is an input
        return
    again = parse(spec.text)
    assert (again.text, again.dims, again.chips, again.twisted) == (spec.text, spec.dims, spec.chips, spec.twisted)

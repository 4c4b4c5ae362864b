import json
from math import prod

import pytest

from catalog import chips, entry, families, family, slice_
from catalog.slices import WRAPS, SliceFamily
from errors import QuestionError

FAMILIES = list(families().values())


@pytest.mark.parametrize(
    "name, chips_, topology, hosts",
    [
        ("v5p-8", 4, "2x2x1", 1),
        ("v5p-128", 64, "4x4x4", 16),
        ("v5p-12288", 6144, "16x16x24", 1536),
        ("v5p-768", 384, None, 96),
        ("v4-8", 4, "2x2x1", 1),
        ("v4-4096", 2048, "8x16x16", 512),
        ("v3-32", 16, "4x4", 4),
        ("v5litepod-1", 1, "1x1", 1),
        ("v5litepod-16", 16, "4x4", 4),
        ("v5e-256", 256, "16x16", 64),
        ("v6e-256", 256, "16x16", 64),
        ("v5litepod-8", 8, "2x4", None),
        ("v6e-8", 8, "2x4", None),
        ("tpu7x-128", 64, "4x4x4", 16),
        ("tpu-7x-8", 4, "2x2x1", 1),
        ("TPU v5p-128", 64, "4x4x4", 16),
    ],
)
def test_accelerator_types(name, chips_, topology, hosts):
    found = slice_(name)
    assert (found.chips, found.topology, found.hosts) == (chips_, topology, hosts)


@pytest.mark.parametrize("name", ["v5p-9", "v5p-24", "v5p-0", "v5p-17922", "v6e-12", "v5litepod-512", "v4-6", "v2-16"])
def test_a_count_that_no_slice_has_is_refused_with_those_that_exist(name):
    with pytest.raises(QuestionError, match="such as v"):
        slice_(name)


@pytest.mark.parametrize("name", ["v5p", "v5-16", "H100-8", "8t-64", "v5p-", "-8", "v5p-１２８"])
def test_what_is_no_accelerator_type_is_refused(name):
    with pytest.raises(QuestionError, match="no accelerator type"):
        slice_(name)


@pytest.mark.parametrize(
    "name, expected",
    [
        ("v5p", "TPU v5p"),
        ("TPU v5p", "TPU v5p"),
        ("ct5p-hightpu-4t", "TPU v5p"),
        ("tpu-v6e-slice", "TPU v6e"),
        ("ct5lp", "TPU v5e"),
        ("ct5l-hightpu-8t", "TPU v5e"),
        ("tpu-v4-podslice", "TPU v4"),
        ("tpu7x", "TPU 7x"),
    ],
)
def test_families_are_found_by_what_the_cloud_calls_them(name, expected):
    assert family(name).name == expected


def test_machine_types_carry_the_chips_that_their_names_say():
    machines = [m for f in FAMILIES for m in f.machines]
    assert {m.name for m in machines} >= {
        "ct4p-hightpu-4t",
        "ct5lp-hightpu-1t",
        "ct5lp-hightpu-4t",
        "ct5lp-hightpu-8t",
        "ct5p-hightpu-4t",
        "ct6e-standard-1t",
        "ct6e-standard-4t",
        "tpu7x-standard-1t",
        "tpu7x-standard-4t",
    }
    for m in machines:
        assert m.name.endswith(f"-{m.chips}t")


@pytest.mark.parametrize("f", FAMILIES, ids=[f.name for f in FAMILIES])
def test_listed_shapes_obey_the_family_s_own_rule(f: SliceFamily):
    assert f.chip in chips() and f.wrap in WRAPS
    pod = f.numbers["pod_chips"].value
    assert pod == chips()[f.chip].value("scaleup_domain_chips")
    for t in f.topologies:
        axes = [int(n) for n in t.shape.split("x")]
        assert len(axes) == f.axes and t.chips <= pod and set(t.machines) <= {m.name for m in f.machines}
        assert t.chips == 1 or all(t.chips % m.chips == 0 for m in f.machines if m.name in t.machines)
        if f.axis_multiple and t.shape not in f.small_topologies:
            assert axes == sorted(axes) and all(n % f.axis_multiple == 0 for n in axes)
        if f.count_per_chip:
            assert slice_(f.accelerator_type(t.chips)).topology == t.shape
    if "cubes" in f.numbers:
        assert f.numbers["cubes"].value * f.numbers["cube_chips"].value == pod
    if largest := f.numbers.get("largest_slice"):
        assert largest.value is None or prod(int(n) for n in largest.value.split("x")) <= pod


def test_boardfly_counts_multiply_to_the_pod():
    numbers = {k: n.value for k, n in family("TPU 8i").numbers.items()}
    assert numbers["board_chips"] * numbers["group_boards"] * numbers["pod_groups"] == numbers["pod_chips"] == 1152
    assert family("TPU 8i").axes is None


def test_json_by_family_alias_chip_alias_and_accelerator_type():
    for name in ("v6e", "Trillium", "ct6e-standard-4t"):
        shown = json.loads(json.dumps(entry("slices", name)))
        assert shown["name"] == "TPU v6e" and shown["wrap"] == "axis_of_16"
        fourth = shown["topologies"][3]
        assert (fourth["topology"], fourth["chips"], fourth["accelerator_type"]) == ("4x4", 16, "v6e-16")
        assert fourth["machines"] == ["ct6e-standard-4t"]
    assert entry("slices", "v5p-128")["chips"] == 64
    with pytest.raises(QuestionError):
        entry("slices", "H100")


def test_a_count_that_is_not_known_is_not_zero():
    assert all(f.count("pod_chips") >= 256 for f in FAMILIES)
    with pytest.raises(ValueError, match="TPU 8t: largest_slice is not known"):
        families()["TPU 8t"].count("largest_slice")

"""What a TPU's operations are taken for, by the category that a trace prints, the operation's text and the program."""

import pytest

from collectors.device.hlo.names import category_of
from tests.collectors.traces import START_NS, PlaneBuilder, XSpace, environment, got


def read(tmp_path, *operations, spans=None):
    """One run of each operation (its text and statistics) after another, or at `spans` (start, duration)."""
    space = XSpace()
    plane = PlaneBuilder(space, "/device:TPU:0").stats(device_type_string="TPU v5e")
    for text, stats in operations:
        plane.metadata(text, **stats)
    at = spans or [(n * 100, 90) for n in range(len(operations))]
    plane.line("XLA Ops", [(text, *span) for (text, _), span in zip(operations, at, strict=True)])
    environment(space)
    return got(tmp_path, space.SerializeToString())


def categories(read) -> list[str]:
    return [op["category"] for op in read.rows["ops"]]


@pytest.mark.parametrize("category", ["host send", "host send-done", "host recv", "host recv-done"])
def test_waiting_for_the_host_is_no_computation(category):
    assert category_of(category) == "host"


@pytest.mark.parametrize(
    ("category", "found"),
    [
        ("non-fusion elementwise", "elementwise"),
        ("loop fusion", "fusion"),
        ("custom fusion", "fusion"),
        ("fusion", "fusion"),
    ],
)
def test_what_is_in_no_fusion_is_none(category, found):
    assert category_of(category) == found


_TO = "%{0}.3 = token[] {0}(%x), channel_id=3"


@pytest.mark.parametrize(
    ("category", "text", "found"),
    [
        ("host recv-done", _TO.format("recv-done"), "host"),
        ("recv-done", _TO.format("recv-done") + ", is_host_transfer=true", "host"),
        ("send", _TO.format("send") + ", is_host_transfer=true", "host"),
        ("send", _TO.format("send"), "collective"),
        (
            "host recv-done",
            _TO.format("recv-done")
            + ', is_host_transfer=true, frontend_attributes={_xla_host_transfer_handler_name="xla_megascale_runtime"}',
            "collective",
        ),
        ("loop fusion", "%fusion.3 = f32[8] fusion(%send.1), is_host_transfer=true", "fusion"),
    ],
)
def test_whom_a_transfer_reaches_is_told_by_its_text(tmp_path, category, text, found):
    assert categories(read(tmp_path, (text, {"hlo_category": category}))) == [found]


@pytest.mark.parametrize(
    ("category", "kind"),
    [
        ("custom fusion", None),
        ("all-gather fusion", "all-gather"),
        ("all-reduce-scatter fusion", "reduce-scatter"),
    ],
)
def test_fusions_that_start_and_end_a_collective_are_one(tmp_path, category, kind):
    texts = [
        f"%async-collective-{half}.2 = bf16[8]{{0}} fusion(bf16[8]{{0}} %x), kind=kCustom" for half in ("start", "done")
    ]
    between = "%fusion.1 = bf16[8]{0} fusion(bf16[8]{0} %async-collective-start.2), kind=kOutput"
    stats = {"hlo_category": category}
    operations = ((texts[0], stats), (between, {"hlo_category": "convolution fusion"}), (texts[1], stats))
    found = read(tmp_path, *operations, spans=((0, 10), (10, 500), (510, 400)))
    assert categories(found) == ["collective", "matmul", "collective"]
    (row,) = found.rows["collectives"]
    assert (row["kind"], row["bytes"], row["group"]) == (kind, None, None)
    assert (row["start_ns"] - START_NS, row["end_ns"] - START_NS) == (0, 910)


def test_a_collective_named_by_what_the_user_called_is_one_where_no_program_tells(tmp_path):
    text = "%psum.3 = f32[8]{0} all-reduce(f32[8]{0} %x), channel_id=1, replica_groups=[1,4]<=[4], to_apply=%add"
    found = read(tmp_path, (text, {"hlo_category": "all-reduce"}))
    (row,) = found.rows["collectives"]
    assert (row["op"], row["kind"], row["bytes"], row["dtype"]) == ("psum.3", "all-reduce", 32.0, "f32")


@pytest.mark.parametrize(
    "name", ["fusion.2", "async_collective_fusion.2", "my-async-collective-start.2", "async-collective-started"]
)
def test_other_fusions_are_no_collectives(tmp_path, name):
    text = f"%{name} = bf16[8]{{0}} fusion(bf16[8]{{0}} %async-collective-start.2), kind=kCustom"
    found = read(tmp_path, (text, {"hlo_category": "custom fusion"}))
    assert categories(found) == ["fusion"] and "collectives" not in found.rows


@pytest.mark.parametrize(
    ("category", "within", "flops"),
    [
        ("megacore fusion", (5, 590), [None, 64]),
        ("megacore fusion", (610, 590), [64, 64]),  # what it consists of is not listed: another operation follows
        ("loop fusion", (5, 590), [64, 64]),
    ],
)
def test_what_a_fusion_of_two_cores_consists_of_counts_once(tmp_path, category, within, flops):
    cost = {"flops": 64, "bytes_accessed": 32}
    outer = ("%megacore_fusion.1 = bf16[8]{0} fusion(bf16[8]{0} %x)", {"hlo_category": category, **cost})
    inner = ("%fusion.7 = bf16[8]{0} fusion(bf16[8]{0} %x)", {"hlo_category": "convolution fusion", **cost})
    rows = read(tmp_path, outer, inner, spans=((0, 600), within)).rows["ops"]
    assert [op["flops"] for op in rows] == flops
    assert [op["bytes"] for op in rows] == [n and 32 for n in flops]

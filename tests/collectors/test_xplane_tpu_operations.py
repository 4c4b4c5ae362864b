"""What a TPU's operations are taken for, by the category that a trace prints, the operation's text and the program."""

import pytest

from collectors.device.hlo.names import category_of
from tests.collectors.traces import PlaneBuilder, XSpace, environment, got


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

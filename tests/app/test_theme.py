"""One colour an account, readable on light and dark."""

from app import theme
from runs.accounts import ACCOUNTS

LIGHT, DARK = "#FFFFFF", "#191815"  # the page behind the figures


def test_every_account_has_a_colour_and_siblings_can_be_told_apart():
    assert set(theme.COLOURS) == set(ACCOUNTS)
    inside = [
        "useful_maths",
        "below_roofline",
        "padding",
        "recomputation",
        "exposed_communication",
        "straggler_wait",
        "input_wait",
        "device_idle",
        "unattributed",
    ]
    badput = [
        "infrastructure_recovery",
        "wasted_progress",
        "accelerator_initialization",
        "training_preparation",
        "program_startup",
        "data_loading",
        "checkpoint_save",
        "checkpoint_restore",
        "elastic_slice_down",
        "elastic_scale_up",
        "elastic_reinitialization",
        "custom",
        "other",
        "eval",
    ]
    idle = [name for name in ACCOUNTS if name.startswith("idle_")]
    inside.append("compilation")
    for siblings in (inside, badput, idle):
        looks = [(theme.colour([a]), theme.pattern([a])) for a in siblings]
        assert len(set(looks)) == len(looks)


def test_text_on_every_account_reads():
    for colour in theme.COLOURS.values():
        assert theme.contrast(colour, theme.text_on(colour)) >= 4.5


def test_thin_lines_read_on_both_pages():
    for colour in (*theme.THIN.values(), theme.GREY):
        assert theme.contrast(colour, LIGHT) >= 3
        assert theme.contrast(colour, DARK) >= 3


def test_parts_look_like_what_they_are_part_of():
    late = ("held", "productive", "straggler_wait", "waiting for host 7")
    assert theme.colour(late) == theme.COLOURS["straggler_wait"]
    assert theme.meaning(late).startswith("A part of straggler wait: Time in exposed collectives")
    assert theme.pattern(("held", "productive", "unattributed", "not_profiled")) == "/"
    assert theme.colour(("held", "badput", "custom", "eviction")) == "#999933"
    assert theme.colour(("anything",)) == "#999933"
    assert theme.title("not_profiled") == "not profiled"

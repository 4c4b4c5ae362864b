"""The ledger of a profile without steps, on its page, in the library and in words: no goodput is claimed."""

import pytest

from analyzers.time import ledger
from app.library.answers import goodput_of, picture
from app.questions.ledger import words
from app.questions.ledger.page import figures
from app.questions.ledger.waterfall import falls
from errors import format as fmt
from runs.run import facts_of
from tests.analyzers.device_rows import device_tables


def result(steps=(), chips=1, chip="v5p", busy_ns=40):
    tables = device_tables([("h", 0, "compute", "fusion", [(0, busy_ns)])], steps=steps, stop_ns=100)
    return ledger.analyze(tables, facts_of({"chips": chips, "chip": chip}), {})


def test_no_goodput_is_claimed():
    shown = {f.label: f.value for f in figures(result())}
    assert shown["Goodput"] == fmt.NO_VALUE
    bar, said = picture(result())
    assert (
        goodput_of(result()) is None
        and "no step read" in said
        and not any("kept steps" in title for _, title, _ in bar)
    )
    stepped = result([("h", 0, 0, 100)])
    assert {f.label: f.value for f in figures(stepped)}["Goodput"] == "100 %" and goodput_of(stepped) == 1


def test_idle_time_is_not_said_to_lie_inside_steps():
    said = words.verdict(result())
    assert "inside steps" not in said and "An idle device cost the most" in said
    assert "inside steps" in words.verdict(result([("h", 0, 0, 100)]))


def test_the_waterfall_leads_down_to_what_the_profile_shows():
    bars = falls(result().ledger.account)
    assert [(b.account.name, b.total) for b in bars][:2] == [("held", True), ("profiled", True)]


def test_what_lacks_is_named_profiles_of_other_chips_or_the_peak():
    """1 of 8 chips was profiled: 7/8 of the time is that of the others, whatever is known of the chip's peak."""
    for chip in ("v5p", "a chip of my own"):
        said = words.verdict(result(chips=8, chip=chip))
        assert "profiles show 1 of 8 chips. Add those of the other hosts, captured at the same time." in said
        assert "of step time" not in said and "which chip it was" not in said
    assert "the chip's peak is not known" in words.verdict(result(chip="a chip of my own", busy_ns=90))


def test_chips_that_were_not_profiled_are_held_as_long_as_those_that_were():
    """One step of 30 ns in a capture of 100 ns, of one of four chips: 400 chip-nanoseconds, as the note says."""
    book = result([("h", 0, 10, 30)], chips=4).ledger
    assert book.chip_seconds * 1e9 == pytest.approx(4 * 100)
    sources = [part.source for part in book.account.children if part.name == "unattributed"]
    assert sources == ["profiled on 1 of 4 chips, but outside the annotated steps"]
    assert "profiles show 1 of 4 chips." in words.verdict(result([("h", 0, 10, 30)], chips=4))

"""`whatif scaling`: the contract on the command line, runs of the store, what cannot be asked, and its page."""

import json

import pytest

from app.cli import main
from app.pages.scaling.figure import efficiency
from app.pages.scaling.page import MISLED
from app.whatif.scaling import SCALING
from app.whatif.scaling.wording import verdict
from errors import QuestionError
from tests.app import made_runs
from tests.app.test_pages import opened, words

POINTS = "512:13841:276480,2048:3801:291840,2432:3628:323456,2560:3020:282240,8192:1179:322560"


def answered(place=None, **query):
    return SCALING.answer(SCALING.from_query(query), place)


def test_the_contract(capsys):
    assert main(["whatif", "scaling", "--points", POINTS, "--at", "16384,40000", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"].startswith("From 512 to 8,192 chips, 73.4 % of the ideal is left. A chip does 85.6 %")
    last, [next_] = told["rows"][-1], told["predicted"]
    assert last["efficiency"] == pytest.approx(last["system_efficiency"] * last["sample_efficiency"])
    assert next_["low"] <= next_["seconds"] <= next_["high"] and not next_["far"]
    assert len(told["refused"]) == 1 and "40,000 chips, more than 4 times" in told["refused"][0]
    assert main(["whatif", "scaling", "--points", POINTS]) == 0
    assert "8,192" in capsys.readouterr().out


def test_which_run_of_a_size_is_named_first_changes_nothing():
    parts = ["8:100", "8:125", "8:120", "64:22.5", "64:17.5"]
    told = [answered(points=",".join(p)) for p in (parts, parts[::-1])]
    assert told[0].to_dict() == told[1].to_dict()
    assert verdict(told[0]).startswith("From 8 to 64 chips, 75.0 % of the ideal is left.")
    assert any("the median counts" in note for note in told[0].notes)
    assert not any("the median counts" in note for note in answered(points=POINTS).notes)


def test_runs_of_the_store_are_points(place):
    for chips, step_s in ((8, 4.0), (16, 2.2)):
        n = 50
        tables = {
            "steps": {
                "step": list(range(n)),
                "start_ns": [int(made_runs.START_NS + i * step_s * 1e9) for i in range(n)],
                "dur_ns": [int(step_s * 1e9)] * n,
            }
        }
        made_runs.write(place.store, f"run {chips}", tables, {"chips": chips, "chip": "TPU v5e"})
    made = answered(place, runs="run 8,run 16")
    assert [(r.point.chips, r.point.seconds) for r in made.rows] == [(8, pytest.approx(4)), (16, pytest.approx(2.2))]
    assert made.rows[1].efficiency == pytest.approx(4 / 2.2 / 2)
    assert "too few numbers of chips" in verdict(made) and any("usual step" in note for note in made.notes)


def test_a_run_that_does_not_tell_its_chips_is_named(place):
    tables = {
        "steps": {"step": [0, 1], "start_ns": [made_runs.START_NS, made_runs.START_NS + 10**9], "dur_ns": [10**9] * 2}
    }
    made_runs.write(place.store, "bare", tables, {})
    with pytest.raises(QuestionError, match="run 'bare' does not tell its number of chips"):
        answered(place, runs="bare", points="8:1")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({}, "fewer than two numbers of chips"),
        ({"points": "8:1"}, "fewer than two numbers of chips"),
        ({"points": "8:1,8:2"}, "fewer than two numbers of chips"),
        ({"points": "8:0,16:1"}, "point '8:0'"),
        ({"points": "8,16"}, "point '8'"),
        ({"points": "8:nan,16:1"}, "point '8:nan'"),
        ({"points": "8:1:0,16:1"}, "point '8:1:0'"),
        ({"points": "0:1,16:1"}, "point '0:1'"),
        ({"points": ",".join(f"{n}:1" for n in range(1, 300))}, "at most 200"),
        ({"points": "8:1,16:1", "at": ",".join(map(str, range(8, 209)))}, "201 numbers of chips .* at most 200"),
        ({"points": "8:1,16:1", "at": "x"}, "a number of chips"),
        ({"points": "8:1,16:1", "kind": "odd"}, "kind"),
        ({"runs": "gone"}, "no store is open"),
    ],
)
def test_what_cannot_be_asked(query, said):
    with pytest.raises(QuestionError, match=said):
        answered(**query)


@pytest.mark.parametrize(
    ("points", "kind", "said"),
    [
        ("8:4,16:2,32:1", "strong", "All points are taken to learn from as many samples."),
        (
            "8:4:10,16:2:10,32:1",
            "strong",
            "Samples of 1 of 3 points are not given: what one teaches is not known there.",
        ),
        (
            "8:4,16:2:10,32:1:9",
            "strong",
            "Samples of 1 of 3 points are not given: what one teaches is not known there. The ",
        ),
        ("8:4:10,16:2:10,32:1:9", "strong", None),
        ("8:4,16:4,32:4", "weak", None),
        ("8:4:10,16:4:20,32:4", "weak", "Samples are not looked at in weak scaling"),
    ],
)
def test_what_is_taken_of_samples_is_said_of_the_points_that_have_them(points, kind, said):
    notes = [n for n in answered(points=points, kind=kind).notes if "samples" in n.lower()]
    assert len(notes) == (said is not None) and (not notes or notes[0].startswith(said))


def test_ends_of_what_may_be_given_stay_finite():
    made = answered(points="1:1e-9,2:9e9,4:1e-9,2147483647:9e9", at="2147483647,1")
    json.dumps(made.to_dict(), allow_nan=False)
    assert "inf" not in verdict(made) and "nan" not in verdict(made)


def test_a_published_job_is_not_carried_from_32_slices_to_199():
    """MaxText 32B on TPU v5e: MFU of 66.86 to 60.40 % on 1 to 32 slices, and 44.67 % on 199: two thirds."""
    told = answered(**MISLED)
    shares = [60.40 / 66.86, 66.86 / 66.86]
    assert [told.rows[-1].efficiency, told.rows[0].efficiency] == pytest.approx(shares, abs=1e-4)
    assert told.curve.worst < 0.01
    beyond = told.rows[0].point.seconds / told.curve.seconds(199 * 256)
    assert beyond > 44.67 / 66.86 + 0.1, "what it would have told"
    assert [p.chips for p in told.predicted] == [16_384]
    [refused] = told.refused
    assert refused.startswith("50,944 chips, more than 4 times the 8,192 that were measured; expected at most 32,768")


def test_the_picture_ends_where_the_curve_does():
    drawn = efficiency(answered(points=POINTS, at="16384,30000"))
    named = {trace.name: trace for trace in drawn.data}
    assert list(named["measured"].x) == [512, 2048, 2432, 2560, 8192] and list(named["asked"].x) == [16384, 30000]
    assert max(named["curve"].x) <= 2 * 8192 and max(named["far from any point"].x) == 4 * 8192
    assert {a.text for a in drawn.layout.annotations} == {"ideal", "no curve beyond 32,768 chips"}
    band = named["nine of ten fits"]
    half = len(band.x) // 2
    assert all(low <= high for low, high in zip(band.y[:half], band.y[: half - 1 : -1], strict=True))
    few = efficiency(answered(points="8:4,16:2.2"))
    assert {trace.name for trace in few.data} == {"measured"}


def test_the_page(place):
    page = opened("pages/scaling/page.py")
    assert not page.exception and "73.4 % of the ideal is left" in words(page) and "An example" in words(page)
    few = opened("pages/scaling/page.py", points="8:4,16:2.2")
    assert not few.exception and "too few numbers of chips" in words(few) and "An example" not in words(few)
    misled = opened("pages/scaling/page.py", **MISLED)
    assert not misled.exception and "it is not told" in words(misled) and "50,944 chips, more than 4" in words(misled)
    refused = opened("pages/scaling/page.py", points="8")
    assert not refused.exception and "CHIPS:SECONDS" in words(refused)

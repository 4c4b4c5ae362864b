"""`whatif goodput`: the contract on the command line, what cannot be asked, and its sentences."""

import itertools
import json
from urllib.parse import parse_qsl

import numpy as np
import pytest

from app.cli import main
from app.pages.goodput_planner.figure import over_interval, when_elastic_pays, where_it_goes
from app.pages.goodput_planner.form import CLAIM
from app.pages.goodput_planner.page import api_address
from app.whatif.checkpoint.asked import Asked as Checkpoint
from app.whatif.checkpoint.plan import plan
from app.whatif.goodput import GOODPUT_PLAN, curves
from app.whatif.goodput.answers import find
from app.whatif.goodput.asked import Asked
from app.whatif.goodput.claim_words import held
from app.whatif.goodput.wording import TITLES, verdict
from errors import QuestionError
from tests.app.test_pages import opened, words

QUERY = {"chips": "16384", "mttf_chip_h": "45000", "save_s": "30", "restart_s": "600"}


def answered(**more):
    query = {k: v for k, v in {**QUERY, **more}.items() if v is not None}
    return GOODPUT_PLAN.answer(GOODPUT_PLAN.from_query(query), None)


def test_the_contract(capsys):
    arguments = [f"--{k.replace('_', '-')}={v}" for k, v in QUERY.items()]
    assert main(["whatif", "goodput", *arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["low"] < told["goodput"] < told["high"] and told["basis"] == "modelled"
    assert told["goodput"] + sum(told["badput"].values()) == pytest.approx(1)
    assert told["goodput"] == pytest.approx(told["closed_form"], abs=0.005)
    assert told["mttf_s"] == pytest.approx(45_000 * 3600 / 16_384)
    assert told["failures"] == pytest.approx(54 * 86_400 / told["mttf_s"], rel=0.02)
    assert told["interval_s"] == told["best_interval_s"] and told["trials"] == 1000
    assert main(["whatif", "goodput", *arguments]) == 0
    assert "of the time becomes kept work" in capsys.readouterr().out


def test_the_same_question_has_the_same_answer_and_another_seed_another():
    assert answered().to_dict() == answered().to_dict() != answered(seed="1").to_dict()


def test_the_largest_loss_is_the_largest():
    for more in ({}, {"save_s": "600"}, {"wait_s": "3000"}, {"elastic": "true", "wait_s": "90000", "slices": "2"}):
        made = answered(**more)
        where, share = max(made.badput.items(), key=lambda item: item[1])
        assert f"The largest loss is {TITLES[where]}, {share * 100:.3g}" in verdict(made).replace(".0 %", " %")


def test_elastic_training_gains_where_machines_come_late():
    waits, goes_on = answered(wait_s="3600"), answered(wait_s="3600", elastic="true", slices="12", resume_s="60")
    assert goes_on.goodput > waits.goodput + 0.1
    assert "slices that are away" in GOODPUT_PLAN.words(goes_on).table.rows[2][0] or goes_on.badput["slices_away"] > 0


def test_spares_are_told():
    made = answered(spares="2", repair_h="48")
    assert made.spare_is_free < 0.5 and made.closed_form is None
    assert "A spare is free at" in verdict(made).whole


def test_a_job_that_hardly_ever_fails():
    made = answered(chips="8")
    assert "of such jobs see a failure at all" in verdict(made) and made.goodput > 0.99


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"chips": None}, "--chips"),
        ({"mttf_chip_h": None}, "--mttf-chip-h"),
        ({"mttf_chip_h": "0"}, "--mttf-chip-h 0"),
        ({"mttf_chip_h": "inf"}, "--mttf-chip-h"),
        ({"save_s": "-1"}, "--save-s -1"),
        ({"save_s": "1e9"}, "a save shorter than the mean time to failure"),
        ({"blocked_s": "60"}, "no longer than the save"),
        ({"blocked_s": "1", "interval_s": "5"}, "at least 29 s between two"),
        ({"interval_s": "0"}, "--interval-s 0"),
        ({"slices": "4"}, "not elastic"),
        ({"elastic": "true", "spares": "2"}, "one of the two"),
        ({"elastic": "true", "slices": "1"}, "two slices or more"),
        ({"repair_h": "3"}, "a repair without spares"),
        ({"trials": "5"}, "trials"),
        ({"spares": "5000"}, "--spares 5000; expected a whole number from 0 to 4,096"),
        ({"spares": "-1"}, "--spares -1"),
        ({"wait_s": "nan"}, "--wait-s"),
        ({"restart_s": "1e308"}, "--restart-s 1e308"),
        ({"mttf_chip_h": "-4"}, "--mttf-chip-h -4"),
        ({"days": "0"}, "--days 0"),
        ({"chips": "0"}, "--chips 0"),
        ({"interval_s": "1e9"}, "in a job of 54 d; expected at most 4.6656e\\+06 s between two. Leave it away"),
        (
            {"save_s": "20000"},
            "fail every 2 h 45 min; expected a save shorter .* At most 9,887 s for a save, or at most 8,100 chips",
        ),
        ({"local_share": "0.5"}, "--local-save-s with it"),
        ({"saves_per_remote": "4"}, "--local-save-s with it"),
        ({"elastic": "true", "local_save_s": "3"}, "a local tier for an elastic job; expected one of the two"),
        ({"local_save_s": "0"}, "--local-save-s 0"),
        (
            {"local_save_s": "1e12"},
            "a local save of 1e\\+12 s where a failure comes every .* within the 30 s that a remote",
        ),
        ({"elastic": "true", "restart_s": "1e12"}, "a pause of 1e\\+12 s; expected at most 5e\\+11 s"),
        ({"local_save_s": "3", "local_share": "1.5"}, "--local-share 1.5"),
        ({"local_save_s": "3", "saves_per_remote": "0"}, "--saves-per-remote 0"),
        ({"chips": "1000000000", "save_s": "1e-3", "mttf_chip_h": "1e4", "trials": "100000"}, "Draw fewer lives"),
    ],
)
def test_what_cannot_be_asked(change, said):
    with pytest.raises(QuestionError, match=said):
        answered(**change)


def test_what_elastic_training_gains_is_told_beside_the_same_job_that_restarts_the_whole():
    made, whole = answered(wait_s="3600", elastic="true", slices="12", resume_s="60"), answered(wait_s="3600")
    told = made.to_dict()["elastic"]
    assert told["goodput_whole"] == whole.goodput and (told["low_whole"], told["high_whole"]) == whole.range
    assert told["gain"] == pytest.approx(made.goodput - whole.goodput) and told["slices"] == 12
    points, ratio = 100 * told["gain"], 100 * told["gain"] / whole.goodput
    assert f"elastic keeps {points:.1f} points ({ratio:.1f} %) more" in verdict(made).whole
    assert whole.to_dict()["elastic"] is None
    worse = answered(elastic="true", resume_s="2000")
    assert worse.gain < 0 and "points" in verdict(worse).whole and ") less." in verdict(worse).whole


def test_a_local_tier_keeps_more_where_most_failures_leave_its_copies():
    one, two = answered(wait_s="60"), answered(wait_s="60", local_save_s="2", local_restart_s="60", local_share="0.9")
    assert two.goodput > one.goodput + 0.02 and two.goodput == pytest.approx(two.closed_form, abs=0.006)
    told = two.to_dict()
    assert told["saves_per_remote"] > 1 and told["interval_s"] < one.life.interval_s
    assert f"{told['saves_per_remote']:,} saves for one that is remote, the best." in verdict(two).whole
    assert any("local copies" in note for note in told["notes"]) and one.to_dict()["saves_per_remote"] is None
    for more in ({"interval_s": "400"}, {"saves_per_remote": "5"}, {"interval_s": "400", "saves_per_remote": "5"}):
        other = answered(wait_s="60", local_save_s="2", local_restart_s="60", local_share="0.9", **more)
        assert other.closed_form <= two.closed_form + 1e-9
        for name, value in more.items():
            assert getattr(other.life, name) == float(value)


def test_the_best_interval_is_told_with_how_many_saves_are_remote():
    """Of two saves for one that is remote the best interval is that of two, not that of any number."""
    tiers = {"chips": "16384", "mttf_chip_h": "45000", "save_s": "60", "restart_s": "600", "local_save_s": "3"}
    best, two, short = (
        answered(**tiers, trials="20", **more) for more in ({}, {"saves_per_remote": "2"}, {"interval_s": "100"})
    )
    assert verdict(best).whole.endswith(f"{best.life.saves_per_remote} saves for one that is remote, the best.")
    assert two.best == (two.life.interval_s, 2) and two.best_interval_s > 2 * best.best_interval_s
    assert verdict(two).whole.endswith("2 saves for one that is remote, the best for so many.")
    assert two.closed_form > answered(**tiers, saves_per_remote="2", interval_s=str(best.best_interval_s)).closed_form
    assert short.best == best.best and short.to_dict()["best_saves_per_remote"] == best.life.saves_per_remote
    assert verdict(short).whole.endswith(f", {best.life.saves_per_remote} for one that is remote.")
    other = answered(**tiers, trials="20", interval_s=str(best.best_interval_s), saves_per_remote="200")
    assert "; the best for so many is " in verdict(other).whole


def test_a_short_job_saves_no_later_than_its_end():
    made = answered(chips="1", days="1")
    assert made.best_interval_s == made.life.interval_s == 86_400 and "1 d of work, the best" in verdict(made).whole


def test_ends_of_what_may_be_given_are_answered_or_refused_in_a_sentence():
    ends = {
        "chips": ("1", "1000000000000"),
        "mttf_chip_h": ("1e-3", "1e12"),
        "save_s": ("1e-9", "1e12"),
        "wait_s": (None, "1e12"),
        "restart_s": (None, "1e11"),
        "days": ("1e-3", "1e5"),
        "elastic": (None, "true"),
        "local_save_s": (None, "1e-9"),
    }
    answers = 0
    for values in itertools.product(*ends.values()):
        try:
            made = answered(**dict(zip(ends, values, strict=True)), trials="10")
        except QuestionError as e:
            assert len(str(e)) < 400 and "nan" not in str(e)
            continue
        json.dumps(made.to_dict(), allow_nan=False)
        assert 0 <= made.goodput <= 1 + 1e-9 and "nan" not in verdict(made).whole
        answers += 1
    assert answers > 20


def test_the_page(place):
    page = opened("pages/goodput_planner/page.py")
    assert not page.exception and "of the time becomes kept work" in words(page)
    assert {m.label[:-2] for m in page.metric} >= {"Goodput", "A failure every", "Largest loss", "A save after every"}
    assert "No paper was found" in words(page)
    refused = opened("pages/goodput_planner/page.py", **QUERY, wait_s="-1")
    assert not refused.exception and "Waiting for machines (s): -1; expected" in words(refused)


@pytest.mark.parametrize(
    "more",
    [
        {"local_save_s": "2", "local_share": "0"},
        {"elastic": "true", "resume_s": "0", "wait_s": "600"},
        {"spares": "3", "repair_h": "0", "seed": "0"},
    ],
)
def test_the_address_of_the_page_asks_the_question_that_it_answers(more):
    made = answered(**more, days="1", trials="10")
    query = dict(parse_qsl(api_address(made).partition("?")[2]))
    assert query.keys() == {*QUERY, *more, "days", "trials"}
    again = GOODPUT_PLAN.answer(GOODPUT_PLAN.from_query(query), None)
    assert again.asked == made.asked and again.to_dict() == made.to_dict()


def test_the_claim_on_the_page_can_be_moved(place):
    page = opened("pages/goodput_planner/page.py", **CLAIM, days="3", trials="50")
    assert not page.exception and "a replacement must take 10 min 33 s or longer to gain 15 points" in words(page)
    assert any(m.label.startswith("Elastic gains") for m in page.metric)
    moved = opened("pages/goodput_planner/page.py", **{**CLAIM, "resume_s": "600"}, days="3", trials="50")
    assert not moved.exception and "10 min 33 s or longer" not in words(moved)


@pytest.mark.parametrize("more", [{"wait_s": "1e12"}, {"mttf_chip_h": "1e12"}, {"save_s": "3000"}, {"slices": "2"}])
def test_the_map_of_the_claim_is_drawn_at_the_ends_of_what_may_be_asked(more):
    asked = {**CLAIM, "days": "1", "trials": "10"} | more
    made = GOODPUT_PLAN.answer(GOODPUT_PLAN.from_query(asked), None)
    found = curves.over_failures(made)
    assert np.isfinite(found.points).all() and "gain" in held(made)
    assert len(when_elastic_pays(made, found).data) == 4


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"wait_s": "1200"}, "which the wait here is. With a wait of 20 min it does where a chip fails every 1,5"),
        ({"wait_s": "0"}, "while it is 0 s here. Without a wait it gains as much at no failure rate"),
        ({"restart_s": "4000"}, "it gains 15 points without any wait"),
        ({"slices": "8", "mttf_chip_h": "41025.6", "wait_s": "1200"}, "which the wait here is"),
        (
            {"slices": "8", "mttf_chip_h": "41025.6", "wait_s": "400000", "days": "10"},
            "it gains 15 points from a wait of 12 min 36 s, though no longer at the wait of 4 d 15 h here.",
        ),
        (
            {"mttf_chip_h": "500", "save_s": "1", "restart_s": "10", "wait_s": "1200", "resume_s": "2", "days": "0.01"},
            " or less often, up to the 15,000 h that were tried.",
        ),
        (
            {"mttf_chip_h": "5000", "save_s": "1", "restart_s": "10", "wait_s": "1e5", "slices": "2", "resume_s": "2"},
            "it does at every failure rate that was tried: a chip fails every 167 h to 150,000 h.",
        ),
        ({"slices": "2", "mttf_chip_h": "1000", "wait_s": "60"}, "no wait for a replacement gives 15 points"),
    ],
)
def test_what_the_claim_takes_is_worded_as_the_closed_forms_have_it(change, said):
    made = GOODPUT_PLAN.answer(GOODPUT_PLAN.from_query({**CLAIM, "days": "0.2", "trials": "10"} | change), None)
    assert said in held(made)


def test_pictures_show_what_was_drawn():
    made = answered(wait_s="1200", elastic="true", resume_s="60", trials="50")
    bars = where_it_goes(made)
    for place in (0, 1):
        assert sum(trace.x[place] for trace in bars.data) == pytest.approx(100)
    closed, lives = curves.over_interval(made)
    assert max(b.likely for b in closed.bands) == pytest.approx(made.closed_form, abs=1e-3)
    chips = curves.over_chips(made)
    assert chips.at[0] == 2048 and chips.at[-1] == 8 * 16384
    shares = [b.likely for b in chips.bands]
    assert shares == sorted(shares, reverse=True) and all(b.low <= b.likely <= b.high for b in lives.bands)
    assert chips.bands[4].likely == pytest.approx(made.goodput, abs=6e-3)


def test_with_spares_there_is_no_formula_to_draw():
    made = answered(spares="4", trials="20", days="5")
    closed, lives = curves.over_interval(made)
    assert closed.at == () and {t.name for t in over_interval(made, closed, lives).data} == {"lives", "as asked"}


def test_numbers_of_chips_that_could_not_save_are_left_out_of_the_picture():
    made = answered(save_s="5000", trials="20")
    assert max(curves.over_chips(made).at) < 8 * 16384


BACKGROUND = {"chips": 4096, "mttf_chip_h": 50_000, "save_s": 600, "blocked_s": 1, "local_save_s": 2, "restart_s": 120}


def test_a_remote_save_in_the_background_is_written_before_the_next_begins():
    life = find(Asked(**BACKGROUND, days=5, trials=10)).life
    assert life.saves_per_remote > 1
    assert life.saves_per_remote * (life.interval_s + 2) - 2 >= 599 - 1e-6
    for given in ({"interval_s": 100, "saves_per_remote": 2}, {"interval_s": 290, "saves_per_remote": 2}):
        with pytest.raises(QuestionError, match=r"at least 298\.5 s between two"):
            find(Asked(**BACKGROUND, **given))
    assert find(Asked(**BACKGROUND, interval_s=298.5, saves_per_remote=2, days=5, trials=10)).life.interval_s == 298.5


def test_local_saves_that_would_not_help_are_no_cure():
    """Local saves that block for a minute beside remote ones that block for a second."""
    made = plan(Checkpoint(save_s=600, blocked_s=1, mttf_s=43_945, restart_s=120, interval_s=600))
    assert "two_tier" in dict(made.cures.left_out)
    made = plan(Checkpoint(save_s=600, mttf_s=43_945, restart_s=120, interval_s=3600))
    assert "two_tier" in [c.name for c in made.cures.offered]

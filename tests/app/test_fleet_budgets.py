"""Budgets and the digest say what they know and no more, whatever cannot be counted, is told twice or oddly named."""

import time
import unicodedata
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from analyzers.fleet import FleetAsked, fleet
from analyzers.fleet.budget import left_of, of_team
from analyzers.fleet.periods import period_of
from app.fleet import budgets, digest
from app.fleet.asking import ask_fleet, runs_of
from app.fleet.words import verdict
from app.follow.alerts.webhook import SLACK_NAME, SLACK_TEXT, slack
from app.library.laid import known_of
from app.library.table import table
from app.mcp.tools.fleet import FLEET
from app.pages.fleet.figure import by_group, spent_of
from runs.alert_book import AlertBook, Target
from runs.live import Live
from tests.analyzers.test_fleet import steady
from tests.app.alerting import webhook
from tests.app.test_fleet import MONDAY_NS, NOW_NS, S, steps, told
from tests.app.test_pages import opened, words


def standing_of(runs, unit="chip_hours", amount=1000.0, team="t", now_ns=NOW_NS):
    runs = [replace(r, tags={"team": team}) for r in runs]
    return left_of(runs, team, unit, amount, now_ns, UTC)


JANUARY = datetime(2026, 1, 19, tzinfo=UTC)


@pytest.mark.parametrize("why", ["pending", "chips_unknown", "damaged", "undated", "no_ledger"])
def test_a_budget_whose_runs_cannot_be_counted_is_not_said_to_be_untouched(why):
    run = steady(JANUARY, 10)
    lacks = {
        "pending": replace(run, pending=True, spent=None),
        "chips_unknown": replace(run, spent=replace(run.spent, chips_known=False)),
        "damaged": replace(run, damaged=True),
        "undated": replace(run, spent=replace(run.spent, held=(), cells=None)),
        "no_ledger": replace(run, spent=None),
    }[why]
    left = standing_of([lacks])
    assert left.spent is None and left.state == "" and left.left_out == {why: 1} and left.at_least
    said = budgets.sentence(left)
    assert "is not known. 1 run of the team is not counted: 1 " in said and "held a chip" not in said
    with_one = standing_of([lacks, replace(run, run_id="known")])
    assert with_one.state == "" and "at most 920 chip-hours are left" in budgets.sentence(with_one)
    assert "not counted" in budgets.sentence(with_one) and budgets.table([with_one]).rows[0][4].startswith("≤ ")


def test_what_cannot_be_counted_and_was_over_before_the_month_lacks_nowhere():
    run = steady(datetime(2025, 12, 1, tzinfo=UTC), 10)
    before = replace(run, pending=True, spent=None, created_ns=run.spent.held[0][1])
    over = replace(run, spent=replace(run.spent, chips_known=False))
    left = standing_of([before, over])
    assert (left.left_out, left.spent, left.state) == ({}, 0.0, "within")


def test_chip_time_of_a_job_is_in_the_budget_of_one_team_as_it_is_in_one_part_of_the_fleet(place, monkeypatch):
    short, long = (steady(JANUARY, hours, job="j", chip="x", name=f"{hours}", created_ns=0) for hours in (24, 48))
    runs = [replace(short, tags={"team": "t"}), replace(long, tags={"team": "u"})]
    parts = dict(fleet(runs, FleetAsked(since_ns=0, until_ns=NOW_NS)).groups)
    monkeypatch.setattr(budgets, "runs_of", lambda *_: runs)
    for team in "tu":
        budgets.set_budget(place, team, "chip_hours", 500.0)
    t, u = budgets.standing(place, UTC, "now", NOW_NS)
    assert (t.spent, u.spent) == (0.0, pytest.approx(48 * 8)) and u.spent == pytest.approx(parts["u"].chip_s / 3600)
    assert "t" not in parts and "no chip time of this team counts" in budgets.sentence(t)


def test_a_simulated_run_is_no_beginning_of_a_team():
    simulated = replace(steady(datetime(2025, 10, 1, tzinfo=UTC), 10), simulated=True)
    left = standing_of([steady(JANUARY, 10), simulated])
    assert left.projected is None and "2 are needed" in left.why_not


def test_where_chips_have_no_price_at_most_the_rest_is_left_and_it_comes_to_at_least():
    priced = [steady(datetime(2026, 1, day, tzinfo=UTC), 10, usd=50.0, name=f"{day}") for day in (2, 9, 16)]
    left = standing_of([*priced, steady(JANUARY, 10)], "usd")
    said = budgets.sentence(left)
    assert left.state == "" and "at least $150 of $1,000 spent" in said and "at most $850 are left" in said
    assert "weeks before: at least $" in said and "of what is counted" in said
    row = budgets.table([left]).rows[0]
    assert row[4] == "≤ $850" and row[5].startswith("≥ ") and row[6] == "not known"


def weeks_before(now, **of_week):
    """A run of each of the last four weeks, all of it, at the same pace; `of_week`: how one of them differs."""
    runs = [steady(now - timedelta(days=7 * (n + 1)), 168, usd=1344.0, name=f"w{n}") for n in range(4)]
    return [replace(r, spent=replace(r.spent, **of_week.get(r.name, {}))) for r in runs]


def test_a_week_of_which_nothing_can_be_counted_is_no_week_of_nothing():
    now = datetime(2026, 1, 8, tzinfo=UTC)
    at, ends = {"now_ns": int(now.timestamp()) * S, "amount": 5000.0}, 1344 * (1 + 24 / 7)
    dark = {"usd": None}
    one = standing_of(weeks_before(now, w2=dark), "usd", **at)
    assert one.projected == pytest.approx((ends,) * 3) and one.state == "on its way over"
    assert not one.projected_at_least and "at least" not in budgets.sentence(one)
    most = standing_of(weeks_before(now, w1=dark, w2=dark, w3=dark), "usd", **at)
    assert most.projected is None and "1 whole week of the team are known, 2 are needed" in most.why_not
    held = standing_of(weeks_before(now, w2={"chips_known": False}), **at)
    assert held.projected == pytest.approx((ends,) * 3) and held.spent == pytest.approx(1344)


def test_a_week_of_which_some_cannot_be_counted_makes_a_month_that_comes_to_at_least_that():
    now = datetime(2026, 1, 8, tzinfo=UTC)
    beside = steady(now - timedelta(days=20), 24, name="beside")
    left = standing_of([*weeks_before(now), beside], "usd", 9000.0, now_ns=int(now.timestamp()) * S)
    assert left.projected_at_least and not left.at_least and left.state == ""
    assert left.to_dict()["projected"]["is_at_least"] and not left.to_dict()["spent_is_at_least"]
    assert "weeks before: at least $" in budgets.sentence(left) and budgets.table([left]).rows[0][5].startswith("≥ ")
    assert "at least" not in budgets.sentence(left).partition("If it")[0]


def test_a_budget_finds_its_team_however_that_is_written(place):
    composed, apart = "Équipe a", unicodedata.normalize("NFD", "équipe  A")
    run = replace(steady(JANUARY, 1), tags={"team": apart})
    assert [len(of_team([run, steady(JANUARY, 2)], team)) for team in (composed, apart)] == [1, 1]
    budgets.set_budget(place, composed, "usd", 5.0)
    budgets.set_budget(place, apart, "usd", 6.0)
    assert [(b.team, b.amount) for b in budgets.book(place).all()] == [(composed, 6.0)]
    budgets.remove_budget(place, apart)
    assert not budgets.book(place).all()


def test_teams_whose_long_names_are_cut_alike_have_a_bar_each():
    long = "pretraining-of-large-models-{}-on-the-big-cluster-eu"
    teams = [long.format("a"), long.format("b"), "3 others", *(f"team {n}" for n in range(15))]
    runs = [replace(steady(JANUARY, 50 - n, name=t), tags={"team": t}) for n, t in enumerate(teams)]
    figure = by_group(fleet(runs, FleetAsked()))
    bars = figure.data[0].y
    assert len(set(bars)) == len(bars) == 16 and list(figure.layout.yaxis.tickvals) == list(bars)
    shown = figure.layout.yaxis.ticktext
    assert shown[0] == shown[1] and shown[2] == shown[-1] == "3 others"
    assert len({*spent_of([standing_of(runs[:1], team=t) for t in teams[:2]]).data[0].y}) == 2


@pytest.mark.parametrize(
    ("owners", "says"),
    [
        ("abcde", ", 20 % of it of a."),
        ("aab", ", most of it of a."),
        ("ab", ", 50 % of it of a."),
        ((None,), "(100 %)."),
    ],
)
def test_the_digest_says_most_of_it_of_a_majority_alone(place, monkeypatch, owners, says):
    start, runs = datetime.fromtimestamp(MONDAY_NS // S + 7 * 86_400, UTC), []
    for n, owner in enumerate(owners):
        run = steady(start, 10, save_in=range(10), name=f"{n}", tags={"owner": owner} if owner else {})
        runs.append(replace(run, spent=replace(run.spent, entries=run.spent.entries[-1:])))
    monkeypatch.setattr(digest, "runs_of", lambda *_: runs)
    found = digest.of_last_week(place, UTC, "now", MONDAY_NS + 15 * 86_400 * S)
    (lost,) = [text for text in found.sentences if text.startswith("Most was lost")]
    assert lost.endswith(says)


@pytest.mark.parametrize(
    ("unknown", "begins"), [(0.9, "90 % of the time cannot be told; of what is known, most"), (0.05, "Most")]
)
def test_of_little_that_is_known_the_largest_loss_is_told_as_such(place, monkeypatch, unknown, begins):
    start = datetime.fromtimestamp(MONDAY_NS // S + 7 * 86_400, UTC)
    run = steady(start, 10, save_in=range(10), name="dark")
    whole, save = run.spent.chip_s, run.spent.entries[-1]
    parts = {"productive/unattributed/not_profiled": unknown, save.path: 0.1, "productive/useful_maths": 0.9 - unknown}
    entries = tuple(replace(save, path=path, chip_s=whole * part) for path, part in parts.items())
    run = replace(run, spent=replace(run.spent, entries=entries))
    monkeypatch.setattr(digest, "runs_of", lambda *_: [run])
    found = digest.of_last_week(place, UTC, "now", MONDAY_NS + 15 * 86_400 * S)
    (lost,) = [text for text in found.sentences if "was lost to" in text]
    assert lost.startswith(f"{begins} was lost to checkpoint save: ")
    assert f"{begins} was lost to checkpoint save: " in verdict(fleet([run], FleetAsked())).whole


def test_a_digest_that_takes_longer_than_a_claim_lasts_is_posted_once(place, monkeypatch):
    monkeypatch.setattr("runs.digest_book.CLAIM_NS", 0)
    made = digest.of_last_week
    now_ns = MONDAY_NS + 15 * 86_400 * S

    def slowly(*asked):
        monkeypatch.setattr(digest, "of_last_week", made)
        assert "was delivered" in digest.tell(place, UTC, now_ns)  # another process, meanwhile
        return made(*asked)

    monkeypatch.setattr(digest, "of_last_week", slowly)
    with webhook() as (url, got):
        AlertBook(place.registry.path).set_target(Target(url, "json", "http://here:8501"))
        assert "sent already" in digest.tell(place, UTC, now_ns)
    assert len(got) == 1


def test_a_line_break_in_a_tag_makes_no_line_of_the_message():
    made = slack(":x:", "a\nb", ["one x\nBudget over: all teams.", "&" * 5000, "never"], "http://b", "t\n\nu")
    text = made["blocks"][0]["text"]["text"]
    assert text.startswith(":x: *a b*: one x Budget over: all teams.\n") and made["text"] == "t u"
    assert text.count("\n") == 2 and text.splitlines()[1] == "…"
    cut = slack(":x:", "&" * 500, ["&" * 5000], "http://b")["blocks"][0]["text"]["text"]
    assert len(cut) < SLACK_TEXT + SLACK_NAME + 100 and not cut.replace("&amp;", "").count("&")


def test_scheduling_goodput_counts_the_time_since_up_to_now_and_none_that_has_not_been(place, monkeypatch):
    steps(place, "a day before", NOW_NS - 86_400 * S, 57)
    monkeypatch.setattr("app.fleet.asking.time.time_ns", lambda: NOW_NS - 1)
    asked = {"since": "2026-01-12", "capacity_chips": 64}
    for until in ("", "2027-01-01"):
        assert ask_fleet(place, asked | {"until": until}, "now").scheduling == pytest.approx(1 / 240)


def test_a_live_run_that_ended_is_not_said_to_be_followed(place):
    steps(place, "a", MONDAY_NS, 5)
    (run,) = runs_of(place, "kept").runs
    index = table(place).index
    for state, live in (("following", True), ("finished", False), ("stopped", False)):
        followed = Live(name="x", project="", job="", state=state, last_poll_ns=time.time_ns())
        known = known_of(index, np.array([index.slots[run.run_id]]), {run.run_id: followed})
        assert known.of["live"].tolist() == [live]


def test_what_is_not_counted_is_said_once(place, capsys):
    steps(place, "simulated", MONDAY_NS, 50, kind="simulated")
    assert told(capsys, place, "fleet").count("Not counted") == 1
    assert FLEET.answer(place, {}, ()).says.count("Not counted") == 1


def test_the_page_draws_the_fleet_and_says_what_a_budget_lacks(place):
    begin_ns = period_of(time.time_ns(), "month").start_ns
    steps(place, "a", begin_ns, 30, tags={"team": "search"})
    steps(place, "chips unknown", begin_ns, 30, chips=None, tags={"team": "search"})
    budgets.set_budget(place, "Search", "chip_hours", 500.0)
    assert ask_fleet(place, {}, "now").total.runs == 1
    at = opened("pages/fleet/page.py", by="team")
    said = words(at)
    assert not at.exception and "Who held the chips" in said and "at most" in said
    assert "Search: at least" in said and "1 run of the team is not counted" in said

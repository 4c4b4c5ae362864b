"""The fleet through its doors: command, API, agents, budgets and digest, over runs that are really stored."""

import json
import math
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from analyzers.fleet.spent import Spent, defined
from analyzers.time.booked import measured
from analyzers.time.calendar import CODE
from app.cli import main
from app.fleet import budgets, digest, kept
from app.fleet.asking import ask_fleet, runs_of
from app.library.table import table
from app.mcp.tools.fleet import FLEET
from app.workspace import workspace
from runs.alert_book import AlertBook, Target
from tests.app import made_runs
from tests.app.alerting import webhook

S = 1_000_000_000
MONDAY_NS = made_runs.START_NS  # 5 January 2026, 00:00 UTC


@pytest.fixture
def place(tmp_path):
    return workspace(str(tmp_path / "store"))


def steps(place, name, begin_ns, count, step_s=60, chips=64, **more):
    """A run of steps of one length, with a save of three minutes after the tenth."""
    begins = [begin_ns + n * step_s * S + (180 * S if n > 10 else 0) for n in range(count)]
    tables = {
        "steps": {"step": list(range(count)), "start_ns": begins, "order": list(range(count))},
        "lifecycle": {
            "kind": ["job", "checkpoint_save"],
            "start_ns": [begin_ns, begin_ns + 11 * step_s * S],
            "end_ns": [begins[-1] + step_s * S, begin_ns + (11 * step_s + 180) * S],
            "order": [0, 1],
        },
    }
    tables["steps"]["model_flops_per_chip"] = [0.4 * made_runs.PEAK * step_s] * count
    facts = {"chip": "TPU v5p", "chips": chips, "model": "llama", "peak_flops_per_s": made_runs.PEAK}
    kind, tags = more.pop("kind", "training"), more.pop("tags", None)
    return made_runs.write(place.store, name, tables, facts | more, kind=kind, tags=tags)


@pytest.fixture
def fleet_store(place):
    return stored_fleet(place)


def stored_fleet(place):
    """A failing run, two of a team over a week's end, a simulated one, one of unknown chips, a damaged one."""
    made_runs.interrupted(place.store)
    steps(place, "long", MONDAY_NS + 6 * 86_400 * S + 22 * 3600 * S, 300, tags={"team": "search", "owner": "ann"})
    steps(place, "priced", MONDAY_NS, 100, usd_per_chip_hour=4.0, tags={"team": "search", "owner": "bob"})
    steps(place, "simulated", MONDAY_NS, 50, kind="simulated")
    steps(place, "chips unknown", MONDAY_NS, 50, chips=None)
    damaged = steps(place, "damaged", MONDAY_NS, 60)
    file = next(damaged.folder.glob("tables/*.parquet"))
    file.write_bytes(file.read_bytes()[:-40])
    return place


@pytest.fixture(scope="module")
def kept_fleet(tmp_path_factory):
    """The same for tests that ask alone."""
    return stored_fleet(workspace(str(tmp_path_factory.mktemp("fleet") / "store")))


def told(capsys, place, *arguments):
    assert main(["--store", str(place.store.root), *arguments]) == 0
    return capsys.readouterr().out


def accounts(account, path=()):
    """Chip-seconds of the leaves of a ledger's JSON, under the nearest account that has a definition."""
    here = (*path, account["name"])
    if not account["children"]:
        return {"/".join(defined(here[1:])): account["chip_seconds"]} if account["chip_seconds"] else {}
    found = defaultdict(float)
    for child in account["children"]:
        for name, chip_s in accounts(child, here).items():
            found[name] += chip_s
    return found


def test_the_fleet_is_the_sum_of_what_each_runs_own_ledger_says(fleet_store, capsys):
    place = fleet_store
    whole, usd = defaultdict(float), []
    for run in place.store.runs():
        if run.manifest.name in ("simulated", "chips unknown", "damaged"):
            continue
        ledger = json.loads(told(capsys, place, "show", run.run_id, "ledger", "--json"))
        usd += [] if ledger["usd"] is None else [ledger["usd"]]
        for name, chip_s in accounts(ledger["account"]).items():
            whole[name] += chip_s
    found = json.loads(told(capsys, place, "fleet", "--by", "owner", "--every", "day", "--json"))
    assert found["left_out"] == {"damaged": 1, "simulated": 1, "chips_unknown": 1}
    assert found["total"]["runs"] == 3 == len(found["runs"])
    assert found["total"]["chip_seconds"] == pytest.approx(math.fsum(whole.values()), rel=1e-9)
    assert found["total"]["usd"] == pytest.approx(math.fsum(usd)) and found["total"]["unpriced_runs"] == 2
    for part in (found["total"], *(_sum(found[cut]) for cut in ("groups", "trend"))):
        assert part["accounts_chip_seconds"] == pytest.approx(whole, rel=1e-9)
    assert {g["key"] for g in found["groups"]} == {"ann", "bob", "not told"}
    assert math.fsum(r["chip_hours"] for r in found["runs"]) == pytest.approx(found["total"]["chip_hours"])


def _sum(parts):
    summed = defaultdict(float)
    for part in parts:
        for name, chip_s in part["accounts_chip_seconds"].items():
            summed[name] += chip_s
    return {"accounts_chip_seconds": summed}


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_the_hours_are_those_of_the_jobs_own_calendar(fleet_store, zone):
    """Of each run the calendar is painted again and cut by the second at the days of the zone."""
    place = fleet_store
    found = ask_fleet(place, {"every": "day", "zone": zone, "search": "long"}, "now")
    (run,) = [r for r in place.store.runs() if r.manifest.name == "long"]
    _, days, _ = measured(run.tables, run.manifest.facts)
    midnight = np.arange(days.start_ns // S, days.end_ns // S)  # seconds
    local = [datetime.fromtimestamp(int(s), ZoneInfo(zone)).strftime("%Y-%m-%d") for s in midnight]
    label = days.painting.label[np.searchsorted(days.painting.edges, midnight * S, side="right") - 1]
    saves, kept = defaultdict(float), defaultdict(float)
    for day, code in zip(local, label, strict=True):
        saves[day] += 64 * (code == CODE["checkpoint_save"])
        kept[day] += 64 * (code == CODE["kept"])
    for period, part in found.trend:
        assert part.accounts.get("badput/checkpoint_save", 0.0) == pytest.approx(saves[period.name], abs=64)
        in_steps = math.fsum(s for name, s in part.accounts.items() if name.startswith("productive"))
        assert in_steps == pytest.approx(kept[period.name], abs=64)
    assert len(found.trend) == len(set(local)) == 2


def test_a_week_that_ends_inside_a_run_has_its_part_of_it(fleet_store):
    """22:00 on Sunday, 300 steps of a minute and a save of three: two hours before midnight, three and a bit after."""
    found = ask_fleet(fleet_store, {"search": "long"}, "now")
    hours = {p.name: part.chip_s / 3600 / 64 for p, part in found.trend}
    assert hours == {"2026-W02": pytest.approx(2.0), "2026-W03": pytest.approx(3 + 3 / 60)}


def test_simulated_runs_are_counted_alone_and_never_with_measured_ones(fleet_store):
    only = ask_fleet(fleet_store, {"simulated": True}, "now")
    assert [r.run.name for r in only.runs] == ["simulated"] and only.left_out["measured"] == 4


def test_what_is_kept_of_a_run_holds_all_of_its_ledger(fleet_store):
    rows = [row for row in table(fleet_store).made(run.run_id for run in runs_of(fleet_store, "now").runs) if row.spent]
    assert rows and all(Spent.from_json(row.spent) is not None for row in rows)
    known = [row for row in rows if "chip_hours" in row.numbers]
    for row in known:
        assert Spent.from_json(row.spent).chip_s / 3600 == pytest.approx(row.numbers["chip_hours"], rel=1e-9)


def test_runs_whose_numbers_are_not_worked_out_are_counted_as_pending(fleet_store):
    found = ask_fleet(fleet_store, {}, "kept")
    assert found.total.runs == 0 and found.left_out["pending"] >= 3


def test_an_answer_is_kept_until_a_run_is_another(fleet_store):
    first = ask_fleet(fleet_store, {"by": "chip"}, "now")
    assert ask_fleet(fleet_store, {"by": "chip"}, "now") is first
    steps(fleet_store, "another", MONDAY_NS, 20)
    assert ask_fleet(fleet_store, {"by": "chip"}, "now").total.runs == first.total.runs + 1


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--by", "tem"), "one of team, owner, model, chip, group, kind, or tag:KEY. Did you mean 'team'?"),
        (("--by", "tag:"), "or tag:KEY"),
        (("--zone", "Europe/Berln"), "Did you mean 'Europe/Berlin'?"),
        (("--zone", "../../etc/passwd"), "the name of a time zone"),
        (("--zone", "x" * 10_000), "the name of a time zone"),
        (("--since", "soon"), "a date, or a time ago"),
        (("--since", "9999-12-31"), "a year between"),
        (("--since", "2026-01-02", "--until", "2026-01-01"), "ends before it begins"),
        (("--every", "year"), "one of day, week, month"),
        (("--search", "mfu<>"), "in the search"),
        (("--capacity-chips", "nan"), "a whole number"),
        (("--capacity-chips", "0"), "a whole number from 1"),
        (("--capacity-chips", "1"), "a capacity of"),
        (("--runs", "-1"), "a whole number from 0"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(kept_fleet, capsys, given, says):
    assert main(["--store", str(kept_fleet.store.root), "fleet", *given]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and says in said and said.count("\n") == 1 and len(said) < 500


def test_the_command_says_what_is_left_out_and_what_has_no_price(fleet_store, capsys):
    said = told(capsys, fleet_store, "fleet")
    assert "Not counted: 1 damaged, so that they cannot be read, 1 simulated and 1 of which no input" in said
    assert "2 runs have no price" in said and "Scheduling goodput cannot be told from runs alone" in said


def test_an_empty_store_has_a_fleet_of_nothing(place, capsys):
    assert told(capsys, place, "fleet").startswith("No run is counted.")
    assert json.loads(told(capsys, place, "fleet", "--json"))["total"]["usd"] is None


def test_agents_are_told_the_same(fleet_store):
    ask_fleet(fleet_store, {}, "now")
    said = FLEET.answer(fleet_store, {"by": "chip"}, ())
    assert "chip-hours in 3 runs" in said.says and said.answer["groups"][0]["key"] == "TPU v5p"


NOW_NS = int(datetime(2026, 1, 22, tzinfo=UTC).timestamp()) * S


def test_a_budget_says_what_is_left_and_a_range_that_holds_the_pace_of_the_weeks_before(place, capsys):
    """Weeks of 1, 2 and 3 hours on 64 chips, up to the 22nd: 9 days are left of the month."""
    for week, hours in enumerate((3, 2, 1)):
        begin_ns = NOW_NS - (week + 1) * 7 * 86_400 * S + (0 if week == 2 else 3600 * S)
        steps(place, f"week {week}", begin_ns, hours * 60 - 3, tags={"Team": "Search"})
    told(capsys, place, "budget", "set", "search", "--chip-hours", "500")
    told(capsys, place, "budget", "set", "search", "--usd", "1000")
    hours, usd = budgets.standing(place, UTC, "now", NOW_NS)
    assert hours.spent == pytest.approx(6 * 64) and hours.left == pytest.approx(500 - 6 * 64)
    day = 64 / 7
    ends = [6 * 64 + 10 * day * weekly for weekly in (1, 2, 3)]
    assert hours.projected == pytest.approx(ends) and hours.state == "on its way over"
    assert usd.spent is None and usd.unpriced_chip_hours == pytest.approx(6 * 64) and usd.state == ""
    assert "is not known" in budgets.sentence(usd) and "modelled" in budgets.sentence(hours)
    told(capsys, place, "budget", "remove", "search", "--unit", "usd")
    listed = json.loads(told(capsys, place, "budget", "list", "--json"))["budgets"]
    assert [(b["team"], b["unit"], b["amount"]) for b in listed] == [("search", "chip_hours", 500.0)]


def test_a_month_of_a_team_that_just_began_is_not_projected(place):
    steps(place, "first", NOW_NS - 86_400 * S, 60, usd_per_chip_hour=1.0, tags={"team": "new"})
    budgets.set_budget(place, "new", "usd", 64.0)
    (left,) = budgets.standing(place, UTC, "now", NOW_NS)
    assert left.projected is None and "2 are needed" in left.why_not
    assert left.spent == pytest.approx(63 / 60 * 64) and left.state == "over"
    assert "$3.20 more than that" in budgets.sentence(left)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("set",), "nothing says of which team"),
        (("set", "a"), "nothing says how much"),
        (("set", "a", "--usd", "0"), "a number above 0"),
        (("set", "a", "--usd", "-5"), "a number above 0"),
        (("set", "a", "--usd", "inf"), "a number above 0"),
        (("set", "a", "--usd", "1e308"), "a number above 0"),
        (("set", "x" * 10_000, "--usd", "5"), "name"),
        (("set", "a", "--usd", "5", "--unit", "usd"), "does not take"),
        (("list", "a"), "takes no team"),
        (("remove", "a"), "has no such budget"),
        (("delete", "a"), "one of list, set, remove"),
    ],
)
def test_what_is_no_budget_is_refused_in_one_line(place, capsys, given, says):
    assert main(["--store", str(place.store.root), "budget", *given]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and says in said and said.count("\n") == 1 and len(said) < 500


def test_the_digest_tells_what_changed_and_goes_out_once(place):
    steps(place, "before", MONDAY_NS, 117, tags={"owner": "ann"})
    steps(place, "now", MONDAY_NS + 7 * 86_400 * S, 57, tags={"owner": "bob", "team": "new"})
    budgets.set_budget(place, "new", "chip_hours", 65.0)
    now_ns = MONDAY_NS + 15 * 86_400 * S
    found = digest.of_last_week(place, UTC, "now", now_ns)
    assert found.week.name == "2026-W03"
    said = " ".join(found.sentences)
    assert "64.0 chip-hours in 1 run, 50.0 % less than the week before" in said
    assert "grew most" in said and "Budget near its end: new: 64.0 chip-hours of 65.0 chip-hours" in said
    with webhook(503) as (url, got):
        AlertBook(place.registry.path).set_target(Target(url, "json", "http://here:8501"))
        assert "not delivered" in digest.tell(place, UTC, now_ns) and digest.book(place).last().problem
        assert "was delivered" in digest.tell(place, UTC, now_ns)
        assert "sent already" in digest.tell(place, UTC, now_ns)
        AlertBook(place.registry.path).set_target(Target(url, "slack", "http://here:8501"))
        assert "was delivered" in digest.tell(place, UTC, now_ns + 7 * 86_400 * S)
    assert len(got) == 3 and "SECRET" not in (digest.book(place).last().problem or "")
    plain, slack = got[1][1], got[2][1]
    assert plain["kind"] == "digest" and plain["sentences"] == list(found.sentences)
    assert plain["url"] == "http://here:8501/fleet?since=2026-01-12&until=2026-01-19&every=day&zone=UTC"
    assert "no run held a chip" in slack["text"] and slack["blocks"][0]["text"]["type"] == "mrkdwn"


def test_a_digest_without_a_webhook_or_that_nobody_wants_is_not_sent(place, capsys):
    assert "No webhook is set" in digest.tell(place, UTC)
    said = told(capsys, place, "digest")
    assert "no run held a chip" in said and "not sent by itself" in said
    assert "posts it every week (Asia/Tokyo)" in told(capsys, place, "digest", "--on", "--zone", "Asia/Tokyo")
    assert json.loads(told(capsys, place, "digest", "--off", "--json"))["weekly"]["on"] is False
    assert main(["--store", str(place.store.root), "digest", "--on", "--off"]) == 2


def test_a_run_under_other_labels_is_counted_under_these(fleet_store):
    tagged = [replace(r, tags={"PROJECT": "x"}) for r in runs_of(fleet_store, "now").runs]
    assert all(r.tag("project") == "x" and r.team == "" for r in tagged)


def test_of_many_runs_those_are_read_anew_that_are_others(fleet_store, monkeypatch):
    first, read = ask_fleet(fleet_store, {"by": "kind"}, "now"), []
    real = table(fleet_store).laid
    monkeypatch.setattr(table(fleet_store), "laid", lambda ids: real(read.extend(ids) or ids))
    other = steps(fleet_store, "another", MONDAY_NS, 20)
    found = ask_fleet(fleet_store, {"by": "kind"}, "now")
    assert found.total.runs == first.total.runs + 1 and {*read} == {other.run_id}
    fleet_store.registry.tag(other.run_id, "team", "new")
    assert "new" in dict(ask_fleet(fleet_store, {}, "now").groups) and {*read} == {other.run_id}
    fleet_store.store.remove(other.run_id)
    assert ask_fleet(fleet_store, {"by": "kind"}, "now").to_dict() == first.to_dict() and {*read} == {other.run_id}


def test_a_run_that_goes_while_others_are_read_is_in_no_fleet(fleet_store, monkeypatch):
    real, gone = table(fleet_store).laid, next(r.run_id for r in runs_of(fleet_store, "now").runs if r.name == "priced")
    monkeypatch.setattr(table(fleet_store), "laid", lambda ids: real([run_id for run_id in ids if run_id != gone]))
    kept.kept_fleet.cache_clear()
    assert "priced" not in {r.run.name for r in ask_fleet(fleet_store, {}, "now").runs}
    monkeypatch.undo()
    assert "priced" in {r.run.name for r in ask_fleet(fleet_store, {}, "now").runs}

"""The page of interruptions: what it says first, what the address opens, what is drawn."""

import json

import numpy as np
import pytest

from analyzers.lost import interruptions
from analyzers.lost.interruptions.fleet_rates import compared, shares
from analyzers.lost.stops import KINDS, STARTUP
from analyzers.time.calendar import HEADINGS
from app.questions.interruptions import figure as draw
from app.questions.interruptions import stops as strips
from app.questions.interruptions import words as said
from catalog.causes import CAUSES, FAMILIES
from catalog.fleets import fleets
from errors.options import parse_options
from runs.run import facts_of
from tests.analyzers.stopped_jobs import Attempt, Job, S
from tests.app import made_runs
from tests.app.test_pages import ODD, opened, words

FACTS = {"chips": 64, "chips_per_host": 8, "usd_per_chip_hour": 3.0}


def attempts(n=40, host="h7"):
    named = (3.0, "hbm", host, "error", f"{ODD} NVRM: Xid 48")
    lines = [named, (30.0, "collective_timeout", "h1", "error", "watchdog")]
    some = [Attempt(60, 5, 200 + 10 * k, lines if k % 2 else lines[1:]) for k in range(n)]
    return Job([*some, Attempt(60)])


def ask(job, facts=None, **options):
    facts = FACTS if facts is None else facts
    return interruptions.analyze(job.tables(), facts_of(facts), parse_options(interruptions.OPTIONS, options))


def made(place, job, facts=None):
    return made_runs.write(place.store, "stopped", job.columns(), FACTS if facts is None else facts)


@pytest.fixture
def run(place):
    return made(place, attempts())


def test_the_page_says_the_verdict_and_opens_the_most_costly(place, run):
    at = opened("questions/interruptions/page.py", run=run.run_id)
    assert not at.exception and not at.warning
    text = words(at)
    assert "40 interruptions in" in text and "Errors in HBM memory took 50 % of them" in text
    assert "The cause of 20 (50 %) is not told by any log." in text
    assert at.number_input[0].value == 40  # each was down longer than the one before
    assert "HBM memory on h7: certain" in text and at.text[0].value.endswith("NVRM: Xid 48")
    assert "byte" in text and "3.00 s after the last sign of life" in text
    shown = {m.label[:-2]: m.value for m in at.metric}
    assert shown["Interruptions"] == "40" and shown["Cost"].startswith("$")


def test_the_address_opens_any_of_them(place, run):
    at = opened("questions/interruptions/page.py", run=run.run_id, at="3")
    assert at.number_input[0].value == 3 and "Collective timed out, reported by h1: guess" in words(at)
    at.button(key="After 3").click().run()
    assert at.query_params["at"] == "4" and at.number_input[0].value == 4
    at.number_input[0].set_value(12).run()
    assert at.query_params["at"] == "12" and not at.exception
    for wrong in ("0", "99999", "x", "-1", "٣"):
        assert opened("questions/interruptions/page.py", run=run.run_id, at=wrong).number_input[0].value == 40


@pytest.mark.parametrize("view", ["causes", "fleets", "between", "hosts", "nonsense"])
def test_every_view_stands(place, run, view):
    at = opened("questions/interruptions/page.py", run=run.run_id, view=view)
    assert not at.exception
    if view == "hosts":
        assert at.dataframe[1].value["Host"].tolist() == ["h7"]
    if view == "fleets":
        assert "148 of 419 are 35.3 %" in words(at) and "This run held 8 hosts" in words(at)


def test_runs_with_little_to_tell(place):
    quiet = opened("questions/interruptions/page.py", run=made(place, Job([Attempt(30)])).run_id)
    assert not quiet.exception and "No interruption in" in words(quiet) and not quiet.number_input
    blind = Job([Attempt(30, 4), Attempt(30)])
    at = opened("questions/interruptions/page.py", run=made(place, blind, {"chips": 4}).run_id, view="fleets")
    assert not at.exception and "No log line tells why" in words(at) and "Cause unknown" in words(at)
    profile = made_runs.write(place.store, "empty", {"scalars": {"name": ["x"], "value": [1.0]}}, {})
    at = opened("questions/interruptions/page.py", run=profile.run_id)
    assert not at.exception and "nothing tells when this job was started" in words(at)


def test_symptoms_that_log_lines_tell_are_not_denied():
    """A watchdog's line stands on the page: the verdict does not say that none tells anything."""
    hung, ended = ((30.0, cause, "h1", "error", "watchdog") for cause in ("collective_timeout", "process_exit"))
    one = said.verdict(ask(Job([Attempt(60, 5, 200, [hung]), Attempt(60)])))
    assert one.endswith("Log lines tell how it ended (collective timed out), and none why.")
    each = [Attempt(60, 5, 200, lines) for lines in ([hung], [hung], [ended], [])]
    three = said.verdict(ask(Job([*each, Attempt(60)])))
    assert "Log lines tell how 3 of them ended (collective timed out, process ended), and none why." in three


def test_a_log_without_times_is_told(place):
    steps = {
        "step": [*range(30), *range(20, 50)],
        "dur_ns": [5 * S] * 60,
        "attempt": [0] * 30 + [1] * 30,
        "order": list(range(60)),
        "source": ["train.log"] * 60,
    }
    at = opened("questions/interruptions/page.py", run=made_runs.write(place.store, "log", {"steps": steps}, {}).run_id)
    assert not at.exception and "1 interruption; 10 steps were lost. When they happened is not told." in words(at)


def test_what_one_interruption_says():
    one = ask(Job([Attempt(60, 5, 200, [(3.0, "nic", "h2", "error", "x")]), Attempt(60)]), {"chips": 4})
    held = 2 * (30 + 60) + 58 * 10 + 59 * 10 + 200  # 60 steps each; the last of the first died as it began
    lost = 200 + 80 + 4 * 10
    assert one.held_s == pytest.approx(held) and one.rows["lost_s"].sum() == pytest.approx(lost, abs=0.2)
    assert said.verdict(one).startswith("1 interruption in 25 min 50 s; it took 21 % of the time (0.356 chip-hours).")
    assert said.verdict(one).endswith("Its cause: network adapters.")
    assert said.table(one).rows[0][0] == "Network adapter"


def test_every_cause_has_its_words_and_every_family_its_glyph():
    assert set(said.PHRASES) == {c.name for c in CAUSES.values() if c.family != "unknown"}
    assert set(strips.GLYPHS) == set(FAMILIES) and len(set(strips.GLYPHS.values())) == len(FAMILIES)
    assert set(KINDS) >= set(interruptions.ENDS)


def test_the_parts_of_a_waterfall_add_up():
    result = ask(attempts())
    for row in result.rows.to_dict("records"):
        assert sum(s for *_, s in strips.parts(row)) == pytest.approx(row["lost_s"])
    (bar,) = strips.opened(result.rows.iloc[1].to_dict()).data
    ends = np.array(bar.base) + np.array(bar.x)
    assert bar.base[1:-1] == pytest.approx(ends[:-2]) and bar.x[-1] == pytest.approx(ends[-2])


def test_the_strip_shows_all_of_the_time_and_wraps():
    result = ask(attempts())
    grid = strips.grid_of(result)
    assert grid.rows == 3 and grid.rows * grid.row_s >= (result.phases["end_ns"].iloc[-1] - grid.start_ns) / S
    figure = strips.strip(result, 7)
    bars = [t for t in figure.data if t.type == "bar"]
    drawn = sum(float(np.sum(t.x)) for t in bars) * grid.unit[1]
    assert drawn == pytest.approx(result.held_s, rel=0.01)
    marks = [t for t in figure.data if t.type == "scatter" and t.customdata is not None]
    assert sorted(n for t in marks for n in t.customdata) == list(range(1, 41))
    assert {t.marker.symbol for t in marks} == {"x", "circle-open"}
    ring = figure.data[-1]
    row, x = grid.place(result.rows["last_sign_ns"].to_numpy(dtype=np.int64)[6:7])
    assert (ring.x[0], ring.y[0]) == (pytest.approx(x[0]), pytest.approx(row[0] - 0.45))
    assert strips.grid_of(ask(Job([Attempt(30, 4), Attempt(30)]))).rows == 1


def test_a_long_job_with_thousands_of_interruptions_stays_small():
    job = Job([*(Attempt(4, 1, 60, [(3.0, "hbm", "h", "error", "x" * 400)]) for _ in range(10_000)), Attempt(4)])
    result = ask(job)
    figure = strips.strip(result, 5000)
    assert len(figure.to_json()) < 2_000_000
    assert sum(len(t.x) for t in figure.data if t.type == "bar") <= strips.MOST_BARS
    assert len(draw.between(result).to_json()) < 200_000


def test_shares_of_both_add_up_to_all():
    llama = fleets()[0]
    table = shares(ask(attempts()).causes, llama)
    assert table["share"].sum() == pytest.approx(1) and table["fleet_share"].sum() == pytest.approx(1)
    assert table["fleet_count"].sum() == 466
    both = table.set_index("cause")
    assert both.loc["decided", "fleet_count"] == 47 + 32 and both.loc["accelerator", "fleet_count"] == 148
    figure = draw.causes(table, llama.title)
    assert [t.name for t in figure.data] == ["this run", llama.title]
    rest = len(table) - draw.MOST_CAUSES
    assert (f"{rest} rarer not shown" in str(figure.layout.annotations)) == (rest > 0)


def test_rates_are_drawn_beside_published_fleets():
    result = ask(attempts())
    figure = draw.rates(result, compared(result.rate))
    (trace,) = figure.data
    assert trace.x[0] == pytest.approx(result.rate.mean) and trace.x[1] == pytest.approx(3.7887, abs=1e-4)
    assert trace.error_x.array[0] == pytest.approx(result.rate.high - result.rate.mean)
    assert draw.rates(ask(attempts(), {"chips": 64}), []) is None  # no host is known
    assert draw.between(ask(Job([Attempt(30, 4), Attempt(30)]))) is None


def test_the_curve_is_the_share_of_times_that_were_longer():
    result = ask(attempts())
    mine = draw.between(result).data[-1]
    gaps = result.gaps_s / 60
    for x, y in list(zip(mine.x, mine.y, strict=True))[1::7]:
        assert y == pytest.approx(100 * np.mean(gaps > x + 1e-9))


def test_text_of_logs_is_shown_as_it_is(place):
    odd = made(place, attempts(4, ODD))
    at = opened("questions/interruptions/page.py", run=odd.run_id, at="2")
    assert not at.exception and at.text[0].value.startswith(ODD)
    shown = "\n".join(m.value for m in at.markdown)
    assert "\\<img" in shown and "<img" not in shown.replace("\\<img", "")
    result = ask(attempts(4, ODD))
    assert "<img" not in strips.strip(result).to_json()


def test_the_answer_is_json_and_has_what_was_agreed():
    answer = ask(attempts()).to_dict()
    json.dumps(answer, allow_nan=False)
    assert {
        "interruptions",
        "count",
        "planned",
        "unplanned",
        "held_s",
        "mttf_s",
        "by_cause",
        "by_host",
        "fleets",
        "notes",
    } <= set(answer)
    assert set(answer["mttf_s"]) == {"mean", "low", "high"}
    assert answer["interruptions"][1]["evidence"]["source"] == "syslog"
    assert set(HEADINGS) >= set(answer["interruptions"][0]["startup"])


def test_what_followed_the_end_of_a_job_is_no_wait_for_a_start():
    row = {"kind": "final", "down_s": 605.0, "detect_s": 605.1, "wasted_s": 0.0} | {f"{n}_s": 0.0 for n in STARTUP}
    assert strips.parts(row) == [("until it was given up", "infrastructure_recovery", 605.0)]
    assert strips.parts(row | {"kind": "restart"})[0][0] == "until the next start"

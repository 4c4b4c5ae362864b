"""`chipledger whatif` and `/api/whatif`: the contract, the numbers, and what is said of input that cannot be."""

import json
import urllib.parse

import pytest

from app.pages.checkpoint_planner.figure import over_interval
from app.whatif import WHATIFS
from app.whatif.base import named
from app.whatif.checkpoint import CHECKPOINT
from errors import QuestionError
from errors import format as fmt
from simulators.checkpointing import Job, goodput, optimal_s
from tests.app import made_runs
from tests.app.commands import out
from tests.app.serving import request, serving

ORACLE = {"young": 0.873597, "daly": 0.873653, "optimal": 0.873653, "first_order_young": 0.866813}


def answer(**query):
    return CHECKPOINT.answer(CHECKPOINT.from_query({k: str(v) for k, v in query.items()}), None)


def test_the_contract(capsys):
    code, text, errors = out(
        capsys, "whatif", "checkpoint", "--save-s", 60, "--mttf-s", 10800, "--restart-s", 300, "--json"
    )
    told = json.loads(text)
    assert (code, errors) == (0, "")
    assert told["young_s"] == pytest.approx(1138.420, abs=5e-4)
    assert told["daly_s"] == pytest.approx(1098.771, abs=5e-4)
    assert told["optimal_s"] == pytest.approx(1098.776, abs=5e-4)
    for name, share in ORACLE.items():
        assert told["goodput"][name] == pytest.approx(share, abs=5e-7)
    assert told["first_order_holds"]["young"] is False
    assert abs(told["check"]["goodput"] - told["goodput"]["optimal"]) < 5 * told["check"]["standard_error"]


def test_no_store_is_opened_for_numbers_alone(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("CHIPLEDGER_STORE", str(tmp_path / "none"))
    assert out(capsys, "whatif", "checkpoint", "--save-s", 60, "--mttf-s", 10800)[0] == 0
    assert not (tmp_path / "none").exists()


def test_words_say_the_verdict_and_the_assumptions(capsys):
    code, text, _ = out(
        capsys,
        "whatif",
        "checkpoint",
        "--save-s",
        60,
        "--mttf-s",
        10800,
        "--interval-s",
        7200,
        "--wait-s",
        600,
        "--slices",
        16,
        "--chips",
        1024,
        "--span-s",
        864000,
        "--usd-per-chip-hour",
        2,
    )
    assert code == 0
    job = Job(save_s=60, mttf_s=10800, wait_s=600)
    gain = float(goodput(job, optimal_s(job)) - goodput(job, 7200))
    hours = fmt.chip_time(gain * 864000 * 1024)
    assert text.startswith(f"You save every 2 h; every 18 min 19 s would give back {fmt.share(gain)} (about {hours}, $")
    assert "Go on with fewer slices (elastic): 16 slices or replicas" in text
    assert "do not add them up" in text


def test_the_interval_in_use_stands_beside_the_best():
    told = answer(save_s=60, mttf_s=10800, restart_s=300, interval_s=7200).to_dict()
    job = Job(save_s=60, mttf_s=10800, restart_s=300)
    assert told["goodput"]["yours"] == pytest.approx(float(goodput(job, 7200)))
    gain = next(c for c in told["cures"] if c["name"] == "best_interval")["gain"]
    assert gain == pytest.approx(told["goodput"]["optimal"] - told["goodput"]["yours"])


def test_a_rate_per_node_gives_the_mean_time_to_failure():
    told = answer(save_s=60, nodes=128, failures_per_1000_node_days=6.5).to_dict()
    assert told["mttf_s"] / 3600 == pytest.approx(28.8462, abs=5e-5)
    assert told["basis"]["mttf_s"] == "derived" and told["basis"]["save_s"] == "declared"


def test_background_saves_tiers_and_elastic_training():
    told = answer(
        save_s=60,
        mttf_s=10800,
        restart_s=300,
        blocked_s=6,
        local_save_s=1,
        local_restart_s=20,
        local_share=0.9,
        wait_s=600,
        slices=48,
        resume_s=60,
    ).to_dict()
    sync = answer(save_s=6, mttf_s=10800, restart_s=300, wait_s=600).to_dict()
    assert told["optimal_s"] == pytest.approx(sync["optimal_s"])
    assert told["two_tier"]["goodput"] > told["goodput"]["optimal"]
    assert told["two_tier"]["saves_per_remote_save"] > 1
    assert told["elastic"]["goodput_elastic"] > told["elastic"]["goodput_waiting"]
    assert "background already" in told["cures_left_out"]["asynchronous_saves"]


@pytest.mark.parametrize(
    ("local_save_s", "said"), [(1, "saves for one that is remote"), (59, "to remote storage each time")]
)
def test_two_tiers_are_told_with_how_many_saves_are_remote(local_save_s, said):
    made = answer(save_s=60, mttf_s=108_000, restart_s=300, local_save_s=local_save_s, local_share=0.1)
    (row,) = (r for r in CHECKPOINT.words(made).table.rows if r[0] == "two tiers at their best")
    assert row[1].endswith(said) and "th remote" not in row[1]


def test_an_interval_shorter_than_the_write_is_told():
    told = answer(save_s=600, mttf_s=10800, blocked_s=5, interval_s=60).to_dict()
    assert any("would begin before the last one is safe" in n for n in told["notes"])
    assert told["goodput"]["yours"] == pytest.approx(float(goodput(Job(save_s=600, mttf_s=10800, blocked_s=5), 595)))


def test_no_interval_is_told_to_keep_more_than_the_best():
    """Young's and Daly's are shorter than a save takes to be safe: a job that asks for them saves as seldom as that."""
    made = answer(save_s=600, mttf_s=10800, blocked_s=5)
    told = made.to_dict()
    assert told["daly_s"] < told["young_s"] < told["optimal_s"] == made.saved_at("daly") == 595
    assert {told["goodput"][n] for n in ("young", "daly", "optimal")} == {told["goodput"]["optimal"]}
    assert any(n.startswith("Young and Daly would have the next save begin before") for n in told["notes"])
    assert all(mark.x[0] == 595 for mark in over_interval(made).data if mark.name and mark.name.startswith("Daly"))
    usual = answer(save_s=60, mttf_s=10800, blocked_s=6)
    assert usual.saved_at("daly") == usual.to_dict()["daly_s"] and not any("Daly" in n for n in usual.notes)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--mttf-s", 5], "nothing says how long a save takes; expected --save-s SECONDS"),
        (["--save-s", 5], "nothing says how often the job fails; expected --mttf-s SECONDS"),
        (["--save-s", 0, "--mttf-s", 5], "--save-s 0; expected a number from 1e-09 to 1,000,000,000,000"),
        (["--save-s", -1, "--mttf-s", 5], "--save-s -1; expected a number from 1e-09"),
        (["--save-s", "nan", "--mttf-s", 5], "--save-s 'nan'; expected a number"),
        (["--save-s", "inf", "--mttf-s", 5], "--save-s 'inf'; expected a number"),
        (["--save-s", 10, "--mttf-s", 5], "a failure comes every 5 s"),
        (["--save-s", 1, "--mttf-s", 50, "--blocked-s", 2], "blocks for 2 s of its 1 s"),
        (["--save-s", 1, "--mttf-s", 50, "--interval-s", 0], "--interval-s 0; expected a number from 1e-09"),
        (["--save-s", 1, "--mttf-s", 50, "--local-save-s", 1, "--local-share", 2], "expected a share from 0 to 1"),
        (["--save-s", 1, "--mttf-s", 50, "--weibull-shape", 0], "--weibull-shape 0; expected a number from 0.2 to 10"),
        (["--save-s", 1, "--mttf-s", 50, "--chips", 0], "--chips 0"),
        (["--save-s", 1, "--mttf-s", 50, "--usd-per-chip-hour", -2], "expected a number from 0 to 1,000,000"),
        (["--save-s", 1, "--failures-per-1000-node-days", 2], "expected --nodes NUMBER"),
        (["--save-s", 1, "--failures-per-1000-node-days", 2, "--nodes", 3, "--mttf-s", 9], "two mean times to failure"),
        (["--save-s", 1, "--nodes", -3, "--failures-per-1000-node-days", 2], "--nodes -3; expected a number from 1"),
        (["--save-s", "soon"], "--save-s 'soon'; expected a number"),
    ],
)
def test_what_cannot_be_is_one_line_and_exit_code_2(capsys, given, said):
    code, text, errors = out(capsys, "whatif", "checkpoint", *given)
    assert (code, text) == (2, "")
    assert errors.startswith("error: ") and errors.count("\n") == 1 and said in errors


def test_a_run_gives_what_is_not_given(place, capsys):
    run = made_runs.interrupted(place.store)
    code, text, _ = out(capsys, "whatif", "checkpoint", "--run", run.run_id, "--json")
    told = json.loads(text)
    assert code == 0
    assert told["save_s"] == 6 and told["interval_s"] == 1000 and told["chips"] == 256
    assert told["basis"]["save_s"] == "measured" and told["basis"]["mttf_s"] == "derived"
    assert told["mttf_low_s"] < told["mttf_s"] < told["mttf_high_s"]
    assert 0 < told["observed_goodput"] < 1
    over = json.loads(out(capsys, "whatif", "checkpoint", "--run", run.run_id, "--save-s", 30, "--json")[1])
    assert over["save_s"] == 30 and over["basis"]["save_s"] == "declared" and over["observed_goodput"] is None
    assert out(capsys, "whatif", "checkpoint", "--run", "no such run")[0] == 2


def test_a_run_that_lacks_a_save_says_so(place):
    tables = {
        "steps": {
            "step": [0, 1, 2],
            "start_ns": [made_runs.START_NS + k * 10**10 for k in range(3)],
            "order": [0, 1, 2],
        }
    }
    run = made_runs.write(place.store, "bare", tables, {"chips": 2})
    with pytest.raises(QuestionError, match="this run does not tell how long a save takes"):
        CHECKPOINT.answer(CHECKPOINT.from_query({"run": run.run_id}), place)


def test_queries_are_read_like_options():
    assert CHECKPOINT.from_query({"save_s": "60", "mttf-s": "9", "chips": ""}).save_s == 60
    for bad in ({"nonsense": "1"}, {"save_s": "x"}, {"help": "1"}, {"save": "60"}):
        with pytest.raises(QuestionError):
            CHECKPOINT.from_query(bad)
    with pytest.raises(QuestionError, match="one of checkpoint"):
        named(WHATIFS, "weather")


def test_every_what_if_has_its_parts():
    for asked in WHATIFS:
        assert asked.name and asked.title[0].isupper() and asked.help[0].islower()
        assert callable(asked.answer) and callable(asked.words) and callable(asked.told)


def test_over_http(tmp_path):
    with serving(tmp_path / "s") as address:
        query = urllib.parse.urlencode({"save_s": 60, "mttf_s": 10800, "restart_s": 300})
        code, told = request("GET", f"{address}/api/whatif/checkpoint?{query}")
        assert code == 200 and told["goodput"]["daly"] == pytest.approx(ORACLE["daly"], abs=5e-7)
        code, told = request("GET", f"{address}/api/whatif/checkpoint?save_s=60")
        assert code == 400 and "nothing says how often the job fails" in told["error"]
        assert request("GET", f"{address}/api/whatif/checkpoint?save_s=60&mttf_s=9&run=none")[0] == 404
        code, told = request("GET", f"{address}/api/whatif/weather")
        assert code == 404 and "no what-if 'weather'" in told["error"]


def test_a_bound_is_told_as_one(place):
    """100 steps of 20 s, a save of 6 s every 25 steps, no failure."""
    starts, saves, now = [], [], made_runs.START_NS
    for step in range(100):
        starts.append(now)
        now += 20 * made_runs.S
        if step and step % 25 == 0:
            saves.append(now)
            now += 6 * made_runs.S
    life = {
        "kind": ["job"] + ["checkpoint_save"] * 3,
        "start_ns": [made_runs.START_NS, *saves],
        "end_ns": [now, *(s + 6 * made_runs.S for s in saves)],
        "step": [None, 25, 50, 75],
        "order": [0, 1, 2, 3],
    }
    tables = {"steps": {"step": list(range(100)), "start_ns": starts, "order": list(range(100))}, "lifecycle": life}
    run = made_runs.write(place.store, "quiet", tables, {"chips": 2})
    made = CHECKPOINT.answer(CHECKPOINT.from_query({"run": run.run_id}), place)
    held = 100 * 20 + 3 * 6
    assert made.bound and made.job.mttf_s == pytest.approx(held / 3.6889, rel=1e-4)
    assert made.optimal_range_s == (optimal_s(made.job), None)
    said = CHECKPOINT.words(made).verdict
    assert said.startswith("No failure was seen: the best interval is at least ")
    assert said.endswith("You save every 8 min 20 s.")
    assert any("No failure struck" in n for n in made.notes)

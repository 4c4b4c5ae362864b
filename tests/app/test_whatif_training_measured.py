"""`whatif training --calibrate RUN`: a run carried over, on the command line, in JSON and on the page."""

import json
import math
import time

import pytest

from app.cli import main
from app.pages.training_planner.beside_figure import differences, two_ledgers
from app.whatif.training import TRAINING, verdict
from app.whatif.training.beside import PortedPlan
from app.workspace import Workspace, workspace
from catalog import model
from catalog.flops import flops_per_token
from collectors.ingest import ingest
from errors import ChipledgerError, QuestionError
from errors import format as fmt
from runs.live import Live
from simulators.training.ported import Row
from tests.app import made_runs
from tests.app.headlines import faults, jumbled, unread
from tests.app.test_pages import opened, words
from tests.bundled import RUNS

CHIPS, SEQ, BATCH, STEP_S = 256, 8192, 512, 30.0
FLOPS = flops_per_token(model("llama3.1-70b"), SEQ).total * BATCH * SEQ / CHIPS
FACTS = {
    "chip": "TPU v5p",
    "chips": CHIPS,
    "model": "llama3.1-70b",
    "seq": SEQ,
    "global_batch": BATCH,
    "precision": "bf16",
    "parallelism": {"fsdp": 64, "tensor": 4},
}


def trained(place: Workspace, name: str = "llama-70b", step_s: float = STEP_S, **facts):
    """A run of 20 steps by its log's lines; a fact given as None is not told."""
    kept = {n: v for n, v in {**FACTS, **facts}.items() if v is not None}
    steps = {
        "step": list(range(20)),
        "dur_ns": [int(step_s * 1e9)] * 20,
        "attempt": [0] * 20,
        "order": list(range(20)),
        "model_flops_per_chip": [FLOPS] * 20,
        "source": ["train.log"] * 20,
    }
    return made_runs.write(place.store, name, {"steps": steps}, kept)


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> Workspace:
    """A store with the bundled compiled runs of one model on two chips, and a run by its log's lines."""
    place = workspace(str(tmp_path_factory.mktemp("ported") / "store"))
    for name in ("compiled-llama3.1-8b-v5p", "compiled-llama3.1-8b-v6e", "compiled-llama3.1-8b-v6e-too-large"):
        ingest([RUNS / name], place.store)
    trained(place)
    return place


def answered(place: Workspace, run: str = "llama-70b", **more) -> PortedPlan:
    query = {"calibrate": run} | {k: v for k, v in more.items() if v is not None}
    return TRAINING.answer(TRAINING.from_query(query), place)


def test_the_contract(kept, capsys, monkeypatch):
    monkeypatch.setenv("CHIPLEDGER_STORE", str(kept.store.root))
    asked = ["whatif", "training", "--calibrate", "llama-70b", "--on", "h100", "--tokens", "1e12", "--price", "h100=3"]
    assert main([*asked, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    run, beside, best = told["from_run"], told["beside"], told["best"]
    assert run["step_s"] == pytest.approx(STEP_S) and run["factor"] == pytest.approx(STEP_S / run["modelled_s"])
    assert run["kind_of_change"] == ["maker"] and run["basis"] == "measured" and run["unchanged_s"] == 0
    assert run["past_error"]["pairs"] >= 8 and run["past_error"]["median"] < run["past_error"]["ninth_tenth"]
    assert {r["account"]: r["basis"] for r in beside} == {
        "useful_maths": "modelled",
        "unattributed/not_profiled": "unattributed",
    }
    for row in beside:
        assert row["change_s"] == pytest.approx(row["ported_s"] - row["measured_s"])
    assert sum(r["measured_s"] for r in beside) == pytest.approx(run["step_s"])
    assert sum(r["ported_s"] for r in beside) == pytest.approx(run["ported_s"]) == pytest.approx(best["step_s"])
    useful = next(r for r in beside if r["account"] == "useful_maths")
    assert useful["measured_s"] == pytest.approx(FLOPS / 459e12)
    assert useful["ported_s"] == pytest.approx(FLOPS / 989.4e12, rel=1e-3)
    assert best["chips"] == CHIPS and best["layout"]["tp"] == 4 and best["layout"]["fsdp"] == 64
    assert best["band"]["low"] < best["step_s"] < best["band"]["high"]
    tokens_per_s = best["tokens_per_s_per_chip"] * CHIPS
    assert best["step_s"] == pytest.approx(told["global_batch_tokens"] / tokens_per_s)
    assert best["days"] == pytest.approx(1e12 / tokens_per_s / 86_400)
    assert best["usd"] == pytest.approx(best["days"] * 24 * CHIPS * 3)
    assert told["ledger"]["parts"] == {}, "they would be of the plan, not of the run"
    for split in ("accounts",):
        assert sum(told["ledger"][split].values()) == pytest.approx(told["ledger"]["held"])
    assert main(asked) == 0
    text = capsys.readouterr().out
    assert (
        "The step of llama-70b, 30.0 s on 256 TPU v5p, is likely to take" in text and "All else, not profiled" in text
    )


def test_nothing_changed_is_the_runs_own_step(kept):
    made = answered(kept)
    choice, other = made.carried
    assert other.differ == () and other.error is None and other.step.after == other.step.before
    assert choice.planned.step_s == choice.planned.low_s == choice.planned.high_s == pytest.approx(STEP_S)
    assert "is the same: nothing was changed." in verdict(made)
    assert made.to_dict()["from_run"]["past_error"] is None
    named = answered(kept, model="llama3.1-70b", on="v5p", chips="256", precision="bf16", layout="tp=4,fsdp=64")
    assert named.carried[1].differ == ()


def test_there_and_back_over_the_store(kept):
    """H100 from the TPU's run; a run that took so long on H100 is carried back to the TPU's own step."""
    there = answered(kept, on="h100").carried[1].step
    useful_s = FLOPS / 989.4e12
    run = trained(kept, "back", there.after_s, chip="H100 SXM")
    back = answered(kept, run.run_id, on="v5p")
    assert back.carried[1].step.before_s == pytest.approx(there.after_s, rel=1e-6) and useful_s < there.after_s
    assert back.carried[0].planned.step_s == pytest.approx(STEP_S, rel=1e-3), "peaks are kept with four digits"


def test_a_compiled_run_beside_the_one_that_was_compiled_there(kept):
    """Neither ran: both are least times of their programs, and the range that is told of the one holds the other."""
    steps = {}
    for name in ("v5p", "v6e"):
        steps[name] = answered(kept, f"compiled-llama3.1-8b-{name}").carried[1].step.before_s
    for start, end in (("v5p", "v6e"), ("v6e", "v5p")):
        made = answered(kept, f"compiled-llama3.1-8b-{start}", on=end)
        assert made.carried[1].differ == ("chip",) and made.run.compiled
        low, high = made.carried[1].band_s
        assert low <= steps[end] <= high
        assert verdict(made).startswith(f"The least time of a step of compiled-llama3.1-8b-{start}, ")
        assert any("not a forecast of a step" in note for note in made.notes)


def test_the_runs_layout_is_kept_where_it_can_be(kept):
    alike, free = answered(kept, on="h100"), answered(kept, on="h100", layout="any")
    assert {(c.planned.layout["tp"], c.planned.layout["fsdp"]) for c in alike.choices} == {(4, 64)}
    assert len(free.choices) > 1 and free.choices[0].planned.step_s <= alike.choices[0].planned.step_s * (1 + 1e-9)
    wide = answered(kept, on="h100", chips="512")
    assert {c.planned.chips for c in wide.choices} == {512} and len(wide.choices) > 1
    few = answered(kept, seq="131072", global_batch_tokens=str(32 * 131_072))
    assert "The run's layout cannot be kept (" in " ".join(few.notes) and few.choices[0].planned.layout["cp"] > 1
    bound = answered(kept, "compiled-llama3.1-8b-v5p", on="v6e")
    step = answered(kept, "compiled-llama3.1-8b-v5p", on="v6e", layout="any").carried[1].step.after_s
    assert bound.faster.endswith(f": {fmt.duration(step)}.") and step < 0.9 * bound.carried[1].step.after_s


def test_choices_are_ranked_by_the_step_as_carried_over(kept):
    made = answered(kept, on="h100,v5p,v6e", layout="any", chips="256,512")
    rates = [c.planned.tokens_per_s_per_chip for c in made.choices]
    assert rates == sorted(rates, reverse=True) and len({c.planned.chip for c in made.choices}) == 3
    for choice, other in zip(made.choices, made.others, strict=True):
        assert choice.planned.step_s == other.step.after_s
        assert sum(choice.planned.accounts.values()) == pytest.approx(choice.planned.step_s)


def test_a_deadline_counts_for_the_step_as_carried_over(kept):
    plain = TRAINING.answer(TRAINING.from_query({"model": "llama3.1-70b", "on": "v5p", "chips": "256"}), None)
    made = answered(kept, tokens="1e12", days="1")
    assert made.best is None and made.choices[0].planned.step_s != plain.choices[0].planned.step_s
    assert "beyond the deadline" in verdict(made).whole


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"on": "h100"},
        {"on": "v6e", "chips": "64,128", "tokens": "1e12", "days": "30"},
        {"precision": "fp8", "on": "h100"},
        {"layout": "pp=4,tp=4"},
        {"remat": "full"},
        {"seq": "4096"},
        {"chips": "128"},
        {"on": "b200", "layout": "any", "price": "b200=6", "tokens": "2e12", "usd": "1e6"},
    ],
)
@pytest.mark.parametrize("run", ["llama-70b", "compiled-llama3.1-8b-v5p"])
def test_its_words_are_words(kept, run, more):
    try:
        made = answered(kept, run, **more)
    except QuestionError as e:
        assert "\n" not in str(e)
        return
    said = TRAINING.words(made)
    assert not faults(said.verdict, {"llama-70b"}), faults(said.verdict)
    assert not [n for n in said.notes if jumbled(n)]
    assert not [c for row in said.table.rows for c in row if unread(c)]
    json.dumps(TRAINING.told(made), allow_nan=False)
    band = made.carried[1].error
    assert band is None or f"{band.pairs} pairs of published runs" in said.verdict.whole or not band.own


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"seq": None}, r"does not tell its seq; expected it said with `chipledger facts \w{12} seq=N`"),
        ({"seq": None, "global_batch": None}, r"its seq and global batch; .* seq=N global_batch=N`"),
        ({"model": None}, r"does not tell its model; .* model=NAME`"),
        ({"chip": None}, r"does not tell its chip; .* chip=NAME`"),
        ({"chips": None}, r"does not tell its chips; .* chips=N`"),
        ({"chip": "cpu-process"}, "of its chip, cpu-process, neither memory rate nor network is published"),
        ({"model": "my own model"}, "my own model"),
        ({"precision": "float32"}, "it ran in float32; expected one of bf16"),
        ({"precision": "int8"}, "it ran in int8"),
        ({"parallelism": {"tensor": 3}}, "cuts 3 ways, on 256 chips; .* parallelism=AXIS=N"),
        ({"parallelism": {"fsdp": 512}}, "cuts 512 ways, on 256 chips"),
        ({"global_batch": -3}, "does not tell its global batch"),
        ({"global_batch": 511}, "the model has no step of its own setup .*511 sequences"),
        ({"model": "llama3.1-405b", "chips": 8, "parallelism": None, "global_batch": 64}, "does not fit"),
        ({"chip": "TPU 8t"}, "bf16_flops_per_s"),
        ({"seq": 512}, "the model says .* Check the run's model, chips, seq, global_batch"),
    ],
)
def test_runs_that_cannot_be_carried_over(place, facts, said):
    trained(place, "llama-70b", **facts)
    with pytest.raises(ChipledgerError, match=said) as refused:
        answered(place)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 600


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"model": "llama3.1-8b"}, "trained llama3.1-70b, not llama3.1-8b"),
        ({"model": "nothing"}, "nothing"),
        ({"on": "nothing"}, "nothing"),
        ({"on": "T4"}, "bf16"),
        ({"chips": "0"}, "a number of chips"),
        ({"chips": "7"}, "no layout divides|does not fit"),
        ({"layout": "tp=3"}, "cuts 3 ways"),
        ({"layout": "tp"}, "the size of tp"),
        ({"global_batch_tokens": "1"}, "at least one sequence"),
        ({"precision": "fp4", "on": "h100"}, "fp4_flops_per_s"),
        ({"price": "h100=3"}, "a price for H100 SXM"),
        ({"run": "no such run"}, "no run 'no such run'"),
        ({"run": "x" * 10_000}, "no run"),
        ({"run": "compiled-llama3.1-8b-v6e-too-large"}, "did not compile"),
    ],
)
def test_what_cannot_be_asked(kept, more, said):
    with pytest.raises(ChipledgerError, match=said) as refused:
        answered(kept, more.pop("run", "llama-70b"), **more)
    assert len(str(refused.value)) < 600


def test_a_run_without_steps_or_of_a_server_is_refused(place):
    made_runs.write(place.store, "served", {}, {"chip": "v5p"}, kind="serving")
    with pytest.raises(QuestionError, match="it served requests"):
        answered(place, "served")
    made_runs.write(place.store, "stepless", {}, FACTS)
    with pytest.raises(ChipledgerError, match="no steps"):
        answered(place, "stepless")
    with pytest.raises(QuestionError, match="no store is open"):
        answered(None)


def test_a_run_that_was_simulated_is_not_called_measured(place):
    trained(place, simulated=True, step_s=40.0)
    made = answered(place, on="h100")
    assert made.to_dict()["from_run"]["basis"] == "modelled" and "40.0 s were simulated" in verdict(made).whole
    assert "measured" not in verdict(made).whole


def test_a_model_that_the_run_does_not_tell_may_be_named(place):
    trained(place, model=None)
    assert answered(place, model="llama3.1-70b").run.model.name == "llama3.1-70b"


def test_axes_of_devices_are_taken_by_chips(place):
    """A TPU 7x shows as two devices."""
    trained(place, chip="TPU 7x", parallelism={"fsdp": 128, "tensor": 4}, step_s=8.0)
    made = answered(place)
    assert made.run.axes | {"fsdp": 64, "tensor": 4} == made.run.axes and made.carried[1].differ == ()


def test_the_batch_is_that_of_the_lines_where_it_is_not_stated(place):
    steps = {"step": [0, 1, 2], "dur_ns": [int(30e9)] * 3, "attempt": [0] * 3, "order": [0, 1, 2]}
    steps |= {"tokens_per_s_per_chip": [BATCH * SEQ / CHIPS / 30.0] * 3, "source": ["train.log"] * 3}
    made_runs.write(place.store, "printed", {"steps": steps}, {n: v for n, v in FACTS.items() if n != "global_batch"})
    made = answered(place, "printed")
    assert made.run.batch == BATCH
    assert [r.name for r in made.carried[1].step.rows] == ["unattributed/not_profiled"], "no line tells of FLOPs"


def test_a_run_that_still_goes_on_is_told_as_such(place):
    run = trained(place)
    live = Live(name="going", project="p", job="j", run_id=run.run_id, state="following", last_poll_ns=time.time_ns())
    place.store.live.write(live)
    assert "The run still goes on: its steps so far count." in answered(place).notes


def test_a_run_of_a_model_of_its_own_is_carried_over(place):
    """By its dimensions, which the catalogue does not have under any name."""
    own = {"num_layers": 32, "hidden_size": 4096, "vocab_size": 32_000, "num_heads": 32, "intermediate_size": 11_008}
    trained(place, model=own, step_s=1.0, parallelism=None)
    made = answered(place, on="h100")
    assert made.run.axes == {} and math.isfinite(made.carried[1].step.after_s)
    assert "The run does not tell its layout: the fastest that fits stands for it." in made.notes


def test_figures_hold_every_account():
    rows = [
        Row(path=("useful_maths",), measured_s=0.4, ported_s=0.2, rule="", kept_s=0.0),
        Row(path=("straggler_wait", "waiting for <b>"), measured_s=0.1, ported_s=0.1, rule="", kept_s=0.1),
        Row(path=("pipeline_bubble",), measured_s=0.0, ported_s=0.05, rule="", kept_s=0.0),
    ]
    bars = two_ledgers(rows, ("as it was", "8 A"), ("carried over", "8 B"))
    assert [sum(bar.x[i] for bar in bars.data) for i in (0, 1)] == pytest.approx([500, 350])
    assert not any("<b>" in bar.name for bar in bars.data)
    assert sum(differences(rows).data[0].x) == pytest.approx(-150)


def test_the_page_shows_both_ledgers(kept, monkeypatch):
    monkeypatch.setenv("CHIPLEDGER_STORE", str(kept.store.root))
    page = opened("pages/training_planner/page.py", calibrate="llama-70b", on="H100 SXM")
    assert not page.exception and "What becomes of each account of the step?" in words(page)
    assert "pairs of published runs" in words(page)
    refused = opened("pages/training_planner/page.py", calibrate="no such run")
    assert not refused.exception and "no such run" in words(refused)


def test_a_carried_run_is_judged_by_all_of_its_accounts(kept):
    made = answered(kept, "compiled-llama3.1-8b-v6e", on="v6e,v5p", chips="16,32", layout="any")
    first = made.first.planned
    for one, reason in zip(made.choices[1:], made.losers, strict=True):
        p = one.planned
        true = p.step_s * p.chips - first.step_s * first.chips
        assert reason.total is None or reason.total == pytest.approx(true, rel=1e-6, abs=1e-9), reason.text
        assert "as good" not in reason.text or true <= 1e-6 * first.step_s * first.chips


def test_a_carried_run_says_what_would_do_and_which_limit_is_not_kept(kept):
    made = answered(kept, "compiled-llama3.1-8b-v6e", on="v6e", chips="32", tokens="1e11", price="v6e=2.7", days="3")
    assert made.best is None and {w.limit for w in made.would_do} >= {"days", "chips"}
    said = verdict(made)
    assert said.startswith("The job takes") and "deadline" in said and "is likely to do" in said.whole

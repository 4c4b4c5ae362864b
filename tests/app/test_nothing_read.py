"""What no input tells of is not ruled out: its 0 is none that was read."""

import re

import pytest

from app.questions.asking import ask
from app.questions.findings import FINDINGS
from app.questions.findings.words import nothing
from collectors.ingest import ingest
from tests.analyzers.served_worlds import world
from tests.analyzers.worlds import World
from tests.app import made_runs, served_runs
from tests.app.made_runs import S
from tests.collectors.kineto_traces import collective, kernel, launch, op, step, trace

KNOWN = {"chips": 4, "chip": "v5p", "model": "llama3.1-8b", "seq": 4096, "global_batch": 8}
FLOPS = "the job's log where it prints TFLOP/s; of PyTorch, profile with record_shapes=True"
PACE = {"growing_steps", "step_change", "periodic_pause", "irregular_pauses"}


def told(place, run):
    """Causes that are ruled out, and why each of the others is not told."""
    found = ask(FINDINGS, run, {}, place.registry)
    return {r.cause for r in found.ruled_out}, {c: gap.why for gap in found.not_told for c in gap.causes}


def test_a_log_of_steps_rules_out_nothing_of_programs_and_of_the_start(place):
    run = made_runs.write(place.store, "log", {"steps": made_runs.step_columns([10 * S] * 200)}, KNOWN)
    out, dark = told(place, run)
    causes = {"padding", "recomputation", "cold_cache"}
    assert not causes & out and causes <= {*dark} and out >= PACE


@pytest.mark.parametrize("steps", [1, 2, 12])
def test_few_steps_have_no_pace(place, steps):
    run = made_runs.write(place.store, "few", {"steps": made_runs.step_columns([10 * S] * steps)}, KNOWN)
    out, dark = told(place, run)
    assert not PACE & out and all("too few to tell their pace" in dark[cause] for cause in PACE)


def test_ranks_of_one_group_show_no_link_that_is_as_quick_as_others(place, tmp_path):
    """Two ranks reduce together, and nothing tells how much they need to."""
    files = []
    for rank in range(2):
        rows = [op("aten::a", 0, 1)]
        for n in range(24):
            at = 1000 * n
            rows += [step(n, at, 990), launch(at + 1, 1, 2 * n), collective("allreduce", at + 5, 300, 2 * n, Seq=n)]
            rows += [launch(at + 3, 1, 2 * n + 1), kernel("k", at + 306, 600, 2 * n + 1)]
        files.append(tmp_path / f"rank-{rank}.json")
        files[-1].write_bytes(trace(rows, distributedInfo={"rank": rank, "world_size": 2, "backend": "nccl"}))
    run = place.store.get(ingest(files, place.store).run_id)
    out, dark = told(place, run)
    assert "no two groups" in dark["slow_link"] and "gradients" in dark["excess_collectives"]
    assert not {"slow_link", "excess_collectives"} & out


@pytest.mark.parametrize(("took_us", "slow"), [(20, False), (3500, True)])
def test_messages_that_are_slow_and_cost_little_are_not_said_to_be_quick(place, tmp_path, took_us, slow):
    """Two ranks reduce 1 kB in each step of a second."""
    files = []
    for rank in range(2):
        rows = [op("aten::a", 0, 1)]
        for n in range(24):
            at, more = 1_000_000 * n, {"In msg nelems": 256, "dtype": "Float"}
            rows += [step(n, at, 999_000), launch(at + 1, 1, 2 * n), launch(at + 3, 1, 2 * n + 1)]
            rows += [collective("allreduce", at + 5, took_us, 2 * n, Seq=n, **more)]
            rows += [kernel("k", at + 10_000, 900_000, 2 * n + 1)]
        files.append(tmp_path / f"rank-{rank}.json")
        files[-1].write_bytes(trace(rows, distributedInfo={"rank": rank, "world_size": 2, "backend": "nccl"}))
    found = ask(FINDINGS, place.store.get(ingest(files, place.store).run_id), {}, place.registry)
    (why,) = (r.why for r in found.ruled_out if r.cause == "slow_network")
    assert ("takes 3.50 ms" in why and why.endswith("and that costs little")) == slow
    assert ("as quick as a network's" in why) != slow


@pytest.mark.parametrize(
    ("told_again", "preempted", "why"),
    [(True, True, None), (False, True, "put back for want of cache"), (False, None, "nothing tells whether requests")],
)
def test_what_preemptions_cost_is_ruled_out_only_where_it_is_told(place, told_again, preempted, why):
    made = world(n=240, rate=9, seed=3, preempt_every=60)
    if told_again:
        made.iterations["recomputed_tokens"] = [0] * len(made.iterations["order"])
    if preempted is None:
        made.requests.pop("preemptions")
        made.iterations.pop("preempted")
    out, dark = told(place, served_runs.write(place.store, f"{told_again} {preempted}", made))
    assert ("kv_preemption" in out) == (why is None) == ("kv_preemption" not in dark)
    assert why is None or why in dark["kv_preemption"]


def test_what_one_look_cannot_tell_another_does_not_rule_out(place, tmp_path):
    """One rank of which a profile shows the host: no garbage is collected on it, and of the others nothing is known;
    and a log of steps that reports no evaluation, of which hosts may do some all the same."""
    rows = [op("aten::a", 0, 1), *(step(n, 1000 * n, 990) for n in range(30))]
    rows += [e for n in range(30) for e in (launch(1000 * n + 1, 1, n), kernel("k", 1000 * n + 6, 900, n))]
    path = tmp_path / "rank-0.json"
    path.write_bytes(trace(rows, distributedInfo={"rank": 0, "world_size": 8, "backend": "nccl"}))
    profiled = place.store.get(ingest([path], place.store).run_id)
    logged = made_runs.write(place.store, "log", {"steps": made_runs.step_columns([10 * S] * 200)}, KNOWN)
    for run, cause in ((profiled, "garbage_collection"), (logged, "evaluation")):
        out, dark = told(place, run)
        assert cause in dark and not out & {*dark}


@pytest.mark.parametrize(("save_s", "told"), [(0.3, False), (1.5, True)])
def test_what_is_found_and_gives_back_too_little_is_said(place, save_s, told):
    """A job of 2,000 steps that saves at every second one, which is far too often."""
    at, end, starts, saves = made_runs.START_NS, [], [], []
    for n in range(2000):
        starts.append(at)
        at += 10 * S
        if n % 2:
            saves.append(at)
            at += round(save_s * S)
            end.append(at)
    kinds, order = ["job", *["checkpoint_save"] * len(saves)], [*range(len(saves) + 1)]
    life = {"kind": kinds, "start_ns": [starts[0], *saves], "end_ns": [at, *end], "order": order}
    steps = {"step": [*range(2000)], "start_ns": starts, "order": [*range(2000)]}
    run = made_runs.write(place.store, "saving", {"steps": steps, "lifecycle": life}, {"chips": 4})
    found = ask(FINDINGS, run, {}, place.registry)
    outs = [r.why for r in found.ruled_out if r.cause == "frequent_checkpoints"]
    assert ("frequent_checkpoints" in {f.cause for f in found.findings}) == told == (not outs)
    little = re.compile(r"mending it would give back [01]\.\d+ % of the chip time, too little for a finding")
    assert told or little.fullmatch(outs[0])


@pytest.mark.parametrize(
    ("chip", "flops", "add"),
    [
        ("TPU v5p", None, f"Add {FLOPS}."),
        (None, None, f"Add which chip it was, under Facts, and {FLOPS}."),
        (None, 3e12, "Add which chip it was, under Facts."),
    ],
)
def test_of_computing_that_is_not_told_apart_only_what_lacks_is_asked_for(place, chip, flops, add):
    seen = World(executed_flops=flops).tables(goodput=False)
    names = ("captures", "collectives", "steps", "lifecycle", "ops", "op_events")
    tables = {name: seen.arrow(name).to_pydict() for name in names}
    run = made_runs.write(place.store, "profile", tables, {"chips": 4} | ({"chip": chip} if chip else {}))
    assert nothing(ask(FINDINGS, run, {}, place.registry)).endswith(f"nothing in that stands out. {add}")

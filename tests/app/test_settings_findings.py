"""Settings that cost, told as findings: where, on which hosts, and with an amount where one was measured alone."""

import pytest

from analyzers.findings.base import Seen
from analyzers.findings.rules import settings
from app.questions.asking import ask
from app.questions.findings import FINDINGS
from app.questions.findings.words import value, verdict
from catalog.settings import BY_NAME
from collectors.ingest import ingest
from runs.ledger import Account, Ledger
from runs.store import Store
from runs.tables import MemoryTables
from tests.collectors.kineto_traces import kernel, launch, op, step, trace

IDLE_US = 200


def job(folder, log, idle_us=IDLE_US):
    """A run of one GPU whose device is idle for so long in each step while its host launches, and what its launcher
    wrote."""
    events = []
    for n in range(3):
        at, begun = 1000 * n, 1000 * n + idle_us
        events += [
            step(n, at, 990),
            launch(max(begun - 3, at), 1, 2 * n + 1),
            kernel("k", begun, 980 - idle_us, 2 * n + 1),
        ]
        events += [op("aten::a", at, idle_us)] if idle_us else []
    (folder / "in").mkdir()
    (folder / "in" / "rank-0.json").write_bytes(trace(events))
    (folder / "in" / "launch.log").write_text(log)
    store = Store(folder / "store")
    return store.get(ingest([folder / "in"], store).run_id)


def told(place, run):
    result = ask(FINDINGS, run, {}, place.registry)
    return result, [f for f in result.findings if f.cause == "wrong_flags"]


def test_a_setting_that_costs_is_told_with_its_line_and_no_amount_beside_what_it_makes_slow(place, tmp_path):
    run = job(tmp_path, "HOME=/root\nCUDA_LAUNCH_BLOCKING=1\n")
    result, (found,) = told(place, run)
    assert found.title.startswith("CUDA_LAUNCH_BLOCKING=1 is set: every launch waits")
    assert (found.evidence[0].name, found.evidence[0].value) == ("printed in", "launch.log:2: CUDA_LAUNCH_BLOCKING=1")
    assert found.gain is None and found.draws == {} and found.confidence == settings.AGREED
    (slow,) = (f for f in result.findings if f.cause == "launch_bound")
    assert result.joint[-1] == pytest.approx(slow.gain.likely), "what it makes slow is given once"
    assert result.findings.index(found) > result.findings.index(slow)


def test_it_is_ruled_out_where_what_it_draws_on_holds_little(place, tmp_path):
    run = job(tmp_path, "CUDA_LAUNCH_BLOCKING=1\n", idle_us=0)
    result, found = told(place, run)
    assert found == []
    (out,) = (r for r in result.ruled_out if r.cause == "wrong_flags")
    assert out.why.startswith("CUDA_LAUNCH_BLOCKING=1 is set, but what it draws on holds ")


def test_values_that_do_not_cost_are_ruled_out_and_no_setting_at_all_is_not_spoken_of(place, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    result, found = told(place, job(tmp_path / "a", "CUDA_LAUNCH_BLOCKING=0\n"))
    assert found == [] and [r.why for r in result.ruled_out if r.cause == "wrong_flags"] == [
        "of the settings that are known to cost, logs print CUDA_LAUNCH_BLOCKING, with values that do not"
    ]
    result, found = told(place, job(tmp_path / "b", "SOME_ERROR=1\nTraceback (most recent call last):\n"))
    assert found == [] and not any(r.cause == "wrong_flags" for r in result.ruled_out)


def test_the_last_value_before_the_steps_counts_and_both_are_told(place, tmp_path):
    _, (found,) = told(place, job(tmp_path, "CUDA_LAUNCH_BLOCKING=0\nCUDA_LAUNCH_BLOCKING=1\n"))
    assert [e.value for e in found.evidence[:2]] == [
        "launch.log:2: CUDA_LAUNCH_BLOCKING=1",
        "launch.log:1: CUDA_LAUNCH_BLOCKING=0",
    ]
    assert all(value(e.value, e.unit) for e in found.evidence)


def test_hosts_that_disagree_are_named(place, tmp_path):
    said = "{}:1:1 [0] NCCL INFO NCCL_DEBUG set by environment to {}.\n"
    log = "".join(said.format(f"node-{n}", "TRACE" if n == 2 else "INFO") for n in range(4))
    _, (found,) = told(place, job(tmp_path, log))
    assert "is set on 1 of 4 hosts (node-2): NCCL prints" in found.title
    assert found.where.hosts == ("node-2",)
    assert "launch.log:1: NCCL_DEBUG=INFO" in [e.value for e in found.evidence]


def test_several_settings_are_not_said_over_and_over(place, tmp_path):
    log = "CUDA_LAUNCH_BLOCKING=1\nPYTHONDEVMODE=1\nPYTORCH_NO_CUDA_MEMORY_CACHING=1\n"
    result, found = told(place, job(tmp_path, log))
    assert len(found) == 3
    assert str(verdict(result)).count("it runs with a setting that costs") == 1


def ops(fused_s, products_s):
    """Operations of one device: those that the compiler wrote, those that call a library, and a collective."""
    return {
        "op_id": [0, 1, 2],
        "capture": [0, 0, 0],
        "device": [0, 0, 0],
        "category": ["fusion", "matmul", "collective"],
        "self_ns": [fused_s * 1e9, products_s * 1e9, 5e9],
    }


def seen(accounts, fused_s=3.0, products_s=1.0, device="CPU", setting=("xla_backend_optimization_level", "0"), **more):
    parts = [Account(name=name, chip_seconds=s, basis="measured") for name, s in accounts.items()]
    tables = {
        "settings": {"name": [setting[0]], "value": [setting[1]], "order": [0], "line": [3], "source": ["x.log"]},
        "captures": {"capture": [0], "device_type": [device]},
        "ops": ops(fused_s, products_s),
        "op_events": {"capture": [0], "op_id": [0]},
        **more,
    }
    held = Ledger(chips=1, account=Account.total("held", parts))
    return Seen(tables=MemoryTables(tables), facts={}, answers=None, ledger=held)


def test_an_amount_is_the_measured_share_of_what_the_compiler_wrote():
    (found,) = settings.find(seen({"below_roofline": 8.0, "useful_maths": 2.0, "exposed_communication": 5.0})).findings
    gives = BY_NAME["xla_backend_optimization_level"].gives
    assert found.gain.likely == pytest.approx((8.0 + 2.0) * 0.75 * gives.likely)
    assert (
        found.gain.low < 10 * 0.75 * gives.low + 1e-9 < found.gain.likely < 10 * 0.75 * gives.high < found.gain.high + 3
    )
    assert sum(found.draws.values()) == pytest.approx(found.gain.likely)
    assert found.draws["below_roofline"] == pytest.approx(min(8.0, found.gain.likely))
    assert found.confidence == settings.SURE


@pytest.mark.parametrize("device", ["GPU", "TPU"])
def test_what_was_measured_on_cpus_alone_is_no_amount_elsewhere(device):
    (found,) = settings.find(seen({"below_roofline": 8.0, "useful_maths": 2.0}, device=device)).findings
    assert found.gain is None


@pytest.mark.parametrize(("dtype", "count"), [("f32", 1), ("bf16", 0), (None, 0)])
def test_a_setting_for_a_format_of_numbers_costs_where_products_are_in_it(dtype, count):
    products = {"dtype": [dtype], "m": [8], "k": [8], "n": [8], "batch": [1], "count": [1]}
    one = seen({"below_roofline": 8.0}, setting=("NVIDIA_TF32_OVERRIDE", "0"), device="GPU", matmuls=products)
    assert len(settings.find(one).findings) == count


@pytest.mark.parametrize("profiled", [True, False])
def test_what_depends_on_the_machine_is_told_only_where_communication_is_seen(profiled):
    more = {} if profiled else {"op_events": {}, "ops": {}, "captures": {}}
    for exposed, count in ((3.0, 1), (0.1, 0), (0.0, 0)):
        accounts = {"useful_maths": 10.0, "exposed_communication": exposed}
        one = seen(accounts, setting=("NCCL_IB_DISABLE", "1"), device="GPU", **more)
        assert len(settings.find(one).findings) == count


def test_without_a_profile_a_setting_is_told_as_less_sure():
    one = seen({"unattributed": 10.0}, setting=("JAX_DISABLE_JIT", "True"), op_events={}, ops={}, captures={})
    (found,) = settings.find(one).findings
    assert (found.gain, found.confidence) == (None, settings.ALONE)

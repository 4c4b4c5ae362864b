"""Which question of this product names which cause: where in its answer, with which place, and where its amount is.

What has no line here, no question can tell today.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True)
class Reading:
    """How one cause is read off one answer.

    rows      where the rows lie, each of which names the cause; empty: the answer as a whole does
    when      (path, values): what must stand at a path, in the answer or, after `row.`, in the row; no values: a
              number above nothing
    verdict   a pattern that the answer's sentence must show
    accounts  accounts of the ledger that hold the amount; `least`: the share of the chip time that they must reach to
              name the cause at all
    cost      instead: path of chip-seconds, summed over rows; `seconds`: it is seconds, of all chips alike
    place     key of a place: path of its value in each row
    """

    cause: str
    question: str
    rows: str = ""
    when: tuple[tuple[str, tuple[str, ...]], ...] = ()
    verdict: str = ""
    accounts: tuple[str, ...] = ()
    least: float = 0.0
    cost: str = ""
    seconds: bool = False
    place: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


PERSISTENT = ("verdict", ("persistent", "one_step"))
RANK = MappingProxyType({"ranks": "row.rank"})
HOST = MappingProxyType({"hosts": "row.host"})
STOPPED: dict[str, tuple[str, ...]] = {
    "out_of_memory": ("host_out_of_memory", "device_memory"),
    "hang": ("hang",),
    "preemption": ("preemption",),
    "nan_rollback": ("numerics",),
    "restart_loop": ("software",),
}
"""Causes of interruptions, in the words of the product's own catalogue."""


def _straggler(cause: str, *reasons: str) -> Reading:
    """One rank, late for one of these reasons."""
    when = (PERSISTENT, ("row.cause", reasons))
    return Reading(cause, "stragglers", "ranks", when, cost="row.gain_chip_seconds", place=RANK)


READINGS: tuple[Reading, ...] = (
    _straggler("slow_host", "launch", "compute", "idle", "unknown", "copies", "other_communication"),
    _straggler("uneven_loader", "input"),
    _straggler("garbage_collection", "garbage_collection"),
    _straggler("fleet_slow_rank", "launch", "compute", "idle", "unknown", "copies", "other_communication"),
    Reading("jitter", "stragglers", when=(("verdict", ("rotating",)),), cost="cost_chip_seconds"),
    Reading("slow_network", "stragglers", when=(("verdict", ("network",)),), cost="cost_chip_seconds"),
    Reading(
        "step_up",
        "stragglers",
        when=(("step_time.slowdown_chip_seconds", ()),),
        cost="step_time.slowdown_chip_seconds",
        place={"steps": "step_time.stretches"},
    ),
    Reading(
        "fleet_slow_period",
        "stragglers",
        when=(("step_time.slowdown_chip_seconds", ()),),
        cost="step_time.slowdown_chip_seconds",
        place={"steps": "step_time.stretches"},
    ),
    Reading("leak", "steps", when=(("pattern.kind", ("growing",)),), cost="pattern.excess_chip_seconds"),
    Reading("slow_loader", "input", when=(("verdict", ("bound",)),), accounts=("input_wait",)),
    Reading(
        "loader_spikes",
        "input",
        rows="stalls",
        when=(("verdict", ("stalls",)),),
        cost="stall_chip_seconds",
        place={"steps": "row.step"},
    ),
    Reading("recomputation", "ledger", accounts=("recomputation",), least=0.02),
    Reading("dims_padding", "ledger", accounts=("padding",), least=0.02),
    Reading("evaluation", "ledger", accounts=("eval", "eval_step", "idle_evaluation"), least=0.001),
    *(
        Reading(cause, "ledger", accounts=(account,), least=least)
        for cause, account, least in (
            ("recompile_shape", "compilation", 0.02),
            ("recompile_constant", "compilation", 0.02),
            ("metrics_sync", "idle_logging", 0.02),
            ("device_to_host", "idle_device_to_host", 0.02),
            ("tiny_operations", "idle_launching", 0.05),
            ("python_overhead", "idle_host_code", 0.05),
            ("garbage_collection", "idle_garbage_collection", 0.02),
            ("profiler_inside", "idle_profiling", 0.02),
        )
    ),
    Reading("slow_restore", "goodput", verdict="Restoring checkpoints cost the most", accounts=("checkpoint_restore",)),
    Reading("frequent_checkpoints", "checkpoints", verdict="rarer", accounts=("checkpoint_save",), least=0.02),
    Reading("fleet_frequent_saves", "checkpoints", verdict="rarer", accounts=("checkpoint_save",), least=0.02),
    Reading("fleet_rare_saves", "checkpoints", verdict="oftener", accounts=("wasted_progress",), least=0.02),
    *(
        Reading(cause, "interruptions", "interruptions", (("row.cause", names),), cost="row.lost_s", seconds=True)
        for cause, names in STOPPED.items()
    ),
    Reading(
        "fleet_bad_host",
        "interruptions",
        "by_host",
        (("row.lemon", ("True",)),),
        cost="row.lost_s",
        seconds=True,
        place=HOST,
    ),
    Reading(
        "fleet_slow_restart",
        "goodput",
        verdict="Waiting to be restarted after an interruption cost the most",
        accounts=("infrastructure_recovery",),
        least=0.05,
    ),
    Reading(
        "slow_checkpoint",
        "goodput",
        verdict="Saving checkpoints cost the most",
        accounts=("checkpoint_save",),
        least=0.2,
    ),
    Reading(
        "cold_cache",
        "goodput",
        verdict="Startup and compilation cost the most",
        accounts=("program_startup",),
        least=0.35,
    ),
    Reading("kv_preemption", "ledger", accounts=("preemption_recompute",), least=0.02),
    Reading("speculation_waste", "ledger", accounts=("rejected_speculation",), least=0.02),
)


HEADLINES: dict[str, tuple[str, ...]] = {
    "straggler_wait": (
        "slow_host",
        "uneven_loader",
        "garbage_collection",
        "jitter",
        "leak",
        "python_overhead",
        "slow_link",
        "fleet_slow_rank",
    ),
    "input_wait": ("slow_loader", "uneven_loader", "loader_spikes"),
    "checkpoint_save": ("frequent_checkpoints", "slow_checkpoint", "fleet_frequent_saves"),
    "checkpoint_restore": ("slow_restore",),
    "wasted_progress": (*STOPPED, "slow_restore", "fleet_rare_saves", "fleet_bad_host", "fleet_slow_restart"),
    "infrastructure_recovery": (*STOPPED, "slow_restore", "fleet_bad_host", "fleet_slow_restart"),
    "hang": ("hang",),
    "eval": ("evaluation",),
    "eval_step": ("evaluation",),
    "padding": ("dims_padding", "batch_padding"),
    "recomputation": ("recomputation",),
    "bucket_padding": (),
}
"""Which largest loss of the ledger accuses which causes. What every job has, such as its startup, accuses nothing."""

EVENTS = ("eval_step",)
"""Accounts that a job names itself, by the events that it reports."""

EVERYWHERE = ("slow_network", "jitter", "slow_loader", "loader_spikes")
"""What is read of jobs and of fleets; all else is read of one of the two, by the name of its cause."""

COMMUNICATION = ("slow_network", "slow_link", "excess_collectives")
"""What a page accuses that lays time to communication which the ledger books as something else."""

"""What `whatif checkpoint` can be asked."""

from dataclasses import dataclass

from errors.numbers import (
    COUNT,
    DURATION,
    FAILURES,
    NODES,
    SECONDS,
    SECONDS_OR_NONE,
    SHARE,
    USD,
    WEIBULL,
)
from errors.options import Option


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The numbers that a plan rests on, by the names of OPTIONS; None: taken from the run, or not known."""

    save_s: float | None = None
    blocked_s: float | None = None
    mttf_s: float | None = None
    restart_s: float | None = None
    wait_s: float | None = None
    interval_s: float | None = None
    local_save_s: float | None = None
    local_restart_s: float | None = None
    resume_s: float | None = None
    span_s: float | None = None
    nodes: float | None = None
    failures_per_1000_node_days: float | None = None
    local_share: float | None = None
    slices: int | None = None
    chips: int | None = None
    usd_per_chip_hour: float | None = None
    weibull_shape: float | None = None
    run: str | None = None

    @property
    def given(self) -> frozenset[str]:
        """The names of the numbers that are given."""
        return frozenset(n for n, value in vars(self).items() if value is not None and n != "run")


OPTIONS: tuple[Option, ...] = (
    Option(
        "save_s",
        DURATION,
        None,
        "from the beginning of a save until the checkpoint is safe",
        "s",
        "A save",
    ),
    Option(
        "blocked_s",
        SECONDS,
        None,
        "the part of a save that blocks training, if it is written in the background (default: all of it)",
        "s",
        "Blocking part of a save",
    ),
    Option(
        "mttf_s",
        DURATION,
        None,
        "mean time to failure of the whole job: time at risk by failures",
        "s",
        "Mean time to failure",
    ),
    Option(
        "restart_s",
        SECONDS_OR_NONE,
        None,
        "from having machines again to training: initialisation, restore, compilation (default: 0)",
        "s",
        "Restarting",
    ),
    Option(
        "wait_s",
        SECONDS_OR_NONE,
        None,
        "from a failure to having machines again; nothing can fail then (default: 0)",
        "s",
        "Waiting for machines",
    ),
    Option("interval_s", DURATION, None, "work between two saves as it is now", "s", "Work between saves"),
    Option("local_save_s", DURATION, None, "blocking time of a save to a local tier", "s", "A local save"),
    Option(
        "local_restart_s",
        SECONDS_OR_NONE,
        None,
        "a restart from the local tier (default: as any restart)",
        "s",
        "A restart from the local tier",
    ),
    Option(
        "resume_s",
        SECONDS_OR_NONE,
        None,
        "each of the two pauses of elastic training: to go on with fewer slices, and to take one in again "
        "(default: a restart)",
        "s",
        "A pause of elastic training",
    ),
    Option(
        "span_s",
        DURATION,
        None,
        "time to which the gains are applied, such as the time that the job is to run",
        "s",
        "Time the gains are for",
    ),
    Option(
        "nodes",
        NODES,
        None,
        "nodes of the job: for spares, and with --failures-per-1000-node-days instead of --mttf-s",
    ),
    Option(
        "failures_per_1000_node_days",
        FAILURES,
        None,
        "failures of one node in 1,000 days, times 1,000 nodes over a day; instead of a mean time to failure",
        label="Failures per 1,000 node-days",
    ),
    Option("local_share", SHARE, None, "share of failures that the local tier survives, 0 to 1 (default: 0.8)"),
    Option("slices", COUNT, None, "slices of the job: what elastic training goes on without one of"),
    Option("chips", COUNT, None, "chips of the job"),
    Option(
        "usd_per_chip_hour",
        USD,
        None,
        "price of a chip-hour in dollars: gives the gains a price",
        "USD",
        label="Dollars per chip-hour",
    ),
    Option(
        "weibull_shape",
        WEIBULL,
        None,
        "shape of the times between failures in the check by simulation (default: 1, exponential)",
    ),
    Option("run", str, None, "a run of the store: what is not given is taken from it", of_run=True),
)

"""Ledgers as analyzers give them, without an analyzer: a usual one, one of which nothing is known, an odd one."""

from analyzers.time.ledger import Interruption, LedgerResult
from runs.ledger import Account, Ledger

HOUR = 3600.0
START_NS = 1_767_571_200_000_000_000


def leaf(name: str, hours: float, basis: str = "derived", source: str = "a rule") -> Account:
    return Account(name=name, chip_seconds=hours * HOUR, basis=basis, source=source)


def usual(usd_per_chip_hour: float | None = None) -> LedgerResult:
    """12,400 chip-hours: 8,680 kept, 3,620 badput, 100 outside the job's own record."""
    productive = Account.total(
        "productive",
        [
            leaf("useful_maths", 4200),
            leaf("padding", 300, "modelled"),
            leaf("below_roofline", 1800),
            leaf("exposed_communication", 900, "measured"),
            Account.total("straggler_wait", [leaf("waiting for host 7", 150), leaf("no_single_rank", 20)]),
            leaf("input_wait", 80),
            leaf("device_idle", 30),
            Account.total("unattributed", [leaf("not_profiled", 1200, "unattributed")]),
        ],
    )
    badput = Account.total(
        "badput",
        [
            leaf("infrastructure_recovery", 1200, "measured"),
            leaf("wasted_progress", 900),
            leaf("program_startup", 400),
            leaf("checkpoint_save", 350),
            leaf("checkpoint_restore", 120),
            leaf("accelerator_initialization", 60),
            Account.total("custom", [leaf("<b>evil</b> & $5 v1.2", 90)]),
            leaf("other", 500),
        ],
    )
    account = Account.total("held", [productive, badput, leaf("unattributed", 100, "unattributed")])
    stop = Interruption(
        attempt=0,
        last_sign_ns=START_NS + int(20e12),
        restart_ns=START_NS + int(25e12),
        last_step=99,
        resumed_step=91,
        wasted_steps=8,
    )
    return LedgerResult(
        ledger=Ledger(chips=256, account=account).priced(usd_per_chip_hour),
        start_ns=START_NS,
        end_ns=START_NS + int(account.chip_seconds / 256 * 1e9),
        interruptions=(stop,),
        profiled_share=0.5,
        notes=(),
    )


def dark() -> LedgerResult:
    """1.2 chip-hours of steps that no profile covers, hardly anything else."""
    productive = Account.total("productive", [leaf("unattributed", 1.104, "unattributed")])
    account = Account.total("held", [productive, Account.total("badput", [leaf("other", 0.096)])])
    return LedgerResult(
        ledger=Ledger(chips=1, account=account),
        start_ns=None,
        end_ns=None,
        interruptions=(),
        profiled_share=0.0,
        notes=(),
    )


def empty() -> LedgerResult:
    account = Account.total("held", [])
    return LedgerResult(
        ledger=Ledger(chips=1, account=account),
        start_ns=None,
        end_ns=None,
        interruptions=(),
        profiled_share=None,
        notes=(),
    )


def uncounted(useful: float = 12.0) -> Ledger:
    """100 chip-hours in kept steps; in 40 of them devices computed what nobody counts the FLOPs of."""
    dark = Account.total("unattributed", [leaf("compute_unsplit", 40, "unattributed")])
    parts = [leaf("useful_maths", useful), leaf("input_wait", 60 - useful), dark]
    held = Account.total("held", [Account.total("productive", parts)])
    return Ledger(chips=1, account=held, useful_flops=1e20)

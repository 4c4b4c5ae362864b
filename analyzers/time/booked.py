"""What the ledger of a training job books, for questions that cut the same time otherwise.

Communication, waiting, input and idle have one definition each: the ledger's. A question that counts them over another
time, or with waiting still inside, says beside its own number what the ledger books.
"""

from dataclasses import asdict, dataclass

from analyzers.base import Facts, fact
from analyzers.flops.executed import extra
from analyzers.flops.peak import Hardware, hardware
from analyzers.ranks.waits import waits
from analyzers.serving import accounts as serving_accounts
from analyzers.time import training_accounts
from analyzers.time.calendar import Calendar
from analyzers.time.device_time import device_traces, devices
from analyzers.time.job_past import job_past, kept_by_state
from analyzers.time.training_accounts import Book
from analyzers.time.undated_pauses import undated_pauses_s
from runs.kept import Answers
from runs.ledger import Account
from runs.tables import Tables

MOST_BYTES = 64 << 20
_measured = Answers(MOST_BYTES)


@dataclass(frozen=True)
class Booked:
    """Chip-seconds of accounts of the ledger of this run: kept steps that a profile covers, on all of its devices; of a
    profile without any step all that it covers.

    `devices_per_chip`: device-seconds divided by it are chip-seconds.
    """

    exposed_communication: float
    communication_or_wait: float
    straggler_wait: float
    input_wait: float
    device_idle: float
    exposed_copies: float
    devices_per_chip: int

    def to_dict(self) -> dict[str, float]:
        return {f"{name}_chip_s": value for name, value in asdict(self).items() if name != "devices_per_chip"}


NAMES = tuple(name for name in Booked.__dataclass_fields__ if name != "devices_per_chip")


def measured(tables: Tables, facts: Facts) -> tuple[Hardware, Calendar | None, Book] | None:
    """The hardware, the calendar and the accounts of a training job; None where nothing tells of its time. Of a stored
    run they are worked out once."""
    return kept_by_state(_measured, tables, facts, lambda: _work_out(tables, facts))


def booked(tables: Tables, facts: Facts) -> Booked | None:
    """What the ledger books; None where the run is no training job, or no profile tells what its devices did."""
    if fact(facts, "outcome") is not None or serving_accounts.is_serving(tables) or not devices(tables):
        return None
    found = measured(tables, facts)
    if found is None:
        return None
    machine, _, book = found
    of = {name: _sum(book.account, name) for name in NAMES}
    return Booked(**of, devices_per_chip=machine.devices_per_chip)


def _sum(account: Account, name: str) -> float:
    """Chip-seconds of all accounts of that name."""
    if account.name == name:
        return account.chip_seconds
    return sum(_sum(part, name) for part in account.children)


def _work_out(tables: Tables, facts: Facts) -> tuple[Hardware, Calendar | None, Book] | None:
    past, days = job_past(tables, facts)
    found = devices(tables)
    if days is None and not found and not len(past.rows):
        return None
    machine = hardware(tables, facts)
    if days is None and len(past.rows) and (not found or (past.origin != "profile" and not past.timed)):
        pauses_s = undated_pauses_s(tables, past.rows["step"])
        return machine, days, training_accounts.from_step_lines(past, machine, len(found), pauses_s)
    traces = device_traces(tables, waits(tables))
    return machine, days, training_accounts.from_time(past, days, machine, extra(tables, facts), traces)

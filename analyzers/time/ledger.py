"""The ledger: every chip-second held by a training job, a serving engine or a compiled step, in exactly one account.

Time is painted, not added up: the calendar gives each instant of the job one heading, and inside kept steps each
profiled device gives each instant one use (computing, exposed communication before and after the last rank came,
waiting for input, idle). So the accounts close whatever the inputs overlap or contradict.

    held = productive + badput
    productive = useful maths + recomputation + padding + below roofline + exposed communication + exposed copies
                 + straggler wait + input wait + idle + unattributed
    useful maths = model FLOPs of kept steps / peak FLOP/s;  recomputation, padding = their FLOPs / peak FLOP/s
    below roofline = time computing - useful maths - recomputation - padding

Where no profile covers a kept step, its useful maths is entered if its FLOPs and a peak are known; the rest is
`unattributed`: a profile of ten steps says nothing of the other thousand. The accounts of serving are told in
`analyzers.serving.accounts`, those of a compiled step in `analyzers.compiled.accounts`.
"""

import math
from dataclasses import dataclass
from typing import Any

from analyzers.base import Facts, fact
from analyzers.compiled import accounts as compiled_accounts
from analyzers.flops.peak import Hardware, hardware
from analyzers.held import PRICE
from analyzers.serving import accounts as serving_accounts
from analyzers.serving.server_start import refuse_of_a_server
from analyzers.time.booked import measured
from analyzers.time.calendar import NO_STEP_READ, Calendar, Interruption
from analyzers.time.history import without_steps
from analyzers.time.training_accounts import Book
from errors import QuestionError
from errors.numbers import SECONDS
from errors.options import Option
from runs.ledger import Ledger
from runs.tables import Tables

OBJECTIVES = {"ttft_s": "time to first token", "tpot_s": "time per output token", "e2e_s": "time to the last token"}
OPTIONS: tuple[Option, ...] = (
    PRICE,
    *(
        Option(name, SECONDS, None, f"serving: answers with a longer {what} (s) came too late and are lost work")
        for name, what in OBJECTIVES.items()
    ),
)


@dataclass(frozen=True, kw_only=True)
class LedgerResult:
    """`ledger` closes exactly; `notes` say in sentences what it rests on and what it lacks.

    `start_ns`, `end_ns`: the span that is accounted for (None where the inputs carry no time of day).
    `profiled_share`: the part of kept step time that a profile covers, 0 to 1; None without kept steps.
    `serving`: whether it is that of a serving engine. `steps_read`: whether any input tells which steps were taken,
    and when: without them no share of the time is goodput, nor is it none; `why_no_steps` as a clause. `peak_known`:
    whether a peak of the chip is. `profiled_chips`: of how many chips a profile shows devices; None: not counted.
    """

    ledger: Ledger
    start_ns: int | None
    end_ns: int | None
    interruptions: tuple[Interruption, ...]
    profiled_share: float | None
    notes: tuple[str, ...]
    serving: bool = False
    steps_read: bool = True
    why_no_steps: str = NO_STEP_READ
    peak_known: bool = True
    profiled_chips: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return {**self.ledger.to_dict(), "notes": list(self.notes)}


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> LedgerResult:
    """The ledger of a training run, a serving run, or a compiled step.

    Raises QuestionError where the run has neither steps, lifecycle, a profile, served requests nor a compiled program.
    """
    price = options.get("usd_per_chip_hour")
    price = fact(facts, "usd_per_chip_hour") if price is None else price
    if price is not None and not (math.isfinite(price) and price >= 0):
        raise QuestionError(f"usd_per_chip_hour={price}", expected="a price of 0 dollars or more")
    serving = fact(facts, "outcome") is None and serving_accounts.is_serving(tables)
    if fact(facts, "outcome") is not None:
        machine, days = hardware(tables, facts), None
        book = compiled_accounts.from_program(tables, facts, machine)
    elif serving:
        machine, days = hardware(tables, facts), None
        objectives = {name: options[name] for name in OBJECTIVES if options.get(name) is not None}
        book = serving_accounts.from_serving(tables, facts, machine, objectives)
    else:
        machine, days, book = _measured(tables, facts)
    known = machine.chips_known
    account = book.account if known else book.account.assumed()
    ledger = Ledger(chips=machine.chips, account=account, useful_flops=book.useful_flops, chips_known=known)
    return LedgerResult(
        ledger=ledger.priced(price),
        start_ns=book.start_ns,
        end_ns=book.end_ns,
        interruptions=days.interruptions if days else (),
        profiled_share=book.profiled_share,
        notes=(*machine.notes, *book.notes),
        serving=serving,
        steps_read=len(days.steps) > 0 if days else ledger.find("profiled") is None,
        why_no_steps=days.why_no_steps if days else NO_STEP_READ,
        peak_known=machine.peak_flops_per_s is not None,
        profiled_chips=book.profiled_chips,
    )


def _measured(tables: Tables, facts: Facts) -> tuple[Hardware, Calendar | None, Book]:
    found = measured(tables, facts)
    if found is None:
        refuse_of_a_server(tables, facts, "nothing tells of a request to it, or of what its engine ran")
        raise QuestionError(
            f"{without_steps(tables)}, no job events and no device in a profile",
            advice="Add a training log, goodput entries or an XPlane profile to the same ingest.",
        )
    return found

"""Settings that cost, read off what the job's own logs print of its flags and environment.

A setting is a fact and no guess, what it costs here is neither: where the accounts of the ledger that would hold its
cost are known to hold little, it is ruled out. No amount is told of one of which none was measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from analyzers.findings.base import Band, Evidence, Finding, Rule, RuledOut, Seen, Told, Where
from analyzers.findings.carried import carried, covering
from catalog.settings import BY_NAME, Setting
from errors import format as fmt
from runs.tables import frame

CAUSE, QUESTION = "wrong_flags", "ledger"
PRINTED = "printed in"
SHOWN = 3
"""Places in logs, and hosts, that are named: a thousand ranks print the same."""
LIBRARY = ("matmul", "convolution", "custom-call")
"""Operations that call code which was compiled before: no flag of the compiler makes it slower."""
NOT_COMPUTED = ("collective", "copy", "infeed", "outfeed", "host", "annotation", "control")
SURE, AGREED, ALONE = 0.9, 0.85, 0.6
"""How sure it is that a setting costs: it was measured; the ledger agrees; no ledger tells."""
MOSTLY = 0.5  # of matrix products: in the format that a setting is about


class Printed(NamedTuple):
    """A row of `settings`: a value that a line tells."""

    source: str
    order: int
    host: str | None
    name: str
    value: str
    step: int | None
    line: int | None

    @property
    def place(self) -> str:
        """The file and the line; the file alone where its lines were taken out of an export."""
        return self.source if self.line is None else f"{self.source}:{self.line}"


@dataclass(frozen=True)
class Use:
    """A setting as one host, or one log, has it: the line whose value counted, and those that told others."""

    counted: Printed
    others: tuple[Printed, ...]

    @property
    def value(self) -> str:
        return self.counted.value

    @property
    def host(self) -> str | None:
        return self.counted.host

    def evidence(self, setting: Setting) -> list[Evidence]:
        return [
            Evidence(PRINTED, f"{one.place}: {_written(setting, one.value)}", "", QUESTION)
            for one in (self.counted, *self.others)
        ]


def find(seen: Seen) -> Told:
    rows = seen.tables.arrow("settings", list(Printed._fields)).to_pylist()
    printed = sorted((Printed(**row) for row in rows if row["name"] in BY_NAME), key=lambda one: one[:2])
    if not printed:
        return Told()
    told, named = Told(), {one.name for one in printed}
    for name in (name for name in BY_NAME if name in named):
        told += _told(seen, BY_NAME[name], _uses([one for one in printed if one.name == name]))
    why = f"of the settings that are known to cost, logs print {', '.join(sorted(named))}, with values that do not"
    return told if told.findings or told.ruled_out else Told(ruled_out=(RuledOut(CAUSE, why, QUESTION),))


def _uses(printed: Sequence[Printed]) -> list[Use]:
    """The value of each host, or of each log where none names one: the last that was printed before the first step."""
    whose: dict[tuple[str, str | None], list[Printed]] = {}
    for one in printed:
        whose.setdefault((one.source, one.host), []).append(one)
    uses: list[Use] = []
    for mine in whose.values():
        counted = ([one for one in mine if one.step is None] or mine)[-1]
        others = {one.value: one for one in reversed(mine) if one.value != counted.value}
        uses.append(Use(counted, tuple(others.values())))
    return uses


def _told(seen: Seen, setting: Setting, uses: Sequence[Use]) -> Told:
    wrong = [use for use in uses if setting.costly(use.value)]
    if not wrong:
        return Told()
    value = wrong[0].value
    if setting.dtype and not _computes_in(seen, setting.dtype):
        why = f"{setting.written(value)} is set, and few matrix products are seen to be in {setting.dtype}"
        return Told(ruled_out=(RuledOut(CAUSE, why, "mfu"),))
    amount = carried(seen, seen.amount(*setting.accounts)).likely
    profiled = bool(seen.tables.rows("op_events"))
    if setting.accounts and amount < seen.least and (profiled or setting.shown):
        holds = f"what it draws on holds {fmt.share(amount / seen.whole)} of the chip time"
        return Told(ruled_out=(RuledOut(CAUSE, f"{setting.written(value)} is set, but {holds}", QUESTION),))
    return Told((_finding(seen, setting, uses, wrong, amount),))


def _finding(seen: Seen, setting: Setting, uses: Sequence[Use], wrong: Sequence[Use], amount: float) -> Finding:
    gain = _gain(seen, setting)
    hosts = tuple(sorted({use.host for use in wrong if use.host}))
    places = [one for use in wrong[:SHOWN] for one in use.evidence(setting)[:2]]
    others = [use for use in uses if use not in wrong]
    places += [one for use in others[:1] for one in use.evidence(setting)[:1]]
    if amount and setting.accounts:
        places.append(Evidence("in the accounts that it draws on", amount, "chip-seconds", QUESTION))
    return Finding(
        cause=CAUSE,
        title=f"{setting.written(wrong[0].value)} is set{_whose(uses, wrong)}: {setting.says}.",
        gain=gain,
        draws={} if gain is None else seen.drawn(gain.likely, "below_roofline", "unattributed", "useful_maths"),
        question=QUESTION if gain is None else "operations",
        confidence=SURE if gain else AGREED if amount >= seen.least and setting.accounts else ALONE,
        basis="modelled" if gain else "derived",
        where=Where(hosts=hosts if others else ()),
        evidence=tuple(places),
    )


def _whose(uses: Sequence[Use], wrong: Sequence[Use]) -> str:
    """On which hosts, or in which logs, where not on all."""
    if len(wrong) == len(uses):
        return ""
    hosts = sorted({use.host for use in wrong if use.host})
    known = {use.host for use in uses if use.host}
    if not hosts or len(known) == len(hosts):
        return f" in {len(wrong):,} of {len(uses):,} logs"
    more = f" and {len(hosts) - SHOWN:,} more" if len(hosts) > SHOWN else ""
    return f" on {len(hosts):,} of {len(known):,} hosts ({', '.join(hosts[:SHOWN])}{more})"


def _written(setting: Setting, value: str) -> str:
    return setting.written(value) if value else f"{setting.name} not set"


def _computes_in(seen: Seen, dtype: str) -> bool:
    """Whether matrix products are mostly in this format."""
    rows = frame(seen.tables, "matmuls", ["dtype", "m", "k", "n", "batch", "count"])
    work = rows[["m", "k", "n", "batch", "count"]].astype(float).fillna(1.0).prod(axis=1)
    mine = rows["dtype"].astype(object).fillna("").astype(str) == dtype
    return bool(len(rows)) and bool(work[mine].sum() > MOSTLY * work.sum())


def _gain(seen: Seen, setting: Setting) -> Band | None:
    """What leaving it out gives back, of processes on CPUs, which alone were measured: a share of the time in what the
    compiler wrote itself."""
    if setting.gives is None or not _on_cpu(seen):
        return None
    own = covering(seen).scaled(_own_share(seen))
    gives = setting.gives
    return Band(own.low * gives.low, own.likely * gives.likely, own.high * gives.high) if own.likely else None


def _on_cpu(seen: Seen) -> bool:
    named = frame(seen.tables, "captures", ["device_type"])["device_type"].dropna().astype(str).str.lower()
    return bool(len(named)) and bool((named == "cpu").all())


def _own_share(seen: Seen) -> float:
    """Of computing, what is in operations that call no library."""
    ops = frame(seen.tables, "ops", ["device", "category", "self_ns"])
    ops = ops[ops["device"].notna() & ~ops["category"].isin(NOT_COMPUTED)]
    whole = float(ops["self_ns"].sum())
    return float(ops.loc[~ops["category"].isin(LIBRARY), "self_ns"].sum()) / whole if whole else 0.0


RULE = Rule(name="settings", causes=(CAUSE,), find=find)

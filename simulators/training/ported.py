"""A step that was measured, carried over to another setup by what a model says of both.

The model times the step of the old setup and that of the new one; each account of the measured step is taken times
what the model's terms for it become. So what the run has of its own (slow kernels, a busy network) stays in it:

    useful maths, padding    model FLOPs of a chip over its peak
    recomputation            the same, times the part of the layers that is computed again
    below roofline           computing beyond useful maths: products below the peak, memory, what is computed again
    exposed communication    what is waited for of collectives and sends; of an old setup with a pipeline with its
                             bubble too, which a profile shows as waiting for a neighbour
    pipeline bubble          where the new setup has one and the old had none: as modelled, times `factor`
    launching                launches of the layers
    not profiled             all but useful maths
    all other accounts       as they were, for each step: nothing here models waits for input, for slow ranks, of hosts

    factor = (measured step - accounts that stay as they were) / modelled step

Of an account MOST_FACTOR times what the model has of it goes by the model, and what is beyond stays as it was: all of
it where the model has nothing. Communication that the old setup cannot have, and the new one is modelled to have, comes
in as modelled, times `factor`. What is unattributed stays unattributed. There and back is the step that it was, unless
the model has nothing of an account on one of the sides.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from errors import QuestionError
from errors import format as fmt
from runs.ledger import Account, Ledger

LEAST_FACTOR, MOST_FACTOR = 0.25, 4.0  # beyond: the facts of the run, or the model, are not of this job
BUBBLE, COMMUNICATION = "pipeline_bubble", "exposed_communication"
UNCHANGED = "as it was, for each step"
Path = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Seconds of a modelled step by what they go to, which they add up to: useful maths at peak, other computing,
    communication that is waited for, the pipeline's bubble, launches. `again`: part of the layers computed again."""

    useful_s: float
    beyond_s: float
    communication_s: float = 0.0
    bubble_s: float = 0.0
    launching_s: float = 0.0
    again: float = 0.0

    @property
    def step_s(self) -> float:
        return math.fsum((self.useful_s, self.beyond_s, self.communication_s, self.bubble_s, self.launching_s))

    @staticmethod
    def of(accounts: Mapping[str, float], again: float) -> "Terms":
        """From the accounts of a planned step (`simulators.training.plan`)."""
        return Terms(
            useful_s=accounts["useful_maths"],
            beyond_s=max(accounts["below_roofline"], 0.0) + accounts["recomputation"],
            communication_s=accounts["exposed_communication"],
            bubble_s=accounts["device_idle"],
            launching_s=accounts["idle_launching"],
            again=again,
        )


@dataclass(frozen=True)
class Rule:
    """What an account goes by, and how that is called."""

    seconds: Callable[[Terms], float]
    said: str


WHOLE = Rule(lambda t: t.step_s, "the modelled step")
USEFUL = Rule(lambda t: t.useful_s, "model FLOPs at peak")
RULES: dict[str, Rule] = {
    "productive": WHOLE,  # a step that is not split
    "useful_maths": USEFUL,
    "padding": USEFUL,
    "recomputation": Rule(lambda t: t.useful_s * t.again, "model FLOPs at peak and layers computed again"),
    "below_roofline": Rule(lambda t: t.beyond_s, "modelled computing beyond useful maths"),
    "compute_unsplit": Rule(lambda t: t.useful_s + t.beyond_s, "modelled computing"),
    COMMUNICATION: Rule(lambda t: t.communication_s, "modelled communication"),
    "communication_or_wait": Rule(lambda t: t.communication_s, "modelled communication"),
    BUBBLE: Rule(lambda t: t.bubble_s, "modelled bubble"),
    "idle_launching": Rule(lambda t: t.launching_s, "modelled launches"),
    "not_profiled": Rule(lambda t: t.step_s - t.useful_s, "the modelled step but for useful maths"),
}
WITH_BUBBLE = Rule(lambda t: t.communication_s + t.bubble_s, "modelled communication and bubble")


@dataclass(frozen=True, kw_only=True)
class Row:
    """An account of the step, seconds of a chip: as it was and as it would be. `rule`: by what it was carried over;
    `kept_s`: what stays as it was, since the model has nothing of it."""

    path: Path
    measured_s: float
    ported_s: float
    rule: str
    kept_s: float

    @property
    def name(self) -> str:
        """Below the step: `device_idle/idle_host_code`."""
        return "/".join(self.path)

    @property
    def change_s(self) -> float:
        return self.ported_s - self.measured_s


@dataclass(frozen=True, kw_only=True)
class Ported:
    """`before`, `after`: ledgers of one step, all chips. `rows`: their accounts beside each other, which add up to the
    step. `modelled_s`: the old step as the model has it; `factor`: as above."""

    before: Ledger
    after: Ledger
    rows: tuple[Row, ...]
    modelled_s: float
    factor: float

    @property
    def before_s(self) -> float:
        return self.before.chip_seconds / self.before.chips

    @property
    def after_s(self) -> float:
        return self.after.chip_seconds / self.after.chips

    @property
    def unchanged_s(self) -> float:
        """Seconds of the step that no term of the model stands for."""
        return math.fsum(row.kept_s for row in self.rows)


def ported(before: Ledger, old: Terms, new: Terms, chips: int) -> Ported:
    """The ledger of one step, carried over from the old setup to the new one on so many chips. O(accounts).

    Raises QuestionError for a step that the model misses by more than MOST_FACTOR or LEAST_FACTOR.
    """
    if before.chip_seconds <= 0:
        raise QuestionError("a step that took no time", expected="a run with steps")
    rules = _rules(before, old)
    rows = [_row(path, leaf.chip_seconds / before.chips, old, new, rules) for path, leaf in _leaves(before)]
    _check(math.fsum(row.measured_s for row in rows if row.rule != UNCHANGED), old.step_s)
    factor = math.fsum(row.measured_s - row.kept_s for row in rows) / old.step_s
    if old == new and chips == before.chips:
        return Ported(before=before, after=before, rows=tuple(rows), modelled_s=old.step_s, factor=factor)
    rows = _with_new(rows, old, new, factor * _told(before))
    after = Ledger(chips=chips, account=_tree(before, rows, chips), chips_known=before.chips_known)
    return Ported(before=before, after=after, rows=tuple(rows), modelled_s=old.step_s, factor=factor)


def one_step(useful_s: float, step_s: float, chips: int = 1) -> Ledger:
    """A ledger of a step of which useful maths is known and nothing else."""
    rest = Account(name="not_profiled", chip_seconds=(step_s - useful_s) * chips, basis="unattributed")
    parts = (
        Account(name="useful_maths", chip_seconds=useful_s * chips, basis="derived"),
        Account.total("unattributed", [rest]),
    )
    return Ledger(chips=chips, account=Account.total("productive", parts))


def _rules(ledger: Ledger, old: Terms) -> dict[str, Rule]:
    """RULES, as far as the model has anything of them in the old setup."""
    rules = dict(RULES)
    if old.bubble_s and ledger.find(BUBBLE) is None:
        rules[COMMUNICATION] = rules["communication_or_wait"] = WITH_BUBBLE
    if not old.again:  # the model does not know what the run computes again
        rules["recomputation"] = USEFUL
    if not ledger.amount("useful_maths"):
        rules["not_profiled"] = WHOLE
    return {name: rule for name, rule in rules.items() if rule.seconds(old) > 0}


def _check(seen_s: float, modelled_s: float) -> None:
    """Raises QuestionError where what the model has terms for is too far off for a factor to stand for it."""
    if not LEAST_FACTOR * modelled_s <= seen_s <= MOST_FACTOR * modelled_s or modelled_s <= 0:
        raise QuestionError(
            f"the model says {fmt.duration(modelled_s)} of a step of which the run shows {fmt.duration(seen_s)}",
            expected=f"within a factor of {MOST_FACTOR:g}, as nothing else can be carried over",
            advice="Check the run's model, chips, seq, global_batch and precision under Facts",
        )


def _leaves(ledger: Ledger) -> Iterator[tuple[Path, Account]]:
    """Leaves below the step, by their path there; the step itself where it is not split."""
    for path, account in ledger.account.walk():
        if not account.children:
            yield path[1:] or path, account


def _row(path: Path, seconds: float, old: Terms, new: Terms, rules: Mapping[str, Rule]) -> Row:
    name = next((n for n in reversed(path) if n in rules), None)
    if name is None:
        return Row(path=path, measured_s=seconds, ported_s=seconds, rule=UNCHANGED, kept_s=seconds)
    rule = rules[name]
    modelled = min(seconds, MOST_FACTOR * rule.seconds(old))
    kept = seconds - modelled
    said = f"{rule.said}; {fmt.share(kept / seconds)} {UNCHANGED}" if kept else rule.said
    return Row(
        path=path,
        measured_s=seconds,
        ported_s=modelled * (rule.seconds(new) / rule.seconds(old)) + kept,
        rule=said,
        kept_s=kept,
    )


def _told(ledger: Ledger) -> float:
    """The part of all but useful maths of which a profile tells what it was."""
    rest = ledger.chip_seconds - ledger.amount("useful_maths")
    return 1 - ledger.amount("not_profiled") / rest if rest > 0 else 1.0


def _with_new(rows: Iterable[Row], old: Terms, new: Terms, times: float) -> list[Row]:
    """With what the old setup cannot have had, `times` as much as modelled."""
    found = {row.path: row for row in rows}
    for name, before, after in (
        (COMMUNICATION, old.communication_s, new.communication_s),
        (BUBBLE, old.bubble_s, new.bubble_s),
    ):
        if not before and after * times > 0:
            was = found.get((name,)) or Row(path=(name,), measured_s=0.0, ported_s=0.0, rule="", kept_s=0.0)
            said = "as modelled, times the run's factor"
            found[name,] = replace(was, ported_s=was.ported_s + after * times, rule=said)
    return list(found.values())


def _tree(before: Ledger, rows: Iterable[Row], chips: int) -> Account:
    """The step's account with the rows' amounts; what is new stands beside the others."""
    amounts = {row.path: row.ported_s * chips for row in rows}
    rules = {row.path: row.rule for row in rows}

    def made(account: Account, path: Path) -> Account:
        if account.children:
            return Account.total(account.name, [made(c, (*path, c.name)) for c in account.children], "carried over")
        basis = "unattributed" if account.basis == "unattributed" else "modelled"
        return Account(
            name=account.name, chip_seconds=amounts.pop(path), basis=basis, source=f"carried over by: {rules[path]}"
        )

    top = before.account
    if not top.children:
        return made(top, (top.name,))
    parts = [made(c, (c.name,)) for c in top.children]
    parts += [
        Account(name=path[-1], chip_seconds=s, basis="modelled", source=rules[path]) for path, s in amounts.items()
    ]
    return Account.total(top.name, parts, "one step, carried over")

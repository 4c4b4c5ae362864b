"""A run beside what the model of training says, in words."""

from typing import Any

from app.comparing.job_words import seconds, signed
from app.comparing.modelled import BEYOND, BesideModel, Row
from app.whatif.training import beside_wording
from app.whatif.training.phrases import laid
from app.words import Table, Verdict, headline, listed, short
from errors import format as fmt
from runs.accounts import ACCOUNTS

TITLES = {BEYOND: "Computing beyond useful maths"}
WORTH = 0.05  # of the step: a part that is worth a word
MOST = 2


def verdict(found: BesideModel) -> Verdict:
    if found.plan is not None:
        return headline(*_sentences(beside_wording.verdict(found.plan)))
    return headline(_step(found), _most(found), _without(found))


def told(found: BesideModel) -> dict[str, Any]:
    """The JSON contract, with its verdict at the head."""
    return {"verdict": verdict(found).whole, **found.to_dict()}


def _sentences(text: str) -> tuple[str, ...]:
    return (*text.said, *text.rest) if isinstance(text, Verdict) else (text,)


def _step(found: BesideModel) -> str:
    """`A step of R takes 5.2 s, within the 4.1 to 5.6 s that the model says of its setup, 8 v5e as fsdp 8 (4.8 s).`"""
    run, planned, took = found.run, found.run.planned, found.step.a
    name = f"{'A simulated step' if run.how == 'simulated' else 'A step'} of {short(run.name)}"
    model = f"the model of training says of its own setup, {run.chips:,} {run.chip.name} as {laid(planned)}"
    between = f"{fmt.duration(found.low_s)} to {fmt.duration(found.high_s)}"
    if found.within:
        return f"{name} takes {fmt.duration(took)}, within the {between} that {model} ({fmt.duration(planned.step_s)})."
    end, way = (found.high_s, "longer") if took > found.high_s else (found.low_s, "shorter")
    return f"{name} takes {fmt.duration(took)}, {fmt.change(took / end - 1, 2)} {way} than the {between} that {model}."


def _most(found: BesideModel) -> str:
    """Accounts that both tell and that differ by more than scatter, by what the run takes beyond the model."""
    rows = [r for r in found.rows if r.change_s is not None and r.low is not None and r.high is not None]
    clear = [r for r in rows if (r.low or 0.0) > 0 or (r.high or 0.0) < 0]
    named = sorted((r for r in clear if abs(r.change_s or 0.0) >= WORTH * found.step.a), key=_size)[:MOST]
    if not named:
        return ""
    said = [f"{inside(r.account)} {seconds(-(r.change_s or 0.0))}" for r in named]
    return f"Of what both tell, the run takes {listed(said)} beside the model."


def _size(row: Row) -> float:
    return -abs(row.change_s or 0.0)


def _without(found: BesideModel) -> str:
    """What the model has no term for."""
    alone = [r for r in found.rows if r.modelled_s is None and r.measured_s >= WORTH * found.step.a]
    if not alone:
        return ""
    said = [f"{inside(r.account)} ({fmt.duration(r.measured_s)})" for r in sorted(alone, key=lambda r: -r.measured_s)]
    return f"The model has no term for {listed(said[:MOST])}."


def title(account: str) -> str:
    last = account.rpartition("/")[2]
    kind = ACCOUNTS.get(last)
    return TITLES.get(last) or beside_wording.TITLES.get(last) or (kind.title if kind else last.replace("_", " "))


def inside(account: str) -> str:
    return title(account)[:1].lower() + title(account)[1:]


def table(found: BesideModel) -> Table:
    rows = [
        (
            title(r.account),
            fmt.duration(r.measured_s),
            fmt.NO_VALUE if r.modelled_s is None else fmt.duration(r.modelled_s),
            fmt.NO_VALUE if r.change_s is None else seconds(r.change_s),
            "no term in the model" if r.modelled_s is None else r.how,
        )
        for r in found.rows
    ]
    step = found.step
    ends = f"{fmt.duration(found.low_s)} to {fmt.duration(found.high_s)}, {signed(step.change)}"
    rows.append(("Step", fmt.duration(step.a), fmt.duration(step.b), seconds(step.b - step.a), ends))
    head = ("account of a step", found.run.how, "modelled", "modelled less " + found.run.how, "")
    return Table(head, tuple(rows), right=(1, 2, 3))

"""Chips, goodput, price and MFU as sliders: the picture and the answer move with them, what was asked stays.

The sliders stand in the address as `at_...`, apart from the fields of the form.
"""

from collections.abc import Callable
from typing import Any

import streamlit as st

from app.components.chart import chart
from app.components.current import choose
from app.components.notice import notice
from app.components.text import md
from app.figures.base import standalone
from app.pages.training_planner.figure import days_and_dollars, over_chips
from app.whatif.training.answers import TrainingPlan
from app.whatif.training.moving import Moved, counts, moved
from app.whatif.training.phrases import keeps, takes, what
from errors import QuestionError
from errors.numbers import Number

GOODPUT, MFU, PRICE = (0.5, 1.0, 0.01), (0.5, 1.5), (0.25, 3.0)  # of MFU and price: times what they are


def steer(made: TrainingPlan, name: str) -> None:
    """The sliders, the picture, and the answer at what they say."""
    now = _sliders(made)
    try:
        at = moved(made, now["chips"], goodput=now["goodput"], price=now["price"], mfu=now["mfu"])
    except QuestionError as e:  # chips that fail too often for so long a job
        notice(e, library=False)
        at = Moved(made, made.first)
    asked_for = at.plan is made and at.choice is made.first
    answer = f"{what(at.choice)}: {takes(at.choice)}{keeps(at.choice)}."
    st.markdown(f"**At the sliders:** {'what was asked for.' if asked_for else md(answer)}")
    st.markdown(f"**{_question(made)}**")
    chart(picture(made, at), "front", name, f"{what(at.choice)}: {takes(at.choice)}.")


def picture(made: TrainingPlan, at: Moved | None = None) -> Any:
    """The front of days and dollars where there are such, else time over chips."""
    plan, here = (at.plan, at.choice) if at else (made, made.first)
    if plan.front:
        return days_and_dollars(plan.firsts, here, made.asked.days, made.asked.usd)
    return over_chips(plan.firsts, made.asked.days)


def as_page(made: TrainingPlan, name: str) -> bytes:
    """The picture as it was asked for, as one HTML page."""
    return standalone(picture(made), "Days and dollars", name)


def _question(made: TrainingPlan) -> str:
    if made.front:
        return "Which days for which dollars? The line joins what no other choice beats in both."
    how = "many days" if made.asked.tokens is not None else "fast a step"
    return f"How many chips for how {how}? Each mark is the fastest layout on so many chips."


def _sliders(made: TrainingPlan) -> dict[str, Any]:
    """What the sliders say: chips; of the rest None where nothing was moved."""
    first, offered = made.first, counts(made)
    columns = iter(st.columns(4 if first.price is not None else 3))
    with next(columns):
        chips = _slid("at_chips", f"{first.planned.chip}, chips", offered, first.planned.chips, "{:,}".format)
    layouts = [c for c in made.firsts if c.planned.chip == first.planned.chip and c.planned.chips == chips]
    mfu, found = layouts[0].planned.mfu, {"chips": chips, "goodput": None, "price": None, "mfu": None}
    if made.asked.tokens is None:
        return found
    with next(columns):
        found["goodput"] = _ranged("at_goodput", "Goodput", GOODPUT[0], 1.0, first.goodput, 100)
    with next(columns):
        most = min(mfu * MFU[1], 0.99)
        found["mfu"] = _ranged("at_mfu", "MFU", mfu * MFU[0], most, mfu, 100)
    if first.price is not None:
        with next(columns):
            ends = (first.price * PRICE[0], first.price * PRICE[1])
            found["price"] = _ranged("at_price", "Dollars per chip-hour", *ends, first.price, 1)
    return found


def _slid(name: str, label: str, offered: list[int], usual: int, written: Callable[[int], str]) -> int:
    """One of some numbers; the address holds it where it is not the usual one."""
    said = st.query_params.get(name, "")
    now = int(said) if said.isdecimal() and int(said) in offered else usual
    if len(offered) < 2:
        st.markdown(f"{md(label)}: **{written(now)}**")
        return now
    key = _key(name, now)
    st.select_slider(
        label, offered, format_func=written, key=key, on_change=lambda: choose(name, str(st.session_state[key]))
    )
    return now


def _ranged(name: str, label: str, low: float, high: float, usual: float, times: int) -> float | None:
    """A number between two; None where it is the usual one. Shown as so many times itself, shares in per cent."""
    said, bound = st.query_params.get(name, ""), Number(min(low, usual), max(high, usual))
    given = float(said) if bound.reads(said) and bound.low <= float(said) <= bound.high else None
    key = _key(name, (given if given is not None else usual) * times)

    def changed() -> None:
        choose(name, f"{st.session_state[key] / times:.6g}")

    ends = (min(low, usual) * times, max(high, usual) * times)
    shown, step = ("%.1f %%", 0.5) if times == 100 else ("$%.4g", (ends[1] - ends[0]) / 100)
    st.slider(label, *ends, step=step, format=shown, key=key, on_change=changed)
    return given


def _key(name: str, now: float) -> str:
    """The key of a slider that shows `now`: the address may have changed by other ways."""
    key = f"slide_{name}"
    if st.session_state.get(key) != now:
        st.session_state[key] = now
    return key

"""Power: what chips drew, what a step and a token took of it, and what held their clocks down."""

import streamlit as st

from analyzers.device.power.result import PowerResult
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.figures_row import Figure
from app.components.model_picker import About
from app.components.option import by_name, control
from app.components.question_page import Told, question_page
from app.questions.power import POWER
from app.questions.power import figure as draw
from app.questions.power.words import energy, watts
from errors import format as fmt

_OPTIONS = by_name(POWER.options)


def page() -> None:
    question_page(POWER, "Adding up samples of power", figures, picture, options=_options)


def _options(about: About) -> dict[str, object]:
    """What a kilowatt-hour costs, from the address."""
    price = control(_OPTIONS["usd_per_kwh"])
    return {} if price is None else {"usd_per_kwh": price}


def figures(result: PowerResult) -> list[Figure]:
    """Watts, energy, a step, a token, the time held down."""
    known = f" Known of {fmt.whole_share(result.known_share)} of the time of all chips."
    shown = [
        Figure(
            "Watts of a chip",
            watts(result.mean_watts),
            POWER.meaning("Watts of a chip"),
            "measured",
            result.mean_watts,
            "less",
        ),
        Figure("Energy", energy(result.energy_j), POWER.meaning("Energy") + known, "measured"),
    ]
    if result.step_j is not None:
        meaning = POWER.meaning("Energy of a step")
        shown.append(Figure("Energy of a step", energy(result.step_j), meaning, "derived", result.step_j, "less"))
    if result.token_j is not None:
        meaning = POWER.meaning("Energy of a token")
        shown.append(Figure("Energy of a token", energy(result.token_j), meaning, "derived", result.token_j, "less"))
    if result.slowed:
        share = max(one.share for one in result.slowed)
        shown.append(Figure("Held down", fmt.share(share), POWER.meaning("Held down"), "measured", share, "less"))
    return shown


def picture(told: Told[PowerResult]) -> None:
    """Watts of each chip, and the rows."""
    result = told.result
    if len(result.devices):
        st.markdown("**What each chip drew**, in the mean and at the most.")
        drawn = draw.watts_of_chips(result)
        chart(drawn, f"watts {told.name}", told.name, told.verdict)
        told.evidence(result.devices, fmt.count(len(result.devices), "chip"), drawn, "power")
    if result.slowed:
        st.markdown("**What held clocks down**: of the time of all chips, and of that of the one that it held most.")
        draw_table(draw.slowed_rows(result))


if __name__ == "__main__":
    page()

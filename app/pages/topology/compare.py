"""The panel "Compare": up to four systems side by side, as given, at equal chips, or at equal cost."""

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from analyzers.held import PRICE
from app import topologies
from app.components.chart import chart
from app.components.current import choose, open_workspace, switch
from app.components.downloads import downloads
from app.components.model_picker import pick
from app.components.option import amount, choices
from app.components.text import md
from app.figures.base import standalone
from app.pages.topology import times as lab_times
from app.pages.topology.compare_figure import counted, small_multiples
from app.pages.topology.lab import MOST_COMPARED, Lab, answer_of, asked, choose_specs, networks_of, reports
from app.pages.topology.picture import pictures
from app.topologies.compare_words import compared, costs
from app.topologies.words import table
from app.topology_options import SPEC
from catalog.chips import chip
from errors import QuestionError
from simulators.topology.report import Report
from simulators.topology.sizing import resized

EQUAL = {"": "As given", "chips": "Equal chips", "cost": "Equal cost"}


def panel(lab: Lab) -> None:
    found = reports(lab)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _others(lab)
        equal = switch("Equal", "equal", EQUAL, "")
        size = pick("Array of the collectives", "array", lab_times.SIZES, lab_times.DEFAULT, 200)
        prices = _prices(found)
    found = _equal(found, equal, prices)
    told = lab_times.times(lab, found, int(size))
    said = [*compared(found), *lab_times.sentences(told, found), *costs(found, prices)]
    st.markdown("\n".join(f"- {md(sentence)}" for sentence in said))
    if len(found) > 1:
        pictures(networks_of(lab, found))
    names = [r.spec.text for r in found]
    figure = small_multiples(names, counted(found) + lab_times.charts(told))
    chart(figure, f"compare {names} {lab.failures} {size}", "topologies", " ".join(said))
    _evidence(lab, found, prices, told, figure)


def _others(lab: Lab) -> None:
    """The field with the names of what is compared; any name may be written into it."""
    choices(
        SPEC,
        {name: name for name in lab.compared},
        lab.compared,
        lambda names: choose_specs(asked()[0], *(name.strip() for name in names)),
        key="lab_compared",
        label=f"Compare {lab.spec.text} with",
        most=MOST_COMPARED - 1,
        new=True,
        empty="write a name, such as boardfly:1024, and press Enter",
        width=480,
    )


def _prices(found: Sequence[Report]) -> list[float | None]:
    """Dollars of a chip-hour of each system, as entered; kept in the address by system, `usd=3.2,,12`."""
    given = st.query_params.get("usd", "").split(",")
    now = [_price(given[n]) if n < len(given) else None for n in range(len(found))]
    with st.popover("Prices", icon=":material/payments:"):
        st.caption(
            "Dollars per chip-hour. Nothing is reckoned without them; the grey values are list prices that "
            "nobody has verified."
        )
        for number, report in enumerate(found):
            key = f"lab_usd_{number}"
            if st.session_state.get(key) != now[number]:
                st.session_state[key] = now[number]
            amount(
                PRICE,
                now[number],
                key=key,
                label=md(report.spec.text),
                empty=_suggested(report),
                changed=lambda: _priced(len(found)),
            )
    return now


def _priced(count: int) -> None:
    values = [st.session_state[f"lab_usd_{n}"] for n in range(count)]
    choose("usd", ",".join("" if v is None else f"{v:.6g}" for v in values).rstrip(","))


def _price(text: str) -> float | None:
    try:
        return PRICE.parse(text) or None  # free ones could not be told apart by cost
    except QuestionError:
        return None


def _suggested(report: Report) -> str:
    suggestion = chip(report.spec.chip).price_suggestion if report.spec.chip else None
    return f"{suggestion.usd_per_chip_hour:g}, {suggestion.basis}, unverified" if suggestion else "no list price known"


def _equal(found: list[Report], equal: str, prices: Sequence[float | None]) -> list[Report]:
    """Each further system as large as the first has chips, or as its money buys; what has no such size stays."""
    if not equal:
        return found
    if equal == "cost" and None in prices:
        st.info("Enter a price for each system to compare them at equal cost.", icon=":material/info:")
        return found
    first, same = found[0], [found[0]]
    for report, price in zip(found[1:], prices[1:], strict=True):
        chips = first.chips if equal == "chips" else int(first.chips * prices[0] / price)
        sized = resized(report.spec, min(chips, 1 << 16))
        if sized is None:
            st.info(
                f"{md(report.spec.text)} has no size of at most {chips:,} chips: it is shown as given.",
                icon=":material/info:",
            )
        same.append(report if sized is None else topologies.report(sized.text, (), open_workspace()))
    return same


def _evidence(
    lab: Lab, found: Sequence[Report], prices: Sequence[float | None], told: lab_times.Times, figure: go.Figure
) -> None:
    shown = table(found)
    columns = list(zip(*shown.rows, strict=True))
    with st.expander("Evidence: every figure side by side", icon=":material/table:", expanded=True):
        st.table(pd.DataFrame({n or "figure": c for n, c in zip(shown.head, columns, strict=True)}).set_index("figure"))
        rows = pd.DataFrame(
            [
                _row(r, p) | lab_times.columns(told, number)
                for number, (r, p) in enumerate(zip(found, prices, strict=True))
            ]
        )
        answer = answer_of(tuple(rows["spec"]), lab.failures if len(found) == 1 else ())
        downloads(rows, "topologies", answer, lambda: standalone(figure, "Topologies compared", "topologies"))


def _row(report: Report, price: float | None) -> dict[str, object]:
    told = report.to_dict()
    kept = {k: v for k, v in told.items() if isinstance(v, str | int | float | bool | None)}
    return kept | {"usd_per_chip_hour": price, "usd_per_hour": price and price * report.chips}

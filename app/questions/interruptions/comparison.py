"""Interruptions compared: causes and rates beside published fleets, times between two, and hosts beside one another."""

import pandas as pd
import streamlit as st

from analyzers.lost.interruptions import InterruptionsResult
from analyzers.lost.interruptions.fleet_rates import compared, shares
from app.components.by_itself import fragment
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.current import switch
from app.components.text import md
from app.questions.interruptions import figure as draw
from app.questions.interruptions.words import verdict as interruptions_verdict
from catalog.fleets import DAY_S, fleets
from errors import format as fmt
from runs.run import Run

VIEWS = {"causes": "Causes", "fleets": "Other fleets", "between": "Times between", "hosts": "Hosts"}
ENOUGH = 5  # interruptions from which shares are worth comparing with others'
SHOWN_HOSTS = 2000


@fragment
def comparison(run: Run, result: InterruptionsResult) -> None:
    """Causes, other fleets, times between two, hosts."""
    view = switch("Compare", "view", VIEWS, "causes")
    name = f"{run.manifest.name}-interruptions-{view}"
    if view == "hosts":
        hosts(result)
        return
    if view == "causes":
        fleet = next(f for f in fleets() if f.causes)
        whose = fleet.title if result.count >= ENOUGH else None
        beside = f", beside {md(fleet.title)} ({fleet.mark})" if whose else ""
        st.markdown(f"**Causes**: share of all interruptions{beside}.")
        figure = draw.causes(shares(result.causes, fleet), whose) if result.count else None
    elif view == "fleets":
        st.markdown(f"**Unplanned interruptions per 1,000 node-days** beside published fleets. {md(_nodes(result))}")
        figure = draw.rates(result, compared(result.rate))
    else:
        st.markdown(f"**Times between interruptions.** {md(_random(result))}")
        figure = draw.between(result)
    if figure is None:
        st.info(
            "There is not enough to draw: at least two interruptions with times, and the chips of a host, are needed.",
            icon=":material/info:",
        )
        return
    chart(figure, f"compare {view}", name, interruptions_verdict(result))
    if view == "fleets":
        st.caption("  \n".join(f"{md(f.title)}: {md(f.note)} {md(f.source)}" for f in fleets()))


def _nodes(result: InterruptionsResult) -> str:
    if result.nodes.count is None:
        return f"Not known here: {result.nodes.words}."
    short = " It ran for less than a day: such a rate says little." if (result.held_s or 0) < DAY_S else ""
    return f"This run held {fmt.count(result.nodes.count, 'host')} ({result.nodes.words}).{short}"


def _random(result: InterruptionsResult) -> str:
    """Whether they look random, and whether they become more."""
    said = {
        "too_few": "Too few to tell whether they come at random.",
        "yes": "They look as if they came at random, at a constant rate: no test at 5 % says otherwise.",
        "no": "They do not look random at a constant rate: the interval of the mean is too narrow then. "
        + ("They come in bursts." if (result.spread.variation or 0) > 1 else "They come too evenly."),
    }[result.spread.word]
    more = {"more": " They come faster and faster (Laplace's test).", "fewer": " They become fewer (Laplace's test)."}
    return said + more.get(result.trend.word, "")


def hosts(result: InterruptionsResult) -> None:
    """Hosts by failures, those that stand out marked."""
    if not len(result.hosts):
        st.info("No interruption names a host.", icon=":material/info:")
        return
    lemon = result.lemons
    if lemon is None or lemon.needed is None:
        said = "Too few hosts are known to say whether one fails too often."
    else:
        said = (
            f"{fmt.number(lemon.expected)} failures of a machine per host are usual here; from "
            f"{lemon.needed} on, one host stands out."
        )
    st.markdown(f"**Hosts that failed.** {md(said)}")
    table = result.hosts
    shown = pd.DataFrame(
        {
            "Host": table["host"],
            "Stands out": ["● yes" if x else "" for x in table["lemon"]],
            "Failures of the machine": table["failures"],
            "Interruptions": table["count"],
            "Causes": table["causes"],
            "Chip-hours": table["chip_hours"].astype(float),
            "Chance": table["p_holm"].astype(float),
        }
    )
    draw_table(
        shown.head(SHOWN_HOSTS),
        hide_index=True,
        columns={
            "Chance": st.column_config.NumberColumn(
                help="Probability of so many if all hosts were alike, corrected for looking at all of them.",
                format="%.2g",
            ),
        },
    )

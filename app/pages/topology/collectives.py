"""The panel "Collectives": how long one takes on the topology shown and on those compared, by size of the array."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app import topologies
from app.components.chart import chart
from app.components.current import choose, open_workspace
from app.components.downloads import downloads
from app.components.figures_row import Figure, figures_row
from app.components.howto import terms_list
from app.components.notice import notice
from app.components.option import by_name, choices, control
from app.components.text import md
from app.components.verdict import verdict
from app.figures.base import standalone
from app.pages.topology.collective_figure import over_size
from app.pages.topology.lab import Lab
from app.pages.topology.times import lent
from app.whatif.collective.answers import CollectiveAnswer, Sent, on
from app.whatif.collective.asked import OPTIONS, axes_of, size_of
from app.whatif.collective.wording import SIZES, TITLES, against
from app.whatif.collective.wording import verdict as collective_verdict
from catalog.chips import chip
from errors import ChipledgerError, QuestionError
from errors import format as fmt
from simulators.collectives import KINDS
from simulators.collectives.shape import shape_of
from simulators.collectives.terms import BAND, CRITICAL_TOKENS, CROSSOVER, TERMS, TIME
from simulators.topology.alike import alike, several
from simulators.topology.network import Network

SIZE = "1GB"
_OPTIONS = by_name(OPTIONS)
BOOK = "scaling_book_link_oneway_bytes_per_s"
RATES = {"docs": "Documented link rates", "scaling-book": "The scaling book's"}


def panel(lab: Lab) -> None:
    kind = control(_OPTIONS["kind"], "all_gather", texts=TITLES, buttons=True)
    st.caption(f"{TITLES[kind]}: {dict(KINDS)[kind]}.")
    size_text, axes, rates = _options(lab)
    try:
        sent = Sent(kind=kind, array_bytes=size_of(size_text or SIZE), axes=axes, rates=rates)
        answers = _answers(lab, sent)
    except ChipledgerError as e:
        notice(e, library=False)
        return
    first = answers[0]
    results = [a.result for a in answers]
    said = collective_verdict(first.result)
    verdict(said)
    _figures(first)
    st.markdown(
        "**How does the time grow with the array?** Bands: what the assumptions allow. Below its crossover (×) "
        f"a collective costs its hops, whatever it carries. {md(against(results))} ○ modelled."
    )
    given = [a for a in answers if a.result.settings.link_basis == "given"]
    if given:
        names = " and ".join(dict.fromkeys(a.result.spec for a in given))
        st.caption(
            f"No chip is named by {md(names)}: links move {given[0].link_bytes_per_s / 1e9:g} GB/s one way, as "
            "those of the first system here that names one."
        )
    figure = over_size(results)
    chart(figure, f"collectives {sorted(st.query_params.to_dict().items())}", "collective", said)
    _evidence(lab, first, answers, sent, figure)
    with st.expander("How these times are computed", icon=":material/function:"):
        st.markdown(f"- {md(f'Modelled: {first.result.cost.algorithm}.')}")
        st.markdown("\n".join(f"- {md(note)}" for note in _notes(answers)))
        terms_list(TERMS)


def _options(lab: Lab) -> tuple[str, tuple[str, ...], str]:
    """Size, axes and rates, all in the address; what a lattice alone has is left out elsewhere."""
    left, middle, right = st.columns([1, 1.4, 1.2], vertical_alignment="bottom")
    with left:
        size_text = control(_OPTIONS["bytes"], empty=SIZE)
    axes = _axes_of(lab.network)
    with middle:
        chosen = _axes(axes)
    with right:
        booked = control(_OPTIONS["rates"], "docs", texts=RATES) if _has_book(lab.network) else "docs"
    return size_text, chosen, booked


def _has_book(network: Network) -> bool:
    return network.chip is not None and chip(network.chip).value(BOOK) is not None


def _axes(axes: Sequence[str]) -> tuple[str, ...]:
    """Which axes the collective runs over; none chosen: all chips."""
    now = [a for a in axes_of(st.query_params.get("axes")) if a in axes]
    if axes:
        texts = {a: a for a in axes}
        choices(_OPTIONS["axes"], texts, now, lambda a: choose("axes", ",".join(a)), key="lab_axes", buttons=True)
    else:
        st.caption("It runs over all chips: there are no axes here to group them along.")
    return tuple(a for a in axes if a in now)


def _axes_of(network: Network) -> tuple[str, ...]:
    """Axes of more than one chip of a mesh or torus, or of one of its slices."""
    one = next(alike(network)).network if several(network) else network
    shape = shape_of(one)
    return () if shape is None else tuple(a for a, k in zip(shape.axes, shape.dims, strict=True) if k > 1)


def _answers(lab: Lab, sent: Sent) -> list[CollectiveAnswer]:
    """Of the topology shown, as broken, and of those compared; of those that cannot the page says why."""
    networks = [lab.broken]
    for text in lab.compared:
        try:
            networks.append(topologies.network(text, open_workspace())[1])
        except ChipledgerError as e:
            notice(e, library=False)
    truth = topologies.broken(lab.network, lab.failures).truth if lab.failures else ()
    rate = lent(networks)
    found = []
    for number, network in enumerate(networks):
        lent_rate = rate[0] if rate and not network.oneway_bytes_per_s else None
        mine = replace(sent, link_bytes_per_s=lent_rate, rates=sent.rates if _has_book(network) else "docs")
        try:
            found.append(on(network, mine) if number else on(network, mine, lab.failures, truth))
        except QuestionError as e:
            if not number:
                raise
            notice(e, library=False)
    return found


def _figures(answer: CollectiveAnswer) -> None:
    result = answer.result
    crossover, tokens = result.crossover_bytes, answer.critical_tokens
    shown = [
        Figure("Time", fmt.duration(result.seconds), TIME.meaning, "modelled"),
        Figure(
            "Band",
            " – ".join(dict.fromkeys(map(fmt.duration, (result.low_s, result.high_s)))),
            BAND.meaning,
            "modelled",
        ),
        Figure("Hops alone", fmt.duration(result.cost.latency_s), "What an array of a few bytes takes.", "modelled"),
        Figure("Crossover", fmt.size(crossover), CROSSOVER.meaning, "modelled"),
        Figure(
            "Critical tokens",
            fmt.NO_VALUE if tokens is None else f"{tokens:,.0f} a chip",
            CRITICAL_TOKENS.meaning,
            "modelled",
        ),
    ]
    figures_row(shown)


def _evidence(
    lab: Lab, first: CollectiveAnswer, answers: Sequence[CollectiveAnswer], sent: Sent, figure: go.Figure
) -> None:
    """Every kind by size of the topology shown, and the kind chosen of the others; all of it to take away."""
    given = first.link_bytes_per_s if first.result.settings.link_basis == "given" else None
    every = [on(lab.broken, replace(sent, kind=kind, link_bytes_per_s=given)) for kind in TITLES]
    sizes = sorted({*SIZES, first.result.bytes})
    mine = pd.concat([rows_of(a, sizes) for a in every], ignore_index=True)
    rows = pd.concat([mine, *(rows_of(a, sizes) for a in answers[1:])], ignore_index=True)
    wide = mine.pivot(index="bytes", columns="kind", values="seconds")[list(TITLES)]
    title = f"Evidence: every collective on {md(lab.spec.text)} by size"
    with st.expander(title, icon=":material/table:", expanded=True):
        shown = wide.map(fmt.duration).rename(index=fmt.size, columns=TITLES).rename_axis(index="array", columns=None)
        st.table(shown)
        query = {
            "topology": lab.spec.text,
            "kind": first.result.kind,
            "bytes": f"{first.result.bytes:.0f}",
            "axes": ",".join(sent.axes),
            "rates": sent.rates,
            "fail": ";".join(lab.failures),
            "link_bytes_per_s": given,
        }
        answer = f"/api/whatif/collective?{urlencode({k: v for k, v in query.items() if v})}"
        downloads(rows, "collectives", answer, lambda: standalone(figure, "Collectives", "collectives"))


def _notes(answers: Sequence[CollectiveAnswer]) -> list[str]:
    """Every note once; with its system's name where it does not hold for all."""
    counts = Counter(n for a in answers for n in dict.fromkeys(a.notes))
    return list(
        dict.fromkeys(n if counts[n] == len(answers) else f"{a.result.spec}: {n}" for a in answers for n in a.notes)
    )


def rows_of(answer: CollectiveAnswer, sizes: Sequence[float]) -> pd.DataFrame:
    """topology, kind, axes, bytes, seconds, low_s, high_s, bound: one row for each size."""
    result = answer.result
    moved = np.array(sizes) / result.shards
    return pd.DataFrame(
        {
            "topology": result.spec,
            "kind": result.kind,
            "axes": ",".join(result.axes),
            "chips": result.chips,
            "bytes": sizes,
            "seconds": result.cost.seconds(moved),
            "low_s": result.low.seconds(moved),
            "high_s": result.high.seconds(moved),
            "bound": [result.cost.bound(m) for m in moved],
        }
    )

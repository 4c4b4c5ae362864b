"""Two served runs beside each other: what was asked of both, and which differences are more than chance."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from analyzers.serving.ab import METRICS, AbResult
from analyzers.serving.served import Served, served
from app.comparing import words
from app.pages.compare import figure as draw
from app.reporting.document import Block, Head, Items, Number, Numbers, Picture, Rows, Text
from app.reporting.gathering import About, Pair
from app.words import Table
from errors import format as fmt


def result_of(pair: Pair) -> AbResult:
    if pair.compared.served is None:
        raise TypeError("two jobs have no difference of requests")
    return pair.compared.served


def change(pair: Pair) -> Iterator[Block]:
    from app.pages.compare.page import figures  # late: it loads Streamlit

    result, said = result_of(pair), pair.compared.verdict.whole
    yield Text(said, "verdict")
    yield Numbers(tuple(Number(f.label, f.value, f.meaning, f.basis) for f in figures(result)))
    if (drawn := draw.differences(result)) is not None:
        yield Picture(
            drawn, "B over A, with 95 % intervals: one that crosses the dashed line tells no difference.", said
        )


def traffic(pair: Pair) -> Iterator[Block]:
    result = result_of(pair)
    yield Text("What was asked of both: where it differs, not the engines alone are compared.")
    if result.traffic.warnings:
        yield Items(tuple(result.traffic.warnings))
    rows = result.traffic.rows.rename(columns={"a": "A", "b": "B"})
    cells = tuple(tuple(map(_cell, row)) for row in rows.itertuples(index=False))
    yield Rows(Table(tuple(map(str, rows.columns)), cells, right=(1, 2)))


def _cell(known: Any) -> str:
    if isinstance(known, str):
        return known
    if known is None or pd.isna(known):
        return fmt.NO_VALUE
    return f"{int(known):,}" if float(known).is_integer() else fmt.number(float(known))


def latencies(pair: Pair) -> Iterator[Block]:
    """Every statistic, and the distribution of each latency that both tell."""
    result = result_of(pair)
    yield Rows(pair.compared.table)
    for metric in METRICS:
        if not any(d.metric == metric for d in result.differences):
            continue
        a, b = _served(pair.a, pair.loads[0]), _served(pair.b, pair.loads[1])
        if (drawn := draw.distributions(a, b, metric, (pair.a.name, pair.b.name))) is not None:
            yield Head(f"Distribution of {words.NAMES[metric]}")
            yield Picture(drawn, "The curve further left is the faster.", pair.compared.verdict.whole)


def _served(one: About, load: str | None) -> Served:
    return served(one.run.tables).for_stage(load)


def untold(pair: Pair) -> Iterator[Block]:
    yield Items(tuple(result_of(pair).notes))

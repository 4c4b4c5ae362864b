"""Goodput: which part of the time that a job held its chips went into steps that were kept, and where the rest went.

    goodput = time in kept steps / time held;   badput = the rest, by cause

Two rule sets answer. `exact` paints the calendar, so that shares sum to the whole. `ml-goodput` gives the numbers of
the library ml-goodput-measurement 0.2.3, flaws included, so that they can be compared with what its dashboards show.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from analyzers.base import Facts, fact
from analyzers.held import PRICE, held
from analyzers.lost.goodput.differences import differences
from analyzers.lost.goodput.entries import Entries, entries
from analyzers.lost.goodput.exact import by_exact_rules
from analyzers.lost.goodput.ml_goodput import by_library
from analyzers.lost.goodput.query import EXACT, LIBRARY, Query, query
from analyzers.lost.goodput.result import GoodputResult
from analyzers.serving import accounts as serving_accounts
from analyzers.serving.server_start import refuse_of_a_server
from errors import QuestionError
from errors.numbers import COUNT, FROM_ZERO, SPAN
from errors.options import Option
from runs.tables import Tables

OPTIONS: tuple[Option, ...] = (
    Option(
        "rules",
        (EXACT, LIBRARY),
        EXACT,
        "exact: shares sum to the whole; ml-goodput: that library's numbers",
        label="Rules",
    ),
    Option(
        "now",
        str,
        None,
        "as of this time (ISO 8601 or seconds since 1970); a job without an end ran until then",
        label="As of",
    ),
    Option("window_s", SPAN, None, "the last so many seconds, up to `end`, `now` or the end of the job", "s"),
    Option("start", str, None, "start of the window: 2026-01-05T00:30:00Z, or seconds since 1970", label="From"),
    Option("end", str, None, "end of the window: 2026-01-05T00:30:00Z, or seconds since 1970", label="To"),
    Option("exclude", str, None, "times to leave out: START/END pairs, separated by commas", label="Leave out"),
    Option("attempt", FROM_ZERO, None, "one start of the job alone, from 0"),
    Option("bins", COUNT, 240, "into how many equal stretches the time is cut for goodput over time"),
    Option(
        "rolling_s",
        SPAN,
        None,
        "seconds that the rolling share looks back; default: a 20th of the time told of",
        "s",
        "Rolling over",
    ),
    PRICE,
)
MOST_BINS = 5_000


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> GoodputResult:
    """Goodput by the rules asked for, and in sentences where the other rules differ.

    Raises QuestionError where the run's inputs carry neither step starts, step lines nor events of the job; where
    the library would raise an error of its own; and for options that cannot be.
    """
    if serving_accounts.is_serving(tables):
        raise QuestionError(
            "this run served requests and took no training step: goodput of training is not asked of it",
            advice="Ask ledger for where its time went, slo for the share of answers in time, load for its limits.",
        )
    refuse_of_a_server(tables, facts, "goodput of training is not asked of it")
    asked = query(options)
    bins, rolling_s = options.get("bins") or 240, options.get("rolling_s")
    if not 1 <= bins <= MOST_BINS:
        raise QuestionError(f"option bins={bins}", expected=f"1 to {MOST_BINS:,}")
    if rolling_s is not None and not rolling_s > 0:
        raise QuestionError(f"option rolling_s={rolling_s}", expected="a number of seconds above 0")
    log = entries(tables)
    log = log if len(log) else None
    exact = partial(by_exact_rules, tables, facts, log, asked, bins, rolling_s)
    library = partial(_library, log, asked)
    if options.get("rules") == LIBRARY:
        result = library()
        both = _tried(exact), result
    else:
        result = exact()
        both = result, _tried(library)
    price = options.get("usd_per_chip_hour")
    return replace(
        result,
        chips=held(tables, facts).chips,
        usd_per_chip_hour=fact(facts, "usd_per_chip_hour") if price is None else price,
        differences=differences(*both, log),
    )


def _library(log: Entries | None, asked: Query) -> GoodputResult:
    if log is None:
        raise QuestionError(
            "this run has no goodput entries, which these rules walk",
            advice="Add the job's goodput log, or ask with rules=exact.",
        )
    return by_library(log, asked)


def _tried(ask: Callable[[], GoodputResult]) -> GoodputResult | QuestionError:
    try:
        return ask()
    except QuestionError as e:
        return e

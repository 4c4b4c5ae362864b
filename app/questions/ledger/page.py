"""The run's ledger: where did every chip-second go?"""

import streamlit as st

from analyzers.time.ledger import LedgerResult
from analyzers.time.ledger_terms import ACCOUNT_TERMS
from app import format as fmt
from app import theme
from app.components.chart import chart
from app.components.current import choose, current_run, switch
from app.components.downloads import downloads
from app.components.figures_row import Figure, figures_row
from app.components.header import header
from app.components.howto import howto
from app.components.notice import notice
from app.components.price import price
from app.components.text import md
from app.components.verdict import verdict
from app.figures.base import standalone
from app.questions.asking import ask, price_of
from app.questions.ledger import LEDGER
from app.questions.ledger.accounts import hover_lines, opened, path_text
from app.questions.ledger.calendar import calendar
from app.questions.ledger.evidence import evidence, ledger_table
from app.questions.ledger.icicle import icicle
from app.questions.ledger.waterfall import waterfall
from app.questions.ledger.why import why
from app.questions.ledger.words import modelled, unknown
from app.questions.ledger.words import verdict as ledger_verdict
from errors import ChipledgerError
from runs.ledger import Account, Ledger
from runs.run import Run

COMPILED = ("useful_maths", "padding", "below_roofline", "exposed_communication")  # what the figures of a program tell
VIEWS = {"icicle": "Icicle", "waterfall": "Waterfall"}


def page() -> None:
    run, extras, place = current_run()
    actions = header(run, extras)
    try:
        with st.spinner("Computing the ledger"):
            result = ask(LEDGER, run, {}, place.registry)
    except ChipledgerError as e:
        notice(e)
        return
    verdict(ledger_verdict(result))
    figures_row(figures(result))
    with actions:
        price(run, price_of(run, place.registry), place.registry)
    explore(run, result)
    held = {a.name for _, a in result.ledger.account.walk()}
    howto(
        run,
        [term for name, term in ACCOUNT_TERMS.items() if name in held],
        result.notes,
        ("iterations", "requests") if run.manifest.kind == "serving" else ("captures", "lifecycle", "steps"),
    )


def figures(result: LedgerResult) -> list[Figure]:
    """The five figures of a ledger."""
    ledger, whole = result.ledger, result.ledger.chip_seconds or 1.0
    productive, useful = ledger.find("productive"), ledger.find("useful_maths")
    span = None if result.start_ns is None or result.end_ns is None else (result.end_ns - result.start_ns) / 1e9
    held = f"{theme.meaning('held')} {fmt.count(ledger.chips, 'chip')} for {fmt.duration(span)}."
    ran = not modelled(ledger)
    shown = [Figure("Chip time held", fmt.chip_time(ledger.chip_seconds), held, "measured" if ran else "modelled")]
    if ledger.usd is not None:
        shown.append(Figure("Cost", fmt.usd(ledger.usd), "Chip-hours held times the price of a chip-hour.", "derived"))
    if not ran:
        return [*shown, *(_part(ledger, n) for n in COMPILED)]
    if result.serving:
        return [*shown, *_serving(ledger, whole)]
    shown.append(
        Figure(
            "Goodput",
            fmt.share(productive.chip_seconds / whole if productive else 0.0 if result.steps_read else None),
            "Time in steps whose result was kept, as a part of the chip time held. With the seconds of those steps "
            "that no profile explains.",
            "derived",
        )
    )
    maths = theme.meaning(["useful_maths"]) + " As a part of the chip time held."
    if useful is None:
        shown.append(Figure("Useful maths", fmt.NO_VALUE, maths, "unattributed"))
    else:
        shown.append(Figure("Useful maths", fmt.share(useful.chip_seconds / whole), maths, useful.basis))
    if ledger.usd is None:
        shown.append(
            Figure(
                "Interruptions",
                f"{len(result.interruptions):,}",
                "Attempts that ended without the job being done.",
                "derived",
            )
        )
    shown.append(
        Figure(
            "Cannot be told",
            fmt.share(unknown(ledger) / whole),
            theme.meaning(["unattributed"]),
            "unattributed",
        )
    )
    return shown


def _serving(ledger: Ledger, whole: float) -> list[Figure]:
    """The figures of a serving run beside the time held."""
    served = ledger.amount("served")
    told = served > ledger.amount("useful_maths")
    value = fmt.share(served / whole) if told else fmt.NO_VALUE
    shown = [
        Figure("Served tokens", value, theme.meaning(["served"]), "derived" if told else "unattributed"),
        _part(ledger, "useful_maths", "derived"),
    ]
    if ledger.usd is None:
        shown.append(_part(ledger, "no_requests", "measured"))
    if missing := unknown(ledger):
        return [
            *shown,
            Figure("Cannot be told", fmt.share(missing / whole), theme.meaning(["unattributed"]), "unattributed"),
        ]
    return [*shown, _part(ledger, "lost_work", "derived")]


def _part(ledger: Ledger, name: str, basis: str = "modelled") -> Figure:
    """An account as a figure: its share of the whole."""
    share = ledger.amount(name) / (ledger.chip_seconds or 1.0)
    return Figure(theme.title(name), fmt.share(share), f"{theme.meaning([name])} As a part of the whole.", basis)


@st.fragment
def explore(run: Run, result: LedgerResult) -> None:
    """The picture and its table. Opening an account draws these two again and leaves the rest of the page alone."""
    root, name = result.ledger.account, f"{run.manifest.name}-ledger"
    chain = opened(root, st.query_params.get("account", ""))
    at = path_text(tuple(a.name for a in chain))
    left, right = st.columns([3, 2], vertical_alignment="center")
    with left:
        crumbs(chain)
    with right, st.container(horizontal=True, horizontal_alignment="right"):
        view = switch("Picture", "view", VIEWS, "icicle")
    figure = (waterfall if view == "waterfall" else icicle)(result.ledger, at)
    key = f"picture {view} {at}"

    def clicked() -> None:
        points = st.session_state[key].selection.points
        if points:
            choose("account", points[0]["customdata"])

    chart(figure, key, name, ledger_verdict(result), clicked)
    lines = hover_lines(chain[-1], tuple(a.name for a in chain), result.ledger.chip_seconds)
    st.caption("  \n".join(md(line) for line in lines))
    why(run, tuple(a.name for a in chain))
    if strip := calendar(result):
        stops = len(result.interruptions)
        attempts = fmt.count(stops + 1, "attempt")
        st.caption(f"{attempts}, {fmt.count(stops, 'interruption')}. Times are UTC.")
        chart(strip, "calendar", f"{run.manifest.name}-attempts", "The attempts of the job over time.")
    table = ledger_table(result.ledger)
    evidence(table, lambda path: choose("account", path))
    downloads(
        table,
        name,
        f"/api/runs/{run.run_id}/show/ledger",
        lambda: standalone(figure, f"{run.manifest.name}: {view}", name),
    )


def crumbs(chain: list[Account]) -> None:
    """The way from the whole down to the account that is open; each step goes back up."""
    with st.container(horizontal=True, gap="small"):
        for i, account in enumerate(chain[:-1]):
            path = path_text(tuple(a.name for a in chain[: i + 1]))
            st.button(
                f"{md(theme.title(account.name))} ›",
                key=f"crumb {path}",
                type="tertiary",
                on_click=choose,
                args=("account", path),
            )
        parts = [a for a in sorted(chain[-1].children, key=lambda a: -a.chip_seconds) if a.chip_seconds > 0]
        paths = {path_text((*(a.name for a in chain), p.name)): theme.title(p.name) for p in parts}
        key = f"open {path_text(tuple(a.name for a in chain))}"
        if paths:
            st.selectbox(
                "Open an account",
                list(paths),
                index=None,
                key=key,
                format_func=lambda p: paths[p],
                placeholder=f"{theme.title(chain[-1].name)}: open a part",
                label_visibility="collapsed",
                width=280,
                on_change=lambda: choose("account", st.session_state[key] or ""),
            )
        else:
            st.markdown(f"**{md(theme.title(chain[-1].name))}**", width="content")


if __name__ == "__main__":
    page()

"""The run library: every run in the store, to be searched, tagged and added to."""

import math
from typing import Any

import streamlit as st

from analyzers.time.ledger import LedgerResult
from app import theme
from app.components.current import open_workspace
from app.components.howto import PROFILE
from app.components.live import LIVE_SECONDS, live_mark, watch_live_runs
from app.components.notice import notice
from app.components.option import control
from app.components.text import md
from app.pages.library.runs_table import runs_table
from app.pages.library.tags import edit_tags
from app.pages.library.upload import upload
from app.questions.asking import glimpse
from app.questions.findings import FINDINGS
from app.questions.ledger import LEDGER
from app.summary import chips_text, matches, model_text, tags_of
from app.workspace import Workspace
from errors import ChipledgerError
from errors import format as fmt
from errors.options import Option
from runs.live import Live
from runs.registry import Extras
from runs.run import Run
from runs.store import Listing

SEARCH = Option(
    "q", str, None, "words that must all occur in a run's name, kind, chip, model, topology or tags", label="Search"
)
SHOWN = 50  # runs at first; more on demand
LOOK_AGAIN_SECONDS = 1.5
TOLD = 3  # damaged runs that are told above the list


def page() -> None:
    place = open_workspace()
    if added := upload():
        st.switch_page(FINDINGS.file, query_params={"run": added})
    followed = watch_live_runs(place)
    try:
        there = place.store.look()
        extras = place.registry.all_extras([r.run_id for r in there.runs])
    except ChipledgerError as e:
        notice(e, library=False)
        return
    tell_damage(list(there.broken.values()))
    runs, broken = there.runs, broken_rows(there)
    if not runs and not broken:
        welcome()
        return
    words = search()
    found = [r for r in runs if matches(r, extras[r.run_id], words)]
    broken = [row for row in broken if words.casefold() in row["run_id"]]
    wanted = st.session_state.setdefault("shown", SHOWN)
    st.caption(
        fmt.count(len(found), "run")
        + (f" of {len(runs):,}" if len(found) < len(runs) else "")
        + (f", and {len(broken):,} that cannot be read" if broken else "")
    )
    if not found and not broken:
        st.info("No run matches. Search looks at name, kind, chip, model, topology and tags.", icon=":material/search:")
        return
    shown = found[:wanted]
    pending = any(row["under"] == PENDING for row in rows(shown, extras, place))
    every = LOOK_AGAIN_SECONDS if pending else LIVE_SECONDS if followed else None
    st.fragment(listed, run_every=every)(shown, extras, place, pending, broken)
    if len(found) > wanted and st.button(f"Show {min(SHOWN, len(found) - wanted)} more"):
        st.session_state["shown"] = wanted + SHOWN
        st.rerun()


def tell_damage(problems: list[str]) -> None:
    """What is wrong with damaged runs: a few one by one, many by their number; each row says its own."""
    more = f"{len(problems):,} runs are damaged. `chipledger doctor --verify` lists what of each."
    for text in [md(p) for p in problems] if len(problems) <= TOLD else [more]:
        st.warning(text, icon=":material/info:")


PENDING = "being computed"


def listed(
    runs: list[Run], extras: dict[str, Extras], place: Workspace, pending: bool, broken: list[dict[str, Any]]
) -> None:
    """The table, runs that cannot be read first; drawn again by itself while ledgers are still being computed, and once
    more when all are there."""
    drawn = broken + rows(runs, extras, place)
    if pending and not any(row["under"] == PENDING for row in drawn):
        st.rerun()
    opened, edited = runs_table(drawn)
    if opened:
        st.switch_page(FINDINGS.file, query_params={"run": opened})
    if edited:
        edit_tags(place.store.find(edited), place.registry)


def search() -> str:
    """The search field, kept in the address."""
    place = "Search by name, tag, chip or model"
    return control(SEARCH, empty=place, hidden=True, icon=":material/search:", key="search")


def rows(runs: list[Run], extras: dict[str, Extras], place: Workspace) -> list[dict[str, Any]]:
    """What the table shows of each run, and what it is sorted by."""
    live = {v.run_id: v for v in place.store.live.all()}
    return [_row(run, extras[run.run_id], place, live.get(run.run_id)) for run in runs]


def broken_rows(there: Listing) -> list[dict[str, Any]]:
    """A row for each run whose manifest cannot be read, which says so: all that is known of it is its id."""
    read = {r.run_id for r in there.runs}
    return [
        {
            "run_id": run_id,
            "live": None,
            "name": run_id,
            "chips": fmt.NO_VALUE,
            "model": fmt.NO_VALUE,
            "kind": fmt.NO_VALUE,
            "added": fmt.NO_VALUE,
            "simulated": False,
            "tags": [],
            "bar": [],
            "under": problem,
            "problem": problem,
            "broken": True,
            "sort": {"name": run_id},
        }
        for run_id, problem in sorted(there.broken.items())
        if run_id not in read
    ]


def _row(run: Run, extras: Extras, place: Workspace, live: Live | None) -> dict[str, Any]:
    manifest = run.manifest
    bar, under, goodput = [], PENDING, None
    try:
        result = glimpse(LEDGER, run, place.registry)
        if result is not None:
            bar, under, goodput = _picture(result)
    except ChipledgerError:
        under = "no ledger: opens with why"
    return {
        "run_id": live.address if live else run.run_id,
        "live": live_mark(live) if live else None,
        "name": manifest.name,
        "chips": chips_text(run),
        "model": model_text(run) or fmt.NO_VALUE,
        "kind": manifest.kind,
        "added": fmt.date(manifest.created_ns),
        "simulated": manifest.simulated,
        "tags": [f"{k}={v}" for k, v in tags_of(run, extras).items()],
        "bar": bar,
        "under": under,
        "problem": run.damage,
        "broken": False,
        "sort": {
            "name": manifest.name.casefold(),
            "chips": manifest.fact("chips"),
            "model": model_text(run),
            "kind": manifest.kind,
            "added": manifest.created_ns,
            "goodput": goodput,
        },
    }


def _picture(result: LedgerResult) -> tuple[list[dict[str, Any]], str, float | None]:
    """The ledger in four parts, its amount in words, and its goodput: the share in kept steps, or in answers."""
    ledger, whole = result.ledger, result.ledger.chip_seconds
    if whole <= 0:
        return [], "no chip time", None
    useful, missing, badput = ledger.amount("useful_maths"), ledger.unknown, ledger.amount("badput")
    serving = result.serving
    if serving:
        badput = math.fsum(ledger.amount(n) for n in ("lost_work", "scheduling", "program_startup", "no_requests"))
    stepless = ledger.find("profiled") is not None
    parts = (
        ("Useful maths", useful, "useful_maths"),
        (
            f"Other known time in {'answers' if serving else 'the profile' if stepless else 'kept steps'}",
            max(whole - useful - missing - badput, 0.0),
            "below_roofline",
        ),
        ("Unattributed", missing, "unattributed"),
        ("Lost, waiting or idle" if serving else "Badput", badput, "badput"),
    )
    bar = [
        {
            "title": f"{title}: {fmt.share(amount / whole)}",
            "share": amount / whole,
            "colour": theme.colour([name]),
            "hatched": bool(theme.pattern([name])),
        }
        for title, amount, name in parts
        if amount > 0
    ]
    goodput = ledger.amount("served" if serving else "productive") / whole
    if serving and missing > whole / 2:  # what was served cannot be told: a bound would be read as a measurement
        return bar, f"{fmt.chip_time(whole)}, serving", None
    if not (serving or result.steps_read):
        return bar, f"{fmt.chip_time(whole)}, no step read", None
    return bar, f"{fmt.chip_time(whole)}, {fmt.share(goodput)} {'served' if serving else 'kept'}", goodput


def welcome() -> None:
    """An empty store teaches."""
    st.markdown("#### No runs yet")
    st.markdown(
        "Add what your job already writes: **profiles** (`*.xplane.pb`, `*.pt.trace.json`), **goodput entries** (a "
        "Cloud Logging export or `goodput.jsonl`), **training logs** with step lines. Together they close one ledger; "
        "each alone gives a part of it. Or look at a run that is bundled here: `chipledger demo`."
    )
    st.markdown("No profile yet? Capture a few usual steps:")
    st.code(PROFILE, language="python")
    st.markdown("From a shell, the same upload is")
    st.code("chipledger ingest profile/ train.log goodput.jsonl --name my-run", language="shell")


if __name__ == "__main__":
    page()

"""The pictures of the stragglers page: lateness and blame, causes, two ranks side by side, clocks, the step time."""

import numpy as np
import pandas as pd
import streamlit as st

from analyzers.ranks.stragglers import StragglersResult
from analyzers.ranks.stragglers.rank_causes import CAUSES, UNKNOWN
from app.components.chart import chart
from app.components.columns import draw_table
from app.components.current import choose, switch
from app.components.on_timeline import on_timeline
from app.components.option import control
from app.components.question_page import Told
from app.components.text import md
from app.questions.stragglers import figure as draw
from app.questions.stragglers.words import verdict as words
from app.timeline.places import place_of
from errors import format as fmt
from errors.options import Option
from runs.run import Run

VIEWS = {"lateness": "Lateness", "causes": "Causes", "compare": "Two ranks", "clocks": "Clocks", "time": "Step time"}
NO_TRACE = (
    "No trace shows what these ranks did between collectives. A profile of them (*.xplane.pb, *.pt.trace.json), or "
    "data_loading entries per host, would tell why one is late."
)
MOST_CHOICES = 2000
BLOCK = Option("block", str, None, "which ranks are drawn; a block of them is shown rank by rank", label="Ranks")


def wanted_pair() -> tuple[str, ...]:
    """The two ranks in the address."""
    found = [r.strip() for r in st.query_params.get("pair", "").split(",") if r.strip()]
    return tuple(found[:2])


def explore(told: Told[StragglersResult]) -> None:
    """One view of the answer, with its rows."""
    run, result = told.run, told.result
    compared = len(result.steps) > 0
    if len(result.ranks):
        step, place = latest(result)
        label = f"Step {step:,}, in which rank {md(result.ranks['rank'].iloc[0])} was latest, on the timeline"
        on_timeline(run, place, label)
    views = {k: v for k, v in VIEWS.items() if compared or k == "time"}
    if not compared and not len(result.changes.rows):
        return
    view = switch("View", "view", views, "lateness" if compared else "time")
    view = view if view in views else next(iter(views))
    figures, rows = {"lateness": _lateness, "causes": _causes, "compare": _compare, "clocks": _clocks, "time": _time}[
        view
    ](run, result)
    told.evidence(rows, fmt.count(len(rows), "row"), figures[0] if figures else None, view, view)


def latest(result: StragglersResult) -> tuple[int, dict[str, str]]:
    """The step in which the first of the ranks named was latest, and its place."""
    worst = result.ranks.iloc[0]
    at = int((result.every["rank"].astype(str) == str(worst["rank"])).to_numpy().argmax())
    late = result.lateness.to_numpy(dtype=float)[at]
    steps = result.steps["step"].to_numpy(dtype="int64")
    within = (steps >= int(worst["first_step"])) & (steps <= int(worst["last_step"]))
    step = int(steps[np.nanargmax(np.where(within, late, np.nan))])
    where = result.every.iloc[at]
    return step, place_of(step=step, host=str(where["host"] or ""), device=where["device"])


def _lateness(run: Run, result: StragglersResult) -> tuple[list, pd.DataFrame]:
    first, last = _zoom(result)
    size = -(-(last - first + 1) // draw.MOST_ROWS)
    each = "" if size == 1 else f" A row is {size} ranks and shows the latest of them; choose a block to see each."
    st.markdown("**How much later than its peers did each rank arrive?** Grey: not compared." + each)
    name = f"{run.manifest.name}-lateness"
    heat = draw.lateness(result, first, last)
    chart(heat, f"lateness {first} {last}", name, words(result))
    bars = draw.blame(result, first, last)
    if bars is None:
        st.markdown("Nobody made anybody wait.")
        return [heat], result.every
    st.markdown(
        "**What would be saved if only this rank were mended?** Over all steps compared, in wall time, with the 95 % "
        "interval by the scatter between steps; ranks that the verdict names in colour."
    )
    chart(bars, f"blame {first} {last}", f"{name}-blame", words(result))
    return [heat, bars], result.every.sort_values("blame_all_s", ascending=False, kind="stable")


def _zoom(result: StragglersResult) -> tuple[int, int]:
    """The ranks to show, by their positions: all, or the block in the address."""
    ranks = len(result.every)
    if ranks <= draw.MOST_ROWS:
        return 0, ranks - 1
    labels = result.every["rank"].astype(str).to_numpy()
    choices = {"": (0, ranks - 1)} | {str(i): block for i, block in enumerate(draw.blocks(ranks))}
    worst = int(result.every["blame_all_s"].fillna(-1).to_numpy().argmax())

    def told(key: str) -> str:
        a, b = choices[key]
        mark = ", with the most blamed" if key and a <= worst <= b else ""
        return f"ranks {labels[a]} to {labels[b]}{mark}" if key else f"all {ranks:,} ranks"

    texts = {key: told(key) for key in choices if key}
    asked = control(BLOCK, texts=texts, unset=told(""), width=340, key="straggler_block")
    return choices[asked or ""]


def _causes(run: Run, result: StragglersResult) -> tuple[list, pd.DataFrame]:
    figure = draw.causes(result)
    if figure is None:
        st.info(NO_TRACE, icon=":material/info:")
        return [], result.causes
    st.markdown(
        "**What do the latest ranks do longer than their peers, between collectives?** Ranks that the verdict "
        "names: over the steps it names them for; others: over all steps."
    )
    chart(figure, "straggler causes", f"{run.manifest.name}-causes", words(result))
    return [figure], result.causes


def _compare(run: Run, result: StragglersResult) -> tuple[list, pd.DataFrame]:
    labels = result.every["rank"].astype(str).tolist()
    ranked = result.every.sort_values("blame_all_s", ascending=False, kind="stable")["rank"].astype(str).tolist()
    asked = [r for r in wanted_pair() if r in labels]
    pair = (asked + [r for r in [*ranked, *labels] if r not in asked])[:2]
    choices = labels if len(labels) <= MOST_CHOICES else list(dict.fromkeys([*pair, *ranked]))[:MOST_CHOICES]

    def changed() -> None:
        choose("pair", ",".join(st.session_state[f"pair {i}"] for i in range(2)))

    with st.container(horizontal=True):
        for i, rank in enumerate(pair):
            st.selectbox(
                "Rank" if not i else "and rank",
                choices,
                index=choices.index(rank),
                key=f"pair {i}",
                on_change=changed,
                width=160,
            )
    figure = draw.compare(result, (pair[0], pair[-1]))
    if figure is None:
        st.info(NO_TRACE, icon=":material/info:")
        return [], result.every[result.every["rank"].isin(pair)]
    st.markdown("**Where do these two differ from the median of their peers**, step by step, between collectives?")
    chart(figure, f"compare {' '.join(pair)}", f"{run.manifest.name}-compare", words(result))
    rows = result.causes[result.causes["rank"].isin(pair)].set_index("rank")[[*CAUSES, UNKNOWN]].T
    return [figure], rows.reset_index(names="cause")


def _clocks(run: Run, result: StragglersResult) -> tuple[list, pd.DataFrame]:
    good = fmt.duration(result.resolution_s)
    st.markdown(
        f"**How far are the ranks' clocks apart?** By the recorded ends of collectives, good to {good}. For "
        "display only: waits are taken from durations, so no offset changes a verdict."
    )
    rows = result.every[result.every["offset_s"].notna()]
    shown = pd.DataFrame(
        {
            "rank": rows["rank"],
            "host": rows["host"],
            "ahead of the median (ms)": rows["offset_s"] * 1e3,
            "drift (µs per s)": rows["drift"] * 1e6,
            "told from zero": rows["offset_s"].abs() > 3 * (result.resolution_s or 0.0),
        }
    )
    draw_table(shown.sort_values("ahead of the median (ms)", key=abs, ascending=False).head(5000))
    return [], shown


def _time(run: Run, result: StragglersResult) -> tuple[list, pd.DataFrame]:
    figure = draw.step_time(result)
    if figure is None:
        st.info("No log and no profile tells how long steps took.", icon=":material/info:")
        return [], result.steps
    st.markdown(
        "**Did the time of a step change for good?** Levels are medians between changes; a step log tells when "
        "a job became slow, not who made it so."
    )
    chart(figure, "straggler step time", f"{run.manifest.name}-step-time", words(result))
    return [figure], result.changes.stretches

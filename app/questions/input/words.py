"""Waiting for input in words: the verdict, and the stalls as a terminal prints them."""

import pandas as pd

from analyzers.device.input import InputResult
from app.words import Table, Verdict, headline
from errors import format as fmt


def verdict(result: InputResult) -> Verdict:
    """Whether input bounds the run, what the stalls cost, or what would tell."""
    if result.verdict == "bound":
        return headline(_bound(result))
    if result.verdict == "stalls":
        return headline(_stalls(result))
    if result.verdict == "hidden":
        return headline(_hidden(result))
    limit = result.at_most_share
    profiled = result.rows["devices"].gt(0)
    if result.usual_waited_share is None and result.waited_share is not None and profiled.any():
        none = "the step that was profiled is no usual one"
        if profiled.sum() > 1:
            none = "of the steps that were profiled none is a usual one"
        return headline(
            f"Whether the run waits for input cannot be told: {none}.",
            f"There devices wait for it {fmt.whole_share(result.waited_share)} of the time.",
        )
    text = "Whether the run waits for input cannot be told: nothing says when a batch was fetched."
    if (fetched := result.rows["fetch_s"].gt(0)).any():
        text = (
            "Whether the run waits for input cannot be told: a fetch is recorded in "
            f"{fmt.count(int(fetched.sum()), 'step')} of {len(result.rows):,} only."
        )
    if limit is None:
        return headline(text)
    return headline(text, f"At most it could be the {fmt.whole_share(limit)} of time in which devices do nothing.")


def _bound(result: InputResult) -> str:
    share = result.usual_waited_share if result.usual_waited_share is not None else result.waited_share
    if share:
        of = "a usual step" if len(result.rows) else "the time between their operations"
        text = f"The run is bound by its input: devices wait for it {fmt.whole_share(share)} of {of}"
    else:
        per = f"{fmt.number(result.slope, 2)} s longer per second of fetch"
        text = f"The run is bound by its input: a step gets {per}, and a usual fetch takes {_of_step(result)}"
    cost = "" if not result.waited_s else f" ({fmt.chip_time(result.waited_s)} in all)"
    return f"{text}{cost}."


def _of_step(result: InputResult) -> str:
    if not result.median_fetch_s or not result.fed_step_s:
        return "an unknown part of it"
    return f"{fmt.whole_share(result.median_fetch_s / result.fed_step_s)} of it"


def _stalls(result: InputResult) -> str:
    kept = result.stalls[result.stalls["kept"]]
    steps = sorted(int(step) for step in kept["step"])
    once = steps[0] == steps[-1]
    where = f"{len(steps)} times between steps {steps[0]:,} and {steps[-1]:,}"
    if once:
        where = f"at step {steps[0]:,}" + (f", {len(steps)} times" if len(steps) > 1 else "")
    elif steps == list(range(steps[0], steps[-1] + 1)):
        where = f"at steps {steps[0]:,} to {steps[-1]:,}"
    usual = ""
    if result.median_fetch_s and result.fed_step_s:
        usual = f"; a usual fetch takes {fmt.whole_share(result.median_fetch_s / result.fed_step_s)} of a step"
    longer = fmt.duration(float(kept["extra_s"].median()))
    how, each = ("it stalled once", "") if len(steps) == 1 else ("it stalls now and then", " each")
    return (
        f"Not bound by its input, but {how}: {where}, {longer} longer{each}, "
        f"{fmt.chip_time(result.stall_chip_seconds)} in all{usual}."
    )


def _hidden(result: InputResult) -> str:
    if result.waited_share is not None and (result.rows["devices"].gt(0).any() or not len(result.rows)):
        return f"Not bound by its input: devices wait for it {fmt.whole_share(result.waited_share)} of the time."
    if result.slope is not None and result.slope_high is not None:
        return (
            "Not bound by its input: steps with a longer fetch are no longer than the others "
            f"({fmt.number(result.slope, 2)} s per second of fetch)."
        )
    if result.median_fetch_s is not None:
        return f"Not bound by its input: a usual fetch takes {_of_step(result).removesuffix(' it')} a step."
    free = fmt.whole_share(result.at_most_share or 0)
    return f"Not bound by its input: devices do nothing for {free} of the time only."


def table(result: InputResult) -> Table:
    """The stalls, each with what it cost."""
    return Table(
        ("step", "attempt", "fetch", "step took", "longer by", "devices waited"),
        tuple(
            (
                f"{r['step']:,}",
                fmt.NO_VALUE if pd.isna(r["attempt"]) else str(r["attempt"]),
                *(
                    fmt.NO_VALUE if pd.isna(r[c]) else fmt.duration(float(r[c]))
                    for c in ("fetch_s", "dur_s", "extra_s", "waited_s")
                ),
            )
            for r in result.stalls.head(40).to_dict("records")
        ),
        right=(0, 1, 2, 3, 4, 5),
    )

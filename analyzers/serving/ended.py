"""How requests ended, by counters of servers at /metrics: answered, or broken off.

    vLLM      request_success by finished_reason: `abort` (its client was gone, or gave up) and `error` are no answers
    SGLang    num_requests beside num_aborted_requests
    TGI       request_success beside request_failure (by err: validation, overloaded, dropped, ...)
Each series grew from its first scrape to its last, whichever of the inputs of its server tell of it; where each was
scraped once, counts are since the process began.
"""

import re
from dataclasses import dataclass

import pandas as pd

from analyzers.serving.counters import increase
from analyzers.serving.servers import inputs_of_servers
from runs.tables import Tables, frame

ANSWERED = ("vllm:request_success", "sglang:num_requests", "tgi_request_success")
BROKEN_OFF = ("sglang:num_aborted_requests", "tgi_request_failure")
NO_ANSWER = re.compile(r'\bfinished_reason="(?:abort|error)"')
_NAME = re.compile(rf"(?:{'|'.join(map(re.escape, (*ANSWERED, *BROKEN_OFF)))})(?:_total)?(?:\{{.*)?$")


@dataclass(frozen=True)
class Ended:
    """Requests that ended while servers were watched, and those of them that were broken off or failed."""

    requests: int
    broken_off: int


def ended(tables: Tables) -> Ended | None:
    """None where no scrape counts how requests end."""
    rows = frame(tables, "scalars", ["ts_ns", "name", "value", "source"]).dropna(subset=["name", "value"])
    names = rows["name"].astype("category")
    kinds = [name for name in names.cat.categories if _NAME.match(str(name))]
    rows = rows[names.isin(kinds).to_numpy()].astype({"name": str, "source": str})
    if not len(rows):
        return None
    rows = rows.assign(source=rows["source"].replace(_first_inputs(tables))).sort_values("ts_ns", kind="stable")
    found = pd.DataFrame(
        [
            (name, len(mine), increase(mine["value"]), mine["value"].iloc[-1])
            for (name, _), mine in rows.groupby(["name", "source"], sort=False)
        ],
        columns=["name", "samples", "grown", "last"],
    )
    grown = found["grown" if (found["samples"] > 1).any() else "last"].fillna(0.0).astype(float)
    bad = found["name"].str.startswith(BROKEN_OFF) | found["name"].str.contains(NO_ANSWER)
    return Ended(round(float(grown.sum())), round(float(grown[bad].sum())))


def _first_inputs(tables: Tables) -> dict[str, str]:
    """Inputs that tell of one server, as files of a scrape each do: the first of them by name, for each."""
    first: dict[str, str] = {}
    for inputs in inputs_of_servers(tables).values():
        together = inputs | {one for one, known in first.items() if known in {first.get(name) for name in inputs}}
        first.update(dict.fromkeys(together, min(together)))
    return first

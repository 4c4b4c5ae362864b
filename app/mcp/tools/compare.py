"""`compare`: by how much two runs differ, whether that is more than chance, and what makes it."""

from collections.abc import Mapping
from typing import Any

from app.baselines import find_run
from app.comparing.answer import Compared
from app.comparing.modelled import beside_model
from app.comparing.modelled_words import verdict
from app.comparing.options import LOADS, SIDES, WHATIF
from app.mcp.arguments import Pairs
from app.mcp.base import Told, Tool
from app.mcp.links import named, to
from app.pages.compare import COMPARE as PAGE
from app.pages.compare import MODEL
from app.workspace import Workspace
from errors import QuestionError

A, B = SIDES


def answer(place: Workspace, given: Mapping[str, Any], more: Pairs) -> Told:
    if WHATIF.name in given:
        return _beside(place, given)
    if B.name not in given:
        raise QuestionError("the run is compared with nothing", expected=f"{B.name}, or {WHATIF.name}")
    a, b = find_run(place, given[A.name]), find_run(place, given[B.name])
    found = Compared(a, b, place, *(given.get(o.name) for o in LOADS))
    links = {"page": to(f"/{PAGE.path}", ("run", named(a, place)), ("with", b.run_id))}
    return Told(found.verdict, found.to_dict(), links)


def _beside(place: Workspace, given: Mapping[str, Any]) -> Told:
    if {B.name, *(o.name for o in LOADS)} & given.keys():
        raise QuestionError(f"{WHATIF.name} beside another run or a load", expected=f"{A.name} and {WHATIF.name}")
    run, setup = find_run(place, given[A.name]), given[WHATIF.name]
    found = beside_model(run.run_id, setup, place)
    page = to(f"/{PAGE.path}", ("run", named(run, place)), ("with", MODEL), (WHATIF.name, setup))
    return Told(verdict(found), found.to_dict(), {"page": page})


COMPARE = Tool(
    name="compare",
    title="Two runs compared",
    help="Compare two runs: of jobs whether a step is slower, by how much and which accounts and operations make it; "
    "of served runs latencies and throughput. With intervals, and which differences are more than chance. Or one job "
    "beside what the model of training says of its step.",
    options=(*SIDES, *LOADS, WHATIF),
    needed=(A.name,),
    answer=answer,
)

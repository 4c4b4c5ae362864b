"""`query`: SQL over the tables of a run; without SQL, which tables it has."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from app import querying
from app.mcp.arguments import Pairs
from app.mcp.base import RUN, Told, Tool
from app.mcp.links import named, to
from app.workspace import Workspace
from errors import format as fmt
from runs.query_options import OPTIONS

SQL = replace(querying.SQL, help=f"{querying.SQL.help}; without it, the tables are told with their columns")


def answer(place: Workspace, given: Mapping[str, Any], more: Pairs) -> Told:
    run = place.store.find(given[RUN.name])
    page = to("/query", ("run", named(run, place)))
    sql = given.get(SQL.name, "")
    if not sql.strip():
        tables = [t for t in querying.tables(run) if t["rows"]]
        links = {"page": page, "json": f"/api/runs/{run.run_id}/tables"}
        return Told(f"The run holds {fmt.count(len(tables), 'table')} with rows.", {"tables": tables}, links)
    options = {o.name: given[o.name] for o in OPTIONS if o.name in given}
    found = querying.answered(run, sql, **options)
    again = [(SQL.name, sql), *((name, str(value)) for name, value in options.items())]
    links = {"page": f"{page}&{to('', again[0])[1:]}", "json": to(f"/api/runs/{run.run_id}/query", *again)}
    return Told(querying.note(found), querying.as_json(found), links)


QUERY = Tool(
    name="query",
    title="SQL over a run's tables",
    help="Ask the tables of a run in SQL (DuckDB, one SELECT, read-only), for what no question tells. Aggregate rather "
    "than list.",
    options=(RUN, SQL, *OPTIONS),
    needed=(RUN.name,),
    answer=answer,
    slow=True,
)

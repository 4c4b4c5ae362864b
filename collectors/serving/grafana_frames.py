"""Grafana's data frames: what `/api/ds/query` answers, and a panel's inspector shows as its data.

    {"results":{"A":{"frames":[{"schema":{"fields":[{"type":"time"},{"type":"number","labels":{...}}]},
                                "data":{"values":[[1700000000500,...],[12,...]]}}]}}}
    [{"fields":[{"type":"time","values":[...]},{"type":"number","labels":{...},"values":[...]}]}]    as a panel has them
A field of numbers beside one of times is a series. Its metric is `__name__` of its labels, else that which the query of
the frame selects; where a query computed it, there is none. Values that JSON has no word for stand in `entities`; a
null that does not is no sample.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import inf, nan
from typing import Any, NamedTuple

MOST_FIELDS = 100_000
_SELECTED = re.compile(r"(?:Expr: *)?([a-zA-Z_:][\w:]*)(?:\{[^{}]*\})?\s*(?:\n.*)?", re.DOTALL | re.ASCII)
_ENTITIES = {"NaN": nan, "Inf": inf, "NegInf": -inf}


class FrameSeries(NamedTuple):
    """`metric`: empty where a query computed it. `points`: a time, ms, and a value each, as they stand."""

    metric: str
    labels: dict[str, str]
    points: list[tuple[Any, Any]]


def is_frame(found: Mapping[str, Any]) -> bool:
    schema, data = found.get("schema"), found.get("data")
    if isinstance(schema, dict) and isinstance(data, dict):
        return isinstance(schema.get("fields"), list) and isinstance(data.get("values"), list)
    fields = found.get("fields")
    return isinstance(fields, list) and any(_is(field, "time") and "values" in field for field in fields)


def series_of(frame: Mapping[str, Any]) -> Iterator[FrameSeries]:
    """The series of a frame of which `is_frame` is true; none where no field holds times."""
    schema = frame["schema"] if isinstance(frame.get("schema"), dict) else frame
    fields = [field if isinstance(field, dict) else {} for field in schema["fields"][:MOST_FIELDS]]
    columns = _columns(frame, fields)
    at = next((n for n, field in enumerate(fields) if _is(field, "time") and n < len(columns)), None)
    if at is None:
        return
    selected = _selected(schema)
    for field, column in zip(fields, columns, strict=False):
        if _is(field, "number"):
            told = field.get("labels")
            labels = {k: v for k, v in told.items() if isinstance(v, str)} if isinstance(told, dict) else {}
            metric = labels.pop("__name__", "") or selected
            points = [(t, v) for t, v in zip(columns[at], column, strict=False) if v is not None]
            yield FrameSeries(metric, labels, points)


def _columns(frame: Mapping[str, Any], fields: Sequence[dict[str, Any]]) -> list[list[Any]]:
    """The values of each field, those that JSON has no word for among them."""
    data = frame.get("data")
    values = data["values"] if isinstance(data, dict) and "schema" in frame else [f.get("values") for f in fields]
    columns = [[*column] if isinstance(column, list) else [] for column in values]
    entities = data.get("entities") if isinstance(data, dict) else [field.get("entities") for field in fields]
    for column, named in zip(columns, entities if isinstance(entities, list) else (), strict=False):
        for name, places in named.items() if isinstance(named, dict) else ():
            for place in places if isinstance(places, list) and name in _ENTITIES else ():
                if isinstance(place, int | float) and 0 <= place < len(column) and int(place) == place:
                    column[int(place)] = _ENTITIES[name]
    return columns


def _selected(schema: Mapping[str, Any]) -> str:
    """The metric that a query selects and does no more with."""
    meta = schema.get("meta")
    said = meta.get("executedQueryString") if isinstance(meta, dict) else None
    found = _SELECTED.fullmatch(said[:100_000]) if isinstance(said, str) else None
    return found[1] if found else ""


def _is(field: Any, kind: str) -> bool:
    return isinstance(field, dict) and field.get("type") == kind

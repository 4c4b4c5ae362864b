"""What each route of the HTTP API takes beside its address: parameters by their options, fields of a JSON body.

A test asks every route for one that it does not know, and holds the names that the refusal tells against these.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app import listing_options, querying, topology_options
from app.comparing.several import options as several_options
from app.facts.kinds import FACTS
from app.fleet import options as fleet_options
from app.history import options as history_options
from app.identity.audit import AS as AS_TABLE
from app.identity.audit import MOST, SINCE
from app.mcp.schemas import of_option
from app.operations.metrics import MEDIA_TYPE
from app.reporting.formats import AS, TAKEN
from app.serve import (
    capturing,
    comparing,
    compiling,
    identifying,
    ingesting,
    sharing,
    shelving,
    timeline,
    timeline_places,
)
from app.serve.baselining import MOVED
from app.timeline import marks
from app.timeline.perfetto.options import ASKED as PERFETTO
from errors.options import Option

TEXT: Mapping[str, Any] = {"type": "string"}
NULLABLE: Mapping[str, Any] = {"type": ["string", "null"]}
TEXTS: Mapping[str, Any] = {"type": "array", "items": {"type": "string"}}
TAGS: Mapping[str, Any] = {"type": "object", "additionalProperties": {"type": ["string", "null"]}}
SAID: Mapping[str, Mapping[str, Any]] = {  # fields of what people say of runs, by name
    **dict.fromkeys(("name", "was", "group", "who", "why", "text", "query", "sort", "run"), NULLABLE),
    "starred": {"type": "boolean"},
    "archived": {"type": "boolean"},
    "tags": TAGS,
    "columns": TEXTS,
    "runs": TEXTS,
}
BYTES, HTML = "application/octet-stream", "text/html"


@dataclass(frozen=True, kw_only=True)
class Takes:
    """What a route takes.

    query   parameters
    body    fields of a JSON object, each with its schema; `needed`: those that must be there
    raw     the kind of a body that is no JSON
    media   as what it answers, where that is not JSON alone
    headers those of the protocol tus that it takes, each with whether it must be there
    answers its statuses where all went well
    """

    query: tuple[Option, ...] = ()
    body: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    raw: str = ""
    media: tuple[str, ...] = ("application/json",)
    headers: Mapping[str, bool] = field(default_factory=dict)
    answers: int = 200


def _said(*names: str, needed: tuple[str, ...] = ()) -> Takes:
    return Takes(body={name: SAID[name] for name in names}, needed=needed)


def _options(options: tuple[Option, ...]) -> dict[str, Mapping[str, Any]]:
    return {o.name: _or_null(of_option(o)) for o in options}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """null counts as not given; a number may come as text."""
    described = {"description": schema["description"]} if "description" in schema else {}
    return {
        "anyOf": [{k: v for k, v in schema.items() if k != "description"}, {"type": ["null", "string"]}],
        **described,
    }


FACTS_SAID = {f.name: {"description": f.expected} for f in FACTS}
INGEST = {
    ingesting.UPLOAD: NULLABLE,
    ingesting.ADDRESS: NULLABLE,
    ingesting.TAGS: {"type": ["object", "null"], "additionalProperties": {"type": "string"}},
    **_options(tuple(ingesting.fields().values())),
}
KEY = {"type": ["string", "null"], "pattern": "^[0-9a-f]{64}$"}
TOKEN = {
    "name": {"type": "string"},
    "role": {"enum": list(identifying.ROLES)},
    "expires_days": {"type": ["number", "null"], "description": "null: it does not expire", "unit": "days"},
    "groups": {"type": ["array", "null"], "items": {"type": "string"}},
}
VERSION = {"Tus-Resumable": True}
PIECE = {**VERSION, "Upload-Offset": True, "Upload-Checksum": False}
BEGIN = {**VERSION, "Upload-Length": True, "Upload-Metadata": True, "Upload-Checksum": False}
OCTETS = "application/offset+octet-stream"
_ONE, _FILES = "/api/runs/{run_id}", "/api/uploads/{upload_id}/files"

TAKES: Mapping[str, Takes] = {
    "GET /api/runs": Takes(query=listing_options.ASKED),
    "PATCH /api/runs": _said("runs", *shelving.LABELS, needed=("runs",)),
    f"PATCH {_ONE}": _said(*shelving.FIELDS),
    f"DELETE {_ONE}": Takes(query=(shelving.NOW, shelving.WHO)),
    f"POST {_ONE}/notes": _said("text", "who", needed=("text",)),
    f"PATCH {_ONE}/notes/{{number}}": _said("text", "was", "who", needed=("text",)),
    f"PATCH {_ONE}/facts": Takes(body={**FACTS_SAID, "who": NULLABLE}),
    f"GET {_ONE}/report": Takes(query=(AS, TAKEN), media=(HTML, "text/markdown")),
    f"GET {_ONE}/query": Takes(query=querying.ASKED, media=tuple(querying.MEDIA.values())),
    f"GET {_ONE}/timeline/tiles": Takes(query=timeline.WINDOW, media=(BYTES,)),
    f"GET {_ONE}/timeline/event": Takes(query=(timeline.EVENT,)),
    f"GET {_ONE}/timeline/search": Takes(query=(timeline.TEXT, timeline.CLOCKS)),
    f"GET {_ONE}/timeline/selection": Takes(
        query=(timeline.START, timeline.END, timeline_places.ROWS, timeline.CLOCKS)
    ),
    f"GET {_ONE}/timeline/arrows": Takes(query=(timeline.EVENT, timeline.CLOCKS)),
    f"GET {_ONE}/timeline/step": Takes(query=(timeline_places.NUMBER, timeline.CLOCKS)),
    f"POST {_ONE}/timeline/marks": Takes(body=_options(marks.GIVEN), needed=("at", "from", "to")),
    f"PATCH {_ONE}/groups": Takes(body={sharing.GROUPS: TEXTS}, needed=(sharing.GROUPS,)),
    f"GET {_ONE}/timeline/perfetto": Takes(query=PERFETTO, media=(BYTES,)),
    "PUT /api/searches/{name}": _said("query", "columns", "sort", "who", needed=("query",)),
    "PUT /api/baselines/{name}": _said(*MOVED, needed=("run",)),
    "PATCH /api/baselines/{name}": _said(*MOVED, needed=("run",)),
    "GET /api/compare": Takes(query=comparing.COMPARED),
    "GET /api/compare/report": Takes(query=(*comparing.COMPARED[:-1], AS, TAKEN), media=(HTML, "text/markdown")),
    "GET /api/several": Takes(query=several_options.ASKED),
    "GET /api/history": Takes(query=history_options.ASKED),
    "GET /api/fleet": Takes(query=fleet_options.OPTIONS),
    "GET /api/budgets": Takes(query=(fleet_options.ZONE,)),
    "GET /api/digest": Takes(query=(fleet_options.ZONE,)),
    "GET /api/topology": Takes(query=topology_options.ASKED),
    "POST /api/uploads": Takes(body={"key": KEY}),
    f"OPTIONS {_FILES}": Takes(answers=204),
    f"POST {_FILES}": Takes(headers=BEGIN, raw=OCTETS, answers=201),
    f"PATCH {_FILES}/{{file_id}}": Takes(headers=PIECE, raw=OCTETS, answers=204),
    f"DELETE {_FILES}/{{file_id}}": Takes(headers=VERSION, answers=204),
    "PUT /upload/{upload_id}/{name}": Takes(raw=BYTES),
    "POST /api/ingest": Takes(body=INGEST),
    "POST /api/compile": Takes(body=_options(compiling.REQUEST), needed=("model", "topology")),
    "POST /api/capture": Takes(
        body={capturing.ADDRESSES: TEXTS, **_options(capturing.REQUEST)}, needed=(capturing.ADDRESSES,)
    ),
    "GET /api/jobs/{job_id}": Takes(query=(Option("since", str, "0", "only files that changed after this change"),)),
    "POST /api/tokens": Takes(body=TOKEN, needed=("name", "role")),
    "GET /api/audit": Takes(query=(SINCE, MOST, AS_TABLE), media=("application/json", "text/csv")),
    "GET /metrics": Takes(media=(MEDIA_TYPE,)),
    "GET /api/": Takes(media=(HTML,)),
}
"""Routes that take more than their address, by method and path; others take nothing."""

"""Who may ask what: one record for each route of the whole server, Streamlit's own and its websocket included.

The guard finds the route that would answer, and then its record here. A route that has none is for admins alone.
"""

from dataclasses import dataclass

from app.identity.base import Role

ANY = "*"  # every method
WEBSOCKET = "WEBSOCKET"
PAGE = "/<page>"  # the address of any page of the dashboard, and older ones that lead there


@dataclass(frozen=True)
class Right:
    """The least role that a route needs.

    method  of HTTP, ANY, or WEBSOCKET; HEAD is held to what holds of GET
    path    the route's template; of a Mount with `/{path:path}` behind it
    least   the least role; NOBODY: whoever reaches the server
    what    what the audit log calls it; empty: it only reads, and is told where it is refused alone
    """

    method: str
    path: str
    least: Role
    what: str = ""


RIGHTS = (
    # health and login, the only ones for whoever is not known
    Right("GET", "/healthz", Role.NOBODY),
    Right("GET", "/readyz", Role.NOBODY),
    Right("GET", "/metrics", Role.NOBODY),  # asks for itself: this machine's monitor, and who shows its token
    Right("GET", "/_stcore/health", Role.NOBODY),
    Right("OPTIONS", "/_stcore/health", Role.NOBODY),
    Right("GET", "/login", Role.NOBODY),
    Right("GET", "/login/callback", Role.NOBODY),
    Right("POST", "/logout", Role.NOBODY),
    Right("GET", "/logout", Role.NOBODY),
    # identity
    Right("GET", "/api/whoami", Role.VIEWER),
    Right("GET", "/api/tokens", Role.ADMIN),
    Right("POST", "/api/tokens", Role.ADMIN, "create a token"),
    Right("DELETE", "/api/tokens/{token_id}", Role.ADMIN, "revoke a token"),
    Right("GET", "/api/audit", Role.ADMIN, "read the audit log"),
    # pages, and what they are drawn with
    Right("GET", PAGE, Role.VIEWER),
    Right("GET", "/", Role.VIEWER),
    Right(WEBSOCKET, "/_stcore/stream", Role.VIEWER),
    Right("GET", "/_stcore/metrics", Role.ADMIN),
    Right("OPTIONS", "/_stcore/metrics", Role.ADMIN),
    Right("GET", "/_stcore/host-config", Role.VIEWER),
    Right("GET", "/media/{file_id:path}", Role.VIEWER),
    Right("OPTIONS", "/media/{file_id:path}", Role.VIEWER),
    Right("PUT", "/_stcore/upload_file/{session_id}/{file_id}", Role.VIEWER),  # of a graph that a page draws
    Right("DELETE", "/_stcore/upload_file/{session_id}/{file_id}", Role.VIEWER),
    Right("OPTIONS", "/_stcore/upload_file/{session_id}/{file_id}", Role.VIEWER),
    Right("GET", "/component/{path:path}", Role.VIEWER),
    Right("OPTIONS", "/component/{path:path}", Role.VIEWER),
    Right("GET", "/_stcore/bidi-components/{path:path}", Role.VIEWER),
    Right("OPTIONS", "/_stcore/bidi-components/{path:path}", Role.VIEWER),
    Right("GET", "/auth/login", Role.ADMIN),  # Streamlit's own login, which is not set up here
    Right("GET", "/auth/logout", Role.ADMIN),
    Right("GET", "/oauth2callback", Role.ADMIN),
    Right(ANY, "/_stcore/agent/interact", Role.ADMIN),  # Streamlit's own door for agents, which is closed here
    Right(ANY, "/_stcore/agent/openapi.json", Role.ADMIN),
    Right(ANY, "/_stcore/agent/mcp", Role.ADMIN),
    Right(ANY, "/{path:path}", Role.VIEWER),  # the files of Streamlit's front end, and its page for all else
    Right("GET", "/docs", Role.VIEWER),
    Right(ANY, "/docs/{path:path}", Role.VIEWER),
    # runs, read
    Right("GET", "/api/runs", Role.VIEWER),
    Right("GET", "/api/runs/{run_id}", Role.VIEWER),
    Right("GET", "/api/runs/{run_id}/facts", Role.VIEWER),
    Right("GET", "/api/runs/{run_id}/groups", Role.VIEWER),
    Right("GET", "/api/runs/{run_id}/notes", Role.VIEWER),
    Right("GET", "/api/runs/{run_id}/show/{analysis}", Role.VIEWER),
    Right("GET", "/api/runs/{run_id}/tables", Role.VIEWER),
    Right("GET", "/api/runs/{run_id}/query", Role.VIEWER),
    Right("GET", "/api/runs/{run_id}/report", Role.VIEWER),
    Right("GET", "/api/runs/{run_id}/timeline", Role.VIEWER),
    Right("GET", "/api/runs/{run_id}/timeline/tiles", Role.VIEWER),
    Right("GET", "/api/runs/{run_id}/timeline/event", Role.VIEWER),
    Right("GET", "/api/runs/{run_id}/timeline/search", Role.VIEWER),
    Right("GET", "/api/runs/{run_id}/timeline/selection", Role.VIEWER),
    Right("GET", "/api/runs/{run_id}/timeline/arrows", Role.VIEWER),
    Right("GET", "/api/runs/{run_id}/timeline/step", Role.VIEWER),
    Right("GET", "/api/runs/{run_id}/timeline/perfetto", Role.VIEWER),
    Right("GET", "/api/runs/{run_id}/timeline/ranks", Role.VIEWER),
    Right("GET", "/api/runs/{run_id}/timeline/marks", Role.VIEWER),
    Right("GET", "/perfetto", Role.VIEWER),
    Right(ANY, "/perfetto/{path:path}", Role.VIEWER),
    Right("GET", "/api/bin", Role.VIEWER),
    Right("GET", "/api/searches", Role.VIEWER),
    Right("GET", "/api/baselines", Role.VIEWER),
    Right("GET", "/api/baselines/{name:path}", Role.VIEWER),
    Right("GET", "/api/compare", Role.VIEWER),
    Right("GET", "/api/compare/report", Role.VIEWER),
    Right("GET", "/api/several", Role.VIEWER),
    Right("GET", "/api/history", Role.VIEWER),
    Right("GET", "/api/fleet", Role.VIEWER),
    Right("GET", "/api/budgets", Role.VIEWER),
    Right("GET", "/api/digest", Role.VIEWER),
    Right("GET", "/xprof/{run_id}", Role.VIEWER),
    Right("GET", "/xprof/{run_id}/data/plugin/profile{rest:path}", Role.VIEWER),
    Right(ANY, "/mcp", Role.VIEWER),  # every tool reads
    # what needs no run
    Right("GET", "/api/openapi.json", Role.VIEWER),
    Right("GET", "/api/", Role.VIEWER),
    Right("GET", "/api/questions", Role.VIEWER),
    Right("GET", "/api/questions/{name}/form", Role.VIEWER),
    Right("GET", "/api/models/{model}/show/{analysis}", Role.VIEWER),
    Right("GET", "/api/catalog/{kind}", Role.VIEWER),
    Right("GET", "/api/catalog/{kind}/{name:path}", Role.VIEWER),
    Right("GET", "/api/published", Role.VIEWER),
    Right("GET", "/api/whatif/{name}", Role.VIEWER),
    Right("GET", "/api/topology", Role.VIEWER),
    # what people say of runs
    Right("PATCH", "/api/runs", Role.UPLOADER, "mark runs"),
    Right("PATCH", "/api/runs/{run_id}", Role.UPLOADER, "mark a run"),
    Right("PATCH", "/api/runs/{run_id}/groups", Role.UPLOADER, "say who sees a run"),
    Right("PATCH", "/api/runs/{run_id}/facts", Role.UPLOADER, "say a fact"),
    Right("POST", "/api/runs/{run_id}/timeline/marks", Role.UPLOADER, "mark a timeline"),
    Right("DELETE", "/api/runs/{run_id}/timeline/marks/{number}", Role.UPLOADER, "delete a timeline's mark"),
    Right("POST", "/api/runs/{run_id}/notes", Role.UPLOADER, "write a note"),
    Right("PATCH", "/api/runs/{run_id}/notes/{number}", Role.UPLOADER, "edit a note"),
    Right("DELETE", "/api/runs/{run_id}/notes/{number}", Role.UPLOADER, "delete a note"),
    Right("PUT", "/api/searches/{name}", Role.UPLOADER, "keep a search"),
    Right("DELETE", "/api/searches/{name}", Role.UPLOADER, "delete a search"),
    Right("PUT", "/api/baselines/{name:path}", Role.UPLOADER, "set a baseline"),
    Right("PATCH", "/api/baselines/{name:path}", Role.UPLOADER, "move a baseline"),
    Right("DELETE", "/api/baselines/{name:path}", Role.UPLOADER, "remove a baseline"),
    # the bin; for good, with `now`, an admin alone: `changes.bin_many` asks again
    Right("DELETE", "/api/runs/{run_id}", Role.UPLOADER, "delete a run"),
    Right("POST", "/api/runs/{run_id}/restore", Role.UPLOADER, "restore a run"),
    # runs that are added, and jobs
    Right("POST", "/api/uploads", Role.UPLOADER, "begin an upload"),
    Right("GET", "/api/uploads", Role.UPLOADER),
    Right("GET", "/api/uploads/{upload_id}", Role.UPLOADER),
    Right("DELETE", "/api/uploads/{upload_id}", Role.UPLOADER, "discard an upload"),
    Right("PUT", "/upload/{upload_id}/{name:path}", Role.UPLOADER, "upload a file"),
    Right("GET", "/api/uploads/{upload_id}/files", Role.UPLOADER),
    Right("OPTIONS", "/api/uploads/{upload_id}/files", Role.UPLOADER),
    Right("POST", "/api/uploads/{upload_id}/files", Role.UPLOADER, "upload a file"),
    Right("GET", "/api/uploads/{upload_id}/files/{file_id}", Role.UPLOADER),  # HEAD alone is answered
    Right("PATCH", "/api/uploads/{upload_id}/files/{file_id}", Role.UPLOADER, "upload a piece of a file"),
    Right("DELETE", "/api/uploads/{upload_id}/files/{file_id}", Role.UPLOADER, "give up a file"),
    Right("POST", "/api/ingest", Role.UPLOADER, "ingest"),
    Right("GET", "/api/ingest", Role.UPLOADER),
    Right("POST", "/api/compile", Role.UPLOADER, "compile"),
    Right("POST", "/api/capture", Role.UPLOADER, "capture"),
    Right("GET", "/api/capture", Role.UPLOADER),
    Right("GET", "/api/jobs", Role.UPLOADER),
    Right("GET", "/api/jobs/{job_id}", Role.UPLOADER),
    Right("DELETE", "/api/jobs/{job_id}", Role.UPLOADER, "cancel a job"),
    Right("POST", "/api/jobs/{job_id}/retry", Role.UPLOADER, "retry a job"),
    # what is not there
    Right(ANY, "/api/{rest:path}", Role.VIEWER),
    Right(ANY, "/upload/{rest:path}", Role.VIEWER),
)
UNNAMED = Right(ANY, "", Role.ADMIN, "ask what no record of rights names")

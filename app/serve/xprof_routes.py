"""What may be asked of XProf through this server: the routes and parameters of its own front end, and nothing else.

XProf has routes that dial any host (`/capture_profile`), that write (`/generate_cache`), and parameters that read any
folder (`session_path`, `run_path`, a `run` that is a path). A list of what is refused is never complete, since XProf
takes several spellings for one route; so what is allowed is listed, matched whole, and what XProf is asked is put
together anew from the list. It is that of the front end of xprof 2.24; tests/app/test_xprof.py holds it against the
version that is installed.
"""

import re
from collections.abc import Collection, Sequence
from urllib.parse import urlencode

FILES = frozenset(
    (
        "/index.html",
        "/index.js",
        "/bundle.js",
        "/runtime.js",
        "/zone.js",
        "/styles.css",
        "/materialicons.woff2",
        "/material_symbols_outlined.woff2",
        "/trace_viewer_index.html",
        "/trace_viewer_index.js",
        "/trace_viewer_v2.js",
        "/trace_viewer_v2.wasm",
    )
)
PAGES = frozenset(
    (  # the front end's own addresses: XProf answers each with its one page, which reads the address
        "framework_op_stats",
        "graph_viewer",
        "hlo_stats",
        "inference_profile",
        "input_pipeline_analyzer",
        "kernel_stats",
        "kernel_viewer",
        "megascale_perfetto",
        "megascale_stats",
        "memory_profile",
        "memory_viewer",
        "op_profile",
        "overview_page",
        "perf_counters",
        "pod_viewer",
        "roofline_model",
        "stack_trace_page",
        "trace_viewer",
        "trace_viewer@",
        "utilization_viewer",
    )
)
_PAGE = re.compile(r"/(?P<page>[a-z_@]+)(?:/[\w.-]*)?")
_NAMES = ("run", "tag", "host", "hosts")  # which trace, and which of its tools
_ABOUT_A_RUN = frozenset(("/run_tools", "/hosts", "/module_list", "/data", "/data_csv"))  # XProf breaks without `run`
_TOOLS = (  # what the tools are told
    "module_name",
    "program_id",
    "tqx",
    "perfetto",
    "use_saved_result",
    "full_dma",
    "group_by",
    "refresh_suggestion",
    "view_memory_allocation_timeline",
    "memory_space",
    "resolution",
    "start_time_ms",
    "end_time_ms",
    "event_name",
    "format",
    "duration_ms",
    "unique_id",
    "search_prefix",
    "search_metadata",
    "names_only",
    "device_type",
    "node_name",
    "graph_width",
    "show_metadata",
    "merge_fusion",
    "type",
)
PARAMETERS: dict[str, frozenset[str]] = {  # what is passed on; what else a front end sends, nobody there reads
    "/runs": frozenset(),
    "/config": frozenset(),
    "/version": frozenset(),
    "/run_tools": frozenset(_NAMES),
    "/hosts": frozenset(_NAMES),
    "/module_list": frozenset(_NAMES),
    "/data": frozenset((*_NAMES, *_TOOLS)),
    "/data_csv": frozenset((*_NAMES, *_TOOLS)),
}
REFUSED = frozenset(
    (  # folders of the sender's choice, and what captures are told
        "session_path",
        "run_path",
        "service_addr",
        "worker_list",
        "is_tpu_name",
        "duration",
        "num_retry",
        "delay",
        "host_tracer_level",
        "device_tracer_level",
        "python_tracer_level",
        "tools",
    )
)
FREE = frozenset(("event_name", "node_name", "search_prefix"))  # texts that name no file
LONGEST = 2000  # characters of a value


def target(rest: str, query: Sequence[tuple[str, str]], sessions: Collection[str]) -> str | None:
    """What XProf may be asked, below its place, for a decoded path and the pairs of a query; None: it may not.

    `sessions`: the profiles that are laid out for it; no other `run` is asked for.
    """
    if rest in ("", "/"):
        return "/"
    if rest in FILES:
        return rest
    if (page := _PAGE.fullmatch(rest)) and page["page"] in PAGES:
        return "/"
    if rest not in PARAMETERS or REFUSED & {name for name, _ in query}:
        return None
    asked = [(name, value) for name, value in query if name in PARAMETERS[rest] and value != ""]
    names = {name for name, _ in asked}
    # of a name given twice, each reader takes another one
    if len(names) < len(asked) or not all(_may(*pair, sessions) for pair in asked):
        return None
    if rest in _ABOUT_A_RUN and "run" not in names:
        return None
    return rest + (f"?{urlencode(asked)}" if asked else "")


def _may(name: str, value: str, sessions: Collection[str]) -> bool:
    if len(value) > LONGEST or not value.isprintable() or ".." in value:
        return False
    if name == "run":
        return value in sessions
    return name in FREE or not re.search(r"[/\\]", value)

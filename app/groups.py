"""In which order and under which heads a run's pages and questions stand: in menus and in help alike.

A name that no group holds stands on its own, first, so that a new question is seen before anybody sorts it in.
"""

OVERVIEW, PROGRAM, MORE = "Overview", "Program", "More"
GROUPS = {
    OVERVIEW: "findings ledger timeline compare",
    "Serving": "latency objectives load traffic engine kv_cache speculation prefix_cache",
    "Time": "goodput interruptions hangs checkpoints steps",
    "Speed": (
        "mfu flops padding roofline operations modules memory heap overlap launches critical_path collectives "
        "stragglers slowdown input power"
    ),
    PROGRAM: "compiled hlo hlo_graph hlo_diff",
    MORE: "facts query",
}
_GROUP_OF = {name: group for group, names in GROUPS.items() for name in names.split()}
_PLACE = {name: place for place, name in enumerate(_GROUP_OF)}

SECTIONS = {  # of the bar at the top, below the heads of which these pages stand; no head: on their own
    "": "library fleet",
    "Jobs": "several history capture alerts promises",
    "Planners and labs": "topology compiled training_planner cost_planner goodput_planner scaling storage "
    "checkpoint_planner "
    "serving_planner serving_cases",
    "Reference": "models published definitions",
}


def section_of(name: str) -> str:
    """The section of the top bar that a page stands in; those that nobody sorted in are reference."""
    return next((head for head, names in SECTIONS.items() if name in names.split()), "Reference")


def group_of(name: str) -> str:
    """The group of a page or question by its name; one that nobody sorted in is part of the overview."""
    return _GROUP_OF.get(name, OVERVIEW)


def in_order(name: str) -> int:
    """Where it stands among all: those of no group last."""
    return _PLACE.get(name, len(_PLACE))

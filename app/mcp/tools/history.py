"""What `runs` tells of a metric over those that a search finds. No tool of its own, as every agent pays for the
description of each."""

from collections.abc import Mapping
from typing import Any

from app.history import options
from app.history.told import Asked, tell
from app.mcp.base import Told
from app.mcp.links import to
from app.pages.history import HISTORY
from app.workspace import Workspace
from errors.options import Option

METRIC = Option(
    "history",
    str,
    "",
    "instead of runs: how this went over those found, and where it changed for good: step_time, tokens_per_s, mfu, "
    "goodput, ttft_p99, an account",
)
BY = Option("by", str, options.BY.default, "of a history: a point a run, or for each value of this tag, such as commit")


def told_of(place: Workspace, given: Mapping[str, Any]) -> Told:
    """Raises QuestionError for what is no metric, and where no run tells it."""
    asked = Asked(
        metric=given[METRIC.name], search=given.get(options.SEARCH.name, ""), by=given.get(BY.name, BY.default)
    )
    found = tell(asked, place)
    more = [(o.name, value) for o in (options.SEARCH, options.BY) if (value := getattr(asked, o.name)) != o.default]
    return Told(found.verdict.whole, found.to_dict(), {"page": to(f"/{HISTORY.path}", ("metric", asked.metric), *more)})

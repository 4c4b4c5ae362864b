"""The menu of a run's page as it is handed to the browser."""

import json
from typing import Any

from streamlit.testing.v1 import AppTest


def component(at: AppTest, name: str) -> dict[str, Any]:
    """What this component of a page was given."""
    return next(json.loads(e.proto.json) for e in at.get("bidi_component") if e.proto.component_name == name)


def menu(at: AppTest) -> dict[str, dict[str, Any]]:
    """Each page of the menu by its title, with the group that it stands in."""
    groups = component(at, "chipledger_run_menu")["groups"]
    return {page["title"]: {**page, "group": group["title"]} for group in groups for page in group["pages"]}

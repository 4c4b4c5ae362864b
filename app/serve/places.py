"""What is told of this machine to who asks over HTTP: nothing of where its files lie."""

import re
from pathlib import Path
from typing import Any

_PATH = re.compile(r"(?<![\w/.:%-])/(?P<first>[\w.+@-]+)(?:/[\w.+@%=~-]*)+")


def placeless(told: Any, root: Path) -> Any:
    """The same text, or the texts of lists and objects, without folders of this machine: of a file below the store
    `root` its place there, of any other its name. Addresses such as /api/runs begin with no folder and stay."""
    if isinstance(told, str):
        for folder in {str(root), str(root.resolve())}:
            told = told.replace(f"{folder}/", "").replace(folder, "the store")
        return _PATH.sub(_name, told)
    if isinstance(told, dict):
        return {name: placeless(value, root) for name, value in told.items()}
    return [placeless(value, root) for value in told] if isinstance(told, list | tuple) else told


def _name(path: re.Match[str]) -> str:
    """The last part of a path whose first is a folder of this machine; anything else as it is."""
    return path[0].rstrip("/").rpartition("/")[2] if Path(f"/{path['first']}").exists() else path[0]

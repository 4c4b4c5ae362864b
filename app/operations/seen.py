"""One thing that was looked at of a server, and what is wrong with it."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Seen:
    """`found`: what is there; `wrong`: a sentence with what to do, where it is not as it should be; `fails`: whether
    the server cannot do its work so, or is open to others; what else is wrong is worth a thought."""

    what: str
    found: str
    wrong: str = ""
    fails: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {"what": self.what, "found": self.found, "wrong": self.wrong or None, "fails": self.fails}

"""What came of a scenario."""

from dataclasses import dataclass, field
from typing import Any

from benchmarks.faults.kills.servers import Server


@dataclass
class Told:
    """What came of a scenario: what was seen, and what should not have been."""

    name: str
    seen: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def say(self, what: str) -> None:
        self.seen.append(what)

    def must(self, holds: bool, what: str) -> None:
        if not holds:
            self.wrong.append(what)

    def refused(self, answer: tuple[int, Any], what: str) -> None:
        """A refusal in one sentence."""
        status, told = answer
        said = told.get("error") if isinstance(told, dict) else told
        self.say(f"{what}: {status} {str(said)[:160]}")
        self.must(400 <= status < 500 and isinstance(said, str) and "\n" not in said, f"{what}: {status} {said}")

    def done(self, answer: tuple[int, Any], what: str) -> None:
        self.must(answer[0] < 300, f"{what}: {answer[0]} {str(answer[1])[:200]}")

    def served(self, server: Server) -> None:
        """No traceback in what the server printed."""
        said = server.said()
        at = said.find("Traceback")
        self.must(at < 0, f"a traceback: {' '.join(said[at : at + 3000].split())[-400:]}")

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
    printed: str = ""

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
        self.printed = server.said()
        lines = self.printed.splitlines()
        for n, line in enumerate(lines):
            if line.startswith("Traceback"):
                ends = next((at for at in range(n + 1, len(lines)) if not lines[at].startswith(" ")), len(lines) - 1)
                where = [text.strip() for text in lines[n:ends] if text.startswith("  File")]
                self.wrong.append(f"a traceback: {lines[ends][:300]} ({' < '.join(reversed(where[-3:]))})")

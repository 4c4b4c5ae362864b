"""A term: what a figure's name means, written down once. Pages, `show --explain` and docs read it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """What a name means.

    meaning  whole sentences, complete without the rest
    formula  as an expression, where the meaning is one
    unit     of its number; a share is `1`
    source   who defined it, where it was not defined here
    """

    name: str
    meaning: str
    formula: str = ""
    unit: str = ""
    source: str = ""

    @property
    def text(self) -> str:
        """All that is known of it, in sentences."""
        source = f"Source: {self.source}." if self.source else ""
        return " ".join(filter(None, (self.meaning, self.formula and f"{self.formula}.", source)))

    def to_dict(self) -> dict[str, str]:
        """Name and meaning, and what else is known of it."""
        more = {"formula": self.formula, "unit": self.unit, "source": self.source}
        return {"name": self.name, "meaning": self.meaning, **{k: v for k, v in more.items() if v}}

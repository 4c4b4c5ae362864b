"""The small error family: what is wrong, where, what was expected, what to do next."""


class ChipledgerError(Exception):
    """Base of every error raised on purpose. Its text is one line, ready for a person.

    Only the edges (command line, HTTP API, pages) catch it: the command line turns it into exit code 2,
    a page into a notice. Anything else that escapes is a defect of ours.
    """

    def __init__(self, what: str, *, where: str = "", expected: str = "", advice: str = ""):
        self.what, self.where, self.expected, self.advice = what, where, expected, advice
        text = f"{where}: {what}" if where else what
        if expected:
            text += f"; expected {expected}"
        if advice:
            text += f". {advice}"
        super().__init__(" ".join(text.split()))

    def to_dict(self) -> dict[str, str | None]:
        """Its parts, as JSON; null: there is nothing to say."""
        parts = {"what": self.what, "where": self.where, "expected": self.expected, "advice": self.advice}
        return {name: " ".join(text.split()) or None for name, text in parts.items()}


class InputError(ChipledgerError):
    """A file or value given by a person cannot be used. Nothing was stored."""


class QuestionError(ChipledgerError):
    """A name, option or run that was asked for does not exist, or the run lacks what it needs."""

"""What lines of logs look like that tell of a cause: the rules of `data/cause_rules.json`, ready to be tried.

A pattern sees the line in lower case, and is tried only where one of its needles is in the line. The first rule that
fits wins: what names a part stands before what names a symptom, and that before what only says that an exception was
raised. `GATE` is all of them in one, looser, for RE2, which reads any number of patterns in one pass over the text.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from catalog.entries import read_data

FILE = "cause_rules.json"
_PART = re.compile(r"\{([a-z_]+)\}")


class Rule(NamedTuple):
    """A line fits if one of `needles` is in it and one of `patterns` matches, in lower case. Cause "": see XIDS."""

    cause: str
    needles: tuple[str, ...]
    patterns: tuple[str, ...]


def parse_rules(data: Mapping[str, Any]) -> tuple[Rule, ...]:
    """The rules of the data file, in which `{part}` stands for any of a list of its `parts`.

    Raises ValueError for a rule that cannot fit: the data file is ours, so a mistake in it is a defect.
    """
    parts = {name: f"(?:{'|'.join(any_of)})" for name, any_of in data["parts"].items()}
    rules: list[Rule] = []
    for raw in data["rules"]:
        cause, needles, patterns = raw["cause"], tuple(raw["needles"]), tuple(raw["patterns"])
        if not needles or not patterns or any(needle != needle.lower() for needle in needles):
            raise ValueError(f"a rule of {cause!r} needs patterns and needles in lower case: {needles}")
        try:
            whole = tuple(_PART.sub(lambda m: parts[m[1]], pattern) for pattern in patterns)
        except KeyError as e:
            raise ValueError(f"a rule of {cause!r} names a part that is not there: {e.args[0]}") from None
        rules.append(Rule(cause, needles, whole))
    return tuple(rules)


def parse_xids(data: Mapping[str, Any]) -> dict[int, str | None]:
    """The cause that each number of an NVIDIA driver message tells of; None: of nothing that failed by itself.

    Raises ValueError for a number that stands twice.
    """
    xids: dict[int, str | None] = {}
    for raw in data["xids"]:
        for number in raw["numbers"]:
            if number in xids:
                raise ValueError(f"Xid {number} tells of {xids[number]} and of {raw['cause']}")
            xids[number] = raw["cause"]
    return xids


def _loose(pattern: str) -> str:
    """A pattern that fits wherever `pattern` does, and maybe elsewhere, without what RE2 lacks or is slow at."""
    pattern = re.sub(r"\(\?<?!(?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", "", pattern)  # what must not stand there
    pattern = re.sub(r"\(\?P<\w+>", "(", pattern)
    return re.sub(r"\.\{0,\d+\}", ".*", pattern)


_DATA = read_data(FILE)
XIDS = parse_xids(_DATA)
RULES = parse_rules(_DATA)
# What sounds like trouble and is none.
HARMLESS = re.compile("|".join(pattern for raw in _DATA["harmless"] for pattern in raw["patterns"]))
# What counts nothing, wherever it stands in a line, and what else does where a line holds such a count.
NOTHING = re.compile("|".join(_DATA["nothing"]["patterns"]))
ZERO = re.compile(_DATA["nothing"]["zero"])
# An exception by its class name, as Python prints it at the end of a traceback: seen in the case as written.
EXCEPTION = re.compile(
    r"(?:^|[\s\]|])(?:[A-Za-z_]\w*\.)*(?!Mean|RootMean|Squared|Absolute|Relative)"
    r"[A-Z]\w*(?:Error|Exception)(?::(?= |$)|$)"
)
GATE = "|".join(_loose(pattern) for rule in RULES for pattern in rule.patterns) + r"|\w(?:error|exception)"

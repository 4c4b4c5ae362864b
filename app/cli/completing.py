"""What can stand next on a command line. A shell waits for it at each press of a key: nothing but the standard library
is imported here. What the parser knows is kept in a file as words (`word_tree.py`), made anew when the code changed.

A line is a word and, after a tab, what it is; `:files` alone: the shell completes names of files.
"""

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from app.cli.kept_words import kept_or_made

Words = Iterable[tuple[str, str]]  # each with what it is
FILES = ":files"
LISTED = 200  # runs that are offered, newest first: a store of thousands is searched, not listed
LOOKED_AT = 1_000  # runs whose names are read
_NAME = re.compile(rb'^ "name": (".*?"),?$', re.MULTILINE)  # of a manifest, as it is written
_MANIFEST_BYTES = 1 << 20
_QUOTES = ("'", '"')
_QUOTE_IN_SINGLE = r"'\''"
_BANG_IN_DOUBLE = "\"'!'\""  # no backslash takes its meaning from it there


def complete(shell: str, words: Sequence[str]) -> int:
    """Print what can stand for the last of these words. Whatever goes wrong, a shell is told nothing instead."""
    try:
        before, current, cut = _read(shell, words)
        quote = words[-1][:1] if shell == "bash" else ""
        for word, told in _candidates(tree(), before, current):
            if word == FILES:
                print(FILES)
            elif word.startswith(current) and word.isprintable():
                shown = _within(quote, word[cut:])
                print(f"{shown}\t{' '.join(told.split())}" if told else shown)
        sys.stdout.flush()
    except Exception:  # noqa: BLE001 - a message would end up in the middle of a command line
        return 1
    return 0


def tree() -> dict[str, Any]:
    """The words of commands, questions and catalogue."""

    def words() -> dict[str, Any]:
        from app.cli.word_tree import made

        return made()

    return kept_or_made("words", words)


def _read(shell: str, words: Sequence[str]) -> tuple[list[str], str, int]:
    """(the words before, the word to complete, how much of it the shell keeps as it is).

    Bash hands words as they were typed, and cuts them at `:` and `=`.
    """
    if shell != "bash":
        return list(words[:-1]), words[-1], 0
    joined: list[str] = []
    glue, kept = False, 0  # characters that stand before the last word as bash cut it
    for at, word in enumerate(words):
        if joined and (glue or word in (":", "=")) and (word or at == len(words) - 1):
            kept = len(joined[-1])
            joined[-1] += _unquoted(word)
        else:
            kept = 0
            joined.append(_unquoted(word))
        glue = word in (":", "=")
    last = joined[-1]
    quoted = words[-1][:1] in _QUOTES  # bash does not cut within quotes
    cut = kept if quoted else max(last.rfind(":"), last.rfind("=")) + 1
    return joined[:-1], last, cut


def _unquoted(word: str) -> str:
    """A word of bash without its quotes, which may still be open."""
    quote = word[:1]
    if quote not in _QUOTES:
        return re.sub(r"\\(.)", r"\1", word)
    text = word[1:]
    if quote == "'":
        return text.replace(_QUOTE_IN_SINGLE, "\0").removesuffix("'").replace("\0", "'")
    text = text.replace(_BANG_IN_DOUBLE, "!")
    if re.fullmatch(r'(?:[^\\"]|\\.)*"', text):
        text = text[:-1]
    return re.sub(r'\\([\\"$`])', r"\1", text)


def _within(quote: str, text: str) -> str:
    """How a text stands after an open quote of bash, which would run what is in it: `$(...)`, or what follows a quote.
    Without a quote the shell's own `printf %q` does it."""
    if quote == "'":
        return text.replace("'", _QUOTE_IN_SINGLE)
    if quote == '"':
        return re.sub(r'([\\"$`])', r"\\\1", text).replace("!", _BANG_IN_DOUBLE)
    return text


def _candidates(words: dict[str, Any], before: list[str], current: str) -> Iterator[tuple[str, str]]:
    """All that could stand there; what does not begin like the word so far is left out by who asks."""
    at = _Line(words)
    for word in before:
        at.take(word)
    if at.waits is not None:
        yield from at.values(at.waits, current)
    elif current.startswith("-"):
        flag, equals, begun = current.partition("=")
        if equals:
            told = at.command["flags"].get(flag)
            yield from ((f"{flag}={v}" if v != FILES else v, h) for v, h in at.values(told, begun) if told)
        else:
            yield from ((flag, told["help"]) for flag, told in at.command["flags"].items())
    else:
        yield from at.values(at.place, current)


class _Line:
    """A command line as far as it was read: which command, what was given, and what is waited for."""

    def __init__(self, words: dict[str, Any]):
        self.words = words
        self.command: dict[str, Any] = words["top"]
        self.given: list[str] = []
        self.waits: dict[str, Any] | None = None
        self.store = ""
        self._flag = ""

    def take(self, word: str) -> None:
        if self.waits is not None:
            self._value(word)
        elif word.startswith("-"):
            flag, equals, value = word.partition("=")
            told = self.command["flags"].get(flag)
            if told and told["takes"]:
                self.waits, self._flag = told, flag
                if equals:
                    self._value(value)
        elif word in self.command["below"] and not self.given:
            self.command = self.command["below"][word]
        else:
            self.given.append(word)

    def _value(self, word: str) -> None:
        if self._flag == "--store":
            self.store = word
        self.waits = None

    @property
    def place(self) -> dict[str, Any] | None:
        """What stands by its place next."""
        if self.command["below"] and not self.given:
            return {"takes": "below"}
        places = self.command["places"]
        if len(self.given) < len(places):
            return places[len(self.given)]
        return places[-1] if places and places[-1]["several"] else None

    def values(self, told: dict[str, Any] | None, begun: str) -> Words:
        """What can stand for a value of this kind."""
        takes = told["takes"] if told else ""
        if takes == "below":
            return [(name, command["help"]) for name, command in self.command["below"].items()]
        if takes == "words" and told:
            return [(word, "") for word in told["words"]]
        if takes == "runs":
            return _runs(self.store, begun, self.words["models"])
        if takes == "files":
            return [(FILES, "")]
        if takes == "entries":
            return [(name, "") for name in self.words["entries"].get(self.given[0] if self.given else "", ())]
        if takes == "options":
            return self._options(begun)
        return self.words.get(takes, ())

    def _options(self, begun: str) -> Words:
        """`key=` of the question that was named, then the words that it may be."""
        asked = self.words["options"].get(self.given[1] if len(self.given) > 1 else "", {})
        key, equals, _ = begun.partition("=")
        if equals:
            return [(f"{key}={word}", "") for word in asked.get(key, {}).get("words", ())]
        return [(f"{name}=", told["help"]) for name, told in asked.items()]


def _runs(store: str, begun: str, models: Words) -> Words:
    """Names of runs, then live runs; ids once some of one was typed. `model:` leads to models."""
    if begun.startswith("model:"):
        return [(f"model:{name}", told) for name, told in models]
    root = Path(store or os.environ.get("CHIPLEDGER_STORE") or "~/.chipledger").expanduser()
    found = dict(_names(root))
    names = dict.fromkeys(found.values())
    fitting = [(name, "") for name in names if name.startswith(begun)]
    fitting += [(f"live:{p.name}", "a job that is followed") for p in _folders(root / "live")]
    if len(begun) >= 2:
        fitting += [(run_id, name) for run_id, name in found.items() if run_id.startswith(begun)]
    return fitting[:LISTED]


def _names(root: Path) -> Iterator[tuple[str, str]]:
    """(id, name) of each run, newest first: as people call it, else as it was stored."""
    called = _called(root / "registry.db")
    folders = sorted(_folders(root / "runs"), key=lambda e: -e.stat().st_mtime_ns)
    for folder in folders[:LOOKED_AT]:
        if name := called.get(folder.name) or _stored_name(folder.path):
            yield folder.name, name


def _stored_name(folder: str) -> str:
    try:
        with open(os.path.join(folder, "run.json"), "rb") as f:
            told = _NAME.search(f.read(_MANIFEST_BYTES))
        return str(json.loads(told[1])) if told else ""
    except (OSError, ValueError):
        return ""


def _called(registry: Path) -> dict[str, str]:
    """What people call runs. A registry that cannot be read, or knows no names yet, tells nothing."""
    import sqlite3

    try:
        db = sqlite3.connect(f"{registry.as_uri()}?mode=ro", uri=True, timeout=0.05)
        try:
            return dict(db.execute("select run_id, name from names"))
        finally:
            db.close()
    except (sqlite3.Error, ValueError):
        return {}


def _folders(folder: Path) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            return [e for e in entries if e.is_dir()]
    except OSError:
        return []

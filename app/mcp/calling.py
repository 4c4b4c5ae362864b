"""A tool called: what was given is checked, what it finds is cut to its tokens, and where it stands is told."""

from typing import Any

from app.mcp.arguments import OPTIONS, as_pairs, need
from app.mcp.base import BYTES_PER_TOKEN, CUT, PART, START, TOKENS, Told, Tool
from app.mcp.budget import HOW, MOST_NOTES, NOTE_BYTES, fit, part, rest, text
from app.options import from_query
from app.workspace import Workspace
from errors.options import once_each

SAYS_SHARE = 3  # of the answer's bytes, one in so many may be its sentence; the same for links
NOTES_SHARE = 4  # and of notes on what is left out
TRIES = 12  # less room leaves more out, which takes a note more: after so many of them nothing but notes is told
HALVINGS = 8


def call(tool: Tool, arguments: Any, place: Workspace) -> str:
    """The answer as JSON: `says`, `answer`, `links`, and `left_out` where it was cut.

    Raises QuestionError or InputError for what cannot be asked or answered.
    """
    given = as_pairs(_beside(arguments), "the arguments are")
    known = (*tool.options, *CUT)
    names = [*(o.name for o in known), *([OPTIONS] if tool.choices is not None else [])]
    once_each(given, names, [o.name for o in known if o.several])
    need(given, tool.options, tool.needed)
    values = {o.name: o.default for o in CUT} | from_query(given, known)
    more = as_pairs(_within(arguments, tool), OPTIONS) if tool.choices is not None else []
    told = tool.answer(place, values, more)
    return cut(told, values[PART.name], values[START.name], values[TOKENS.name] * BYTES_PER_TOKEN)


def cut(told: Told, pointer: str, start: int, most: int) -> str:
    """What was found, or a part of it, in at most so many bytes."""
    wanted = rest(part(told.answer, pointer), start)
    says, _ = fit(told.says, most // SAYS_SHARE)
    links = dict(told.links) if len(text(dict(told.links)).encode()) <= most // SAYS_SHARE else {}
    head: dict[str, Any] = ({"says": says} if says else {}) | {"answer": None}
    head |= ({"part": pointer} if pointer else {}) | ({"start": start} if start else {}) | {"links": links}
    room = most - len(text(head).encode())
    whole, notes = fit(wanted, room, pointer, start)
    if not notes:
        return text(head | {"answer": whole})
    named = min(MOST_NOTES, most // NOTES_SHARE // NOTE_BYTES)
    for tried in range(TRIES + HALVINGS):
        shown, notes = fit(wanted, room, pointer, start)
        said = notes[:named] + ([{"parts_besides": len(notes) - named}] if len(notes) > named else [])
        made = text(head | {"answer": shown, "left_out": said, "how": HOW})
        over = len(made.encode()) - most
        if over <= 0:
            return made
        # What is cut further may need another note: where that goes on and on, much less is shown.
        room = room - over if tried < TRIES else room // 2
    return text(head | {"left_out": [{"part": pointer}], "how": HOW})


def _beside(arguments: Any) -> Any:
    """The arguments but for the object of options."""
    if not isinstance(arguments, dict):
        return arguments
    return {name: value for name, value in arguments.items() if name != OPTIONS}


def _within(arguments: Any, tool: Tool) -> Any:
    return arguments.get(OPTIONS) if isinstance(arguments, dict) else None

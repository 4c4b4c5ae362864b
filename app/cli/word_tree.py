"""The words that completion offers, from the records that the parser, the questions and the catalogue are made of."""

import argparse
from typing import Any

import catalog
from app.cli.commands.catalog import ENTRY
from app.cli.parsing import parser
from app.options import form_of, record_of
from app.questions import QUESTIONS
from errors.options import Option

FILES = ("FILE", "PATH", "FOLDER", "STORE")
NAMED = {  # what an option of this name stands for, where its record alone does not tell
    "analysis": "questions",
    "question": "questions",
    "model": "models",
    "chip": "chips",
    "option": "options",
}


def made() -> dict[str, Any]:
    """Commands with their flags and places; questions with their options; names of the catalogue."""
    entries = {kind: sorted(dict.fromkeys(str(r["entry"]) for r in catalog.as_rows(kind))) for kind in catalog.KINDS}
    return {
        "top": _command(parser(), ""),
        "questions": [(q.name, q.title) for q in QUESTIONS],
        "options": {q.name: {o.name: {"help": o.help, "words": _words(o)} for o in q.options} for q in QUESTIONS},
        "entries": entries,
        "models": [(name, "") for name in entries["models"]],
        "chips": [(name, "") for name in entries["chips"]],
    }


def _command(command: argparse.ArgumentParser, told: str) -> dict[str, Any]:
    below: dict[str, Any] = {}
    flags: dict[str, Any] = {"--help": {"help": "what it takes", "takes": "", "words": []}}
    places: list[dict[str, Any]] = []
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            below = {name: _command(one, helps.get(name, "")) for name, one in action.choices.items()}
        elif (option := record_of(action)) is not None:
            told_of = {"help": option.help, "takes": _takes(option), "words": _words(option), "several": option.several}
            if not action.option_strings:
                places.append(told_of)
            for flag in action.option_strings:
                flags[flag] = told_of
    return {"help": told, "flags": flags, "places": places, "below": below}


def _takes(option: Option) -> str:
    """What completes its value; empty: it has none."""
    if option.switch:
        return ""
    if option.of_run:
        return "runs"
    if isinstance(option.kind, tuple):
        return "words"
    if option.name in NAMED:
        return NAMED[option.name]
    if option is ENTRY:
        return "entries"
    return "files" if form_of(option) in FILES or option.name in ("paths", "files") else "text"


def _words(option: Option) -> list[str]:
    if option.switch:
        return ["true", "false"]
    return list(option.kind) if isinstance(option.kind, tuple) else []

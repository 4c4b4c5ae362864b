"""`chipledger note RUN TEXT`: what is to be remembered of a run, in Markdown."""

import argparse

from app.cli.commands.base import JSON, RUN, print_json, printable, user
from app.options import add_arguments, add_flags, values
from app.workspace import workspace
from errors import QuestionError
from errors import format as fmt
from errors.numbers import COUNT
from errors.options import Option

NAME = "note"
HELP = "write a note on a run, in Markdown; without a text, list its notes"
API = "/api/runs/RUN/notes"
TEXT = Option("text", str, None, "what is to be remembered, up to 10,000 characters", local=True)
ARGUMENTS = (RUN, TEXT)
EDIT = Option("edit", COUNT, None, "number of a note that the text takes the place of", local=True, form="NUMBER")
DELETE = Option("delete", COUNT, None, "number of a note to delete", local=True, form="NUMBER")
OPTIONS = (EDIT, DELETE, JSON)
MAY_LACK = (TEXT,)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, ARGUMENTS, MAY_LACK)
    add_flags(parser, OPTIONS)


def run(args: argparse.Namespace) -> None:
    from app.library import changes

    given, place = values(args, OPTIONS), workspace(args.store)
    edited, deleted = given[EDIT.name], given[DELETE.name]
    if deleted is not None and (edited is not None or args.text is not None):
        raise QuestionError("a note is deleted, and a text given", expected="one of both")
    if edited is not None and args.text is None:
        raise QuestionError(f"note {edited} is edited without a text", expected="note RUN TEXT --edit NUMBER")
    if deleted is not None:
        changes.delete_note(place, args.run, deleted)
    elif edited is not None and args.text is not None:
        changes.edit_note(place, args.run, edited, args.text, who=user())
    elif args.text is not None:
        changes.add_note(place, args.run, args.text, who=user())
    notes = changes.notes(place, args.run)
    if given[JSON.name]:
        print_json({"notes": [note.to_dict() for note in notes]})
        return
    for note in notes:
        by = ", ".join(filter(None, (note.who, fmt.date(note.edited_ns or note.written_ns))))
        print(printable(f"{note.id}. {by}{' (edited)' if note.edited_ns else ''}"))
        for line in note.text.splitlines():
            print(f"   {printable(line)}")
    if not notes:
        print("No notes. Write one with `chipledger note RUN TEXT`.")

"""Several runs as a terminal shows them. Nothing heavy is imported before it is asked."""

from collections.abc import Sequence

from app.cli.commands.base import print_json, print_table, print_verdict, printable
from app.workspace import Workspace


def print_several(place: Workspace, runs: Sequence[str], as_json: bool, q: str = "", sort: str = "") -> None:
    """The table of what differs and how each scales, or the JSON contract."""
    from app.comparing.several import words
    from app.comparing.several.answer import several

    found = several(place, runs, q, sort=sort, numbers="now")
    said = words.verdict(found)
    if as_json:
        print_json({"verdict": said.whole, **found.to_dict()})
        return
    print_verdict(said)
    shown = words.table(found)
    print_table(shown.head, shown.rows, right=shown.right)
    print(f"\n{words.folded(found)}")
    for note in found.notes:
        if note not in said.whole:
            print(f"- {printable(note)}")

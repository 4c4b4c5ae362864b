"""Several runs as a terminal shows them. Nothing heavy is imported before it is asked."""

from collections.abc import Sequence

from app.cli.commands.base import print_json, print_table, print_verdict, printable
from app.workspace import Workspace


def print_several(place: Workspace, runs: Sequence[str], as_json: bool, q: str = "", sort: str = "") -> None:
    """The table of what differs and how each scales, or the JSON contract."""
    from app.comparing.several import scaling_words, words
    from app.comparing.several.answer import several
    from app.comparing.several.growing import grown
    from app.comparing.several.told import several_dict

    found = several(place, runs, q, sort=sort, numbers="now", split=False)
    if as_json:
        print_json(several_dict(found))
        return
    said = words.verdict(found)
    print_verdict(said)
    shown = words.table(found)
    print_table(shown.head, shown.rows, right=shown.right)
    print(f"\n{words.folded(found)}")
    for note in found.notes:
        if note not in said.whole:
            print(f"- {printable(note)}")
    scaled = grown(found)
    for series in scaled.series:
        print(f"\n{printable(scaling_words.sentence(series))}\n")
        shown = scaling_words.table(series)
        print_table(shown.head, shown.rows, right=shown.right)
        if unsure := scaling_words.untold(series):
            print(f"- {printable(unsure)}")
    for text in scaling_words.left_out(scaled):
        print(f"- {printable(text)}")

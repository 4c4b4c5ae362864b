"""A ledger as figures read it: the account at a path, and what a hover says about it."""

from app import theme
from app.figures.base import plain
from errors import format as fmt
from runs.ledger import Account, Ledger

SEPARATOR = "."
KEPT = ("productive", "profiled", "served", "useful_maths")  # what holds what moved the model or answered: drawn first


def path_text(path: tuple[str, ...]) -> str:
    """`("held", "badput", "wasted_progress")` as the permalink writes it: `badput.wasted_progress`.

    A separator inside a name, as a custom event may have, gets a backslash, so that no two paths read alike.
    """
    return SEPARATOR.join(_escaped(name) for name in path[1:])


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace(SEPARATOR, "\\" + SEPARATOR)


def opened(root: Account, text: str) -> list[Account]:
    """The accounts from the root down to the one at `text`, as far as they exist in this ledger."""
    chain = [root]
    while text:
        named = ((c, _escaped(c.name)) for c in chain[-1].children)
        child, name = next(((c, n) for c, n in named if f"{text}.".startswith(n + SEPARATOR)), (None, ""))
        if child is None:
            break
        chain.append(child)
        text = text[len(name) + 1 :]
    return chain


def hover_lines(ledger: Ledger, account: Account, path: tuple[str, ...]) -> list[str]:
    """Title with amount, share and dollars; basis and source; meaning. As plain text."""
    mark, whole = theme.mark(account.basis), ledger.chip_seconds
    amount = fmt.held_time(account.chip_seconds, ledger.chips_known)
    if whole:
        amount += f", {fmt.share(account.chip_seconds / whole)} of the whole"
    if account.usd is not None:
        amount += f", {fmt.usd(account.usd)}"
    known = f"{mark.glyph} {mark.word}: {account.source or mark.meaning}"
    return [f"{theme.title(account.name)}: {amount}", known, theme.meaning(path)]


def hover(ledger: Ledger, account: Account, path: tuple[str, ...]) -> str:
    """The same as plotly hover text, in lines short enough to read."""
    head, *rest = hover_lines(ledger, account, path)
    return "<br>".join([f"<b>{plain(head)}</b>", *(line for text in rest for line in _wrapped(text))])


def _wrapped(text: str, width: int = 70) -> list[str]:
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + len(word) >= width:
            lines.append(plain(line))
            line = ""
        line = f"{line} {word}".strip()
    return [*lines, plain(line)] if line else lines

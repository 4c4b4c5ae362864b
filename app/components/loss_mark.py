"""Which page explains the largest loss of a run, as the ledger's answer has it where that is known already."""

from app import theme
from app.questions import QUESTIONS
from app.questions.asking import glimpse
from app.questions.ledger import LEDGER
from app.questions.ledger.words import losses
from errors import ChipledgerError
from errors import format as fmt
from runs.registry import Registry
from runs.run import Run

LEAST = 0.01  # share of the chip time: a smaller loss leads nobody anywhere


NOT_KNOWN_YET: dict[str, str] = {}


def loss_mark(run: Run, registry: Registry) -> dict[str, str] | None:
    """The page, a sentence and the account's colour. NOT_KNOWN_YET: the ledger was begun in the background. None: there
    is no ledger, nothing is lost that is worth a look, or no page that tells of this run explains the largest loss."""
    try:
        result = glimpse(LEDGER, run, registry)
    except ChipledgerError:
        return None
    if result is None:
        return NOT_KNOWN_YET
    lost = losses(result.ledger)
    if not lost or lost[0][1] < LEAST * result.ledger.chip_seconds:
        return None
    name, amount = lost[0]
    account = theme.known([name])
    page = next((q for q in QUESTIONS if account in q.explains and q.tells_of(run)), None)
    if page is None:
        return None
    known = "known loss" if result.ledger.unknown > amount else "loss"
    share = fmt.share(amount / result.ledger.chip_seconds)
    text = f"Explains the largest {known}: {theme.title(account)}, {share} of the chip time"
    return {"page": page.name, "text": text, "colour": theme.colour([account])}

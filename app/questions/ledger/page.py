"""The run's ledger: where did every chip-second go?"""

from analyzers.time.ledger import LedgerResult
from analyzers.time.ledger_terms import ACCOUNT_TERMS
from app.components.model_picker import About
from app.components.price import price_of_run
from app.components.question_page import How, question_page
from app.questions.ledger import LEDGER
from app.questions.ledger.figures import figures
from app.questions.ledger.view import explore

SERVED, TRAINED = ("iterations", "requests"), ("captures", "lifecycle", "steps")  # what would complete a ledger


def page() -> None:
    question_page(LEDGER, "Computing the ledger", figures, explore, beside=price_of_run, how=_how)


def _how(about: About, result: LedgerResult | None) -> How:
    """The accounts that it holds."""
    inputs = SERVED if about.its_run.manifest.kind == "serving" else TRAINED
    if result is None:
        return How((), (), inputs)
    held = {account.name for _, account in result.ledger.account.walk()}
    return How([term for name, term in ACCOUNT_TERMS.items() if name in held], result.notes, inputs)


if __name__ == "__main__":
    page()

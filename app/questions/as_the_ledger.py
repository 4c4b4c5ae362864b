"""How another cut of communication relates to the accounts of the ledger, in one sentence."""

from analyzers.time.booked import Booked
from errors import format as fmt


def as_the_ledger(books: Booked, cut: str) -> str:
    """`cut`: what this page counts, with its number, as the beginning of the sentence."""
    text = f"{cut}; the ledger, of kept steps, books {_amount(books.exposed_communication)} as exposed communication"
    text += f" and {_amount(books.straggler_wait)} as waiting for other ranks"
    if books.communication_or_wait > 0:
        text += f"; of {_amount(books.communication_or_wait)} it is not known which"
    return text + "."


def _amount(chip_seconds: float) -> str:
    return fmt.chip_time(chip_seconds)

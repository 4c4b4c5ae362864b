"""What the audit log is told, by the guard and by pages. A log that cannot be written stops nobody: the server's output
says so."""

import sys

from app.identity.base import Identity
from app.workspace import Workspace
from errors import ChipledgerError
from runs.audit_book import AuditBook, Entry, Outcome


class Noting:
    """Adds entries to the audit log of a workspace."""

    def __init__(self, place: Workspace):
        self._book = AuditBook(place.registry.at)

    def note(
        self, identity: Identity, what: str, about: str, outcome: Outcome, more: str = "", address: str = ""
    ) -> None:
        """One entry."""
        entry = Entry(
            what=what,
            outcome=outcome,
            who=identity.name,
            how=identity.how,
            role=identity.role.word,
            token_id=identity.token_id,
            about=about,
            address=address,
            more=more,
        )
        try:
            self._book.note(entry)
        except ChipledgerError as e:
            print(f"The audit log could not be told that {what} was {outcome}: {e}", file=sys.stderr, flush=True)

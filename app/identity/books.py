"""What ways of being known look things up in; what the registry said is remembered for a few seconds."""

import contextlib
import time
from collections import OrderedDict
from typing import Any

from app.identity.key import key_of
from app.identity.settings import Settings
from app.workspace import Workspace
from errors import ChipledgerError
from runs.login_book import LoginBook
from runs.token_book import TokenBook

REMEMBERED_S = 3.0  # after so long what another process revoked is refused here
MOST_REMEMBERED = 4096


class Seen:
    """What was looked up lately of one kind, by its hash or signed cookie. What nobody has is remembered too."""

    def __init__(self, seconds: float = REMEMBERED_S, most: int = MOST_REMEMBERED):
        self._seconds, self._most = seconds, most
        self._kept: OrderedDict[str, tuple[float, Any]] = OrderedDict()

    def get(self, key: str) -> tuple[bool, Any]:
        """(whether it is remembered, what it was)."""
        found = self._kept.get(key)
        if found is None or time.monotonic() - found[0] > self._seconds:
            return False, None
        return True, found[1]

    def put(self, key: str, value: Any) -> None:
        self._kept[key] = (time.monotonic(), value)
        self._kept.move_to_end(key)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def clear(self) -> None:
        self._kept.clear()


class Books:
    """What ways look things up in."""

    def __init__(self, settings: Settings, place: Workspace):
        self.settings, self.place = settings, place
        self.key = key_of(place.store.root)
        self.tokens, self.logins = TokenBook(place.registry.at), LoginBook(place.registry.at)
        self.seen_tokens, self.seen_logins = Seen(), Seen()  # apart: a token's hash as a cookie is no login
        self.used: dict[str, int] = {}  # when the use of a token was noted last, by its id

    def forget(self) -> None:
        """Look up anew what is asked next: a token was revoked, or somebody signed out."""
        self.seen_tokens.clear()
        self.seen_logins.clear()

    def note_used(self, token_id: str, now_ns: int) -> None:
        with contextlib.suppress(ChipledgerError):  # a registry that cannot be written stops nobody from reading
            self.tokens.used(token_id, now_ns)

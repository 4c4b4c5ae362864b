"""A paged KV cache: who holds which page, and which full pages are kept because a later prompt may begin alike."""

from collections import OrderedDict, deque
from collections.abc import Sequence as Items


class PageCache:
    """Pages 1 to `pages`, each free, held by one or more sequences, or idle: held by none, but its content is known.

    `allowed` of them may be held or idle at a time; idle pages give way in the order in which they were last held.
    Content goes by a name, a number for "these tokens after that beginning": equal names, equal prefixes.
    """

    def __init__(self, pages: int, page: int):
        self.page, self.total, self.allowed = page, pages, pages
        self._free = deque(range(1, pages + 1))
        self._holders = [0] * (pages + 1)
        self._idle: OrderedDict[int, None] = OrderedDict()
        self._names: dict[tuple[int, bytes], int] = {}
        self._name_of: dict[int, int] = {}
        self._page_of: dict[int, int] = {}

    @property
    def held(self) -> int:
        """Pages held by sequences."""
        return self.total - len(self._free) - len(self._idle)

    @property
    def usage(self) -> float:
        """Share of the allowed pages that sequences hold; above 1 for the moment in which pages are withdrawn."""
        return self.held / self.allowed

    def allow(self, pages: int) -> None:
        """From now on so many pages. The caller makes sequences give up what is held beyond."""
        self.allowed = min(pages, self.total)
        self._make_room(0)

    def _make_room(self, pages: int) -> None:
        while self._idle and self.held + len(self._idle) + pages > self.allowed:
            page, _ = self._idle.popitem(last=False)
            del self._page_of[self._name_of.pop(page)]
            self._free.append(page)

    def allocate(self, pages: int) -> list[int] | None:
        """So many pages with nothing in them, held once each; None, and nothing changed, where there are too few."""
        if self.held + pages > self.allowed:
            return None
        self._make_room(pages)
        taken = [self._free.popleft() for _ in range(pages)]
        for page in taken:
            self._holders[page] = 1
        return taken

    def name(self, before: int, tokens: Items[int]) -> int:
        """The name of these tokens after a beginning named `before` (0: none); made up where they are new."""
        return self._names.setdefault((before, bytes(tokens)), len(self._names) + 1)

    def names(self, tokens: Items[int], known: list[int]) -> None:
        """Adds to `known`, the names of a sequence's first pages, those of all its other full pages."""
        for end in range((len(known) + 1) * self.page, len(tokens) + 1, self.page):
            known.append(self.name(known[-1] if known else 0, tokens[end - self.page : end]))

    def blocks(self, prompt: Items[int]) -> list[int]:
        """The name of each block of a page's length of a prompt, a shorter last one included."""
        known: list[int] = []
        self.names(prompt, known)
        rest = prompt[len(known) * self.page :]
        return known + ([self.name(known[-1] if known else 0, rest)] if rest else [])

    def find(self, names: Items[int]) -> list[int]:
        """The pages whose content has the first of these names, as far as they are known."""
        found = []
        for name in names:
            if name not in self._page_of:
                break
            found.append(self._page_of[name])
        return found

    def know(self, page: int, name: int) -> None:
        """The content of a held page has that name. Where another page has it already, this one stays a copy."""
        if name not in self._page_of and page not in self._name_of:
            self._page_of[name], self._name_of[page] = page, name

    def hold(self, pages: Items[int]) -> None:
        """One more holder of each of these known pages."""
        for page in pages:
            self._holders[page] += 1
            self._idle.pop(page, None)

    def release(self, pages: Items[int]) -> None:
        """One holder less of each; of pages that become idle, the last of the sequence gives way first."""
        for page in reversed(pages):
            self._holders[page] -= 1
            if not self._holders[page]:
                if page in self._name_of:
                    self._idle[page] = None
                else:
                    self._free.append(page)
        self._make_room(0)

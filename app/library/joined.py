"""Texts in one, so that a word is looked for in a million of them at once."""

import numpy as np

FEW = 1_000  # texts that came since they were put together, and are looked at one by one


class Joined:
    """Of texts that stay as they are unless `replaced` is told, while others come after them. None has a line's end but
    between parts of it, and no word has one."""

    def __init__(self) -> None:
        self._bytes = np.zeros(0, dtype=np.uint8)
        self._begins = np.zeros(0, dtype=np.int64)
        self._others: set[int] = set()  # of those that were put together, which are others by now

    def replaced(self, at: int) -> None:
        """Another text stands in this place."""
        if at < len(self._begins):
            self._others.add(at)

    def holding(self, texts: list[str], word: str) -> np.ndarray:
        """Of each text whether the word is in it."""
        if not word:
            return np.ones(len(texts), dtype=bool)
        self.prepare(texts)
        found, done = np.zeros(len(texts), dtype=bool), len(self._begins)
        found[self._begins.searchsorted(self._places(_encoded(word)), side="right") - 1] = True
        found[done:] = [word in text for text in texts[done:]]
        for at in self._others:
            found[at] = word in texts[at]
        return found

    def prepare(self, texts: list[str]) -> None:
        """Put them together, where many are not."""
        if len(texts) - len(self._begins) + len(self._others) > FEW:
            self._put_together(texts)

    def _put_together(self, texts: list[str]) -> None:
        whole = "\n".join(texts)
        each = texts if whole.isascii() else [_encoded(text) for text in texts]  # of a letter several bytes else
        ends = np.cumsum(np.fromiter(map(len, each), dtype=np.int64, count=len(each)) + 1)
        self._begins, self._others = np.append(0, ends[:-1]), set()
        self._bytes = np.frombuffer(_encoded(whole), dtype=np.uint8)

    def _places(self, word: bytes) -> np.ndarray:
        """Where it begins."""
        first = self._bytes[: max(len(self._bytes) - len(word) + 1, 0)]
        at = np.flatnonzero(first == word[0])
        for n, letter in enumerate(word[1:], 1):
            at = at[self._bytes[at + n] == letter]
        return at


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")  # as names of files may be

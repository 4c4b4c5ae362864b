"""Prices as they are given: dollars per chip-hour by chip, from a text or an address."""

from collections.abc import Iterable

from catalog import chip
from errors import QuestionError
from errors.numbers import Number

PRICE = Number(0, 1e6, above=True)


def prices(text: str | None, own: Iterable[str] = ()) -> dict[str, float]:
    """`v6e=2.7,h100=3.5` by the catalogue's names, those of `own` chips as they are. Raises QuestionError for what
    is no such list, and for a chip that is named twice."""
    found = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        name, _, value = part.partition("=")
        try:
            usd = PRICE.read(value, "")
        except QuestionError as e:
            what = f"price {part.strip()[:40]!r}"
            raise QuestionError(what, expected="CHIP=USD, dollars per chip-hour, such as v6e=2.7") from e
        of = name.strip() if name.strip() in own else chip(name.strip()).name
        if of in found:
            raise QuestionError(f"two prices for {of}", expected="one for each chip, such as v6e=2.7,h100=3.5")
        found[of] = usd
    return found
